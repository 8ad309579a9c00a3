"""Newton and least squares on inputs that are hard on factorisations."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.losses import LOSSES, Huber, Logistic, Squared, SquaredHinge
from kernelweave.solvers import Problem, best_intercept
from kernelweave.solvers.single import LeastSquares, Newton, machine_gap

SMOOTH = [name for name, cls in LOSSES.items() if not Newton().missing(cls())]


@pytest.fixture(params=SMOOTH)
def smooth_loss(request):
    return LOSSES[request.param]()


@pytest.fixture(params=[True, False], ids=["tied", "free"])
def tied(request):
    return request.param


def assert_solved(reference, problem, K, solver=None, tol=1e-8):
    machine = (solver or Newton()).solve(K, problem, tol)
    assert np.isfinite(machine.alpha).all()
    b = best_intercept(problem, K @ machine.alpha)
    primal, dual = reference.machine_bounds(problem, K, machine.alpha, b)
    assert primal - dual <= tol * max(abs(primal), 1e-6)
    return machine


@pytest.mark.parametrize("C", [1e-4, 1e2, 1e4])
def test_costs_small_and_large(draw, reference, smooth_loss, tied, C):
    sample = draw(smooth_loss, C=C, costs=True, fit_intercept=tied)
    assert_solved(reference, sample.problem, sample.K)


@pytest.mark.parametrize("kernel", ["zero", "constant", "rank one", "duplicates"])
def test_singular_kernels(draw, reference, rng, smooth_loss, tied, kernel):
    sample = draw(smooth_loss, fit_intercept=tied)
    x, again = rng.normal(size=60), np.arange(60) // 2
    K = {
        "zero": np.zeros((60, 60)),
        "constant": np.ones((60, 60)),
        "rank one": np.outer(x, x),
        "duplicates": sample.K[np.ix_(again, again)],
    }[kernel]
    assert_solved(reference, sample.problem, K)
    if not LeastSquares().missing(smooth_loss):
        assert_solved(reference, sample.problem, K, LeastSquares())


def test_outliers(draw, reference, tied):
    sample = draw(Huber(delta=0.1), fit_intercept=tied)
    y = sample.problem.y.copy()
    y[::7] += 1e4
    assert_solved(reference, Problem(y, Huber(delta=0.1), sample.problem.C, tied), sample.K)


def test_labels_of_one_kind(reference):
    for loss in (Logistic(), SquaredHinge()):
        machine = Newton().solve(np.eye(12), Problem(np.ones((12, 1)), loss, np.ones((12, 1))), 1e-8)
        np.testing.assert_allclose(machine.alpha, 0.0, atol=1e-8)


def test_separable_data_of_huge_cost(reference, tied):
    y = np.where(np.arange(20) < 10, 1.0, -1.0)[:, None]
    K = np.outer(y, y) + np.eye(20)
    for loss in (Logistic(), SquaredHinge()):
        assert_solved(reference, Problem(y, loss, np.full((20, 1), 1e6), tied), K)


@pytest.mark.parametrize("C", [1e4, 1e6])
def test_few_steps_also_where_most_samples_come_and_go(C):
    """The class in the middle, kernels of one column: halved steps go in circles from costs of 1e4 on."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(450, 12))
    target = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * X[:, 4] + 0.5 * rng.normal(size=450)
    low, high = np.quantile(target, [0.33, 0.66])
    y = np.where((target > low) & (target <= high), 1.0, -1.0)[:, None]
    distances = (X.T[:, :, None] - X.T[:, None, :]) ** 2
    K = 0.3 * (np.exp(-0.5 * distances[::3]).sum(axis=0) + X[:, 1::3] @ X[:, 1::3].T)
    K += 0.3 * np.exp(-5.0 * (distances[2::3] + distances[[3, 6, 9, 0]])).sum(axis=0)
    problem = Problem(y, SquaredHinge(), np.full((450, 1), C))
    machine = Newton().solve(K, problem, 1e-6)
    assert machine_gap(problem, machine.alpha, K @ machine.alpha) <= 1e-6


@pytest.mark.parametrize("size", [1e5, 1e7])
@pytest.mark.parametrize("loss", [SquaredHinge(), Huber()], ids=lambda loss: loss.name)
def test_costs_and_kernels_of_odd_units(loss, size):
    """Nearly a hard margin: from alpha = 0, steps end at the first bend of the loss when C K is 1e11."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = np.sign(X[:, :1] + 0.3 * rng.normal(size=(150, 1)))
    K = size * np.exp(-0.25 * ((X[:, None] - X) ** 2).sum(axis=2))
    problem = Problem(
        y if loss.name == "squared_hinge" else 3.0 * X[:, 1:2] * y, loss, np.full((150, 1), 1e4)
    )
    machine = Newton().solve(K, problem, 1e-4)
    assert machine_gap(problem, machine.alpha, machine.fitted) <= 1e-3


def test_max_iter_stops_at_a_feasible_point(draw, smooth_loss):
    sample = draw(smooth_loss, C=100.0)
    machine = Newton(max_iter=1).solve(sample.K, sample.problem, 1e-12)
    assert machine.n_iter == 1
    assert np.isfinite(sample.problem.dual_loss(machine.alpha))
    assert machine.alpha.sum() == pytest.approx(0.0, abs=1e-8)


def test_a_warm_start_at_the_solution_takes_one_step(draw, smooth_loss):
    sample = draw(smooth_loss)
    done = Newton().solve(sample.K, sample.problem, 1e-9)
    assert Newton().solve(sample.K, sample.problem, 1e-8, done.alpha).n_iter == 1


def test_least_squares_solves_its_linear_system(draw, tied):
    sample = draw(Squared(), outputs=2, costs=True, fit_intercept=tied)
    machine = LeastSquares().solve(sample.K, sample.problem, 1e-8)
    b = best_intercept(sample.problem, machine.fitted)
    residual = sample.K @ machine.alpha + machine.alpha / sample.problem.C + b - sample.problem.y
    np.testing.assert_allclose(residual, 0.0, atol=1e-8)
    if tied:
        np.testing.assert_allclose(machine.alpha.sum(axis=0), 0.0, atol=1e-8)
