"""p-norm penalty, p > 1."""

from __future__ import annotations

from numbers import Real

import numpy as np

from ...._typing import FloatArray
from .base import Penalty, strengths


class PowerNorm(Penalty):
    """r(d) = strength sum_k d_k^p / p,  p > 1: between sparse (p near 1) and even parameters.

    Parameters
    ----------
    p : float, default=2.0
        Above 1; use `L1` for p = 1.
    strength : float or array-like of shape (n_parameters,), default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> PowerNorm(p=3.0).gradient(np.array([1.0, 2.0]))
    array([1., 4.])
    """

    name = "power"

    def __init__(self, p: float = 2.0, strength: float = 1.0) -> None:
        self.p = p
        self.strength = strength

    def check(self, n_parameters: int) -> None:
        if not (isinstance(self.p, Real) and 1 < self.p < np.inf):
            raise ValueError(f"PowerNorm: p={self.p!r} must be finite and above 1; use L1 for p = 1.")
        strengths(self.strength, n_parameters, "PowerNorm")

    def value(self, d: FloatArray) -> float:
        return float((np.asarray(self.strength) * np.maximum(d, 0.0) ** self.p).sum() / self.p)

    def gradient(self, d: FloatArray) -> FloatArray:
        return np.asarray(self.strength) * np.maximum(d, 0.0) ** (self.p - 1.0)
