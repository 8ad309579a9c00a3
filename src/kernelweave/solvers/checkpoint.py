"""The state of a fit on disk, written as it goes and found after a kill; and what distinguishes fits."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from .. import _container
from .._container import CHECKPOINT, ContainerError, DamagedFileError, ForeignFileError, part_of, sweep
from .._typing import FloatArray
from .._warnings import warn
from ..gram import Gram

__all__ = ["Checkpoint", "Entry", "Keeper"]

#: largest share of a fit's time that writing may take
SHARE = 0.02

#: entries that say what the problem is
PROBLEM, KERNELS = "problem", "kernel values"

#: kernel rows that are compared, and the relative difference of values that counts as rounding
PROBE_ROWS, ROUNDING = 4, 1e-5


@dataclass(frozen=True)
class Entry:
    """Named arrays, and plain values that JSON can hold."""

    values: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


class Checkpoint:
    """The state of all models of a fit, in one file that is replaced as a whole.

    It is written after the first iteration, and then as often as possible while writing takes under 2 % of
    the time. Each state goes to a temporary file that replaces the last file in one step; the file before
    that stays as ``path + ".previous"``. No code is stored, and reading runs none.

    Parameters
    ----------
    path : str or path-like
        The file, in a folder that exists.
    problem : dict of str
        What is being solved, part by part; a file of another problem is refused.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "fit.checkpoint"
    >>> first = Checkpoint(path, {"loss": "Hinge()"})
    >>> first.keep("model", Entry({"step": 3}))
    >>> Checkpoint(path, {"loss": "Hinge()"}).found("model").values
    {'step': 3}
    """

    def __init__(self, path: Any, problem: dict[str, str]) -> None:
        self.path = _checked(path)
        self._lock = threading.Lock()
        self._begun, self._spent, self._cost, self._due = time.monotonic(), 0.0, 0.0, False
        self._rotate = True  # a damaged file does not push out the good one before it
        self._entries = self._read()
        self.resumed = bool(self._entries)
        before = self._entries[PROBLEM].values["parts"] if PROBLEM in self._entries else {}
        differ = [name for name in {**problem, **before} if problem.get(name) != before.get(name)]
        if self.resumed and differ:
            raise self.other(differ)
        self._entries[PROBLEM] = Entry({"parts": problem, "finished": False})

    @property
    def finished(self) -> bool:
        """Whether the fit that wrote last had converged."""
        return bool(self._entries[PROBLEM].values["finished"])

    def check_kernels(self, gram: Gram) -> None:
        """Refuse the file if its kernels had other values on the samples."""
        self.check_probe(probe(gram))

    def check_probe(self, values: FloatArray) -> None:
        """Refuse the file if what identifies its kernels differs."""
        before = self._entries.get(KERNELS)
        if before is not None and not same_probe(before.arrays["probe"], values):
            raise self.other(["kernel values"])
        self._entries[KERNELS] = Entry({}, {"probe": values})

    def found(self, key: str) -> Entry | None:
        """What was kept under a name, if anything."""
        return self._entries.get(key)

    def keep(self, key: str, entry: Entry, instead_of: str | None = None) -> None:
        """Keep an entry, replacing all whose names begin with `instead_of`; it is written when it is time."""
        with self._lock:
            if instead_of is not None:
                self._entries = {k: e for k, e in self._entries.items() if not k.startswith(instead_of)}
            self._entries[key] = entry
            self._due = True
            if self._spent + self._cost <= SHARE * (time.monotonic() - self._begun):
                self._write()

    def flush(self) -> None:
        """Write what has not been written yet."""
        with self._lock:
            if self._due:
                self._write()

    def finish(self, converged: bool) -> None:
        """Write the final state, in a way that survives a power failure."""
        with self._lock:
            self._entries[PROBLEM].values["finished"] = converged
            self._write()
            with suppress(OSError):
                _sync_folder(self.path.parent)

    # -- the file -----------------------------------------------------------------------------

    def _write(self) -> None:
        """Put the present state on disk; a full disk does not end the fit."""
        begin = time.monotonic()
        try:
            write(self.path, self._entries, keep=self._rotate)
            self._rotate, self._due = True, False
        except OSError as error:
            warn(f"checkpoint {str(self.path)!r} could not be written ({error}).")
        self._cost = time.monotonic() - begin
        self._spent += self._cost

    def _read(self) -> dict[str, Entry]:
        """The newest undamaged file; nothing if there is none."""
        if not self.path.exists():
            return {}
        try:
            return read(self.path)
        except ContainerError as error:
            damaged, self._rotate = error, False
        try:
            entries = read(previous(self.path))
        except (OSError, ContainerError):
            if isinstance(damaged, ForeignFileError):
                raise ValueError(
                    f"checkpoint={str(self.path)!r} cannot be used, {damaged}: pass another path."
                ) from damaged
            entries, what = {}, ", and there is no older one: the fit starts again."
        else:
            what = ": the fit resumes the one before it."
        warn(f"checkpoint {str(self.path)!r} is damaged ({damaged}){what}")
        return entries

    def other(self, differ: list[str]) -> ValueError:
        """The error to raise if parts of the problem differ from the parts in the file."""
        return ValueError(
            f"checkpoint={str(self.path)!r} is of another problem ({', '.join(differ)} differ): delete it to "
            "start again, or pass another path; every fit needs its own."
        )


class Keeper:
    """Where the solver of one model keeps its iterates, and finds those of an earlier run.

    Parameters
    ----------
    checkpoint : Checkpoint, optional
        None keeps nothing.
    name : str, default=""
        Name of the model.
    """

    def __init__(self, checkpoint: Checkpoint | None = None, name: str = "") -> None:
        self.checkpoint, self.name = checkpoint, name

    def found(self, phase: str) -> Entry | None:
        """What an earlier run left in a phase."""
        return None if self.checkpoint is None else self.checkpoint.found(self._key(phase))

    def keep(self, phase: str, entry: Entry) -> None:
        """Keep an entry; one of the whole problem, "main", replaces those of first looks at parts."""
        if self.checkpoint is not None:
            self.checkpoint.keep(self._key(phase), entry, self._key("") if phase == "main" else None)

    def flush(self) -> None:
        """Write what has not been written yet."""
        if self.checkpoint is not None:
            self.checkpoint.flush()

    def _key(self, phase: str) -> str:
        return f"{self.name}/{phase}"


def _checked(path: Any) -> Path:
    """The path of a file that can be written."""
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"checkpoint={path!r} must be a path, or None.")
    place = Path(os.fsdecode(path))
    try:
        _try_to_write(place)
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(
            f"checkpoint={str(place)!r} cannot be written ({reason}): pass the path of a file in a folder "
            "that exists and that you may write to."
        ) from error
    older = previous(place)
    if _is_foreign(older):
        raise ValueError(
            f"checkpoint={str(place)!r} keeps its last but one state as {older.name!r}, and a file "
            "of that name exists that is not a kernelweave checkpoint: pass another path."
        )
    return place


def _try_to_write(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(None, "it is a folder")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(None, "it is read-only")
    sweep(path)
    trial = part_of(path)
    trial.touch()
    trial.unlink()


# -- the file ---------------------------------------------------------------------------------


def write(path: Path, entries: dict[str, Entry], keep: bool = False) -> None:
    """Replace the file at `path` by these entries in one step; keep the earlier file if told to."""
    arrays = [array for entry in entries.values() for array in entry.arrays.values()]
    numbers = iter(range(len(arrays)))
    content = {
        key: {"values": entry.values, "arrays": {name: next(numbers) for name in entry.arrays}}
        for key, entry in entries.items()
    }
    before = (lambda: _keep(path)) if keep and path.exists() else None
    _container.write(path, CHECKPOINT, content, [np.asarray(array) for array in arrays], before)


def read(path: Path) -> dict[str, Entry]:
    """The entries of the file at `path`; `DamagedFileError` unless every byte is as it was written."""
    with _container.opened(path) as file:
        head, arrays = _container.read(file, CHECKPOINT)
    return entries_of(head.content, arrays)


def entries_of(content: Any, arrays: list[NDArray[Any]]) -> dict[str, Entry]:
    """The entries that a file describes."""
    try:
        return {
            str(key): Entry(
                dict(item["values"]), {name: arrays[number] for name, number in item["arrays"].items()}
            )
            for key, item in content.items()
        }
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise DamagedFileError(f"its contents make no sense ({error})") from error


def previous(path: Path) -> Path:
    """Where the file before the newest one is kept."""
    return path.with_name(path.name + ".previous")


def _is_foreign(path: Path) -> bool:
    """Whether there is a file at `path` that does not begin like a checkpoint, whole or cut short."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        return not _container.begins_like_ours(file.read(8))


def _keep(path: Path) -> None:
    """A second name for the file at `path`, or a copy where the file system has no second names."""
    second = part_of(path)
    try:
        try:
            os.link(path, second)
        except OSError:
            shutil.copyfile(path, second)
        os.replace(second, previous(path))
    finally:
        second.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make renamed files survive a power failure, where folders can be opened."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# -- what tells one fit from another ------------------------------------------------------------


def describe(value: Any) -> str:
    """A text that is the same in every process: class and parameters of parts, digest of arrays.

    >>> from kernelweave.regularizers import LpNorm
    >>> describe(LpNorm(p=2))
    "LpNorm(costs=None, form='constraint', p=2)"
    """
    if isinstance(value, BaseEstimator):
        parameters = value.get_params(deep=False).items()
        listed = ", ".join(f"{name}={describe(part)}" for name, part in sorted(parameters))
        return f"{type(value).__name__}({listed})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(describe, value))}]"
    if isinstance(value, np.ndarray) and value.dtype != object:
        return digest(value)
    text = repr(value)
    # an address differs from process to process
    return text if " at 0x" not in text else getattr(value, "__qualname__", type(value).__qualname__)


def digest(*arrays: Any) -> str:
    """A checksum of types, shapes and values."""
    total = hashlib.sha256()
    for array in arrays:
        array = np.ascontiguousarray(array)
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()[:32]


def probe(gram: Gram) -> FloatArray:
    """One number per sample, which changes with its data and with the kernels; shape (n,).

    Some rows and the diagonal of sum_m d_m K_m at uneven weights d, so that kernels cannot be exchanged
    unnoticed. This costs a few rows of every kernel.
    """
    passes = gram.n_passes
    weights = 1.0 + np.modf(np.arange(gram.n_kernels) * 0.6180339887498949)[0]
    rows = np.unique(np.linspace(0, gram.n_samples - 1, PROBE_ROWS).astype(int))
    mix = np.sqrt(1.0 + np.arange(len(rows)))
    values = mix @ gram.rows(rows, weights) + np.pi * gram.diag(weights)
    gram.n_passes = passes  # the history shows what solving costs
    return np.asarray(values, dtype=np.float64)


def same_probe(first: FloatArray, second: FloatArray) -> bool:
    """Whether two probes agree up to rounding, which differs from one Gram engine to another."""
    if first.shape != second.shape:
        return False
    largest = float(max(np.abs(first).max(initial=0.0), np.abs(second).max(initial=0.0)))
    return bool((np.abs(first - second) <= ROUNDING * largest).all())
