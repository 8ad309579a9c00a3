"""One-class loss: novelty detection."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray
from .base import Loss, inside_box, restrict


class OneClass(Loss):
    """V(f) = max(0, -f) with f = sum_m f_m - rho; the objective also has -rho.

    The offset is the intercept b = -rho, so the intercept's condition becomes
    sum_i alpha_i = 1. Conjugate: V*(v) = 0 for -1 <= v <= 0. With one kernel and
    C = 1 / (nu n) it is the one-class SVM (Schoelkopf et al. 2001) up to scale.

    Examples
    --------
    >>> import numpy as np
    >>> OneClass().value(np.zeros(2), np.array([0.5, -0.5]))
    array([0. , 0.5])
    """

    name = "one_class"
    task = "one_class"
    alpha_sum = 1.0

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return np.maximum(0.0, -f)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return np.where(f < 0.0, -1.0, 0.0)

    def conjugate(self, y: FloatArray, v: FloatArray) -> FloatArray:
        return restrict(np.zeros_like(v), np.maximum(v, -1.0 - v))

    def dual_box(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros_like(y), np.ones_like(y)

    def dual_curvature(self, y: FloatArray, a: FloatArray) -> FloatArray:
        return np.where(inside_box(a, *self.dual_box(y)), 0.0, np.inf)

    def linear_dual(self, y: FloatArray) -> tuple[FloatArray, float]:
        """-V*(-a) = 0 on the box."""
        return np.zeros_like(y), 0.0

    def kinks(self, y: FloatArray) -> list[FloatArray]:
        """The f at which the gradient jumps: 0."""
        return [np.zeros_like(y)]

    def size(self, y: FloatArray) -> FloatArray:
        """There are no targets to round."""
        return np.zeros_like(y)
