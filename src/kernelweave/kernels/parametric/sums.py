"""Functions of a weighted inner product, sum_m d_m x_m z_m or sum_m d_m K_m: powers and exponentials."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from ..._typing import FloatArray
from ..base import positive, positive_integer
from ..columns import Columns
from .base import ParametricKernel, weighted_variances
from .product_rbf import inverse_spread


class InnerSum(ParametricKernel):
    """k(x, z) = phi(s),  s = offset + sum_m d_m x' A_m z.

    Without `matrices`, A_m picks feature m: s = offset + sum_m d_m x_m z_m. With W = B o phi'(s),

        sum_ij B_ij dK_ij/dd_m = sum of the entries of A_m o (X' W Z)

    a diagonal of X' W Z for single features, and sum_ij W_ij for the offset.
    """

    columns: Columns
    matrices: Any = None

    @property
    def _learns_offset(self) -> bool:
        return False

    def _offset(self, d: FloatArray) -> float:
        """The constant added to the weighted sum."""
        return float(d[0]) if self._learns_offset else 0.0

    @abstractmethod
    def _phi(self, s: FloatArray) -> FloatArray:
        """phi(s)."""

    @abstractmethod
    def _slope(self, s: FloatArray) -> FloatArray:
        """phi'(s)."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        self.matrices_ = None if self.matrices is None else _check_matrices(self.matrices)
        return super().fit(X, y, sample_weight)

    def _initial(self, X: FloatArray, sample_weight: FloatArray) -> FloatArray:
        if self.matrices_ is None:
            sizes = weighted_variances(X, sample_weight)
        else:
            _require_size(self.matrices_, X.shape[1])
            centred = X - np.average(X, axis=0, weights=sample_weight)
            covariance = (centred * sample_weight[:, None]).T @ centred / sample_weight.sum()
            sizes = np.einsum("mkl,kl->m", self.matrices_, covariance)
        start = inverse_spread(sizes * len(sizes))
        return np.append(1.0, start) if self._learns_offset else start

    def _names(self, columns: list[str]) -> list[str]:
        terms = columns if self.matrices_ is None else [f"A{m}" for m in range(len(self.matrices_))]
        return ["offset", *terms] if self._learns_offset else terms

    def _feature_map(self, n_columns: int) -> FloatArray:
        terms = np.eye(n_columns)
        if self.matrices_ is not None:
            # A_m weighs the features it reads
            terms = self.matrices_.any(axis=1).astype(float)
        return np.vstack([np.zeros((1, n_columns)), terms]) if self._learns_offset else terms

    def _sum(self, X: FloatArray, Z: FloatArray, d: FloatArray) -> FloatArray:
        weights = (d[1:] if self._learns_offset else d).astype(X.dtype)
        left = X * weights if self.matrices_ is None else X @ np.tensordot(weights, self.matrices_, 1)
        s = left @ Z.T
        s += self._offset(d)
        return s

    def _compute(self, X: FloatArray, Z: FloatArray, d: FloatArray) -> FloatArray:
        return self._phi(self._sum(X, Z, d))

    def _contract(
        self, X: FloatArray, Z: FloatArray, B: FloatArray, d: FloatArray, K: FloatArray | None
    ) -> FloatArray:
        W = B * self._slope(self._sum(X, Z, d))
        if self.matrices_ is None:
            terms = np.einsum("ik,ik->k", X, W @ Z)
        else:
            terms = np.einsum("mkl,kl->m", self.matrices_, X.T @ (W @ Z))
        return np.append(W.sum(), terms) if self._learns_offset else np.asarray(terms, dtype=np.float64)


def _check_matrices(matrices: Any) -> FloatArray:
    stack = np.asarray(matrices, dtype=np.float64)
    if stack.ndim != 3 or stack.shape[1] != stack.shape[2] or len(stack) == 0:
        raise ValueError(
            f"matrices has shape {stack.shape}: expected (M, n_features, n_features), one A_m per term."
        )
    for m, A in enumerate(stack):
        size = max(float(np.abs(A).max()), 1e-300)
        if np.abs(A - A.T).max() > 1e-10 * size or np.linalg.eigvalsh(A)[0] < -1e-8 * size:
            raise ValueError(
                f"matrices[{m}] is not symmetric positive semidefinite, so x' A z is no kernel: "
                "symmetrise it and clip its negative eigenvalues."
            )
    return stack


def _require_size(matrices: FloatArray, n_columns: int) -> None:
    if matrices.shape[1] != n_columns:
        raise ValueError(
            f"matrices are {matrices.shape[1]} x {matrices.shape[1]}, but the kernel sees {n_columns} "
            "columns: give one row and column per feature."
        )


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
