"""Where the files of the data sets are."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .catalogue import info


class DataNotFoundError(FileNotFoundError):
    """A data set is neither on this machine nor could it be downloaded; the message names the file.

    Examples
    --------
    >>> issubclass(DataNotFoundError, FileNotFoundError)
    True
    """


def folders() -> list[Path]:
    """The folders looked in, in this order: the user's own, the one beside a checkout, the cache."""
    named = os.environ.get("KERNELWEAVE_DATA")
    root = Path(__file__).resolve().parents[3]
    beside = [root.parent / "shared" / "data"] if (root / "pyproject.toml").is_file() else []
    return [*([Path(named)] if named else []), *beside, cache_folder()]


def cache_folder() -> Path:
    """``KERNELWEAVE_CACHE``, or the place the system keeps caches of applications in."""
    named = os.environ.get("KERNELWEAVE_CACHE")
    if named:
        return Path(named)
    return _system_cache() / "kernelweave"


def _system_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def find(name: str) -> Path | None:
    """The file of a data set on this machine, or None if there is none.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    path : Path or None
        The first ``NAME.npz`` in ``KERNELWEAVE_DATA``, beside a checkout, in the cache.

    Examples
    --------
    >>> from kernelweave.datasets import find
    >>> path = find("sonar")
    >>> path is None or path.name == "sonar.npz"
    True
    """
    file = f"{info(name).name}.npz"
    return next((folder / file for folder in folders() if (folder / file).is_file()), None)
