"""The outer loop, once: iterate, certify, remember, report, stop."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from .._typing import FloatArray, IntArray
from .._warnings import warn
from ..gram import Gram
from ..gram.lowrank.matrix import FactoredMatrix
from ..regularizers import Regularizer
from .certificate import Certificate, certificate
from .checkpoint import Keeper, Place, Snapshot
from .problem import Problem
from .recheck import WhileItHelps, recheck
from .single import SingleSolver, choose_single, machine_for

#: first accuracy of the inner machines; later ones follow the outer gap
FIRST_MACHINE_TOL = 0.02

#: machines in a row whose gap is what rounding may have made of it, after which no other is trained
MOST_ROUNDING = 5

#: relative gap of a machine that was not solved at all
FAILED = 0.1

#: a run stands still when so many machines brought its bounds no nearer than to this share of their distance;
#: and it is slow
STILL, SLOW = (20, 0.999), (12, 0.9)

#: machines in a row that were not solved as well as asked for, or not without rounding, and to whom most of
#: the gap is due, after which a run that stands still ends: no other weights will help
MOST_FAILING = 5

#: relative fall of the objective, where that has no lower bound, which is more than rounding
FALL = 1e-9

#: samples up to which the matrix of the best iterate is kept for whoever comes after the fit
MOST_KEPT = 5000

#: one sample in so many for the first look that chooses the samples to begin with
GROWING_SHARE = 4

#: a first look at a problem takes no fewer samples than the one, and no more than the other
PILOT_SAMPLES, PILOT_MOST = 200, 4000


@dataclass(frozen=True)
class State:
    """An iterate: weights, the machine trained at them, and its certificate.

    Attributes
    ----------
    weights : ndarray of shape (M,)
    alpha : ndarray of shape (n, c)
    fitted : ndarray of shape (n, c)
        sum_m d_m K_m alpha.
    squares : ndarray of shape (M,)
        s_m = alpha' K_m alpha.
    certificate : Certificate
    residual : float
        What has to fall below `tol`: the relative duality gap, or for concave penalties the
        stationarity residual.
    machine_tol : float
        Relative gap to which the machine was asked to be solved.
    coefficients : dict of int to ndarray of shape (rank, c), optional
        Those of a machine that has them; `fitted` are their values then.
    """

    weights: FloatArray
    alpha: FloatArray
    fitted: FloatArray
    squares: FloatArray
    certificate: Certificate
    residual: float
    machine_tol: float
    coefficients: dict[int, FloatArray] | None = None


@dataclass(frozen=True)
class Solution:
    """What a solver returns: the best certified iterate and how it got there.

    Attributes
    ----------
    state : State
    n_iter : int
        Single-kernel machines trained.
    converged : bool
        Whether the residual is within `tol`.
    matrix : ndarray of shape (n, n) or None
        sum_m d_m K_m at the weights of `state`; None once dropped to save memory.
    history : dict of list
        "primal", "dual", "gap" and "n_passes" (over the kernel matrices) of every iteration.
    n_resumed : int
        Machines trained by an earlier run that this one went on from.
    """

    state: State
    n_iter: int
    converged: bool
    matrix: FloatArray | None = field(repr=False)
    history: dict[str, list[float]] = field(repr=False)
    n_resumed: int = 0


@dataclass(frozen=True)
class Pilot:
    """A first solve on a few of the samples.

    Attributes
    ----------
    rows : ndarray of int
        The samples.
    problem, gram
        What was solved.
    state : State
        The best iterate.
    matrix : ndarray
        sum_m d_m K_m at its weights.
    norms : ndarray of shape (M,)
        Component norms to expect on all samples.
    """

    rows: IntArray
    problem: Problem
    gram: Gram
    state: State
    matrix: FloatArray = field(repr=False)
    norms: FloatArray = field(repr=False)


#: called after every machine; a true answer stops the run
Callback = Callable[[int, State], bool | None]


class MKLSolver(BaseEstimator):
    """Learns weights and machine together: `init` gives the first weights, `step` the next.

    A subclass writes ``next_weights(state)``, and may override ``init``; the loop here trains
    the machine at the proposed weights, certifies it, keeps the best, calls back and stops at
    the wanted gap.

    Parameters
    ----------
    single : str or SingleSolver, default="auto"
        The machine for fixed weights.
    """

    name: str

    #: a first solve on one sample in so many (0: none), to this gap
    pilot_share, pilot_tol = 0, 0.02

    #: machines that may bring the bounds no nearer than to this share of their distance, before the successor
    #: takes over, or where there is none the run ends
    patience = STILL

    def __init__(self, single: str | SingleSolver = "auto") -> None:
        self.single = single

    @abstractmethod
    def can_handle(self, regularizer: Regularizer) -> bool:
        """Whether this solver is meant for that regulariser; "auto" takes the first that is."""

    def supports(self, regularizer: Regularizer) -> bool:
        """Whether this solver finds the optimum for that regulariser, if slowly."""
        return self.can_handle(regularizer)

    def check(self, regularizer: Regularizer) -> None:
        """Refuse a regulariser this solver cannot handle, naming one that can."""
        if not self.supports(regularizer):
            raise ValueError(f"solver={self.name!r} cannot handle {regularizer!r}; use solver='auto'.")

    @abstractmethod
    def next_weights(self, state: State) -> FloatArray | None:
        """Weights to try after `state`; None where there is nothing left to try."""

    def successor(self) -> MKLSolver | None:
        """A solver, slower or not, that closes the gap where this one no longer does."""
        return None

    def init(self, problem: Problem, gram: Gram, regularizer: Regularizer, norms: FloatArray) -> FloatArray:
        """Forget earlier fits; return the weights to start from, those of the component `norms`."""
        self._setup(problem, gram, regularizer)
        return regularizer.weights(norms)

    def _setup(self, problem: Problem, gram: Gram, regularizer: Regularizer) -> None:
        check_pair(problem, regularizer)
        self._problem, self._gram, self._regularizer = problem, gram, regularizer
        self._machine = choose_single(self.single, problem.loss)
        self._first_tol = FIRST_MACHINE_TOL

    def step(
        self, weights: FloatArray, previous: State | None, tol: float, alpha: FloatArray | None = None
    ) -> State:
        """Train the machine at `weights`, from `alpha` or the previous one, and certify it."""
        machine_tol = self.machine_tol(previous, tol)
        self._K: FloatArray = np.empty((0, 0))  # let go of the last one before the next is made
        self._K = self._gram.combine(weights)
        start = alpha if previous is None else previous.alpha
        if previous is not None and isinstance(self._K, FactoredMatrix):
            self._K.start = previous.coefficients
        state = self._trained(weights, machine_tol, start)
        if state.certificate.machine_gap > FAILED and start is not None:
            # Newton steps from the solution at much smaller weights can stall
            state = min(state, self._trained(weights, machine_tol, None), key=_machine_gap)
        return state

    def _trained(self, weights: FloatArray, machine_tol: float, start: FloatArray | None) -> State:
        machine = machine_for(self._K, self._machine).solve(self._K, self._problem, machine_tol, start)
        squares, alpha, own = self._squares(machine.alpha, weights), machine.alpha, machine.coefficients
        parts = (self._problem, self._gram, self._regularizer)
        norms = self._gram.component_norms(own) if own is not None else None
        proof = certificate(*parts, alpha, weights, machine.fitted, squares, norms)
        residual = self.residual(proof, weights)
        return State(weights, alpha, machine.fitted, squares, proof, residual, machine_tol, own)

    def residual(self, proof: Certificate, weights: FloatArray) -> float:
        """How far an iterate is from optimal: its relative duality gap."""
        return proof.gap

    def machine_tol(self, previous: State | None, tol: float) -> float:
        """Accuracy of the next machine: a fraction of what is still to close, never coarser than before."""
        if previous is None:
            return self._first_tol
        left, machine_gap = previous.residual, previous.certificate.machine_gap
        wanted = max(0.3 * left, 0.3 * tol)
        if machine_gap > 0.5 * left:
            # the machine's own gap is most of what is left
            wanted = min(wanted, 0.1 * machine_gap)
        return min(previous.machine_tol, wanted)

    def _squares(self, alpha: FloatArray, weights: FloatArray) -> FloatArray:
        """s_m of the kernels that can still carry weight."""
        return self._gram.quad(alpha)

    def solve(
        self,
        problem: Problem,
        gram: Gram,
        regularizer: Regularizer,
        tol: float = 1e-3,
        max_iter: int = 200,
        callback: Callback | None = None,
        norms: FloatArray | None = None,
        alpha: FloatArray | None = None,
        keeper: Keeper | None = None,
    ) -> Solution:
        """Solve to a relative duality gap (or stationarity residual) of `tol`.

        Parameters
        ----------
        problem, gram, regularizer
            What to solve.
        tol : float, default=1e-3
        max_iter : int, default=200
            Most machines to train.
        callback : callable, optional
            Called as callback(iteration, state) after every machine; a true answer stops
            the run. So does Ctrl-C: the best iterate is kept.
        norms : ndarray of shape (M,), optional
            Component norms to start from, such as those of a similar problem; by default those
            of the same problem on a part of the samples, or equal ones when there are few.
        alpha : ndarray of shape (n, c), optional
            Dual variables to start from; need not be feasible.
        keeper : Keeper, optional
            Where iterates are kept; one found there is gone on from, and `max_iter` counts the
            machines that it took.
        """
        from .many_kernels import Told

        keeper, told = Keeper() if keeper is None else keeper, Told(callback)
        regularizer, run = regularizer.bound_to(gram), Run(gram, tol, keeper.place())
        try:
            self._solve(run, problem, regularizer, max_iter, WhileItHelps(told, run), norms, alpha, keeper)
            goes_on = run.n_machines < max_iter and not told.stop
            if recheck(self, run, problem, regularizer) and goes_on and not run.converged:
                self._solve(run, problem, regularizer, max_iter, told, None, None, keeper)
        except KeyboardInterrupt:
            keeper.flush()
            if run.best is None:
                raise
            recheck(self, run, problem, regularizer)
            warn(f"interrupted; {run.describe()}", ConvergenceWarning)
            return run.solution()
        if not run.converged:
            advice = "Increase max_iter, or scale the data."
            if run.ended_early:
                advice = "More machines do not improve it: scale the data, lower C, or accept a larger tol."
            if run.best.certificate.rounding > 0.5 * run.best.residual:
                advice = "Rounding of the kernel values is the limit: centre or scale the data, or lower C."
            warn(f"{run.describe()} {advice}", ConvergenceWarning)
        return run.solution()

    def _solve(
        self,
        run: Run,
        problem: Problem,
        regularizer: Regularizer,
        max_iter: int,
        callback: Callback | None,
        norms: FloatArray | None,
        alpha: FloatArray | None,
        keeper: Keeper,
    ) -> None:
        """Choose a start, and whether all samples and all kernels take part from the start."""
        from .growing import Growing, can_grow
        from .many_kernels import MANY, SelectingKernels, can_select, start_of

        gram = run.gram
        cold = run.best is None and not self.resume(run, problem, regularizer, keeper.found())
        if not cold and (run.converged or run.n_machines >= max_iter):
            return
        if norms is None and can_select(gram, regularizer):
            SelectingKernels(self, problem, gram, regularizer, run.best, keeper).run(run, max_iter, callback)
            return
        if can_grow(problem, gram, regularizer):
            share = GROWING_SHARE
            pilot = self.pilot(problem, gram, regularizer, share, keeper) if cold else None
            Growing(self, problem, gram, regularizer, pilot, run.best).run(run, max_iter, callback)
            return
        cold = cold and norms is None
        pilot = self.pilot(problem, gram, regularizer, self.pilot_share, keeper) if cold else None
        if cold and pilot is None and gram.n_kernels >= MANY:
            norms, alpha = start_of(self, problem, gram, regularizer, keeper)
        self.run(run, problem, regularizer, max_iter, callback, pilot, norms, alpha)

    def run(
        self,
        run: Run,
        problem: Problem,
        regularizer: Regularizer,
        max_iter: int,
        callback: Callback | None = None,
        pilot: Pilot | None = None,
        norms: FloatArray | None = None,
        alpha: FloatArray | None = None,
    ) -> None:
        """Iterate from where `run` is, given norms, those of a pilot, or equal ones; record into `run`."""
        if run.best is not None:
            weights, alpha = self.restart(problem, run.gram, regularizer, run.best), run.best.alpha
            self._first_tol = min(FIRST_MACHINE_TOL, 0.3 * max(run.best.residual, run.tol))
            self._to_the_end(run, weights, problem, regularizer, max_iter, callback, alpha)
            return
        if norms is None:
            norms = np.ones(run.gram.n_kernels) if pilot is None else pilot.norms
        weights = self.init(problem, run.gram, regularizer, norms)
        if pilot is not None:
            self.learn_from(pilot, run.tol)
        if alpha is not None:
            self._first_tol = 0.3 * run.tol  # a coarse machine would only blur a start near the optimum
        self._to_the_end(run, weights, problem, regularizer, max_iter, callback, alpha)

    def _to_the_end(
        self,
        run: Run,
        weights: FloatArray,
        problem: Problem,
        regularizer: Regularizer,
        max_iter: int,
        callback: Callback | None,
        alpha: FloatArray | None,
    ) -> None:
        """Iterate; where that no longer closes the gap, a solver that does goes on."""
        successor = self.successor()
        run.ended_early = not self._iterate(run, weights, max_iter, callback, alpha)
        if run.ended_early and successor is not None and not run.fails() and run.n_machines < max_iter:
            successor.run(run, problem, regularizer, max_iter, callback)

    def _iterate(
        self,
        run: Run,
        weights: FloatArray,
        max_iter: int,
        callback: Callback | None = None,
        alpha: FloatArray | None = None,
    ) -> bool:
        """Whether it came to its end: False where it has come to a standstill."""
        first = len(run.seen)
        for iteration in range(run.n_machines, max_iter):
            run.record(self.step(weights, run.last, run.tol, alpha), self._K)
            if (callback is not None and callback(iteration, run.last)) or run.finished:
                return True
            proposal = self.next_weights(run.last)
            if proposal is None or run.stands_still(first, *self.patience) or run.fails(first):
                return False
            weights = proposal
        return True

    def resume(self, run: Run, problem: Problem, regularizer: Regularizer, snapshot: Snapshot | None) -> bool:
        """Put the iterate of a snapshot into `run`, certified anew; whether there was one."""
        if snapshot is None:
            return False
        gram, weights, alpha = run.gram, snapshot.weights, snapshot.alpha
        self._setup(problem, gram, regularizer)
        fitted, squares = gram.dot(weights, alpha), gram.quad(alpha)
        proof = certificate(problem, gram, regularizer, alpha, weights, fitted, squares)
        residual = self.residual(proof, weights)
        run.resume(State(weights, alpha, fitted, squares, proof, residual, FIRST_MACHINE_TOL), snapshot)
        return True

    def restart(self, problem: Problem, gram: Gram, regularizer: Regularizer, state: State) -> FloatArray:
        """`init` for an iterate of an earlier run: the weights to go on with."""
        norms = state.certificate.norms
        return self.init(problem, gram, regularizer, norms if norms.any() else np.ones(len(norms)))

    def pilot(
        self, problem: Problem, gram: Gram, regularizer: Regularizer, share: int, keeper: Keeper
    ) -> Pilot | None:
        """The problem solved on one sample in `share`: a good start, found at little cost."""
        count = min(max(PILOT_SAMPLES, gram.n_samples // max(share, 1)), PILOT_MOST)
        if not share or gram.n_samples < 3 * count:
            return None
        rows = problem.spread(count)
        part, few = gram.subset(rows), problem.subset(rows)
        fewer = self._solved_on(few.spread(count // 2), few, part, regularizer, keeper)
        pilot = self._solved_on(np.arange(count), few, part, regularizer, keeper, fewer)
        gram.n_passes += part.n_passes * (count / gram.n_samples) ** 2
        return replace(pilot, rows=rows, norms=self.foreseen_norms(fewer, pilot, gram.n_samples))

    def _solved_on(
        self,
        rows: IntArray,
        problem: Problem,
        gram: Gram,
        regularizer: Regularizer,
        keeper: Keeper,
        start: Pilot | None = None,
    ) -> Pilot:
        """The problem solved on some of the samples."""
        everything = len(rows) == gram.n_samples
        part, few = (gram, problem) if everything else (gram.subset(rows), problem.subset(rows))
        phase = f"pilot {len(rows)}"
        solver, run = clone(self), Run(part, self.pilot_tol, keeper.place(phase))
        if not (solver.resume(run, few, regularizer, keeper.found(phase)) and run.converged):
            solver.run(run, few, regularizer, 30, pilot=start)
        matrix = part.combine(run.best.weights) if run.matrix is None else run.matrix
        return Pilot(rows, few, part, run.best, matrix, run.best.certificate.norms)

    def foreseen_norms(self, fewer: Pilot, pilot: Pilot, n_samples: int) -> FloatArray:
        """Component norms to expect on all samples after two solves on a few; those of the larger one."""
        return pilot.norms

    def learn_from(self, pilot: Pilot, tol: float) -> None:
        """Take over what a first solve on a few samples found, besides its norms; nothing by default."""


class Bounds(NamedTuple):
    """What brackets the optimum, and the residual; of an iterate, or the best of several."""

    primal: float
    dual: float
    residual: float


def _bounds(several: list[Bounds]) -> Bounds:
    primal, dual, residual = zip(*several, strict=True)
    return Bounds(min(primal), max(dual), min(residual))


class Run:
    """Best and last iterate of a run, and its history."""

    last: State
    best: State
    matrix: FloatArray | None = None

    def __init__(self, gram: Gram, tol: float, keep: Place | None = None) -> None:
        self.gram, self.tol, self.keep = gram, tol, keep
        self.last = self.best = None  # type: ignore[assignment]
        self.n_machines = self.n_resumed = self.n_rounding = self.n_failing = 0
        self.history: dict[str, list[float]] = {"primal": [], "dual": [], "gap": [], "n_passes": []}
        self.seen: list[Bounds] = []  # of the iterates of this run, not of those it went on from
        self.ended_early = False  # at a standstill, with machines left

    @property
    def converged(self) -> bool:
        return self.best.residual <= self.tol

    @property
    def finished(self) -> bool:
        """Whether the best iterate has converged, or the last ones had only rounding left."""
        return self.converged or self.n_rounding >= MOST_ROUNDING

    def record(self, state: State, matrix: FloatArray | None) -> None:
        self.last, self.n_machines = state, self.n_machines + 1
        self.n_rounding = self.n_rounding + 1 if state.certificate.is_rounding else 0
        if self.best is None or state.residual < self.best.residual:
            keep = matrix is not None and len(matrix) <= MOST_KEPT
            self.best, self.matrix = state, matrix if keep else None
        proof = state.certificate
        missed = proof.machine_gap if proof.machine_gap > 2.0 * state.machine_tol else 0.0
        self.n_failing = self.n_failing + 1 if missed + proof.rounding > 0.5 * state.residual else 0
        self.seen.append(Bounds(proof.primal, proof.dual, state.residual))
        values = (proof.primal, proof.dual, proof.gap, self.gram.n_passes)
        for key, value in zip(self.history, values, strict=True):
            self.history[key].append(value)
        if self.keep is not None:
            self.keep(self)

    def stands_still(self, first: int, window: int, share: float) -> bool:
        """Whether the last `window` iterates, of those since the `first`, brought next to nothing.

        The least primal and the largest dual value so far bracket the optimum. Neither the bracket nor
        the least residual has then shrunk to `share` of what it was, nor has one of the values changed
        by as much of itself, as they do far from the optimum. Where there is no dual value, the
        objective has not fallen.
        """
        if len(self.seen) - first <= window:
            return False
        before, now = _bounds(self.seen[first:-window]), _bounds(self.seen[first:])
        settled = now.residual > share * before.residual
        if np.isfinite(now.dual):
            change = max(before.primal - now.primal, now.dual - before.dual)
            settled &= now.primal - now.dual > share * (before.primal - before.dual)
            return settled and change <= (1.0 - share) * min(abs(before.primal), abs(before.dual))
        return settled and before.primal - now.primal <= FALL * abs(before.primal)

    def fails(self, first: int = 0) -> bool:
        """Whether it stands still because of its machines: the last ones were the limit, not the weights."""
        return self.n_failing >= MOST_FAILING and self.stands_still(first, MOST_FAILING, SLOW[1])

    def resume(self, state: State, snapshot: Snapshot) -> None:
        """Go on from an iterate of an earlier run."""
        self.best, self.n_machines = state, snapshot.n_machines
        self.n_resumed = snapshot.n_machines
        self.history = {name: list(values) for name, values in snapshot.history.items()}
        self.gram.n_passes += max(self.history["n_passes"], default=0.0)

    def place(self, rows: IntArray | None = None, kernels: IntArray | None = None) -> Place | None:
        """Where rounds on some samples or kernels keep their iterates."""
        return None if self.keep is None else self.keep.inside(self, rows, kernels)

    def describe(self) -> str:
        state = self.best
        what = "relative duality gap" if np.isfinite(state.certificate.gap) else "stationarity residual"
        return f"the {what} is {state.residual:.2g} after {self.n_machines} machines (tol={self.tol:g})."

    def solution(self) -> Solution:
        return Solution(self.best, self.n_machines, self.converged, self.matrix, self.history, self.n_resumed)


def _machine_gap(state: State) -> float:
    return state.certificate.machine_gap


def check_pair(problem: Problem, regularizer: Regularizer) -> None:
    """Refuse a loss and a regulariser that together have no finite optimum."""
    if regularizer.homogeneous and problem.loss.alpha_sum != 0.0:
        raise ValueError(
            f"{type(problem.loss).__name__} with {regularizer!r}: objective and penalty grow alike with the "
            "model, so the optimum is zero or unbounded; use a constraint such as LpNorm(p=1)."
        )
