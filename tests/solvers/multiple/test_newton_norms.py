"""Margins by pattern: the norm against its definition, and fits against a conic solver."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.gram import DenseGram
from kernelweave.losses import Hinge, Logistic, Squared
from kernelweave.regularizers import LpNorm, PatternNorm
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import NewtonNorms, NewtonWeights, choose_solver

cp = pytest.importorskip("cvxpy")

PATTERNS = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [0, 1, 0, 0]])


def gram_of(n=30, seed=0):
    """Masked kernels on samples of these patterns."""
    rng = np.random.default_rng(seed)
    X, own = rng.normal(size=(n, 4)), PATTERNS[rng.integers(4, size=n)]
    matrices = [np.exp(-((X[:, m, None] - X[:, m]) ** 2)) * np.outer(own[:, m], own[:, m]) for m in range(4)]
    y = np.sign((X * own) @ [1.0, -1.0, 1.0, 0.5] + 0.3 * rng.normal(size=n))[:, None]
    return DenseGram(matrices), matrices, y


def test_conjugate_is_the_largest_product_over_the_unit_ball():
    rule, r = PatternNorm(PATTERNS), np.array([1.0, 0.5, 2.0, 0.1])
    n = cp.Variable(4, nonneg=True)
    ball = cp.Problem(cp.Maximize(r @ n), [PATTERNS @ n <= 1.0])
    ball.solve(solver="CLARABEL")
    assert rule.conjugate(r) == pytest.approx(0.5 * ball.value**2, rel=1e-6)
    assert rule.conjugate(np.zeros(4)) == 0.0
    assert len(rule.maximal) == 3  # (b) is within (a, b)


def test_patterns_of_everything_and_of_single_kernels_are_known_norms():
    n = np.array([1.0, 2.0, 0.5])
    assert PatternNorm(np.ones((1, 3))).penalty(n) == pytest.approx(LpNorm(p=1).penalty(n))
    assert PatternNorm(np.eye(3)).penalty(n) == 0.5 * n.max() ** 2


def test_model_step_minimises_its_model():
    rng = np.random.default_rng(0)
    for _ in range(3):
        B, n, r = rng.normal(size=(4, 4)), rng.random(4), 2.0 * rng.random(4)
        Q, rule = B @ B.T + 0.1 * np.eye(4), PatternNorm(PATTERNS)
        v, top = cp.Variable(4, nonneg=True), cp.Variable()
        value = -r @ v + 0.5 * cp.quad_form(v - n, Q) + 0.5 * cp.square(top)
        cp.Problem(cp.Minimize(value), [top >= PATTERNS @ v]).solve(solver="CLARABEL")
        np.testing.assert_allclose(rule.model_step(n, r, Q), v.value, atol=1e-6)


def test_hinge_fit_is_that_of_a_conic_solver():
    gram, matrices, y = gram_of()
    found = NewtonNorms().solve(Problem(y, Hinge(), np.ones((30, 1))), gram, PatternNorm(PATTERNS), tol=1e-6)
    roots = [np.linalg.cholesky(K + 1e-10 * np.eye(30)) for K in matrices]
    W, b, top = cp.Variable((30, 4)), cp.Variable(), cp.Variable()
    f = sum(roots[m] @ W[:, m] for m in range(4)) + b
    loss = cp.sum(cp.pos(1 - cp.multiply(y[:, 0], f)))
    norms = cp.norm(W, axis=0)
    exact = cp.Problem(cp.Minimize(loss + 0.5 * cp.square(top)), [PATTERNS @ norms <= top])
    exact.solve(solver="CLARABEL")
    assert found.converged
    assert found.state.certificate.primal == pytest.approx(exact.value, rel=1e-4)


@pytest.mark.parametrize("loss", [Squared(), Hinge(), Logistic()])
@pytest.mark.parametrize("C", [0.1, 30.0])
def test_gap_closes(loss, C):
    gram, _, y = gram_of(seed=1)
    found = NewtonNorms().solve(Problem(y, loss, np.full((30, 1), C)), gram, PatternNorm(PATTERNS), tol=1e-5)
    assert found.converged
    assert found.n_iter < 30


def test_it_is_for_penalties_without_a_price_alone():
    assert isinstance(choose_solver("auto", PatternNorm(PATTERNS)), NewtonNorms)
    assert isinstance(choose_solver("auto", LpNorm(p=1)), NewtonWeights)
    for name in ("newton", "alternating", "interleaved", "silp", "qcqp"):
        with pytest.raises(ValueError, match="cannot handle"):
            choose_solver(name, PatternNorm(PATTERNS))
