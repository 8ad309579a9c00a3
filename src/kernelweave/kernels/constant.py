"""Constant kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Kernel, positive
from .bases import Zero
from .columns import Columns, as_table


class Constant(Kernel):
    """Constant kernel, k(x, z) = value >= 0; ``kernel + 1.0`` adds one.

    It has no variance, so on its own it is an intercept; inside a product or a sum it lets
    a kernel act at a lower order: (Linear() + 1.0) * Linear() is x'z + (x'z)^2.

    Parameters
    ----------
    value : float, default=1.0
    columns : int, str, slice, list, mask or callable, optional
        Accepted for uniformity; the values are not read.

    Examples
    --------
    >>> Constant(2.0)([[0.0], [1.0]])
    array([[2., 2.],
           [2., 2.]])
    """

    name = "constant"
    accepts = "any"
    base = Zero()

    def __init__(self, value: float = 1.0, columns: Columns = None) -> None:
        self.value = value
        self.columns = columns

    def _view(self, X: Any) -> Any:
        return np.empty((X.shape[0], 0))

    def _fit(self, X: Any, sample_weight: np.ndarray | None) -> None:
        positive(self.value, "value", zero=True)

    def of_base(self, B: Any, xp: Any) -> Any:
        return xp.full_like(B, float(self.value))

    def affine(self, Z: Any, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        return np.zeros((as_table(Z).shape[1], coef.shape[1])), float(self.value) * coef.sum(axis=0)

    def _low_rank(self, X: Any, max_rank: int) -> np.ndarray | None:
        return np.full((X.shape[0], 1), np.sqrt(float(self.value))) if max_rank >= 1 else None
