"""Squared hinge loss: the L2 support vector machine."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray
from .base import Loss, negligible, restrict


class SquaredHinge(Loss):
    """V(y, f) = max(0, 1 - y f)^2 / 2,  y in {-1, +1}.

    Conjugate: V*(y, v) = y v + v^2 / 2 for y v <= 0. The 1/2 makes the gradient of a violated
    margin equal to the violation.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredHinge().value(np.array([1.0, -1.0]), np.array([0.0, 1.0]))
    array([0.5, 2. ])
    """

    name = "squared_hinge"
    task = "classification"

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return 0.5 * np.maximum(0.0, 1.0 - y * f) ** 2

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return -y * np.maximum(0.0, 1.0 - y * f)

    def hessian(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """1 where the margin is violated, else 0."""
        return np.where(y * f < 1.0, 1.0, 0.0)

    def conjugate(self, y: FloatArray, v: FloatArray) -> FloatArray:
        margin = y * v
        return restrict(margin + 0.5 * v**2, margin)

    def dual_box(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)

    def dual_curvature(self, y: FloatArray, a: FloatArray) -> FloatArray:
        return np.where(y * a > negligible(a), 1.0, np.inf)
