"""Kernels that share the expensive part of their values: distances, inner products."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .._typing import FloatArray, IntArray
from ..kernels.distances import POINT_BYTES, canonical, moved, origin_of
from .chains import power_chains

#: samples of one side of a tile
Part = slice | IntArray

#: most exp(-gamma d) is raised to instead of computing another one: the power multiplies rounding
MAX_POWER = {"f": 8, "d": 1000}

#: rows whose squared lengths are computed at a time
NORM_ROWS = 1024

#: so few rows are compared feature by feature: a matrix product would not pay for itself
FEW_ROWS = 4


class Shared(ABC):
    """Kernels on n samples that share one quantity of two samples, their `base`.

    Attributes
    ----------
    n_samples, n_kernels : int
    dtype : dtype
        Precision of the base, and of the values.
    """

    n_samples: int
    n_kernels: int
    dtype: Any

    #: whether all kernels are computed at once, also for `products`, and known to be positive semidefinite
    batched = False

    #: whether the base is an array of all pairs, worth keeping
    cacheable = True

    @abstractmethod
    def base(self, rows: Part, columns: Part) -> FloatArray:
        """The shared quantity between two sets of samples."""

    @abstractmethod
    def values(self, base: FloatArray, k: int) -> FloatArray:
        """Kernel k from the base; it may be the base itself."""

    @abstractmethod
    def diag(self, k: int) -> FloatArray:
        """Values k(x_i, x_i) of kernel k."""

    @abstractmethod
    def take(self, samples: IntArray | None, kernels: IntArray | None) -> Shared:
        """The same on some samples, or some of the kernels."""

    def add(self, base: FloatArray, factors: FloatArray, out: FloatArray, lower: bool) -> None:
        """out += sum_k factors[k] K_k; with `lower`, entries above the diagonal may be anything."""
        for k in np.flatnonzero(factors):
            out += factors[k] * self.values(base, int(k))

    def inner(self, base: FloatArray, W: FloatArray, lower: bool) -> FloatArray:
        """sum_ij W_ij K_k,ij for every k; with `lower`, W is 0 above the diagonal."""
        return np.array([total(W, self.values(base, k)) for k in range(self.n_kernels)])

    def diagonal(self, factors: FloatArray) -> FloatArray:
        """sum_k factors[k] diag(k)."""
        out = np.zeros(self.n_samples)
        for k in np.flatnonzero(factors):
            out += factors[k] * self.diag(int(k))
        return out

    def products(self, vectors: FloatArray) -> FloatArray:
        """K_k vectors[k] for every k, where kernels are `batched`; shapes (K, n)."""
        raise NotImplementedError

    def pack(self, triangles: FloatArray, members: IntArray) -> None:
        """Store the lower triangle of every kernel in a row of an array, where kernels are `batched`."""
        raise NotImplementedError

    def prepare(self, rows: Part, evict: bool) -> None:  # noqa: B027
        """Be told that these rows are about to be read; a cache may fetch them."""


class _Points(Shared):
    """Kernels whose base comes from the inner products of the samples."""

    def __init__(self, X: Any, norms: FloatArray | None = None) -> None:
        self.X = X if sparse.issparse(X) else np.ascontiguousarray(X)
        self.n_samples, self.dtype = X.shape[0], np.dtype(X.dtype)
        self._norms = norms

    @property
    def norms(self) -> FloatArray:
        """Squared lengths of the samples, computed when they are first asked for."""
        if self._norms is None:
            pieces = gen_batches(self.n_samples, NORM_ROWS)
            self._norms = np.concatenate([_squared_norms(self._points(rows, slice(None))) for rows in pieces])
        return self._norms

    def _products(self, rows: Part, columns: Part) -> FloatArray:
        """x_i'x_j, in double precision whatever the data are: distances are small differences of them."""
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

    def _taken(self, samples: IntArray | None) -> tuple[Any, FloatArray | None]:
        if samples is None:
            return self.X, self._norms
        return self.X[samples], self.norms[samples]


class SharedDistances(_Points):
    """Gaussian kernels exp(-gamma_k ||x - z||^2) on the same columns.

    Distances come from products of the samples about a point near them, where rounding is less.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, n_features)
        Values are computed in its precision, from distances in double precision.
    gammas : ndarray of shape (K,)

    Attributes
    ----------
    origin : ndarray of shape (n_features,)
        `origin_of` the samples; a sparse `X` is kept less that.

    Examples
    --------
    >>> shared = SharedDistances(np.array([[0.0], [1.0]]), np.array([1.0, 2.0]))
    >>> shared.inner(shared.base(slice(0, 2), slice(0, 2)), np.eye(2), lower=False)
    array([2., 2.])
    """

    def __init__(self, X: Any, gammas: FloatArray) -> None:
        self.origin = origin_of(canonical(X) if sparse.issparse(X) else X)
        super().__init__(moved(canonical(X), self.origin) if sparse.issparse(X) else X)
        self._set(gammas)

    def _set(self, gammas: FloatArray) -> None:
        self.gammas, self.n_kernels = gammas, len(gammas)
        self._plan: tuple[bytes, IntArray, IntArray] | None = None

    def _points(self, part: Part, features: slice) -> Any:
        found = super()._points(part, features)
        return found if sparse.issparse(found) else found - self.origin[features]

    def base(self, rows: Part, columns: Part) -> FloatArray:
        from ._shared_loops import direct_distances, distances

        if count(rows) <= FEW_ROWS and not sparse.issparse(self.X):
            D = np.empty((count(rows), count(columns)), self.dtype)
            direct_distances(self.X[rows], self.X[columns], D)
            return D
        products = self._products(rows, columns)
        D = products if self.dtype == np.float64 else np.empty(products.shape, self.dtype)
        distances(products, self.norms[rows], self.norms[columns], D)
        _set_same(D, rows, columns)
        return D

    def values(self, base: FloatArray, k: int) -> FloatArray:
        from ._shared_loops import gaussian_values

        out = np.empty_like(base)
        gaussian_values(base, self.dtype.type(self.gammas[k]), out)
        return out

    def diag(self, k: int) -> FloatArray:
        return np.ones(self.n_samples)

    def take(self, samples: IntArray | None, kernels: IntArray | None) -> Self:
        part = object.__new__(type(self))
        _Points.__init__(part, *self._taken(samples))
        part.origin = self.origin
        part._set(self.gammas if kernels is None else self.gammas[kernels])
        return part

    def add(self, base: FloatArray, factors: FloatArray, out: FloatArray, lower: bool) -> None:
        from ._shared_loops import add_gaussians

        order, powers = self._ordered(np.flatnonzero(factors))
        gammas = self.gammas[order].astype(self.dtype)
        add_gaussians(base, gammas, powers, factors[order], out, lower)

    def inner(self, base: FloatArray, W: FloatArray, lower: bool) -> FloatArray:
        from ._shared_loops import inner_gaussians

        order, powers = self._ordered(np.arange(self.n_kernels))
        out = np.zeros(self.n_kernels)
        inner_gaussians(base, self.gammas[order].astype(self.dtype), powers, W, out, lower)
        return out[np.argsort(order)]

    def _ordered(self, live: IntArray) -> tuple[IntArray, IntArray]:
        """`power_chains` of the live kernels, remembered: the tiles of a pass all ask the same."""
        key = live.tobytes()
        plan = self._plan
        if plan is None or plan[0] != key:
            order, powers = power_chains(self.gammas[live], MAX_POWER[self.dtype.char])
            self._plan = plan = (key, live[order], powers)
        return plan[1:]


class SharedProducts(_Points):
    """Polynomial kernels (gamma_k x'z + coef0_k)^degree_k on the same columns; linear ones are of degree 1.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, n_features)
    terms : list of (gamma, coef0, degree)

    Examples
    --------
    >>> shared = SharedProducts(np.array([[1.0], [2.0]]), [(1.0, 0.0, 1), (1.0, 1.0, 2)])
    >>> shared.values(shared.base(slice(0, 2), slice(0, 2)), 1)
    array([[ 4.,  9.],
           [ 9., 25.]])
    """

    def __init__(
        self, X: Any, terms: list[tuple[float, float, int]], norms: FloatArray | None = None
    ) -> None:
        super().__init__(X, norms)
        self.terms, self.n_kernels = terms, len(terms)

    def base(self, rows: Part, columns: Part) -> FloatArray:
        return self._products(rows, columns).astype(self.dtype, copy=False)

    def values(self, base: FloatArray, k: int) -> FloatArray:
        from ._shared_loops import polynomial_values

        if self.terms[k] == (1.0, 0.0, 1):
            return base
        out = np.empty_like(base)
        polynomial_values(base, *self.terms[k], out)
        return out

    def diag(self, k: int) -> FloatArray:
        gamma, coef0, degree = self.terms[k]
        return (gamma * self.norms + coef0) ** degree

    def take(self, samples: IntArray | None, kernels: IntArray | None) -> Self:
        X, norms = self._taken(samples)
        return type(self)(X, self.terms if kernels is None else [self.terms[k] for k in kernels], norms)


def total(W: FloatArray, K: FloatArray) -> float:
    """sum_ij W_ij K_ij; not by BLAS, which shares out even this among threads."""
    return float(np.einsum("ij,ij->", W, K))


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


def _set_same(D: FloatArray, rows: Part, columns: Part) -> None:
    """Distance 0 of a sample to itself, which a difference of products misses by rounding."""
    left, right = positions(rows), positions(columns)
    if len(np.intersect1d(left, right)):
        D[np.equal.outer(left, right)] = 0.0
