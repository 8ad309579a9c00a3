"""The dual of a piecewise linear loss: a quadratic program on a box."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._typing import FloatArray, IntArray
from ..problem import Problem
from .least_squares import solve_symmetric


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
        lower, upper = problem.box()
        return cls(
            K, linear[:, 0], float(kink), lower[:, 0].copy(), upper[:, 0].copy(), problem.fit_intercept
        )

    def descend(self, a: FloatArray, G: FloatArray, eps: float, max_iter: int) -> int:
        """SMO steps on a and G = K a - linear, in place, to a violation of `eps`; how many."""
        from ._smo_loops import solve_free, solve_tied

        run = solve_tied if self.tied else solve_free
        diagonal = self.K.diagonal().copy()
        return int(run(self.K, diagonal, self.lower, self.upper, self.kink, a, G, eps, max_iter))

    def finish(self, a: FloatArray) -> FloatArray | None:
        """The exact solution if it has the same free entries as `a`, else None.

        With the others held, the free entries solve K a + b = linear - kink sign(a).
        """
        free = np.flatnonzero((a > self.lower) & (a < self.upper) & ((a != 0.0) | (self.kink == 0.0)))
        exact = a.copy()
        if len(free):
            exact[free] = 0.0
            right = (self.linear - self.kink * np.sign(a) - self.K @ exact)[free]
            exact[free] = self._solve(free, right, float(a[free].sum()))
        stays = (exact >= self.lower) & (exact <= self.upper) & ((self.kink == 0.0) | (exact * a >= 0.0))
        slack = 1e-9 * max(1.0, float(np.abs(self.linear).max()))
        summed = not self.tied or abs(float((exact - a).sum())) <= 1e-12 * (1.0 + float(np.abs(a).sum()))
        return exact if stays.all() and summed and self.violation(exact) <= slack else None

    def _solve(self, free: IntArray, right: FloatArray, total: float) -> FloatArray:
        """(K + a little) x + b = right, sum(x) = total when tied; refined against K itself."""
        A = self.K[np.ix_(free, free)]
        padded = A + 1e-13 * max(float(self.K.diagonal().max()), 1e-100) * np.eye(len(A))

        def solve(right: FloatArray, total: float) -> FloatArray:
            x, ones = solve_symmetric(padded, np.column_stack([right, np.ones(len(free))])).T
            return x - ones * ((x.sum() - total) / ones.sum()) if self.tied else x

        x = solve(right, total)
        for _ in range(3):
            x = x + solve(right - A @ x, total - float(x.sum()))
        return x

    def violation(self, a: FloatArray) -> float:
        """How much a pair of entries (or one, if not tied) gains to first order by moving."""
        G = self.K @ a - self.linear
        rise = -(G + np.where(a >= 0.0, self.kink, -self.kink))[a < self.upper]
        fall = (G + np.where(a > 0.0, self.kink, -self.kink))[a > self.lower]
        gains = rise.max(initial=-np.inf), fall.max(initial=-np.inf)
        return float(sum(gains) if self.tied else max(gains))
