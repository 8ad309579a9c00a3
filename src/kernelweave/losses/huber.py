"""Huber loss: robust regression."""

from __future__ import annotations

from numbers import Real

import numpy as np

from .._typing import FloatArray
from .base import Loss, inside_box, restrict


class Huber(Loss):
    """V(y, f) = t^2 / 2 for |t| <= delta, delta |t| - delta^2 / 2 beyond, with t = y - f.

    Conjugate: V*(y, v) = v y + v^2 / 2 for |v| <= delta. Quadratic for small residuals, linear
    for outliers (Huber 1964).

    Parameters
    ----------
    delta : float, default=1.0
        Residual at which the loss becomes linear, in units of y.

    Examples
    --------
    >>> import numpy as np
    >>> Huber(delta=1.0).value(np.array([0.0, 0.0]), np.array([1.0, 3.0]))
    array([0.5, 2.5])
    """

    name = "huber"
    task = "regression"

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def check(self) -> None:
        if not (isinstance(self.delta, Real) and 0 < self.delta < np.inf):
            raise ValueError(f"{type(self).__name__}: delta={self.delta!r} must be a positive number.")

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        size = np.abs(y - f)
        near = np.minimum(size, self.delta)
        return near * (size - 0.5 * near)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return np.clip(f - y, -self.delta, self.delta)

    def hessian(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """1 in the quadratic zone, else 0."""
        return np.where(np.abs(y - f) < self.delta, 1.0, 0.0)

    def conjugate(self, y: FloatArray, v: FloatArray) -> FloatArray:
        return restrict(v * y + 0.5 * v**2, np.abs(v) / self.delta - 1.0)

    def dual_box(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full_like(y, -self.delta), np.full_like(y, self.delta)

    def dual_curvature(self, y: FloatArray, a: FloatArray) -> FloatArray:
        return np.where(inside_box(a, *self.dual_box(y)), 1.0, np.inf)
