"""Files that take their places whole: written beside them first, and nothing is left behind.

A file in the making is called ``.NAME.xxxxxxxx.kernelweave.part``, which no file of a user's is, and is
locked for as long as its process lives: `sweep` removes those that a killed process has left, and no others.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".kernelweave.part"


def part_of(path: Path) -> Path:
    """A name for what is to become `path`, in the same folder.

    >>> part_of(Path("model.kw")).name  # doctest: +ELLIPSIS
    '.model.kw....kernelweave.part'
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{SUFFIX}")


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` at the end; `path` stays as it was if anything fails.

    A full disk, an error and Ctrl-C leave nothing beside it; a link stays a link.
    """
    target = Path(os.path.realpath(path))
    part, file = _open(target)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def sweep(path: str | os.PathLike[str]) -> None:
    """Remove what killed processes left of files that were to become `path`."""
    target = Path(os.path.realpath(path))
    ours = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}{re.escape(SUFFIX)}")
    with contextlib.suppress(OSError):
        for entry in os.scandir(target.parent):
            if ours.fullmatch(entry.name):
                _remove_if_free(Path(entry.path))


def _open(target: Path) -> tuple[Path, Any]:
    """A new file, locked; a sweep may remove it before it is, and then there is another."""
    while True:
        part = part_of(target)
        file = open(part, "xb")  # noqa: SIM115  # closed by `replacing`
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
        if part.exists():
            return part, file
        file.close()


def _remove_if_free(part: Path) -> None:
    with contextlib.suppress(OSError), open(part, "rb") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails where its process is alive
        part.unlink()
