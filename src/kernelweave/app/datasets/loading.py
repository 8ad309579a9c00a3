"""From a file of arrays to samples and targets."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .catalogue import Dataset, info
from .files import cache_folder, check, fetch, find

Arrays = dict[str, np.ndarray]


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
        check(record, arrays, f"{path} (delete it to download it anew)")
    return arrays


def _read(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def _parts(record: Dataset, arrays: Arrays, target: str | None) -> dict[str, Any]:
    if target is not None and "Y" not in arrays:
        raise ValueError(f"target={target!r}: {record.name} has one target only; leave the argument out.")
    if "seq_bytes" in arrays:
        return _sequences(arrays)
    if "cube" in arrays:
        return _image(arrays)
    parts = _single(record, arrays) if "X" in arrays else _views(arrays)
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


def _sequences(arrays: Arrays) -> dict[str, Any]:
    text = arrays["seq_bytes"].tobytes().decode("ascii")
    ends = arrays["offsets"]
    sequences = [text[a:b] for a, b in pairwise(ends)]
    rest = {key: value for key, value in arrays.items() if key not in ("seq_bytes", "offsets")}
    return {"X": np.array(sequences, dtype=object), "sequences": sequences, **rest}


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
