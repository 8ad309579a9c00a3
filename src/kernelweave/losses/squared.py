"""Squared loss: kernel ridge regression."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray
from .base import Loss


class Squared(Loss):
    """V(y, f) = (y - f)^2 / 2.

    Conjugate: V*(y, v) = v^2 / 2 + v y. With one kernel and no intercept it is scikit-learn's
    KernelRidge with alpha = 1 / C; on +-1 labels, the least-squares SVM.

    Examples
    --------
    >>> import numpy as np
    >>> Squared().value(np.array([3.0]), np.array([1.0]))
    array([2.])
    """

    name = "squared"
    task = "regression"
    quadratic = True

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return 0.5 * (y - f) ** 2

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return f - y

    def hessian(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """1 everywhere."""
        return np.ones_like(f)

    def conjugate(self, y: FloatArray, v: FloatArray) -> FloatArray:
        return 0.5 * v**2 + v * y

    def dual_box(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full_like(y, -np.inf), np.full_like(y, np.inf)

    def dual_curvature(self, y: FloatArray, a: FloatArray) -> FloatArray:
        return np.ones_like(a)
