"""Cross-validated estimators: a grid search that evaluates each kernel once."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.gram import FoldSource
from kernelweave.kernels import RBF, Constant, FunctionKernel, Linear, Precomputed

KERNELS = [Linear(), RBF(gamma=0.3), RBF(gamma=3.0)]
REGULARIZERS = [kw.LpNorm(p=1), kw.LpNorm(p=2), kw.ElasticNet(), "uniform"]
EXOTIC = [kw.BlockNorm(q=3.0), kw.Mahalanobis(), kw.SMKL(), kw.LpNorm(p=2, form="penalty")]
CS = [0.1, 1.0, 10.0]
TOL = 1e-6
FOLDS = 3
NORMALIZATIONS = ["variance", "spherical", "trace", "center", None]

# of grids of three values the best is often at an end
pytestmark = pytest.mark.filterwarnings("ignore:Scores still rise")


# -- the same as a grid search --------------------------------------------------------------------


def grid_search(search, X, y, regularizers, Cs, cv=FOLDS, scoring=None, **params):
    """scikit-learn's search over the same grid, in the same order."""
    Model = kw.MKLClassifier if isinstance(search, kw.MKLClassifierCV) else kw.MKLRegressor
    shared = Model().get_params(deep=False).keys() & search.get_params(deep=False).keys()
    estimator = Model(**{name: getattr(search, name) for name in shared - {"n_jobs"}})
    grid = [{"regularizer": [regularizer], "C": Cs} for regularizer in regularizers]
    return GridSearchCV(estimator, grid, cv=cv, scoring=scoring).fit(X, y, **params)


def split_scores(grid):
    count = sum(name.startswith("split") for name in grid.cv_results_)
    return np.array([grid.cv_results_[f"split{k}_test_score"] for k in range(count)])


def assert_same_search(search, grid, atol):
    """Scores of every fold and point, and with them the choice."""
    scores = search.cv_results_["split_test_scores"]
    np.testing.assert_allclose(scores, split_scores(grid), atol=atol)
    same = [(point["C"], str(point["regularizer"])) for point in search.cv_results_["params"]]
    assert same == [(point["C"], str(point["regularizer"])) for point in grid.cv_results_["params"]]
    # a sample flipped by rounding may change the winner among equals only
    means = grid.cv_results_["mean_test_score"]
    assert means[search.best_index_] >= means[grid.best_index_] - atol
    if np.sort(means)[-2] < means.max() - 2.0 * atol:
        assert search.best_index_ == grid.best_index_
        assert search.best_params_["C"] == grid.best_params_["C"]
        assert str(search.best_params_["regularizer"]) == str(grid.best_params_["regularizer"])


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("form", "normalize"),
    [*(("features", name) for name in NORMALIZATIONS), ("index", "variance"), ("index", "spherical")],
    ids=str,
)
def test_classifier_equals_a_grid_search(binary, form, normalize):
    X, kernels = binary.X, KERNELS
    if form == "index":
        Ks = [linear_kernel(X), rbf_kernel(X, gamma=0.3), rbf_kernel(X, gamma=3.0)]
        X, kernels = np.arange(60)[:, None], [Precomputed(K) for K in Ks]
    options = {"normalize": normalize, "cv": FOLDS, "tol": TOL}
    search = kw.MKLClassifierCV(kernels, regularizers=REGULARIZERS, Cs=CS, **options)
    search.fit(X, binary.y)
    grid = grid_search(search, X, binary.y, REGULARIZERS, CS)
    # 20 samples in a fold: one may be flipped
    assert_same_search(search, grid, atol=1.01 / 20)
    assert np.isclose(search.cv_results_["split_test_scores"], split_scores(grid)).mean() > 0.9


@pytest.mark.sampled(6)
@pytest.mark.parametrize("normalize", NORMALIZATIONS, ids=str)
def test_regressor_equals_a_grid_search(regression, normalize):
    options = {"normalize": normalize, "cv": FOLDS, "tol": TOL}
    search = kw.MKLRegressorCV(KERNELS, regularizers=REGULARIZERS, Cs=CS, **options)
    search.fit(regression.X, regression.y)
    grid = grid_search(search, regression.X, regression.y, REGULARIZERS, CS)
    assert_same_search(search, grid, atol=2e-3)
    np.testing.assert_allclose(
        search.predict(regression.X_new), grid.best_estimator_.predict(regression.X_new), atol=1e-9
    )


@pytest.mark.wide
def test_other_regularizers_equal_a_grid_search(regression):
    search = kw.MKLRegressorCV(KERNELS, regularizers=EXOTIC, Cs=CS, cv=FOLDS, tol=TOL, max_iter=1000)
    search.fit(regression.X, regression.y)
    assert_same_search(search, grid_search(search, regression.X, regression.y, EXOTIC, CS), atol=2e-3)


@pytest.mark.wide
@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_losses_equal_a_grid_search(binary, loss):
    search = kw.MKLClassifierCV(KERNELS, loss=loss, regularizers=REGULARIZERS, Cs=CS, cv=FOLDS, tol=TOL)
    search.fit(binary.X, binary.y)
    assert_same_search(search, grid_search(search, binary.X, binary.y, REGULARIZERS, CS), atol=1.01 / 20)


@pytest.mark.wide
@pytest.mark.sampled(4)
@pytest.mark.parametrize("scheme", ["ovr", "ovo", "shared"])
def test_multiclass_equals_a_grid_search(four, scheme):
    regularizers = [kw.LpNorm(p=1), kw.LpNorm(p=2)]
    options = {"multiclass": scheme, "class_weight": {10: 2.0}, "cv": FOLDS, "tol": TOL}
    search = kw.MKLClassifierCV(KERNELS, regularizers=regularizers, Cs=CS, **options).fit(four.X, four.y)
    grid = grid_search(search, four.X, four.y, regularizers, CS)
    assert_same_search(search, grid, atol=1.01 / 24)
    np.testing.assert_array_equal(search.classes_, [10, 11, 12, 13])
    assert search.decision_function(four.X_new).shape == (48, 4)
    assert search.score(four.X_new, four.y_new) > 0.6


@pytest.mark.parametrize("multioutput", ["shared", "independent"])
def test_several_outputs_equal_a_grid_search(regression, multioutput):
    Y = np.column_stack([regression.y, np.sin(regression.y)])
    regularizers = [kw.LpNorm(p=1), "uniform"]
    options = {"multioutput": multioutput, "cv": FOLDS, "tol": TOL}
    search = kw.MKLRegressorCV(KERNELS, regularizers=regularizers, Cs=CS, **options)
    search.fit(regression.X, Y)
    assert_same_search(search, grid_search(search, regression.X, Y, regularizers, CS), atol=2e-3)
    assert search.predict(regression.X_new).shape == (30, 2)


def balanced(estimator, X, y):
    """A scorer written by hand."""
    return balanced_accuracy_score(y, estimator.predict(X))


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "scoring",
    ["roc_auc", "balanced_accuracy", "f1", make_scorer(balanced_accuracy_score), balanced],
    ids=["roc_auc", "balanced_accuracy", "f1", "scorer", "function"],
)
def test_scoring_equals_a_grid_search(binary, scoring):
    regularizers = [kw.LpNorm(p=1), kw.LpNorm(p=2)]
    options = {"scoring": scoring, "cv": FOLDS, "tol": TOL}
    search = kw.MKLClassifierCV(KERNELS, regularizers=regularizers, Cs=CS, **options)
    search.fit(binary.X, binary.y)
    grid = grid_search(search, binary.X, binary.y, regularizers, CS, scoring=scoring)
    assert_same_search(search, grid, atol=0.15)
    assert (np.abs(search.cv_results_["split_test_scores"] - split_scores(grid)) < 1e-9).mean() > 0.9


@pytest.mark.parametrize("scoring", ["neg_mean_absolute_error", "neg_root_mean_squared_error"])
def test_scoring_of_regression_equals_a_grid_search(regression, scoring):
    options = {"scoring": scoring, "cv": FOLDS, "tol": TOL}
    search = kw.MKLRegressorCV(KERNELS, regularizers=[kw.LpNorm()], Cs=CS, **options)
    search.fit(regression.X, regression.y)
    grid = grid_search(search, regression.X, regression.y, [kw.LpNorm()], CS, scoring=scoring)
    assert_same_search(search, grid, atol=2e-3)
    assert search.best_score_ < 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "cv",
    [
        3,
        KFold(4, shuffle=True, random_state=0),
        StratifiedKFold(3),
        ShuffleSplit(2, test_size=0.3, random_state=0),
        [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))],
    ],
    ids=["number", "k-fold", "stratified", "shuffle split", "list"],
)
def test_splitters_equal_a_grid_search(binary, cv):
    search = kw.MKLClassifierCV(KERNELS, regularizers=[kw.LpNorm()], Cs=CS, cv=cv, tol=TOL)
    search.fit(binary.X, binary.y)
    grid = grid_search(search, binary.X, binary.y, [kw.LpNorm()], CS, cv=cv)
    assert search.cv_results_["split_test_scores"].shape == split_scores(grid).shape
    assert_same_search(search, grid, atol=0.08)


def test_folds_given_by_a_generator(binary):
    folds = list(KFold(3).split(binary.X))
    given = kw.MKLClassifierCV(KERNELS, Cs=CS, cv=(fold for fold in folds)).fit(binary.X, binary.y)
    listed = kw.MKLClassifierCV(KERNELS, Cs=CS, cv=folds).fit(binary.X, binary.y)
    np.testing.assert_array_equal(
        given.cv_results_["split_test_scores"], listed.cv_results_["split_test_scores"]
    )


# -- each matrix once -----------------------------------------------------------------------------


def test_kernels_are_evaluated_once_for_the_search_and_once_for_the_fit(binary):
    calls = []

    def counted(X, Z):
        calls.append((X.shape, Z.shape))
        return rbf_kernel(X, Z, gamma=0.3)

    kernels = [FunctionKernel(counted), FunctionKernel(linear_kernel)]
    search = kw.MKLClassifierCV(kernels, regularizers=["lp", "uniform"], Cs=CS).fit(binary.X, binary.y)
    assert search.cv_results_["split_test_scores"].shape == (5, 6)
    shape = binary.X.shape
    assert calls == [(shape, shape)] * len(calls)
    assert len(calls) <= 2  # 5 folds and 6 points would be 30


@pytest.mark.wide
@pytest.mark.sampled(5)
@pytest.mark.parametrize("form", ["array", "stack", "list"])
@pytest.mark.parametrize("normalize", ["variance", "trace", "dimension", "center", None], ids=str)
def test_precomputed_matrices(binary, grams, form, normalize):
    K, K_new = grams
    matrices = [K[:, :, m].copy() for m in range(2)]
    X = {"array": K, "stack": kw.KernelStack(matrices), "list": matrices}[form]
    options = {"regularizers": [kw.LpNorm(p=1), kw.LpNorm()], "Cs": CS, "normalize": normalize, "tol": TOL}
    search = kw.MKLClassifierCV("precomputed", **options).fit(X, binary.y)
    features = kw.MKLClassifierCV([Linear(), RBF(gamma=0.3)], **options).fit(binary.X, binary.y)
    np.testing.assert_allclose(
        search.cv_results_["split_test_scores"], features.cv_results_["split_test_scores"], atol=1.01 / 12
    )
    assert search.best_params_["C"] == features.best_params_["C"]
    assert search.predict(K_new).shape == (30,)


def test_precomputed_matrices_inside_cross_validation(binary, grams):
    search = kw.MKLClassifierCV("precomputed", regularizers=[kw.LpNorm()], Cs=CS, cv=3)
    outer = KFold(3, shuffle=True, random_state=0)
    features = kw.MKLClassifierCV([Linear(), RBF(gamma=0.3)], regularizers=[kw.LpNorm()], Cs=CS, cv=3)
    np.testing.assert_allclose(
        cross_val_score(search, grams[0], binary.y, cv=outer),
        cross_val_score(features, binary.X, binary.y, cv=outer),
    )


def test_in_a_pipeline_and_on_a_data_frame(binary):
    search = kw.MKLClassifierCV({"a": Linear(columns=["a", "b"]), "b": RBF(columns=["c"])}, Cs=CS)
    frame = pd.DataFrame(binary.X, columns=list("abcd"))
    search.fit(frame, binary.y)
    assert search.kernel_names_ == ["a", "b"]
    assert list(search.feature_names_in_) == list("abcd")
    assert search.n_features_in_ == 4
    pipeline = make_pipeline(StandardScaler(), kw.MKLClassifierCV(KERNELS, Cs=CS)).fit(binary.X, binary.y)
    assert pipeline.predict(binary.X_new).shape == (30,)


@pytest.mark.parametrize("Search", [kw.MKLClassifierCV, kw.MKLRegressorCV])
def test_two_jobs_equal_one(binary, regression, Search):
    data = binary if Search is kw.MKLClassifierCV else regression
    one, two = (
        Search(KERNELS, regularizers=REGULARIZERS, Cs=CS, n_jobs=n_jobs).fit(data.X, data.y)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.cv_results_["split_test_scores"], two.cv_results_["split_test_scores"])
    np.testing.assert_array_equal(one.weights_, two.weights_)


# -- sample weights -------------------------------------------------------------------------------


def remapped(folds, kept):
    """The same folds on the samples kept."""
    where = np.cumsum(kept) - 1
    return [(where[a[kept[a]]], where[b[kept[b]]]) for a, b in folds]


@pytest.mark.parametrize("Search", [kw.MKLClassifierCV, kw.MKLRegressorCV])
def test_weight_zero_equals_a_dropped_row(binary, regression, rng, Search):
    data = binary if Search is kw.MKLClassifierCV else regression
    folds = list(KFold(4, shuffle=True, random_state=0).split(data.X))
    weight = rng.uniform(0.5, 2.0, size=60)
    weight[::4] = 0.0
    kept = weight > 0
    options = {"regularizers": [kw.LpNorm(p=1), kw.LpNorm()], "Cs": CS}
    weighted = Search(KERNELS, cv=folds, **options).fit(data.X, data.y, sample_weight=weight)
    dropped = Search(KERNELS, cv=remapped(folds, kept), **options)
    dropped.fit(data.X[kept], data.y[kept], sample_weight=weight[kept])
    np.testing.assert_allclose(
        weighted.cv_results_["split_test_scores"], dropped.cv_results_["split_test_scores"], rtol=1e-9
    )
    assert weighted.best_index_ == dropped.best_index_
    np.testing.assert_allclose(weighted.weights_, dropped.weights_, rtol=1e-9)


@pytest.mark.parametrize("normalize", ["variance", "center", None], ids=str)
def test_sample_weights_reach_fits_and_scores(regression, rng, normalize):
    """Scores are those of weighted fits on the training rows, weighted on the test rows."""
    weight = rng.uniform(0.2, 3.0, size=60)
    folds = list(KFold(3).split(regression.X))
    X, y = regression.X, regression.y
    search = kw.MKLRegressorCV(KERNELS, Cs=CS, cv=folds, normalize=normalize, tol=TOL)
    search.fit(X, y, sample_weight=weight)
    expected = [
        [
            kw.MKLRegressor(KERNELS, C=C, normalize=normalize, tol=TOL)
            .fit(X[a], y[a], sample_weight=weight[a])
            .score(X[b], y[b], sample_weight=weight[b])
            for C in CS
        ]
        for a, b in folds
    ]
    np.testing.assert_allclose(search.cv_results_["split_test_scores"], expected, atol=2e-3)


# -- attributes -----------------------------------------------------------------------------------


def test_results(binary):
    search = kw.MKLClassifierCV(KERNELS, regularizers=REGULARIZERS, Cs=[10.0, 0.1], cv=3)
    search.fit(binary.X, binary.y)
    results = search.cv_results_
    assert results["split_test_scores"].shape == (3, 8)
    np.testing.assert_array_equal(results["mean_test_score"], results["split_test_scores"].mean(axis=0))
    np.testing.assert_array_equal(results["std_test_score"], results["split_test_scores"].std(axis=0))
    # a chain of rising costs a regulariser
    assert [point["C"] for point in results["params"]] == [0.1, 10.0] * 4
    assert search.best_score_ == results["mean_test_score"].max()
    assert search.best_index_ == results["mean_test_score"].argmax()
    assert search.best_params_ == results["params"][search.best_index_]
    best = search.best_estimator_
    assert isinstance(best, kw.MKLClassifier)
    assert best.C == search.best_params_["C"]
    assert search.dual_gap_ == best.dual_gap_ <= best.tol
    assert search.n_iter_ == best.n_iter_
    np.testing.assert_array_equal(search.weights_, best.weights_)
    np.testing.assert_array_equal(search.predict(binary.X_new), best.predict(binary.X_new))
    np.testing.assert_array_equal(
        search.decision_function(binary.X_new), best.decision_function(binary.X_new)
    )


def test_the_best_estimator_is_a_plain_fit(binary):
    search = kw.MKLClassifierCV(KERNELS, regularizers=REGULARIZERS, Cs=CS).fit(binary.X, binary.y)
    plain = kw.MKLClassifier(KERNELS, **search.best_params_).fit(binary.X, binary.y)
    np.testing.assert_array_equal(search.weights_, plain.weights_)
    np.testing.assert_array_equal(search.predict_proba(binary.X_new), plain.predict_proba(binary.X_new))


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_probabilities(four, loss):
    search = kw.MKLClassifierCV(KERNELS, loss=loss, Cs=[1.0], cv=3).fit(four.X, four.y)
    proba = search.predict_proba(four.X_new)
    assert proba.shape == (48, 4)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


@pytest.mark.parametrize("regularizers", ["lp", "uniform", "elasticnet", kw.LpNorm(p=1), ["lp", "uniform"]])
def test_one_regularizer_or_several_or_their_names(binary, regularizers):
    search = kw.MKLClassifierCV(KERNELS, regularizers=regularizers, Cs=[0.01, 100.0]).fit(binary.X, binary.y)
    count = len(regularizers) if isinstance(regularizers, list) else 1
    assert search.cv_results_["mean_test_score"].shape == (2 * count,)
    np.testing.assert_allclose([point["C"] for point in search.cv_results_["params"]], [0.01, 100.0] * count)


def test_dead_kernels_get_weight_zero(binary):
    kernels = [KERNELS[0], Constant(), *KERNELS[1:]]
    options = {"regularizers": [kw.LpNorm(p=1), kw.LpNorm(costs=[1.0, 9.0, 2.0, 3.0])], "Cs": CS}
    with pytest.warns(UserWarning, match="without variance"):
        search = kw.MKLClassifierCV(kernels, **options).fit(binary.X, binary.y)
    options["regularizers"][1] = kw.LpNorm(costs=[1.0, 2.0, 3.0])
    alive = kw.MKLClassifierCV(KERNELS, **options).fit(binary.X, binary.y)
    assert search.weights_[1] == 0.0
    np.testing.assert_allclose(
        search.cv_results_["split_test_scores"], alive.cv_results_["split_test_scores"]
    )


def test_clone_and_pickle(binary):
    search = kw.MKLClassifierCV(KERNELS, regularizers=REGULARIZERS, Cs=CS, cv=3)
    copy = clone(search)
    assert str(copy) == str(search)
    assert not hasattr(clone(search.fit(binary.X, binary.y)), "best_estimator_")
    loaded = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(loaded.predict(binary.X_new), search.predict(binary.X_new))
    np.testing.assert_array_equal(loaded.weights_, search.weights_)
    assert loaded.best_params_["C"] == search.best_params_["C"]


def test_parameters_are_left_as_they_are(binary):
    regularizers, Cs = [kw.LpNorm(p=1), kw.LpNorm()], [1.0, 0.1]
    search = kw.MKLClassifierCV(KERNELS, regularizers=regularizers, Cs=Cs).fit(binary.X, binary.y)
    assert search.regularizers is regularizers
    assert search.Cs is Cs
    assert Cs == [1.0, 0.1]
    # what the search holds is its own
    regularizers[0].p = 7.0
    assert search.cv_results_["params"][0]["regularizer"].p == 1


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"regularizers": []}, "regularizers=.* at least one"),
        ({"Cs": []}, r"Cs=\[\] must be positive numbers"),
        ({"Cs": [1.0, -1.0]}, r"Cs=\[1.0, -1.0\] must be positive numbers"),
        ({"Cs": [0.0]}, r"Cs=\[0.0\] must be positive numbers"),
        ({"regularizers": ["nothing"]}, "nothing"),
        ({"regularizers": [kw.LpNorm(p=0.5)]}, "p=0.5 must be at least 1"),
        ({"scoring": "nothing"}, "nothing"),
        ({"multiclass": "nothing"}, "multiclass='nothing'"),
        ({"loss": "nothing"}, "nothing"),
        ({"tol": -1.0}, "tol=-1.0 must be a positive number"),
        ({"cv": 1}, "n_splits"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_parameters_are_named_and_nothing_is_left(binary, params, message):
    search = kw.MKLClassifierCV(KERNELS, Cs=params.pop("Cs", CS), **params)
    before = dict(vars(search))
    with pytest.raises(ValueError, match=message):
        search.fit(binary.X, binary.y)
    assert vars(search) == before


@pytest.mark.parametrize("Search", [kw.MKLClassifierCV, kw.GroupOMPClassifierCV])
def test_scores_of_probabilities_are_for_a_grid_search(binary, Search):
    search = Search(Linear(), cv=2, scoring="neg_log_loss")
    name = Search.__name__.removesuffix("CV")
    with pytest.raises(
        ValueError, match=rf"scoring='neg_log_loss' needs probabilities.*GridSearchCV\({name}"
    ):
        search.fit(binary.X, binary.y)


@pytest.mark.parametrize("options", [{}, {"one_standard_error": True}])
def test_a_point_without_score_is_not_the_best(binary, options):
    given = iter([np.nan, 0.5, 0.7] * 2)
    Search = kw.GroupOMPClassifierCV if options else kw.MKLClassifierCV
    grid = {"alphas": [1.0, 0.1, 0.01], "n_kernels": 1} if options else {"Cs": [0.1, 1.0, 10.0]}
    search = Search(Linear(), cv=2, scoring=lambda *_: next(given), **grid, **options).fit(binary.X, binary.y)
    assert search.best_index_ == 2
    assert search.best_score_ == 0.7


def test_not_fitted():
    for search in (kw.MKLClassifierCV(KERNELS), kw.MKLRegressorCV(KERNELS)):
        with pytest.raises(NotFittedError):
            search.predict(np.zeros((2, 4)))


def test_one_class_only(binary):
    with pytest.raises(ValueError, match="1 class"):
        kw.MKLClassifierCV(KERNELS, Cs=CS).fit(binary.X, np.zeros(60))


def test_a_failed_fit_leaves_the_last_one(binary):
    search = kw.MKLClassifierCV(KERNELS, Cs=CS).fit(binary.X, binary.y)
    weights = search.weights_.copy()
    with pytest.raises(ValueError, match="NaN"):
        search.fit(np.full((60, 4), np.nan), binary.y)
    np.testing.assert_array_equal(search.weights_, weights)


@pytest.mark.parametrize("place", [0, 11])  # the gap is in the first fold, or in one that follows
@pytest.mark.parametrize(
    ("cls", "regularizer"),
    [(kw.MKLClassifier, kw.LpNorm(1)), (kw.MKLClassifier, kw.LpNorm(2)), (kw.MKLRegressor, kw.LpNorm(2))],
)
def test_folds_with_and_without_gaps_have_different_kernels(place, cls, regularizer):
    rng = np.random.default_rng(0)
    X = {"a": rng.standard_normal((24, 2)), "b": rng.standard_normal((24, 2))}
    y = np.sign(X["a"][:, 0] + X["b"][:, 0])
    X["b"][place] = np.nan
    views, cv = kw.Views(X), KFold(3)
    search = {kw.MKLClassifier: kw.MKLClassifierCV, kw.MKLRegressor: kw.MKLRegressorCV}[cls]
    shared = {"missing": "mask", "tol": 1e-6}
    found = search(Linear(), regularizers=regularizer, Cs=3, cv=cv, **shared).fit(views, y)
    assert "b observed" in found.kernel_names_
    for point, score in zip(found.cv_results_["params"], found.cv_results_["mean_test_score"], strict=True):
        alone = cls(Linear(), **point, **shared)
        parts = [alone.fit(views[train], y[train]).score(views[test], y[test]) for train, test in cv.split(y)]
        assert score == pytest.approx(np.mean(parts), abs=1e-3)


def test_folds_of_given_matrices_take_turns_in_one_memory(rng, monkeypatch):
    """New memory for every fold may cost more than the copies. Scores are those of plain fits."""
    y = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 3)) + 3.0 * y[:, None]
    Ks = [np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1)) for gamma in (0.1, 1.0)]
    places, whole = [], FoldSource.train_all

    def noting(self):
        for m, K in whole(self):
            places.append(K.ctypes.data)
            yield m, K

    monkeypatch.setattr(FoldSource, "train_all", noting)
    stack, folds = kw.KernelStack(Ks), list(StratifiedKFold(5).split(X, y))
    search = kw.MKLClassifierCV("precomputed", regularizers=kw.LpNorm(p=2), Cs=[1.0], cv=folds).fit(stack, y)
    assert len(places) == 10
    assert len(set(places)) == 2
    plain = cross_val_score(kw.MKLClassifier("precomputed", regularizer=kw.LpNorm(p=2)), stack, y, cv=folds)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], plain.mean())
