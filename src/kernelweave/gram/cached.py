"""Rows kept in a bounded cache, the least recently used giving way."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from .._typing import FloatArray, IntArray
from ._workers import map_tiles
from .blocks import Blocks, rectangle
from .shared import Part, Shared, count, positions
from .stack import KernelStack
from .streamed import StreamedGram

#: bytes of cache when nothing is said
CACHE_BYTES = 1 << 28


class RowCache:
    """Whole rows of the base that some kernels share.

    Parameters
    ----------
    part : Shared
    size : int
        Bytes to keep; at least one row is.

    Examples
    --------
    >>> from kernelweave.gram.shared import SharedDistances
    >>> cache = RowCache(SharedDistances(np.array([[0.0], [1.0], [3.0]]), np.ones(1)), size=48)
    >>> cache.fetch(np.array([0, 2]), evict=True)
    >>> cache.fetch(np.array([1]), evict=True)
    >>> sorted(cache.slots)
    [1, 2]
    """

    def __init__(self, part: Shared, size: int) -> None:
        row = part.n_samples * part.dtype.itemsize
        self.part, self.capacity = part, max(1, min(part.n_samples, size // row))
        self.slots: OrderedDict[int, int] = OrderedDict()  # sample -> row of the store, oldest first
        self.store = np.empty((self.capacity, part.n_samples), part.dtype)  # not touched before it is used
        self.lock = threading.RLock()

    def fetch(self, samples: IntArray, evict: bool) -> None:
        """Compute rows that are not there, as far as there is room; `evict` makes room."""
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

    def read(self, samples: IntArray, columns: Part, out: FloatArray) -> IntArray:
        """Fill the rows of `out` that are here; return the positions of those that are not."""
        with self.lock:
            places = np.array([self.slots.get(i, -1) for i in samples.tolist()], dtype=int)
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
            places.append(used if used < self.capacity else self.slots.popitem(last=False)[1])
        return places

    def _compute(self, samples: IntArray, places: IntArray) -> None:
        def fill(pair: tuple[slice, slice]) -> None:
            some, columns = pair
            self.store[places[some], columns] = self.part.base(samples[some], columns)

        for _ in map_tiles(fill, rectangle(len(samples), self.part.n_samples)):
            pass


class Cached(Shared):
    """Kernels whose base is read from a cache where it is there.

    Parameters
    ----------
    part : Shared
        The kernels, on all samples or some.
    cache : RowCache
        Of the same base on all samples.
    samples : ndarray of int, optional
        Which of all samples those of `part` are.
    """

    def __init__(self, part: Shared, cache: RowCache, samples: IntArray | None = None) -> None:
        self.part, self.cache, self.whole = part, cache, samples is None
        self.samples = np.arange(part.n_samples) if samples is None else samples
        self.n_samples, self.n_kernels, self.dtype = part.n_samples, part.n_kernels, part.dtype

    def prepare(self, rows: Part, evict: bool) -> None:
        self.cache.fetch(self.samples[rows], evict)

    def base(self, rows: Part, columns: Part) -> FloatArray:
        samples = self.samples[rows]
        # rows of all samples are read as they lie, those of some are picked
        picked = columns if self.whole else self.samples[columns]
        found = np.empty((len(samples), count(columns)), self.dtype)
        missing = self.cache.read(samples, picked, found)
        if len(missing):
            found[missing] = self.part.base(positions(rows)[missing], columns)
        return found

    def take(self, samples: IntArray | None, kernels: IntArray | None) -> Cached:
        whole = self.whole and samples is None
        of_all = None if whole else self.samples if samples is None else self.samples[samples]
        return Cached(self.part.take(samples, kernels), self.cache, of_all)

    def values(self, base: FloatArray, k: int) -> FloatArray:
        return self.part.values(base, k)

    def diag(self, k: int) -> FloatArray:
        return self.part.diag(k)

    def add(self, base: FloatArray, factors: FloatArray, out: FloatArray, lower: bool) -> None:
        self.part.add(base, factors, out, lower)

    def inner(self, base: FloatArray, W: FloatArray, lower: bool) -> FloatArray:
        return self.part.inner(base, W, lower)


class CachedGram(StreamedGram):
    """M Gram matrices from rows of distances or inner products kept in a cache.

    Kernels that share distances or inner products share one cache, and so do subsets. A pass over
    all pairs fills what is free of it; rows asked for by name push out the least recently used.

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

    @property
    def nbytes(self) -> int:
        return sum(part.cache.store.nbytes for part in self.blocks.parts if isinstance(part, Cached))


def _with_cache(part: Shared, size: int) -> Shared:
    """A part that remembers; one that does already, as those of a subset do, keeps the cache it shares."""
    return part if isinstance(part, Cached) or not part.cacheable else Cached(part, RowCache(part, size))
