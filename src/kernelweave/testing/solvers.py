"""What every solver promises: machines for one matrix, and methods that move the kernel weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest import SkipTest

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._typing import FloatArray
from ..gram import DenseGram
from ..losses import LOSSES, EpsInsensitive, Hinge, Logistic, Loss, Squared
from ..regularizers import REGULARIZERS, Regularizer
from ..solvers import Problem, best_intercept
from ..solvers.base import MKLSolver
from ..solvers.checkpoint import Checkpoint, Keeper
from ..solvers.multiple import choose_solver
from ..solvers.run import Method, Result
from ..solvers.single import Machine, SingleSolver, choose_single
from ._contract import Contract, draws, expect, expect_clone, labels_like
from .losses import targets_from

machines = Contract()
methods = Contract()
runs = Contract()


class MachineCase(NamedTuple):
    """A single-kernel solver, a loss that it handles, and targets for one that couples samples."""

    solver: SingleSolver
    loss: Loss
    y: Any = None


class MethodCase(NamedTuple):
    """A solver over kernel weights and a regulariser that it supports."""

    solver: MKLSolver
    regularizer: Regularizer


class RunCase(NamedTuple):
    """A method of any kind, and a function that solves a problem with it."""

    method: Method
    solve: Callable[..., Result]


def check_solver(
    solver: SingleSolver | Method, *parts: Loss | Regularizer | Callable[..., Result], y: Any = None
) -> None:
    """Check a solver: it reaches an optimum, proved from the definitions and not by what it reports.

    Primal and dual values are recomputed from dual variables and weights, P - D has to be below the
    tolerance, and a solver that reports that it has not converged has to warn. A single-kernel solver is run
    on every loss it has the abilities for, warm and cold, with and without intercept; a solver over kernel
    weights with every regulariser that it supports.

    A method of another kind (greedy selection, kernel gradient, empirical Bayes, one of your own) has an
    objective of its own, whose optimum only its author knows. For such a method the checks cover what every
    run promises: the reason that it gives for ending, its history, its callback, Ctrl-C, checkpoints, and
    that running it again gives the same result.

    Parameters
    ----------
    solver : SingleSolver or Method
    *parts : Loss, Regularizer or callable
        What to run it with: losses for a single-kernel solver, regularisers for one over kernel weights; by
        default all registered ones that it takes. For a method of another kind, functions ``solve(method,
        callback=None, keeper=None)`` that solve a problem with it and return the `Result`.
    y : ndarray of shape (n,) or (n, k), optional
        Targets from which those of losses that couple samples are drawn; random numbers by default.

    Raises
    ------
    AssertionError
        Names the property that does not hold, the solver, and the loss or regulariser.

    Examples
    --------
    >>> from kernelweave.losses import Logistic
    >>> from kernelweave.solvers.single import Newton
    >>> from kernelweave.testing import check_solver
    >>> check_solver(Newton(), Logistic())
    >>> class Hasty(Newton):
    ...     def solve_column(self, K, problem, tol, alpha):
    ...         return super().solve_column(K, problem, 1e4 * tol, alpha)
    >>> check_solver(Hasty(), Logistic())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: (Hasty(), Logistic()) breaks the contract, gap is within the tolerance: ...
    """
    if isinstance(solver, SingleSolver):
        for machine in machine_cases(solver, *parts):
            machines.check((machine.solver, machine.loss), machine._replace(y=y))
    elif isinstance(solver, MKLSolver):
        for method in method_cases(solver, *parts):
            methods.check(tuple(method), method)
            runs.check(tuple(method), run_case(method))
    else:
        for solve in parts:
            expect(callable(solve), f"{solve!r} is no function solve(method, callback=None, keeper=None)")
            runs.check(solver, RunCase(solver, solve))


def machine_cases(solver: SingleSolver, *losses: Any) -> list[MachineCase]:
    """The solver with these losses, or with all registered ones that it handles."""
    chosen = losses or [cls() for cls in LOSSES.values() if not solver.missing(cls())]
    return [MachineCase(solver, loss) for loss in chosen]


def method_cases(solver: MKLSolver, *regularizers: Any) -> list[MethodCase]:
    """The solver with these regularisers, or with all registered ones that it supports."""
    chosen = regularizers or [cls() for cls in REGULARIZERS.values() if solver.supports(cls())]
    return [MethodCase(solver, regularizer) for regularizer in chosen]


def run_case(case: MethodCase) -> RunCase:
    """A solver over kernel weights, as a method of any kind."""
    sample = _problems(case)[0]

    def solve(method: MKLSolver, **options: Any) -> Result:
        return method.solve(sample.problem, sample.gram, case.regularizer, tol=1e-4, **options)

    return RunCase(clone(case.solver), solve)


# -- problems -----------------------------------------------------------------------------------


class Sample(NamedTuple):
    """A problem and its kernels."""

    problem: Problem
    Ks: FloatArray  # (M, n, n)

    @property
    def gram(self) -> DenseGram:
        """An engine of the kernels."""
        return DenseGram(self.Ks)

    @property
    def K(self) -> FloatArray:  # noqa: N802
        """The mean kernel, for single-kernel machines."""
        return np.asarray(self.Ks.mean(axis=0))


def draw_problem(
    loss: Loss,
    seed: int = 0,
    n: int = 60,
    M: int = 8,
    outputs: int = 1,
    C: float = 1.0,
    costs: bool = False,
    fit_intercept: bool = True,
    targets: Any = None,
) -> Sample:
    """A few features matter, the others are noise; `costs` gives every sample its own C, or case weight."""
    rng, outputs = np.random.default_rng(seed), max(outputs, 3) if loss.coupled else outputs
    X = rng.normal(size=(n, M))
    score = X[:, :3] @ rng.normal(size=(min(3, M), outputs)) + np.sin(2 * X[:, [1 % M]])
    y = labels_like(loss, score + 0.4 * rng.normal(size=score.shape))
    weight = rng.uniform(0.3, 2.0, size=n) if costs else np.ones(n)
    square = (X[:, None, :] - X[None, :, :]) ** 2
    Ks = [np.exp(-square[..., m]) if m % 4 else np.outer(X[:, m], X[:, m]) + 1.0 for m in range(M)]
    scaled = [K / (K.diagonal().mean() - K.mean()) for K in Ks]  # variance 1 in feature space
    if targets is not None and not loss.separable:
        y = targets_from(targets, n, outputs)
    return Sample(Problem.weighted(y, loss, C, weight, fit_intercept), np.array(scaled))


def dual_loss(problem: Problem, f: FloatArray, alpha: FloatArray) -> float:
    """-sum_i C_i V*(y_i, -alpha_i / C_i); if the loss couples samples, C L(f) + <alpha, f> at its alpha."""
    if problem.loss.separable:
        return problem.dual_loss(alpha)
    return problem.primal_loss(f, np.zeros(f.shape[1])) + float((alpha * f).sum())


def gap_scale(problem: Problem, primal: float, dual: float) -> float:
    """What a gap is relative to: |P| or, if the loss couples samples, what a model can gain."""
    if problem.loss.separable:
        return abs(primal)
    left = abs(primal - problem.floor)
    return min(left, max(problem.ceiling - dual, 1e-4 * left))


def _gap(
    problem: Problem, penalties: tuple[float, float], f: FloatArray, alpha: FloatArray, b: FloatArray
) -> float:
    """(P - D) / scale, P = sum_i C_i V(y_i, f_i + b) + Omega, D = -sum_i C_i V*(y_i, v_i) - Omega*."""
    expect(problem.has_right_sum(alpha), "alpha is not feasible: its sum is not what the intercept requires")
    primal, dual = problem.primal_loss(f, b) + penalties[0], dual_loss(problem, f + b, alpha) - penalties[1]
    return (primal - dual) / max(gap_scale(problem, primal, dual), 1e-12)


def _machine_gap(problem: Problem, K: FloatArray, machine: Machine) -> float:
    f = K @ machine.alpha
    b, energy = best_intercept(problem, f), 0.5 * float((machine.alpha * f).sum())
    alpha = machine.alpha if problem.loss.separable else problem.alpha_of(f + b)
    penalties = (energy, 0.5 * float((alpha * (K @ alpha)).sum()))
    return _gap(problem, penalties, f, alpha, b)


def _machine_primal(problem: Problem, K: FloatArray, alpha: FloatArray) -> float:
    f = K @ alpha
    return problem.primal_loss(f, best_intercept(problem, f)) + 0.5 * float((alpha * f).sum())


# -- machines for one matrix --------------------------------------------------------------------


def _drawn(case: MachineCase, **options: Any) -> Sample:
    return draw_problem(case.loss, targets=case.y, **options)


@machines.promise
def gap_is_within_the_tolerance(case: MachineCase) -> None:
    """(P - D) / P <= tol from the definitions, for small and large costs, with and without intercept."""
    tol = 1e-8
    for tied in (True, False):
        for costs in (True, False):
            for C in (0.1, 10.0):
                sample = _drawn(case, C=C, costs=costs, fit_intercept=tied)
                machine = case.solver.solve(sample.K, sample.problem, tol)
                expect(machine.n_iter >= 0)
                assert_allclose(machine.fitted, sample.K @ machine.alpha, rtol=1e-8, atol=1e-8)
                gap = _machine_gap(sample.problem, sample.K, machine)
                expect(-1e-12 <= gap <= tol, f"C={C}, fit_intercept={tied}: gap {gap:.3g}, tol {tol}")


@machines.promise
def warm_starts_end_at_the_same_objective(case: MachineCase) -> None:
    """From the solution, from zero and from anywhere, feasible or not; the start is left as it was."""
    tol, rng = 1e-8, draws()
    for tied in (True, False):
        sample = _drawn(case, costs=True, fit_intercept=tied)
        K, problem = sample.K, sample.problem
        cold = case.solver.solve(K, problem, tol)
        for start in (cold.alpha, 5.0 * rng.normal(size=problem.shape), np.zeros(problem.shape)):
            before = start.copy()
            warm = case.solver.solve(K, problem, tol, start)
            assert_array_equal(start, before)
            expect(_machine_gap(problem, K, warm) <= tol, "the gap of a warm start")
            found, best = (_machine_primal(problem, K, alpha) for alpha in (warm.alpha, cold.alpha))
            assert_allclose(found, best, rtol=2 * tol, atol=2 * tol)


@machines.promise
def the_optimum_is_that_of_the_default_solver(case: MachineCase) -> None:
    """K alpha of a smooth or strictly convex problem is unique: all solvers of a loss agree."""
    for tied in (True, False):
        for C in (0.3, 3.0):
            sample = _drawn(case, C=C, costs=True, fit_intercept=tied)
            ours = case.solver.solve(sample.K, sample.problem, 1e-10)
            theirs = choose_single("auto", case.loss).solve(sample.K, sample.problem, 1e-10)
            assert_allclose(ours.fitted, theirs.fitted, atol=1e-4)


@machines.promise
def outputs_are_solved_apart(case: MachineCase) -> None:
    """Each column of a machine of several outputs is the machine of that output alone."""
    if case.loss.coupled:
        raise SkipTest(f"{case.loss} couples outputs")
    for tied in (True, False):
        sample = _drawn(case, outputs=3, costs=True, fit_intercept=tied)
        together = case.solver.solve(sample.K, sample.problem, 1e-9)
        expect(together.alpha.shape == together.fitted.shape == (60, 3), f"shape {together.alpha.shape}")
        for k in range(3):
            alone = case.solver.solve(sample.K, sample.problem.column(k), 1e-9)
            assert_allclose(together.fitted[:, [k]], alone.fitted, atol=1e-6)


@machines.promise
def a_cost_of_two_is_a_sample_given_twice(case: MachineCase) -> None:
    """2 C_i V(y_i, f_i) is the cost of two equal samples."""
    for tied in (True, False):
        sample = _drawn(case, n=40, fit_intercept=tied)
        twice, counts = np.r_[np.arange(40), np.arange(10)], np.repeat([2.0, 1.0], [10, 30])[:, None]
        given = {"C": sample.problem.C * counts} if case.loss.separable else {"weight": counts}
        weighted = replace(sample.problem, **given)
        one = case.solver.solve(sample.K, weighted, 1e-9)
        two = case.solver.solve(sample.K[np.ix_(twice, twice)], sample.problem.part(twice), 1e-9)
        assert_allclose(two.fitted[:40], one.fitted, atol=1e-4)


@machines.promise
def the_same_input_gives_the_same_output(case: MachineCase) -> None:
    """To the last bit."""
    sample = _drawn(case)
    first, second = (clone(case.solver).solve(sample.K, sample.problem, 1e-6) for _ in range(2))
    assert_array_equal(first.alpha, second.alpha)


@machines.promise
def errors_name_the_missing_ability(case: MachineCase) -> None:
    """A loss that lacks what the solver requires is refused, and the message names both."""
    for loss in (cls() for cls in LOSSES.values()):
        for ability in case.solver.missing(loss)[:1]:
            sample = draw_problem(loss, n=10)
            wanted = f"{type(loss).__name__} has no `{ability}`, required by {type(case.solver).__name__}"
            try:
                case.solver.solve(sample.K, sample.problem, 1e-3)
            except ValueError as error:
                expect(wanted in str(error), f"{error} does not say: {wanted}")
            else:
                raise AssertionError(f"{loss} was accepted without `{ability}`")


@machines.promise
@methods.promise
def clone_and_parameters(case: MachineCase | MethodCase) -> None:
    """Clone, get_params and repr agree; `name` is set."""
    expect_clone(case.solver)
    expect(bool(case.solver.name))


# -- methods over the kernel weights ------------------------------------------------------------


def _problems(case: MethodCase) -> list[Sample]:
    """Losses that the solver takes, with a cost for each sample, without intercept, with two outputs."""
    known = (Squared(), Hinge(), Logistic(), EpsInsensitive())
    losses = [loss for loss in known if all(hasattr(loss, ability) for ability in case.solver.requires)]
    options: list[dict[str, Any]] = [{}, {"costs": True}, {"fit_intercept": False}, {"outputs": 2}]
    pairs = zip(losses * len(options), options, strict=False)
    return [draw_problem(loss, n=40, M=6, **chosen) for loss, chosen in pairs]


def _solve(case: MethodCase, sample: Sample, tol: float, max_iter: int = 2000) -> tuple[Any, bool]:
    """The result of a solver, and whether it warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parts = (sample.problem, sample.gram, case.regularizer)
        result = clone(case.solver).solve(*parts, tol=tol, max_iter=max_iter)
    return result, any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


def _bounds(case: MethodCase, sample: Sample, state: Any) -> tuple[float, float]:
    """Objective and relative gap at the weights and dual variables of an iterate, from their definitions."""
    regularizer, alpha = case.regularizer.bound_to(sample.gram), state.alpha
    f = np.einsum("m,mij,jc->ic", state.weights, sample.Ks, alpha, optimize=True)
    r = np.sqrt(np.maximum(np.einsum("ic,mij,jc->m", alpha, sample.Ks, alpha, optimize=True), 0.0))
    b, norms = best_intercept(sample.problem, f), state.weights * r
    primal = sample.problem.primal_loss(f, b) + regularizer.penalty(norms)
    if not regularizer.convex:
        return primal, np.nan
    share = regularizer.dual_scale(r)  # the nearest multiple of alpha that has a dual value
    penalties = (regularizer.penalty(norms), regularizer.conjugate(share * r))
    return primal, _gap(sample.problem, penalties, f, share * alpha, b)


@methods.promise
def the_optimum_is_certified(case: MethodCase) -> None:
    """(P - D) / P <= tol from the definitions, and P is the objective that the solver reports."""
    tol = 1e-5
    for sample in _problems(case):
        result, warned = _solve(case, sample, tol)
        primal, gap = _bounds(case, sample, result.state)
        expect(result.state.weights >= 0, f"weights {result.state.weights}")
        assert_allclose(result.state.certificate.primal, primal, rtol=1e-7)
        if case.regularizer.convex:
            expect(-1e-10 <= gap <= tol * (1 + 1e-6), f"{sample.problem.loss}: gap {gap:.3g}, tol {tol}")
        told = f"{sample.problem.loss}: converged={result.converged}, a warning: {warned}"
        expect(result.converged != warned and (result.converged or not case.regularizer.convex), told)


@methods.promise
def the_objective_is_that_of_the_default_solver(case: MethodCase) -> None:
    """Convex problems have one optimum, whichever solver finds it."""
    if not case.regularizer.convex:
        raise SkipTest(f"{case.regularizer} has many optima")
    tol = 1e-6
    for sample in _problems(case):
        result, _ = _solve(case, sample, tol)
        other = case._replace(solver=choose_solver("auto", case.regularizer))
        expected, _ = _solve(other, sample, tol)
        assert_allclose(result.state.certificate.primal, expected.state.certificate.primal, rtol=2 * tol)


@methods.promise
def a_run_cut_short_says_so(case: MethodCase) -> None:
    """After one machine either the gap is closed, or converged is False and there was a warning."""
    for sample in _problems(case):
        result, warned = _solve(case, sample, tol=1e-12, max_iter=1)
        _, gap = _bounds(case, sample, result.state)
        done = result.state.residual <= 1e-12 if np.isnan(gap) else gap <= 2e-12
        expect(result.converged or warned, "no warning")
        expect(done or not result.converged, f"said to have converged at a gap of {gap:.3g}")


@methods.promise
def permuting_kernels_permutes_weights(case: MethodCase) -> None:
    """The order of the kernels does not matter."""
    if case.regularizer.name == "wedge" or not case.regularizer.convex:
        raise SkipTest(f"{case.regularizer} orders its kernels, or has many optima")
    sample = _problems(case)[0]
    order = np.array([3, 0, 5, 1, 4, 2])
    one, _ = _solve(case, sample, 1e-8)
    two, _ = _solve(case, sample._replace(Ks=sample.Ks[order]), 1e-8)
    assert_allclose(two.state.weights, one.state.weights[order], atol=1e-3)


@methods.promise
def the_same_run_gives_the_same_output(case: MethodCase) -> None:
    """To the last bit."""
    sample = _problems(case)[0]
    first, second = (_solve(case, sample, 1e-4)[0] for _ in range(2))
    assert_array_equal(first.state.weights, second.state.weights)


@methods.promise
def what_is_not_supported_is_refused(case: MethodCase) -> None:
    """check() raises, naming the solver, for a regulariser that supports() denies."""
    for regularizer in (cls() for cls in REGULARIZERS.values()):
        try:
            case.solver.check(regularizer)
        except ValueError as error:
            expect(not case.solver.supports(regularizer) and repr(case.solver.name) in str(error), str(error))
        else:
            expect(case.solver.supports(regularizer), f"{regularizer} is accepted, but not supported")


# -- what every run promises --------------------------------------------------------------------


def _run(case: RunCase, **options: Any) -> tuple[Result, list[str]]:
    """The result of a run, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = case.solve(case.method, **options)
    return result, [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]


@runs.promise
def a_run_says_how_it_ended(case: RunCase) -> None:
    """One of the reasons of `Result`, no warning where it converged, and history columns of equal length."""
    result, told = _run(case)
    expect(result.reason in ("tol", "max_iter", "standstill", "n_kernels"), f"reason={result.reason!r}")
    expect(not (result.converged and told), f"converged, but warns: {told}")
    expect(tuple(result.history) == case.method.columns, f"history of {list(result.history)}")
    expect(len({len(values) for values in result.history.values()}) <= 1, "columns of different lengths")


@runs.promise
def a_run_repeats_itself(case: RunCase) -> None:
    """The same history, to the last bit."""
    (first, _), (second, _) = _run(case), _run(case)
    expect(first.n_iter == second.n_iter, f"{first.n_iter} and {second.n_iter} iterations")
    for name in case.method.columns:
        assert_array_equal(first.history[name], second.history[name])


@runs.promise
def the_callback_may_end_a_run(case: RunCase) -> None:
    """Once it has returned true it is not called again, and the run says that it was interrupted."""
    seen: list[Any] = []

    def second(iteration: int, iterate: Any) -> bool:
        seen.append(iterate)
        return len(seen) == 2

    result, _ = _run(case, callback=second)
    expect(len(seen) <= 2, f"called {len(seen)} times")
    expect(len(seen) < 2 or result.reason == "interrupted", f"reason={result.reason!r}")


@runs.promise
def ctrl_c_keeps_the_best_iterate(case: RunCase) -> None:
    """KeyboardInterrupt after an iteration leaves a result, a reason and a warning."""
    seen: list[Any] = []

    def interrupted(iteration: int, iterate: Any) -> None:
        seen.append(iterate)
        raise KeyboardInterrupt

    result, told = _run(case, callback=interrupted)
    expect(not seen or result.reason == "interrupted", f"reason={result.reason!r}")
    expect(not seen or "interrupted" in told[0], "no warning")


@runs.promise
def a_checkpoint_is_resumed(case: RunCase) -> None:
    """A run that was ended, and is started again with its checkpoint, ends for the same reason."""
    whole, _ = _run(case)
    with TemporaryDirectory() as folder:
        first = Keeper(Checkpoint(Path(folder) / "run", {}), "0")
        _run(case, callback=lambda iteration, iterate: True, keeper=first)
        first.flush()
        again = Checkpoint(Path(folder) / "run", {})
        if again.resumed:
            resumed, _ = _run(case, keeper=Keeper(again, "0"))
            expect(resumed.n_iter >= resumed.n_resumed)
            ends = (whole.converged, whole.reason), (resumed.converged, resumed.reason)
            expect(ends[0] == ends[1], f"{ends[0]} in one run, {ends[1]} after a checkpoint")
