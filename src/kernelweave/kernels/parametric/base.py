"""What every parametric kernel is: a kernel k_d(x, z) differentiable in a vector d of parameters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..._typing import FloatArray
from ..base import Kernel, as_numeric
from ..columns import Columns, as_table, resolve_columns, take_columns
from ..families import feature_name
from .domains import Box

#: rows of one block of a gradient, and its most entries: 64 MB in double precision at any sample size
BLOCK_ROWS, BLOCK_ENTRIES = 128, 2**23


class ParametricKernel(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base class of kernels k_d(x, z) with a vector d of parameters to learn.

    A subclass stores its options in ``__init__`` (`columns` among them) and writes, on the
    selected columns,

    * ``_compute(X, Z, d)``: the Gram block k_d(x_i, z_j);
    * ``_contract(X, Z, B, d, K)``: the vector sum_ij B_ij dk_d(x_i, z_j)/dd_k over k, all at
      once; K is the Gram block at d, or None;
    * ``_initial(X, sample_weight)``: start values of d, of the size d is expected to have (the
      solver measures d in these units); zero for a parameter that no data can inform;
    * optionally ``_names(columns)`` and ``_feature_map(n)``, by default for one parameter per column;
    * ``domain()``, where d may lie so that k_d is positive semidefinite, if that is not d >= 0;
    * ``_sizes()``, the sizes that d is expected to have, where a parameter starts at 0 but is to be learned.

    Everything a solver asks for follows from the two: with W = B o dk/dd_k summed over i and j,
    alpha' (dK/dd_k) alpha is the contraction with B = alpha alpha', and tr(A dK/dd_k) that with
    B = A. No matrix per parameter is ever formed, and B only in blocks of rows of its upper
    triangle. Varma & Babu (2009), Eq. 8.

    Attributes
    ----------
    columns_ : ndarray of int or None
        Positions of the columns the kernel sees.
    names_ : list of str
        One name per parameter.
    initial_ : ndarray of shape (n_parameters,)
    """

    #: what the selected columns must hold
    accepts = "numeric"

    #: the name of the class in lists and errors
    name: str = ""

    columns: Columns = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Resolve the columns, name the parameters and take their start values from the training rows.

        A row of weight w counts as w equal rows.
        """
        X = as_table(X)
        self.columns_ = resolve_columns(self.columns, X)
        self.n_features_ = X.shape[1]
        weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.initial_ = np.asarray(self._initial(self._prepare(X), weight), dtype=np.float64)
        seen = np.arange(X.shape[1]) if self.columns_ is None else self.columns_
        self.names_ = self._names([feature_name(X, int(position)) for position in seen])
        return self

    def n_parameters(self, X: Any) -> int:
        """How many parameters the kernel has on `X`."""
        return len(self.initial(X))

    def initial(self, X: Any) -> FloatArray:
        """Start values of d."""
        return self._fitted_on(X).initial_.copy()

    def domain(self) -> Any:
        """Where d may lie, so that k_d is positive semidefinite: d >= 0 unless a kernel says otherwise."""
        return Box()

    def names(self, X: Any) -> list[str]:
        """One name per parameter, such as that of its feature."""
        return list(self._fitted_on(X).names_)

    def feature_map(self, X: Any) -> FloatArray:
        """Matrix of shape (n_parameters, n_features): 1 where a parameter is the weight of a feature."""
        kernel = self._fitted_on(X)
        seen = slice(None) if kernel.columns_ is None else kernel.columns_
        full = np.zeros((len(kernel.initial_), kernel.n_features_))
        full[:, seen] = kernel._feature_map(len(np.arange(kernel.n_features_)[seen]))
        return full

    def __call__(self, X: Any, Z: Any = None, d: Any = None) -> FloatArray:
        """Gram block k_d(x_i, z_j); `Z=None` means `X` itself, `d=None` the start values."""
        kernel = self._fitted_on(X)
        A = kernel._prepare(X)
        return kernel._compute(A, A if Z is None else kernel._prepare(Z), kernel._checked(d))

    def contract(self, X: Any, Z: Any, B: FloatArray, d: Any, K: FloatArray | None = None) -> FloatArray:
        """sum_ij B_ij dk_d(x_i, z_j)/dd_k, for all k.

        Parameters
        ----------
        X, Z : array-like of shapes (n_x, n_features) and (n_z, n_features)
        B : ndarray of shape (n_x, n_z)
        d : array-like of shape (n_parameters,)
        K : ndarray of shape (n_x, n_z), optional
            k_d(x_i, z_j), when the caller has it already.
        """
        kernel = self._fitted_on(X)
        A = kernel._prepare(X)
        return kernel._contract(A, A if Z is None else kernel._prepare(Z), B, kernel._checked(d), K)

    def grad_quad(self, X: Any, alpha: FloatArray, d: Any, K: FloatArray | None = None) -> FloatArray:
        """alpha' (dK/dd_k) alpha for all k, summed over the outputs (columns) of alpha.

        Only rows with alpha_i != 0 (the support vectors) take part, a block of them at a time.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        alpha : ndarray of shape (n,) or (n, c)
        d : array-like of shape (n_parameters,)
        K : ndarray of shape (n, n), optional
            k_d on X, when the caller has it already.
        """
        kernel = self._fitted_on(X)
        alpha = alpha.reshape(len(alpha), -1)
        support = np.flatnonzero(alpha.any(axis=1))
        A, d = kernel._prepare(X)[support], kernel._checked(d)
        signed = alpha[support].astype(A.dtype, copy=False)
        total = np.zeros(len(d))
        for rows in _blocks(len(support)):
            block = None if K is None else _part(K, support, rows)
            left, right = signed[rows], signed[rows.start :].copy()
            right[len(left) :] *= 2.0  # the other triangle
            total += kernel._contract_outer(A[rows], A[rows.start :], left, right, d, block)
        return total

    def grad_trace(self, X: Any, A: FloatArray, d: Any, K: FloatArray | None = None) -> FloatArray:
        """tr(A dK/dd_k) for all k and a symmetric matrix A, a block of rows at a time."""
        kernel = self._fitted_on(X)
        values, d = kernel._prepare(X), kernel._checked(d)
        total = np.zeros(len(d))
        for rows in _blocks(len(values)):
            B = A[rows, rows.start :].copy()
            B[:, len(B) :] *= 2.0  # the other triangle
            block = None if K is None else K[rows, rows.start :]
            total += kernel._contract(values[rows], values[rows.start :], B, d, block)
        return total

    def frozen(self, d: FloatArray) -> Kernel | None:
        """The fitted kernel at parameters d as one without any, where there is one; else None."""
        return None

    def _fitted_on(self, X: Any) -> Self:
        """The kernel itself once fitted; before that, a copy fitted on `X`."""
        return self if hasattr(self, "initial_") else clone(self).fit(X)

    def _prepare(self, X: Any) -> Any:
        """The selected columns as a float array."""
        X = take_columns(as_table(X), self.columns_)
        return as_numeric(X.toarray() if hasattr(X, "toarray") else X, self.columns_)

    def _checked(self, d: Any) -> FloatArray:
        if d is None:
            return self.initial_
        given = np.asarray(d, dtype=np.float64)
        if given.shape != self.initial_.shape:
            raise ValueError(
                f"d has shape {given.shape}: {type(self).__name__} has {len(self.initial_)} parameters here."
            )
        return given

    @abstractmethod
    def _compute(self, X: Any, Z: Any, d: FloatArray) -> FloatArray:
        """Gram block on the selected columns."""

    @abstractmethod
    def _contract(self, X: Any, Z: Any, B: FloatArray, d: FloatArray, K: FloatArray | None) -> FloatArray:
        """sum_ij B_ij dk_d(x_i, z_j)/dd_k on the selected columns."""

    def _contract_outer(
        self, X: Any, Z: Any, left: FloatArray, right: FloatArray, d: FloatArray, K: FloatArray | None
    ) -> FloatArray:
        """`_contract` with B = left right'; a subclass may do without forming B."""
        return self._contract(X, Z, left @ right.T, d, K)

    @abstractmethod
    def _initial(self, X: Any, sample_weight: FloatArray) -> FloatArray:
        """Start values of d."""

    def _sizes(self) -> FloatArray:
        """The size that each parameter is expected to have; zero for one that no data can inform."""
        return np.abs(self.initial_)

    def _names(self, columns: list[str]) -> list[str]:
        """One name per parameter, from those of the selected columns."""
        return columns

    def _feature_map(self, n_columns: int) -> FloatArray:
        """Which parameter weighs which selected column."""
        return np.eye(n_columns)


def weighted_variances(X: FloatArray, sample_weight: FloatArray) -> FloatArray:
    """Variance of every column, a row of weight w counting as w rows; 0 when it is only rounding."""
    share = (sample_weight / sample_weight.sum()).astype(np.float64)
    mean = share @ X
    variance = share @ np.square(np.subtract(X, mean, dtype=np.float64))
    return np.where(variance > 1e-28 * mean**2, variance, 0.0)


def _blocks(n: int) -> Iterator[slice]:
    """Slices of 0 .. n - 1 whose rows times n stay below BLOCK_ENTRIES."""
    size = max(1, min(BLOCK_ROWS, BLOCK_ENTRIES // max(n, 1)))
    return (slice(start, start + size) for start in range(0, n, size))


def _part(K: FloatArray, support: Any, rows: slice) -> FloatArray:
    """Upper rows of the support's part of K; no copy when the support is everything."""
    if len(support) == len(K):
        return K[rows, rows.start :]
    return K[np.ix_(support[rows], support[rows.start :])]
