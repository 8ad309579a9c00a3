"""Which kernels share what: kernels with the same base, and Gaussian kernels on many sets of columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._typing import FloatArray, IntArray
from ..kernels import Kernel
from ..kernels.base import as_numeric, base_of, form_of
from ..kernels.bases import SquaredEuclidean
from ..kernels.columns import as_table, is_sparse, take_columns
from ..kernels.subsets import FittedSubsets
from ._workers import loop_threads, map_tiles
from .shared import OwnValues, Part, Shared, pairs_of

#: sizes of a group of columns, whose subsets are tabulated for all kernels, each from this many kernels on
GROUP_SIZES = ((8, 500), (4, 16), (1, 0))

#: largest table of subsets, in rows: it has to stay in the cache of a core
MOST_ROWS = 4096

#: kernels whose products are computed at a time
BATCH = 2048


class Lines(NamedTuple):
    """Rows of the table of subsets that every kernel adds up; see `_shared_loops`."""

    bits: int  # columns of a group
    codes: IntArray  # (n_lines, 8)
    starts: IntArray  # (K + 1,)


class SharedSquares(Shared):
    """Gaussian kernels exp(-gamma_k sum_{f in S_k} (x_f - z_f)^2), each on its own columns S_k.

    They share the squared differences of two samples, column by column; a kernel only adds up the differences
    in its own columns. One compiled loop goes through all kernels while the differences are at hand.

    Parameters
    ----------
    X : ndarray of shape (n, F)
        Values are computed in its precision.
    subsets : ndarray of uint8, shape (K, ceil(F / 8))
        The columns of each kernel as bits, lower columns in lower bits: see `pack_subsets`.
    gammas : ndarray of shape (K,)

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 2.0]])
    >>> subsets = pack_subsets(np.array([[True, False], [True, True]]))
    >>> shared = SharedSquares(X, subsets, np.array([1.0, 0.1]))
    >>> shared.inner(shared.base(slice(0, 1), slice(1, 2)), np.ones((1, 1)), lower=False).round(4)
    array([0.3679, 0.6065])
    """

    batched = positive = True
    cacheable = False
    pairs = None  # type: ignore[assignment]

    def __init__(self, X: FloatArray, subsets: IntArray, gammas: FloatArray) -> None:
        self._set(np.ascontiguousarray(X.T), subsets, gammas, None)

    def _set(
        self, points: FloatArray, subsets: IntArray, gammas: FloatArray, coded: list[Lines] | None
    ) -> None:
        self.points, self.subsets, self.gammas = points, subsets, gammas
        self.n_samples, self.n_kernels, self.dtype = points.shape[1], len(gammas), points.dtype
        # shared with the same kernels on other samples, and filled when it is first asked for
        self._coded: list[Lines] = [] if coded is None else coded

    @property
    def lines(self) -> Lines:
        """The rows that every kernel adds up, coded when they are first asked for."""
        if not self._coded:
            self._coded.append(code_lines(self.subsets, len(self.points)))
        return self._coded[0]

    def base(self, rows: Part, columns: Part) -> Any:
        """The two sets of samples themselves: differences of all columns would be larger than a tile."""
        return np.ascontiguousarray(self.points[:, rows]), np.ascontiguousarray(self.points[:, columns])

    def base_to(self, Z: FloatArray) -> Any:
        """The base between new samples and those here."""
        return np.ascontiguousarray(Z.T.astype(self.dtype, copy=False)), self.points

    def values(self, base: Any, k: int) -> FloatArray:
        # a single kernel needs no differences of columns that it does not see
        own = np.flatnonzero(np.unpackbits(self.subsets[k], bitorder="little"))
        alone = object.__new__(type(self))
        alone._set(
            self.points[own], pack_subsets(np.ones((1, len(own)), dtype=bool)), self.gammas[k : k + 1], None
        )
        out = np.zeros((base[0].shape[1], base[1].shape[1]))
        alone.add((base[0][own], base[1][own]), np.ones(1), out, lower=False)
        return out.astype(self.dtype, copy=False)

    def diag(self, k: int) -> FloatArray:
        return np.ones(self.n_samples)

    def prepare(self, rows: Part, evict: bool) -> None:
        """Nothing is kept."""

    def diagonal(self, factors: FloatArray) -> FloatArray:
        return np.full(self.n_samples, factors.sum())

    def take(self, samples: IntArray | None, kernels: IntArray | None) -> SharedSquares:
        part = object.__new__(type(self))
        points = self.points if samples is None else np.ascontiguousarray(self.points[:, samples])
        if kernels is None:
            part._set(points, self.subsets, self.gammas, self._coded)
        else:
            part._set(points, self.subsets[kernels], self.gammas[kernels], None)
        return part

    def add(self, base: Any, factors: FloatArray, out: FloatArray, lower: bool) -> None:
        from ._shared_loops import add_squares

        if not factors.all():
            live = np.flatnonzero(factors)
            return self.take(None, live).add(base, factors[live], out, lower) if len(live) else None
        add_squares(*base, *self.lines, self.gammas.astype(self.dtype), factors, out, lower)

    def add_each(self, base: Any, factors: FloatArray, out: FloatArray, lower: bool) -> None:
        for own, total in zip(factors, out, strict=True):
            self.add(base, own, total, lower)

    def inner(self, base: Any, W: FloatArray, lower: bool) -> FloatArray:
        from ._shared_loops import inner_squares

        out, gammas = np.zeros(self.n_kernels), self.gammas.astype(self.dtype)
        inner_squares(*base, *self.lines, gammas, np.ascontiguousarray(W), out, lower)
        return out

    def multiplied(self, base: Any, vectors: FloatArray) -> FloatArray:
        return np.array([vector @ self.values(base, k) for k, vector in enumerate(vectors)])

    def products(self, vectors: FloatArray) -> FloatArray:
        """K_k vectors_k for every k, in one pass; shapes (K, n)."""
        count = max(-(-self.n_kernels // BATCH), min(loop_threads(), self.n_kernels))
        batches = np.array_split(np.arange(self.n_kernels), count)
        return np.concatenate(list(map_tiles(partial(self._products, vectors), batches)))

    def pack(self, triangles: FloatArray, members: IntArray) -> None:
        """Store the lower triangles of all kernels, row after row, in the rows `members` of an array."""
        from ._shared_loops import store_squares

        lines, gammas = self.lines, self.gammas.astype(self.dtype)
        # pieces of the triangle of about the same size
        cuts = (self.n_samples * np.sqrt(np.linspace(0.0, 1.0, 4 * loop_threads() + 1))).round().astype(int)

        def fill(piece: tuple[int, int]) -> None:
            store_squares(self.points, *lines, gammas, triangles, members, *piece)

        for _ in map_tiles(fill, list(pairwise(cuts.tolist()))):
            pass

    def _products(self, vectors: FloatArray, kernels: IntArray) -> FloatArray:
        from ._shared_loops import multiply_squares

        part, out = self.take(None, kernels), np.zeros((len(kernels), self.n_samples))
        gammas, own = part.gammas.astype(self.dtype), np.ascontiguousarray(vectors[kernels])
        multiply_squares(self.points, *part.lines, gammas, own, out)
        return out


def pack_subsets(masks: Any) -> IntArray:
    """Subsets of columns as bits, eight columns per byte.

    Examples
    --------
    >>> pack_subsets(np.array([[True, False, True], [False, True, False]]))
    array([[5],
           [2]], dtype=uint8)
    """
    return np.packbits(masks, axis=1, bitorder="little")


def code_lines(subsets: IntArray, n_columns: int) -> Lines:
    """Which rows of a table of all subsets of every group of columns the kernels add up.

    Larger groups make a larger table, which pays off when there are many kernels.

    Examples
    --------
    >>> lines = code_lines(pack_subsets(np.array([[True, False, True]])), 3)
    >>> lines.bits, lines.codes, lines.starts
    (1, array([[1, 5, 0, 0, 0, 0, 0, 0]], dtype=uint16), array([0, 1]))
    """
    bits = next(
        size
        for size, least in GROUP_SIZES
        if len(subsets) >= least and (size == 1 or -(-n_columns // size) << size <= MOST_ROWS)
    )
    within = _group_codes(subsets, bits)
    rows = np.where(within > 0, within + (np.arange(within.shape[1]) << bits), 0)
    counts = np.count_nonzero(within, axis=1)
    lengths = np.maximum(-(-counts // 8), 1)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    codes = np.zeros(8 * starts[-1], dtype=np.uint16)
    kernels, groups = np.nonzero(within)
    # the j-th group in which a kernel has columns goes to place j of its lines
    places = np.arange(len(kernels)) - np.repeat(np.cumsum(counts) - counts, counts)
    codes[8 * starts[kernels] + places] = rows[kernels, groups]
    return Lines(bits, codes.reshape(-1, 8), starts)


def _group_codes(subsets: IntArray, bits: int) -> IntArray:
    """The subset of every group as a number, shape (K, n_groups)."""
    if bits == 8:
        return subsets.astype(np.int64)
    shifts = np.arange(0, 8, bits)
    parts = (subsets[:, :, None] >> shifts) & ((1 << bits) - 1)
    return parts.reshape(len(subsets), -1).astype(np.int64)


#: least number of sets of columns for Gaussian kernels on different sets to be computed together, and largest
#: number of columns in all of them
LEAST_SUBSETS, MOST_COLUMNS = 16, 1000

#: more kernels than this on the same columns share distances instead. Fewer do too if the number of kernels
#: times columns is above the second limit, unless there are many kernels in all
MOST_ALIKE, MOST_SUMMED, MANY = 8, 64, 500

#: rows of new samples at a time
ROWS = 64


class Batch(NamedTuple):
    """Gaussian kernels on many sets of columns.

    Attributes
    ----------
    part : SharedSquares
    members : ndarray of int
        Positions of these kernels among all.
    columns : ndarray of int
        Columns of the data that any of them sees.
    """

    part: SharedSquares
    members: IntArray
    columns: IntArray

    def cross_sum(self, X: Any, factors: FloatArray) -> FloatArray:
        """sum_k factors[k] K_k between new samples and the samples of the part."""
        values = as_numeric(take_columns(as_table(X), self.columns), self.columns)
        out = np.zeros((len(values), self.part.n_samples))

        def add(start: int) -> None:
            rows = slice(start, start + ROWS)
            self.part.add(self.part.base_to(values[rows]), factors, out[rows], lower=False)

        for _ in map_tiles(add, range(0, len(values), ROWS)):
            pass
        return out


def batch_of(kernels: Sequence[Kernel], X: Any) -> Batch | None:
    """The kernels to compute together, whatever their columns, if there are enough of them.

    These are Gaussian kernels on columns of a dense table. Left out are columns with so many kernels that it
    is better to share distances.

    Examples
    --------
    >>> from kernelweave.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(5, 20))
    >>> batch_of([RBF(columns=[f]).fit(X) for f in range(20)], X).members
    array([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16,
           17, 18, 19])
    """
    table = as_table(X)
    if is_sparse(table):
        return None
    if isinstance(kernels, FittedSubsets):
        subsets = kernels.unfitted
        if len(subsets.columns) > MOST_COLUMNS:
            return None
        values = as_numeric(take_columns(table, subsets.columns))
        part = SharedSquares(values, subsets.bits, kernels.gammas)
        return Batch(part, np.arange(len(kernels)), subsets.columns)
    every = grouped(kernels, np.arange(len(kernels)))
    many = len(kernels) >= MANY
    groups = {key: group for key, group in every.items() if _joins(key, [kernels[m] for m in group], many)}
    columns = np.unique([column for _, own in groups for column in own])
    if len(groups) < LEAST_SUBSETS or len(columns) > MOST_COLUMNS:
        return None
    return _batch(kernels, np.sort(np.concatenate(list(groups.values()))), columns, table)


def _joins(key: Any, group: list[Kernel], many: bool) -> bool:
    """Whether kernels of one key are computed together with those on other columns."""
    scaled = len(key) > 2  # all kernels read the same values of a column
    if scaled or key[0] != SquaredEuclidean() or key[1] is None or len(set(key[1])) < len(key[1]):
        return False
    if not all(is_positive(kernel) for kernel in group):
        return False
    return len(group) <= MOST_ALIKE and (many or len(group) * len(key[1]) <= MOST_SUMMED)


def is_positive(kernel: Kernel) -> bool:
    """Whether a fitted kernel is exp(r b) of a distance b, r <= 0: positive semidefinite on any data."""
    base = base_of(kernel)
    form = None if base is None or not base.distance else form_of(kernel)
    return form is not None and form[0] == "exp" and len(form) == 2 and form[1] <= 0


def _batch(kernels: Sequence[Any], members: IntArray, columns: IntArray, table: Any) -> Batch:
    masks = np.zeros((len(members), len(columns)), dtype=bool)
    for mask, m in zip(masks, members, strict=True):
        mask[np.searchsorted(columns, kernels[m].base_columns)] = True
    gammas = np.array([-kernels[m].form()[1] for m in members])
    part = SharedSquares(as_numeric(take_columns(table, columns)), pack_subsets(masks), gammas)
    return Batch(part, members, columns)


def grouped(kernels: Sequence[Kernel], members: IntArray) -> dict[Any, list[int]]:
    """Some of the kernels, by their keys."""
    groups: dict[Any, list[int]] = {}
    keys = share_keys(kernels)
    for m in members.tolist():
        groups.setdefault(keys[m], []).append(m)
    return groups


def share_keys(kernels: Sequence[Kernel]) -> list[Any]:
    """What distinguishes kernels with different bases: the base, the columns it sees, and their units."""
    if isinstance(kernels, FittedSubsets):
        return [(SquaredEuclidean(), bits.tobytes()) for bits in kernels.unfitted.bits]
    keys: list[Any] = []
    for m, kernel in enumerate(kernels):
        base = base_of(kernel)
        columns, scale = (None, None) if base is None else (kernel.base_columns, kernel.base_scale)
        key = (None, m) if base is None else (base, None if columns is None else tuple(columns))
        keys.append(key if scale is None else (*key, scale.tobytes()))
    return keys


def share(kernels: Sequence[Kernel], X: Any) -> tuple[list[Shared], list[IntArray]]:
    """Fitted kernels on data, grouped by their base.

    Returns
    -------
    parts : list of Shared
    members : list of ndarray of int
        Positions in `kernels` of the kernels of each part.

    Examples
    --------
    >>> from kernelweave.kernels import RBF, Linear, Polynomial
    >>> X = np.array([[0.0], [1.0]])
    >>> _, members = share([kernel.fit(X) for kernel in (RBF(1.0), Linear(), RBF(2.0), Polynomial())], X)
    >>> members
    [array([0, 2]), array([1, 3])]
    """
    table, batch = as_table(X), batch_of(kernels, X)
    together = np.zeros(len(kernels), dtype=bool)
    if batch is not None:
        together[batch.members] = True
    if together.all() and batch is not None:
        return [batch.part], [batch.members]
    groups = grouped(kernels, np.flatnonzero(~together))
    parts: list[Shared] = []
    for group in groups.values():
        own, base = [kernels[m] for m in group], base_of(kernels[group[0]])
        if base is None:
            parts.append(Shared(OwnValues(own[0], table), [None]))
        else:
            parts.append(Shared(pairs_of(base, own[0].base_view(table)), own))
    members = [np.array(group) for group in groups.values()]
    return (parts, members) if batch is None else ([*parts, batch.part], [*members, batch.members])
