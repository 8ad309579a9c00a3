"""The outer loop: history, callbacks, interruption, warnings, warm starts."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from kernelweave.losses import Hinge, Logistic, Squared
from kernelweave.regularizers import LpNorm
from kernelweave.solvers.multiple import MKL_SOLVERS, Alternating, choose_solver
from kernelweave.solvers.single import SMO

PAIRS = [(choose_solver("auto", LpNorm(p=p)).name, p) for p in (1.0, 4 / 3, 2.0, np.inf)]
each_solver = pytest.mark.parametrize(("name", "p"), PAIRS)


def solve(sample, p, solver="auto", **options):
    regularizer = LpNorm(p=p)
    return choose_solver(solver, regularizer).solve(sample.problem, sample.gram, regularizer, **options)


@each_solver
def test_history_brackets_the_optimum(draw, loss, name, p):
    sample = draw(loss, n=40)
    solution = solve(sample, p, name, tol=1e-6, max_iter=500)
    history = {key: np.array(values) for key, values in solution.history.items()}
    assert set(history) >= {"primal", "dual", "gap", "n_passes"}
    assert {len(values) for values in history.values()} == {solution.n_iter}
    slack = 1e-9 * np.abs(history["primal"]).max()
    # weak duality holds across iterations: every dual is below every primal
    assert history["dual"].max() <= history["primal"].min() + slack
    np.testing.assert_allclose(
        history["gap"], (history["primal"] - history["dual"]) / np.maximum(np.abs(history["primal"]), 1e-12)
    )
    assert (np.diff(history["n_passes"]) > 0).all()
    assert solution.state.certificate.gap == history["gap"].min()
    assert history["gap"][-1] <= 1e-6


@each_solver
def test_the_matrix_of_the_best_weights_is_not_one_that_was_made_in_its_place(draw, name, p):
    """Weighted sums take the memory of earlier ones, and the best iterate may be an earlier one."""
    sample = draw(Hinge())
    solver = choose_solver(name, LpNorm(p=p))
    first = type("First", (type(solver),), {"is_better": lambda *args: False})()
    with pytest.warns(ConvergenceWarning):
        found = first.solve(sample.problem, sample.gram, LpNorm(p=p), tol=1e-14, max_iter=3)
    if found.matrix is not None:
        np.testing.assert_allclose(found.matrix, sample.gram.combine(found.state.weights), rtol=1e-9)


@each_solver
def test_the_matrix_is_that_of_the_best_weights(draw, name, p):
    sample = draw(Hinge())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solutions = [solve(sample, p, name, tol=1e-9, max_iter=count) for count in (1, 3, 6)]
    for solution in solutions:
        expected = np.einsum("m,mij->ij", solution.state.weights, sample.Ks)
        np.testing.assert_allclose(solution.matrix, expected, rtol=1e-9)
        np.testing.assert_allclose(solution.state.fitted, expected @ solution.state.alpha, atol=1e-8)
        squares = np.einsum("ic,mij,jc->m", solution.state.alpha, sample.Ks, solution.state.alpha)
        np.testing.assert_allclose(solution.state.squares, squares, rtol=1e-8)


@each_solver
@pytest.mark.parametrize("tol", [1e-9, 1e-15])
def test_too_few_iterations_warn_and_report_the_gap(draw, name, p, tol):
    """Also where rounding would not allow the tolerance: what kept the gap open so far is the number."""
    if np.isinf(p):
        pytest.skip("nothing to iterate")
    sample = draw(Hinge())
    with pytest.warns(
        ConvergenceWarning, match=r"the relative duality gap is .* after 2 single-kernel fits"
    ) as caught:
        solution = solve(sample, p, name, tol=tol, max_iter=2)
    assert "Increase max_iter" in str(caught[0].message)
    assert not solution.converged
    assert solution.n_iter == 2
    assert solution.state.certificate.gap > tol


@each_solver
def test_a_callback_sees_every_machine(draw, name, p):
    sample, seen = draw(Logistic()), []
    solution = solve(sample, p, name, tol=1e-5, callback=lambda i, state: seen.append((i, state)))
    assert [i for i, _ in seen] == list(range(solution.n_iter))
    np.testing.assert_allclose([state.certificate.gap for _, state in seen], solution.history["gap"])


def test_a_callback_can_stop_the_run(draw):
    sample = draw(Hinge())
    with pytest.warns(ConvergenceWarning, match="after 3 single-kernel fits"):
        solution = solve(sample, 4 / 3, tol=1e-9, callback=lambda i, state: i == 2)
    assert solution.n_iter == 3
    assert not solution.converged
    assert solution.state.certificate.gap == min(solution.history["gap"])


def test_a_callback_that_stops_a_finished_run_does_not_warn(draw):
    solution = solve(draw(Hinge()), 2.0, tol=1e-3, callback=lambda i, state: state.certificate.gap <= 1e-3)
    assert solution.converged


def interrupt_at(count):
    def callback(iteration, state):
        if iteration == count:
            raise KeyboardInterrupt

    return callback


@each_solver
def test_interruption_keeps_the_best_iterate(draw, reference, name, p):
    sample = draw(Hinge())
    count = 0 if np.isinf(p) else 2
    with pytest.warns(ConvergenceWarning, match="interrupted; the relative duality gap is"):
        solution = solve(sample, p, name, tol=1e-12, callback=interrupt_at(count))
    assert solution.n_iter == count + 1
    state = solution.state
    assert state.certificate.gap == min(solution.history["gap"])
    bounds = reference.bounds(sample, p, state.alpha, state.weights, state.certificate.intercept)
    assert state.certificate.gap == pytest.approx(reference.gap(bounds), rel=1e-6)
    assert solution.matrix is not None


def test_interruption_before_the_first_machine_is_passed_on(draw):
    class Interrupted(SMO):
        def solve_column(self, *args):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(draw(Hinge()), 2.0, Alternating(single=Interrupted()))


def test_other_errors_in_a_callback_are_passed_on(draw):
    def callback(iteration, state):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        solve(draw(Hinge()), 2.0, callback=callback)


@each_solver
def test_a_start_from_the_solution_is_not_slower(draw, name, p):
    sample = draw(Squared())
    cold = solve(sample, p, name, tol=1e-6)
    warm = solve(sample, p, name, tol=1e-6, norms=cold.state.certificate.norms)
    assert warm.n_iter <= cold.n_iter
    assert warm.state.certificate.primal == pytest.approx(cold.state.certificate.primal, rel=2e-6)


@each_solver
def test_a_solver_can_be_used_again(draw, name, p):
    """Nothing of an earlier fit is left over."""
    solver = MKL_SOLVERS[name]()
    first, other = draw(Hinge()), draw(Squared(), seed=3, n=40, M=5)
    regularizer = LpNorm(p=p)
    before = solver.solve(first.problem, first.gram, regularizer, tol=1e-5)
    solver.solve(other.problem, other.gram, regularizer, tol=1e-5)
    after = solver.solve(first.problem, first.gram, regularizer, tol=1e-5)
    np.testing.assert_array_equal(before.state.weights, after.state.weights)
    np.testing.assert_array_equal(before.state.alpha, after.state.alpha)
    assert before.history["gap"] == after.history["gap"]


@each_solver
def test_tol_is_what_stops_the_run(draw, name, p):
    sample = draw(Logistic())
    counts = []
    for tol in (1e-1, 1e-3, 1e-6):
        solution = solve(sample, p, name, tol=tol, max_iter=500)
        assert solution.state.certificate.gap <= tol
        counts.append(solution.n_iter)
    assert counts == sorted(counts)


def test_weights_stay_feasible_at_every_step(draw):
    for name, p in PAIRS:
        weights = []
        solve(
            draw(Hinge()),
            p,
            name,
            tol=1e-6,
            callback=lambda i, state, seen=weights: seen.append(state.weights),
        )
        assert all(LpNorm(p=p).price(d) == 0 for d in weights)
        assert all((d >= 0).all() for d in weights)


@pytest.mark.parametrize("name", sorted(MKL_SOLVERS))
def test_clone_and_params(name):
    solver = MKL_SOLVERS[name]()
    assert clone(solver).get_params() == solver.get_params()
    assert solver.name == name


def test_plain_alternation_never_raises_the_objective(draw, loss):
    """Kloft et al. 2011, Theorem 4: the joint objective falls, up to the accuracy of the machines."""
    sample, states = draw(loss), []
    solver = Alternating(memory=0)
    solver.solve(
        sample.problem,
        sample.gram,
        LpNorm(p=4 / 3),
        tol=1e-5,
        max_iter=500,
        callback=lambda i, state: states.append(state.certificate),
    )
    for before, after in pairwise(states):
        assert after.machine_dual <= before.machine_primal * (1 + 1e-12) + 1e-12


class Noting(SMO):
    """Writes down where it starts."""

    starts: list = []  # noqa: RUF012

    def solve(self, K, problem, tol, alpha=None):
        self.starts.append(alpha)
        return super().solve(K, problem, tol, alpha)


def test_dual_variables_alone_are_where_the_first_fit_starts(draw):
    sample = draw(Hinge())
    Noting.starts.clear()
    alpha = 0.5 * sample.problem.box()[1]
    Alternating(Noting()).solve(sample.problem, sample.gram, LpNorm(p=2), alpha=alpha)
    np.testing.assert_array_equal(Noting.starts[0], alpha)
