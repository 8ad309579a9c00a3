"""Where the files of the data sets are; downloading one, checking it, and keeping it in the cache."""

from __future__ import annotations

import hashlib
import os
import sys
import urllib.request
from pathlib import Path
from urllib.error import URLError

import numpy as np

from .catalogue import Dataset, info

TIMEOUT = 60  # seconds without an answer
Arrays = dict[str, np.ndarray]


class ChecksumError(ValueError):
    """What was downloaded, or lies in the cache, is not the data set the experiments were made with.

    Examples
    --------
    >>> issubclass(ChecksumError, ValueError)
    True
    """


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
    root = Path(__file__).resolve().parents[4]
    beside = [root.parent / "shared" / "data"] if (root / "pyproject.toml").is_file() else []
    return [*([Path(named)] if named else []), *beside, cache_folder()]


def cache_folder() -> Path:
    """``KERNELWEAVE_CACHE``, or the place the system keeps caches of applications in."""
    if named := os.environ.get("KERNELWEAVE_CACHE"):
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "kernelweave"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "kernelweave"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kernelweave"


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


def fetch(record: Dataset) -> Path:
    """Download a data set to the cache, whole or not at all, and return its file."""
    if record.reader is None:
        raise DataNotFoundError(_missing(record, "no public address is known"))
    place = f"OpenML data set {record.openml}" if record.openml is not None else ", ".join(record.urls)
    origin = f"{record.name} from {place}"
    try:
        online = record.openml is not None
        arrays = record.reader(_from_openml(record.openml) if online else [_read(url) for url in record.urls])
    except (URLError, OSError, TimeoutError) as error:
        raise DataNotFoundError(_missing(record, f"{type(error).__name__}: {error}")) from error
    except (ValueError, KeyError, IndexError) as error:
        raise ChecksumError(f"{origin} is not what it was: {error}. {_remedy(record)}") from error
    check(record, arrays, origin)
    path = cache_folder() / f"{record.name}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    with beside.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return beside.replace(path)


def _missing(record: Dataset, reason: str) -> str:
    """The one message about a file that is not there: which it is, and where to put it."""
    places = " or ".join(str(folder) for folder in folders())
    return (
        f"{record.name}.npz is not on this machine and cannot be downloaded ({reason}): put it into "
        f"{places}, or set KERNELWEAVE_DATA to the folder that holds it."
    )


def _remedy(record: Dataset) -> str:
    return f"Try again, or put {record.name}.npz into a folder and set KERNELWEAVE_DATA to it."


def _read(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": "kernelweave"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        content: bytes = answer.read()
        return content


def _from_openml(data_id: int | None) -> list[np.ndarray]:
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


#: arrays that are samples or targets
_CONTENT = {"X", "y", "Y", "cube", "gt", "seq_bytes", "offsets", "y_test"}
