"""Gaussian kernels on many different subsets of the columns of one table."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._typing import FloatArray, IntArray
from ._workers import loop_threads, map_tiles
from .pairs import Part
from .shared import Shared

#: sizes of a group of columns, each from so many kernels on: its subsets are tabulated for all kernels
GROUP_SIZES = ((8, 500), (4, 16), (1, 0))

#: largest table of subsets, in rows: it has to stay in the cache of a core
MOST_ROWS = 4096

#: kernels whose products are computed at a time
BATCH = 2048


class Lines(NamedTuple):
    """Rows of the table of subsets that every kernel adds up; see `_squares_loops`."""

    bits: int  # columns of a group
    codes: IntArray  # (n_lines, 8)
    starts: IntArray  # (K + 1,)


class SharedSquares(Shared):
    """Gaussian kernels exp(-gamma_k sum_{f in S_k} (x_f - z_f)^2), each on its own columns S_k.

    What they share are the squared differences of two samples, column by column: a kernel only adds
    up those of its columns. All kernels go through one compiled loop while they are at hand.

    Parameters
    ----------
    X : ndarray of shape (n, F)
        Values are computed in its precision.
    subsets : ndarray of uint8, shape (K, ceil(F / 8))
        The columns of each kernel as bits, those of lower columns lower: see `pack_subsets`.
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
        # shared with the same kernels on other samples, and filled by whoever asks first
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
        # one kernel has no use for differences of columns that it does not see
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
        from ._squares_loops import add_squares

        if not factors.all():
            live = np.flatnonzero(factors)
            return self.take(None, live).add(base, factors[live], out, lower) if len(live) else None
        add_squares(*base, *self.lines, self.gammas.astype(self.dtype), factors, out, lower)

    def inner(self, base: Any, W: FloatArray, lower: bool) -> FloatArray:
        from ._squares_loops import inner_squares

        out, gammas = np.zeros(self.n_kernels), self.gammas.astype(self.dtype)
        inner_squares(*base, *self.lines, gammas, np.ascontiguousarray(W), out, lower)
        return out

    def products(self, vectors: FloatArray) -> FloatArray:
        """K_k vectors_k for every k, in one pass; shapes (K, n)."""
        count = max(-(-self.n_kernels // BATCH), min(loop_threads(), self.n_kernels))
        batches = np.array_split(np.arange(self.n_kernels), count)
        return np.concatenate(list(map_tiles(partial(self._products, vectors), batches)))

    def pack(self, triangles: FloatArray, members: IntArray) -> None:
        """Store the lower triangles of all kernels, row after row, in the rows `members` of an array."""
        from ._squares_loops import store_squares

        lines, gammas = self.lines, self.gammas.astype(self.dtype)
        # pieces of the triangle of about the same size
        cuts = (self.n_samples * np.sqrt(np.linspace(0.0, 1.0, 4 * loop_threads() + 1))).round().astype(int)

        def fill(piece: tuple[int, int]) -> None:
            store_squares(self.points, *lines, gammas, triangles, members, *piece)

        for _ in map_tiles(fill, list(pairwise(cuts.tolist()))):
            pass

    def _products(self, vectors: FloatArray, kernels: IntArray) -> FloatArray:
        from ._squares_loops import multiply_squares

        part, out = self.take(None, kernels), np.zeros((len(kernels), self.n_samples))
        gammas, own = part.gammas.astype(self.dtype), np.ascontiguousarray(vectors[kernels])
        multiply_squares(self.points, *part.lines, gammas, own, out)
        return out


def pack_subsets(masks: Any) -> IntArray:
    """Subsets of columns as bits, eight columns a byte.

    Examples
    --------
    >>> pack_subsets(np.array([[True, False, True], [False, True, False]]))
    array([[5],
           [2]], dtype=uint8)
    """
    return np.packbits(masks, axis=1, bitorder="little")


def code_lines(subsets: IntArray, n_columns: int) -> Lines:
    """Which rows of a table of all subsets of every group of columns the kernels add up.

    Larger groups make a larger table, which pays when there are many kernels.

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
    # the j-th group of a kernel that has columns goes to place j of its lines
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
