"""Squared hinge over pairs: put samples in the order of their targets."""

from __future__ import annotations

import numpy as np

from kernelweave.losses import JointLoss


class Ranking(JointLoss):
    """L(y, f) = 1/2 sum_{y_i > y_j} w_i w_j max(0, 1 - f_i + f_j)^2: larger targets, larger predictions.

    Only the order of y matters, and only differences of f (Herbrich, Graepel & Obermayer 2000).

    Examples
    --------
    >>> y, weight = np.array([1.0, 2.0, 3.0]), np.ones(3)
    >>> Ranking().value(y, np.array([0.0, 1.0, 2.0]), weight)
    0.0
    >>> Ranking().value(y, np.array([0.0, 1.0, 0.0]), weight)
    2.5
    """

    name = "ranking"
    task = "regression"
    shift_invariant = True

    def _missing(self, y, f):
        """1 - f_i + f_j where y_i > y_j and that is positive, else 0; shape (n, n)."""
        return np.maximum(1.0 - np.subtract.outer(f, f), 0.0) * np.greater.outer(y, y)

    def value(self, y, f, weight):
        return float(0.5 * weight @ self._missing(y, f) ** 2 @ weight)

    def gradient(self, y, f, weight):
        missing = self._missing(y, f)
        return weight * (missing.T @ weight - missing @ weight)

    def curvature(self, y, f, weight):
        """H = sum of w_i w_j (e_i - e_j)(e_i - e_j)' over pairs that miss, and (a - b)^2 <= 2 a^2 + 2 b^2."""
        misses = self._missing(y, f) > 0.0
        return 2.0 * weight * ((misses | misses.T) @ weight)

    def hessian_product(self, y, f, weight, v):
        misses = self._missing(y, f) > 0.0
        pairs = misses | misses.T
        return weight * (pairs @ weight * v - pairs @ (weight * v))
