"""cv="leave-one-out": the fits on all samples, scored on each sample by the machine without it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.kernels import RBF, Linear
from kernelweave.losses import JointLoss

CS = [0.1, 1.0, 10.0]
GAMMAS = (0.1, 0.5, 3.0)
SQUARES = "neg_mean_squared_error"

pytestmark = pytest.mark.filterwarnings("ignore:Scores still rise")


def part(data, n=30):
    """The first samples: every one of them is left out here, some by training again."""
    return SimpleNamespace(X=data.X[:n], y=data.y[:n])


def stacked(X):
    return np.stack([rbf_kernel(X, gamma=gamma) for gamma in GAMMAS], axis=2)


def recorder():
    """A scorer, and the values it was given."""
    seen = []

    def scorer(estimator, X, y, **options):
        answer = getattr(estimator, "decision_function", estimator.predict)
        seen.append(np.array(answer(X)))
        return 0.0

    return scorer, seen


def retrained(K, y, cost, fit_intercept=True):
    """Least squares on one matrix, trained again without each sample."""
    n, out = len(y), np.empty(len(y))
    for i in range(n):
        rest = np.flatnonzero(np.arange(n) != i)
        A = np.zeros((n, n))
        A[:-1, :-1] = K[np.ix_(rest, rest)] + np.diag(1.0 / cost[rest])
        A[-1, :-1] = A[:-1, -1] = float(fit_intercept)
        A[-1, -1] = float(not fit_intercept)
        solution = np.linalg.solve(A, np.append(y[rest], 0.0))
        out[i] = K[i, rest] @ solution[:-1] + solution[-1]
    return out


# -- exact for the squared loss -------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_kernel_is_ridge_regression_of_scikit_learn(regression, fit_intercept):
    data = part(regression)
    search = kw.MKLRegressorCV(
        Linear(), Cs=CS, cv="leave-one-out", scoring=SQUARES, normalize=None, fit_intercept=fit_intercept
    ).fit(data.X, data.y)
    alphas = 1.0 / np.array(CS)
    ridge = RidgeCV(alphas, fit_intercept=fit_intercept, store_cv_results=True).fit(data.X, data.y)
    errors = ridge.cv_results_.mean(axis=0)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], -errors, rtol=1e-8)
    assert search.best_params_["C"] == pytest.approx(1.0 / ridge.alpha_)
    np.testing.assert_allclose(search.coef_, ridge.coef_, rtol=1e-8)


@pytest.mark.parametrize(
    "regularizer", ["lp", kw.LpNorm(p=1), kw.SMKL(), kw.ElasticNet(), "uniform"], ids=str
)
def test_values_are_those_of_training_again_at_the_same_weights(regression, regularizer):
    data, weight = part(regression), np.random.default_rng(0).uniform(0.5, 2.0, 30)
    Ks, (scorer, seen) = stacked(data.X), recorder()
    options = {"normalize": None, "scoring": scorer, "cv": "leave-one-out"}
    search = kw.MKLRegressorCV("precomputed", regularizers=regularizer, Cs=[3.0], **options)
    search.fit(Ks, data.y, sample_weight=weight)
    expected = retrained(Ks @ search.weights_, data.y, 3.0 * weight)
    np.testing.assert_allclose(seen[0], expected, atol=1e-8)


def test_fixed_weights_are_all_that_differs_from_folds_of_one(regression):
    """Weights of 1 are fixed by themselves: the folds of scikit-learn give the same values."""
    data = part(regression, 12)
    kernels = [RBF(gamma=gamma) for gamma in GAMMAS]
    (first, left_out), (second, folds) = recorder(), recorder()
    options = {"regularizers": "uniform", "Cs": CS, "normalize": None}
    kw.MKLRegressorCV(kernels, cv="leave-one-out", scoring=first, **options).fit(data.X, data.y)
    kw.MKLRegressorCV(kernels, cv=LeaveOneOut(), scoring=second, **options).fit(data.X, data.y)
    np.testing.assert_allclose(np.array(left_out), np.array(folds).reshape(12, 3).T, atol=1e-8)


def test_a_kernel_machine_of_scikit_learn_without_each_sample(regression):
    data, (scorer, seen) = part(regression, 15), recorder()
    search = kw.MKLRegressorCV(
        RBF(gamma=0.5), Cs=[2.0], cv="leave-one-out", scoring=scorer, normalize=None, fit_intercept=False
    ).fit(data.X, data.y)
    ridge = KernelRidge(alpha=0.5, kernel="rbf", gamma=0.5)
    expected = [ridge.fit(data.X[a], data.y[a]).predict(data.X[b])[0] for a, b in LeaveOneOut().split(data.X)]
    np.testing.assert_allclose(seen[0], expected, atol=1e-8)
    assert search.cv_results_["split_test_scores"].shape == (1, 1)


@pytest.mark.parametrize("multioutput", ["shared", "independent"])
def test_several_outputs(regression, multioutput):
    data, (scorer, seen) = part(regression), recorder()
    Y, Ks = np.column_stack([data.y, np.sin(data.y)]), stacked(data.X)
    options = {"multioutput": multioutput, "normalize": None, "scoring": scorer, "cv": "leave-one-out"}
    search = kw.MKLRegressorCV("precomputed", Cs=[3.0], **options).fit(Ks, Y)
    for k, weights in enumerate(np.broadcast_to(search.weights_, (2, 3))):
        expected = retrained(Ks @ weights, Y[:, k], np.full(30, 3.0))
        np.testing.assert_allclose(seen[0][:, k], expected, atol=1e-8)


def test_no_kernel_with_weight_leaves_the_mean_of_the_others(regression):
    data, (scorer, seen) = part(regression, 15), recorder()
    options = {"regularizers": kw.ElasticNet(), "Cs": [1e-6], "cv": "leave-one-out", "scoring": scorer}
    with pytest.warns(UserWarning, match="every kernel has weight 0"):
        kw.MKLRegressorCV([RBF()], **options).fit(data.X, data.y)
    np.testing.assert_allclose(seen[0], (data.y.sum() - data.y) / 14, rtol=1e-8)


# -- classes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["ovo", "shared", pytest.param("ovr", marks=pytest.mark.wide)])
def test_every_scheme_of_classes(four, scheme):
    """Models of two classes have not seen samples of others: their predictions are what counts."""
    data = part(four, 16)
    (first, left_out), (second, folds) = recorder(), recorder()
    kernels = [RBF(gamma=gamma) for gamma in GAMMAS]
    options = {"loss": "squared", "regularizers": "uniform", "Cs": [1.0], "normalize": None}
    options |= {"multiclass": scheme, "class_weight": {10: 2.0}}
    kw.MKLClassifierCV(kernels, cv="leave-one-out", scoring=first, **options).fit(data.X, data.y)
    kw.MKLClassifierCV(kernels, cv=LeaveOneOut(), scoring=second, **options).fit(data.X, data.y)
    np.testing.assert_allclose(left_out[0], np.concatenate(folds), atol=1e-8)


@pytest.mark.parametrize("loss", ["hinge", pytest.param("logistic", marks=pytest.mark.wide)])
def test_other_losses_are_near_training_again(binary, loss):
    data = part(binary, 40)
    (first, left_out), (second, folds) = recorder(), recorder()
    kernels = [RBF(gamma=gamma) for gamma in GAMMAS]
    options = {"loss": loss, "regularizers": "uniform", "Cs": [1.0], "tol": 1e-8}
    options["normalize"] = None
    kw.MKLClassifierCV(kernels, cv="leave-one-out", scoring=first, **options).fit(data.X, data.y)
    kw.MKLClassifierCV(kernels, cv=LeaveOneOut(), scoring=second, **options).fit(data.X, data.y)
    exact, found = np.concatenate(folds), left_out[0]
    assert np.corrcoef(exact, found)[0, 1] > 0.98
    assert np.abs(found - exact).mean() < 0.1 * exact.std()


# -- as users meet it -----------------------------------------------------------------------------


def test_in_a_pipeline_with_smkl(binary):
    search = kw.MKLClassifierCV(
        [RBF(gamma=gamma) for gamma in GAMMAS],
        regularizers=[kw.SMKL(), kw.LpNorm(p=1)],
        Cs=CS,
        cv="leave-one-out",
    )
    model = make_pipeline(StandardScaler(), search).fit(binary.X, binary.y)
    results = search.cv_results_
    assert results["split_test_scores"].shape == (1, 6)
    np.testing.assert_array_equal(results["mean_test_score"], results["split_test_scores"][0])
    assert not results["std_test_score"].any()
    # shares of 60 samples, and the best of them
    counts = 60 * results["mean_test_score"]
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    assert search.best_score_ == results["mean_test_score"].max()
    assert search.best_params_ == results["params"][search.best_index_]
    best = kw.MKLClassifier(search.kernels, **search.best_params_).fit(model[0].transform(binary.X), binary.y)
    np.testing.assert_array_equal(
        model.decision_function(binary.X_new), best.decision_function(model[0].transform(binary.X_new))
    )


def test_samples_of_weight_zero_are_not_there(regression):
    data, weight = part(regression), np.ones(30)
    weight[[3, 17]] = 0.0
    kernels, there = [RBF(gamma=gamma) for gamma in GAMMAS], weight > 0
    options = {"Cs": CS, "cv": "leave-one-out"}
    with_zeros = kw.MKLRegressorCV(kernels, **options).fit(data.X, data.y, sample_weight=weight)
    without = kw.MKLRegressorCV(kernels, **options).fit(data.X[there], data.y[there])
    np.testing.assert_allclose(
        with_zeros.cv_results_["mean_test_score"], without.cv_results_["mean_test_score"], rtol=1e-8
    )


def test_matrices_of_a_store(regression, tmp_path):
    data, kernels = part(regression, 20), [RBF(gamma=gamma) for gamma in GAMMAS]
    store = kw.GramStore.build(tmp_path / "kernels.gram", kernels, data.X)
    options = {"Cs": CS, "cv": "leave-one-out"}
    stored = kw.MKLRegressorCV("precomputed", **options).fit(store, data.y)
    computed = kw.MKLRegressorCV(kernels, **options).fit(data.X, data.y)
    scores = [search.cv_results_["mean_test_score"] for search in (stored, computed)]
    np.testing.assert_allclose(*scores, atol=1e-4)  # a store has single precision


class Centred(JointLoss):
    """(1/2) sum_i w_i (f_i - y_i - mean)^2: every sample is in the mean of the others."""

    name, task, shift_invariant = "centred", "regression", True

    def away(self, y, f, weight):
        return f - y - np.average(f - y, weights=weight)

    def value(self, y, f, weight):
        return 0.5 * float(weight @ self.away(y, f, weight) ** 2)

    def gradient(self, y, f, weight):
        return weight * self.away(y, f, weight)

    def curvature(self, y, f, weight):
        return weight


def test_what_cannot_be_left_out_is_refused(regression):
    data = part(regression)
    with pytest.raises(ValueError, match=r"has no use for groups.*LeaveOneGroupOut"):
        kw.MKLRegressorCV(Linear(), cv="leave-one-out").fit(data.X, data.y, groups=np.arange(30) // 3)
    with pytest.raises(ValueError, match="Centred couples samples"):
        kw.MKLRegressorCV(Linear(), loss=Centred(), cv="leave-one-out").fit(data.X, data.y)
    with pytest.raises(ValueError, match=r"cv='loo': MKLRegressorCV takes 'leave-one-out', a number"):
        kw.MKLRegressorCV(Linear(), cv="loo").fit(data.X, data.y)
    with pytest.raises(ValueError, match=r"cv='leave-one-out': GroupOMPRegressorCV takes a number of folds"):
        kw.GroupOMPRegressorCV(Linear(), cv="leave-one-out").fit(data.X, data.y)


@pytest.mark.filterwarnings("ignore:R.2 score is not well-defined")
def test_folds_of_one_have_no_r2(regression):
    X, y = regression.X[:10], regression.y[:10]
    search = kw.MKLRegressorCV(Linear(), Cs=[0.1, 1.0], cv=LeaveOneOut())
    with pytest.raises(
        ValueError, match=r"scoring=None .* is NaN .*cv=LeaveOneOut\(\): pass cv='leave-one-out'"
    ):
        search.fit(X, y)
    greedy = kw.GroupOMPRegressorCV(Linear(), scoring="r2", cv=LeaveOneOut())
    with pytest.raises(ValueError, match=r"scoring='r2' is NaN .* such as 'neg_mean_squared_error'"):
        greedy.fit(X, y)
    assert not hasattr(search, "best_index_")
    assert search.set_params(scoring="neg_mean_squared_error").fit(X, y).best_score_ < 0.0
