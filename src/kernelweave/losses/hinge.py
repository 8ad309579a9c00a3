"""Hinge loss: the support vector machine."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray
from .base import Loss, inside_box, restrict
from .multiclass_hinge import MulticlassHinge


class Hinge(Loss):
    """V(y, f) = max(0, 1 - y f),  y in {-1, +1}.

    Conjugate: V*(y, v) = y v for -1 <= y v <= 0. Not differentiable at y f = 1, where the
    support vectors on the margin lie; with one kernel it is the C-SVM (Cortes & Vapnik 1995).

    Examples
    --------
    >>> import numpy as np
    >>> Hinge().value(np.array([1.0, -1.0]), np.array([0.25, 0.25]))
    array([0.75, 1.25])
    """

    name = "hinge"
    task = "classification"

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return np.maximum(0.0, 1.0 - y * f)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return np.where(y * f < 1.0, -y, 0.0)

    def conjugate(self, y: FloatArray, v: FloatArray) -> FloatArray:
        margin = y * v
        return restrict(margin, np.maximum(margin, -1.0 - margin))

    def dual_box(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.minimum(y, 0.0), np.maximum(y, 0.0)

    def dual_curvature(self, y: FloatArray, a: FloatArray) -> FloatArray:
        return np.where(inside_box(a, *self.dual_box(y)), 0.0, np.inf)

    def linear_dual(self, y: FloatArray) -> tuple[FloatArray, float]:
        """-V*(y, -a) = y a on the box."""
        return y, 0.0

    def kinks(self, y: FloatArray) -> list[FloatArray]:
        """The f at which the gradient jumps: y f = 1."""
        return [y]

    def multiclass(self) -> MulticlassHinge:
        """The loss of all classes together."""
        return MulticlassHinge()
