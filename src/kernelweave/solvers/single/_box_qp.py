"""A quadratic program in a box, compiled steps of two variables for it, and an exact active-set method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack

from ..._typing import FloatArray, IntArray
from ...gram.some_rows import RowsOnDemand
from ..problem import Problem

#: makes no rows
ALL_MADE = (np.empty(0, dtype=bool), np.empty(0, dtype=np.intp), np.empty(0), np.empty(0))


@dataclass(frozen=True)
class BoxQP:
    """min_a 1/2 a' K a - linear' a + kink |a|_1,  lower <= a <= upper,  sum(a) fixed when tied."""

    K: FloatArray
    linear: FloatArray
    kink: float
    lower: FloatArray
    upper: FloatArray
    tied: bool

    @classmethod
    def of(cls, K: FloatArray, problem: Problem) -> BoxQP:
        """The program of a problem of one output."""
        linear, kink = problem.loss.linear_dual(problem.y)
        lower, upper = (bound[:, 0].copy() for bound in problem.box())
        return cls(K, problem.centred(linear)[:, 0], float(kink), lower, upper, problem.fit_intercept)

    @cached_property
    def diagonal(self) -> FloatArray:
        """The diagonal of K, whose entries are far apart in memory."""
        return self.K.diagonal().copy()

    def size(self, a: FloatArray, G: FloatArray) -> float:
        """Size of the slopes G = K a - linear: of `linear`, or if that is zero of K a, or of its terms."""
        largest = float(self.diagonal.max(initial=0.0)) * float(np.abs(a).sum())
        return float(np.abs(self.linear).max()) or float(np.abs(G).max()) or largest or 1.0

    def descend(self, a: FloatArray, G: FloatArray, eps: float, max_iter: int) -> int:
        """SMO steps on a and G = K a - linear, in place, to a violation of `eps`; returns their number."""
        from ._smo_loops import solve_free, solve_tied

        run, K = solve_tied if self.tied else solve_free, self.K
        rows, maker = (K.room, K.maker) if isinstance(K, RowsOnDemand) else (K, ALL_MADE)
        return int(run(rows, maker, self.diagonal, self.lower, self.upper, self.kink, a, G, eps, max_iter))

    def minimum_over(self, free: IntArray, a: FloatArray) -> FloatArray:
        """Values of the free entries at the minimum with the others held fixed.

        They solve K a + b = linear - kink sign(a); an entry at zero moves to the side where it gains.
        """
        held = a.copy()
        held[free] = 0.0
        rise, fall = self.gains(a)
        side = np.where(rise[free] >= fall[free], 1.0, -1.0)
        slope = self.kink * np.where(a[free] != 0.0, np.sign(a[free]), side)
        right = (self.linear - self.K @ held)[free] - slope
        return self._solve(free, right, float(a[free].sum()))

    def _solve(self, free: IntArray, right: FloatArray, total: float) -> FloatArray:
        """K x + b = right, sum(x) = total when tied; K slightly raised, then refined against K."""
        A = self.K[np.ix_(free, free)]
        padding = 1e-13 * max(float(self.K.diagonal().max()), 1e-100)
        inverse = symmetric_solver(A + padding * np.eye(len(A)))
        ones = inverse(np.ones(len(free)))

        def solve(right: FloatArray, total: float) -> FloatArray:
            x = inverse(right)
            return x - ones * ((x.sum() - total) / ones.sum()) if self.tied else x

        x = solve(right, total)
        for _ in range(3):
            x = x + solve(right - A @ x, total - float(x.sum()))
        return x

    def gains(self, a: FloatArray, G: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """First-order gain of moving each entry up, and down; -inf where a bound forbids it.

        G = K a - linear, if the caller has it.
        """
        G = self.K @ a - self.linear if G is None else G
        rise = np.where(a < self.upper, -(G + np.where(a >= 0.0, self.kink, -self.kink)), -np.inf)
        fall = np.where(a > self.lower, G + np.where(a > 0.0, self.kink, -self.kink), -np.inf)
        return rise, fall


def symmetric_solver(A: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """The map B -> A^-1 B, by Cholesky, or by an indefinite factor where rounding makes A not positive."""
    try:
        factor = cho_factor(A, lower=True, check_finite=False)
    except LinAlgError:
        return lambda B: lapack.dsysv(A, B, lower=True)[2].reshape(B.shape)
    return lambda B: cho_solve(factor, B, check_finite=False)


class ActiveSet:
    """Which entries are free, each between its bounds (or between a bound and the kink at zero).

    Every round moves the free entries towards the minimum over them, as long as all stay inside. An entry
    that reaches an end is held there; at the minimum, the pair of entries that gains most is freed. The
    objective never rises, and the point stays feasible.

    Parameters
    ----------
    qp : BoxQP
    a : ndarray of shape (n,)
        A feasible point.
    """

    def __init__(self, qp: BoxQP, a: FloatArray) -> None:
        self.qp, self.a = qp, a.copy()
        kinked = qp.kink > 0.0
        self.lower = np.where(kinked & (a > 0.0), 0.0, qp.lower)
        self.upper = np.where(kinked & (a < 0.0), 0.0, qp.upper)
        self.free = (a > self.lower) & (a < self.upper) & ~(kinked & (a == 0.0))
        rounding = 1e-14 * float(qp.K.diagonal().max()) * float(np.abs(a).sum())
        self.slack = max(1e-10 * qp.size(a, qp.K @ a - qp.linear), rounding)
        self.n_rounds = 0

    def run(self, max_rounds: int) -> FloatArray | None:
        """The exact solution, or None if it is not reached in `max_rounds` or because of rounding."""
        total = float(self.a.sum())
        for self.n_rounds in range(1, max_rounds + 1):
            if self._move() and not self._release():
                kept = not self.qp.tied or abs(float(self.a.sum()) - total) <= 1e-12 * float(
                    np.abs(self.a).sum()
                )
                return self.a if kept else None
        return None

    def _move(self) -> bool:
        """Move towards the minimum over the free entries; whether it was reached."""
        free = np.flatnonzero(self.free)
        if len(free) <= int(self.qp.tied):
            return True
        step = self.qp.minimum_over(free, self.a) - self.a[free]
        if not np.isfinite(step).all():
            return True
        ends = np.where(step > 0.0, self.upper[free], self.lower[free])
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(step == 0.0, np.inf, (ends - self.a[free]) / step)
        t = min(1.0, float(reach.min()))
        self.a[free] += t * step
        stopped = reach <= t if t < 1.0 else np.zeros(len(free), dtype=bool)
        self.a[free[stopped]] = ends[stopped]
        self.free[free[stopped]] = False
        return not stopped.any()

    def _release(self) -> bool:
        """Free the entries that gain most by moving up and down; whether there are any."""
        rise, fall = self.qp.gains(self.a)
        up, down = int(rise.argmax()), int(fall.argmax())
        gain = rise[up] + fall[down] if self.qp.tied else max(rise[up], fall[down])
        if not gain > self.slack:
            return False
        before = self.free.copy()
        if self.qp.tied or rise[up] >= fall[down]:
            self._open(up, upwards=True)
        if self.qp.tied or fall[down] > rise[up]:
            self._open(down, upwards=False)
        return bool((self.free != before).any())

    def _open(self, i: int, upwards: bool) -> None:
        self.free[i] = True
        if self.qp.kink > 0.0 and self.a[i] == 0.0:
            self.lower[i] = 0.0 if upwards else self.qp.lower[i]
            self.upper[i] = self.qp.upper[i] if upwards else 0.0
