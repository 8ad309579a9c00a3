"""Exponential of a weighted sum of inner products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import FloatArray
from ..columns import Columns
from .inner_sum import InnerSum


class ExpSum(InnerSum):
    """Exponential of a weighted sum, k(x, z) = exp(sum_m d_m x' A_m z).

    The paper prints a minus sign before the sum; for positive semidefinite A_m and d >= 0 only
    the plus makes a kernel, the sum of all powers. Standardise the data: the exponent grows with
    its square. Without `matrices` every feature has its weight. Varma & Babu (2009), section 3.

    Parameters
    ----------
    matrices : array-like of shape (M, n_features, n_features), optional
        Symmetric positive semidefinite matrices A_m.
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    Examples
    --------
    >>> import numpy as np
    >>> ExpSum()(np.array([[1.0, 2.0]]), d=[1.0, 0.0]).round(4)
    array([[2.7183]])
    """

    name = "exp_sum"

    def __init__(self, matrices: Any = None, columns: Columns = None) -> None:
        self.matrices = matrices
        self.columns = columns

    def _phi(self, s: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):  # solvers step back from an infinite kernel
            return np.exp(s, out=s)

    def _slope(self, s: FloatArray) -> FloatArray:
        return self._phi(s)
