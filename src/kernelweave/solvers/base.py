"""What the convex methods share: weights are proposed, a machine is trained at them, and certified."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._typing import FloatArray
from ..gram import Gram
from ..gram.lowrank.engine import FactoredMatrix
from ..regularizers import Regularizer
from .certificate import Certificate, certificate
from .checkpoint import Entry, Keeper
from .growing import Begin, Known, Pilot, opening, spread
from .problem import Problem
from .run import STILL, Bracket, Callback, Method, Part, Result, Run
from .single import SMO, SingleSolver, choose_single, machine_for

#: share of the tolerance to which a first machine near the optimum is solved: a coarse one would blur it
NEAR_SHARE = 0.3

#: first accuracy of the inner machines; later ones follow the outer gap
FIRST_MACHINE_TOL = 0.02

#: a machine at weights near the last needs the rows of samples that have a dual variable, or would have one
#: if predictions changed by this share of their spread; up to this share of all rows, only those are computed
NEARBY, FEW_ROWS = 0.05, 0.45

#: after this many machines in a row whose gap may be only rounding, no other machine is trained
MOST_ROUNDING = 5

#: relative gap of a machine that was not solved at all
FAILED = 0.1

#: iterations on rounded kernels in which the gap has to shrink, and the share it has to shrink to
ROUNDED_PATIENCE, ROUNDED_PROGRESS = 10, 0.9


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
        The number that has to fall below `tol`: the relative duality gap, or for concave penalties the
        stationarity residual.
    machine_tol : float
        Relative gap to which the machine was asked to be solved.
    coefficients : dict of int to ndarray of shape (rank, c), optional
        Coefficients, if the machine has them; then `fitted` holds their values.
    products : ndarray of shape (M, n), optional
        K_m alpha on the samples whose alpha is not zero, where a solver asks for it and an engine has it.
    """

    weights: FloatArray
    alpha: FloatArray
    fitted: FloatArray
    squares: FloatArray
    certificate: Certificate
    residual: float
    machine_tol: float
    coefficients: dict[int, FloatArray] | None = None
    products: FloatArray | None = field(repr=False, default=None)


class MKLSolver(Method, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Learns weights and machine together, and proves how close they are to the optimum.

    A subclass writes ``next_weights(run, state)``, and may override ``init``; here the machine is trained
    at the proposed weights and certified, and `Run` keeps the best, calls back and stops at the wanted gap.

    Parameters
    ----------
    single : str or SingleSolver, default="auto"
        The solver of the single-kernel fit at fixed weights, the machine.
    """

    name: str
    #: abilities of the loss that the solver relies on, besides those that its machine needs
    requires: tuple[str, ...] = ()
    columns = ("primal", "dual", "gap", "n_passes")
    counts_start = True
    counted, residual_name = "single-kernel fits", "relative duality gap"
    patience = STILL

    #: whether machines need be no better than asked for; and whether those of a first look need not
    rough, rough_looks = False, False

    #: whether models that are trained together share their weights in the first look; and whether a first
    #: look comes before all matrices are read, as it tells the weights to begin with
    common_looks, foresees = False, False

    #: whether a step asks for K_m alpha, which an engine may have from alpha' K_m alpha
    needs_products = False

    #: alpha at the `next_weights`, as far as a solver can tell: the next machine starts there
    moved: FloatArray | None = None

    #: a first solve takes one sample in this many (0: no first solve), to this gap
    pilot_share, pilot_tol = 0, 0.02

    def __init__(self, single: str | SingleSolver = "auto") -> None:
        self.single = single

    # -- what a method writes -----------------------------------------------------------------

    @abstractmethod
    def can_handle(self, regularizer: Regularizer) -> bool:
        """Whether this solver is meant for that regulariser; "auto" takes the first that is."""

    def supports(self, regularizer: Regularizer) -> bool:
        """Whether this solver finds the optimum for that regulariser, even if slowly."""
        return self.can_handle(regularizer)

    def check(self, regularizer: Regularizer) -> None:
        """Refuse a regulariser this solver cannot handle, naming one that can."""
        if not self.supports(regularizer):
            raise ValueError(f"solver={self.name!r} cannot handle {regularizer!r}; use solver='auto'.")

    @abstractmethod
    def next_weights(self, run: Run, state: State) -> FloatArray | None:
        """Weights to try after `state`; None where there is nothing left to try."""

    def may_begin_at(self, regularizer: Regularizer, weights: FloatArray) -> bool:
        """Whether a run may begin at weights that are nearly those of some norms."""
        return True

    def init(self, run: Run, norms: FloatArray) -> FloatArray:
        """Forget earlier fits; return the weights to start from, which belong to the component `norms`."""
        weights: FloatArray = run.regularizer.weights(norms)
        return weights

    def restart(self, run: Run, state: State) -> FloatArray:
        """Like `init`, for an iterate of an earlier run: the weights to continue with."""
        norms = state.certificate.norms
        return self.init(run, norms if norms.any() else np.ones(len(norms)))

    def learn_from(self, run: Run, pilot: Pilot) -> None:
        """Take over what a first solve on a few samples found, besides its norms; nothing by default."""

    def learn_nearby(self, run: Run, known: Known) -> None:
        """Take over what is known from a similar problem, besides norms and weights.

        By default only that these are nearly right, if a machine begins at them.
        """
        if known.matrix is not None:
            self._first_tol = NEAR_SHARE * run.tol

    def learnt(self, found: Result, problem: Problem, gram: Gram, regularizer: Regularizer) -> Known:
        """What the last run of this solver passes on to a run on a similar problem."""
        return Known(found.state.certificate.norms, found.state.weights, found.matrix)

    def refined_norms(self, found: Result, known: Known) -> FloatArray:
        """Component norms nearer to the optimum, found at no cost; by default those of the solution."""
        norms: FloatArray = found.state.certificate.norms
        return norms

    def foresee(self, run: Run, pilots: list[Pilot]) -> Pilot:
        """The largest of the solves on few samples, with the norms to expect on all: by default its own."""
        return pilots[-1]

    def residual(self, run: Run, state: State) -> float:
        """How far an iterate is from optimal: its relative duality gap."""
        return state.certificate.gap

    def machine_tol(self, run: Run, previous: State | None) -> float:
        """Accuracy of the next machine: a fraction of the gap still open, never coarser than before."""
        if previous is None:
            return self._first_tol
        left, machine_gap = previous.residual, previous.certificate.machine_gap
        wanted = max(0.3 * left, 0.3 * run.tol)
        if machine_gap > 0.5 * left:
            # the machine's own gap is most of the gap left
            wanted = min(wanted, 0.1 * machine_gap)
        return min(previous.machine_tol, wanted)

    # -- a run --------------------------------------------------------------------------------

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
        known: Known | None = None,
    ) -> Result:
        """Solve to a relative duality gap (or stationarity residual) of `tol`.

        Parameters
        ----------
        problem, gram, regularizer
            What to solve.
        tol : float, default=1e-3
        max_iter : int, default=200
            Most single-kernel fits.
        callback : callable, optional
            Called as callback(iteration, state) after every single-kernel fit; a true answer stops
            the run. So does Ctrl-C: the best iterate is kept.
        norms : ndarray of shape (M,), optional
            Component norms to start from, such as those of a similar problem; by default the norms of the
            same problem on a part of the samples, or equal norms when there are few samples.
        alpha : ndarray of shape (n, c), optional
            Dual variables to start from; need not be feasible.
        keeper : Keeper, optional
            Where iterates are kept. A run found there is resumed, and `max_iter` includes the single-kernel
            fits that it took.
        known : Known, optional
            What was `learnt` from a similar problem; the run begins at its weights, if their sum of the
            kernels is known too.
        """
        parts, begin = (problem, gram, regularizer.bound_to(gram)), Begin(norms, alpha, known=known)
        return Run(self, *parts, tol, max_iter, callback, keeper, begin=begin).solve()

    def drive(self, run: Run) -> None:
        """Resume an earlier run if any, solve, and finish in double precision if kernels are rounded."""
        self.resume(run)
        while True:
            if run.best is None or not (run.converged or run.n_iter >= run.max_iter):
                run.iterate(opening(run))
            stops = run.told or run.n_iter >= run.max_iter
            if not self.settle(run) or stops or run.converged:
                return
            run.begin = Begin()

    def start(self, run: Run) -> State:
        """The machine at the first weights: from an earlier iterate, given norms, a pilot, or equal norms."""
        loss, regularizer = run.problem.loss, run.regularizer
        if regularizer.homogeneous and loss.alpha_sum != 0.0:
            raise ValueError(
                f"{type(loss).__name__} with {regularizer!r}: objective and penalty grow alike with the "
                "model, so the optimum is zero or unbounded; use a constraint such as LpNorm(p=1)."
            )
        machine = choose_single(self.single, loss)
        self._machine = machine.roughly() if self.rough else machine
        self._first_tol = FIRST_MACHINE_TOL
        if run.best is not None:
            self._first_tol = min(FIRST_MACHINE_TOL, 0.3 * max(run.best.residual, run.tol))
            return self.train(run, self.restart(run, run.best), run.last, run.best.alpha)
        norms, alpha, pilot, known = run.begin or Begin()
        if norms is None:
            norms = np.ones(run.gram.n_kernels) if pilot is None else pilot.norms
        if known is not None and known.matrix is not None:
            norms = known.norms
        weights = self.init(run, norms)
        if pilot is not None:
            self.learn_from(run, pilot)
            # drop its kernels before the first sum is made, which takes their place in memory
            run.begin, pilot = run.begin._replace(pilot=None), None
        if alpha is not None:
            self._first_tol = NEAR_SHARE * run.tol
        if known is not None:
            weights = weights if known.matrix is None else known.weights
            self.learn_nearby(run, known)
        if known is not None and known.start is not None:  # what the machine finds here is known too
            run.K, at, run.n_iter = known.matrix, known.start, run.n_iter + known.n_machines - 1
            run.begin = Begin()  # nobody else needs the matrix, so the next may be made in its place
            return self.certified(run, weights, at.alpha, at.fitted, at.squares, at.machine_tol)
        return self.train(run, weights, None, alpha)

    def step(self, run: Run, state: State) -> State | None:
        self.moved = None
        weights = self.next_weights(run, state)
        return None if weights is None else self.train(run, weights, state, self.moved)

    def train(
        self, run: Run, weights: FloatArray, previous: State | None, alpha: FloatArray | None = None
    ) -> State:
        """Train the machine at `weights`, from `alpha` or the previous one, and certify it."""
        machine_tol = self.machine_tol(run, previous)
        known = (run.begin or Begin()).known
        if run.K is not None and (known is None or run.K is not known.matrix):
            run.gram.release(run.K)  # the next is made in its place
            run.matrix = None if run.matrix is run.K else run.matrix
        run.K = None
        if known is not None and weights is known.weights:
            run.K = known.matrix
        run.K = K = self._matrix(run, weights, previous) if run.K is None else run.K
        start = previous.alpha if alpha is None and previous is not None else alpha
        if previous is not None and isinstance(run.K, FactoredMatrix):
            run.K.start = previous.coefficients
        # under a concave penalty, a kernel that has lost its weight never gets it back
        live = None if run.regularizer.convex else np.flatnonzero(weights)
        states: list[State] = []
        for begin in (start, None):
            K = run.gram.combine(weights) if K is None else K
            machine = machine_for(K, self._machine).solve(K, run.problem, machine_tol, begin)
            if not run.gram.spares_sums:
                run.gram.release(K)
                run.K = K = None
            if self.needs_products:
                squares, products = run.gram.quad_and_products(machine.alpha)
            else:
                squares, products = spread(run.gram.quad(machine.alpha, live), live, len(weights)), None
            parts = (weights, machine.alpha, machine.fitted, squares, machine_tol, machine.coefficients)
            states.append(replace(self.certified(run, *parts), products=products))
            # Newton steps from the solution at much smaller weights can stall: try again from zero
            if begin is None or states[0].certificate.machine_gap <= FAILED:
                break
        return min(states, key=lambda state: state.certificate.machine_gap)

    def _matrix(self, run: Run, weights: FloatArray, previous: State | None) -> Any:
        """sum_m d_m K_m, or only the rows that the machine needs.

        Of few kernels these are made when it reads them. Otherwise they are foreseen, if they are few and the
        sum is not kept anyway.
        """
        gram, problem, machine = run.gram, run.problem, self._machine
        one = isinstance(machine, SMO) and problem.shape[1] == 1 and len(problem.y) > machine.exact_samples
        on_demand = gram.rows_on_demand(weights) if one else None
        if on_demand is not None:
            return on_demand
        if previous is None or not one or gram.spares_sums or not gram.parts_in_place:
            return gram.combine(weights)
        f = previous.fitted + previous.certificate.intercept
        near = NEARBY * float(np.std(f))
        asking = (previous.alpha != 0.0) | (problem.alpha_of(f - near) != 0.0)
        needed = np.flatnonzero(asking | (problem.alpha_of(f + near) != 0.0))
        few = len(needed) <= FEW_ROWS * gram.n_samples
        return gram.some_rows(weights, needed) if few else gram.combine(weights)

    def certified(
        self,
        run: Run,
        weights: FloatArray,
        alpha: FloatArray,
        fitted: FloatArray,
        squares: FloatArray,
        machine_tol: float,
        coefficients: dict[int, FloatArray] | None = None,
    ) -> State:
        """An iterate with its certificate."""
        norms = None if coefficients is None else run.gram.component_norms(coefficients)
        parts = (run.problem, run.gram, run.regularizer)
        proof = certificate(*parts, alpha, weights, fitted, squares, norms)
        state = State(weights, alpha, fitted, squares, proof, np.nan, machine_tol, coefficients)
        return replace(state, residual=self.residual(run, state))

    def bounds(self, run: Run, state: State) -> tuple[float, float]:
        """Lower and upper bound of F(d) = J(d) + 1/2 h(d) at weights d, J the value of the machine."""
        price = 0.5 * run.regularizer.price(state.weights)
        return state.certificate.machine_dual + price, state.certificate.machine_primal + price

    # -- what a run asks ----------------------------------------------------------------------

    def is_better(self, iterate: State, best: State) -> bool:
        return iterate.residual < best.residual

    def is_done(self, run: Run) -> bool:
        """Whether the gap is closed, or what is left of it is rounding that no machine can remove.

        A run on kernels that an engine rounds is also done when its gap no longer falls.
        """
        if run.converged or run.watch.n_rounding >= MOST_ROUNDING:
            return True
        gaps = run.history["gap"]
        if not run.gram.rounds or len(gaps) <= ROUNDED_PATIENCE:
            return False
        return min(gaps[-ROUNDED_PATIENCE:]) > ROUNDED_PROGRESS * min(gaps[:-ROUNDED_PATIENCE])

    def row(self, run: Run, iterate: State) -> tuple[float, ...]:
        proof = iterate.certificate
        missed = proof.machine_gap if proof.machine_gap > 2.0 * iterate.machine_tol else 0.0
        fails = missed + proof.rounding > 0.5 * iterate.residual
        values = (proof.primal - run.problem.floor, proof.dual - run.problem.floor)
        run.watch.add(Bracket(*values, iterate.residual), proof.is_rounding, fails)
        return proof.primal, proof.dual, proof.gap, run.gram.n_passes

    def settle(self, run: Run) -> bool:
        """Certify the best iterate without the rounding of its engine, and drop that engine.

        An engine may keep or multiply kernel values in single precision. Then the problem it solves differs
        from the model's own by the rounding of the kernels, times dual variables that may be as large as C,
        and so do the primal and dual values. Here both values are computed again, from the kernel values with
        which the model predicts.

        Returns
        -------
        rounded : bool
            Whether the engine rounds; if not, nothing is done.
        """
        fine = run.gram.in_double()
        if fine is None or run.best is None:
            return False
        fine.n_passes, run.gram = run.gram.n_passes, fine
        state, rounded = run.best, run.best.certificate
        own, alpha = state.coefficients, state.alpha
        fitted = fine.dot(state.weights, alpha) if own is None else fine.values_of(own)
        parts = (state.weights, alpha, fitted, fine.quad(alpha), state.machine_tol, own)
        run.best = self.certified(run, *parts)
        proof = run.best.certificate
        for place in np.flatnonzero(np.equal(run.history["primal"], rounded.primal)).tolist():
            run.history["primal"][place], run.history["dual"][place] = proof.primal, proof.dual
            run.history["gap"][place] = proof.gap
        run.last = None  # it starts again
        return True

    def advice(self, run: Run) -> str:
        stopped = run.reason == "max_iter"  # before rounding was what is left
        if run.best.certificate.rounding > min(0.5 * run.best.residual, np.inf if stopped else run.tol):
            return "Rounding of the kernel values is the limit: centre or scale the data, or lower C."
        if run.reason == "standstill":
            return "More of them do not improve it: scale the data, lower C, or accept a larger tol."
        return "Increase max_iter, or scale the data."

    # -- checkpoints --------------------------------------------------------------------------

    def saved(self, run: Run) -> Entry:
        """Weights and alpha, those of a round spread over the whole; certificates are computed again."""
        whole, rows, kernels = run.part or Part(run)
        # a stationarity residual may rise while the objective falls: then the last iterate is the best
        state = run.best if np.isfinite(run.best.certificate.gap) else run.last
        arrays = {
            "weights": spread(state.weights, kernels, whole.gram.n_kernels),
            "alpha": spread(state.alpha, rows, whole.gram.n_samples),
        }
        machines = run.n_iter + (0 if whole is run else whole.n_iter)
        return Entry({"n_machines": machines}, arrays)

    def resume(self, run: Run) -> None:
        """Put the iterate that an earlier run kept, if any, into `run`, certified again."""
        entry = run.found()
        if entry is None:
            return
        weights, alpha = entry.arrays["weights"], entry.arrays["alpha"]
        values = (run.gram.dot(weights, alpha), run.gram.quad(alpha))
        run.best = self.certified(run, weights, alpha, *values, FIRST_MACHINE_TOL)
        run.n_iter = run.n_resumed = int(entry.values["n_machines"])
        run.gram.n_passes += max(run.history["n_passes"], default=0.0)
        self.recall(entry)

    def recall(self, entry: Entry) -> None:
        """Take over what `saved` keeps besides the iterate; nothing by default."""
