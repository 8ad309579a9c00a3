"""scikit-learn's model selection, on features, arrays of kernels, stacks and sample numbers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.kernels import RBF, Linear, Precomputed

ON_DATA = [Linear(), RBF(gamma=0.3)]
FOLDS = KFold(3, shuffle=True, random_state=0)
FORMS = ["features", "array", "stack", "index"]


@pytest.fixture(params=FORMS)
def form(request, binary, grams):
    """An estimator and its X; all of them are the same problem."""
    K = grams[0]
    matrices = [K[:, :, m].copy() for m in range(2)]
    return {
        "features": (kw.MKLClassifier(ON_DATA), binary.X),
        "array": (kw.MKLClassifier("precomputed"), K),
        "stack": (kw.MKLClassifier("precomputed"), kw.KernelStack(matrices)),
        "index": (kw.MKLClassifier([Precomputed(K) for K in matrices]), np.arange(60)[:, None]),
    }[request.param]


def by_hand(data, **params):
    """Scores of the same folds, one fit after the other."""
    model = kw.MKLClassifier(ON_DATA, **params)
    return np.array(
        [model.fit(data.X[a], data.y[a]).score(data.X[b], data.y[b]) for a, b in FOLDS.split(data.X)]
    )


def test_cross_val_score(form, binary):
    estimator, X = form
    np.testing.assert_allclose(cross_val_score(estimator, X, binary.y, cv=FOLDS), by_hand(binary))


@pytest.mark.sampled(2)
def test_cross_val_predict_of_every_method(form, binary):
    estimator, X = form
    values = cross_val_predict(estimator, X, binary.y, cv=FOLDS, method="decision_function")
    proba = cross_val_predict(estimator, X, binary.y, cv=FOLDS, method="predict_proba")
    reference = np.empty(60)
    for a, b in FOLDS.split(binary.X):
        model = kw.MKLClassifier(ON_DATA).fit(binary.X[a], binary.y[a])
        reference[b] = model.decision_function(binary.X[b])
    np.testing.assert_allclose(values, reference, atol=1e-8)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


@pytest.mark.sampled(2)
def test_grid_search_down_to_the_regularizer(form, binary):
    estimator, X = form
    grid = {"regularizer__p": [1.0, 2.0], "C": [0.01, 1.0]}
    search = GridSearchCV(estimator.set_params(regularizer=kw.LpNorm()), grid, cv=FOLDS).fit(X, binary.y)
    results = search.cv_results_
    for params, score in zip(results["params"], results["mean_test_score"], strict=True):
        expected = by_hand(binary, regularizer=kw.LpNorm(p=params["regularizer__p"]), C=params["C"])
        np.testing.assert_allclose(score, expected.mean())
    assert search.best_estimator_.regularizer.p == search.best_params_["regularizer__p"]
    assert search.predict(X).shape == (60,)


@pytest.mark.system
def test_grid_search_in_two_processes(form, binary):
    estimator, X = form
    grid = {"C": [0.01, 1.0]}
    one = GridSearchCV(estimator, grid, cv=FOLDS).fit(X, binary.y)
    two = GridSearchCV(estimator, grid, cv=FOLDS, n_jobs=2).fit(X, binary.y)
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])


@pytest.mark.sampled(6)
def test_nested_cross_validation(form, binary):
    estimator, X = form
    search = GridSearchCV(estimator, {"C": [0.01, 1.0]}, cv=FOLDS)
    scores = cross_val_score(search, X, binary.y, cv=FOLDS)
    reference = GridSearchCV(kw.MKLClassifier(ON_DATA), {"C": [0.01, 1.0]}, cv=FOLDS)
    np.testing.assert_allclose(scores, cross_val_score(reference, binary.X, binary.y, cv=FOLDS))


@pytest.mark.sampled(2)
def test_randomized_search(form, binary):
    estimator, X = form
    draws = {"C": np.logspace(-2, 1, 20), "normalize": ["variance", "trace"]}
    search = RandomizedSearchCV(estimator, draws, n_iter=3, cv=FOLDS, random_state=0).fit(X, binary.y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.sampled(2)
def test_learning_curve(form, binary):
    estimator, X = form
    sizes, _, scores = learning_curve(estimator, X, binary.y, train_sizes=[0.5, 1.0], cv=FOLDS)
    np.testing.assert_array_equal(sizes, [20, 40])
    np.testing.assert_allclose(scores[1], by_hand(binary))


@pytest.mark.sampled(2)
def test_permutation_test_score(form, binary):
    estimator, X = form
    score, permuted, p_value = permutation_test_score(
        estimator, X, binary.y, cv=FOLDS, n_permutations=5, random_state=0
    )
    np.testing.assert_allclose(score, by_hand(binary).mean())
    assert permuted.shape == (5,)
    assert 0.0 < p_value <= 1.0


@pytest.mark.sampled(2)
def test_in_a_pipeline(form, binary):
    estimator, X = form
    pipeline = Pipeline([("mkl", estimator)])
    np.testing.assert_allclose(cross_val_score(pipeline, X, binary.y, cv=FOLDS), by_hand(binary))
    search = GridSearchCV(pipeline, {"mkl__C": [0.01, 1.0]}, cv=FOLDS).fit(X, binary.y)
    assert search.best_estimator_["mkl"].C in (0.01, 1.0)


def test_after_a_scaler(binary):
    pipeline = make_pipeline(StandardScaler(), kw.MKLClassifier(ON_DATA))
    shifted = 100.0 * binary.X + 7.0
    scores = cross_val_score(pipeline, shifted, binary.y, cv=FOLDS)
    np.testing.assert_allclose(scores, cross_val_score(pipeline, binary.X, binary.y, cv=FOLDS))


def test_regression_and_one_class_on_stacks(regression, grams):
    K = grams[0]
    stack = kw.KernelStack([K[:, :, 0], K[:, :, 1]])
    for X in (K, stack):
        scores = cross_val_score(kw.MKLRegressor("precomputed"), X, regression.y, cv=FOLDS)
        expected = cross_val_score(kw.MKLRegressor(ON_DATA), regression.X, regression.y, cv=FOLDS)
        np.testing.assert_allclose(scores, expected, atol=1e-6)
        outside = cross_val_predict(kw.MKLOneClass("precomputed"), X, cv=FOLDS)
        assert set(outside) <= {-1, 1}


# -- nothing of the test rows reaches the model ---------------------------------------------------


@pytest.mark.parametrize("normalize", ["variance", "spherical", "trace", "center", None], ids=str)
def test_test_rows_do_not_reach_the_model(binary, normalize):
    """Bandwidths and normalisation constants come from the training rows of each fold."""
    estimator = kw.MKLClassifier([RBF("scale"), RBF("median"), Linear()], normalize=normalize)
    _, test = next(FOLDS.split(binary.X))
    changed = binary.X.copy()
    changed[test] = 50.0 * changed[test] + 3.0
    before = cross_validate(estimator, binary.X, binary.y, cv=FOLDS, return_estimator=True)["estimator"]
    after = cross_validate(estimator, changed, binary.y, cv=FOLDS, return_estimator=True)["estimator"]
    np.testing.assert_array_equal(before[0].weights_, after[0].weights_)
    np.testing.assert_array_equal(before[0].dual_coef_, after[0].dual_coef_)
    np.testing.assert_array_equal(before[0].decision_function(binary.X), after[0].decision_function(binary.X))
    # the other folds trained on the changed rows
    assert not np.array_equal(before[1].dual_coef_, after[1].dual_coef_)


@pytest.mark.parametrize("normalize", ["variance", "spherical", "trace", "center", None], ids=str)
def test_test_entries_of_given_matrices_do_not_reach_the_model(binary, grams, normalize):
    train, test = next(FOLDS.split(binary.X))
    K = grams[0][:, :, 1]
    scale = np.ones(60)
    scale[test] = 4.0
    changed = K * np.outer(scale, scale)  # still positive semidefinite
    index = np.arange(60)[:, None]
    models = [
        kw.MKLClassifier([Precomputed(matrix)], normalize=normalize).fit(index[train], binary.y[train])
        for matrix in (K, changed)
    ]
    np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)


@pytest.mark.parametrize("normalize", ["variance", "spherical", "trace", "center", None], ids=str)
def test_one_row_at_a_time_predicts_as_all_together(binary, normalize):
    model = kw.MKLClassifier([RBF("median"), Linear()], normalize=normalize).fit(binary.X, binary.y)
    singly = np.concatenate([model.decision_function(row[None]) for row in binary.X_new])
    np.testing.assert_allclose(singly, model.decision_function(binary.X_new), atol=1e-10)
    probabilities = np.concatenate([model.predict_proba(row[None]) for row in binary.X_new])
    np.testing.assert_allclose(probabilities, model.predict_proba(binary.X_new), atol=1e-10)
