"""Which Gram engine: the fastest that memory allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._typing import FloatArray
from ._workers import loop_threads
from .base import Gram
from .blocked import BlockedGram
from .blocks import WORK_BYTES, Blocks
from .cached import CachedGram
from .memory import SHARE, SUM_SHARE, free_memory, show_bytes
from .packed import PackedGram, StoreGram

#: what `gram` may be
ENGINES = ("auto", "dense", "packed", "cached", "store", "blocked")

#: matrices of a solver's own: the weighted sums at the best and the last weights, and for a while those at
#: the next and what a machine factors
HELD, AT_MOST = 2, 4

#: a solver's first look at one sample in four takes one more entry for every 16
FIRST_LOOK = 1.0 + 1.0 / 16.0

#: a cache of fewer than this share of the rows is not worth having
LEAST_CACHED = 0.1


@dataclass(frozen=True)
class Choice:
    """An engine, and why it was chosen.

    Attributes
    ----------
    name : str
    reason : str
        One sentence.
    limit : int or None
        Bytes that the engine and the sums of a solver may take together.
    dtype : dtype or None
        How entries are stored by engines that hold triangles.
    cache_bytes : int
        Bytes for the caches of a cached engine.
    """

    name: str
    reason: str
    limit: int | None
    dtype: Any = None
    cache_bytes: int = 0

    def build(self, blocks: Blocks, scales: FloatArray) -> Gram:
        """The engine, unless it is the dense one, which takes matrices."""
        if self.name == "packed":
            return PackedGram(blocks, scales, self.dtype)
        if self.name == "cached":
            return CachedGram(blocks, scales, self.limit, self.cache_bytes)
        if self.name == "store":
            return StoreGram(blocks, scales)
        return BlockedGram(blocks, scales, self.limit)


@dataclass(frozen=True)
class Task:
    """What has to fit: M kernels with so many different bases on n samples.

    Attributes
    ----------
    n_kernels, n_bases, n_samples : int
    n_new : int, optional
        Matrices that are not in memory yet; all by default.
    given : bool
        Whether the matrices are in memory, if not as they are needed, or in a store.
    mapped : bool
        Whether their triangles are in a file, as they are needed.
    combined : bool or int
        Samples on which the solver will ask an engine that computes pairs anew for the weighted sum
        of all kernels: all, none, or so many at most.
    light : bool
        Whether computing the kernels takes no longer than reading them from memory.
    """

    n_kernels: int
    n_bases: int
    n_samples: int
    n_new: int | None = None
    given: bool = False
    mapped: bool = False
    combined: bool | int = True
    light: bool = False

    def sums(self, count: int, streamed: bool = False) -> int:
        """Bytes of the weighted sums a solver holds."""
        if streamed and self.combined is not True:
            return min(self.square, 8 * int(self.combined) ** 2)
        return count * self.square

    @property
    def square(self) -> int:
        """Bytes of one matrix."""
        return 8 * self.n_samples**2

    @property
    def work(self) -> int:
        """Bytes at work on tiles."""
        return min(loop_threads() * WORK_BYTES, 4 * self.square)

    @property
    def matrices(self) -> int:
        """Bytes of all matrices that are not in memory yet."""
        return (self.n_kernels if self.n_new is None else self.n_new) * self.square

    def __str__(self) -> str:
        return f"{self.n_kernels} kernels on {self.n_samples} samples"


class Option(NamedTuple):
    """An engine, the bytes it needs, and what it does."""

    name: str
    needed: int
    what: str
    dtype: Any = None


def options(task: Task, careful: bool = True) -> list[Option]:
    """All engines, the fastest first, and what they need; the least that may do unless `careful`.

    Examples
    --------
    >>> [option.name for option in options(Task(50, 1, 1000))]
    ['dense', 'packed', 'packed', 'cached', 'store', 'blocked']
    """
    held, more = (task.sums(AT_MOST), FIRST_LOOK) if careful else (task.sums(HELD), 1.0)
    part = task.sums(AT_MOST if careful else HELD, streamed=True)
    stored = int(more * task.n_kernels * task.square)
    looked_at = task.n_kernels * task.square // 64 if careful else 0  # triangles of float32 in memory
    least = int(LEAST_CACHED * task.n_bases * task.square) if careful else 0
    return [
        Option("dense", held + int(more * task.matrices), "all matrices are in memory"),
        Option("packed", held + stored // 2, "their lower triangles are in memory", np.float64),
        Option("packed", held + stored // 4, "their lower triangles are in memory as float32", np.float32),
        Option("cached", part + task.work + least, "rows are computed when asked for and kept in a cache"),
        Option("store", held + task.work + looked_at, "they are read where they lie"),
        Option(
            "blocked",
            task.sums(HELD, streamed=True) + task.work,
            "blocks of them are computed anew in every pass",
        ),
    ]


def choose_engine(name: str, task: Task, memory_limit: int | None) -> Choice:
    """The engine called `name`, or for "auto" the first of dense, packed, cached and blocked that fits.

    Matrices that are given are never copied: they are dense or read in blocks, or, all of a store, mapped
    as they are.

    Parameters
    ----------
    name : {"auto", "dense", "packed", "cached", "store", "blocked"}
    task : Task
    memory_limit : int or None
        Bytes; by default a share of the memory that is free, and for "dense" no limit.

    Examples
    --------
    >>> choice = choose_engine("auto", Task(n_kernels=50, n_bases=1, n_samples=10_000), 2 * 10**9)
    >>> choice.name, choice.reason
    ('blocked', '50 kernels on 10000 samples would take 45.7 GB dense and memory_limit allows 2 GB: ...')
    """
    if name not in ENGINES:
        known = ", ".join(repr(engine) for engine in ENGINES)
        raise ValueError(f"gram={name!r} is not a Gram engine: pass one of {known}.")
    if name == "store" and not task.mapped:
        raise ValueError(
            "gram='store' reads the triangles of a whole GramStore that a normalisation only scales: pass "
            "kernels='precomputed' and a GramStore as X, or another engine."
        )
    limit = free_share() if memory_limit is None and name != "dense" else memory_limit
    allows = f"{'free memory' if memory_limit is None else 'memory_limit'} allows {show_bytes(limit or 0)}"
    every = options(task, careful=name == "auto")
    open_to = [option for option in every if _open(option, name, task)]
    fitting = [option for option in open_to if limit is None or option.needed <= limit]
    if not fitting:
        raise MemoryError(
            f"{task} need {show_bytes(open_to[-1].needed)} with gram={open_to[-1].name!r}, {allows}: "
            "raise memory_limit, or use fewer kernels or samples."
        )
    first = fitting[0]
    reason = f"gram={name!r} was asked for: {first.what}."
    if name == "auto" and task.light:
        reason = f"{task} are computed as fast as they could be read: {first.what}."
    elif name == "auto":
        fits = "take" if first.name == "dense" else "would take"
        reason = f"{task} {fits} {show_bytes(every[0].needed)} dense and {allows}: {first.what}."
    return Choice(first.name, reason, limit, first.dtype, _cache_bytes(task, limit))


def _open(option: Option, name: str, task: Task) -> bool:
    """Whether an engine may be considered."""
    if name != "auto":
        return option.name == name
    if option.name == "store":
        return task.mapped
    if task.light:
        return option.name == "blocked"
    if option.name == "cached" and task.n_bases == 0:
        return False
    return not task.given or option.name in ("dense", "blocked")


def free_share() -> int | None:
    """Bytes that a fit may take when nothing else is said."""
    free = free_memory()
    return None if free is None else int(SHARE * free)


def _cache_bytes(task: Task, limit: int | None) -> int:
    """What is left for caches, no more than all rows of all bases."""
    everything = task.n_bases * task.square
    if limit is None:
        return everything
    sums = task.sums(AT_MOST, streamed=True)
    if task.combined is not True and task.combined:
        sums = max(sums, min(task.square, int(SUM_SHARE * limit)))
    return max(0, min(everything, limit - sums - task.work))
