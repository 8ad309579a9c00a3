"""Where the files of the data sets are, downloading and checking them, and what they hold."""

from __future__ import annotations

import hashlib
import os
import sys
import urllib.request
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
from sklearn.utils import Bunch

from ..._container import replacing
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
    """A data set is not on this machine and could not be downloaded; the message names the file.

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
    """``KERNELWEAVE_CACHE``, or the place where the system keeps caches of applications."""
    if named := os.environ.get("KERNELWEAVE_CACHE"):
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "kernelweave"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "kernelweave"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kernelweave"


def find(name: str) -> Path | None:
    """The file of a data set on this machine, or None if it is not here.

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
        number, urls = record.openml, record.urls
        arrays = record.reader([_download(url) for url in urls] if number is None else _from_openml(number))
    except (URLError, OSError, TimeoutError) as error:
        raise DataNotFoundError(_missing(record, f"{type(error).__name__}: {error}")) from error
    except (ValueError, KeyError, IndexError) as error:
        raise ChecksumError(f"{origin} is not what it was: {error}. {_remedy(record)}") from error
    check(record, arrays, origin)
    path = cache_folder() / f"{record.name}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return path


def _missing(record: Dataset, reason: str) -> str:
    """The one message about a file that is not there: which it is, and where to put it."""
    places = " or ".join(str(folder) for folder in folders())
    return (
        f"{record.name}.npz is not on this machine and cannot be downloaded ({reason}): put it into "
        f"{places}, or set KERNELWEAVE_DATA to the folder that holds it."
    )


def _remedy(record: Dataset) -> str:
    return f"Try again, or put {record.name}.npz into a folder and set KERNELWEAVE_DATA to it."


def _download(url: str) -> bytes:
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


#: arrays that are samples or targets
_CONTENT = {"X", "y", "Y", "cube", "gt", "seq_bytes", "offsets", "y_test"}


# -- from a file of arrays to samples and targets -----------------------------------------------------


def load(name: str, *, target: str | None = None, return_X_y: bool = False) -> Any:
    """Load a data set, downloading it if it is not on this machine.

    Parameters
    ----------
    name : str
        One of `names()`.
    target : str, optional
        For sets with several targets (spectra), the one to predict; samples without it are left out.
    return_X_y : bool, default=False
        Return (X, y) only.

    Returns
    -------
    data : Bunch
        ``X`` (for several views: their columns side by side), ``y``, and where they exist ``views`` (name ->
        samples), ``columns`` (name -> slice of X), ``sequences``, ``classes``, ``feature_names``,
        ``wavelengths``, ``cube``, ``gt`` and ``positions``, ``X_test`` and ``y_test``; ``DESCR`` and
        ``citation`` say what it is and whom to thank.

    Raises
    ------
    DataNotFoundError
        If there is neither a file nor a network; the message names the file.

    Examples
    --------
    >>> from kernelweave.datasets import find, load
    >>> X, y = load("sonar", return_X_y=True) if find("sonar") else ([0] * 208, None)
    >>> len(X)
    208
    """
    record = info(name)
    data = Bunch(**_parts(record, load_arrays(name), target))
    data.update(name=name, DESCR=record.description, citation=record.citation)
    return (data.X, data.y) if return_X_y else data


def load_arrays(name: str) -> Arrays:
    """The arrays of a data set as they are stored.

    Parameters
    ----------
    name : str
        One of `names()`.

    Examples
    --------
    >>> from kernelweave.datasets import find, load_arrays
    >>> sorted(load_arrays("sonar")) if find("sonar") else ["X", "classes", "y"]
    ['X', 'classes', 'y']
    """
    record, path = info(name), find(name)
    if path is None:
        return _read(fetch(record))
    arrays = _read(path)
    if path.parent == cache_folder() and record.sha256:
        check(record, arrays, f"{path} (delete it to download it again)")
    return arrays


def _read(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def _parts(record: Dataset, arrays: Arrays, target: str | None) -> dict[str, Any]:
    if target is not None and "Y" not in arrays:
        raise ValueError(f"target={target!r}: {record.name} has one target only; leave the argument out.")
    if "seq_bytes" in arrays:
        return _sequences(arrays)
    if "seq_train" in arrays:
        return _lines(arrays)
    if "cube" in arrays:
        return _image(arrays)
    parts = _single(record, arrays) if "X" in arrays else _views(arrays)
    if "event" in arrays:
        return _with_times(parts)
    return _with_target(record, parts, arrays, target) if "Y" in arrays else parts


def _single(record: Dataset, arrays: Arrays) -> dict[str, Any]:
    """Samples in real numbers, unless they are too many for that."""
    parts: dict[str, Any] = {_RENAMED.get(key, key): value for key, value in arrays.items() if key != "Y"}
    if record.real:
        parts["X"] = parts["X"].astype(np.float64)
    return parts


_RENAMED = {"wavelength_nm": "wavelengths"}


def _views(arrays: Arrays) -> dict[str, Any]:
    found = [key.removeprefix("X_") for key in arrays if key.startswith("X_") and "test" not in key]
    views = {view: arrays[f"X_{view}"].astype(np.float64) for view in found}
    used = {"view_names", "Y", *(f"X_{view}" for view in views)}
    rest = {_RENAMED.get(key, key): value for key, value in arrays.items() if key not in used}
    ends = np.cumsum([0, *(X.shape[1] for X in views.values())]).tolist()
    columns = dict(zip(views, map(slice, ends, ends[1:]), strict=False))
    return {"X": np.hstack(list(views.values())), "views": views, "columns": columns, **rest}


def _with_target(
    record: Dataset, parts: dict[str, Any], arrays: Arrays, target: str | None
) -> dict[str, Any]:
    """One column of Y as y, without the samples it was not measured on."""
    known = [str(name) for name in arrays["property_names"]]
    chosen = record.target if target is None else target
    if chosen not in known:
        raise ValueError(f"target={target!r}: {record.name} has {', '.join(known)}.")
    y = arrays["Y"][:, known.index(chosen)].astype(np.float64)
    kept = np.isfinite(y)
    measured: dict[str, Any] = {
        key: value[kept]
        for key, value in parts.items()
        if isinstance(value, np.ndarray) and value.ndim > 0 and len(value) == len(y)
    }
    if "views" in parts:
        measured["views"] = {view: X[kept] for view, X in parts["views"].items()}
    return {**parts, **measured, "y": y[kept], "target": chosen, "targets": known}


def _with_times(parts: dict[str, Any]) -> dict[str, Any]:
    """Events and times as structured arrays, `y` and where there is a test set `y_test`."""
    found = dict(parts)
    for end in ("", "_test"):
        event, time = (found.pop(f"{name}{end}", None) for name in ("event", "time"))
        time = found.pop("months", None) if time is None else time
        if event is not None:
            y = np.empty(len(event), dtype=[("event", bool), ("time", float)])
            y["event"], y["time"] = event > 0, time
            found[f"y{end}"] = y
    return found


def _sequences(arrays: Arrays) -> dict[str, Any]:
    text = arrays["seq_bytes"].tobytes().decode("ascii")
    ends = arrays["offsets"]
    sequences = [text[a:b] for a, b in pairwise(ends)]
    rest = {key: value for key, value in arrays.items() if key not in ("seq_bytes", "offsets")}
    return {"X": np.array(sequences, dtype=object), "sequences": sequences, **rest}


def _lines(arrays: Arrays) -> dict[str, Any]:
    """Sequences in lines of a text, to train and to test."""
    train, test = (arrays[f"seq_{part}"].tobytes().decode("ascii").split() for part in ("train", "test"))
    return {
        "X": np.array(train, dtype=object),
        "y": arrays["y_train"],
        "X_test": np.array(test, dtype=object),
        "y_test": arrays["y_test"],
    }


def _image(arrays: Arrays) -> dict[str, Any]:
    """Labelled pixels as samples, their classes from 0; `positions` are their rows and columns."""
    labelled = arrays["gt"] > 0
    return {
        "X": arrays["cube"][labelled].astype(np.float64),
        "y": arrays["gt"][labelled].astype(int) - 1,
        "positions": np.argwhere(labelled),
        "cube": arrays["cube"],
        "gt": arrays["gt"],
        "classes": arrays["classes"][1:],
    }
