"""New weights between the decomposition steps of one machine, instead of a machine for each weighting."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from ..._typing import BoolArray, FloatArray, IntArray
from ...regularizers import Regularizer
from ..base import MKLSolver, State
from ..certificate import Certificate, certificate, check_squares, relative
from ..problem import Problem, best_intercept
from ..run import Run
from ._fields import Fields
from .cutting_planes import CuttingPlanes
from .joint_ascent import LARGEST_FLOOR, SMALLEST_FLOOR
from .newton_weights import NewtonWeights, projected_inverse_form

#: a round ends at this share of the gap before it; the first one as if that had been 1/3
ROUND_SHARE, FIRST_GAP = 0.3, 1.0 / 3.0

#: relative gap of a machine that says little about the weights yet
UNTRAINED = 0.5

#: how far norms may fall in a round: while alpha is still small, so are all of them
SHRINKAGE = 0.1

#: share of the gap that may be the machine's when a Newton step is made on the weights
MACHINE_SHARE = 0.3

#: most steps of a round: so many, and so many times the working sets that make up all samples
ROUND_STEPS, ROUND_SWEEPS = 100, 10

#: norms are raised to a share of gap / M, between two limits: a kernel without effect on the samples changed
#: so far may matter to others, and what a floor costs is in proportion to it
FLOOR = 0.01, 1e-12, 1e-3
#: the same of dual norms: theta = 0 would make the matrix of the machine infinite
DUAL_FLOOR = 0.3, SMALLEST_FLOOR, LARGEST_FLOOR

#: relative violation, and relative rise of the objective, that are rounding
SOLVED, RISE = 1e-13, 1e-10


class Interleaved(MKLSolver):
    """Decomposition steps on the machine, each followed by new weights when the objective allows it.

    A step improves a working set of dual variables at fixed weights and adds the changed rows
    to g_m = K_m alpha; s_m = alpha' g_m gives the norms n_m = d_m sqrt(s_m), and these the next
    weights in closed form. The machine is trained once instead of once for each weighting, and no
    matrix of all samples is formed. Kloft et al. (2011), section 4.1.2 and Algorithm 2.

    Weights change only when the joint objective at the present machine,

        U = sum_i C_i V(y_i, f_i) + 1/2 sum_m d_m s_m + 1/2 h(d)

    is no higher than at their last change; otherwise the machine is trained on (the precaution at the
    end of section 4.1.3). The closed form minimises U in d with the components held, so that new
    weights always admit a lower U.

    Two families need more. Where weights become zero (p = 1, elastic net, wedge) the closed form
    is slow in the end: once the machine is good enough, `NewtonWeights` makes the step, and shortens
    one that raises the objective. Block norms q > 2 take the weights of the dual norms: both kinds
    of step then raise the dual value.

    For losses whose dual is linear on a box: hinge, eps-insensitive, one-class. A round of steps that
    ends with a certificate counts as one iteration.

    Parameters
    ----------
    working_set : int, default=40
        Most dual variables that a step changes; doubled after a round in which they were too few.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import DenseGram
    >>> from kernelweave.losses import Hinge
    >>> from kernelweave.regularizers import LpNorm
    >>> from kernelweave.solvers import Problem
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> gram = DenseGram([x @ x.T, np.exp(-((x - x.T) ** 2))])
    >>> problem = Problem(np.sign(x), Hinge(), np.ones((20, 1)))
    >>> Interleaved().solve(problem, gram, LpNorm(p=2), tol=1e-6).converged
    True
    """

    name = "interleaved"
    requires = ("linear_dual",)
    single = "smo"

    _seen: FloatArray  # s_m as last computed

    def __init__(self, working_set: int = 40) -> None:
        self.working_set = working_set

    def can_handle(self, regularizer: Regularizer) -> bool:
        return regularizer.convex

    def init(self, run: Run, norms: FloatArray) -> FloatArray:
        self._check(run.problem)
        self._run, regularizer = run, run.regularizer
        self._limit = np.inf  # U at the last change of the weights
        self._gap, self._size = FIRST_GAP, self.working_set
        self._ascends = bool(getattr(regularizer, "ascends", False))
        self._floors, self._floor = DUAL_FLOOR if self._ascends else FLOOR, 0.0
        self._newton = FieldNewton() if regularizer.sparse else None
        if self._newton is not None:
            self._newton.init(run, norms)
        return self._weights_of(norms, norms > 0.0 if regularizer.sparse else norms >= 0.0)

    def successor(self, run: Run) -> MKLSolver | None:
        """Cutting planes where weights become zero, if the matrices that they take may be formed."""
        return CuttingPlanes() if run.regularizer.sparse and not run.gram.streams else None

    def restart(self, run: Run, state: State) -> FloatArray:
        weights = super().restart(run, state)
        self._gap = min(state.certificate.gap, FIRST_GAP)
        return weights

    def train(
        self, run: Run, weights: FloatArray, previous: State | None, alpha: FloatArray | None = None
    ) -> State:
        """A round: steps until the gap is a share of what it was, then a certificate."""
        if previous is None:
            self._open(alpha)
        wanted = max(run.tol, ROUND_SHARE * self._gap)
        weights = self._round(weights, wanted)
        self._fields.forget()
        self._fields.refresh(np.flatnonzero(weights))
        self._seen = self._fields.squares()
        alpha, fitted = self._fields.alpha.copy(), self._fields.fitted(weights)
        state = self.certified(run, weights, alpha, fitted, self._seen.copy(), wanted)
        self._gap = min(state.residual, FIRST_GAP)
        return state

    def _round(self, weights: FloatArray, wanted: float) -> FloatArray:
        self._top = 0.0  # largest norm of the round
        for _ in range(ROUND_STEPS + ROUND_SWEEPS * self._run.gram.n_samples // self._size):
            violation = self._fields.step(weights, self._size)
            lower, upper = self._bounds(weights)
            machine_gap = relative(upper - lower, upper)
            self._verdict = self._judge(lower, upper, machine_gap <= UNTRAINED, violation <= SOLVED)
            if self._verdict == "worse":
                return weights
            if self._verdict == "better":
                self._limit = upper if weights.any() else self._limit
                if self._ready(weights, machine_gap, wanted):
                    return weights
                weights, self._verdict = self._closed_form(weights), "open"
        if machine_gap > wanted:
            self._size = min(2 * self._size, self._run.gram.n_samples)  # small working sets undo one another
        return weights

    def next_weights(self, run: Run, state: State) -> FloatArray:
        if self._verdict == "open" or self._untrained_at_zero(state):
            return state.weights  # the machine has to tell yet
        if self._newton is not None:
            self._newton.fields = self._fields
            return self._newton.next_weights(run, state)
        if self._verdict == "better":
            return self._closed_form(state.weights)
        self._floor = 0.0  # only the floor can have made weights worse
        return self._weights_of(self._norms, self._norms >= 0.0)

    def _check(self, problem: Problem) -> None:
        if not hasattr(problem.loss, "linear_dual"):
            raise ValueError(
                f"{type(problem.loss).__name__} has no `linear_dual`, required by {type(self).__name__}; "
                "use solver='auto'."
            )
        if not (isinstance(self.working_set, Integral) and self.working_set >= 2):
            raise ValueError(f"working_set={self.working_set!r} must be a whole number of at least 2.")

    def _untrained_at_zero(self, state: State) -> bool:
        """Whether there is no kernel, and the machine too coarse to say which are wanted."""
        proof = state.certificate
        return not state.weights.any() and proof.machine_gap > MACHINE_SHARE * proof.gap

    def _open(self, alpha: FloatArray | None) -> None:
        start = self._run.problem.start() if alpha is None else self._run.problem.feasible(alpha)
        self._fields = Fields(self._run.problem, self._run.gram, start)
        self._seen, self._floor = np.zeros(self._run.gram.n_kernels), np.inf

    def _bounds(self, weights: FloatArray) -> tuple[float, float]:
        """Lower and upper bound, which is U, of the joint objective at these weights."""
        fitted = self._fields.fitted(weights)
        energy = 0.5 * float(weights @ self._squares_at(weights))
        price = 0.5 * self._run.regularizer.price(weights)
        intercept = best_intercept(self._run.problem, fitted)
        upper = self._run.problem.primal_loss(fitted, intercept) + energy + price
        return upper - float(self._run.problem.misfit(self._fields.alpha, fitted + intercept).sum()), upper

    def _judge(self, lower: float, upper: float, trained: bool, solved: bool) -> str:
        """Whether the weights are "better" than before, "worse", or that is still "open"."""
        limit = self._limit + RISE * abs(self._limit)
        if not self._ascends and lower > limit:
            return "worse"
        return "better" if self._ascends or solved or (trained and upper <= limit) else "open"

    def _ready(self, weights: FloatArray, machine_gap: float, wanted: float) -> bool:
        """Whether the gap is as wanted, or the machine so good that only the weights are left."""
        if machine_gap > wanted:  # the gap is no less than the machine's
            return False
        gap = self._proof(weights, self._squares_at(weights)).gap
        return gap <= wanted or (self._newton is not None and machine_gap <= MACHINE_SHARE * gap)

    def _closed_form(self, weights: FloatArray) -> FloatArray:
        """The weights of the present norms; those that are zero stay so."""
        roots = np.sqrt(self._squares_at(weights))
        self._norms = roots if self._ascends else weights * roots
        share, _, largest = self._floors
        self._floor = min(self._floor, share * self._gap / len(weights), largest)
        self._top = max(self._top, float(self._norms.max()))
        return self._weights_of(self._norms, weights > 0.0, SHRINKAGE * self._top)

    def _weights_of(self, norms: FloatArray, live: BoolArray, least: float = 0.0) -> FloatArray:
        """The weights of norms raised to the floor where `live`, and the largest to `least`."""
        rule, top = self._run.regularizer, float(norms.max())
        if top == 0.0:
            return rule.initial_weights(len(norms)) if self._newton is None else rule.weights(norms)
        floor = top * max(self._floor, self._floors[1])
        raised = np.where(live, np.maximum(norms, floor), norms) * max(1.0, least / top)
        return rule.weights_from_dual(raised) if self._ascends else rule.weights(raised)

    def _squares_at(self, weights: FloatArray) -> FloatArray:
        """s_m, up to date for the kernels that have weight."""
        live = np.flatnonzero(weights)
        self._seen[live] = self._fields.squares_of(live)
        return check_squares(self._seen, self._run.gram, self._fields.alpha)

    def _proof(self, weights: FloatArray, squares: FloatArray) -> Certificate:
        alpha, fitted = self._fields.alpha, self._fields.fitted(weights)
        parts = (self._run.problem, self._run.gram, self._run.regularizer)
        return certificate(*parts, alpha, weights, fitted, squares)


class FieldNewton(NewtonWeights):
    """Newton steps on the weights that take the products K_m alpha from where they are at hand."""

    fields: Fields

    def _hessian(self, run: Run, state: State, chosen: IntArray) -> FloatArray:
        T = np.array([self._T.column(k) for k in chosen])
        self.fields.refresh(np.flatnonzero(T.any(axis=0)))
        problem = run.problem
        curvature = problem.loss.dual_curvature(problem.y, state.alpha / problem.C) / problem.C
        total = np.zeros((len(chosen), len(chosen)))
        for k in range(problem.shape[1]):
            free = np.flatnonzero(np.isfinite(curvature[:, k]))
            if len(free) == 0:
                continue
            G = (T @ self.fields.products[:, k][:, free]).T
            K = run.gram.subset(free).combine(state.weights)
            total += projected_inverse_form(K, curvature[free, k], G, problem.fit_intercept)
        return total
