"""Problem: feasible dual points, and the intercept that minimises the loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from kernelweave.losses import LOSSES, EpsInsensitive, Hinge, Logistic, Squared
from kernelweave.solvers import Problem, best_intercept

from ..targets import SEPARABLE


def objective(problem, f, b):
    return problem.primal_loss(f, np.array([b]))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("costs", [False, True])
@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 50.0])
def test_best_intercept_is_the_minimiser(loss, draw, rng, costs, scale):
    problem = draw(loss, n=41, costs=costs).problem
    f = scale * rng.normal(size=problem.shape)
    b = best_intercept(problem, f)
    assert b.shape == (1,)
    found, width = objective(problem, f, b[0]), 10.0 + 4.0 * np.abs(f).max()
    grid = np.linspace(-width, width, 4001)
    least = min(objective(problem, f, point) for point in grid)
    search = minimize_scalar(lambda t: objective(problem, f, t), bounds=(-width, width), method="bounded")
    assert found <= min(least, search.fun) + 1e-9 * (1.0 + abs(found))


@pytest.mark.parametrize("name", sorted(SEPARABLE))
@given(seed=st.integers(0, 1000), n=st.integers(2, 12), decade=st.integers(-6, 6))
def test_best_intercept_beats_its_neighbours(name, seed, n, decade):
    rng, loss = np.random.default_rng(seed), LOSSES[name]()
    y = (
        np.where(rng.permutation(n) < n // 2, -1.0, 1.0)
        if loss.task == "classification"
        else rng.normal(size=n)
    )
    f = 10.0**decade * np.round(rng.normal(size=(n, 1)), 1)  # rounded: ties happen
    problem = Problem(y[:, None], loss, rng.uniform(0.5, 2.0, size=(n, 1)))
    b = best_intercept(problem, f)[0]
    around = [objective(problem, f, b + step) for step in (-1.0, -1e-3, -1e-6, 1e-6, 1e-3, 1.0)]
    found = objective(problem, f, b)
    assert found <= min(around) + 1e-9 * (1.0 + abs(found) + abs(b))


def test_no_intercept_is_zero(loss, draw):
    problem = draw(loss, fit_intercept=False, outputs=2).problem
    np.testing.assert_array_equal(best_intercept(problem, np.ones(problem.shape)), np.zeros(2))


def test_outputs_have_intercepts_of_their_own(loss, draw, rng):
    problem = draw(loss, outputs=3).problem
    f = rng.normal(size=problem.shape)
    together = best_intercept(problem, f)
    alone = [best_intercept(problem.column(k), f[:, [k]])[0] for k in range(3)]
    np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_labels_of_one_kind_leave_no_loss(loss, rng):
    if loss.task != "classification":
        pytest.skip("needs labels")
    problem = Problem(np.ones((9, 1)), loss, np.ones((9, 1)))
    f = rng.normal(size=(9, 1))
    b = best_intercept(problem, f)
    assert np.isfinite(b).all()
    assert problem.primal_loss(f, b) <= 1e-9


def test_a_weight_of_two_is_a_row_given_twice(loss, draw, rng):
    problem = draw(loss, n=20).problem
    f = rng.normal(size=problem.shape)
    C = problem.C.copy()
    C[:5] *= 2.0
    twice = np.r_[np.arange(20), np.arange(5)]
    weighted = Problem(problem.y, loss, C)
    repeated = Problem(problem.y[twice], loss, problem.C[twice])
    b, c = best_intercept(weighted, f), best_intercept(repeated, f[twice])
    np.testing.assert_allclose(b, c, rtol=1e-9, atol=1e-9)
    assert weighted.primal_loss(f, b) == pytest.approx(repeated.primal_loss(f[twice], c))


@pytest.mark.parametrize("name", sorted(SEPARABLE))
@pytest.mark.parametrize("fit_intercept", [True, False])
@given(seed=st.integers(0, 1000), n=st.integers(2, 15), size=st.sampled_from([1e-3, 1.0, 1e3]))
def test_feasible_points_are_in_the_box_and_sum_up(name, fit_intercept, seed, n, size):
    rng, loss = np.random.default_rng(seed), LOSSES[name]()
    y = np.where(rng.uniform(size=(n, 2)) < 0.5, -1.0, 1.0)
    problem = Problem(y, loss, rng.uniform(1.0, 3.0, size=(n, 1)), fit_intercept)
    alpha = problem.feasible(size * rng.normal(size=(n, 2)))
    lower, upper = problem.box()
    assert (lower <= alpha).all()
    assert (alpha <= upper).all()
    assert np.isfinite(problem.dual_loss(alpha))
    if fit_intercept:
        np.testing.assert_allclose(alpha.sum(axis=0), loss.alpha_sum, atol=1e-9 * max(size, 1.0) * n)
    np.testing.assert_allclose(problem.feasible(alpha), alpha, atol=1e-9 * max(size, 1.0) * n)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_start_is_feasible(loss, draw, fit_intercept):
    problem = draw(loss, costs=True, outputs=2, fit_intercept=fit_intercept).problem
    start = problem.start()
    assert start.shape == problem.shape
    np.testing.assert_allclose(problem.feasible(start), start, atol=1e-12)
    assert np.isfinite(problem.dual_loss(start))


def test_alpha_of_predictions_is_minus_the_scaled_gradient(loss, draw, rng):
    problem = draw(loss, costs=True).problem
    f = rng.normal(size=problem.shape)
    alpha = problem.alpha_of(f)
    np.testing.assert_allclose(alpha, -problem.C * loss.gradient(problem.y, f))
    # Fenchel-Young holds with equality, sample by sample
    total = problem.primal_loss(f, np.zeros(1)) - problem.dual_loss(alpha)
    assert total == pytest.approx(-float((alpha * f).sum()))


def test_columns_and_subsets(draw):
    problem = draw(Squared(), outputs=3, costs=True).problem
    assert problem.shape == (60, 3)
    np.testing.assert_array_equal(problem.column(1).y[:, 0], problem.y[:, 1])
    rows = np.array([3, 1, 7])
    part = problem.subset(rows)
    np.testing.assert_array_equal(part.y, problem.y[rows])
    assert part.C.sum() == pytest.approx(problem.C.sum())
    np.testing.assert_allclose(part.C / part.C.sum(), problem.C[rows] / problem.C[rows].sum())


def test_spread_takes_every_kind_of_target(draw):
    problem = draw(Hinge()).problem
    rows = problem.spread(20)
    assert len(np.unique(rows)) == 20
    assert problem.y[rows].sum() == pytest.approx(0.0, abs=2.0)
    real = draw(EpsInsensitive()).problem
    chosen = real.y[real.spread(10), 0]
    assert (chosen.min(), chosen.max()) == (real.y.min(), real.y.max())


@pytest.mark.parametrize("scale", [0.0, 0.3, 3.0])
def test_the_other_sign_of_everything_is_the_other_intercept(loss, draw, rng, scale):
    """Where a whole interval is best, as for balanced labels far inside the margin, its middle is taken."""
    if loss.task in ("one_class", "survival"):
        pytest.skip("one-sided")
    problem = draw(loss, n=40).problem
    f = scale * rng.normal(size=problem.shape)
    mirrored = Problem(-problem.y, loss, problem.C)
    np.testing.assert_allclose(best_intercept(mirrored, -f), -best_intercept(problem, f), atol=1e-9)


def test_logistic_intercept_of_balanced_labels_is_the_log_odds():
    y = np.array([[1.0], [1.0], [1.0], [-1.0]])
    b = best_intercept(Problem(y, Logistic(), np.ones((4, 1))), np.zeros((4, 1)))
    assert b[0] == pytest.approx(np.log(3.0), abs=1e-9)
