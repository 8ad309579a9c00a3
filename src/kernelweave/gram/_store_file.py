"""The file of a `GramStore`.

In this order:

* preamble, 32 bytes: magic, format version, CRC of the rest of the head, length of the JSON and of the file;
* JSON: {"kernelweave": version, "n_samples": n, "names": [...], "checksums": [CRC of every kernel]};
* zeros up to a multiple of 4096 bytes;
* lower triangles, kernel after kernel, row after row, little-endian float32.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .._part_files import replacing, sweep
from .._typing import FloatArray
from .._version import __version__
from ._files import Mapped, check_disk, map_triangles, reserve
from .packed import triangle_size

MAGIC, FORMAT, ALIGN = b"KWGRAM\r\n", 1, 4096
#: magic; format, CRC, length of the JSON, length of the file
FIELDS = struct.Struct("<8sIIQQ")
ENTRY = np.dtype("<f4")

REMEDY = "choose a path on a larger disk, or store fewer kernels or samples"


@dataclass(frozen=True)
class Head:
    """What the head of a store says.

    Attributes
    ----------
    n_samples : int
    names : list of str
        Of the kernels.
    checksums : list of str
        CRC of each kernel, eight digits.
    """

    n_samples: int
    names: list[str]
    checksums: list[str]

    @property
    def fingerprint(self) -> str:
        """A short text that differs between different stores."""
        return hashlib.sha256(json.dumps(self.__dict__).encode()).hexdigest()[:16]

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of all triangles."""
        return len(self.names), triangle_size(self.n_samples)

    @property
    def data_bytes(self) -> int:
        """Length of the triangles."""
        return self.shape[0] * self.shape[1] * ENTRY.itemsize

    def encode(self) -> bytes:
        """The bytes before the data, as many whatever the checksums are."""
        text = json.dumps({"kernelweave": __version__, **self.__dict__}).encode()
        start = _data_start(len(text))
        numbers = (len(text), start + self.data_bytes)
        return (FIELDS.pack(MAGIC, FORMAT, _seal(numbers, text), *numbers) + text).ljust(start, b"\0")


def _data_start(length: int) -> int:
    """Where the data begin after a JSON of some length."""
    return -(-(FIELDS.size + length) // ALIGN) * ALIGN


def _seal(numbers: tuple[int, int], text: bytes) -> int:
    return zlib.crc32(struct.pack("<QQ", *numbers) + text)


def checksum(triangle: FloatArray) -> str:
    """CRC of the entries of one kernel."""
    return f"{zlib.crc32(np.ascontiguousarray(triangle).data):08x}"


# -- writing ----------------------------------------------------------------------------------


@contextlib.contextmanager
def writing(path: Path, names: list[str], n_samples: int) -> Iterator[Mapped]:
    """Triangles to be filled; they become the file `path` if nothing fails."""
    head = Head(n_samples, list(names), ["0" * 8] * len(names))
    start = len(head.encode())
    check_disk(path.parent, start + head.data_bytes, REMEDY)
    sweep(path)
    with replacing(path) as file:
        reserve(file.fileno(), start + head.data_bytes)
        triangles = map_triangles(file.name, head.shape, ENTRY, start, mode="r+")
        yield triangles
        _check_finite(triangles, names)
        triangles.flush()
        # without its head a file is no store: it comes after everything else
        file.write(replace(head, checksums=[checksum(triangle) for triangle in triangles]).encode())


def _check_finite(triangles: FloatArray, names: list[str]) -> None:
    for name, triangle in zip(names, triangles, strict=True):
        if not np.isfinite(triangle.sum(dtype=np.float64)):
            raise ValueError(
                f"kernel {name!r} has NaN or infinite entries in single precision: scale or fill it."
            )


# -- reading ----------------------------------------------------------------------------------


def open_file(path: Path) -> tuple[Head, Mapped]:
    """The head of a store and its triangles, whose checksums are not compared yet."""
    with open(path, "rb") as file:
        try:
            head, start = _read_head(file, os.fstat(file.fileno()).st_size)
        except _BrokenError as error:
            raise ValueError(
                f"{os.fspath(path)!r} cannot be read as a GramStore: {error}; build it anew "
                "with GramStore.build."
            ) from error
    return head, map_triangles(path, head.shape, ENTRY, start)


def check_triangles(path: Path, head: Head, triangles: FloatArray) -> None:
    """Raise unless every kernel has the checksum of the head."""
    for name, expected, triangle in zip(head.names, head.checksums, triangles, strict=True):
        if checksum(triangle) != expected:
            raise ValueError(
                f"{os.fspath(path)!r} is damaged: the checksum of kernel {name!r} is wrong; build it anew "
                "with GramStore.build."
            )


class _BrokenError(Exception):
    """Why a file is no store."""


def _read_head(file: BinaryIO, size: int) -> tuple[Head, int]:
    preamble = file.read(FIELDS.size)
    if len(preamble) < FIELDS.size or not preamble.startswith(MAGIC):
        raise _BrokenError("it is no store, or was not finished")
    _, version, seal, length, expected = FIELDS.unpack(preamble)
    if version != FORMAT:
        raise _BrokenError(f"it has format {version}, and kernelweave {__version__} reads format {FORMAT}")
    if size != expected:
        raise _BrokenError(f"it is truncated or damaged, with {size} bytes instead of {expected}")
    text = file.read(min(length, size))
    if _seal((length, expected), text) != seal:
        raise _BrokenError("it is damaged, the checksum of its head is wrong")
    known = json.loads(text)
    head = Head(known["n_samples"], known["names"], known["checksums"])
    if _data_start(length) + head.data_bytes != size:
        raise _BrokenError("it is damaged, its head describes another file")
    return head, _data_start(length)
