"""Pinball loss: conditional quantiles."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.metrics import d2_pinball_score

from .._typing import FloatArray
from .base import Loss, inside_box, restrict


class Pinball(Loss):
    """V(y, f) = max(q t, (q - 1) t),  t = y - f: its minimiser is the q-quantile of y.

    Conjugate: V*(y, v) = v y for -q <= v <= 1 - q. With one kernel it is kernel quantile regression
    (Koenker & Bassett 1978, Takeuchi et al. 2006). The score of a regressor with this loss is its
    `agreement`.

    Parameters
    ----------
    quantile : float, default=0.5
        q, between 0 and 1.

    Examples
    --------
    >>> Pinball(quantile=0.9).value(np.array([1.0, 1.0]), np.array([0.0, 2.0])).round(3)
    array([0.9, 0.1])
    """

    name = "pinball"
    task = "quantile"
    degree = 1.0

    def __init__(self, quantile: float = 0.5) -> None:
        self.quantile = quantile

    def check(self) -> None:
        if not (isinstance(self.quantile, Real) and 0.0 < float(self.quantile) < 1.0):
            raise ValueError(f"Pinball: quantile={self.quantile!r} must be a number between 0 and 1.")

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return np.maximum(self.quantile * (y - f), (self.quantile - 1.0) * (y - f))

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return np.where(y > f, -self.quantile, 1.0 - self.quantile)

    def conjugate(self, y: FloatArray, v: FloatArray) -> FloatArray:
        return restrict(v * y, np.maximum(v - (1.0 - self.quantile), -self.quantile - v))

    def dual_box(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full_like(y, self.quantile - 1.0), np.full_like(y, self.quantile)

    def dual_curvature(self, y: FloatArray, a: FloatArray) -> FloatArray:
        return np.where(inside_box(a, *self.dual_box(y)), 0.0, np.inf)

    def linear_dual(self, y: FloatArray) -> tuple[FloatArray, float]:
        """-V*(y, -a) = y a on the box."""
        return y, 0.0

    def kinks(self, y: FloatArray) -> list[FloatArray]:
        """The slope rises by 1 where f = y."""
        return [y]

    def agreement(self, y: Any, f: Any, sample_weight: Any = None) -> float:
        """1 - sum_i V(y_i, f_i) / sum_i V(y_i, b), with b the quantile of y: 1 for what is known exactly.

        What `score` of a regressor with this loss is: R^2 of the pinball loss.

        Examples
        --------
        >>> Pinball().agreement([1.0, 2.0, 3.0], [1.0, 2.5, 3.0])
        0.75
        """
        return float(d2_pinball_score(y, f, sample_weight=sample_weight, alpha=self.quantile))
