"""Triangles in files that are mapped into memory: room on disk, opening, removal."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from .memory import show_bytes

#: an array that lies in a file
Mapped = np.memmap[Any, Any]

#: whether a file that is mapped may be removed
NAMELESS = os.name == "posix"

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


def temporary_triangles(shape: tuple[int, int], dtype: Any, remedy: str) -> Mapped:
    """Room for triangles in a file in the folder for temporary files, gone with the last array on it.

    Where the system can, the file loses its name at once: even a process that is killed leaves nothing.
    """
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    check_disk(tempfile.gettempdir(), size, remedy)
    descriptor, path = tempfile.mkstemp(prefix="kernelweave-", suffix=".gram")
    try:
        try:
            reserve(descriptor, size)
        finally:
            os.close(descriptor)
        found = map_triangles(path, shape, dtype, mode="r+")
    except BaseException:
        _remove(path, os.getpid())
        raise
    if NAMELESS:
        _remove(path, os.getpid())
    else:  # views keep the map, not the array, alive
        weakref.finalize(found._mmap, _remove, path, os.getpid())  # type: ignore[attr-defined]
    return found


def map_triangles(
    path: str | os.PathLike[str], shape: tuple[int, int], dtype: Any, offset: int = 0, mode: Any = "r"
) -> Mapped:
    """Triangles in a file as an array; the system is told that they are read in order."""
    found: Mapped = np.memmap(Path(path), dtype=dtype, mode=mode, offset=offset, shape=shape)
    if hasattr(mmap, "MADV_SEQUENTIAL"):
        found._mmap.madvise(mmap.MADV_SEQUENTIAL)  # type: ignore[attr-defined]
    return found


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # a process that was forked must not remove what it shares
        with contextlib.suppress(OSError):
            os.unlink(path)
