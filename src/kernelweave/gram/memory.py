"""Bytes: how many there are, and how a user writes them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

#: part of the memory that is free which a fit may take when nothing else is said
SHARE = 0.8

#: part of the memory of an engine that computes pairs anew for a weighted sum on some of the samples
SUM_SHARE = 0.4

#: where a container finds its own limit, its use, and file pages it can give back: new and old control groups
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
    """Bytes in the largest unit that shows them.

    Examples
    --------
    >>> show_bytes(1_440_000_000)
    '1.44 GB'
    """
    power = next((power for power in (4, 3, 2, 1) if count >= 1000**power), 0)
    return f"{count / 1000**power:.3g} {('B', 'KB', 'MB', 'GB', 'TB')[power]}"


def free_memory() -> int | None:
    """Bytes that can still be taken, within the limits of a container; None where nothing tells.

    Examples
    --------
    >>> free_memory() is None or free_memory() > 0
    True
    """
    known = [size for size in (_system_memory(), *(_group_memory(*paths) for paths in GROUPS)) if size]
    return min(known) if known else None


def _system_memory() -> int | None:
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return None


def _group_memory(folder: str, limit: str, used: str, spare: str) -> int | None:
    """What a control group has left of its limit."""
    bound, taken = _read(f"{folder}/{limit}").strip(), _read(f"{folder}/{used}").strip()
    if not (bound.isdigit() and taken.isdigit()):
        return None
    pairs = (line.split() for line in _read(f"{folder}/memory.stat").splitlines())
    back = sum(int(size) for name, size in pairs if name == spare)
    return max(int(bound) - int(taken) + back, 1)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
