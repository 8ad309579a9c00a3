"""The interior-point method: optimal whatever the conditioning of K; and what follows for SMO."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave.losses import CensoredEpsInsensitive, EpsInsensitive, Hinge, Logistic, OneClass
from kernelweave.solvers import Problem
from kernelweave.solvers.single import SMO, Newton, machine_gap
from kernelweave.solvers.single._box_qp import BoxQP
from kernelweave.solvers.single._interior import Interior
from kernelweave.solvers.single.base import IDLE_STEPS, Standstill
from kernelweave.solvers.single.smo import PAIR_STEPS, SAMPLE_STEPS

from ...targets import targets_of


def program(loss, n=40, C=1.0, fit_intercept=True, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    K = rbf_kernel(X) + X @ X.T
    score = X[:, :1] + 0.3 * rng.normal(size=(n, 1))
    y = targets_of(loss, score[:, 0])[:, None]
    cost = C if loss.task != "one_class" else 1.0 / (0.4 * n)
    return K, Problem(y, loss, np.full((n, 1), cost), fit_intercept)


LOSSES = [Hinge(), EpsInsensitive(eps=0.2), CensoredEpsInsensitive(eps=0.2), OneClass()]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("C", [0.1, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_no_pair_gains_at_the_solution(loss, C, fit_intercept):
    if loss.task == "one_class" and not fit_intercept:
        pytest.skip("needs an intercept")
    K, problem = program(loss, C=C, fit_intercept=fit_intercept)
    qp, total = BoxQP.of(K, problem), float(problem.start().sum())
    solver = Interior(K, qp.linear, qp.lower, qp.upper, qp.kink, total, qp.tied)
    solver.solve(1e-10)
    a = solver.inside
    assert (a > qp.lower - 1e-12).all()
    assert (a < qp.upper + 1e-12).all()
    if qp.tied:
        assert a.sum() == pytest.approx(total, abs=1e-8)
    alpha = problem.feasible(a[:, None])
    assert machine_gap(problem, alpha, K @ alpha) <= 1e-6


@pytest.mark.parametrize("scale", [1e5, 1e7, 1e9])
def test_machines_that_take_smo_for_ever_are_solved(scale):
    X, labels = make_blobs(300, random_state=0)
    K = scale * rbf_kernel(X, gamma=0.5 / X.var())
    problem = Problem(np.where(labels[:, None] == 0, 1.0, -1.0), Hinge(), np.ones((300, 1)))
    machine = SMO().solve(K, problem, tol=1e-5)
    assert machine_gap(problem, machine.alpha, K @ machine.alpha) <= 1e-5
    assert machine.n_iter <= SAMPLE_STEPS * 300 + PAIR_STEPS * 300**2


def test_a_machine_that_cannot_be_solved_ends_with_the_best_point_seen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 8)) * np.logspace(-3, 4, 8)
    K = (X @ X.T + 1.0) ** 2
    problem = Problem(np.where(rng.random((80, 1)) > 0.5, 1.0, -1.0), Hinge(), np.ones((80, 1)))
    machine = SMO().solve(K, problem, tol=1e-12)
    assert machine.n_iter <= SAMPLE_STEPS * 80 + PAIR_STEPS * 80**2
    start = problem.start()
    assert machine_gap(problem, machine.alpha, K @ machine.alpha) <= machine_gap(problem, start, K @ start)


def test_without_kernels_the_known_point_is_kept():
    rng = np.random.default_rng(0)
    _, problem = program(OneClass())
    alpha = problem.feasible(rng.random(problem.shape) * problem.C)
    machine = SMO().solve(np.zeros((40, 40)), problem, 1e-6, alpha)
    np.testing.assert_array_equal(machine.alpha, alpha)


def test_few_steps_give_a_machine_too():
    K, problem = program(Hinge())
    machine = SMO(max_iter=3).solve(K, problem, tol=1e-12)
    assert machine.n_iter <= 3
    np.testing.assert_allclose(machine.fitted, K @ machine.alpha)


def test_steps_that_no_longer_help_stop():
    still = Standstill()
    assert not any(still(1.0, 0.5) for _ in range(IDLE_STEPS))
    assert still(1.0, 0.5)
    falling, closing = Standstill(), Standstill()
    assert not any(falling(1.0 - 1e-3 * k, 0.5) for k in range(50))
    assert not any(closing(1.0, 0.5 * 0.9**k) for k in range(50))


def test_newton_steps_end_where_rounding_is_the_limit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8)) * np.logspace(-3, 4, 8)
    K = (X @ X.T + 1.0) ** 2
    problem = Problem(np.where(rng.random((60, 1)) > 0.5, 1.0, -1.0), Logistic(), np.ones((60, 1)))
    machine = Newton(max_iter=2000).solve(K, problem, tol=1e-14)
    assert machine.n_iter < 500
