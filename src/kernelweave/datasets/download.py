"""Downloading a data set, checking it, and keeping it in the cache."""

from __future__ import annotations

from pathlib import Path

from .catalogue import Dataset
from .locate import DataNotFoundError, cache_folder, folders


def fetch(record: Dataset) -> Path:
    """Download a data set to the cache and return its file."""
    raise DataNotFoundError(missing(record))


def missing(record: Dataset, reason: str = "") -> str:
    """The one message about a file that is not there: which it is, and where to put it."""
    places = " or ".join(str(folder) for folder in folders())
    because = f" and cannot be downloaded ({reason})" if reason else ""
    return (
        f"{record.name}.npz is not on this machine{because}: put it into {places}, or set "
        "KERNELWEAVE_DATA to the folder that holds it."
    )


__all__ = ["cache_folder", "fetch", "missing"]
