"""Every single-kernel solver on every loss it can handle reaches the optimum, and proves it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from kernelweave.losses import LOSSES, Hinge, Logistic, Loss
from kernelweave.solvers import Problem, best_intercept
from kernelweave.solvers.single import SINGLE_SOLVERS, SingleSolver, choose_single, machine_gap

PAIRS = [
    (name, loss, tied)
    for name, cls in SINGLE_SOLVERS.items()
    for loss in LOSSES
    for tied in (True, False)
    if not cls().missing(LOSSES[loss]())
]


def certified_gap(reference, problem, K, machine):
    b = best_intercept(problem, K @ machine.alpha)
    return reference.gap(reference.machine_bounds(problem, K, machine.alpha, b))


@pytest.mark.parametrize(("name", "loss_name", "tied"), PAIRS)
@pytest.mark.parametrize("costs", [False, True])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_gap_is_within_the_tolerance(draw, reference, name, loss_name, tied, costs, C):
    sample = draw(LOSSES[loss_name](), C=C, costs=costs, fit_intercept=tied)
    tol = 1e-8
    machine = SINGLE_SOLVERS[name]().solve(sample.K, sample.problem, tol)
    assert machine.n_iter >= 0
    np.testing.assert_allclose(machine.fitted, sample.K @ machine.alpha, rtol=1e-8, atol=1e-8)
    assert -1e-12 <= certified_gap(reference, sample.problem, sample.K, machine) <= tol


@pytest.mark.parametrize(("name", "loss_name", "tied"), PAIRS)
def test_warm_starts_end_at_the_same_objective(draw, reference, rng, name, loss_name, tied):
    sample = draw(LOSSES[loss_name](), costs=True, fit_intercept=tied)
    tol = 1e-8
    solver = SINGLE_SOLVERS[name]()
    cold = solver.solve(sample.K, sample.problem, tol)
    best = reference.machine_bounds(sample.problem, sample.K, cold.alpha, np.zeros(1))[1]
    for start in (cold.alpha, 5.0 * rng.normal(size=(60, 1)), np.zeros((60, 1))):
        before = start.copy()
        warm = solver.solve(sample.K, sample.problem, tol, start)
        np.testing.assert_array_equal(start, before)
        assert certified_gap(reference, sample.problem, sample.K, warm) <= tol
        dual = reference.machine_bounds(sample.problem, sample.K, warm.alpha, np.zeros(1))[1]
        assert dual == pytest.approx(best, rel=2 * tol, abs=2 * tol)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("C", [0.3, 3.0])
def test_solvers_of_one_loss_agree(draw, loss, tied, C):
    sample = draw(loss, C=C, costs=True, fit_intercept=tied)
    able = [name for name, other, with_b in PAIRS if other == loss.name and with_b == tied]
    assert able
    fits = [SINGLE_SOLVERS[name]().solve(sample.K, sample.problem, 1e-10).fitted for name in able]
    for fitted in fits[1:]:
        np.testing.assert_allclose(fitted, fits[0], atol=1e-4)


@pytest.mark.parametrize(("name", "loss_name", "tied"), PAIRS)
def test_outputs_are_solved_apart(draw, name, loss_name, tied):
    sample = draw(LOSSES[loss_name](), outputs=3, costs=True, fit_intercept=tied)
    solver = SINGLE_SOLVERS[name]()
    together = solver.solve(sample.K, sample.problem, 1e-9)
    assert together.alpha.shape == together.fitted.shape == (60, 3)
    for k in range(3):
        alone = solver.solve(sample.K, sample.problem.column(k), 1e-9)
        np.testing.assert_allclose(together.fitted[:, [k]], alone.fitted, atol=1e-6)


@pytest.mark.parametrize(("name", "loss_name", "tied"), PAIRS)
def test_a_cost_of_two_is_a_sample_given_twice(draw, name, loss_name, tied):
    sample = draw(LOSSES[loss_name](), n=40, fit_intercept=tied)
    twice = np.r_[np.arange(40), np.arange(10)]
    C = sample.problem.C.copy()
    C[:10] *= 2.0
    weighted = Problem(sample.problem.y, sample.problem.loss, C, tied)
    repeated = Problem(sample.problem.y[twice], sample.problem.loss, sample.problem.C[twice], tied)
    solver, tol = SINGLE_SOLVERS[name](), 1e-9
    one = solver.solve(sample.K, weighted, tol)
    two = solver.solve(sample.K[np.ix_(twice, twice)], repeated, tol)
    np.testing.assert_allclose(two.fitted[:40], one.fitted, atol=1e-4)


@pytest.mark.parametrize("name", sorted(SINGLE_SOLVERS))
def test_the_same_input_gives_the_same_output(draw, name):
    loss = next(other for solver, other, _ in PAIRS if solver == name)
    sample = draw(LOSSES[loss]())
    first, second = (SINGLE_SOLVERS[name]().solve(sample.K, sample.problem, 1e-6) for _ in range(2))
    np.testing.assert_array_equal(first.alpha, second.alpha)


def test_machine_gap_is_the_definition(loss, draw, reference, rng):
    sample = draw(loss, n=20, costs=True)
    alpha = sample.problem.feasible(rng.normal(size=(20, 1)))
    b = best_intercept(sample.problem, sample.K @ alpha)
    expected = reference.gap(reference.machine_bounds(sample.problem, sample.K, alpha, b))
    assert machine_gap(sample.problem, alpha, sample.K @ alpha) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", sorted(SINGLE_SOLVERS))
def test_errors_name_the_missing_ability(draw, name):
    solver = SINGLE_SOLVERS[name]()
    unable = [cls() for cls in LOSSES.values() if solver.missing(cls())]
    assert unable
    for loss in unable:
        sample = draw(loss, n=10)
        missing = solver.missing(loss)[0]
        message = f"{type(loss).__name__} has no `{missing}`, required by {type(solver).__name__}"
        with pytest.raises(ValueError, match=message):
            solver.solve(sample.K, sample.problem, 1e-3)


def test_auto_takes_the_first_that_can(loss):
    chosen = choose_single("auto", loss)
    assert not chosen.missing(loss)
    able = [cls for cls in SINGLE_SOLVERS.values() if not cls().missing(loss)]
    assert type(chosen) is able[0]


def test_solvers_by_name_and_by_object():
    solver = SINGLE_SOLVERS["smo"](max_iter=7)
    assert choose_single(solver, Hinge()) is solver
    assert type(choose_single("newton", Logistic())) is SINGLE_SOLVERS["newton"]
    with pytest.raises(ValueError, match="single='svm' is not a single-kernel solver: pass one of"):
        choose_single("svm", Hinge())


def test_a_loss_nobody_can_handle_is_named():
    class Bare(Loss):
        pass

    with pytest.raises(ValueError, match="no single-kernel solver can handle Bare: give it `hessian`"):
        choose_single("auto", Bare())


@pytest.mark.parametrize("name", sorted(SINGLE_SOLVERS))
def test_clone_and_params(name):
    solver = SINGLE_SOLVERS[name]()
    assert isinstance(solver, SingleSolver)
    assert clone(solver).get_params() == solver.get_params()
    assert solver.name == name
