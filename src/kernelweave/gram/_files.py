"""Triangles in files that are mapped into memory: room on disk, opening."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from .memory import show_bytes

#: an array that lies in a file
Mapped = np.memmap[Any, Any]

#: a file system that cannot reserve room says one of these
NOT_KNOWN = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS)


def check_disk(folder: str | os.PathLike[str], needed: int, remedy: str) -> None:
    """Raise unless a folder has room for so many bytes."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            errno.ENOSPC,
            f"kernel matrices need {needed} bytes ({show_bytes(needed)}) of disk, and {os.fspath(folder)!r} "
            f"has {show_bytes(free)} left: {remedy}.",
        )


def reserve(descriptor: int, size: int) -> None:
    """Give a file its size, and as far as the system can, the room for it.

    A map of a file with holes ends the process when the disk is full.
    """
    os.truncate(descriptor, size)
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in NOT_KNOWN:
            raise


def map_triangles(
    path: str | os.PathLike[str], shape: tuple[int, int], dtype: Any, offset: int = 0, mode: Any = "r"
) -> Mapped:
    """Triangles in a file as an array; the system is told that they are read in order."""
    found: Mapped = np.memmap(Path(path), dtype=dtype, mode=mode, offset=offset, shape=shape)
    if hasattr(mmap, "MADV_SEQUENTIAL"):
        found._mmap.madvise(mmap.MADV_SEQUENTIAL)  # type: ignore[attr-defined]
    return found
