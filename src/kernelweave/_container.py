"""The one file format of kernelweave: model files, checkpoints and Gram stores.

    preamble   64 bytes: magic, format, zero, length of the JSON, length of the file, SHA-256 of the preamble
               so far and of the JSON
    JSON       {"kernelweave": version, "kind": what it is, "arrays": [[dtype, order, shape, CRC-32], ...],
               "content": ...}, with spaces at its end so that the data begin at a multiple of 64
    data       the arrays one after another, nothing between them

There are no offsets, names or paths: the place of an array follows from the sizes of those before it, and
all sizes together have to be the size of the file. Nothing is allocated before it is known to be in the
file, and nothing that a file says is executed. A file is written beside its place and then moved there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import stat
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ._version import __version__

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed
    fcntl = None  # type: ignore[assignment]

#: what the name of a file in the making ends in
SUFFIX = ".kernelweave.part"

#: kinds of files
MODEL, CHECKPOINT, STORE = "model file", "checkpoint", "Gram store"

MAGIC, FORMAT, ALIGN = b"\x93KWEAVE\n", 1, 64

#: magic, format, zero, length of the JSON, length of the file; the checksum follows
FIELDS = struct.Struct("<8sIIQQ")
PREAMBLE = FIELDS.size + 32

#: longest JSON, in bytes, and its deepest nesting
MAX_JSON, MAX_DEPTH = 1 << 25, 96

#: numbers, truth values, dates and text of fixed width; never objects, records or pointers
DTYPES = re.compile(r"\|b1|[|<][iu]1|<[iu][248]|<f[248]|<[Mm]8\[[a-z]{1,2}\]|<U[1-9]\d{0,6}|\|S[1-9]\d{0,6}")

MAX_AXES, MAX_AXIS = 8, 1 << 40

#: what other files begin with
LOOKS_LIKE = {
    b"\x93KWMODEL": "a model file of an earlier format, which is no longer read",
    b"kernelweave checkpoint ": "a checkpoint of an earlier format, which is no longer read",
    b"KWGRAM\r\n": "a Gram store of an earlier format, which is no longer read",
    b"\x80": "a pickle",
    b"PK": "a zip archive (NumPy .npz, skops, torch)",
    b"\x93NUMPY": "a NumPy array",
    b"\x1f\x8b": "a gzip archive",
    b"{": "JSON",
    b"\0\0\0\0\0\0\0\0": "a file that was not finished",
}

_TOKENS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|([\[{])|([\]}])', re.DOTALL)


class ContainerError(ValueError):
    """A file cannot be read, or values cannot be written, and why."""


class DamagedFileError(ContainerError):
    """The file is not what was written."""


class ForeignFileError(ContainerError):
    """The file was never one of this kind, or is of another version."""


class Layout(NamedTuple):
    """Type, order in memory ("C" or "F"), shape and checksum of an array."""

    dtype: str
    order: str
    shape: list[int]
    checksum: str = "0" * 8

    @property
    def n_bytes(self) -> int:
        """Bytes the array takes, counted in integers that do not overflow."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    @classmethod
    def parse(cls, entry: Any, room: int) -> Layout:
        """A layout from JSON: a plain type, sane axes, and no more bytes than `room`."""
        dtype, order, shape, checksum = entry
        if type(dtype) is not str or not DTYPES.fullmatch(dtype) or order not in ("C", "F"):
            raise DamagedFileError(
                f"it announces an array of type {dtype!r:.40} and order {order!r:.20}, which none has"
            )
        sane = type(shape) is list and len(shape) <= MAX_AXES and type(checksum) is str
        if not sane or any(type(axis) is not int or not 0 <= axis <= MAX_AXIS for axis in shape):
            raise DamagedFileError(f"it announces an array of shape {shape!r:.60}, which no file holds")
        layout = cls(dtype, order, shape, checksum)
        if layout.n_bytes > room:
            raise DamagedFileError(
                f"it announces an array of {layout.n_bytes} bytes and has {room} left for all of them"
            )
        return layout


class Head(NamedTuple):
    """What a file says about itself: content, arrays, where they begin, and how long it is."""

    content: Any
    layouts: list[Layout]
    start: int
    size: int


# -- arrays -----------------------------------------------------------------------------------


def storable(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of this type may be in a file, in little-endian order."""
    return dtype.itemsize > 0 and DTYPES.fullmatch(dtype.newbyteorder("<").str) is not None


def layout_of(array: np.ndarray) -> Layout:
    """How an array is stored, so that a product with the loaded matrix rounds like one with the original."""
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    raw = _raw(array, order)
    return Layout(array.dtype.str, order, list(array.shape), checksum(raw))


def checksum(raw: Any) -> str:
    """CRC-32 of bytes or of a contiguous array, eight digits."""
    return f"{zlib.crc32(raw):08x}"


def _raw(array: np.ndarray, order: str) -> Any:
    """The content of an array, without a copy where it is contiguous."""
    flat = np.ascontiguousarray(array.T if order == "F" else array).reshape(-1)
    return flat.view(np.uint8).data


def _read_array(file: BinaryIO, layout: Layout) -> np.ndarray:
    """The next array of a file: truth values are 0 or 1, text is of Unicode's characters."""
    raw: Any = np.empty(layout.n_bytes, dtype=np.uint8)
    if file.readinto(raw.data) != len(raw):  # type: ignore[attr-defined]
        raise DamagedFileError("it is truncated")
    if checksum(raw) != layout.checksum:
        raise DamagedFileError("it is damaged: the checksum of its arrays is wrong")
    kind = layout.dtype[1]
    top = {"b": 1, "U": 0x10FFFF}.get(kind)
    if top is not None and raw.size and int(raw.view(np.uint32 if kind == "U" else np.uint8).max()) > top:
        raise DamagedFileError("it is damaged: an array of text or truth values holds neither")
    found: np.ndarray = raw.view(layout.dtype).reshape(tuple(layout.shape), order=layout.order)
    return found


# -- writing ----------------------------------------------------------------------------------


def head_bytes(kind: str, content: Any, layouts: Sequence[Layout]) -> bytes:
    """Everything before the arrays; its length does not depend on their checksums."""
    head = {"kernelweave": __version__, "kind": kind, "arrays": layouts, "content": content}
    text = json.dumps(head, allow_nan=False, separators=(",", ":")).encode()
    if len(text) > MAX_JSON:
        raise ContainerError(
            f"the description takes {len(text) >> 20} MiB, and a {kind} allows {MAX_JSON >> 20} MiB"
        )
    check_depth(text.decode())
    text += b" " * (-(PREAMBLE + len(text)) % ALIGN)
    return seal(text, PREAMBLE + len(text) + sum(layout.n_bytes for layout in layouts)) + text


def seal(text: bytes, size: int, version: int = FORMAT) -> bytes:
    """The preamble of a file of `size` bytes whose JSON is `text`."""
    fields = FIELDS.pack(MAGIC, version, 0, len(text), size)
    return fields + hashlib.sha256(fields + text).digest()


def write(
    path: Path,
    kind: str,
    content: Any,
    arrays: Sequence[np.ndarray],
    before: Callable[[], None] | None = None,
) -> None:
    """Write a file beside `path` and move it there, so that `path` never holds half of one.

    Parameters
    ----------
    path : Path
    kind : str
        `MODEL`, `CHECKPOINT` or `STORE`.
    content : values of JSON
    arrays : sequence of ndarray
        Of types that are `storable`.
    before : callable, optional
        Called when the new file is safe on disk and the old one still in its place.
    """
    little = [array.astype(array.dtype.newbyteorder("<"), copy=False) for array in arrays]
    layouts = [layout_of(array) for array in little]
    head = head_bytes(kind, content, layouts)
    sweep(path)
    with replacing(path) as file:
        file.write(head)
        for array, layout in zip(little, layouts, strict=True):
            file.write(_raw(array, layout.order))
        if before is not None:
            file.flush()
            os.fsync(file.fileno())
            before()


# -- reading ----------------------------------------------------------------------------------


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A regular file, to be read."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ForeignFileError("it is not a regular file")
    with open(path, "rb") as file:
        yield file


def read(file: BinaryIO, kind: str) -> tuple[Head, list[np.ndarray]]:
    """Head and arrays of a file, after every size and checksum was found to be right.

    No more is allocated than the file is long, and a bounded multiple of the length of its JSON.
    """
    head = read_head(file, kind)
    return head, [_read_array(file, layout) for layout in head.layouts]


def read_head(file: BinaryIO, kind: str) -> Head:
    """What a file of some kind says about itself, before its arrays are looked at."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    text = _read_json(file, size, kind)
    try:
        head = parse_json(text)
        if type(head) is not dict or set(head) != {"kernelweave", "kind", "arrays", "content"}:
            raise DamagedFileError("its description does not have the entries of a file of kernelweave")
        if head["kind"] != kind:
            raise ForeignFileError(f"it is a {head['kind']!s:.40} of kernelweave, and no {kind}")
        room = size - file.tell()
        layouts = [Layout.parse(entry, room) for entry in head["arrays"]]
    except ContainerError:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedFileError(f"it is damaged: its description makes no sense ({error!s:.80})") from error
    announced = sum(layout.n_bytes for layout in layouts)
    if announced != room:
        raise DamagedFileError(f"it is damaged: it announces arrays of {announced} bytes and has {room}")
    return Head(head["content"], layouts, file.tell(), size)


def begins_like_ours(start: bytes) -> bool:
    """Whether the first bytes of a file are those of a file of kernelweave, whole or cut short."""
    return MAGIC.startswith(start[: len(MAGIC)])


def _read_json(file: BinaryIO, size: int, kind: str) -> bytes:
    preamble = file.read(PREAMBLE)
    if not begins_like_ours(preamble):
        known = [name for mark, name in LOOKS_LIKE.items() if preamble.startswith(mark)]
        looks = f": it looks like {known[0]}" if known else ""
        raise ForeignFileError(f"it is not a {kind} of kernelweave{looks}")
    if len(preamble) < PREAMBLE:
        raise DamagedFileError(f"it is truncated: it ends after {size} bytes" if size else "it is empty")
    _, version, zero, length, expected = FIELDS.unpack(preamble[: FIELDS.size])
    if version > FORMAT:
        raise ForeignFileError(
            f"it has format {version}, and kernelweave {__version__} reads formats up to {FORMAT}: "
            "upgrade kernelweave"
        )
    if version < 1 or zero:
        raise DamagedFileError("it is damaged: its first bytes make no sense")
    if size != expected:
        raise DamagedFileError(f"it is truncated or damaged: it has {size} bytes, and says {expected}")
    if length > min(MAX_JSON, size - PREAMBLE):
        raise DamagedFileError(f"it is damaged: its description cannot be {length} bytes long")
    text = file.read(length)
    if hashlib.sha256(preamble[: FIELDS.size] + text).digest() != preamble[FIELDS.size :]:
        raise DamagedFileError("it is damaged: the checksum of its description is wrong")
    return text


def parse_json(text: bytes) -> Any:
    """JSON of bounded depth, without repeated keys, NaN or infinities."""
    decoded = text.decode("utf-8")
    check_depth(decoded)
    return json.loads(decoded, object_pairs_hook=_unique, parse_constant=_no_constant)


def check_depth(text: str) -> None:
    """Refuse brackets nested deeper than the readers should recurse."""
    depth = 0
    for token in _TOKENS.finditer(text):
        depth += (token[1] is not None) - (token[2] is not None)
        if depth > MAX_DEPTH:
            raise DamagedFileError(f"the description is nested deeper than {MAX_DEPTH} levels")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DamagedFileError("its description repeats a key")
    return found


def _no_constant(name: str) -> Any:
    raise DamagedFileError(f"its description holds {name}, which is not JSON")


# -- files that take their places whole -------------------------------------------------------
#
# A file in the making is called ``.NAME.xxxxxxxx.kernelweave.part``, which no file of a user's is, and is
# locked for as long as its process lives: `sweep` removes those that a killed process has left, no others.


def part_of(path: Path) -> Path:
    """A name for what is to become `path`, in the same folder.

    >>> part_of(Path("model.kw")).name  # doctest: +ELLIPSIS
    '.model.kw....kernelweave.part'
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{SUFFIX}")


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` at the end; `path` stays as it was if anything fails.

    A full disk, an error and Ctrl-C leave nothing behind beside it; a link stays a link.
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
    """A new, locked file; if a sweep removes it before it is locked, another one is made."""
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
