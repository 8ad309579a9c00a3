"""Downloading a data set, checking it, and keeping it in the cache."""

from __future__ import annotations

import hashlib
import os
import urllib.request
from pathlib import Path
from urllib.error import URLError

import numpy as np

from . import readers
from .catalogue import Dataset
from .locate import DataNotFoundError, cache_folder, folders

TIMEOUT = 60  # seconds without an answer
Arrays = dict[str, np.ndarray]


class ChecksumError(ValueError):
    """What was downloaded, or lies in the cache, is not the data set the experiments were made with.

    Examples
    --------
    >>> issubclass(ChecksumError, ValueError)
    True
    """


def fetch(record: Dataset) -> Path:
    """Download a data set to the cache and return its file."""
    try:
        arrays = getattr(readers, record.reader)(_contents(record)) if record.reader else None
    except (URLError, OSError, TimeoutError) as error:
        raise DataNotFoundError(missing(record, f"{type(error).__name__}: {error}")) from error
    except (ValueError, KeyError, IndexError) as error:
        raise ChecksumError(f"{_origin(record)} is not what it was: {error}. {_remedy(record)}") from error
    if arrays is None:
        raise DataNotFoundError(missing(record, "no public address is known"))
    check(record, arrays, _origin(record))
    return _keep(record, arrays)


def _contents(record: Dataset) -> list[bytes] | list[np.ndarray]:
    """Files of the original addresses, or tables of OpenML."""
    if record.openml is not None:
        return _from_openml(record.openml)
    return [_read(url) for url in record.urls]


def _read(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": "kernelweave"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        content: bytes = answer.read()
        return content


def _from_openml(data_id: int) -> list[np.ndarray]:
    """All columns as one table of numbers or text, and their names."""
    from sklearn.datasets import fetch_openml

    found = fetch_openml(data_id=data_id, as_frame=False, parser="liac-arff", target_column=None, cache=False)
    return [found.data, np.array(found.feature_names)]


def check(record: Dataset, arrays: Arrays, origin: str) -> None:
    """Compare with the SHA-256 that is on record."""
    found = digest(arrays)
    if found != record.sha256:
        raise ChecksumError(
            f"{origin} has SHA-256 {found[:16]}... where {record.sha256[:16]}... is expected: it is damaged "
            f"or has changed. {_remedy(record)}"
        )


def digest(arrays: Arrays) -> str:
    """SHA-256 of samples and targets in single precision, whatever they are stored in.

    Examples
    --------
    >>> import numpy as np
    >>> one = {"X": np.eye(2), "y": np.array([0, 1])}
    >>> digest(one) == digest(
    ...     {"y": np.array([0.0, 1.0]), "X": np.eye(2, dtype=np.int8), "classes": np.array(["a"])}
    ... )
    True
    """
    total = hashlib.sha256()
    for name in sorted(arrays):
        if name in _CONTENT or name.startswith("X_"):
            values = np.nan_to_num(arrays[name].astype(np.float32), nan=-9999.0)
            total.update(f"{name}{values.shape}".encode())
            total.update(np.ascontiguousarray(values + np.float32(0.0)).tobytes())  # -0 is 0
    return total.hexdigest()


_CONTENT = {"X", "y", "Y", "cube", "gt", "seq_bytes", "offsets", "y_test"}


def _origin(record: Dataset) -> str:
    place = f"OpenML data set {record.openml}" if record.openml is not None else ", ".join(record.urls)
    return f"{record.name} from {place}"


def _remedy(record: Dataset) -> str:
    return f"Try again, or put {record.name}.npz into a folder and set KERNELWEAVE_DATA to it."


def _keep(record: Dataset, arrays: Arrays) -> Path:
    """Store in the cache, whole or not at all."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    path, beside = folder / f"{record.name}.npz", folder / f"{record.name}.{os.getpid()}.tmp"
    with beside.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    os.replace(beside, path)
    return path


def missing(record: Dataset, reason: str) -> str:
    """The one message about a file that is not there: which it is, and where to put it."""
    places = " or ".join(str(folder) for folder in folders())
    return (
        f"{record.name}.npz is not on this machine and cannot be downloaded ({reason}): put it into "
        f"{places}, or set KERNELWEAVE_DATA to the folder that holds it."
    )
