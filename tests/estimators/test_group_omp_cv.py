"""Cross-validated greedy estimators: one path a fold and ridge gives every score."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

import kernelweave as kw
from kernelweave.kernels import RBF, Linear, per_feature
from kernelweave.solvers.greedy import FactorDictionary, GroupOMP

ALPHAS = [0.1, 0.001]


def kernels():
    return [*(Linear(columns=[j]) for j in range(4)), *(RBF(gamma=0.7, columns=[j]) for j in range(4))]


def by_params(search):
    results = search.cv_results_
    keys = [(params["alpha"], params["n_kernels"]) for params in results["params"]]
    return dict(zip(keys, results["split_test_scores"].T, strict=True))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("normalize", ["variance", "center", None])
def test_scores_are_those_of_the_estimator_on_every_fold(regression, normalize):
    folds = KFold(3, shuffle=True, random_state=0)
    options = {"tol": 1e-4, "normalize": normalize}
    search = kw.GroupOMPRegressorCV(kernels(), alphas=ALPHAS, n_kernels=4, cv=folds, **options)
    scores = by_params(search.fit(regression.X, regression.y))
    assert len(scores) == 8
    for (alpha, size), found in scores.items():
        one = kw.GroupOMPRegressor(kernels(), alpha=alpha, n_kernels=size, **options)
        expected = cross_val_score(one, regression.X, regression.y, cv=folds)
        np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_scores_of_a_classifier(flowers, loss):
    options = {"loss": loss, "class_weight": "balanced", "tol": 1e-4}
    search = kw.GroupOMPClassifierCV(per_feature(RBF(gamma=0.5)), alphas=ALPHAS, cv=3, **options)
    scores = by_params(search.fit(flowers.X, flowers.y))
    for (alpha, size), found in scores.items():
        one = kw.GroupOMPClassifier(per_feature(RBF(gamma=0.5)), alpha=alpha, n_kernels=size, **options)
        np.testing.assert_allclose(found, cross_val_score(one, flowers.X, flowers.y, cv=3), atol=0.05)
    assert search.score(flowers.X_new, flowers.y_new) > 0.9
    assert search.predict_proba(flowers.X_new).shape == (75, 3)


def test_one_path_a_fold_and_ridge(regression, monkeypatch):
    runs, evaluated = [], []
    solve, train = GroupOMP.solve, FactorDictionary._load
    monkeypatch.setattr(GroupOMP, "solve", lambda self, *args: runs.append(1) or solve(self, *args))
    monkeypatch.setattr(FactorDictionary, "_load", lambda self, m: evaluated.append(m) or train(self, m))
    calls = []
    compute = RBF._compute
    monkeypatch.setattr(RBF, "_compute", lambda self, *args: calls.append(1) or compute(self, *args))
    kw.GroupOMPRegressorCV(kernels(), alphas=ALPHAS, n_kernels=4, cv=3).fit(regression.X, regression.y)
    assert len(runs) == 3 * len(ALPHAS) + 1
    assert len(evaluated) == 8 * (3 + 1)  # once a fold for all ridges, and once to refit
    assert len(calls) == 2 * 4  # each Gaussian kernel once for the search and once to refit


def test_the_best_point_is_refitted(regression):
    search = kw.GroupOMPRegressorCV(kernels(), alphas=ALPHAS, n_kernels=5, cv=3).fit(
        regression.X, regression.y
    )
    mean = search.cv_results_["mean_test_score"]
    assert search.best_score_ == mean.max() == mean[search.best_index_]
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]
    direct = kw.GroupOMPRegressor(kernels(), **search.best_params_).fit(regression.X, regression.y)
    np.testing.assert_allclose(search.predict(regression.X_new), direct.predict(regression.X_new))
    np.testing.assert_allclose(search.predict(regression.X_new, 1), direct.predict(regression.X_new, 1))
    assert search.selected_.tolist() == direct.selected_.tolist()
    assert search.weights_.sum() == len(search.path_) == search.best_params_["n_kernels"]
    assert search.kernel_names_ == direct.kernel_names_


def test_the_one_standard_error_rule_takes_fewer_kernels(regression):
    y = regression.y + np.random.default_rng(0).normal(size=60)
    options = {"alphas": ALPHAS, "n_kernels": 8, "tol": 0.0, "cv": 5}
    best = kw.GroupOMPRegressorCV(kernels(), **options).fit(regression.X, y)
    frugal = kw.GroupOMPRegressorCV(kernels(), one_standard_error=True, **options).fit(regression.X, y)
    scores, mean = frugal.cv_results_["split_test_scores"], frugal.cv_results_["mean_test_score"]
    bound = mean.max() - scores[:, mean.argmax()].std(ddof=1) / np.sqrt(5)
    sizes = np.array([params["n_kernels"] for params in frugal.cv_results_["params"]])
    chosen = frugal.best_params_["n_kernels"]
    assert chosen == sizes[mean >= bound].min() < best.best_params_["n_kernels"]
    assert frugal.best_score_ == mean[sizes == chosen].max() >= bound


def test_precomputed_stacks(binary, grams):
    stack, new = grams
    folds = StratifiedKFold(3)
    pre = kw.GroupOMPClassifierCV("precomputed", alphas=ALPHAS, cv=folds).fit(stack, binary.y)
    plain = kw.GroupOMPClassifierCV([Linear(), RBF(gamma=0.3)], alphas=ALPHAS, cv=folds)
    plain.fit(binary.X, binary.y)
    np.testing.assert_allclose(
        pre.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], atol=1e-8
    )
    np.testing.assert_allclose(pre.decision_function(new), plain.decision_function(binary.X_new), atol=1e-8)


def test_samples_without_weight_are_left_out(regression):
    weight = (np.arange(60) % 3 > 0).astype(float)
    rows = np.flatnonzero(weight)
    splits = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    where = np.cumsum(weight).astype(int) - 1
    kept = [tuple(where[part[weight[part] > 0]] for part in split) for split in splits]
    first = kw.GroupOMPRegressorCV(kernels(), alphas=ALPHAS, cv=splits)
    first.fit(regression.X, regression.y, sample_weight=weight)
    second = kw.GroupOMPRegressorCV(kernels(), alphas=ALPHAS, cv=kept).fit(
        regression.X[rows], regression.y[rows]
    )
    np.testing.assert_allclose(
        first.cv_results_["split_test_scores"], second.cv_results_["split_test_scores"], atol=1e-8
    )


def test_threads_change_nothing(regression):
    one = kw.GroupOMPRegressorCV(kernels(), alphas=ALPHAS, cv=3).fit(regression.X, regression.y)
    two = kw.GroupOMPRegressorCV(kernels(), alphas=ALPHAS, cv=3, n_jobs=2).fit(regression.X, regression.y)
    np.testing.assert_allclose(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alphas": []}, r"alphas=\[\]"),
        ({"alphas": [0.1, -1.0]}, "alphas="),
        ({"alphas": 0}, "alphas=0"),
        ({"n_kernels": 0}, "n_kernels=0"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"loss": "hinge"}, "loss='hinge' is not for GroupOMPRegressor"),
    ],
)
def test_bad_parameters_are_refused(regression, parameters, message):
    search = kw.GroupOMPRegressorCV(kernels(), **parameters)
    with pytest.raises(ValueError, match=message):
        search.fit(regression.X, regression.y)
    assert not hasattr(search, "best_estimator_")
