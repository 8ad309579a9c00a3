"""The learning problem apart from the kernels: targets, loss, costs, intercept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._typing import FloatArray, IntArray
from ..losses import Loss

#: search for the intercepts of coupled outputs: most steps, the relative gap at which it ends, and the share
#: of the gap that a step aims at
MOST_PRICE_STEPS, PRICE_GAP, PRICE_CENTRE = 100, 1e-12, 0.05

#: the unit of rounding in double precision
UNIT = float(np.finfo(np.float64).eps)


#: share of sum_i |alpha_i| by which sum_i alpha_i may be off: less than a certificate allows
ROUNDED_SUM = 1e-13


@dataclass(frozen=True)
class Problem:
    """C sum_i V(y_i, f_i), or C L(y, f), for one or several outputs that share the kernel weights.

    The V of a loss with `coupled` outputs takes all of them together.

    Parameters
    ----------
    y : ndarray of shape (n, c) or (n, c, k)
        Targets, one column per output (a column of +-1 for a class); k numbers per sample and output if a
        loss that couples samples takes that many.
    loss : Loss
    C : ndarray of shape (n, 1)
        Cost of each sample, C times its weight; positive. For a loss that couples samples, C repeated n
        times.
    fit_intercept : bool
        Whether f has an intercept; then sum_i alpha_i = loss.alpha_sum in every column. A loss that is
        invariant to shifts has none.
    weight : ndarray of shape (n, 1), optional
        Case weights for a loss that couples samples, positive; ones by default.
    strata : ndarray of shape (n, ...), optional
        What `spread` balances, such as the targets of all outputs if this is one of them; y by default.
    """

    y: FloatArray
    loss: Loss
    C: FloatArray
    fit_intercept: bool = True
    weight: FloatArray | None = None
    strata: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.loss.separable:
            if self.weight is not None:
                raise ValueError("weight is for losses that couple samples: multiply C by it instead.")
            return
        if np.ptp(self.C) > 0.0:
            raise ValueError(
                f"{type(self.loss).__name__} couples samples, so C is one number, repeated for every sample: "
                "pass the weights of the samples as `weight`."
            )
        known: Any = self.loss
        object.__setattr__(self, "fit_intercept", self.fit_intercept and not known.shift_invariant)
        object.__setattr__(self, "weight", np.ones_like(self.C) if self.weight is None else self.weight)

    @classmethod
    def weighted(
        cls, y: FloatArray, loss: Loss, C: float, weight: FloatArray, fit_intercept: bool = True
    ) -> Problem:
        """The problem at one C with sample weights of shape (n,), whatever the loss.

        Examples
        --------
        >>> from kernelweave.losses import Squared
        >>> Problem.weighted(np.zeros((2, 1)), Squared(), C=10.0, weight=np.array([1.0, 2.0])).C.ravel()
        array([10., 20.])
        """
        if loss.separable:
            return cls(y, loss, C * weight[:, None], fit_intercept)
        return cls(y, loss, np.full((len(y), 1), float(C)), fit_intercept, weight[:, None])

    @property
    def shape(self) -> tuple[int, int]:
        """(n, c), the shape of alpha."""
        return self.y.shape[0], self.y.shape[1]

    @property
    def costs(self) -> list[FloatArray]:
        """C, and case weights where there are any."""
        return [self.C] if self.weight is None else [self.C, self.weight]

    @cached_property
    def floor(self) -> float:
        """C least(y, weight), a lower bound of `primal_loss`; a gap is not relative to this part."""
        if self.loss.separable:
            return 0.0
        known: Any = self.loss
        least = sum(float(known.least(self.y[:, k], self.costs[-1][:, 0])) for k in range(self.shape[1]))
        if not np.isfinite(least):
            raise ValueError(
                f"{type(known).__name__}.least gives {least}: return a finite number that the loss is never "
                "below, as close to its infimum as you know."
            )
        return float(self.C[0, 0]) * least

    @cached_property
    def ceiling(self) -> float:
        """The cost of the best constant: `primal_loss` without functions."""
        nothing = np.zeros(self.shape)
        return self.primal_loss(nothing, best_intercept(self, nothing))

    @cached_property
    def kinks(self) -> tuple[FloatArray, tuple[int, int] | None]:
        """The f at which the gradient of one output jumps, (k, n, 1), and the ends, if all costs agree.

        The ends are the kinks, counted from the left, `between` which the best intercept lies.
        """
        found: Any = self.loss
        kinks, cost = np.stack(found.kinks(self.y)), float(self.C[0, 0])
        same = bool((self.C == cost).all())
        return kinks, self.between(kinks, cost * np.arange(1, kinks.size + 1)) if same else None

    def between(self, kinks: FloatArray, risen: FloatArray) -> tuple[int, int]:
        """The first and the last kink, counted from the left, where the slope in b is zero.

        From the left of all kinks to the right of each of them, it rises by `risen`.
        """
        # left of all kinks alpha is at its upper bound
        after = self.loss.alpha_sum - float(self.box()[1].sum()) + risen
        rounding = 1e-12 * float(self.C.sum())
        there = np.searchsorted(after, [-rounding, rounding], side="right")
        first, last = there.clip(max=np.count_nonzero(np.isfinite(kinks)) - 1).tolist()
        return first, last

    def column(self, k: int) -> Problem:
        """The problem of output k alone; it chooses samples in the same way as the other outputs."""
        strata = self.y if self.strata is None else self.strata
        return replace(self, y=self.y[:, k : k + 1], strata=strata)

    def of_all(self) -> Problem:
        """The problem of all outputs that this one was taken from, at its costs; otherwise itself."""
        if self.strata is None or self.strata.ndim != self.y.ndim:
            return self
        return replace(self, y=self.strata, strata=None)

    def at_cost(self, factor: float) -> Problem:
        """The problem with every cost multiplied by a factor."""
        return replace(self, C=self.C * factor)

    def part(self, rows: IntArray) -> Problem:
        """The problem on some samples, at their own costs."""
        weight, strata = (None if own is None else own[rows] for own in (self.weight, self.strata))
        return replace(self, y=self.y[rows], C=self.C[rows], weight=weight, strata=strata)

    def subset(self, rows: IntArray) -> Problem:
        """The problem on some samples, at higher costs, so that the sum of costs stays the same."""
        part = self.part(rows)
        return replace(part, C=part.C * (self.costs[-1].sum() / part.costs[-1].sum()))

    def spread(self, count: int) -> IntArray:
        """`count` samples whose targets, or strata, are spread like those of all samples."""
        targets = self.y if self.strata is None else self.strata
        order = np.lexsort(targets.reshape(len(targets), -1).T)
        return np.sort(order[np.linspace(0, len(order) - 1, count).astype(int)])

    def box(self) -> tuple[FloatArray, FloatArray]:
        """Bounds of alpha."""
        lower, upper = self.loss.dual_box(self.y)
        return self.C * lower, self.C * upper

    def centred(self, values: FloatArray) -> FloatArray:
        """`values` of every output less the middle of their range, if there is an intercept."""
        if not self.fit_intercept:
            return values
        return np.asarray(values - 0.5 * (values.min(axis=0) + values.max(axis=0)))

    def joint(self, method: str, f: FloatArray, *more: Any) -> list[Any]:
        """The results, for every output, of a method of a loss that couples samples."""
        evaluate, weight = getattr(self.loss, method), self.costs[-1][:, 0]
        return [evaluate(self.y[:, k], f[:, k], weight, *more) for k in range(self.shape[1])]

    def primal_loss(self, f: FloatArray, intercept: FloatArray) -> float:
        """sum_i C_i V(y_i, f_i + b) + alpha_sum b, or C L(y, f + b), over all outputs."""
        if not self.loss.separable:
            return float(self.C[0, 0] * sum(self.joint("value", f + intercept)))
        total = float((self.C * self.loss.value(self.y, f + intercept)).sum())
        return total + self.loss.alpha_sum * float(intercept.sum())

    def dual_loss(self, alpha: FloatArray) -> float:
        """-sum_i C_i V*(y_i, -alpha_i / C_i), over all outputs."""
        return -float((self.C * self.loss.conjugate(self.y, -alpha / self.C)).sum())

    def misfit(
        self, alpha: FloatArray, f: FloatArray, spread: FloatArray | None = None, share: float = 1.0
    ) -> FloatArray:
        """C_i V(y_i, f_i) + C_i V*(y_i, -alpha_i / C_i) + alpha_i f_i: zero where alpha = -C V'(y, f).

        It is computed for `share` times alpha, and is never negative (Fenchel's inequality). With a `spread`,
        it is the largest value from f - spread to f + spread, which by convexity is at an end, plus the
        rounding of the terms themselves.
        """
        alpha = share * alpha
        if not self.loss.separable:
            return np.array(self._joint_misfit(alpha, f, spread, share))
        dual = self.C * self.loss.conjugate(self.y, -alpha / self.C)

        def at(end: FloatArray) -> FloatArray:
            return self.C * self.loss.value(self.y, end) + dual + self.together(alpha * end)

        if spread is None:
            return np.maximum(at(f), 0.0)
        # the value at a corner of a box is at most the mean of the values c times as far out on its c axes
        axes = self.shape[1] * np.eye(self.shape[1]) if self.loss.coupled else np.ones((1, 1))
        ends = [np.maximum(at(f - axis * spread), at(f + axis * spread)) for axis in axes]
        rounding = self.together(UNIT * np.abs(alpha) * (np.abs(f) + self.loss.size(self.y)))
        return np.asarray(np.maximum(np.mean(ends, axis=0), 0.0) + rounding)

    def together(self, parts: FloatArray) -> FloatArray:
        """Numbers of every sample and output, summed over outputs that a loss couples."""
        return parts.sum(axis=1, keepdims=True) if self.loss.coupled else parts

    def _joint_misfit(
        self, alpha: FloatArray, f: FloatArray, spread: FloatArray | None, share: float
    ) -> float:
        """A bound of C L(f) + C L*(-alpha / C) + <alpha, f> for `share` times -C L'(f), given as alpha.

        L* is convex and L*(0) = -inf L, so  L*(share v) <= share L*(v) - (1 - share) inf L,  and at
        v = L'(f) Fenchel's inequality is an equality: (1 - share) C (L(f) - inf L) is left.
        """
        missing = 0.0
        if share < 1.0:
            missing = (1.0 - share) * (self.primal_loss(f, np.zeros(1)) - self.floor)
        if spread is None:
            return missing
        curvature = self.C * np.column_stack(self.joint("curvature", f))
        rounding = 0.5 * curvature * spread**2 + UNIT * np.abs(alpha) * np.abs(f)
        return missing + float(rounding.sum())

    def has_right_sum(self, alpha: FloatArray) -> bool:
        """Whether sum_i alpha_i = alpha_sum in every column, if there is an intercept."""
        off = np.abs(alpha.sum(axis=0) - self.loss.alpha_sum)
        return not self.fit_intercept or bool((off <= 1e-9 * np.abs(alpha).sum(axis=0)).all())

    def alpha_of(self, f: FloatArray) -> FloatArray:
        """The dual variables -C V'(y, f) that belong to the predictions f."""
        if not self.loss.separable:
            return np.asarray(-self.C * np.column_stack(self.joint("gradient", f)))
        return -self.C * self.loss.gradient(self.y, f)

    def feasible(self, alpha: FloatArray) -> FloatArray:
        """`alpha` moved into the box and onto sum_i alpha_i = alpha_sum (if there is an intercept).

        Every entry corrects the sum of its column in proportion to the room it has in that direction; a sum
        that is right up to rounding is left as it is. A loss that couples samples needs nothing of this: its
        dual point belongs to the predictions.
        """
        if not self.loss.separable:
            return alpha
        if self.loss.coupled:
            return self._on_simplices(alpha)
        lower, upper = self.box()
        moved = np.clip(alpha, lower, upper)
        if not self.fit_intercept:
            return moved
        missing = self.loss.alpha_sum - moved.sum(axis=0)
        # correcting mere rounding would leave no sample at zero
        missing[np.abs(missing) <= ROUNDED_SUM * np.abs(moved).sum(axis=0)] = 0.0
        room = np.where(missing > 0, upper - moved, moved - lower)
        unbounded = np.isinf(room)
        share = np.where(unbounded.any(axis=0), unbounded, room).astype(float)
        size = share.sum(axis=0)
        moved = moved + missing * share / np.where(size > 0, size, 1.0)
        return np.asarray(np.clip(moved, lower, upper))

    def _on_simplices(self, alpha: FloatArray) -> FloatArray:
        """`alpha` moved so that u = C own - alpha is not negative and has the same sums as C own.

        The sums are over every row, and with an intercept over every column too. Such u are transport plans:
        rows and columns that have too much are scaled down, and what is missing is added in proportion
        (Altschuler et al. 2017). Samples with alpha_i = 0 do not take part.
        """
        own = self.C * (self.y > 0)
        u = np.maximum(own - alpha, 0.0)
        total = u.sum(axis=1, keepdims=True)
        u = np.where(total > 0.0, u * (self.C / np.where(total > 0.0, total, 1.0)), own)
        moving = np.flatnonzero((np.abs(u - own) > 0.0).any(axis=1))
        if not self.fit_intercept or len(moving) == 0:
            return np.asarray(own - u)
        part, wanted = u[moving], own[moving].sum(axis=0)
        sums = part.sum(axis=0)
        part = part * np.minimum(1.0, wanted / np.where(sums > 0.0, sums, 1.0))
        rows, columns = self.C[moving, 0] - part.sum(axis=1), wanted - part.sum(axis=0)
        rows, columns = np.maximum(rows, 0.0), np.maximum(columns, 0.0)
        u[moving] = part + np.outer(rows, columns) / (float(columns.sum()) or 1.0)
        return np.asarray(own - u)

    def start(self) -> FloatArray:
        """A feasible alpha to start from: zero, or in proportion to C when the sum is not zero."""
        share = self.C / self.C.sum() if self.fit_intercept else np.zeros_like(self.C)
        return np.broadcast_to(self.loss.alpha_sum * share, self.shape).copy()


def best_intercept(problem: Problem, f: FloatArray) -> FloatArray:
    """The intercept minimising sum_i C_i V(y_i, f_i + b) + alpha_sum b, one per output.

    The derivative in b is non-decreasing: its sign change is found by bisection, among the kinks of a
    piecewise linear loss, to rounding of y - f for the others. The intercepts of coupled outputs are found
    together, by a linear program.

    Parameters
    ----------
    problem : Problem
    f : ndarray of shape (n, c)
        Predictions without intercept.
    """
    if not problem.fit_intercept:
        return np.zeros(problem.shape[1])
    if problem.loss.coupled:
        return _by_prices(problem, f)
    search = _by_bisection
    if hasattr(problem.loss, "kinks"):
        search = _among_kinks
    elif hasattr(problem.loss, "hessian"):
        search = _by_newton
    if problem.shape[1] == 1:
        return np.array([search(problem, f)])
    columns = range(problem.shape[1])
    return np.array([search(problem.column(k), f[:, k : k + 1]) for k in columns])


def _slope(problem: Problem, f: FloatArray, b: float) -> float:
    return problem.loss.alpha_sum - float(problem.alpha_of(f + b).sum())


def _among_kinks(problem: Problem, f: FloatArray) -> float:
    """The kink at which the slope changes sign, or the middle of the interval where it is zero.

    At each kink of sample i the slope rises by C_i.
    """
    kinks, ends = problem.kinks
    places = (kinks - f).ravel()
    if ends is not None:  # as without weights: sorting is faster than ordering
        places.sort()
    else:
        order = np.argsort(places)
        places, risen = places[order], np.cumsum(np.tile(problem.C[:, 0], len(kinks))[order])
        ends = problem.between(kinks, risen)
    return 0.5 * float(places[ends[0]] + places[ends[1]])


def _by_newton(problem: Problem, f: FloatArray) -> float:
    """Newton steps on the slope, within a bracket of its sign change."""
    b, low, high = 0.0, -np.inf, np.inf
    for _ in range(100):
        alpha = problem.alpha_of(f + b)
        slope = problem.loss.alpha_sum - float(alpha.sum())
        if abs(slope) <= 1e-13 * float(np.abs(alpha).sum()):
            return b
        low, high = (b, high) if slope < 0 else (low, b)
        curvature = float((problem.C * problem.loss.hessian(problem.y, f + b)).sum())
        moved = b - slope / curvature if curvature > 0 else np.nan
        if not low < moved < high:
            moved = 0.5 * (low + high) if np.isfinite(high - low) else np.nan
        if not np.isfinite(moved) or moved == b:
            break
        b = moved
    return _by_bisection(problem, f)


def _by_bisection(problem: Problem, f: FloatArray) -> float:
    # targets of other losses have other units
    level = problem.loss.size(problem.y).max() if problem.loss.separable else 0.0
    scale = float(np.abs(f).max() + level) or 1.0
    width = scale
    while _slope(problem, f, -width) > 0 or _slope(problem, f, width) < 0:
        width *= 2.0
        if width > 1e100 * scale:
            return 0.0  # no finite minimiser
    low, high = -width, width
    while high - low > UNIT * scale:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (low, middle) if _slope(problem, f, middle) > 0 else (middle, high)
    return 0.5 * (low + high)


def _by_prices(problem: Problem, f: FloatArray) -> FloatArray:
    """Intercepts of coupled outputs:  min_b sum_i C_i max_k (A_ik + b_k) - sum_k N_k b_k,  A = f - linear.

    N_k is the cost of the samples of class k. The dual is a transport of the C_i to the N_k that earns A, and
    b are its prices; a primal-dual interior-point method takes one system of c equations per step. If several
    prices are best, it ends in the middle of them. Only differences of prices matter: their mean is zero. A
    class without samples gets the largest b that changes nothing for the samples.
    """
    own = problem.C * (problem.y > 0)
    supply, demand = problem.C[:, 0] / problem.C.sum(), own.sum(axis=0) / problem.C.sum()
    present = np.flatnonzero(demand)
    A = f - problem.loss.simplex_dual(problem.y)
    b, level = _prices(A[:, present], supply, demand[present])
    prices = (level[:, None] - A).min(axis=0)
    prices[present] = b
    return np.asarray(prices - b.mean())


def _prices(A: FloatArray, supply: FloatArray, demand: FloatArray) -> tuple[FloatArray, FloatArray]:
    """b and t that minimise supply't - demand'b with s_ik = t_i - A_ik - b_k >= 0."""
    count = A.shape[1]
    scale = float(np.ptp(A, axis=1).max()) or 1.0
    b, U = np.zeros(count), np.outer(supply, demand)
    s = A.max(axis=1, keepdims=True) + scale - A
    if count == 1:
        return b, A[:, 0]
    for _ in range(MOST_PRICE_STEPS):
        gap = float((U * s).sum())
        if gap <= PRICE_GAP * scale:
            break
        D, r = U / s, PRICE_CENTRE * gap / (U.size * s) - U
        rows, columns = supply - U.sum(axis=1), demand - U.sum(axis=0)
        weight = D.sum(axis=1)
        known = (r.sum(axis=1) - rows) / weight
        # U and s at the step:  dt = known + D db / weight,  dU = r - D (dt - db)
        system = np.diag(D.sum(axis=0)) - D.T @ (D / weight[:, None])
        right = columns - r.sum(axis=0) + D.T @ known
        db = np.append(np.linalg.lstsq(system[:-1, :-1], right[:-1], rcond=None)[0], 0.0)
        dt = known + D @ db / weight
        ds = dt[:, None] - db
        dU = r - D * ds
        down, shrinks = s / np.where(ds < 0.0, -ds, np.inf), U / np.where(dU < 0.0, -dU, np.inf)
        with_s, with_u = (min(1.0, 0.99 * float(np.where(x > 0.0, x, np.inf).min())) for x in (down, shrinks))
        b, s, U = b + with_s * db, s + with_s * ds, U + with_u * dU
    return b, np.asarray((A + b).max(axis=1))
