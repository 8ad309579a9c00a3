"""The dual of a piecewise linear loss: a quadratic program on a box."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._typing import FloatArray, IntArray
from ..problem import Problem
from .least_squares import symmetric_solver


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

    def size(self, a: FloatArray, G: FloatArray) -> float:
        """Of the slopes G = K a - linear: that of `linear`, or without it of K a, or of what makes up K a."""
        largest = float(self.K.diagonal().max(initial=0.0)) * float(np.abs(a).sum())
        return float(np.abs(self.linear).max()) or float(np.abs(G).max()) or largest or 1.0

    def descend(self, a: FloatArray, G: FloatArray, eps: float, max_iter: int) -> int:
        """SMO steps on a and G = K a - linear, in place, to a violation of `eps`; how many."""
        from ._smo_loops import solve_free, solve_tied

        run = solve_tied if self.tied else solve_free
        diagonal = self.K.diagonal().copy()
        return int(run(self.K, diagonal, self.lower, self.upper, self.kink, a, G, eps, max_iter))

    def minimum_over(self, free: IntArray, a: FloatArray) -> FloatArray:
        """Values of the free entries at the minimum with the others held.

        They solve K a + b = linear - kink sign(a); an entry at zero takes the side it gains on.
        """
        held = a.copy()
        held[free] = 0.0
        slope = self.kink * np.where(a[free] != 0.0, np.sign(a[free]), self._side(free, a))
        right = (self.linear - self.K @ held)[free] - slope
        return self._solve(free, right, float(a[free].sum()))

    def _side(self, free: IntArray, a: FloatArray) -> FloatArray:
        rise, fall = self.gains(a)
        return np.where(rise[free] >= fall[free], 1.0, -1.0)

    def _solve(self, free: IntArray, right: FloatArray, total: float) -> FloatArray:
        """K x + b = right, sum(x) = total when tied; K a little padded, then refined against K itself."""
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

        G = K a - linear, where the caller has it.
        """
        G = self.K @ a - self.linear if G is None else G
        rise = np.where(a < self.upper, -(G + np.where(a >= 0.0, self.kink, -self.kink)), -np.inf)
        fall = np.where(a > self.lower, G + np.where(a > 0.0, self.kink, -self.kink), -np.inf)
        return rise, fall
