"""Pinball loss: conditional quantiles."""

from __future__ import annotations

import numpy as np

from kernelweave.losses import Loss
from kernelweave.losses.base import inside_box, restrict


class Pinball(Loss):
    """V(y, f) = max(q t, (q - 1) t),  t = y - f: its minimiser is the q-quantile of y.

    Conjugate: V*(y, v) = v y for -q <= v <= 1 - q (Koenker & Bassett 1978).

    Parameters
    ----------
    q : float, default=0.5
        The quantile, between 0 and 1.

    Examples
    --------
    >>> Pinball(q=0.9).value(np.array([1.0, 1.0]), np.array([0.0, 2.0]))
    array([0.9, 0.1])
    """

    name = "quantile"
    task = "regression"

    def __init__(self, q: float = 0.5) -> None:
        self.q = q

    def value(self, y, f):
        return np.maximum(self.q * (y - f), (self.q - 1.0) * (y - f))

    def gradient(self, y, f):
        return np.where(y > f, -self.q, 1.0 - self.q)

    def conjugate(self, y, v):
        return restrict(v * y, np.maximum(v - (1.0 - self.q), -self.q - v))

    def dual_box(self, y):
        return np.full_like(y, self.q - 1.0), np.full_like(y, self.q)

    def dual_curvature(self, y, a):
        return np.where(inside_box(a, *self.dual_box(y)), 0.0, np.inf)

    def linear_dual(self, y):
        """-V*(y, -a) = y a on the box: SMO can solve it."""
        return y, 0.0

    def kinks(self, y):
        """The slope rises by 1 where f = y."""
        return [y]
