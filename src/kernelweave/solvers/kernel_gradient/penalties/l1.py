"""l1 penalty: sparse parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._typing import FloatArray
from .base import Penalty, strengths


class L1(Penalty):
    """r(d) = sum_k strength_k d_k, on d >= 0: many parameters become exactly zero.

    With `WeightedSum` it is ordinary multiple kernel learning with the price h(d) = 2 strength' d,
    ``LpNorm(p=1, form="penalty", costs=2 * strength)``. Varma & Babu (2009), section 3.

    Parameters
    ----------
    strength : float or array-like of shape (n_parameters,), default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> L1(2.0).value(np.array([1.0, 0.5]))
    3.0
    """

    name = "l1"

    def __init__(self, strength: Any = 1.0) -> None:
        self.strength = strength

    def check(self, n_parameters: int) -> None:
        strengths(self.strength, n_parameters, "L1")

    def value(self, d: FloatArray) -> float:
        return float((np.asarray(self.strength) * d).sum())

    def gradient(self, d: FloatArray) -> FloatArray:
        return np.asarray(self.strength) * np.ones_like(d)
