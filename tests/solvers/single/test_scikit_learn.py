"""With one kernel the machines are scikit-learn's, to 1e-4."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM

from kernelweave.losses import EpsInsensitive, Hinge, Logistic, OneClass, Squared, SquaredHinge
from kernelweave.solvers import Problem, best_intercept
from kernelweave.solvers.single import SINGLE_SOLVERS, choose_single


def predictions(problem, K, solver="auto", tol=1e-9):
    """f on the training samples, intercept included."""
    machine = choose_single(solver, problem.loss).solve(K, problem, tol)
    return (K @ machine.alpha + best_intercept(problem, K @ machine.alpha))[:, 0]


@pytest.fixture
def weight(rng):
    return rng.uniform(0.3, 2.0, size=60)


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_svc(draw, weight, C):
    sample = draw(Hinge())
    y = sample.problem.y[:, 0]
    for w in (np.ones(60), weight):
        theirs = SVC(C=C, kernel="precomputed", tol=1e-9).fit(sample.K, y, sample_weight=w)
        ours = predictions(Problem(sample.problem.y, Hinge(), C * w[:, None]), sample.K)
        np.testing.assert_allclose(ours, theirs.decision_function(sample.K), atol=1e-4)


@pytest.mark.parametrize("eps", [0.0, 0.1, 0.5])
def test_svr(draw, weight, eps):
    sample = draw(EpsInsensitive())
    y = sample.problem.y[:, 0]
    for w in (np.ones(60), weight):
        theirs = SVR(C=2.0, epsilon=eps, kernel="precomputed", tol=1e-9).fit(sample.K, y, sample_weight=w)
        problem = Problem(sample.problem.y, EpsInsensitive(eps=eps), 2.0 * w[:, None])
        np.testing.assert_allclose(predictions(problem, sample.K), theirs.predict(sample.K), atol=1e-4)


@pytest.mark.parametrize("nu", [0.1, 0.4, 0.9])
def test_one_class_svm(draw, nu):
    sample = draw(OneClass())
    theirs = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-9).fit(sample.K)
    problem = Problem(np.ones((60, 1)), OneClass(), np.full((60, 1), 1.0 / (nu * 60)))
    ours = nu * 60 * predictions(problem, sample.K)  # theirs has alpha in [0, 1]
    np.testing.assert_allclose(ours, theirs.decision_function(sample.K), atol=1e-4)


@pytest.mark.parametrize("solver", ["least_squares", "newton"])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_kernel_ridge(draw, weight, solver, C):
    sample = draw(Squared())
    for w in (np.ones(60), weight):
        theirs = KernelRidge(alpha=1.0 / C, kernel="precomputed").fit(
            sample.K, sample.problem.y, sample_weight=w
        )
        problem = Problem(sample.problem.y, Squared(), C * w[:, None], fit_intercept=False)
        ours = predictions(problem, sample.K, solver)
        np.testing.assert_allclose(ours, theirs.predict(sample.K)[:, 0], atol=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_logistic_regression(draw, rng, weight, fit_intercept, C):
    X, y = rng.normal(size=(60, 4)) + 0.5, draw(Logistic()).problem.y
    for w in (np.ones(60), weight):
        theirs = LogisticRegression(C=C, tol=1e-10, max_iter=10_000, fit_intercept=fit_intercept)
        theirs.fit(X, y[:, 0], sample_weight=w)
        problem = Problem(y, Logistic(), C * w[:, None], fit_intercept)
        ours = predictions(problem, X @ X.T, "newton")
        np.testing.assert_allclose(ours, theirs.decision_function(X), atol=1e-4)
        p = problem.loss.probability(ours)
        np.testing.assert_allclose(p, theirs.predict_proba(X)[:, 1], atol=1e-4)


def test_squared_hinge_is_linear_svc_at_half_the_cost(draw, rng):
    X, y = rng.normal(size=(60, 4)), draw(SquaredHinge()).problem.y
    theirs = LinearSVC(C=0.5, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, y[:, 0])
    problem = Problem(y, SquaredHinge(), np.ones((60, 1)), fit_intercept=False)
    np.testing.assert_allclose(predictions(problem, X @ X.T), theirs.decision_function(X), atol=1e-4)


def test_every_solver_is_compared_with_scikit_learn():
    # losses that couple samples are not among those of scikit-learn
    assert set(SINGLE_SOLVERS) == {"smo", "least_squares", "newton", "joint_newton", "block_descent"}
