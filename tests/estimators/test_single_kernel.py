"""With one kernel an MKL estimator is a machine that scikit-learn has too."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM

import kernelweave as kw
from kernelweave.kernels import RBF, Linear
from kernelweave.losses import EpsInsensitive

EXACT = {"normalize": None, "tol": 1e-8}


@pytest.mark.parametrize("regularizer", [kw.LpNorm(p=1), "lp", "uniform"])
def test_hinge_is_svc(binary, regularizer):
    ours = kw.MKLClassifier(RBF(gamma=0.3), regularizer=regularizer, C=2.0, **EXACT)
    ours.fit(binary.X, binary.y)
    theirs = SVC(gamma=0.3, C=2.0, tol=1e-10).fit(binary.X, binary.y)
    np.testing.assert_allclose(ours.weights_, [1.0])
    np.testing.assert_allclose(
        ours.decision_function(binary.X_new), theirs.decision_function(binary.X_new), atol=1e-4
    )
    np.testing.assert_allclose(ours.dual_coef_[theirs.support_], theirs.dual_coef_[0], atol=1e-3)


def test_eps_insensitive_is_svr(regression):
    ours = kw.MKLRegressor(RBF(gamma=0.3), loss=EpsInsensitive(eps=0.2), C=2.0, **EXACT)
    theirs = SVR(gamma=0.3, C=2.0, epsilon=0.2, tol=1e-10)
    X, y, X_new, _ = regression
    np.testing.assert_allclose(ours.fit(X, y).predict(X_new), theirs.fit(X, y).predict(X_new), atol=1e-4)


def test_squared_without_intercept_is_kernel_ridge(regression):
    ours = kw.MKLRegressor(RBF(gamma=0.3), C=2.0, fit_intercept=False, **EXACT)
    theirs = KernelRidge(alpha=0.5, kernel="rbf", gamma=0.3)
    X, y, X_new, _ = regression
    np.testing.assert_allclose(ours.fit(X, y).predict(X_new), theirs.fit(X, y).predict(X_new), atol=1e-4)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-4)
    assert ours.intercept_ == 0.0


@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_one_class_is_one_class_svm_up_to_scale(regression, nu):
    X, X_new = regression.X, regression.X_new
    ours = kw.MKLOneClass(RBF(gamma=0.3), nu=nu, **EXACT).fit(X)
    theirs = OneClassSVM(gamma=0.3, nu=nu, tol=1e-10).fit(X)
    size = nu * len(X)  # their alpha sum to nu n, ours to 1
    np.testing.assert_allclose(
        size * ours.decision_function(X_new), theirs.decision_function(X_new), atol=1e-4
    )
    np.testing.assert_allclose(size * ours.score_samples(X_new), theirs.score_samples(X_new), atol=1e-4)
    assert (ours.predict(X_new) == theirs.predict(X_new)).all()


def test_logistic_on_a_linear_kernel_is_logistic_regression(binary):
    X, y, X_new, _ = binary
    # a relative gap g pins f(x) down to sqrt(2 g P k(x, x)), here 1e-3 at g = 1e-8
    ours = kw.MKLClassifier(Linear(), loss="logistic", C=2.0, normalize=None, tol=1e-10).fit(X, y)
    theirs = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X_new), theirs.decision_function(X_new), atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X_new), theirs.predict_proba(X_new), atol=1e-4)
    np.testing.assert_allclose(ours.dual_coef_ @ X, theirs.coef_[0], atol=1e-4)


def test_squared_hinge_on_a_linear_kernel_is_linear_svc(binary):
    X, y, X_new, _ = binary
    ours = kw.MKLClassifier(Linear(), loss="squared_hinge", C=2.0, fit_intercept=False, **EXACT).fit(X, y)
    # their loss has no 1/2
    theirs = LinearSVC(C=1.0, fit_intercept=False, dual=False, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X_new), theirs.decision_function(X_new), atol=1e-4)


def test_uniform_sum_is_svc_on_the_summed_kernel(binary):
    X, y, X_new, _ = binary
    ours = kw.MKLClassifier([Linear(), RBF(gamma=0.3)], regularizer="uniform", **EXACT).fit(X, y)
    theirs = SVC(kernel="precomputed", tol=1e-10).fit(linear_kernel(X) + rbf_kernel(X, gamma=0.3), y)
    values = theirs.decision_function(linear_kernel(X_new, X) + rbf_kernel(X_new, X, gamma=0.3))
    np.testing.assert_allclose(ours.decision_function(X_new), values, atol=1e-4)


def test_learned_weights_are_those_of_svc_on_the_weighted_kernel(binary):
    """At the learned weights the machine is an SVC, and the objective no worse than at other weights."""
    X, y, _, _ = binary
    ours = kw.MKLClassifier([Linear(), RBF(gamma=0.3)], **EXACT).fit(X, y)
    Ks = np.array([linear_kernel(X), rbf_kernel(X, gamma=0.3)])

    def value(weights: np.ndarray) -> float:
        K = np.tensordot(weights, Ks, 1)
        machine = SVC(kernel="precomputed", tol=1e-10).fit(K, y)
        alpha, support = machine.dual_coef_[0], machine.support_
        return float(np.abs(alpha).sum() - 0.5 * alpha @ K[np.ix_(support, support)] @ alpha)

    np.testing.assert_allclose(value(ours.weights_), ours.objective_, rtol=1e-6)
    angles = np.linspace(0.05, 1.5, 12)
    others = [value(np.array([np.cos(a), np.sin(a)])) for a in angles]  # ||d||_2 = 1
    assert ours.objective_ <= min(others) * (1.0 + 1e-6)
