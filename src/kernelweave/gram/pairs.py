"""A base between the samples of one fit, a tile at a time: what kernels share, prepared once."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing, gen_batches
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .._typing import FloatArray, IntArray
from ..kernels import Kernel
from ..kernels.bases import POINT_BYTES, Base, InnerProduct, SquaredEuclidean, canonical, moved, origin_of
from .stack import KernelStack

#: samples of one side of a tile
Part = slice | IntArray

#: rows whose squared lengths are computed at a time
NORM_ROWS = 1024

#: so few rows are compared feature by feature: a matrix product would not pay for itself
FEW_ROWS = 4


class Pairs:
    """A base b(x_i, x_j) of n samples.

    Parameters
    ----------
    base : Base
    X : ndarray or CSR matrix of shape (n, n_features)
        Values are computed in its precision.

    Attributes
    ----------
    n_samples : int
    dtype : dtype
        Precision of the values.

    Examples
    --------
    >>> from kernelweave.kernels.bases import Manhattan
    >>> Pairs(Manhattan(), np.array([[0.0], [1.0], [3.0]])).between(slice(0, 1), slice(0, 3))
    array([[0., 1., 3.]])
    """

    n_samples: int
    dtype: Any
    #: None for values of a kernel that is a function of none
    base: Base | None = None

    def __init__(self, base: Base | None, X: Any) -> None:
        self.base, self.X = base, X if sparse.issparse(X) else np.ascontiguousarray(X)
        self.n_samples, self.dtype = X.shape[0], np.dtype(X.dtype)

    def between(self, rows: Part, columns: Part) -> FloatArray:
        """The base between two sets of samples."""
        assert self.base is not None
        left = self.X[rows]
        return np.asarray(self.base.between(left, left if rows is columns else self.X[columns]))

    def diag(self) -> FloatArray:
        """b(x_i, x_i)."""
        assert self.base is not None
        return np.asarray(self.base.diag(self.X))

    def take(self, samples: IntArray | None) -> Pairs:
        """The same of some samples."""
        return self if samples is None else type(self)(self.base, self.X[samples])

    def prepare(self, rows: Part, evict: bool) -> None:
        """Be told that these rows are about to be read; a cache may fetch them."""


class Products(Pairs):
    """x'z in double precision whatever the data are; squared lengths are kept.

    Parameters
    ----------
    base : Base
    X : ndarray or CSR matrix of shape (n, n_features)
    norms : ndarray of shape (n,), optional
    """

    def __init__(self, base: Base | None, X: Any, norms: FloatArray | None = None) -> None:
        super().__init__(base, X)
        self._norms = norms

    @property
    def norms(self) -> FloatArray:
        """Squared lengths of the samples, computed when they are first asked for."""
        if self._norms is None:
            pieces = gen_batches(self.n_samples, NORM_ROWS)
            self._norms = np.concatenate([_squared_norms(self._points(rows, slice(None))) for rows in pieces])
        return self._norms

    def between(self, rows: Part, columns: Part) -> FloatArray:
        return self._products(rows, columns).astype(self.dtype, copy=False)

    def diag(self) -> FloatArray:
        return self.norms

    def take(self, samples: IntArray | None) -> Pairs:
        return self if samples is None else type(self)(self.base, self.X[samples], self.norms[samples])

    def _products(self, rows: Part, columns: Part) -> FloatArray:
        """x_i'x_j: distances are small differences of them."""
        step = max(1, POINT_BYTES // (8 * (count(rows) + count(columns))))
        if sparse.issparse(self.X) or step >= self.X.shape[1]:
            return self._products_of(rows, columns, slice(None))
        pieces = gen_batches(self.X.shape[1], step)
        return np.asarray(sum(self._products_of(rows, columns, some) for some in pieces))

    def _products_of(self, rows: Part, columns: Part, features: slice) -> FloatArray:
        """x_i'x_j of some of the features."""
        left = self._points(rows, features)
        right = left if rows is columns else self._points(columns, features)
        return np.asarray(safe_sparse_dot(left, right.T, dense_output=True))

    def _points(self, part: Part, features: slice) -> Any:
        """Some features of some samples, in double precision; all features of a sparse table."""
        found = self.X[part] if sparse.issparse(self.X) else self.X[part][:, features]
        return found.astype(np.float64, copy=False)


class Distances(Products):
    """||x - z||^2 from products of the samples about a point near them, where rounding is less.

    Attributes
    ----------
    origin : ndarray of shape (n_features,)
        `origin_of` the samples; a sparse `X` is kept less that.
    """

    def __init__(self, base: Base | None, X: Any) -> None:
        self.origin = origin_of(canonical(X) if sparse.issparse(X) else X)
        super().__init__(base, moved(canonical(X), self.origin) if sparse.issparse(X) else X)

    def between(self, rows: Part, columns: Part) -> FloatArray:
        from ._shared_loops import direct_distances, distances

        if count(rows) <= FEW_ROWS and not sparse.issparse(self.X):
            D = np.empty((count(rows), count(columns)), self.dtype)
            direct_distances(self.X[rows], self.X[columns], D)
            return D
        products = self._products(rows, columns)
        D = products if self.dtype == np.float64 else np.empty(products.shape, self.dtype)
        distances(products, self.norms[rows], self.norms[columns], D)
        # 0 of a sample to itself, which a difference of products misses by rounding
        left, right = positions(rows), positions(columns)
        if len(np.intersect1d(left, right)):
            D[np.equal.outer(left, right)] = 0.0
        return D

    def diag(self) -> FloatArray:
        return np.zeros(self.n_samples, self.dtype)

    def take(self, samples: IntArray | None) -> Pairs:
        if samples is None:
            return self
        part = object.__new__(type(self))
        Products.__init__(part, self.base, self.X[samples], self.norms[samples])
        part.origin = self.origin
        return part

    def _points(self, part: Part, features: slice) -> Any:
        found = super()._points(part, features)
        return found if sparse.issparse(found) else found - self.origin[features]


class OwnValues(Pairs):
    """The values of a kernel that is a function of no base.

    Parameters
    ----------
    kernel : Kernel
        Fitted.
    X : array-like, sparse matrix or DataFrame of shape (n, n_features)
    """

    def __init__(self, kernel: Kernel, X: Any) -> None:
        self.kernel, self.X, self.n_samples = kernel, X, X.shape[0]
        self.dtype = kernel(_safe_indexing(X, slice(0, 1))).dtype

    def between(self, rows: Part, columns: Part) -> FloatArray:
        return np.asarray(self.kernel(_safe_indexing(self.X, rows), _safe_indexing(self.X, columns)))

    def diag(self) -> FloatArray:
        return np.asarray(self.kernel.diag(self.X), dtype=np.float64)

    def take(self, samples: IntArray | None) -> Pairs:
        return self if samples is None else OwnValues(self.kernel, _safe_indexing(self.X, samples))


class Given(Pairs):
    """The entries of a matrix given by the user, read where it lies.

    Parameters
    ----------
    stack : KernelStack of shape (n, n, M)
    m : int
        Which of its matrices.
    """

    def __init__(self, stack: KernelStack, m: int) -> None:
        self.stack, self.m = stack, m
        self.n_samples, self.dtype = len(stack), stack.matrices[m].dtype

    def between(self, rows: Part, columns: Part) -> FloatArray:
        return self.stack.part(self.m, rows, columns)

    def diag(self) -> FloatArray:
        return self.stack.diagonal(self.m).astype(np.float64)

    def take(self, samples: IntArray | None) -> Pairs:
        return self if samples is None else Given(self.stack[samples, samples], self.m)


#: bases whose samples are worth preparing
PREPARED: dict[type[Base], type[Pairs]] = {InnerProduct: Products, SquaredEuclidean: Distances}


def pairs_of(base: Base, X: Any) -> Pairs:
    """A base of the rows of X, by the class for it."""
    return PREPARED.get(type(base), Pairs)(base, X)


def _squared_norms(X: Any) -> FloatArray:
    if sparse.issparse(X):
        return np.asarray(row_norms(X, squared=True))
    return np.asarray(np.einsum("ij,ij->i", X, X))


def positions(part: Part) -> IntArray:
    """Numbers of the samples of one side of a tile."""
    return np.arange(part.start, part.stop) if isinstance(part, slice) else part


def count(part: Part) -> int:
    """How many samples they are."""
    return part.stop - part.start if isinstance(part, slice) else len(part)
