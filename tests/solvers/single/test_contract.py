"""Every single-kernel solver, on every loss it can handle, has the properties of `kernelweave.testing`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelweave.losses import Hinge, Logistic, Loss, MulticlassHinge
from kernelweave.solvers import best_intercept
from kernelweave.solvers.single import (
    SINGLE_SOLVERS,
    BlockDescent,
    LeastSquares,
    Newton,
    SingleSolver,
    choose_single,
    machine_gap,
)
from kernelweave.testing import check_solver
from kernelweave.testing.solvers import machine_cases, machines

CASES = [case for cls in SINGLE_SOLVERS.values() for case in machine_cases(cls())]
CASES += machine_cases(BlockDescent(), MulticlassHinge())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.solver.name}-{case.loss.name}")
@pytest.mark.parametrize("promise", machines.promises, ids=lambda promise: promise.__name__)
def test_contract(case, promise):
    promise(case)


class Hasty(Newton):
    """Stops early and says nothing."""

    def solve_column(self, K, problem, tol, alpha):
        return super().solve_column(K, problem, max(tol, 1e-2), alpha)


class Infeasible(LeastSquares):
    """Forgets that alpha sums to zero."""

    def solve(self, K, problem, tol, alpha=None):
        return super().solve(K, replace(problem, fit_intercept=False), tol, alpha)


@pytest.mark.parametrize("solver", [Hasty(), Infeasible()], ids=repr)
def test_a_mistake_is_found_and_named(solver):
    name = rf"^\({type(solver).__name__}\(\), .*\)"
    with pytest.raises(AssertionError, match=f"{name} breaks the contract, gap is within the tolerance: "):
        check_solver(solver)


def test_machine_gap_is_the_definition(loss, draw, reference, rng):
    sample = draw(loss, n=20, costs=True)
    alpha = sample.problem.feasible(rng.normal(size=(20, 1)))
    b = best_intercept(sample.problem, sample.K @ alpha)
    expected = reference.gap(reference.machine_bounds(sample.problem, sample.K, alpha, b))
    assert machine_gap(sample.problem, alpha, sample.K @ alpha) == pytest.approx(expected, rel=1e-9)


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
def test_registered_under_its_name(name):
    assert isinstance(SINGLE_SOLVERS[name](), SingleSolver)
    assert SINGLE_SOLVERS[name].name == name
