"""A piecewise linear loss with its kinks rounded off."""

from __future__ import annotations

import numpy as np

from ..._typing import FloatArray
from ...losses import Loss


class Smoothed:
    """The conjugate of V*(y, v) + (h / 2) (v - v0)^2, for a piecewise linear loss V.

    The term added keeps the dual variable near v0: minimising the sum over samples of this loss is one
    step of the proximal point method on the dual problem (Rockafellar 1976), and with v0 at the optimum
    it has the solution of V itself, however large h is. For v0 = 0 it is the Moreau envelope of V. Its
    slope rises from s to s + 1 not at a kink k but between k + h (s - v0) and k + h (s + 1 - v0), and
    is that of V elsewhere.

    Parameters
    ----------
    loss : Loss
        With `kinks`.
    width : float
        h.
    center : ndarray, default=0.0
        v0, one slope per sample.

    Examples
    --------
    >>> from kernelweave.losses import Hinge
    >>> Smoothed(Hinge(), 0.5).gradient(np.ones(3), np.array([0.0, 0.75, 2.0]))
    array([-1. , -0.5,  0. ])
    """

    def __init__(self, loss: Loss, width: float, center: FloatArray | float = 0.0) -> None:
        self.loss = loss
        self.width = width
        self.center = center

    @property
    def alpha_sum(self) -> float:
        """As of the loss."""
        return self.loss.alpha_sum

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        slope = self.gradient(y, f)
        near = f - self.width * (slope - self.center)
        return self.loss.value(y, near) + 0.5 * self.width * (slope**2 - np.square(self.center))

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        slope, rises = self._rises(y, f)
        for rise in rises:
            slope += np.clip(rise, 0.0, 1.0)
        return slope

    def hessian(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """1 / h where the slope rises, else 0."""
        _, rises = self._rises(y, f)
        return sum((rise > 0.0) & (rise < 1.0) for rise in rises) / self.width  # type: ignore[return-value]

    def conjugate(self, y: FloatArray, v: FloatArray) -> FloatArray:
        return self.loss.conjugate(y, v) + 0.5 * self.width * (v - self.center) ** 2

    def dual_box(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.loss.dual_box(y)

    def dual_curvature(self, y: FloatArray, a: FloatArray) -> FloatArray:
        return self.loss.dual_curvature(y, a) + self.width

    def _rises(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """The slope left of all kinks, and how far it has risen at each of them: from 0 to 1."""
        kinks = self.loss.kinks(y)
        first = np.array(self.loss.gradient(y, kinks[0] - 1.0), dtype=np.float64)
        before = first - self.center
        return first, [(f - kink) / self.width - before - number for number, kink in enumerate(kinks)]
