"""The lower triangles of all Gram matrices, in memory or in the file of a `GramStore`."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import FloatArray, IntArray
from ._workers import map_tiles, mirror_lower, over_rows
from .base import Gram
from .blocked import Unrounded
from .blocks import TILE_ROWS, Blocks, lower_tiles, tiles
from .choice import Needs, Task
from .dense import SMALL_SUPPORT
from .shared import Given
from .stack import KernelStack

#: above this share of rows, a pass over everything is cheaper than picking columns entry by entry
MANY_ROWS = 0.05

#: an array that lies in a file
Mapped = np.memmap[Any, Any]

#: bytes of a file that the system is likely to keep in memory
KEPT = 1 << 28


class PackedGram(Gram):
    """M symmetric matrices whose lower triangles are in memory; sums are in double precision.

    Parameters
    ----------
    kernels : Blocks, or matrices of shape (n, n)
    scales : ndarray of shape (M,), optional
        K_m = scales[m] * kernels[m].
    dtype : dtype, optional
        How entries are stored; the kernels' own precision by default.

    Examples
    --------
    >>> gram = PackedGram([np.eye(2), np.ones((2, 2))])
    >>> gram.quad(np.array([1.0, 1.0]))
    array([2., 4.])
    >>> gram.triangles
    array([[1., 0., 1.],
           [1., 1., 1.]])
    """

    name = "packed"

    def __init__(
        self,
        kernels: Blocks | KernelStack | Sequence[FloatArray],
        scales: FloatArray | None = None,
        dtype: Any = None,
    ) -> None:
        blocks = kernels if isinstance(kernels, Blocks) else Blocks.of_matrices(kernels)
        kind = np.dtype(np.result_type(*blocks.dtypes) if dtype is None else dtype)
        triangles = np.empty((blocks.n_kernels, triangle_size(blocks.n_samples)), kind)
        pack(blocks, triangles)
        scales = np.ones(blocks.n_kernels) if scales is None else np.asarray(scales, dtype=np.float64)
        unrounded = None if holds(kind, blocks) else Unrounded(blocks)
        self._set(triangles, np.arange(blocks.n_kernels), scales, blocks.n_samples, unrounded)

    @classmethod
    def needs(cls, task: Task) -> Needs:
        if task.careful and (task.light or task.given):
            return Needs(None, "matrices that are given or computed as fast as read are not copied.")
        stored, words = task.kept(task.n_kernels), "their lower triangles are in memory"
        if not task.single or task.fits(task.held + stored // 2):
            return Needs(task.held + stored // 2, words, {"dtype": np.float64})
        return Needs(task.held + stored // 4, f"{words} as float32", {"dtype": np.float32})

    @classmethod
    def of_blocks(cls, blocks: Blocks, scales: FloatArray, task: Task, needs: Needs) -> PackedGram:
        return cls(blocks, scales, **needs.options)

    def _set(
        self,
        triangles: FloatArray,
        kernels: IntArray,
        scales: FloatArray,
        n_samples: int,
        unrounded: Unrounded | None,
    ) -> None:
        self.triangles, self.kernels, self.scales, self.unrounded = triangles, kernels, scales, unrounded
        self.n_samples, self.n_kernels, self.n_passes = n_samples, len(kernels), 0.0
        self.single = triangles.dtype == np.float32

    @property
    def nbytes(self) -> int:
        return int(self.triangles.nbytes)

    def combine(self, weights: FloatArray) -> FloatArray:
        from ._matrix_loops import combine_rows

        kernels, factors = self._live(weights)
        out = np.empty((self.n_samples, self.n_samples))
        for some in tiles(self.n_samples, TILE_ROWS):  # rows of one piece are of similar length
            over_rows(combine_rows, range(some.start, some.stop), out, self.triangles, kernels, factors)
        mirror_lower(out)
        self._count(0.5 * len(kernels))
        return out

    def dot(self, weights: FloatArray, alpha: FloatArray, rows: IntArray | None = None) -> FloatArray:
        columns = np.ascontiguousarray(alpha.reshape(self.n_samples, -1).T, dtype=np.float64)
        every = rows is None or self._many(len(rows))
        chosen = np.arange(self.n_samples) if rows is None else np.asarray(rows)
        found = self._dot_all(weights, columns)[chosen] if every else self._dot_rows(weights, columns, chosen)
        return found.reshape(len(chosen), *alpha.shape[1:])

    def quad(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        from ._matrix_loops import quad_entries, quad_triangle_rows

        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        columns = np.ascontiguousarray(alpha.reshape(self.n_samples, -1).T, dtype=np.float64)
        support = np.flatnonzero(columns.any(axis=0))
        share = len(support) / self.n_samples
        loop = quad_entries if share < SMALL_SUPPORT else quad_triangle_rows
        lines = np.zeros((len(support), len(chosen)))
        for some in tiles(len(support), TILE_ROWS):
            rows = range(some.start, some.stop)
            over_rows(loop, rows, lines, self.triangles, self.kernels[chosen], support, columns)
        self._count(0.5 * share * len(chosen))
        return np.asarray(self.scales[chosen] * lines.sum(axis=0))

    def inner(self, A: FloatArray) -> FloatArray:
        from ._matrix_loops import inner_rows

        lines = np.empty((self.n_samples, self.n_kernels))
        rows = range(self.n_samples)
        over_rows(inner_rows, rows, lines, self.triangles, self.kernels, np.ascontiguousarray(A))
        self._count(0.5 * self.n_kernels)
        return np.asarray(self.scales * lines.sum(axis=0))

    def rows(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        from ._matrix_loops import full_rows, many_rows

        kernels, factors = self._live(weights)
        out, chosen = np.empty((len(indices), self.n_samples)), np.asarray(indices, dtype=int)
        if self._many(len(chosen)):
            many_rows(out, self.triangles, kernels, factors, chosen)
            self._count(0.5 * len(kernels))
            return out
        over_rows(full_rows, range(len(chosen)), out, self.triangles, kernels, factors, chosen)
        self._count(len(chosen) / self.n_samples * len(kernels))
        return out

    def diag(self, weights: FloatArray) -> FloatArray:
        kernels, factors = self._live(weights)
        entries = np.arange(self.n_samples)
        on_diagonal = self.triangles[np.ix_(kernels, entries * (entries + 3) // 2)]
        return np.asarray(factors @ on_diagonal.astype(np.float64))

    def subset(self, samples: IntArray | None = None, kernels: IntArray | None = None) -> PackedGram:
        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        part, own = object.__new__(type(self) if samples is None else PackedGram), self.scales[chosen]
        unrounded = None if self.unrounded is None else self.unrounded.take(samples, chosen)
        if samples is None:
            part._set(self.triangles, self.kernels[chosen], own, self.n_samples, unrounded)
            return part
        size = len(samples)
        triangles = self._triangles_of(np.asarray(samples), self.kernels[chosen])
        part._set(triangles, np.arange(len(chosen)), own, size, unrounded)
        self._count(0.5 * len(chosen) * (size / self.n_samples) ** 2)
        return part

    def _triangles_of(self, samples: IntArray, kernels: IntArray) -> FloatArray:
        from ._matrix_loops import take

        out = np.empty((len(kernels), triangle_size(len(samples))), self.triangles.dtype)
        for m, triangle in zip(kernels, out, strict=True):
            over_rows(take, range(len(samples)), self.triangles[m], samples, triangle)
        return out

    def _dot_all(self, weights: FloatArray, columns: FloatArray) -> FloatArray:
        from ._matrix_loops import product

        kernels, factors = self._live(weights)
        out = np.zeros(columns.shape)
        product(out, self.triangles, kernels, factors, columns)
        self._count(0.5 * len(kernels))
        return out.T

    def _dot_rows(self, weights: FloatArray, columns: FloatArray, chosen: IntArray) -> FloatArray:
        out = np.empty((len(chosen), len(columns)))
        for some in tiles(len(chosen), TILE_ROWS):
            out[some] = self.rows(chosen[some], weights) @ columns.T
        return out

    def _live(self, weights: FloatArray) -> tuple[IntArray, FloatArray]:
        """Where the kernels whose factor is not zero are stored, and their factors."""
        factors = weights * self.scales
        live = np.flatnonzero(factors)
        return self.kernels[live], factors[live]

    def _many(self, n_rows: int) -> bool:
        """Whether this many rows are found more cheaply in a pass over everything."""
        return n_rows > MANY_ROWS * self.n_samples


class StoreGram(PackedGram):
    """`PackedGram` on the triangles of a `GramStore`, read where they are.

    A pass reads the file once, in order. The system keeps parts of the file only in memory that nobody else
    asks for. Subsets of the samples are copied into memory.

    Parameters
    ----------
    kernels : Blocks, or GramStore
        Whole, and changed by nothing but a factor; see `stored`.
    scales : ndarray of shape (M,), optional
        K_m = scales[m] * kernels[m].
    """

    name = "store"

    def __init__(self, kernels: Blocks | KernelStack, scales: FloatArray | None = None) -> None:
        blocks = kernels if isinstance(kernels, Blocks) else Blocks.of_matrices(kernels)
        found = stored(blocks)
        if found is None:
            raise ValueError("gram='store' reads the triangles of a whole GramStore: pass one.")
        scales = np.ones(blocks.n_kernels) if scales is None else np.asarray(scales, dtype=np.float64)
        self._set(*found, scales, blocks.n_samples, None)

    @classmethod
    def needs(cls, task: Task) -> Needs:
        if not task.mapped:
            return Needs(
                None,
                "it reads the triangles of a whole GramStore that a normalisation only scales. Pass "
                "kernels='precomputed' and a GramStore as X, or another engine.",
            )
        # the first look is at triangles of float32 in memory
        looked_at = task.n_kernels * task.square // 64 if task.careful else 0
        return Needs(task.held + task.work + looked_at, "they are read where they lie")

    @property
    def nbytes(self) -> int:
        return 0

    def __getstate__(self) -> dict[str, Any]:
        found: Any = self.triangles  # whoever unpickles reads the same file
        return {**self.__dict__, "triangles": (found.filename, found.shape, found.dtype.str, found.offset)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.triangles = map_triangles(*state["triangles"])

    def _many(self, n_rows: int) -> bool:
        if self.triangles.nbytes <= KEPT:
            return super()._many(n_rows)
        # an entry beyond the diagonal costs a page of memory: a few columns touch the whole file
        return n_rows * mmap.PAGESIZE > self.triangles.itemsize * self.n_samples / 2


def stored(blocks: Blocks) -> tuple[FloatArray, IntArray] | None:
    """Triangles of a store, and which of them belong to these kernels; None unless all are as stored."""
    given = [part.pairs for part in blocks.parts]
    store = given[0].stack if isinstance(given[0], Given) else None
    triangles = getattr(store, "triangles", None)
    if triangles is None or blocks.roots is not None or blocks.means is not None:
        return None
    places = np.empty(blocks.n_kernels, dtype=int)
    for pairs, members in zip(given, blocks.members, strict=True):
        if not (isinstance(pairs, Given) and pairs.stack is store):
            return None
        places[members] = pairs.m
    return triangles, places


def holds(dtype: Any, blocks: Blocks) -> bool:
    """Whether numbers of this type hold the values of the kernels without rounding.

    Examples
    --------
    >>> given = Blocks.of_matrices([np.eye(2, dtype=np.float32)])
    >>> holds(np.float32, given), holds(np.float32, Blocks.of_matrices([np.eye(2)]))
    (True, False)
    """
    as_given = blocks.roots is None and blocks.means is None
    wanted = np.result_type(*blocks.dtypes) if as_given else np.float64
    return bool(np.can_cast(wanted, dtype))


def triangle_size(n: int) -> int:
    """Number of entries of a lower triangle, including the diagonal.

    Examples
    --------
    >>> triangle_size(3)
    6
    """
    return n * (n + 1) // 2


def pack(blocks: Blocks, triangles: FloatArray) -> None:
    """Fill `triangles`, shape (M, n (n + 1) / 2), with the lower triangles of all kernels.

    Examples
    --------
    >>> triangles = np.empty((1, 3))
    >>> pack(Blocks.of_matrices([np.array([[1.0, 2.0], [2.0, 3.0]])]), triangles)
    >>> triangles
    array([[1., 2., 3.]])
    """
    rest = np.ones(blocks.n_kernels, dtype=bool)
    for part, members in zip(blocks.parts, blocks.members, strict=True):
        if part.batched and blocks.roots is None and blocks.means is None:
            part.pack(triangles, members)
            rest[members] = False
    if rest.any():
        kernels = np.flatnonzero(rest)
        _pack_tiles(blocks if rest.all() else blocks.take(kernels=kernels), triangles, kernels)


def _pack_tiles(blocks: Blocks, triangles: FloatArray, kernels: IntArray) -> None:
    """Fill the rows `kernels` of the triangles a tile at a time."""
    from ._matrix_loops import store

    def fill(pair: tuple[slice, slice]) -> None:
        for m, K in blocks.each(*pair):
            store(np.ascontiguousarray(K), triangles[kernels[m]], pair[0].start, pair[1].start)

    for _ in map_tiles(fill, list(lower_tiles(blocks.n_samples))):
        pass


def map_triangles(
    path: str | os.PathLike[str], shape: tuple[int, int], dtype: Any, offset: int = 0, mode: Any = "r"
) -> Mapped:
    """Triangles in a file as an array; the system is told that they are read in order."""
    found: Mapped = np.memmap(Path(path), dtype=dtype, mode=mode, offset=offset, shape=shape)
    if hasattr(mmap, "MADV_SEQUENTIAL"):
        found._mmap.madvise(mmap.MADV_SEQUENTIAL)  # type: ignore[attr-defined]
    return found
