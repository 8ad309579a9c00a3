"""A small file of named arrays and plain values: checksummed, replaced as a whole, safe to read."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._part_files import part_of, replacing

#: how every file begins, and how those of this version go on
FAMILY = b"kernelweave checkpoint "
MAGIC = FAMILY + b"1\n"

#: element types of arrays: little-endian whatever the machine
TYPES = ("<f8", "<i8")


class DamagedFileError(ValueError):
    """The file is not what was written."""


class ForeignFileError(ValueError):
    """The file was never one of these."""


@dataclass(frozen=True)
class Entry:
    """Named arrays, and plain values that JSON can hold."""

    values: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


def pack(entries: dict[str, Entry]) -> bytes:
    """The file: magic line, SHA-256 of the rest, length of the JSON header, header, arrays one by one.

    >>> unpack(pack({"a": Entry({"k": 1}, {"x": np.arange(2.0)})}))["a"].arrays["x"]
    array([0., 1.])
    """
    header, parts = {}, []
    for key, entry in entries.items():
        arrays = {name: _portable(array) for name, array in entry.arrays.items()}
        header[key] = {"values": entry.values, "arrays": [_described(*item) for item in arrays.items()]}
        parts += [array.tobytes() for array in arrays.values()]
    text = json.dumps(header).encode()
    body = b"".join([len(text).to_bytes(8, "little"), text, *parts])
    return MAGIC + hashlib.sha256(body).digest() + body


def unpack(data: bytes) -> dict[str, Entry]:
    """The entries of a file; `DamagedFileError` unless every byte is as it was written."""
    if not data.startswith(MAGIC):
        raise _not_ours(data)
    begin = len(MAGIC) + 32
    body = data[begin:]
    if len(data) < begin + 8 or hashlib.sha256(body).digest() != data[len(MAGIC) : begin]:
        raise DamagedFileError("its checksum is wrong")
    try:
        end = 8 + int.from_bytes(body[:8], "little")
        return dict(_entries(json.loads(body[8:end]), memoryview(body)[end:]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DamagedFileError(f"its contents make no sense ({error})") from error


def _entries(header: Any, rest: memoryview) -> Iterator[tuple[str, Entry]]:
    for key, item in header.items():
        arrays = {}
        for kind in item["arrays"]:
            array, rest = _array(kind, rest)
            arrays[str(kind["name"])] = array
        yield str(key), Entry(dict(item["values"]), arrays)
    if len(rest):
        raise ValueError("bytes are left over")


def _array(kind: dict[str, Any], rest: memoryview) -> tuple[NDArray[Any], memoryview]:
    """The next array, copied, and what comes after it; the shape never asks for more than there is."""
    shape = tuple(int(size) for size in kind["shape"])
    if kind["dtype"] not in TYPES or min(shape, default=0) < 0:
        raise ValueError(f"an array of type {kind['dtype']!r} and shape {shape}")
    size = 8 * prod(shape)
    if size > len(rest):
        raise ValueError("an array is longer than the file")
    return np.frombuffer(rest[:size], kind["dtype"]).reshape(shape).copy(), rest[size:]


def _portable(array: NDArray[Any]) -> NDArray[Any]:
    """As one of the types a file can hold."""
    return np.ascontiguousarray(array, TYPES[np.issubdtype(array.dtype, np.integer)])


def _described(name: str, array: NDArray[Any]) -> dict[str, Any]:
    return {"name": name, "dtype": array.dtype.str, "shape": list(array.shape)}


def _not_ours(data: bytes) -> ValueError:
    if len(data) < len(MAGIC) and MAGIC.startswith(data):
        return DamagedFileError("it ends after a few bytes")
    if data.startswith(FAMILY):
        return ForeignFileError("was written by another version of kernelweave")
    return ForeignFileError("is not a checkpoint of kernelweave")


def read(path: Path) -> dict[str, Entry]:
    """The entries of the file at `path`."""
    return unpack(path.read_bytes())


def previous(path: Path) -> Path:
    """Where the file before the newest one is kept."""
    return path.with_name(path.name + ".previous")


def is_foreign(path: Path) -> bool:
    """Whether there is a file at `path` that does not begin like one of these, whole or cut short."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        start = file.read(len(FAMILY))
    return not FAMILY.startswith(start)


def replace(path: Path, data: bytes, keep: bool) -> None:
    """Put a file in place of `path` at once, and keep the one before it when told to.

    A kill at any moment leaves the old file or the new one at `path`, never a part of one.
    """
    with replacing(path) as file:
        file.write(data)
        if keep and path.exists():
            file.flush()
            os.fsync(file.fileno())
            _keep(path)


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


def sync_folder(folder: Path) -> None:
    """Make renamed files survive a power failure, where folders can be opened."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
