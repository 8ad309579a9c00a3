"""A kernel given by its matrix."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from .base import Kernel, _columns_label, counted_rows
from .columns import Columns, as_table, resolve_columns, take_columns

#: units of rounding by which an entry in single precision may differ from its mirror image
ENTRY_ERRORS = 64.0


class Precomputed(Kernel):
    """A kernel known by its values on all samples, k(i, j) = matrix[i, j].

    The data are sample indices in one column, so that folds, pipelines and searches slice them as
    they slice any data. Cloning returns the same object: the matrix is never copied.

    Parameters
    ----------
    matrix : array of shape (n, n)
        Symmetric and positive semidefinite. Memory maps stay on disk.
    columns : int, str, slice, list, mask or callable, optional
        The column of sample indices; needed when the data have several columns.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = Precomputed(np.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> kernel([[1], [0]])
    array([[3., 1.],
           [1., 2.]])
    >>> kernel
    Precomputed(2 x 2)
    """

    name = "precomputed"
    accepts = "index"

    def __init__(self, matrix: Any, columns: Columns = None) -> None:
        self.matrix = matrix
        self.columns = columns

    def __sklearn_clone__(self) -> Self:
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return self.label

    @property
    def label(self) -> str:
        return f"Precomputed({' x '.join(map(str, np.shape(self.matrix)))})" + _columns_label(self.columns)

    def fit(self, X: Any, y: Any = None, sample_weight: np.ndarray | None = None) -> Self:
        """Check the matrix and the indices. Nothing is kept: clones of this kernel are this kernel."""
        self._view(counted_rows(as_table(X), None if sample_weight is None else np.asarray(sample_weight))[0])
        return self

    def _fitted_on(self, X: Any) -> Kernel:
        return self

    def _view(self, X: Any) -> np.ndarray:
        n = self._checked().shape[0]
        return as_indices(take_columns(X, resolve_columns(self.columns, X)), n)

    def _compute(self, X: Any, Z: Any) -> np.ndarray:
        block = self._checked()[np.ix_(X, Z)]
        return np.asarray(block if block.dtype.kind == "f" else block.astype(np.float64))

    def _diag(self, X: Any) -> np.ndarray:
        values = self._checked()[X, X]
        return np.asarray(values if values.dtype.kind == "f" else values.astype(np.float64))

    def _checked(self) -> np.ndarray:
        """The matrix as an array, checked once for each matrix."""
        if getattr(self, "_checked_matrix", None) is not self.matrix:
            check_gram(self.matrix)
            self._checked_matrix = self.matrix
        return np.asanyarray(self.matrix)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key != "_checked_matrix"}


def check_gram(matrix: Any, argument: str = "matrix") -> None:
    """Raise unless `matrix` is square, finite and symmetric, reading it once."""
    K = as_square(matrix, argument)
    look_at(K, argument, np.zeros(len(K)), np.empty(0, dtype=int))


def as_square(matrix: Any, argument: str) -> np.ndarray:
    """`matrix` as an array; an error unless it is square and real."""
    if sparse.issparse(matrix):
        raise ValueError(f"{argument} is sparse: pass a dense Gram matrix, `{argument}.toarray()`.")
    K: np.ndarray = np.asanyarray(matrix)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.size == 0:
        raise ValueError(f"{argument} has shape {K.shape}: a Gram matrix is square, one row for each sample.")
    if K.dtype.kind not in "biuf":
        raise ValueError(f"{argument} holds {K.dtype} values: a Gram matrix holds real numbers.")
    return K


class Along(NamedTuple):
    """What the pass that checks a Gram matrix K brings along, if it is asked to.

    Attributes
    ----------
    samples : ndarray of int
        Increasing.
    part : ndarray
        Where the lower triangle of K between these samples goes.
    alpha : ndarray of shape (n,) or (0,)
        For alpha'K alpha.
    """

    samples: np.ndarray = np.empty(0, dtype=int)
    part: np.ndarray = np.empty((0, 0))
    alpha: np.ndarray = np.empty(0)


#: asks for nothing
NOTHING = Along()


class Scan(NamedTuple):
    """What one reading of a Gram matrix K finds.

    Attributes
    ----------
    totals : ndarray of shape (n,)
        K 1.
    diagonal : ndarray of shape (n,)
    sizes : ndarray of shape (n,)
        The largest entry of every row, without its sign.
    largest : float
        The largest product of a row of K with a probe, without its sign.
    apart : float
        <K, A> for a random antisymmetric A.
    part : ndarray
        The lower triangle of K between some samples.
    square : float
        alpha'K alpha, if that was asked for.
    product : ndarray of shape (n,), optional
        K u, for the u of `look_at`.
    """

    totals: np.ndarray
    diagonal: np.ndarray
    sizes: np.ndarray
    largest: float
    apart: float
    part: np.ndarray
    square: float = 0.0
    product: np.ndarray | None = None


def look_at(
    K: np.ndarray,
    argument: str,
    u: np.ndarray,
    rows: np.ndarray,
    along: Along = NOTHING,
    look: Scan | None = None,
) -> Scan:
    """K u, the diagonal and the lower triangle of K between the samples `rows`, in the pass that checks K.

    The product of K with a random probe is finite if and only if K is, and for a random antisymmetric A,
    <K, A> = 0 for almost none unless K is symmetric.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    argument : str
        What to call it in errors: it has to be finite and symmetric.
    u : ndarray of shape (n,)
        Takes a pass of its own unless all its entries are the same.
    rows : ndarray of int
        Increasing.
    along : Along, optional
        What else is wanted.
    look : Scan, optional
        What a pass that has read K already has found.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        if look is None:
            part = np.empty((len(rows), len(rows)))
            totals, diagonal, sizes, largest, apart, square = _products(K, rows, part, along)
            look = Scan(totals, diagonal, sizes, largest, apart, part, square)
        product = look.totals * u[0] if (u == u[0]).all() else K @ u
    if not np.isfinite(look.largest):
        raise ValueError(f"{argument} has NaN or infinite entries: remove those samples or fill the entries.")
    # n sums of rounding errors like those of one entry of K v; numbers near the smallest have few digits
    exact = np.finfo(np.float64)
    allowed = np.sqrt(exact.eps * len(K)) * look.largest + len(K) * exact.tiny
    if K.dtype.kind == "f" and K.dtype.itemsize < 8:  # entries themselves may be rounded, each in its own way
        trace = float(np.abs(look.diagonal).sum(dtype=np.float64))  # K_ij^2 <= K_ii K_jj
        allowed += ENTRY_ERRORS * float(np.finfo(K.dtype).eps) * trace
    if abs(look.apart) > allowed:
        raise ValueError(
            f"{argument} is not symmetric: if the difference is only rounding use (K + K.T) / 2; a block "
            "between test and training samples is not a Gram matrix, give the matrix of all samples."
        )
    return look._replace(product=product)


def look_at_all(
    matrices: Sequence[np.ndarray], factors: np.ndarray, rows: np.ndarray, total: np.ndarray
) -> list[Scan]:
    """What `look_at` finds of every matrix, and the lower triangle of their weighted sum, in one reading.

    Parameters
    ----------
    matrices : sequence of ndarray of shape (n, n)
        In double precision, by rows; one by columns is read by rows, as it has to be symmetric.
    factors : ndarray of shape (M,)
    rows : ndarray of int
        As in `look_at`.
    total : ndarray of shape (n, n)
        Where the sum goes.

    Examples
    --------
    >>> total = np.empty((2, 2))
    >>> looks = look_at_all([np.eye(2), np.ones((2, 2))], np.array([1.0, 2.0]), np.arange(2), total)
    >>> np.tril(total)
    array([[3., 0.],
           [2., 3.]])
    >>> looks[1].totals
    array([2., 2.])
    """
    from ._loops import SUMMED_PERIOD, products_and_sum

    n, spare = len(matrices[0]), len(matrices) % 2  # an even number is read
    count = len(matrices) + spare
    places = np.array([K.ctypes.data for K in (*matrices, *matrices[:spare])], dtype=np.intp)
    totals, diagonals, sizes = np.empty((3, count, n))
    largest, apart = np.zeros(count), np.zeros(count)
    parts = np.empty((count, len(rows), len(rows)))
    found = (totals, diagonals, sizes, largest, apart, parts)
    chosen, weights = rows.astype(np.uintp, copy=False), np.append(factors, np.zeros(spare))
    products_and_sum(total, places, weights, *_probes(n, SUMMED_PERIOD), chosen, found)
    several = zip(totals, diagonals, sizes, largest.tolist(), apart.tolist(), parts, strict=True)
    return [Scan(*one) for one in several][: len(matrices)]


@lru_cache(maxsize=8)
def _probes(n: int, period: int) -> tuple[np.ndarray, np.ndarray]:
    """Random numbers x and z, (2, period), and u and t, (2, number of blocks), of an antisymmetric A.

    Samples are in blocks of `period`; with p, q the blocks of samples i, j and i', j' their places there,

        A_ij = x_i' x_j' (t_p u_q - u_p t_q), p != q        A_ij = z_i' x_j' - x_i' z_j', p = q

    All entries between two blocks come from one product of a block of a row with x, and no entry but those on
    the diagonal is zero: (u_p, t_p) have directions that are evenly spread over a half circle.
    """
    random, count = np.random.RandomState(0), -(-n // period)
    inner = random.choice([-1.0, 1.0], (2, period)) * random.uniform(0.5, 1.5, (2, period))
    angles = np.pi / count * (random.permutation(count) + random.uniform())
    return inner, np.array([np.cos(angles), np.sin(angles)])


def _products(
    K: np.ndarray, rows: np.ndarray, part: np.ndarray, along: Along
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float, float]:
    """What `products` finds: K 1, the diagonal, the largest entry of every row, and three numbers.

    These are the largest product with a probe, <K, A> for the A of `_probes`, and alpha'K alpha. Parts of K
    go to their places. Matrices that are not plain rows of floats go through NumPy.
    """
    from ._loops import PERIOD, products

    (inner, outer), (others, other_part, alpha) = _probes(len(K), PERIOD), along
    if K.dtype in (np.float64, np.float32) and (K.flags.c_contiguous or K.flags.f_contiguous):
        # column order: that of the transposed, which is to be the same matrix
        found: tuple[np.ndarray, np.ndarray, np.ndarray, float, float, float]
        plain = K if K.flags.c_contiguous else K.T
        chosen, others = (some.astype(np.uintp, copy=False) for some in (rows, others))
        found = products(plain, inner, outer, chosen, part, others, other_part, alpha)
        return found
    x, z = np.tile(inner, outer.shape[1])[:, : len(K)]
    v, w = np.repeat(outer, PERIOD, axis=1)[:, : len(K)] * x
    Kv, Kw, largest = K @ v, K @ w, 0.0
    apart = float(w @ Kv - v @ Kw)
    for left in range(0, len(K), PERIOD):
        own = slice(left, left + PERIOD)
        Kx, Kz = K[own, own] @ x[own], K[own, own] @ z[own]
        apart += float(z[own] @ Kx - x[own] @ Kz)
        largest = max(largest, float(np.abs(Kx).max()), float(np.abs(Kz).max()))
    largest = max(float(np.abs(Kv).max()), float(np.abs(Kw).max()), largest)
    part[:], other_part[:] = K[np.ix_(rows, rows)], K[np.ix_(others, others)]
    square = float(alpha @ (K @ alpha)) if len(alpha) else 0.0
    return K.sum(axis=1), K.diagonal(), np.abs(K).max(axis=1), largest, apart, square


def as_indices(X: Any, n: int) -> np.ndarray:
    """Sample indices in the only column of `X`, as integers in 0..n-1."""
    if X.shape[1] != 1:
        raise ValueError(
            f"Precomputed takes sample indices in one column, X has {X.shape[1]}: pass "
            "`np.arange(n)[:, None]`, or name the column of indices with `columns=`."
        )
    values = X.toarray() if sparse.issparse(X) else np.asarray(X)
    try:
        numbers = values.ravel().astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Precomputed takes sample indices, which are integers ({error}).") from error
    if not np.all(numbers == np.floor(numbers)):
        raise ValueError("Precomputed takes sample indices, which are integers: X holds other values.")
    if numbers.size and (numbers.min() < 0 or numbers.max() >= n):
        raise ValueError(
            f"sample indices run from {numbers.min():g} to {numbers.max():g}, the matrix has samples 0 to "
            f"{n - 1}: give the matrix of all samples, those to predict among them."
        )
    return numbers.astype(np.intp)
