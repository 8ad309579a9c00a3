"""The loop, once: start, step, keep, report, stop, warn. What differs between the papers is a `Method`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._typing import FloatArray, IntArray
from .._warnings import warn
from .checkpoint import Entry, Keeper

#: up to this many samples, the matrix of the best iterate is kept for use after the fit
MOST_KEPT = 5000

#: a run that stands still ends after this many machines in a row that were not solved as well as asked for,
#: or only up to rounding, and that cause most of the gap: no other weights will help
MOST_FAILING = 5

#: number of machines that have to bring the bounds of a run closer together than this share of their
#: distance: if they do not, the run stands still; and the same for a slow run
STILL, SLOW = (20, 0.999), (12, 0.9)

#: relative fall of the objective that is more than rounding, for objectives without a lower bound
FALL = 1e-9

#: called as callback(iteration, iterate) after every iteration; a true answer stops the run
Callback = Callable[[int, Any], bool | None]


@dataclass(frozen=True)
class Result:
    """What every method returns: its best iterate, and how it got there.

    Attributes
    ----------
    state : object
        The iterate: a `State` of the convex methods (weights, alpha, certificate), a `KernelPoint` of
        kernel gradient (d, alpha, intercept), an `EvidencePoint` of empirical Bayes (weights, posterior),
        a `GreedyPoint` (stages).
    n_iter : int
        Single-kernel machines trained by the convex methods; accepted steps of the others.
    converged : bool
        Whether the residual of `state` is within `tol`.
    reason : str
        Why the run ended: "tol", "max_iter", "standstill", "n_kernels" or "interrupted".
    history : dict of list
        The `columns` of the method, one row per iterate.
    n_resumed : int
        Iterations of an earlier run that this one resumed.
    matrix : ndarray of shape (n, n) or None
        sum_m d_m K_m at the weights of `state`, of the convex methods; None once dropped to save memory.
    starts : dict of list
        How every start ended, for methods that compare several starts; empty for other methods.
    """

    state: Any
    n_iter: int
    converged: bool
    reason: str
    history: dict[str, list[float]] = field(repr=False)
    n_resumed: int = 0
    matrix: FloatArray | None = field(repr=False, default=None)
    starts: dict[str, list[Any]] = field(repr=False, default_factory=dict)


class Method:
    """What differs between the papers: a first iterate, and from each iterate a better one.

    A subclass writes ``start(run)`` and ``step(run, iterate)``. An iterate is any object with a `residual`,
    the number that has to fall below `tol`. A method keeps what it remembers between steps in private
    attributes, and resets them in `start`; everything else is in the `Run`.
    """

    #: names of the history
    columns: tuple[str, ...] = ()

    #: whether the first iterate counts as an iteration
    counts_start = False

    #: what is counted, and what the residual is, in words
    counted, residual_name = "steps", "stationarity residual"

    #: number of iterations, and the share of their distance to which these have to bring the bounds.
    #: Otherwise the successor takes over or, if there is none, the run ends; None: any number
    patience: tuple[int, float] | None = None

    def start(self, run: Run) -> Any:
        """The first iterate: from `run.best` where an earlier run or another method left one.

        None if this start, one of several, leads nowhere.
        """
        raise NotImplementedError

    def step(self, run: Run, iterate: Any) -> Any:
        """The next iterate; None where there is none.

        A step that makes several iterates hands them to `run.keep` itself, and returns the last, `run.last`.
        """
        raise NotImplementedError

    def row(self, run: Run, iterate: Any) -> tuple[float, ...]:
        """What the history holds of an iterate, in the order of `columns`; empty to leave it out."""
        return ()

    def is_better(self, iterate: Any, best: Any) -> bool:
        """Whether an iterate takes the place of the best one; the last one does by default."""
        return True

    def is_done(self, run: Run) -> bool:
        """Whether no further step is needed."""
        return run.converged

    def successor(self, run: Run) -> Method | None:
        """A method, perhaps slower, that still improves where this one no longer does."""
        return None

    def drive(self, run: Run) -> None:
        """Take a run to its end."""
        run.iterate()

    def settle(self, run: Run) -> bool | None:
        """Finish the best iterate, perhaps of an interrupted run; true if that changed it."""
        return None

    def saved(self, run: Run) -> Entry | None:
        """What a checkpoint needs to resume a run, besides its history; None if the run cannot be resumed.

        `run.found()` gives it back to `start`, which sets `run.n_iter` and `run.n_resumed`.
        """
        return None

    def summary(self, run: Run) -> dict[str, Any]:
        """How a run from one of several starts ended."""
        return {}

    def describe(self, run: Run) -> str:
        """How far a run got, in words."""
        left = f"the {self.residual_name} is {run.best.residual:.3g}"
        return f"{left} after {run.n_iter} {self.counted} (tol={run.tol:g})."

    def advice(self, run: Run) -> str | None:
        """What to do about a run that has not converged; None if that needs no warning."""
        return "Increase max_iter, or scale the data."


class Part(NamedTuple):
    """The whole run that a round on some samples or kernels belongs to."""

    whole: Run
    rows: IntArray | None = None
    kernels: IntArray | None = None


class Run:
    """What is solved, how far it has come, and when it ends.

    Parameters
    ----------
    method : Method
    problem, gram, regularizer : object
        What to solve: a `Problem`, an engine and a regulariser, or what a method takes in their place.
    tol : float
        The residual has to fall to this.
    max_iter : int
        Most iterations, including those of a resumed run.
    callback : callable, optional
        Called as callback(iteration, iterate) after every iteration; a true answer ends the run.
    keeper : Keeper, optional
        Where iterates are kept, and where those of an earlier run are found.
    phase : str, default="main"
        The name they are kept under.
    begin : object, optional
        Where to start, in the form that the method expects.
    part : Part, optional
        The run that this one is a round of.

    Attributes
    ----------
    last, best : object
        Iterates; None before the first.
    K : object
        Matrix of the machine trained last, where the method trains one.
    matrix : ndarray or None
        The matrix of the best iterate, if it is small.
    n_iter, n_resumed : int
    history : dict of list
    told, interrupted : bool
        Whether the callback or Ctrl-C has ended the run, and whether it was Ctrl-C.
    reason : str
        As in `Result`; empty before the end.
    looks : bool
        Whether this is a first look, after which the best of several runs is chosen.
    watch : Watch
    """

    def __init__(
        self,
        method: Any,
        problem: Any,
        gram: Any = None,
        regularizer: Any = None,
        tol: float = 1e-3,
        max_iter: int = 200,
        callback: Callback | None = None,
        keeper: Keeper | None = None,
        phase: str = "main",
        begin: Any = None,
        part: Part | None = None,
    ) -> None:
        self.method, self.problem, self.gram, self.regularizer = method, problem, gram, regularizer
        self.tol, self.max_iter, self.callback, self.begin = tol, max_iter, callback, begin
        self.keeper, self.phase, self.part = Keeper() if keeper is None else keeper, phase, part
        self.last: Any = None
        self.best: Any = None
        self.K: Any = None
        self.matrix: FloatArray | None = None
        self.n_iter = self.n_resumed = 0
        self.history: dict[str, list[float]] = {name: [] for name in method.columns}
        self.told = self.interrupted = self.looks = False
        self.reason, self.watch = "", Watch()
        self._at_work: Method | None = None

    @property
    def converged(self) -> bool:
        """Whether the residual of the best iterate is within `tol`."""
        return bool(self.best.residual <= self.tol)

    @property
    def over(self) -> bool:
        """Whether no iterate follows the last one."""
        return self.told or self.n_iter >= self.max_iter or self.method.is_done(self)

    def solve(self) -> Result:
        """Take the run to its end; Ctrl-C keeps the best iterate, and a run that did not converge warns."""
        self.advance()
        return self.end({})

    def advance(self, look: tuple[float, int] | None = None) -> None:
        """Let the method take the run to its end, to Ctrl-C, or as far as a first look goes.

        Parameters
        ----------
        look : tuple of float and int, optional
            Tolerance and iterations of a first look.
        """
        wanted, self.looks = (self.tol, self.max_iter), look is not None
        if look is not None:
            self.tol, self.max_iter = max(self.tol, look[0]), min(self.max_iter, look[1])
        try:
            self.method.drive(self)
        except KeyboardInterrupt:
            self.keeper.flush()
            self.told = self.interrupted = True
        finally:
            self.tol, self.max_iter = wanted

    def iterate(self, method: Any = None) -> None:
        """Start the method, or another, and step until an iterate is good enough or there are no more.

        Where steps no longer help, a successor takes over.
        """
        method, watch = self.method if method is None else method, self.watch
        if self.last is None or self._at_work is not method:
            self._at_work, watch.first = method, len(watch.seen)
            iterate = method.start(self)
            if iterate is None:
                return
            self.keep(iterate, count=int(method.counts_start))
        self.reason = ""
        while not (self.over or watch.is_idle(method.patience)):
            iterate = method.step(self, self.last)
            if iterate is None:
                break
            if iterate is not self.last:
                self.keep(iterate)
        successor = None if self.reason or self.over or watch.fails() else method.successor(self)
        if successor is not None:
            self.iterate(successor)
            return
        short = "max_iter" if self.n_iter >= self.max_iter else "standstill"
        ended = "interrupted" if self.told else "tol" if self.converged else short
        self.reason = self.reason or ended

    def keep(self, *iterates: Any, count: int = 1) -> bool:
        """Record an iterate, or several of one iteration, and report the last; whether to stop."""
        self.n_iter += count
        for self.last in iterates:
            if self.best is None or self.method.is_better(self.last, self.best):
                small = self.K is not None and len(self.K) <= MOST_KEPT
                self.best, self.matrix = self.last, self.K if small else None
            row = self.method.row(self, self.last)
            for column, value in zip(self.history.values(), row, strict=bool(row)):
                column.append(value)
            entry = None if self.keeper.checkpoint is None else self.method.saved(self)
            if entry is not None:
                history = (self if self.part is None else self.part.whole).history
                values = {**entry.values, "history": list(history)}
                arrays = {**entry.arrays, "history": np.array(list(history.values()), dtype=np.float64)}
                self.keeper.keep(self.phase, Entry(values, arrays))
        if count:
            self.tell(self.n_iter - 1, self.last)
        return self.over

    def tell(self, iteration: int, iterate: Any) -> bool:
        """Report to the callback; whether it has ended the run."""
        if self.callback is not None and self.callback(iteration, iterate):
            self.told = True
        return self.told

    def found(self) -> Entry | None:
        """What an earlier run kept, if anything; its history is taken over, and `start` sets the count."""
        entry = self.keeper.found(self.phase)
        if entry is not None:
            rows = zip(entry.values["history"], entry.arrays["history"], strict=True)
            self.history = {name: row.tolist() for name, row in rows}
        return entry

    def end(self, starts: dict[str, list[Any]]) -> Result:
        """The result; warns if the run was interrupted or has not converged."""
        if self.best is None:  # interrupted before the first iterate
            raise KeyboardInterrupt
        self.reason = "interrupted" if self.interrupted else self.reason
        self.method.settle(self)
        advice = None if self.interrupted or self.converged else self.method.advice(self)
        if self.interrupted:
            warn(f"interrupted; {self.method.describe(self)}", ConvergenceWarning)
        elif advice is not None:
            warn(f"{self.method.describe(self)} {advice}", ConvergenceWarning)
        counts = (self.n_iter, self.converged, self.reason, self.history, self.n_resumed)
        return Result(self.best, *counts, self.matrix, starts)


def best_of(runs: Iterable[Run], look: tuple[float, int] | None = None) -> Result:
    """The run with the lowest objective, taken to its end; Ctrl-C keeps the best iterate so far.

    Parameters
    ----------
    runs : iterable of Run
        Taken one after the other.
    look : tuple of float and int, optional
        Tolerance and iterations of a first look, after which the best of several runs is chosen.
    """
    best: Run | None = None
    summaries: dict[str, dict[str, Any]] = {}
    for run in runs:
        run.advance(look)
        if run.best is not None:
            summaries[run.phase] = run.method.summary(run)
            if best is None or run.best.objective < best.best.objective:
                best = run
        if run.told:
            break
    if best is None:
        raise KeyboardInterrupt
    best.interrupted = run.interrupted
    if look is not None and not run.told:
        best.advance()
        summaries[best.phase] = best.method.summary(best)
    starts: dict[str, list[Any]] = {
        key: [row[key] for row in summaries.values()] for key in summaries[best.phase]
    }
    if starts:
        starts["chosen"] = [phase == best.phase for phase in summaries]
    return best.end(starts)


class Bracket(NamedTuple):
    """Bounds of the optimum and the residual, of an iterate or the best of several."""

    primal: float
    dual: float
    residual: float


def _best_bracket(several: list[Bracket]) -> Bracket:
    primal, dual, residual = zip(*several, strict=True)
    return Bracket(min(primal), max(dual), min(residual))


class Watch:
    """Whether the iterates of a run still make progress.

    Attributes
    ----------
    seen : list of Bracket
        Brackets of the iterates of this run, without those it resumed.
    first : int
        Index of the first of them that the current method made.
    n_rounding : int
        Number of iterates in a row whose gap may be only rounding.
    n_failing : int
        Number of machines in a row that were what limits the run.
    """

    def __init__(self) -> None:
        self.seen: list[Bracket] = []
        self.first = self.n_rounding = self.n_failing = 0

    def add(self, bounds: Bracket, is_rounding: bool, is_failing: bool) -> None:
        """Look at an iterate."""
        self.seen.append(bounds)
        self.n_rounding = self.n_rounding + 1 if is_rounding else 0
        self.n_failing = self.n_failing + 1 if is_failing else 0

    def is_idle(self, patience: tuple[int, float] | None) -> bool:
        """Whether the current method no longer helps."""
        return patience is not None and (self.stands_still(self.first, *patience) or self.fails(self.first))

    def stands_still(self, first: int, window: int, share: float) -> bool:
        """Whether the last `window` iterates since the `first` brought almost no progress.

        The least primal and the largest dual value so far bracket the optimum. There is almost no progress if
        neither the bracket nor the least residual has shrunk to `share` of what it was, and neither value has
        changed by a similar share of itself, as values do far from the optimum. Where there is no dual value,
        the objective has not fallen.
        """
        if len(self.seen) - first <= window:
            return False
        before, now = _best_bracket(self.seen[first:-window]), _best_bracket(self.seen[first:])
        settled = now.residual > share * before.residual
        if np.isfinite(now.dual):
            change = max(before.primal - now.primal, now.dual - before.dual)
            settled &= now.primal - now.dual > share * (before.primal - before.dual)
            return settled and change <= (1.0 - share) * min(abs(before.primal), abs(before.dual))
        return settled and before.primal - now.primal <= FALL * abs(before.primal)

    def fails(self, first: int = 0) -> bool:
        """Whether the run stands still because of its machines: these were the limit, not the weights."""
        return self.n_failing >= MOST_FAILING and self.stands_still(first, MOST_FAILING, SLOW[1])
