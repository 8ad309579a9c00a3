"""Block norms with q > 2 converge from any start, kernels that carry nothing included."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.gram import DenseGram
from kernelweave.losses import LOSSES
from kernelweave.regularizers import BlockNorm
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import choose_solver

from ...targets import SEPARABLE, targets_of


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", SEPARABLE)
@pytest.mark.parametrize("q", [2.5, 3.0, 4.0, 8.0, 16.0, np.inf])
def test_any_start_and_useless_kernels(name, q):
    rng = np.random.default_rng(11)
    n = 40
    X = rng.normal(size=(n, 4))
    target = X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n)
    noise = rng.normal(size=(n, 1))
    beside = rng.normal(size=n)
    beside -= target * (beside @ target) / (target @ target)  # a feature orthogonal to the targets
    Ks = [np.exp(-0.5 * np.subtract.outer(x, x) ** 2) for x in [*X.T, noise[:, 0]]]
    Ks.append(np.outer(beside, beside))
    loss = LOSSES[name]()
    y = targets_of(loss, target)
    C = 1.0 / (0.4 * n) if name == "one_class" else 1.0
    problem = Problem(y[:, None], loss, np.full((n, 1), C))
    regularizer = BlockNorm(q)
    values = []
    for start in (np.ones(6), rng.gamma(0.3, size=6) + 1e-3):
        solver = choose_solver("auto", regularizer)
        found = solver.solve(problem, DenseGram(Ks), regularizer, tol=1e-5, max_iter=1000, norms=start)
        assert found.state.certificate.gap <= 1e-5
        values.append(found.state.certificate.primal)
    assert values[0] == pytest.approx(values[1], rel=2e-5, abs=1e-9)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("q", [8.0, 16.0, np.inf])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_start_far_from_the_optimum_does_not_stall(draw, loss, q, seed):
    """Norms over eight decades; a kernel orthogonal to the targets, one of almost and one of nothing."""
    sample, rng = draw(loss, n=50, M=4), np.random.default_rng(5)
    known = np.column_stack([sample.problem.y, np.ones(50)])
    beside = rng.normal(size=50)
    beside -= known @ np.linalg.lstsq(known, beside, rcond=None)[0]
    useless = [np.outer(beside, beside), 1e-3 * np.eye(50), np.zeros((50, 50))]
    gram = DenseGram([*sample.Ks, *useless])
    start = np.exp(3.0 * np.random.default_rng(seed).normal(size=7))
    rule = BlockNorm(q)
    found = choose_solver("auto", rule).solve(sample.problem, gram, rule, tol=1e-6, max_iter=80, norms=start)
    assert found.state.certificate.gap <= 1e-6
