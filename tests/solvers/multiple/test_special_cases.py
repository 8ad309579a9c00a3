"""Special cases of the papers, each solved as it was first written down, by a conic solver."""

from __future__ import annotations

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.kernels import Linear, per_group
from kernelweave.losses import Hinge
from kernelweave.regularizers import ElasticNet, LpNorm
from kernelweave.solvers.multiple import choose_solver

cp = pytest.importorskip("cvxpy")


def solve(sample, rule):
    solver = choose_solver("auto", rule)
    return solver.solve(sample.problem, sample.gram, rule, tol=1e-7, max_iter=500).state


def root(K):
    """Z with K = Z Z'."""
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-13 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


@pytest.mark.parametrize("traced", [False, True])
def test_the_qcqp_of_lanckriet_is_l1_mkl(draw, traced):
    """max sum |a| - t/2, y a in [0, C], sum a = 0, a' K_m a <= t (or t tr(K_m))."""
    sample = draw(Hinge(), n=30, M=5)
    y = sample.problem.y[:, 0]
    traces = np.trace(sample.Ks, axis1=1, axis2=2) if traced else np.ones(5)
    a, t = cp.Variable(30), cp.Variable()
    limits = [cp.sum_squares(root(K).T @ a) <= t * tr for K, tr in zip(sample.Ks, traces, strict=True)]
    box = [cp.multiply(y, a) >= 0, cp.multiply(y, a) <= 1, cp.sum(a) == 0]
    optimum = cp.Problem(cp.Maximize(y @ a - 0.5 * t), [*limits, *box]).solve(solver=cp.CLARABEL)
    state = solve(sample, LpNorm(p=1, costs=traces if traced else None))
    assert state.certificate.primal == pytest.approx(optimum, rel=1e-6)
    weights = np.array([limit.dual_value for limit in limits]).ravel()
    np.testing.assert_allclose(state.weights, 2.0 * weights, atol=1e-3)
    assert float(state.weights @ traces) == pytest.approx(1.0)


@pytest.mark.parametrize("overlap", [False, True])
def test_group_lasso_is_the_block_one_norm_of_linear_kernels(rng, overlap):
    """C/2 sum (y - sum_g X_g w_g - b)^2 + sum_g |w_g|; groups that overlap have their own copies of w."""
    X = rng.normal(size=(60, 8))
    y = X[:, 2] - X[:, 3] + 0.5 * X[:, 4] + 0.2 * rng.normal(size=60)
    starts = range(0, 6, 2) if overlap else range(0, 8, 4)
    groups = {f"g{start}": list(range(start, start + 4)) for start in starts}
    ws, b = {name: cp.Variable(4) for name in groups}, cp.Variable()
    f = sum(X[:, columns] @ ws[name] for name, columns in groups.items()) + b
    penalty = sum(cp.norm(w, 2) for w in ws.values())
    optimum = cp.Problem(cp.Minimize(0.5 * 0.3 * cp.sum_squares(y - f) + penalty)).solve(solver=cp.CLARABEL)
    model = kw.MKLRegressor(
        per_group(groups, Linear()),
        loss="squared",
        regularizer=ElasticNet(l1_ratio=1),
        C=0.3,
        normalize=None,
        tol=1e-7,
    ).fit(X, y)
    assert model.objective_ == pytest.approx(optimum, rel=1e-6)
    np.testing.assert_allclose(model.predict(X), f.value, atol=1e-3)
    np.testing.assert_allclose(model.norms_, [np.linalg.norm(w.value) for w in ws.values()], atol=1e-3)
