"""Nothing kept: every pass computes the kernels again, a tile at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from .._typing import FloatArray, IntArray
from ._workers import map_tiles, mirror_lower
from .base import Gram
from .blocks import Blocks, lower_tiles, rectangle
from .choice import HELD, SUM_SHARE, Needs, Task, show_bytes
from .stack import KernelStack

Tile = tuple[slice, slice]


class BlockedGram(Gram):
    """M Gram matrices computed a tile at a time whenever they are asked for.

    Distances and inner products are computed once for all kernels that share them; sums and quadratic forms
    over all these kernels are accumulated while a row of the tile is at hand. Symmetry halves the work, and
    quadratic forms compute only the pairs of non-zero alpha. The memory needed is for the data and a few
    tiles, whatever the number of samples and kernels.

    Parameters
    ----------
    kernels : Blocks, or matrices of shape (n, n)
    scales : ndarray of shape (M,), optional
        K_m = scales[m] * kernels[m].
    memory_limit : int, optional
        Bytes that `combine` may take for its result.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram.blocks import Blocks
    >>> from kernelweave.kernels import RBF
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> gram = BlockedGram(Blocks.of_kernels([RBF(gamma).fit(X) for gamma in (0.1, 1.0)], X))
    >>> gram.rows(np.array([1]), np.array([0.5, 0.5])).round(3)
    array([[0.636, 1.   , 0.344]])
    """

    name = "blocked"
    streams = True

    def __init__(
        self,
        kernels: Blocks | KernelStack | Sequence[FloatArray],
        scales: FloatArray | None = None,
        memory_limit: int | None = None,
    ) -> None:
        self.blocks = kernels if isinstance(kernels, Blocks) else Blocks.of_matrices(kernels)
        self.n_samples, self.n_kernels = self.blocks.n_samples, self.blocks.n_kernels
        self.scales = np.ones(self.n_kernels) if scales is None else np.asarray(scales, dtype=np.float64)
        self.memory_limit = memory_limit
        self.single = self.blocks.single
        self.n_passes = 0.0

    @classmethod
    def needs(cls, task: Task) -> Needs:
        needed = task.sums(HELD, streamed=True) + task.work
        return Needs(needed, "blocks of them are computed again in every pass")

    @classmethod
    def of_blocks(cls, blocks: Blocks, scales: FloatArray, task: Task, needs: Needs) -> Self:
        return cls(blocks, scales, task.limit, **needs.options)

    @property
    def most_combined(self) -> int | None:  # type: ignore[override]
        return None if self.memory_limit is None else int((SUM_SHARE * self.memory_limit / 8) ** 0.5)

    def combine(self, weights: FloatArray) -> FloatArray:
        n, factors = self.n_samples, weights * self.scales
        self._check_room()
        out = np.empty((n, n))

        def fill(pair: Tile) -> None:
            out[pair] = self.blocks.sum(*pair, factors, lower=pair[0] == pair[1])

        for _ in map_tiles(fill, self._lower(self.blocks)):
            pass
        mirror_lower(out)
        self._count(0.5, factors)
        return out

    def combine_each(self, weights: FloatArray) -> list[FloatArray]:
        n, factors = self.n_samples, weights * self.scales
        self._check_room(len(weights))
        out: list[FloatArray] = [np.empty((n, n)) for _ in weights]

        def fill(pair: Tile) -> None:
            for K, part in zip(out, self.blocks.sum_each(*pair, factors, pair[0] == pair[1]), strict=True):
                K[pair] = part

        for _ in map_tiles(fill, self._lower(self.blocks)):
            pass
        for K in out:
            mirror_lower(K)
        self._count(0.5, np.abs(factors).sum(axis=0))
        return out

    def dot_each(
        self, weights: FloatArray, alpha: FloatArray, rows: Sequence[IntArray | None]
    ) -> list[FloatArray]:
        """`dot` of all models, from pairs computed once if that takes fewer pairs than model by model."""
        every = np.arange(self.n_samples)
        lists = [every if some is None else np.asarray(some) for some in rows]
        support, wanted = np.flatnonzero(alpha.any(axis=1)), np.unique(np.concatenate(lists))
        apart = np.count_nonzero(alpha, axis=0) @ np.array([len(some) for some in lists])
        if len(support) * len(wanted) >= apart:
            return super().dot_each(weights, alpha, rows)
        factors, out = weights * self.scales, np.zeros((len(weights), len(wanted)))
        own = np.ascontiguousarray(alpha[support].T, dtype=np.float64)
        self.blocks.prepare(wanted, evict=True)

        def product(pair: Tile) -> FloatArray:
            K = self.blocks.sum_each(wanted[pair[0]], support[pair[1]], factors)
            return np.array([part @ a for part, a in zip(K, own[:, pair[1]], strict=True)])

        pairs = rectangle(len(wanted), len(support))
        for (some, _), values in zip(pairs, map_tiles(product, pairs), strict=True):
            out[:, some] += values
        self._count(len(wanted) * len(support) / self.n_samples**2, np.abs(factors).sum(axis=0))
        return [total[np.searchsorted(wanted, some)] for total, some in zip(out, lists, strict=True)]

    def dot(self, weights: FloatArray, alpha: FloatArray, rows: IntArray | None = None) -> FloatArray:
        columns = np.ascontiguousarray(alpha.reshape(self.n_samples, -1), dtype=np.float64)
        support = np.flatnonzero(columns.any(axis=1))
        factors = weights * self.scales
        chosen = np.arange(self.n_samples) if rows is None else np.asarray(rows)
        out = np.zeros((len(chosen), columns.shape[1]))
        if rows is None:
            rest = np.setdiff1d(chosen, support)
            out[support] = self._dot_support(support, columns[support], factors)
            out[rest] = self._dot_rows(rest, support, columns[support], factors)
        else:
            self.blocks.prepare(chosen, evict=True)
            out[:] = self._dot_rows(chosen, support, columns[support], factors)
        return out.reshape(len(chosen), *alpha.shape[1:])

    def quad(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        columns = alpha.reshape(self.n_samples, -1)
        support = np.flatnonzero(columns.any(axis=1))
        part, A = self._part(support, kernels), columns[support].astype(np.float64)

        def form(pair: Tile) -> FloatArray:
            rows, others = pair
            return part.inner(*pair, _both_ways(A[rows] @ A[others].T, rows == others), rows == others)

        total = sum(map_tiles(form, self._lower(part)), start=np.zeros(len(chosen)))
        self._count(0.5 * (len(support) / self.n_samples) ** 2, np.ones(len(chosen)))
        return self.scales[chosen] * total

    def inner(self, A: FloatArray) -> FloatArray:
        def trace(pair: Tile) -> FloatArray:
            diagonal = pair[0] == pair[1]
            return self.blocks.inner(*pair, _both_ways(A[pair].astype(np.float64), diagonal), diagonal)

        total = sum(map_tiles(trace, self._lower(self.blocks)), start=np.zeros(self.n_kernels))
        self._count(0.5, self.scales)
        return self.scales * total

    def rows(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        chosen, factors = np.asarray(indices, dtype=int), weights * self.scales
        out = np.empty((len(chosen), self.n_samples))
        self.blocks.prepare(chosen, evict=True)

        def fill(pair: Tile) -> None:
            out[pair] = self.blocks.sum(chosen[pair[0]], pair[1], factors)

        for _ in map_tiles(fill, rectangle(len(chosen), self.n_samples)):
            pass
        self._count(len(chosen) / self.n_samples, factors)
        return out

    def diag(self, weights: FloatArray) -> FloatArray:
        return self.blocks.diagonal(weights * self.scales)

    def subset(self, samples: IntArray | None = None, kernels: IntArray | None = None) -> Self:
        scales = self.scales if kernels is None else self.scales[np.asarray(kernels)]
        return type(self)(self._part(samples, kernels), scales, self.memory_limit)

    # -- passes -------------------------------------------------------------------------------

    def _part(self, samples: IntArray | None, kernels: IntArray | None) -> Blocks:
        everything = samples is not None and np.array_equal(samples, np.arange(self.n_samples))
        samples = None if samples is None or everything else np.asarray(samples)
        if samples is None and kernels is None:
            return self.blocks
        return self.blocks.take(samples, kernels)

    def _lower(self, blocks: Blocks) -> list[Tile]:
        """`lower_tiles`; the cache, if there is one, is told that all rows are wanted."""
        blocks.prepare(slice(0, blocks.n_samples), evict=False)
        return list(lower_tiles(blocks.n_samples))

    def _dot_support(self, support: IntArray, alpha: FloatArray, factors: FloatArray) -> FloatArray:
        """sum_m factors[m] K_m alpha within the support, every tile below the diagonal used both ways."""
        part, out = self._part(support, None), np.zeros(alpha.shape)

        def both(pair: Tile) -> tuple[FloatArray, FloatArray]:
            K = part.sum(*pair, factors)
            return K @ alpha[pair[1]], K.T @ alpha[pair[0]]

        pairs = self._lower(part)
        for (rows, columns), (right, left) in zip(pairs, map_tiles(both, pairs), strict=True):
            out[rows] += right
            if rows != columns:
                out[columns] += left
        self._count(0.5 * (len(support) / self.n_samples) ** 2, factors)
        return out

    def _dot_rows(
        self, chosen: IntArray, support: IntArray, alpha: FloatArray, factors: FloatArray
    ) -> FloatArray:
        """sum_m factors[m] K_m alpha on the chosen rows; `alpha` has the entries of the support."""
        out = np.zeros((len(chosen), alpha.shape[1]))

        def product(pair: Tile) -> FloatArray:
            return self.blocks.sum(chosen[pair[0]], support[pair[1]], factors) @ alpha[pair[1]]

        pairs = rectangle(len(chosen), len(support))
        for (rows, _), values in zip(pairs, map_tiles(product, pairs), strict=True):
            out[rows] += values
        self._count(len(chosen) * len(support) / self.n_samples**2, factors)
        return out

    def products(
        self, alpha: FloatArray, kernels: IntArray | None = None, rows: IntArray | None = None
    ) -> FloatArray:
        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        size = self.n_samples if rows is None else len(rows)
        if len(chosen) == 0:
            return np.zeros((0, size))
        every = np.array_equal(chosen, np.arange(self.n_kernels))
        part, support = self._part(None, None if every else chosen), np.flatnonzero(alpha)
        pairs, out = rectangle(len(support), size), np.zeros((len(chosen), size))
        if rows is None:
            part.prepare(support, evict=True)

        def product(pair: Tile) -> FloatArray:
            left, right = support[pair[0]], pair[1] if rows is None else rows[pair[1]]
            return part.multiplied(left, right, alpha[left].astype(np.float64))

        for (_, columns), found in zip(pairs, map_tiles(product, pairs), strict=True):
            out[:, columns] += found
        self._count(len(support) * size / self.n_samples**2, np.ones(len(chosen)))
        return np.asarray(self.scales[chosen][:, None] * out)

    def _check_room(self, count: int = 1) -> None:
        needed = 8 * count * self.n_samples**2
        if self.memory_limit is not None and needed > self.memory_limit:
            raise MemoryError(
                f"the weighted sum of the kernels on {self.n_samples} samples needs {show_bytes(needed)}, "
                f"memory_limit allows {show_bytes(self.memory_limit)}: raise it, use fewer samples, or a "
                "solver that reads rows."
            )


class Unrounded:
    """How to compute the kernels whose values an engine keeps in single precision.

    Parameters
    ----------
    blocks : Blocks
        Normalised except for their scale.
    samples, kernels : ndarray of int, optional
        Those of the engine; all by default.
    """

    def __init__(
        self, blocks: Blocks, samples: IntArray | None = None, kernels: IntArray | None = None
    ) -> None:
        self.blocks, self.samples, self.kernels = blocks, samples, kernels

    def take(self, samples: IntArray | None, kernels: IntArray | None) -> Unrounded:
        """The same for some of these samples and kernels; nothing is copied yet."""
        return Unrounded(self.blocks, _among(self.samples, samples), _among(self.kernels, kernels))

    def found(self) -> Blocks:
        """The kernels in question."""
        everything = self.samples is None and self.kernels is None
        return self.blocks if everything else self.blocks.take(self.samples, self.kernels)

    def gram(self, scales: FloatArray) -> BlockedGram:
        """An engine that does not round."""
        return BlockedGram(self.found(), scales)


def _among(known: IntArray | None, chosen: IntArray | None) -> IntArray | None:
    """Positions among all, from positions among those known."""
    if known is None or chosen is None:
        return chosen if known is None else known
    return known[chosen]


def _both_ways(W: FloatArray, diagonal: bool) -> FloatArray:
    """Coefficients of a symmetric sum on a tile of the lower triangle: entries below count twice."""
    if not diagonal:
        return 2.0 * W
    return 2.0 * np.tril(W, -1) + np.diag(W.diagonal())
