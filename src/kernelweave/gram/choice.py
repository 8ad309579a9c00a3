"""Which Gram engine to use: the first of the registry that can serve a fit within its memory."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ._workers import loop_threads
from .blocks import WORK_BYTES

if TYPE_CHECKING:
    from .base import Gram


#: share of the free memory that a fit may take when no limit is given
SHARE = 0.8

#: for an engine that computes pairs again: share of the memory for a weighted sum on some of the samples
SUM_SHARE = 0.4

#: where a container finds its limit, its use, and the file pages it can give back: new and old control groups
GROUPS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def parse_memory(limit: int | float | str | None) -> int | None:
    """Bytes of a limit such as 2_000_000_000, "2GB" or "500 MB".

    Examples
    --------
    >>> parse_memory("1.5GB")
    1500000000
    """
    if limit is None:
        return None
    units = {"TB": 1e12, "GB": 1e9, "MB": 1e6, "KB": 1e3, "B": 1.0}
    text = str(limit).strip().upper()
    unit = next((unit for unit in units if text.endswith(unit)), "")
    try:
        size = float(text.removesuffix(unit)) * units.get(unit, 1.0)
    except ValueError:
        size = -1.0
    if not 0 < size < np.inf:
        raise ValueError(f"memory_limit={limit!r}: expected bytes, or text such as '2GB'.")
    return int(size)


def show_bytes(count: float) -> str:
    """A number of bytes as text, in the largest unit that fits.

    Examples
    --------
    >>> show_bytes(1_440_000_000)
    '1.44 GB'
    """
    power = next((power for power in (4, 3, 2, 1) if count >= 1000**power), 0)
    return f"{count / 1000**power:.3g} {('B', 'KB', 'MB', 'GB', 'TB')[power]}"


def free_memory() -> int | None:
    """Bytes that can still be taken, within the limits of a container; None where that is unknown.

    Examples
    --------
    >>> free_memory() is None or free_memory() > 0
    True
    """
    free = re.search(r"^MemAvailable:\s+(\d+)", _read("/proc/meminfo"), re.MULTILINE)
    known = [] if free is None else [1024 * int(free[1])]
    if free is None:
        with suppress(AttributeError, ValueError, OSError):
            known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    for folder, limit, used, spare in GROUPS:
        bound, taken = (_read(f"{folder}/{name}").strip() for name in (limit, used))
        if bound.isdigit() and taken.isdigit():
            back = re.search(rf"^{spare} (\d+)", _read(f"{folder}/memory.stat"), re.MULTILINE)
            known.append(max(int(bound) - int(taken) + (0 if back is None else int(back[1])), 1))
    return min((size for size in known if size), default=None)


def _read(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:  # at every fit: the fastest way
            return file.read().decode()
    except OSError:
        return ""


#: matrices that a solver itself holds: the weighted sums at the best and the last weights, and for a while
#: the sum at the next weights and the matrix that a machine factors
HELD, AT_MOST = 2, 4

#: a solver's first look at one sample in four takes one more entry for every 16
FIRST_LOOK = 1.0 + 1.0 / 16.0

#: a cache of fewer than this share of the rows is not worth having
LEAST_CACHED = 0.1


@dataclass(frozen=True)
class Task:
    """What has to fit into memory: M kernels with a number of different bases on n samples.

    Attributes
    ----------
    n_kernels, n_bases, n_samples : int
    n_new : int, optional
        Matrices that are not in memory yet; all by default.
    given : bool
        Whether the matrices are in memory, even if not in the form needed, or in a store.
    mapped : bool
        Whether their triangles are in a file, in the form needed.
    combined : bool or int
        Samples on which the solver will ask for the weighted sum of all kernels, from an engine that computes
        pairs again: all, none, or at most this number.
    light : bool
        Whether computing the kernels takes no longer than reading them from memory.
    asked : str
        The engine that was asked for, or "auto". With "auto", engines state the most they may need, not the
        least.
    limit : int or None
        Bytes that the engine and the sums of a solver may take together.
    single : bool
        Whether entries may be stored in single precision.
    device : torch.device, optional
        Where the kernels are computed, and `limit` counts; with NumPy by default.
    host_sums, double : bool
        Whether weighted sums come back from the device, and whether it computes in double precision.
    """

    n_kernels: int
    n_bases: int
    n_samples: int
    n_new: int | None = None
    given: bool = False
    mapped: bool = False
    combined: bool | int = True
    light: bool = False
    asked: str = "auto"
    limit: int | None = None
    single: bool = True
    device: Any = None
    host_sums: bool = False
    double: bool = False

    @property
    def careful(self) -> bool:
        """Whether what an engine needs is an upper bound."""
        return self.asked == "auto"

    def sums(self, count: int, streamed: bool = False) -> int:
        """Bytes of the weighted sums a solver holds."""
        if streamed and self.combined is not True:
            return min(self.square, 8 * int(self.combined) ** 2)
        return count * self.square

    @property
    def held(self) -> int:
        """Bytes of the weighted sums beside an engine that keeps the kernels."""
        return self.sums(AT_MOST if self.careful else HELD)

    @property
    def square(self) -> int:
        """Bytes of one matrix."""
        return 8 * self.n_samples**2

    @property
    def work(self) -> int:
        """Bytes in use while tiles are computed."""
        return min(loop_threads() * WORK_BYTES, 4 * self.square)

    def kept(self, matrices: int) -> int:
        """Bytes of this many matrices, and of the part of them that a solver looks at first."""
        return int((FIRST_LOOK if self.careful else 1.0) * matrices * self.square)

    @property
    def dense(self) -> int:
        """Bytes of a fit with all matrices in memory."""
        return self.held + self.kept(self.n_kernels if self.n_new is None else self.n_new)

    @property
    def cache_bytes(self) -> int:
        """Bytes left for caches, at most for all rows of all bases."""
        everything = self.n_bases * self.square
        if self.limit is None:
            return everything
        sums = self.sums(AT_MOST, streamed=True)
        if self.combined is not True and self.combined:
            sums = max(sums, min(self.square, int(SUM_SHARE * self.limit)))
        return max(0, min(everything, self.limit - sums - self.work))

    def fits(self, needed: int) -> bool:
        """Whether this many bytes may be taken."""
        return self.limit is None or needed <= self.limit

    def __str__(self) -> str:
        return f"{self.n_kernels} kernels on {self.n_samples} samples"


@dataclass(frozen=True)
class Needs:
    """The bytes an engine needs for a task, and what it does with them; or why it cannot serve it.

    Attributes
    ----------
    bytes : int or None
        None where the engine cannot serve the task.
    what : str
        What it does, or why it cannot.
    options : dict
        Arguments of its constructor besides kernels and scales.
    """

    bytes: int | None
    what: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class EngineChoice:
    """An engine, and why it was chosen.

    Attributes
    ----------
    engine : type
    needs : Needs
    task : Task
    reason : str
        One sentence.
    """

    engine: type[Gram]
    needs: Needs
    task: Task
    reason: str

    @property
    def name(self) -> str:
        """Name of the engine."""
        return self.engine.name


def choose_engine(name: str, task: Task, memory_limit: int | None) -> EngineChoice:
    """The engine called `name`, or for "auto" the first of the registry that can serve the task and fits.

    Given matrices are never copied: they are used as dense matrices or read in blocks, and a whole store is
    mapped as it is.

    Parameters
    ----------
    name : "auto" or a name in `GRAMS`
    task : Task
    memory_limit : int or None
        Bytes; by default a share of the free memory, except for engines that are not `bounded` by it.

    Examples
    --------
    >>> choice = choose_engine("auto", Task(n_kernels=50, n_bases=1, n_samples=10_000), 2 * 10**9)
    >>> choice.name, choice.reason
    ('blocked', '50 kernels on 10000 samples would take 45.7 GB dense and memory_limit allows 2 GB: ...')
    """
    from . import GRAMS

    if name not in ("auto", *GRAMS):
        known = ", ".join(repr(engine) for engine in ("auto", *GRAMS))
        raise ValueError(f"gram={name!r} is not a Gram engine: pass one of {known}.")
    if task.device is not None and name == "dask":
        raise ValueError("gram='dask' computes on the workers of a cluster: leave device=None with it.")
    name = name if task.device is None else "torch"
    engines: list[Any] = list(GRAMS.values()) if name == "auto" else [GRAMS[name]]
    bounded = memory_limit is None and any(engine.bounded for engine in engines)
    task = replace(task, asked=name, limit=free_share() if bounded else memory_limit)
    allows = (
        f"{'free memory' if memory_limit is None else 'memory_limit'} allows {show_bytes(task.limit or 0)}"
    )
    able: list[tuple[type[Gram], int]] = []
    for engine in engines:
        needs = engine.needs(task)
        if needs.bytes is not None and task.fits(needs.bytes):
            return EngineChoice(engine, needs, task, _reason(engine, needs, task, allows))
        able += [] if needs.bytes is None else [(engine, needs.bytes)]
    if not able:
        raise ValueError(f"gram={name!r} cannot serve this fit: {engines[0].needs(task).what}")
    engine, least = able[-1]
    raise MemoryError(
        f"{task} need {show_bytes(least)} with gram={engine.name!r}, {allows}: "
        "raise memory_limit, or use fewer kernels or samples."
    )


def _reason(engine: type[Gram], needs: Needs, task: Task, allows: str) -> str:
    if task.device is not None:
        return f"device={str(task.device)!r} was asked for: {needs.what}."
    if task.asked != "auto":
        return f"gram={task.asked!r} was asked for: {needs.what}."
    if task.light:
        return f"{task} are computed as fast as they could be read: {needs.what}."
    fits = "take" if engine.name == "dense" else "would take"
    return f"{task} {fits} {show_bytes(task.dense)} dense and {allows}: {needs.what}."


def free_share() -> int | None:
    """Bytes that a fit may take when no limit is given."""
    free = free_memory()
    return None if free is None else int(SHARE * free)
