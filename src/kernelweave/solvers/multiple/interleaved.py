"""New weights between the decomposition steps of one machine, instead of a machine for each weighting."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from ..._typing import BoolArray, FloatArray, IntArray
from ...gram import Gram
from ...regularizers import Regularizer
from ..base import MKLSolver, State
from ..certificate import certificate, check_squares, relative
from ..problem import Problem, best_intercept
from ..run import SLOW, Run
from ..single._box_qp import ActiveSet, BoxQP
from ..single.base import lacking
from ..single.smo import EXACT_ROUNDS, EXACT_SAMPLES
from .alternating import LARGEST_FLOOR, SMALLEST_FLOOR
from .cutting_planes import HALF_WAY, CuttingPlanes
from .newton_weights import NewtonWeights, Response, projected_inverse

#: a round ends at this share of the gap before it; for the first round that gap counts as 1/3
ROUND_SHARE, FIRST_GAP = 0.3, 1.0 / 3.0

#: working sets: one sample in this many, and the limits
AUTO_SET = 3, 40, 1000

#: relative gap of a machine that says little about the weights yet
UNTRAINED = 0.5

#: how far norms may fall in a round: while alpha is still small, all norms are small
SHRINKAGE = 0.1

#: largest share of the gap that may be due to the machine when a Newton step on the weights is made
MACHINE_SHARE = 0.3

#: most steps of a round: this many, plus this many times the number of working sets that make up all samples
ROUND_STEPS, ROUND_SWEEPS = 100, 10

#: norms are raised to a share of gap / M, between two limits: a kernel without effect on the samples changed
#: so far may matter to others, and the cost of a floor is in proportion to it
FLOOR = 0.01, 1e-12, 1e-3
#: the same for dual norms: theta = 0 would make the matrix of the machine infinite
DUAL_FLOOR = 0.3, SMALLEST_FLOOR, LARGEST_FLOOR

#: gap below which every certificate computes its products again, whatever has been added to them
FINE = 1e-8

#: relative violation, and relative rise of the objective, that count as rounding
SOLVED, RISE = 1e-13, 1e-10


class Interleaved(MKLSolver):
    """Decomposition steps on the machine, each followed by new weights when the objective allows it.

    A step improves a working set of dual variables at fixed weights and adds the changed rows
    to g_m = K_m alpha; s_m = alpha' g_m gives the norms n_m = d_m sqrt(s_m), and these the next
    weights in closed form. The machine is trained once instead of once for each weighting, and no
    matrix of all samples is formed. Kloft et al. (2011), section 4.1.2 and Algorithm 2.

    Weights change only when the joint objective at the present machine,

        U = sum_i C_i V(y_i, f_i) + 1/2 sum_m d_m s_m + 1/2 h(d)

    is no higher than at their last change; otherwise the machine is trained further (the precaution at the
    end of section 4.1.3). The closed form minimises U in d with the components held, so that new weights
    always admit a lower U.

    Two families need more. Where weights become zero (p = 1, elastic net, wedge) the closed form is slow in
    the end: once the machine is good enough, `NewtonWeights` makes the step, and shortens it if it raises the
    objective. Block norms q > 2 take the weights of the dual norms: both kinds of step then raise the dual
    value.

    For losses whose dual is linear on a box: hinge, eps-insensitive, one-class. A round of steps that
    ends with a certificate counts as one iteration.

    Parameters
    ----------
    working_set : int or "auto", default="auto"
        Most dual variables that a step changes; doubled after a round in which they were too few. "auto" is a
        third of the samples, from 40 to 1,000: every variable that changes costs a row of every kernel, and
        in large sets each changes less often. SVMlight takes 40.

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
    pilot_share, pilot_tol = 8, 0.005

    _seen: FloatArray  # s_m as last computed

    def __init__(self, working_set: int | str = "auto") -> None:
        self.working_set = working_set

    def can_handle(self, regularizer: Regularizer) -> bool:
        return regularizer.convex and regularizer.priced

    def init(self, run: Run, norms: FloatArray) -> FloatArray:
        self._check(run.problem)
        self._run, regularizer = run, run.regularizer
        self._limit = np.inf  # U at the last change of the weights
        self._gap, self._size = FIRST_GAP, self._set_size(run.gram.n_samples)
        self._ascends = regularizer.ascends
        self._floors, self._floor = DUAL_FLOOR if self._ascends else FLOOR, 0.0
        self._newton = FieldNewton() if regularizer.sparse else None
        if self._newton is not None:
            self.patience = SLOW  # Newton steps that go in circles are left to the successor
            self._newton.init(run, norms)
        return self._weights_of(norms, norms > 0.0 if regularizer.sparse else norms >= 0.0)

    def successor(self, run: Run) -> MKLSolver | None:
        """Cutting planes if weights become zero, and if the matrices that they need may be formed."""
        sparse = run.regularizer.sparse and not run.gram.streams
        return CuttingPlanes(towards=HALF_WAY) if sparse else None

    def restart(self, run: Run, state: State) -> FloatArray:
        weights = super().restart(run, state)
        self._gap = min(state.certificate.gap, FIRST_GAP)
        return weights

    def train(
        self, run: Run, weights: FloatArray, previous: State | None, alpha: FloatArray | None = None
    ) -> State:
        """A round: steps until the gap is a share of what it was, then a certificate."""
        if previous is None:
            start = run.problem.start() if alpha is None else run.problem.feasible(alpha)
            self._fields = Fields(run.problem, run.gram, start)
            self._seen, self._floor = np.zeros(run.gram.n_kernels), np.inf
        wanted = max(run.tol, ROUND_SHARE * self._gap)
        weights = self._round(weights, wanted)
        if wanted < FINE or self._fields.has_wandered:
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
        proof = state.certificate
        coarse = not state.weights.any() and proof.machine_gap > MACHINE_SHARE * proof.gap
        if self._verdict == "open" or coarse:
            return state.weights  # the machine cannot tell yet which kernels are wanted
        if self._newton is not None:
            self._newton.fields = self._fields
            return self._newton.next_weights(run, state)
        if self._verdict == "better":
            return self._closed_form(state.weights)
        self._floor = 0.0  # only the floor can have made weights worse
        return self._weights_of(self._norms, self._norms >= 0.0)

    def _check(self, problem: Problem) -> None:
        if not hasattr(problem.loss, "linear_dual"):
            raise lacking(problem.loss, "linear_dual", self, "use solver='auto'")

    def _set_size(self, n_samples: int) -> int:
        size, (share, least, most) = self.working_set, AUTO_SET
        if isinstance(size, str) and size == "auto":
            return min(max(n_samples // share, least), most)
        if not (isinstance(size, Integral) and size >= 2):
            raise ValueError(f"working_set={size!r} must be 'auto' or a whole number of at least 2.")
        return int(size)

    def _bounds(self, weights: FloatArray) -> tuple[float, float]:
        """Lower bound, and upper bound U, of the joint objective at these weights."""
        fitted = self._fields.fitted(weights)
        energy = 0.5 * float(weights @ self._squares_at(weights))
        price = 0.5 * self._run.regularizer.price(weights)
        intercept = best_intercept(self._run.problem, fitted)
        upper = self._run.problem.primal_loss(fitted, intercept) + energy + price
        return upper - float(self._run.problem.misfit(self._fields.alpha, fitted + intercept).sum()), upper

    def _judge(self, lower: float, upper: float, trained: bool, solved: bool) -> str:
        """Whether the weights are "better" than before or "worse", or whether this is still "open"."""
        limit = self._limit + RISE * abs(self._limit)
        if not self._ascends and lower > limit:
            return "worse"
        return "better" if self._ascends or solved or (trained and upper <= limit) else "open"

    def _ready(self, weights: FloatArray, machine_gap: float, wanted: float) -> bool:
        """Whether the gap is small enough, or the machine so good that only the weights are left."""
        if machine_gap > wanted:  # the gap is no less than the machine's
            return False
        fields, parts = self._fields, (self._run.problem, self._run.gram, self._run.regularizer)
        squares = self._squares_at(weights)
        gap = certificate(*parts, fields.alpha, weights, fields.fitted(weights), squares).gap
        return gap <= wanted or (self._newton is not None and machine_gap <= MACHINE_SHARE * gap)

    def _closed_form(self, weights: FloatArray) -> FloatArray:
        """The weights of the present norms; weights that are zero stay zero."""
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
            result: FloatArray = (
                rule.initial_weights(len(norms)) if self._newton is None else rule.weights(norms)
            )
            return result
        floor = top * max(self._floor, self._floors[1])
        raised = np.where(live, np.maximum(norms, floor), norms) * max(1.0, least / top)
        result = rule.weights_from_dual(raised) if self._ascends else rule.weights(raised)
        return result

    def _squares_at(self, weights: FloatArray) -> FloatArray:
        """s_m, up to date for the kernels that have weight."""
        live = np.flatnonzero(weights)
        self._seen[live] = self._fields.squares_of(live)
        return check_squares(self._seen, self._run.gram, self._fields.alpha)


class FieldNewton(NewtonWeights):
    """Newton steps on the weights that use the products K_m alpha already at hand."""

    fields: Fields

    def _response(self, run: Run, state: State, directions: FloatArray) -> Response:
        self.fields.refresh(np.flatnonzero(directions.any(axis=0)))
        problem = run.problem
        curvature = problem.loss.dual_curvature(problem.y, state.alpha / problem.C) / problem.C
        total = np.zeros((len(directions), len(directions)))
        for k in range(problem.shape[1]):
            free = np.flatnonzero(np.isfinite(curvature[:, k]))
            if len(free) == 0:
                continue
            G = (directions @ self.fields.products[:, k][:, free]).T
            K = run.gram.square(free, state.weights)
            total += projected_inverse(K, curvature[free, k], [G], problem.fit_intercept)[0]
        return Response(total)


#: the small program of a step is solved to this share of the violation, in at most this many moves per
#: variable
INNER_SHARE, INNER_MOVES = 0.1, 50

#: |changes of alpha|_1, in units of |alpha|_1, up to which products of many steps are as good as new ones
LONG_WAY = 10.0

#: share of its bound max_i K_ii |alpha|_1^2 up to which a negative alpha' K alpha is rounding
ROUNDING = 1e-14


class Fields:
    """A machine in the making: alpha, and g_m = K_m alpha for the kernels that carry weight.

    A step changes a few entries of alpha, so each g_m changes by a few rows of K_m: no matrix
    of all samples is ever formed. Products of kernels without weight go stale, and are computed
    again when they are asked for. Kloft et al. (2011), Algorithm 2, lines 3-6.

    Parameters
    ----------
    problem : Problem
        With a loss whose dual is linear on a box.
    gram : Gram
    alpha : ndarray of shape (n, c)
        Feasible.
    """

    def __init__(self, problem: Problem, gram: Gram, alpha: FloatArray) -> None:
        self.problem, self.gram, self.alpha = problem, gram, alpha.copy()
        self.products = np.zeros((gram.n_kernels, problem.shape[1], gram.n_samples))
        self.fresh = np.zeros(gram.n_kernels, dtype=bool)
        self.largest = gram.diagonals().max(axis=1) * np.ones(gram.n_kernels)
        self.path = 0.0  # sum of |changes of alpha|_1 in the products
        self.programs = [BoxQP.of(np.empty((0, 0)), problem.column(k)) for k in range(problem.shape[1])]

    def refresh(self, kernels: IntArray) -> None:
        """Make the products of some kernels those of the present alpha."""
        stale = kernels[~self.fresh[kernels]]
        if len(stale) == 0:
            return
        self.products[stale] = 0.0
        for k, column in enumerate(self.alpha.T):
            support = np.flatnonzero(column)
            self._add(stale, k, support, column[support])
        self.fresh[stale] = True

    @property
    def has_wandered(self) -> bool:
        """Whether the path of alpha is so much longer than its size that rounding of the steps may show."""
        return self.path > LONG_WAY * float(np.abs(self.alpha).sum())

    def forget(self) -> None:
        """Compute products again when they are next asked for: the rounding of every step is in them."""
        self.fresh[:], self.path = False, 0.0

    def fitted(self, weights: FloatArray) -> FloatArray:
        """sum_m d_m K_m alpha, shape (n, c)."""
        live = np.flatnonzero(weights)
        self.refresh(live)
        return np.tensordot(self.products[live], weights[live], (0, 0)).T

    def squares(self) -> FloatArray:
        """s_m = alpha' K_m alpha of every kernel."""
        found = np.empty(len(self.fresh))
        fresh, stale = np.flatnonzero(self.fresh), np.flatnonzero(~self.fresh)
        found[fresh] = self.squares_of(fresh)
        if len(stale):
            found[stale] = self.gram.quad(self.alpha, stale)
        return found

    def squares_of(self, kernels: IntArray) -> FloatArray:
        """The same for kernels whose products are up to date; values below zero by rounding become zero."""
        found = np.einsum("mci,ic->m", self.products[kernels], self.alpha)
        bound = self.largest[kernels] * float((np.abs(self.alpha).sum(axis=0) ** 2).sum())
        drifted = kernels[found < -ROUNDING * bound]
        if len(drifted):  # through the rounding of steps from a larger alpha
            self.fresh[drifted] = False
            self.refresh(drifted)
            found = np.einsum("mci,ic->m", self.products[kernels], self.alpha)
        return np.where((found < 0.0) & (found >= -ROUNDING * bound), 0.0, found)

    def step(self, weights: FloatArray, size: int) -> float:
        """Improve at most `size` entries of each column of alpha; return how far from optimal alpha was.

        That is the largest violation found, relative to the largest slope.
        """
        fitted, worst = self.fitted(weights), 0.0
        for k, qp in enumerate(self.programs):
            slopes = fitted[:, k] - qp.linear
            chosen, violation = working_set(qp, self.alpha[:, k], slopes, size)
            if violation > 0.0:
                self._improve(weights, k, chosen, slopes[chosen], INNER_SHARE * violation)
            worst = max(worst, violation / max(float(np.abs(slopes).max()), 1e-300))
        return worst

    def _improve(self, weights: FloatArray, k: int, chosen: IntArray, slopes: FloatArray, eps: float) -> None:
        """Solve the program of the chosen entries of column k, the others held."""
        qp, before = self.programs[k], self.alpha[chosen, k]
        K = self.gram.square(chosen, weights)
        part = BoxQP(K, K @ before - slopes, qp.kink, qp.lower[chosen], qp.upper[chosen], qp.tied)
        after = solved(part, before, slopes, eps)
        moved = np.flatnonzero(after != before)
        if len(moved) == 0:
            return
        self.alpha[chosen, k] = after
        self.path += float(np.abs(after - before).sum())
        self.fresh[weights == 0.0] = False
        self._add(np.flatnonzero(weights), k, chosen[moved], (after - before)[moved])

    def _add(self, kernels: IntArray, k: int, rows: IntArray, change: FloatArray) -> None:
        """g_m += sum_i change_i K_m[rows_i] for column k of some kernels."""
        step = np.zeros(self.gram.n_samples)
        step[rows] = change
        self.products[kernels, k] += self.gram.products(step, kernels)


def solved(qp: BoxQP, a: FloatArray, slopes: FloatArray, eps: float) -> FloatArray:
    """A solution of a small program: to a violation of `eps`, or exactly if that takes too long."""
    after, most = a.copy(), INNER_MOVES * len(a)
    if qp.descend(after, slopes, eps, most) < most or len(a) > EXACT_SAMPLES:
        return after
    active = ActiveSet(qp, after)
    active.run(EXACT_ROUNDS)  # never raises the objective, finished or not
    drift = abs(float(active.a.sum() - a.sum())) if qp.tied else 0.0
    return active.a if drift <= 1e-12 * float(np.abs(a).sum()) else after


def working_set(qp: BoxQP, alpha: FloatArray, slopes: FloatArray, size: int) -> tuple[IntArray, float]:
    """The entries of alpha that gain most by moving, and the largest first-order violation.

    With a fixed sum, half of them gain most by rising and half by falling, as in the steepest
    feasible direction with `size` nonzero entries (Joachims 1999).

    Parameters
    ----------
    qp : BoxQP
    alpha : ndarray of shape (n,)
    slopes : ndarray of shape (n,)
        K alpha - linear.
    size : int
    """
    rise, fall = qp.gains(alpha, slopes)
    if not qp.tied:
        gain = np.maximum(rise, fall)
        return _largest(gain, size, 0.0), float(gain.max())
    highest, lowest = float(rise.max()), float(fall.max())
    up, down = _largest(rise, size // 2, -lowest), _largest(fall, size // 2, -highest)
    return np.union1d(up, down), highest + lowest


def _largest(gains: FloatArray, count: int, above: float) -> IntArray:
    """Positions of the largest gains that are above a level."""
    top = np.argpartition(-gains, min(count, len(gains) - 1))[:count]
    return top[gains[top] > above]
