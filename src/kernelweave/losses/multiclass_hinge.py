"""Multiclass hinge loss: one model of all classes."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray
from .base import Loss, negligible, restrict


class MulticlassHinge(Loss):
    """V(y, f) = max_k (f_k + cost_k) - f_own,  f one value per class,  own the class with y = +1.

    The costs are 0 for the own class and 1 for the others.

    The loss of Crammer & Singer (2001): zero where the own class is ahead of every other by 1. It takes the
    values of all classes together, so y and f have shape (n, n_classes), a row of y is +1 for the own class
    and -1 for the others, and values have shape (n, 1).

    Conjugate: V*(y, v) = -sum_k cost_k v_k for sum(v) = 0, v_k >= 0 of the other classes and v_own >= -1, so
    that u = v + e_own is a point of the simplex. A constant added to all classes changes nothing, so
    alpha = -C V'(f) sums to zero over the classes of every sample.

    Examples
    --------
    >>> y = np.array([[1.0, -1.0, -1.0]])
    >>> MulticlassHinge().value(y, np.array([[2.0, 1.5, 0.0]]))
    array([[0.5]])
    >>> MulticlassHinge().gradient(y, np.array([[2.0, 1.5, 0.0]]))
    array([[-1.,  1.,  0.]])
    """

    name = "multiclass_hinge"
    task = "multiclass"
    coupled = True

    def costs(self, y: FloatArray) -> FloatArray:
        """What it costs to take a class for that of the sample, at least: 1, and 0 for the own class."""
        return np.where(y > 0, 0.0, 1.0)

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return np.asarray(self._ahead(y, f).max(axis=1, keepdims=True))

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        ahead = self._ahead(y, f)
        # among equal ones the own class comes first
        worst = np.where(ahead.max(axis=1) > 0.0, ahead.argmax(axis=1), y.argmax(axis=1))
        return np.asarray(np.eye(y.shape[1])[worst] - (y > 0))

    def conjugate(self, y: FloatArray, v: FloatArray) -> FloatArray:
        u = v + (y > 0)
        outside = np.maximum(np.abs(v.sum(axis=1, keepdims=True)), -u.min(axis=1, keepdims=True))
        return restrict((self.simplex_dual(y) * v).sum(axis=1, keepdims=True), outside)

    def dual_box(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.where(y > 0, 0.0, -1.0), np.where(y > 0, 1.0, 0.0)

    def dual_curvature(self, y: FloatArray, a: FloatArray) -> FloatArray:
        """0 for the classes that share a sample, u_k > 0 of two or more; +inf for those held fast."""
        inside = (y > 0) - a > negligible(a)
        return np.where(inside & (inside.sum(axis=1, keepdims=True) > 1), 0.0, np.inf)

    def simplex_dual(self, y: FloatArray) -> FloatArray:
        """`linear` such that -V*(y, -a) = sum_k linear_k a_k where that is finite: minus the costs."""
        return -self.costs(y)

    def _ahead(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """f_k + cost_k - f_own: how far a class is ahead of where it may be."""
        own = np.where(y > 0, f, 0.0).sum(axis=1, keepdims=True)
        return np.asarray(np.where(y > 0, 0.0, f + self.costs(y) - own))
