"""Epsilon-insensitive loss: support vector regression."""

from __future__ import annotations

from numbers import Real

import numpy as np

from .._typing import FloatArray
from .base import Loss, inside_box, negligible, restrict


class EpsInsensitive(Loss):
    """V(y, f) = max(0, |y - f| - eps).

    Conjugate: V*(y, v) = v y + eps |v| for |v| <= 1. With one kernel it is
    epsilon-support-vector regression (Vapnik 1995).

    Parameters
    ----------
    eps : float, default=0.1
        Half-width of the tube inside which errors cost nothing, in units of y.

    Examples
    --------
    >>> import numpy as np
    >>> EpsInsensitive(eps=0.5).value(np.array([1.0, 1.0]), np.array([1.25, 2.0]))
    array([0. , 0.5])
    """

    name = "eps_insensitive"
    task = "regression"
    degree = 1.0

    def __init__(self, eps: float = 0.1) -> None:
        self.eps = eps

    def check(self) -> None:
        if not (isinstance(self.eps, Real) and 0 <= self.eps < np.inf):
            raise ValueError(f"{type(self).__name__}: eps={self.eps!r} must be a non-negative number.")

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return np.maximum(0.0, np.abs(y - f) - self.eps)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return np.where(np.abs(y - f) > self.eps, np.sign(f - y), 0.0)

    def conjugate(self, y: FloatArray, v: FloatArray) -> FloatArray:
        return restrict(v * y + self.eps * np.abs(v), np.abs(v) - 1.0)

    def dual_box(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full_like(y, -1.0), np.full_like(y, 1.0)

    def dual_curvature(self, y: FloatArray, a: FloatArray) -> FloatArray:
        free = inside_box(a, *self.dual_box(y)) & ((np.abs(a) > negligible(a)) | (self.eps == 0))
        return np.where(free, 0.0, np.inf)

    def linear_dual(self, y: FloatArray) -> tuple[FloatArray, float]:
        """-V*(y, -a) = y a - eps |a| on the box."""
        return y, self.eps

    def kinks(self, y: FloatArray) -> list[FloatArray]:
        """The f at which the gradient jumps: the edges of the tube."""
        return [y - self.eps, y + self.eps]
