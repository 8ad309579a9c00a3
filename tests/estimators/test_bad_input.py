"""Bad input gets one clear error that names the argument and the remedy (DESIGN.md, promise 5)."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import kernelweave as kw
from kernelweave.kernels import RBF, FunctionKernel, Linear, Precomputed, Spectrum
from kernelweave.losses import EpsInsensitive, Hinge, Huber
from kernelweave.solvers.multiple import MKL_SOLVERS, Alternating

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
Y = (X[:, 0] > 0).astype(int)
T = X[:, 0]
K = X @ X.T
K2 = np.dstack([K, RBF(gamma=0.3)(X)])
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
TEXT = FRAME.assign(note=["red", "blue"] * 15)
INDEX = np.arange(30)[:, None]


def spoiled(value, where=X):
    copy = np.array(where, dtype=float)
    copy[(0,) * copy.ndim] = value
    return copy


def classify(X=X, y=Y, kernels="auto", sample_weight=None, **options):
    return kw.MKLClassifier(kernels, **options).fit(X, y, sample_weight=sample_weight)


def regress(X=X, y=T, kernels="auto", **options):
    return kw.MKLRegressor(kernels, **options).fit(X, y)


def detect(X=X, **options):
    return kw.MKLOneClass(**options).fit(X)


def ones(A, B):
    return np.ones((len(A), len(B)))


def zeros(A, B):
    return np.zeros((len(A), len(B)))


def refused(function, *patterns, error=ValueError):
    """The one error that `function` raises: of the given kind, in which every pattern is found."""
    with pytest.raises(error) as caught:
        function()
    assert type(caught.value) is error
    for pattern in patterns:
        assert re.search(pattern, str(caught.value)), f"no {pattern!r} in: {caught.value}"
    return str(caught.value)


# -- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [classify, regress, detect])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_missing_and_infinite_values(estimator, value, word):
    refused(lambda: estimator(spoiled(value)), "X", word)


def test_missing_values_in_a_frame():
    refused(lambda: classify(FRAME.mask(FRAME > 2.0)), "X", "NaN")


def test_missing_values_in_a_frame_with_text():
    kernels = {"body": RBF(columns=["a", "b"]), "note": Spectrum(k=1, columns="note")}
    refused(lambda: classify(TEXT.assign(a=np.nan), kernels=kernels), r"\bX\b|column", "NaN")


def test_missing_text():
    kernels = {"note": Spectrum(k=1, columns="note")}
    refused(lambda: classify(TEXT.assign(note=[None] + ["ab"] * 29), kernels=kernels), "string", "missing")


def test_missing_values_at_prediction():
    refused(lambda: classify().predict(spoiled(np.nan)), "X", "NaN")


@pytest.mark.parametrize("kernel", [Linear(columns=["a", "b"]), RBF(columns=["a", "b"])], ids=str)
def test_missing_values_at_prediction_beside_text(kernel):
    model = classify(TEXT, kernels={"body": kernel, "note": Spectrum(k=1, columns="note")})
    refused(lambda: model.decision_function(TEXT.assign(a=np.nan)), r"\bX\b|column", "NaN")


def test_missing_values_in_test_kernels():
    model = classify(K2, kernels="precomputed")
    refused(lambda: model.predict(spoiled(np.nan, K2[:5])), "NaN")


def test_missing_values_in_test_kernels_of_a_stack():
    model = classify(K2, kernels="precomputed")
    stack = kw.KernelStack([spoiled(np.nan, K[:5]), K2[:5, :, 1]])
    refused(lambda: model.predict(stack), "NaN")


def test_missing_targets():
    refused(lambda: regress(y=spoiled(np.nan, T)), "y", "NaN")


def test_text_where_numbers_are_needed():
    refused(lambda: classify(TEXT, kernels=[RBF()]), "column", "number|numeric", "encode|select")


def test_text_in_a_chosen_column():
    refused(lambda: classify(TEXT, kernels=[RBF(columns=["a", "note"])]), "column", "number|numeric")


def test_numbers_where_text_is_needed():
    refused(lambda: classify(TEXT, kernels=[Spectrum(columns="a")]), "string", "columns")


def test_several_columns_of_text():
    refused(lambda: classify(TEXT, kernels=[Spectrum()]), "4 columns", "columns=")


def test_complex_values():
    refused(lambda: classify(X + 1j), "[Cc]omplex")


# -- shapes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [classify, regress, detect])
def test_one_axis(estimator):
    refused(lambda: estimator(X[:, 0]), "2D array", "reshape")


def test_three_axes():
    refused(lambda: classify(K2), "dim 3", "2")


def test_targets_of_another_length():
    refused(lambda: classify(y=Y[:-1]), r"\[30, 29\]")


def test_targets_of_another_length_with_precomputed_kernels():
    refused(lambda: classify(K2, Y[:-1], kernels="precomputed"), r"\[30, 29\]")


def test_no_targets():
    refused(lambda: classify(y=None), "requires y")


def test_several_columns_of_labels():
    several = np.column_stack([Y, 2 * Y])
    refused(lambda: classify(y=several), "y has 2 columns and holds 2: several labels per sample")


def test_fewer_features_at_prediction():
    refused(lambda: classify().predict(X[:, :2]), "2 features", "3 features")


def test_one_sample():
    refused(lambda: classify(X[:1], Y[:1]), "1 sample", "2 is required")


def test_no_features():
    refused(lambda: classify(X[:, :0]), "0 feature")


def test_no_samples_at_prediction():
    refused(lambda: classify().predict(X[:0]), "0 sample")


# -- classes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [0, "healthy"])
def test_one_class_only(label):
    message = refused(lambda: classify(y=np.full(30, label)), "y has 1 class", "at least two", str(label))
    assert "np." not in message  # the label as the user wrote it


def test_one_class_with_weight():
    refused(lambda: classify(sample_weight=Y), "1 class", "weight")


def test_continuous_labels():
    refused(lambda: classify(y=T), "continuous")


# -- kernels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [ones, zeros])
@pytest.mark.parametrize("normalize", ["variance", "spherical", "center"])
def test_a_kernel_without_variance_gets_no_weight(function, normalize):
    kernels = {"flat": FunctionKernel(function), "bell": RBF()}
    with pytest.warns(UserWarning, match="without variance .* weight 0: flat"):
        model = classify(kernels=kernels, normalize=normalize)
    assert model.weights_[0] == 0.0
    alone = classify(kernels={"bell": RBF()}, normalize=normalize)
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-10)


@pytest.mark.parametrize("normalize", ["trace", None])
def test_a_zero_kernel_gets_no_weight_without_centring_either(normalize):
    with pytest.warns(UserWarning, match="weight 0: zeros"):
        model = classify(kernels=[FunctionKernel(zeros), RBF()], normalize=normalize)
    assert model.weights_[0] == 0.0


@pytest.mark.parametrize("normalize", ["trace", None])
def test_a_constant_kernel_is_harmless_without_centring(normalize):
    """It only doubles the intercept: the fit must not spend weight on it."""
    model = classify(kernels=[FunctionKernel(ones), RBF()], normalize=normalize, tol=1e-6)
    alone = classify(kernels=[RBF()], normalize=normalize, tol=1e-6)
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-2)


def test_no_kernel_varies():
    refused(lambda: classify(kernels=[FunctionKernel(ones), FunctionKernel(zeros)]), "kernels", "varies")


def test_constant_data():
    refused(lambda: classify(np.ones((30, 3))), "kernels", "varies")


def test_no_kernels():
    refused(lambda: classify(kernels=[]), "kernels=", "empty", "at least one")


def test_no_kernels_under_a_name():
    refused(lambda: classify(kernels={"view": []}), r"kernels\['view'\]", "empty")


@pytest.mark.parametrize("value", [3, None, object()])
def test_not_a_kernel(value):
    refused(lambda: classify(kernels=[value]), "kernels", "not a kernel", r"RBF\(\)")


def test_a_class_for_a_kernel():
    refused(lambda: classify(kernels=[RBF]), "RBF is a class", r"RBF\(\.\.\.\)")


def test_an_unknown_kernel_name():
    refused(lambda: classify(kernels=["rfb"]), "kernels", "'rfb'", "'rbf'")


def test_a_name_twice():
    refused(lambda: classify(kernels=[("a", RBF()), ("a", Linear())]), "kernels", "'a'", "twice")


def test_a_bad_kernel_parameter():
    refused(lambda: classify(kernels=[RBF(gamma=-1.0)]), "gamma=-1.0", "positive")


@pytest.mark.parametrize(
    ("columns", "patterns"),
    [
        (["z"], ["unknown columns", r"\['z'\]", r"\['a', 'b', 'c'\]"]),
        ([7], ["columns=", "out of range", "3 columns"]),
        ([], ["columns", "nothing"]),
        ([True, False], ["columns", "mask", "3"]),
    ],
    ids=["name", "position", "nothing", "mask"],
)
def test_unknown_columns(columns, patterns):
    refused(lambda: classify(FRAME, kernels=[RBF(columns=columns)]), *patterns)


def test_names_for_an_array():
    refused(lambda: classify(kernels=[RBF(columns=["a"])]), "columns=", "DataFrame")


def test_a_kernel_function_that_is_no_kernel():
    refused(lambda: classify(kernels=[FunctionKernel(lambda A, B: -(A @ B.T))]), "not positive semidefinite")


def test_a_kernel_function_of_the_wrong_shape():
    refused(lambda: classify(kernels=[FunctionKernel(lambda A, B: np.ones(3))]), "shape", r"\(30, 30\)")


# -- matrices -----------------------------------------------------------------------------------

UNEVEN = K + np.triu(np.ones_like(K), 1)


def test_matrices_that_are_not_symmetric():
    refused(lambda: classify(UNEVEN, kernels="precomputed"), "not symmetric", r"\(K \+ K.T\) / 2")


def test_a_precomputed_kernel_that_is_not_symmetric():
    refused(lambda: classify(INDEX, kernels=[Precomputed(UNEVEN)]), "not symmetric", r"\(K \+ K.T\) / 2")


def test_matrices_that_are_not_positive_semidefinite():
    bad = np.dstack([K, K - 2.0 * np.eye(30)])
    refused(lambda: classify(bad, kernels="precomputed"), "kernel 1", "positive semidefinite", "eigenvalues")


def test_a_precomputed_kernel_that_is_not_positive_semidefinite():
    kernels = {"good": Precomputed(K), "bad": Precomputed(-K)}
    refused(lambda: classify(INDEX, kernels=kernels), "'bad'", "positive semidefinite", "eigenvalues")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_matrices_with_missing_or_infinite_entries(value):
    refused(lambda: classify(spoiled(value, K), kernels="precomputed"), "kernel 0", "NaN or infinite")


@pytest.mark.parametrize("matrices", [K[:, :5], K2[:, :5], K2[:5]], ids=["flat", "wide", "tall"])
def test_matrices_that_are_not_square(matrices):
    refused(lambda: classify(matrices, Y[: len(matrices)], kernels="precomputed"), "square")


def test_a_kernel_matrix_that_is_not_square():
    refused(lambda: classify(INDEX, kernels=[Precomputed(K[:, :5])]), "square", "shape")


@pytest.mark.parametrize("X", [K[0], K2[..., None]], ids=["one axis", "four axes"])
def test_precomputed_input_with_wrong_axes(X):
    refused(lambda: classify(X, kernels="precomputed"), "precomputed", "n_kernels")


def test_no_matrices():
    refused(lambda: classify([], kernels="precomputed"), "precomputed|matrices")
    refused(lambda: classify(K2[:, :, :0], kernels="precomputed"), "no matrices", "at least one")


def test_matrices_of_different_shapes():
    refused(lambda: classify([K, K[:5, :5]], kernels="precomputed"), "different shapes")


def test_a_sparse_matrix_of_kernel_values():
    refused(lambda: classify(sparse.csr_matrix(K), kernels="precomputed"), "[Ss]parse", "dense|toarray")


@pytest.mark.parametrize("part", [np.s_[:5, :7], np.s_[:5, :, :1], np.s_[:5, :5]])
def test_test_kernels_of_the_wrong_shape(part):
    model = classify(K2, kernels="precomputed")
    refused(lambda: model.predict(K2[part]), r"\(n_test, 30, 2\)", "training columns")


def test_spherical_with_test_matrices():
    model = classify(K2, kernels="precomputed", normalize="spherical")
    refused(lambda: model.predict(K2[:5]), "normalize='spherical'", "normalize=None", "Precomputed")


def test_sample_numbers_outside_the_matrix():
    refused(lambda: classify(INDEX + 5, kernels=[Precomputed(K)]), "5 to 34", "0 to 29")
    model = classify(INDEX, kernels=[Precomputed(K)])
    refused(lambda: model.predict([[30]]), "30", "0 to 29")


def test_sample_numbers_that_are_none():
    refused(lambda: classify(INDEX + 0.5, kernels=[Precomputed(K)]), "integers")
    refused(lambda: classify(X, kernels=[Precomputed(K)]), "one column", r"np\.arange\(n\)\[:, None\]")


# -- parameters ---------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [classify, regress, detect])
@pytest.mark.parametrize("C", [-1.0, 0, 0.0, np.nan, np.inf, "1"])
def test_cost(estimator, C):
    refused(lambda: estimator(C=C), "^C=", "positive")


@pytest.mark.parametrize("estimator", [classify, regress])
def test_no_cost(estimator):
    refused(lambda: estimator(C=None), "^C=None", "positive")


@pytest.mark.parametrize("p", [0.5, 0, -1, np.nan, "2", None])
def test_p(p):
    refused(lambda: classify(regularizer=kw.LpNorm(p=p)), "p=", "at least 1|number")


@pytest.mark.parametrize("estimator", [classify, regress, detect])
@pytest.mark.parametrize("tol", [0, -1e-3, np.nan, "small", None])
def test_tol(estimator, tol):
    refused(lambda: estimator(tol=tol), "^tol=", "positive")


@pytest.mark.parametrize("estimator", [classify, regress, detect])
@pytest.mark.parametrize("max_iter", [0, -5, 2.5, "many", None])
def test_max_iter(estimator, max_iter):
    refused(lambda: estimator(max_iter=max_iter), "^max_iter=", "positive|integer")


@pytest.mark.parametrize("nu", [0, -0.1, 1.5, np.nan, "half"])
def test_nu(nu):
    refused(lambda: detect(nu=nu), "^nu=", r"\(0, 1\]")


def test_cost_too_small_for_one_class():
    refused(lambda: detect(C=0.01), "C=0.01", "too small", "1 / n")


def test_too_little_memory():
    message = refused(lambda: classify(memory_limit="1KB"), "memory_limit", "fewer", error=MemoryError)
    assert "0.00" not in message  # the two sizes, in units that show them


@pytest.mark.parametrize("limit", ["lots", "2 gigs", -5, 0, "", "nan", "inf", [1]])
def test_memory_limit(limit):
    refused(lambda: classify(memory_limit=limit), "^memory_limit=", "'2GB'")


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("loss", "'hinge'"),
        ("regularizer", "'lp'"),
        ("solver", "'alternating'"),
        ("gram", "'dense'"),
        ("normalize", "'variance'"),
        ("multiclass", "'ovr'"),
    ],
)
@pytest.mark.parametrize("value", ["bogus", 3])
def test_unknown_choices(name, known, value):
    refused(lambda: classify(**{name: value}), f"^{name}={value!r}", known)


def test_unknown_multioutput():
    refused(lambda: regress(multioutput="bogus"), "^multioutput='bogus'", "'shared'")


@pytest.mark.parametrize(
    ("estimator", "loss", "remedy"),
    [
        (classify, "one_class", "'hinge'"),
        (regress, "hinge", "'squared'"),
        (regress, Hinge(), "'squared'"),
        (detect, "hinge", "'one_class'"),
    ],
)
def test_a_loss_for_another_task(estimator, loss, remedy):
    refused(lambda: estimator(loss=loss), "^loss=", "not for MKL", remedy)


def test_a_class_for_a_part():
    refused(lambda: classify(loss=Hinge), "loss=", "object")


@pytest.mark.parametrize(
    "loss", [EpsInsensitive(eps=-0.1), EpsInsensitive(eps=np.nan), EpsInsensitive(eps="a")]
)
def test_eps(loss):
    refused(lambda: regress(loss=loss), "eps=")


@pytest.mark.parametrize("loss", [Huber(delta=-1.0), Huber(delta=0.0), Huber(delta=np.nan)])
def test_delta(loss):
    refused(lambda: regress(loss=loss), "delta=")


def test_a_machine_that_cannot_solve_the_loss():
    solver = Alternating(single="smo")
    refused(lambda: classify(loss="logistic", solver=solver), "Logistic has no `linear_dual`", "SMO", "auto")


NOT_FOR_P2 = [name for name, cls in MKL_SOLVERS.items() if not cls().can_handle(kw.LpNorm(p=2))]


@pytest.mark.parametrize("solver", NOT_FOR_P2)
def test_a_solver_that_is_not_for_the_regularizer(solver):
    """A solver for sparse weights never reaches the optimum of p = 2, whatever max_iter."""
    refused(lambda: classify(solver=solver, regularizer=kw.LpNorm(p=2)), "solver", solver, "LpNorm", "auto")


def test_centred_kernels_in_novelty_detection():
    """The mean of centred samples is 0, so f = 0 is optimal: nothing can be learned."""
    refused(lambda: detect(normalize="center"), "normalize='center'")


# -- weights ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernels", ["auto", "precomputed"])
def test_negative_sample_weights(kernels):
    data = K2 if kernels == "precomputed" else X
    refused(
        lambda: classify(data, kernels=kernels, sample_weight=-np.ones(30)), "[Nn]egative", "sample_weight"
    )


def test_sample_weights_that_are_all_zero():
    refused(lambda: classify(sample_weight=np.zeros(30)), "(?i)sample.weight", "zero")


def test_sample_weights_of_the_wrong_length():
    refused(lambda: classify(sample_weight=np.ones(3)), "sample_weight", r"\(3,\)", r"\(30,\)")


def test_sample_weights_with_missing_values():
    refused(lambda: classify(sample_weight=np.full(30, np.nan)), "sample_weight", "NaN")


def test_unknown_class_weight():
    for odd in ("balancd", 2.0, [1.0, 2.0]):
        said = re.escape(f"class_weight={odd!r}: expected 'balanced', a dict or None.")
        with pytest.raises(ValueError, match=f"^{said}$"):
            classify(class_weight=odd)


@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan, np.inf])
def test_class_weights_that_are_not_positive(value):
    refused(lambda: classify(class_weight={0: value, 1: 1.0}), "class_weight", "positive")


# -- order of calls -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "predict_log_proba"])
def test_an_unfitted_classifier(method):
    refused(lambda: getattr(kw.MKLClassifier(), method)(X), "not fitted yet", error=NotFittedError)


def test_other_unfitted_estimators():
    refused(lambda: kw.MKLRegressor().predict(X), "not fitted yet", error=NotFittedError)
    refused(lambda: kw.MKLOneClass().score_samples(X), "not fitted yet", error=NotFittedError)
    refused(lambda: kw.MKLClassifier().weights_frame(), "not fitted yet", error=NotFittedError)


# -- nothing half-fitted ------------------------------------------------------------------------

FAILURES = {
    "parameters": ({"C": -1.0}, {}),
    "regularizer": ({"regularizer": "bogus"}, {}),
    "memory": ({"memory_limit": "1KB"}, {}),
    "values": ({}, {"X": spoiled(np.nan)}),
    "classes": ({}, {"y": np.zeros(30)}),
    "kernels": ({"kernels": [FunctionKernel(lambda A, B: -(A @ B.T))]}, {}),
    "weights": ({}, {"sample_weight": -np.ones(30)}),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_fit_leaves_a_fresh_estimator_fresh(name):
    params, data = FAILURES[name]
    model = kw.MKLClassifier().set_params(**params)
    before = dict(vars(model))
    with pytest.raises((ValueError, MemoryError)):
        model.fit(**{"X": X, "y": Y, **data})
    assert vars(model) == before


@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_fit_leaves_the_model_before_it(name):
    params, data = FAILURES[name]
    model = kw.MKLClassifier().fit(FRAME, Y)
    expected = model.decision_function(FRAME)
    model.set_params(**params)
    before = dict(vars(model))
    with pytest.raises((ValueError, MemoryError)):
        model.fit(**{"X": X, "y": Y, **data})
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is value for key, value in before.items())
    np.testing.assert_array_equal(model.decision_function(FRAME), expected)


def test_an_interrupted_kernel_leaves_nothing_behind():
    """Ctrl-C before the first machine: no model, and the estimator as it was."""

    def interrupted(A, B):
        raise KeyboardInterrupt

    model = kw.MKLClassifier([FunctionKernel(interrupted)])
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert vars(model) == before


# -- where and what to do -----------------------------------------------------------------------

ESTIMATORS = {
    "MKLClassifier": lambda **options: kw.MKLClassifier(**options),
    "MKLRegressor": lambda **options: kw.MKLRegressor(**options),
    "MKLOneClass": lambda **options: kw.MKLOneClass(**options),
    "MKLClassifierCV": lambda **options: kw.MKLClassifierCV(Cs=[1.0], cv=2, **options),
    "MKLRegressorCV": lambda **options: kw.MKLRegressorCV(Cs=[1.0], cv=2, **options),
    "GMKLClassifier": lambda **options: kw.GMKLClassifier(**options),
    "GMKLRegressor": lambda **options: kw.GMKLRegressor(**options),
    "EmpiricalBayesClassifier": lambda **options: kw.EmpiricalBayesClassifier(**options),
    "EmpiricalBayesRegressor": lambda **options: kw.EmpiricalBayesRegressor(**options),
    "GroupOMPClassifier": lambda **options: kw.GroupOMPClassifier(**options),
    "GroupOMPRegressor": lambda **options: kw.GroupOMPRegressor(**options),
    "GroupOMPClassifierCV": lambda **options: kw.GroupOMPClassifierCV(alphas=[0.1], cv=2, **options),
    "GroupOMPRegressorCV": lambda **options: kw.GroupOMPRegressorCV(alphas=[0.1], cv=2, **options),
}
LEARNERS = [name for name in ESTIMATORS if name != "MKLOneClass"]
REGRESSORS = [name for name in ESTIMATORS if "Regressor" in name]
CLASSIFIERS = [name for name in ESTIMATORS if "Classifier" in name]
WITH_KERNELS = [name for name in ESTIMATORS if "GMKL" not in name]

GAPS = X.copy()
GAPS[[0, 3], 1] = np.nan
GAPS[7, 2] = np.nan
INFINITE = X.copy()
INFINITE[2, 2] = np.inf
DATED = FRAME.assign(when=pd.date_range("2020-01-31", periods=30))
FIELDS = np.zeros(30, dtype=[("event", bool), ("time", float)])


def fitted(name, X=X, y=None, **options):
    targets = T if "Regressor" in name else Y
    return ESTIMATORS[name](**options).fit(X, targets if y is None else y)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_gaps_are_located(name):
    words = ["^Input X contains NaN", r"1 \(2 of 30 rows\)", r"2 \(1 of 30 rows\)", "SimpleImputer"]
    refused(lambda: fitted(name, GAPS), *words)
    model = fitted(name, FRAME)
    frame = pd.DataFrame(GAPS, columns=["a", "b", "c"])
    refused(lambda: model.predict(frame), "^Input X contains NaN", r"'b' \(2 of 30 rows\) and 'c' \(1")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_infinite_values_are_located(name):
    words = "^Input X contains infinity or a value too large for dtype"
    refused(lambda: fitted(name, INFINITE), words, r"column 2 \(1 of 30 rows\)", "clip|leave out")


def test_columns_at_fault_are_few_in_a_message():
    wide = np.full((30, 50), np.nan)
    message = refused(lambda: classify(wide), "columns 0 .* 4 .* and 45 more")
    assert len(message) < 400


def test_gaps_of_a_sparse_matrix_are_located():
    refused(lambda: classify(sparse.csr_matrix(GAPS)), "NaN", r"1 \(2 of 30 rows\)", "SimpleImputer")


def test_gaps_of_a_kernel_beside_text_are_located():
    """Only the columns that kernels read are looked at, and named as in the user's table."""
    kernels = {"body": RBF(columns=["b", "c"]), "note": Spectrum(k=1, columns="note")}
    table = TEXT.assign(a=np.nan, c=GAPS[:, 1])
    message = refused(
        lambda: classify(table, kernels=kernels), "Input X contains NaN", r"'c' \(2 of 30 rows\)"
    )
    assert "'a'" not in message
    values = TEXT.assign(c=GAPS[:, 1]).to_numpy()
    kernels = {"body": RBF(columns=[1, 2]), "note": Spectrum(k=1, columns=[3])}
    refused(lambda: classify(values, kernels=kernels), r"column 2 \(2 of 30 rows\)")


def test_gaps_of_nullable_numbers_are_located():
    table = FRAME.assign(d=pd.array([None] + [1] * 29, dtype="Int64"))
    refused(lambda: classify(table), "Input X contains NaN", r"'d' \(1 of 30 rows\)")


def test_gaps_of_a_table_read_in_pieces_are_located(tmp_path):
    np.save(tmp_path / "X.npy", GAPS)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = kw.MKLClassifier([RBF()], approximation="nystroem", rank=5)
    refused(lambda: model.fit(mapped, Y), "Input X contains NaN", r"1 \(2 of 30 rows read\)", "SimpleImputer")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_dates_are_named(name):
    words = ["'when' holds dates", "2020-01-31", "turn dates and times into numbers"]
    options = {} if "GMKL" in name else {"kernels": [RBF()]}
    refused(lambda: fitted(name, DATED, **options), *words)
    model = fitted(name, FRAME, **options)
    refused(
        lambda: model.predict(DATED[["a", "b", "when"]].set_axis(["a", "b", "c"], axis=1)), "'c' holds dates"
    )


@pytest.mark.parametrize("unit", ["datetime64[D]", "timedelta64[h]"])
def test_an_array_of_dates(unit):
    """As numbers they would be counts of an arbitrary unit."""
    refused(lambda: classify(np.arange(90).reshape(30, 3).astype(unit)), "column 0 holds dates or times")


def test_the_default_kernels_name_the_dates_that_they_leave_out():
    with pytest.warns(UserWarning, match="leaves out 1 of 4: 'when'.*days since a start"):
        model = classify(DATED)
    np.testing.assert_array_equal(model.weights_, classify(FRAME).weights_)


def test_dates_that_no_kernel_reads_may_stay():
    model = classify(DATED, kernels=[RBF(columns=["a", "b"])])
    expected = classify(FRAME, kernels=[RBF(columns=["a", "b"])])
    np.testing.assert_array_equal(model.decision_function(DATED), expected.decision_function(FRAME))


@pytest.mark.parametrize("name", ["MKLClassifier", "GMKLClassifier", "GroupOMPClassifier"])
def test_text_is_named(name):
    options = {} if "GMKL" in name else {"kernels": [RBF()]}
    refused(lambda: fitted(name, TEXT, **options), "'note' holds text, such as 'red'", "OneHotEncoder")


MISSING = {
    "None": np.array([None] + ["a", "b"] * 14 + ["a"], dtype=object),
    "NaN among text": np.array([np.nan] + ["a", "b"] * 14 + ["a"], dtype=object),
    "NaN": np.r_[np.nan, Y[1:]],
    "pandas string": pd.Series([None] + ["a", "b"] * 14 + ["a"], dtype="string"),
    "pandas category": pd.Series([None] + ["a", "b"] * 14 + ["a"], dtype="category"),
    "pandas integer": pd.Series([None] + [0, 1] * 14 + [1], dtype="Int64"),
    "masked": np.ma.masked_array(Y, mask=[True] + [False] * 29),
}


@pytest.mark.parametrize("labels", MISSING)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_missing_labels_are_located(name, labels):
    words = ["^Input y contains NaN in 1 of 30 targets", "row 0", "leave those samples out"]
    refused(lambda: fitted(name, y=MISSING[labels]), *words)


@pytest.mark.parametrize("value", [None, np.nan, pd.NA])
@pytest.mark.parametrize("name", REGRESSORS)
def test_missing_targets_are_located(name, value):
    y = np.array([1.0, value, *T[2:]], dtype=object)
    refused(
        lambda: fitted(name, y=y), "^Input y contains NaN in 1 of 30 targets", "row 1", "leave those samples"
    )


@pytest.mark.parametrize("name", REGRESSORS)
def test_infinite_targets_are_located(name):
    refused(lambda: fitted(name, y=spoiled(np.inf, T)), "^Input y contains infinity", "row 0")


@pytest.mark.parametrize("name", LEARNERS)
def test_a_structured_target(name):
    refused(lambda: fitted(name, y=FIELDS), "^y is a structured array", "'event' and 'time'", r"y\['time'\]")


def test_a_record_array_as_target():
    refused(lambda: classify(y=FIELDS.view(np.recarray)), "^y is a structured array")


STACK = np.stack([K, RBF(gamma=0.3)(X), RBF(gamma=3.0)(X)])


@pytest.mark.parametrize("name", WITH_KERNELS)
def test_a_stack_with_the_kernels_first(name):
    words = [r"\(3, 30, 30\)", r"\(n, n, n_kernels\)", r"moveaxis\(X, 0, -1\)"]
    refused(lambda: fitted(name, STACK, kernels="precomputed"), *words)


def test_test_kernels_with_the_kernels_first():
    """What the message proposes has the shape that is expected."""
    model = classify(np.moveaxis(STACK, 0, -1), kernels="precomputed")
    rows, columns = STACK[:, :5], STACK[:, :, :5]
    refused(lambda: model.predict(rows), r"\(n_test, 30, 3\)", r"moveaxis\(X, 0, -1\)")
    refused(lambda: model.predict(columns), r"\(n_test, 30, 3\)", r"pass X\.T")
    expected = model.predict(np.moveaxis(rows, 0, -1))
    np.testing.assert_array_equal(model.predict(columns.T), expected)


# -- what a stranger tries ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(
    ("data", "patterns"),
    [
        ([[1.0, 2.0, 3.0], [1.0, 2.0]] * 15, ["^X has rows of different lengths", "2 and 3"]),
        (None, ["^X=None", "samples"]),
        ("data.csv", ["^X='data.csv'", "read_csv"]),
        ({"a": X, "b": X[:20]}, ["^'a' has 30 rows and 'b' has 20", "IDs", "DataFrame"]),
        (np.ma.masked_greater(X, 1.0), ["^X is a masked array", "column", "SimpleImputer"]),
        (FIELDS, ["^X is a structured array", "'event'", "DataFrame"]),
        (FRAME["a"], ["2-dimensional container|2D array"]),
        (X + 1j, ["^Complex data not supported", "X", "real"]),
        (np.ones((30, 3, 3)), ["dim 3", "precomputed", "reshape"]),
        (FRAME.set_axis(["a", "a", "b"], axis=1), ["X has several columns named 'a'"]),
        (X[:1], ["1 sample", "2"]),
    ],
    ids=[
        "ragged",
        "None",
        "path",
        "dict",
        "masked",
        "fields",
        "series",
        "complex",
        "cube",
        "names",
        "one row",
    ],
)
def test_samples_that_are_no_table(name, data, patterns):
    targets = (T if "Regressor" in name else Y)[: 1 if getattr(data, "shape", ()) == (1, 3) else None]
    refused(lambda: fitted(name, data, targets), *patterns)


def test_a_mask_that_hides_nothing_is_harmless():
    expected = classify().decision_function(X)
    np.testing.assert_array_equal(classify(np.ma.masked_array(X)).decision_function(X), expected)


def test_masked_kernel_values():
    refused(lambda: classify(np.ma.masked_greater(K2, 5.0), kernels="precomputed"), "masked", "fill")


@pytest.mark.parametrize("name", LEARNERS)
def test_samples_and_targets_of_different_length(name):
    refused(lambda: fitted(name, y=(T if "Regressor" in name else Y)[:-1]), "X and y", r"\[30, 29\]")


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("dtype", [str, object])
def test_text_for_a_regressor(name, dtype):
    y = np.array(["high", "low"] * 15, dtype=dtype)
    refused(lambda: fitted(name, y=y), "^y holds 'high'", "needs numbers", "Classifier")


@pytest.mark.parametrize("name", REGRESSORS)
def test_dates_for_a_regressor(name):
    y = pd.Series(pd.date_range("2020-01-31", periods=30))
    refused(lambda: fitted(name, y=y), "^y holds dates", "2020-01-31", "numbers")


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_of_two_types(name):
    refused(
        lambda: fitted(name, y=np.array(["a", 1] * 15, dtype=object)), "^y mixes", "'a' and 1", "one type"
    )


def test_ragged_and_complex_targets():
    refused(lambda: regress(y=[[1.0], [2.0, 3.0]] * 15), "^y has rows of different lengths")
    refused(lambda: regress(y=T + 1j), "^Complex data not supported", r"\by\b")


@pytest.mark.parametrize(
    ("kernels", "patterns"),
    [
        ("RBF", ["'RBF' is not a kernel", "Did you mean 'rbf'"]),
        ("poly", ["Did you mean 'polynomial'"]),
        (RBF, ["RBF is a class"]),
        ({"a": 3}, [r"kernels\['a'\]", "3 is not a kernel"]),
        ({RBF()}, ["not a kernel", "list"]),
        (np.ones((30, 30, 3)), ["Gram matrix but several", "kernels='precomputed'"]),
        (np.array([RBF(), Linear()], dtype=object), ["list"]),
    ],
    ids=["capitals", "short", "class", "dict", "set", "stack", "array"],
)
def test_kernels_that_are_none(kernels, patterns):
    refused(lambda: classify(kernels=kernels), "^kernels", *patterns)


def test_a_name_close_to_a_column():
    table = FRAME.set_axis(["temperature", "pressure", "wind speed"], axis=1)
    for given, meant in [
        ("temprature", "temperature"),
        ("Pressure", "pressure"),
        ("wind_speed", "wind speed"),
    ]:
        refused(
            lambda given=given: classify(table, kernels=[RBF(columns=[given])]), f"Did you mean '{meant}'"
        )
    message = refused(lambda: classify(table, kernels=[RBF(columns=["humidity"])]), "unknown columns")
    assert "Did you mean" not in message


def test_names_and_positions_mixed():
    refused(lambda: classify(FRAME, kernels=[RBF(columns=["a", 1])]), "columns=", "mixture")


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(
    ("parameter", "value"), [("n_jobs", "two"), ("n_jobs", 0), ("verbose", "yes"), ("fit_intercept", "no")]
)
def test_settings(name, parameter, value):
    if parameter in ESTIMATORS[name]().get_params():
        refused(lambda: fitted(name, **{parameter: value}), f"^{parameter}={value!r} must be")


@pytest.mark.parametrize("grid", [-1, 0, [], [-1.0], ["a"], "many", [np.inf]], ids=str)
def test_grids(grid):
    refused(lambda: kw.MKLClassifierCV(Cs=grid).fit(X, Y), "^Cs=", "positive numbers, or how many")
    refused(
        lambda: kw.GroupOMPRegressorCV(alphas=grid).fit(X, T), "^alphas=", "positive numbers, or how many"
    )


def test_no_regularizers():
    refused(lambda: kw.MKLClassifierCV(regularizers=[]).fit(X, Y), "^regularizers=", "at least one")


def test_close_names_and_classes_of_parts():
    refused(lambda: classify(approximation="nystrom"), "is not an approximation", "Did you mean 'nystroem'")
    refused(lambda: classify(solver="Newton"), "or an MKLSolver", "Did you mean 'newton'")
    refused(lambda: classify(regularizer=kw.LpNorm), "regularizer=LpNorm is a class", r"LpNorm\(\.\.\.\)")
