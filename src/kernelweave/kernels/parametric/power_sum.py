"""Power of a weighted sum of inner products: weighted polynomials."""

from __future__ import annotations

from typing import Any, Self

from ..._typing import FloatArray
from ..base import positive, positive_integer
from ..columns import Columns
from .inner_sum import InnerSum


class PowerSum(InnerSum):
    """Power of a weighted sum, k(x, z) = (d_0 + sum_m d_m x' A_m z)^degree.

    Without `matrices` every feature has its weight, (d_0 + sum_m d_m x_m z_m)^degree. Varma & Babu
    (2009), section 3 and (with degree 2 and offset 1) Table 4.

    Parameters
    ----------
    degree : int, default=2
    offset : float, optional
        A fixed d_0 >= 0; by default d_0 is learned, the first parameter.
    matrices : array-like of shape (M, n_features, n_features), optional
        Symmetric positive semidefinite matrices A_m.
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    Examples
    --------
    >>> import numpy as np
    >>> PowerSum(offset=1.0)(np.array([[1.0, 2.0]]), d=[1.0, 0.5])  # (1 + 1 + 0.5 * 4)^2
    array([[16.]])
    """

    name = "power_sum"

    def __init__(
        self, degree: int = 2, offset: float | None = None, matrices: Any = None, columns: Columns = None
    ) -> None:
        self.degree = degree
        self.offset = offset
        self.matrices = matrices
        self.columns = columns

    @property
    def _learns_offset(self) -> bool:
        return self.offset is None

    def _offset(self, d: FloatArray) -> float:
        return float(d[0]) if self.offset is None else float(self.offset)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        positive_integer(self.degree, "degree")
        if self.offset is not None:
            positive(self.offset, "offset", zero=True)
        return super().fit(X, y, sample_weight)

    def _phi(self, s: FloatArray) -> FloatArray:
        return s**self.degree

    def _slope(self, s: FloatArray) -> FloatArray:
        return self.degree * s ** (self.degree - 1)
