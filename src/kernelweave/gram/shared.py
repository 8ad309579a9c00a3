"""What kernels share between samples, a tile at a time: bases, and the kernels that are functions of one."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing, gen_batches
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .._typing import FloatArray, IntArray
from ..kernels import Kernel
from ..kernels.base import form_of
from ..kernels.bases import POINT_BYTES, Base, InnerProduct, SquaredEuclidean, canonical, moved, origin_of
from .stack import KernelStack

#: samples of one side of a tile
Part = slice | IntArray

#: rows whose squared lengths are computed at a time
NORM_ROWS = 1024

#: up to this many rows are compared feature by feature: a matrix product would not pay for itself
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
    #: None for values of a kernel that is not a function of a base
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
        """The same base on some samples."""
        return self if samples is None else type(self)(self.base, self.X[samples])

    def prepare(self, rows: Part, evict: bool) -> None:
        """Note that these rows are about to be read; a cache may fetch them."""


class Products(Pairs):
    """x'z in double precision, whatever the precision of the data; squared lengths are kept.

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
            pieces = (self._points(rows, slice(None)) for rows in gen_batches(self.n_samples, NORM_ROWS))
            self._norms = np.concatenate(
                [
                    row_norms(X, squared=True) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
                    for X in pieces
                ]
            )
        return self._norms

    def between(self, rows: Part, columns: Part) -> FloatArray:
        return self._products(rows, columns).astype(self.dtype, copy=False)

    def diag(self) -> FloatArray:
        return self.norms

    def take(self, samples: IntArray | None) -> Pairs:
        return self if samples is None else type(self)(self.base, self.X[samples], self.norms[samples])

    def _products(self, rows: Part, columns: Part) -> FloatArray:
        """x_i'x_j; distances are small differences of these."""
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
    """||x - z||^2 from products of the samples relative to a point near them, which rounds less.

    Attributes
    ----------
    origin : ndarray of shape (n_features,)
        `origin_of` the samples; it has been subtracted from a sparse `X`.
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
        # a sample has distance 0 to itself, which a difference of products misses by rounding
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
    """The entries of a matrix given by the user, read in place.

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
    """A base of the rows of X, computed by the class for it."""
    return PREPARED.get(type(base), Pairs)(base, X)


def positions(part: Part) -> IntArray:
    """Indices of the samples on one side of a tile."""
    return np.arange(part.start, part.stop) if isinstance(part, slice) else part


def count(part: Part) -> int:
    """How many samples there are."""
    return part.stop - part.start if isinstance(part, slice) else len(part)


#: largest power of exp(-gamma d) that replaces another exponential: the power multiplies rounding
MAX_POWER = {"f": 8, "d": 1000}

#: largest power of one step: a larger one costs as much as an exponential
MAX_STEP = 16


class Shared:
    """K kernels on n samples that are functions of one quantity of two samples, their base.

    Sums over many kernels exp(r b) (1 + c_1 b + c_2 b^2) of a distance are accumulated while a row of it is
    at hand; the others are computed by their `of_base`, one after another.

    Parameters
    ----------
    pairs : Pairs
        The base.
    kernels : sequence of Kernel or None
        Fitted; None stands for the base itself.

    Attributes
    ----------
    n_samples, n_kernels : int
    dtype : dtype
        Precision of the base, and of the values.

    Examples
    --------
    >>> from kernelweave.kernels import RBF
    >>> from kernelweave.gram.shared import pairs_of
    >>> X = np.array([[0.0], [1.0]])
    >>> shared = Shared(pairs_of(RBF.base, X), [RBF(1.0).fit(X), RBF(2.0).fit(X)])
    >>> shared.inner(shared.base(slice(0, 2), slice(0, 2)), np.eye(2), lower=False)
    array([2., 2.])
    """

    #: whether all kernels are computed at once, for `products` too, and are known to be positive semidefinite
    batched = False

    #: whether the base is an array of all pairs, worth keeping
    cacheable = True

    def __init__(self, pairs: Pairs, kernels: Sequence[Kernel | None]) -> None:
        self.pairs, self.kernels = pairs, list(kernels)
        self.n_samples, self.n_kernels, self.dtype = pairs.n_samples, len(kernels), pairs.dtype
        self.forms = [None if kernel is None else form_of(kernel) for kernel in self.kernels]
        # r, c_1 and c_2 of exponentials of a distance; r > 0 marks kernels of another form
        self.rates = np.ones((self.n_kernels, 3))
        if pairs.base is not None and pairs.base.distance:
            for k, form in enumerate(self.forms):
                if form is not None and form[0] == "exp" and len(form) <= 4:
                    self.rates[k] = [*form[1:], 0.0, 0.0][:3]
        self._plan: tuple[bytes, IntArray, IntArray] | None = None

    @property
    def positive(self) -> bool:
        """Whether the kernels are known to be positive semidefinite, whatever the data."""
        return bool((self.rates[:, 0] <= 0).all() and not self.rates[:, 1:].any())

    def base(self, rows: Part, columns: Part) -> Any:
        """The shared quantity between two sets of samples."""
        return self.pairs.between(rows, columns)

    def values(self, base: Any, k: int) -> FloatArray:
        """Kernel k from the base; it may be the base itself."""
        from ._shared_loops import exponential_values, power_values

        kernel, form = self.kernels[k], self.forms[k]
        if kernel is None or form == ("power", 1.0, 0.0, 1):
            return np.asarray(base)
        out: FloatArray = np.empty_like(base)
        if self.rates[k, 0] <= 0:
            exponential_values(base, self.rates[k].astype(self.dtype), out)
        elif form is not None and form[0] == "power":
            power_values(base, *form[1:], out)
        else:
            out = np.asarray(kernel.of_base(base, np))
        return out

    def diag(self, k: int) -> FloatArray:
        """Values k(x_i, x_i) of kernel k."""
        kernel, own = self.kernels[k], self.pairs.diag()
        return np.asarray(own if kernel is None else kernel.of_base(own, np), dtype=np.float64)

    def take(self, samples: IntArray | None, kernels: IntArray | None) -> Shared:
        """The same on some samples, or some of the kernels."""
        part, some = copy(self), np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        part.pairs = self.pairs.take(samples)
        part.kernels, part.forms = [self.kernels[k] for k in some], [self.forms[k] for k in some]
        part.rates, part.n_samples, part.n_kernels = self.rates[some], part.pairs.n_samples, len(some)
        part._plan = self._plan if kernels is None else None  # the plan is for these kernels only
        return part

    def add(self, base: Any, factors: FloatArray, out: FloatArray, lower: bool) -> None:
        """out += sum_k factors[k] K_k; with `lower`, entries above the diagonal may be anything."""
        from ._shared_loops import add_exponentials

        live = np.flatnonzero(factors)
        together = live[self.rates[live, 0] <= 0]
        if len(together):
            order, powers = self._ordered(together)
            add_exponentials(base, self.rates[order].astype(self.dtype), powers, factors[order], out, lower)
        for k in live[self.rates[live, 0] > 0]:
            out += factors[k] * self.values(base, int(k))

    def add_each(self, base: Any, factors: FloatArray, out: FloatArray, lower: bool) -> None:
        """`add` for several models: factors of shape (models, K), out (models, n_rows, n_columns)."""
        from ._shared_loops import add_exponentials_each

        live = np.flatnonzero(factors.any(axis=0))
        together = live[self.rates[live, 0] <= 0]
        if len(together):
            order, powers = self._ordered(together)
            rates = self.rates[order].astype(self.dtype)
            add_exponentials_each(base, rates, powers, np.ascontiguousarray(factors[:, order]), out, lower)
        for k in live[self.rates[live, 0] > 0]:
            values = self.values(base, int(k))
            for own, factor in zip(out, factors[:, k], strict=True):
                own += factor * values

    def inner(self, base: Any, W: FloatArray, lower: bool) -> FloatArray:
        """sum_ij W_ij K_k,ij for every k; with `lower`, W is 0 above the diagonal."""
        from ._shared_loops import inner_exponentials

        out = np.zeros(self.n_kernels)
        together = np.flatnonzero(self.rates[:, 0] <= 0)
        if len(together):
            order, powers = self._ordered(together)
            found = np.zeros(len(order))
            inner_exponentials(base, self.rates[order].astype(self.dtype), powers, W, found, lower)
            out[order] = found
        for k in np.flatnonzero(self.rates[:, 0] > 0):
            out[k] = total(W, self.values(base, int(k)))
        return out

    def multiplied(self, base: Any, vectors: FloatArray) -> FloatArray:
        """sum_i vectors[k, i] K_k,ij for every k and every column j of the base; shape (K, n_columns)."""
        from ._shared_loops import multiply_exponentials

        out = np.zeros((self.n_kernels, base.shape[1]))
        together = np.flatnonzero(self.rates[:, 0] <= 0)
        if len(together):
            order, powers = self._ordered(together)
            found = np.zeros((len(order), base.shape[1]))
            rates = self.rates[order].astype(self.dtype)
            multiply_exponentials(base, rates, powers, vectors[order], found)
            out[order] = found
        for k in np.flatnonzero(self.rates[:, 0] > 0):
            out[k] = vectors[k] @ self.values(base, int(k))
        return out

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

    def prepare(self, rows: Part, evict: bool) -> None:
        """Note that these rows are about to be read; a cache may fetch them."""
        self.pairs.prepare(rows, evict)

    def _ordered(self, live: IntArray) -> tuple[IntArray, IntArray]:
        """`power_chains` of the live kernels, remembered because all tiles of a pass ask for the same."""
        key = live.tobytes()
        plan = self._plan
        if plan is None or plan[0] != key:
            order, powers = power_chains(-self.rates[live, 0], MAX_POWER[self.dtype.char])
            self._plan = plan = (key, live[order], powers)
        return plan[1:]


def total(W: FloatArray, K: FloatArray) -> float:
    """sum_ij W_ij K_ij; not by BLAS, which would share even this among threads."""
    return float(np.einsum("ij,ij->", W, K))


def power_chains(gammas: FloatArray, most: int) -> tuple[IntArray, IntArray]:
    """An order of Gaussian kernels in which many are a small power of the previous one.

    exp(-p gamma d) = exp(-gamma d)^p takes log2(p) products instead of an exponential.

    Parameters
    ----------
    gammas : ndarray of shape (K,)
    most : int
        Largest power of the first kernel of a chain.

    Returns
    -------
    order : ndarray of int, shape (K,)
    powers : ndarray of int, shape (K,)
        The power of the previous kernel, or 0 where an exponential has to be computed.

    Examples
    --------
    >>> power_chains(np.array([0.5, 0.3, 1.0, 2.0]), most=100)
    (array([1, 0, 2, 3]), array([0, 0, 2, 2]))
    """
    left = [int(k) for k in np.argsort(gammas, kind="stable")]
    order: list[int] = []
    powers: list[int] = []
    while left:
        power, first = 0, left[0]
        last: int | None = first
        while last is not None:
            left.remove(last)
            order.append(last)
            powers.append(power)
            last, power = _next_power(gammas, left, last, most * gammas[first])
    return np.array(order, dtype=int), np.array(powers, dtype=int)


def _next_power(gammas: FloatArray, left: list[int], last: int, bound: float) -> tuple[int | None, int]:
    """The first remaining kernel whose gamma is a small multiple of the gamma of `last`, and the multiple."""
    for k in left:
        ratio = gammas[k] / gammas[last]
        power = round(ratio)
        if power <= MAX_STEP and gammas[k] <= bound and abs(ratio - power) <= 1e-14 * power:
            return k, power
    return None, 0
