"""Rows kept in a bounded cache; the least recently used give way."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from .._typing import FloatArray, IntArray
from ._workers import map_tiles
from .blocked import BlockedGram
from .blocks import Blocks, rectangle
from .choice import AT_MOST, HELD, LEAST_CACHED, Needs, Task
from .shared import Pairs, Part, Shared, count, positions
from .stack import KernelStack

#: bytes of cache when no size is given
CACHE_BYTES = 1 << 28


class RowCache:
    """Whole rows of the base that some kernels share.

    Parameters
    ----------
    pairs : Pairs
    size : int
        Bytes to keep; at least one row is kept.

    Examples
    --------
    >>> from kernelweave.kernels.bases import Manhattan
    >>> cache = RowCache(Pairs(Manhattan(), np.array([[0.0], [1.0], [3.0]])), size=48)
    >>> cache.fetch(np.array([0, 2]), evict=True)
    >>> cache.fetch(np.array([1]), evict=True)
    >>> sorted(cache.slots)
    [1, 2]
    """

    def __init__(self, pairs: Pairs, size: int) -> None:
        row = pairs.n_samples * pairs.dtype.itemsize
        self.pairs, self.capacity = pairs, max(1, min(pairs.n_samples, size // row))
        self.slots: OrderedDict[int, int] = OrderedDict()  # sample -> row of the store, oldest first
        self.places = np.full(pairs.n_samples, -1)  # the same, to look up many; -1: not here
        self.store = np.empty((self.capacity, pairs.n_samples), pairs.dtype)  # not touched before it is used
        self.lock = threading.RLock()

    def fetch(self, samples: IntArray, evict: bool) -> None:
        """Compute as many of the missing rows as there is room for; `evict` makes room."""
        with self.lock:
            asked = list(dict.fromkeys(samples.tolist()))[: self.capacity]
            missing = [i for i in asked if i not in self.slots]
            for i in asked:
                if i in self.slots:
                    self.slots.move_to_end(i)
            if not evict:
                missing = missing[: self.capacity - len(self.slots)]
            places = self._places(len(missing))
            self._compute(np.array(missing, dtype=int), np.array(places, dtype=int))
            self.slots.update(zip(missing, places, strict=True))
            self.places[missing] = places

    def read(self, samples: IntArray, columns: Part, out: FloatArray) -> IntArray:
        """Fill the rows of `out` that are here; return the positions of those that are not."""
        with self.lock:
            places = self.places[samples]
            here = np.flatnonzero(places >= 0)
            if isinstance(columns, slice):
                out[here] = self.store[places[here], columns]
            else:
                out[here] = self.store[np.ix_(places[here], columns)]
        return np.flatnonzero(places < 0)

    def _places(self, count: int) -> list[int]:
        """Rows of the store: those never used, then those of the oldest samples."""
        places: list[int] = []
        for _ in range(count):
            used = len(self.slots) + len(places)
            if used >= self.capacity:
                oldest, used = self.slots.popitem(last=False)
                self.places[oldest] = -1
            places.append(used)
        return places

    def _compute(self, samples: IntArray, places: IntArray) -> None:
        def fill(pair: tuple[slice, slice]) -> None:
            some, columns = pair
            self.store[places[some], columns] = self.pairs.between(samples[some], columns)

        for _ in map_tiles(fill, rectangle(len(samples), self.pairs.n_samples)):
            pass


class Cached(Pairs):
    """A base that is read from a cache where the cache has it.

    Parameters
    ----------
    pairs : Pairs
        The base, on all samples or some.
    cache : RowCache
        The cache of the same base on all samples.
    samples : ndarray of int, optional
        Which of all samples `pairs` has.
    """

    def __init__(self, pairs: Pairs, cache: RowCache, samples: IntArray | None = None) -> None:
        self.pairs, self.cache, self.whole = pairs, cache, samples is None
        self.samples = np.arange(pairs.n_samples) if samples is None else samples
        self.n_samples, self.dtype = pairs.n_samples, pairs.dtype
        self.base = pairs.base

    def prepare(self, rows: Part, evict: bool) -> None:
        self.cache.fetch(self.samples[rows], evict)

    def between(self, rows: Part, columns: Part) -> FloatArray:
        samples = self.samples[rows]
        # rows of all samples are read as they lie, those of some are picked
        picked = columns if self.whole else self.samples[columns]
        found = np.empty((len(samples), count(columns)), self.dtype)
        missing = self.cache.read(samples, picked, found)
        if len(missing):
            found[missing] = self.pairs.between(positions(rows)[missing], columns)
        return found

    def diag(self) -> FloatArray:
        return self.pairs.diag()

    def take(self, samples: IntArray | None) -> Pairs:
        if samples is None:
            return self
        return Cached(self.pairs.take(samples), self.cache, self.samples[samples])


class CachedGram(BlockedGram):
    """M Gram matrices from rows of distances or inner products kept in a cache.

    Kernels that share distances or inner products share one cache, and so do subsets. A pass over all pairs
    fills the free part of the cache; rows that are asked for singly push out the least recently used.

    Parameters
    ----------
    kernels : Blocks, or matrices of shape (n, n)
    scales : ndarray of shape (M,), optional
        K_m = scales[m] * kernels[m].
    memory_limit : int, optional
        Bytes that `combine` may take for its result.
    cache_bytes : int, default=2**28
        Bytes of all caches together.

    Examples
    --------
    >>> from kernelweave.kernels import RBF
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> gram = CachedGram(Blocks.of_kernels([RBF(gamma).fit(X) for gamma in (0.1, 1.0)], X))
    >>> gram.rows(np.array([1]), np.array([0.5, 0.5])).round(3)
    array([[0.636, 1.   , 0.344]])
    """

    name = "cached"

    def __init__(
        self,
        kernels: Blocks | KernelStack | Sequence[FloatArray],
        scales: FloatArray | None = None,
        memory_limit: int | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        super().__init__(kernels, scales, memory_limit)
        size = cache_bytes // len(self.blocks.parts)
        self.blocks = self.blocks.with_parts([_with_cache(part, size) for part in self.blocks.parts])

    @classmethod
    def needs(cls, task: Task) -> Needs:
        if task.careful and (task.light or task.given or task.n_bases == 0):
            return Needs(None, "there is nothing that a cache would save.")
        sums = task.sums(AT_MOST if task.careful else HELD, streamed=True)
        least = int(LEAST_CACHED * task.n_bases * task.square) if task.careful else 0
        words = "rows are computed when asked for and kept in a cache"
        return Needs(sums + task.work + least, words, {"cache_bytes": task.cache_bytes})

    @property
    def nbytes(self) -> int:
        every = (part.pairs for part in self.blocks.parts)
        return sum(pairs.cache.store.nbytes for pairs in every if isinstance(pairs, Cached))


def _with_cache(part: Shared, size: int) -> Shared:
    """A part with a cache; one that has a cache already, as parts of a subset do, keeps sharing that."""
    if isinstance(part.pairs, Cached) or not part.cacheable:
        return part
    return Shared(Cached(part.pairs, RowCache(part.pairs, size)), part.kernels)
