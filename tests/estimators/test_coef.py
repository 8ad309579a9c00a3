"""`coef_`: models of linear kernels are linear functions of the columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import Ridge

import kernelweave as kw
from kernelweave.inspection import contributions
from kernelweave.kernels import RBF, Constant, Linear, Polynomial, Spectrum, per_feature

KERNELS = {
    "one": [Linear()],
    "columns": [Linear(columns=[0, 2]), Linear(columns=1), Linear(columns=slice(1, 4))],
    "twice": [Linear(columns=[0, 0, 3]), Linear()],
    "views": {"first": Linear(columns=[0, 1]), "rest": 3.0 * Linear(columns=[2, 3])},
    "sums": [Linear(columns=[0]) + 2.0 * Linear(columns=[1, 2]) + 0.5, Linear() + Constant(2.0)],
    "family": per_feature(Linear()),
}

MODELS = {
    "classifier": kw.MKLClassifier(),
    "logistic": kw.MKLClassifier(loss="logistic", regularizer=kw.LpNorm(p=1)),
    "no intercept": kw.MKLClassifier(fit_intercept=False),
    "regressor": kw.MKLRegressor(),
    "search": kw.MKLClassifierCV(Cs=[0.1, 1.0], cv=3),
    "greedy classifier": kw.GroupOMPClassifier(alpha=0.1),
    "greedy regressor": kw.GroupOMPRegressor(alpha=0.1),
    "greedy search": kw.GroupOMPRegressorCV(alphas=[0.1, 1.0], cv=3),
    "empirical Bayes": kw.EmpiricalBayesRegressor(),
}
NORMALIZATIONS = ["variance", "trace", "center", None]


def values_of(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def check(model, X, accuracy=1e-10):
    """f = X @ coef_.T + intercept_, and shapes as in scikit-learn."""
    found = values_of(model, X)
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    by_columns = X @ model.coef_.T + model.intercept_
    if is_classifier(model):
        assert model.coef_.shape == (1 if found.ndim == 1 else found.shape[1], X.shape[1])
        by_columns = by_columns.reshape(found.shape)
    assert by_columns.shape == found.shape
    np.testing.assert_allclose(by_columns, found, atol=accuracy * max(1.0, np.abs(found).max()))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("normalize", NORMALIZATIONS, ids=str)
@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("name", MODELS)
def test_values_are_linear_in_the_columns(binary, regression, name, kernels, normalize):
    model = clone(MODELS[name]).set_params(kernels=kernels, normalize=normalize)
    y = binary.y if is_classifier(model) else regression.y
    check(model.fit(binary.X + 1.0, y), binary.X_new)


@pytest.mark.parametrize("normalize", NORMALIZATIONS, ids=str)
@pytest.mark.parametrize("scheme", ["ovr", "shared"])
def test_one_row_for_each_class(flowers, scheme, normalize):
    model = kw.MKLClassifier(per_feature(Linear()), multiclass=scheme, normalize=normalize)
    check(model.fit(flowers.X, flowers.y), flowers.X_new)
    check(
        kw.GroupOMPClassifier(per_feature(Linear()), normalize=normalize).fit(flowers.X, flowers.y), flowers.X
    )


def test_one_row_for_each_pair(flowers):
    model = kw.MKLClassifier(per_feature(Linear()), multiclass="ovo").fit(flowers.X, flowers.y)
    assert model.coef_.shape == (3, 4)
    pairs = flowers.X_new @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(pairs, model._decision(flowers.X_new), atol=1e-10)


@pytest.mark.parametrize("multioutput", ["shared", "independent"])
@pytest.mark.parametrize("estimator", [kw.MKLRegressor, kw.EmpiricalBayesRegressor])
def test_one_row_for_each_output(regression, estimator, multioutput):
    Y = np.column_stack([regression.y, regression.X[:, 2]])
    model = estimator(per_feature(Linear()), multioutput=multioutput, normalize="center")
    model.fit(regression.X, Y)
    assert model.coef_.shape == (2, 4)
    check(model, regression.X_new)
    column = clone(model).fit(regression.X, Y[:, :1])
    assert column.coef_.shape == (1, 4)


def test_novelty_detection(regression):
    model = kw.MKLOneClass([Linear(), Linear(columns=[1]) + 1.0], nu=0.3).fit(regression.X + 2.0)
    values = (regression.X_new @ model.coef_.T + model.intercept_)[:, 0]
    np.testing.assert_allclose(values, model._decision(regression.X_new)[:, 0], atol=1e-10)
    np.testing.assert_allclose(
        model.score_samples(regression.X_new), model.decision_function(regression.X_new) + model.offset_
    )


def test_it_is_ridge_regression(regression):
    """One linear kernel, the squared loss: 1/2 ||w||^2 + C/2 sum r^2, whose ridge is 1 / C."""
    ours = kw.MKLRegressor([Linear()], normalize=None, regularizer="uniform", C=0.5, tol=1e-10)
    ours.fit(regression.X, regression.y)
    theirs = Ridge(alpha=2.0).fit(regression.X, regression.y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-6)


@pytest.mark.parametrize("normalize", ["variance", "center"])
def test_sparse_rows_frames_and_weights(binary, normalize):
    weight = (np.arange(60) % 3).astype(float)
    model = kw.MKLClassifier([Linear(), Linear(columns=[0, 3])], normalize=normalize)
    check(clone(model).fit(sparse.csr_matrix(binary.X), binary.y, weight), sparse.csr_matrix(binary.X_new))
    frame = pd.DataFrame(binary.X, columns=list("abcd"))
    named = kw.MKLClassifier({"left": Linear(columns=["a", "c"]), "right": Linear(columns=["d"])})
    fitted = named.set_params(normalize=normalize).fit(frame, binary.y, weight)
    check(fitted, frame)
    assert fitted.coef_[0, 1] == 0
    assert fitted.coef_[0, [0, 2, 3]].all()


@pytest.mark.parametrize("normalize", ["variance", "center"])
@pytest.mark.parametrize("rank", [2, 10])
def test_features_in_place_of_matrices(binary, rank, normalize):
    """Exact features of few columns, landmarks where there are more."""
    kernels = [Linear() + 1.0, 2.0 * Linear(columns=[0])]
    options = {"approximation": "nystroem", "rank": rank, "random_state": 0, "normalize": normalize}
    check(kw.MKLClassifier(kernels, **options).fit(binary.X, binary.y), binary.X_new, 1e-8)


@pytest.mark.parametrize("normalize", ["center", "variance"])
def test_components_keep_their_own_intercept(binary, normalize):
    """Contributions of centred kernels have mean zero, and sum with b, not with `intercept_`, to f."""
    model = kw.MKLClassifier(per_feature(Linear()), normalize=normalize).fit(binary.X + 1.0, binary.y)
    parts = contributions(model, binary.X_new)
    np.testing.assert_allclose(
        parts.sum(axis=1) + model.model_.intercept[0], model.decision_function(binary.X_new), atol=1e-10
    )
    at_zero = model.decision_function(np.zeros((1, 4)))[0]
    assert model.intercept_ == pytest.approx(at_zero, abs=1e-10)


def test_kernels_without_weight_do_not_matter(binary):
    """A line, and a curve that gets no weight: the model is a line."""
    y = binary.X @ [1.0, -2.0, 0.5, 0.0]
    model = kw.MKLRegressor([Linear(), RBF(columns=[3], gamma=50.0)], regularizer=kw.LpNorm(p=1)).fit(
        binary.X, y
    )
    assert model.weights_[1] == 0
    check(model, binary.X_new)


REFUSED = {
    "curve": (kw.MKLClassifier([Linear(), RBF(gamma=0.3)]), r"'RBF\(gamma=0.3\)' is not linear"),
    "square": (kw.MKLRegressor([Polynomial(degree=2)]), "is not linear"),
    "product": (kw.MKLClassifier([Linear() * Linear()]), "is not linear"),
    "sum": (kw.GroupOMPClassifier([Linear() + RBF(gamma=0.3)]), "is not linear"),
    "sphere": (kw.MKLClassifier([Linear()], normalize="spherical"), "normalize='spherical'"),
    "greedy sphere": (kw.GroupOMPRegressor([Linear()], normalize="spherical"), "normalize='spherical'"),
    "moderated": (kw.EmpiricalBayesClassifier([Linear()]), "divided by the spread"),
    "features": (kw.MKLClassifier([RBF()], approximation="rff", rank=20, random_state=0), "is not linear"),
    "search": (kw.MKLClassifierCV([RBF()], Cs=2, cv=2), "is not linear"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_models_have_none_and_say_why(binary, name):
    model, reason = REFUSED[name]
    fitted = clone(model).fit(binary.X, binary.y)
    assert not hasattr(fitted, "coef_")
    with pytest.raises(AttributeError, match=reason):
        _ = fitted.coef_
    if not hasattr(fitted, "best_estimator_") and hasattr(fitted, "model_"):
        np.testing.assert_array_equal(np.ravel(fitted.intercept_), fitted.model_.intercept)


def test_matrices_and_text_have_no_columns(binary, grams):
    with pytest.raises(AttributeError, match="precomputed matrices"):
        _ = kw.MKLClassifier("precomputed").fit(grams[0], binary.y).coef_
    words = [f"AC{'GT'[label]}" for label in binary.y]
    assert not hasattr(kw.MKLClassifier([Spectrum(2)]).fit(words, binary.y), "coef_")


def test_before_the_fit_there_is_none():
    for model in MODELS.values():
        assert not hasattr(clone(model), "coef_")


def test_a_saved_model_has_its_coefficients(binary, tmp_path):
    for name in ("classifier", "greedy classifier", "empirical Bayes", "search"):
        model = clone(MODELS[name]).set_params(kernels=KERNELS["sums"], normalize="center")
        model.fit(binary.X, binary.y)
        kw.save_model(model, tmp_path / "model.kw")
        loaded = kw.load_model(tmp_path / "model.kw")
        np.testing.assert_array_equal(loaded.coef_, model.coef_)
        check(loaded, binary.X_new)


def test_columns_are_selected_by_coefficients(binary):
    kept = SelectFromModel(kw.MKLClassifier(per_feature(Linear())), max_features=2, threshold=-np.inf)
    kept.fit(binary.X, binary.y)
    largest = np.argsort(-np.abs(kept.estimator_.coef_[0]))[:2]
    np.testing.assert_array_equal(np.flatnonzero(kept.get_support()), np.sort(largest))
