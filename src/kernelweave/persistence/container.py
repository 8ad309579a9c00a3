"""The file itself: a fixed preamble, JSON, and the bytes of arrays, both under checksums.

    preamble   64 bytes: magic, format version, length of the JSON, length of the file, SHA-256 of the
               preamble so far and of the JSON
    JSON       {"kernelweave": version, "arrays": [[dtype, order, shape], ...], "sha256": of the data,
               "model": ...}
    data       the arrays one after another, nothing between them

There are no offsets, names or paths: the place of an array follows from the sizes of those before
it, and all sizes together have to be the size of the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .._part_files import replacing, sweep
from .._version import __version__
from .arrays import Layout, array_bytes, as_array, layout_of, read_bytes
from .errors import ModelFileError

MAGIC = b"\x93KWMODEL"
FORMAT = 2

#: magic, format, zero, length of the JSON, length of the file; the checksum follows
FIELDS = struct.Struct("<8sIIQQ")
PREAMBLE = FIELDS.size + 32

#: longest JSON, in bytes, and its deepest nesting
MAX_JSON, MAX_DEPTH = 1 << 25, 96

#: what other files begin with
LOOKS_LIKE = {
    b"\x80": "a pickle",
    b"PK": "a zip archive (NumPy .npz, skops, torch)",
    b"\x93NUMPY": "a NumPy array",
    b"\x1f\x8b": "a gzip archive",
    b"{": "JSON",
}

_TOKENS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|([\[{])|([\]}])', re.DOTALL)


class Content(NamedTuple):
    """What a file holds: the description of the model, the arrays, who wrote it; and how long it is."""

    model: Any
    arrays: list[np.ndarray]
    version: str
    size: int


# -- writing ----------------------------------------------------------------------------------


def write_container(path: Path, model: Any, arrays: Sequence[np.ndarray]) -> None:
    """Write a file beside `path` and move it there, so that `path` never holds half a model."""
    layouts = [layout_of(array) for array in arrays]
    digest = hashlib.sha256()
    for array, layout in zip(arrays, layouts, strict=True):
        digest.update(array_bytes(array, layout))
    head = {"kernelweave": __version__, "arrays": layouts, "sha256": digest.hexdigest(), "model": model}
    text = json.dumps(head, allow_nan=False, separators=(",", ":")).encode()
    if len(text) > MAX_JSON:
        raise ModelFileError(
            f"the description of this model takes {len(text) >> 20} MiB, a model file allows "
            f"{MAX_JSON >> 20} MiB: fit it with fewer kernels."
        )
    check_depth(text.decode())
    start = seal(text, PREAMBLE + len(text) + sum(layout.n_bytes for layout in layouts))
    sweep(path)
    with replacing(path) as file:
        file.write(start)
        file.write(text)
        for array, layout in zip(arrays, layouts, strict=True):
            file.write(array_bytes(array, layout))


def seal(text: bytes, size: int, version: int = FORMAT) -> bytes:
    """The preamble of a file of `size` bytes whose JSON is `text`."""
    fields = FIELDS.pack(MAGIC, version, 0, len(text), size)
    return fields + hashlib.sha256(fields + text).digest()


# -- reading ----------------------------------------------------------------------------------


def read_container(path: Path) -> Content:
    """The content of a file, after every size and checksum was found right.

    No more is allocated than the file is long, and a bounded multiple of the length of its JSON.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ModelFileError("it is not a regular file.")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = _read_json(file, size)
        if type(head) is not dict or set(head) != {"kernelweave", "arrays", "sha256", "model"}:
            raise ModelFileError("its description has other entries than a model file has.")
        layouts = _layouts(head["arrays"], size - file.tell())
        pieces = [read_bytes(file, layout) for layout in layouts]
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece.data)
    if digest.hexdigest() != head["sha256"]:
        raise ModelFileError("it is damaged: the checksum of its arrays is wrong.")
    arrays = [as_array(piece, layout) for piece, layout in zip(pieces, layouts, strict=True)]
    return Content(head["model"], arrays, str(head["kernelweave"]), size)


def _read_json(file: BinaryIO, size: int) -> Any:
    preamble = file.read(PREAMBLE)
    if not preamble.startswith(MAGIC):
        raise ModelFileError(_stranger(preamble))
    if len(preamble) < PREAMBLE:
        raise ModelFileError(f"it is truncated: it ends after {size} bytes.")
    _, version, zero, length, expected = FIELDS.unpack(preamble[: FIELDS.size])
    if version > FORMAT:
        raise ModelFileError(
            f"it has format {version}, and kernelweave {__version__} reads format {FORMAT}: "
            "upgrade kernelweave."
        )
    if 0 < version < FORMAT:
        raise ModelFileError(
            f"it has format {version}, of an earlier kernelweave, and this one ({__version__}) reads format "
            f"{FORMAT}: fit the model again, or load it with the version that wrote it."
        )
    if version < 1 or zero:
        raise ModelFileError("it is damaged: its first bytes make no sense.")
    if size != expected:
        raise ModelFileError(f"it is truncated or damaged: it has {size} bytes, and says {expected}.")
    if length > min(MAX_JSON, size - PREAMBLE):
        raise ModelFileError(f"it is damaged: its description cannot be {length} bytes long.")
    text = file.read(length)
    if hashlib.sha256(preamble[: FIELDS.size] + text).digest() != preamble[FIELDS.size :]:
        raise ModelFileError("it is damaged: the checksum of its description is wrong.")
    return parse_json(text)


def _stranger(start: bytes) -> str:
    """What a file is that does not begin like a model."""
    if not start:
        return "it is empty."
    known = [name for mark, name in LOOKS_LIKE.items() if start.startswith(mark)]
    return "it is not a kernelweave model file" + (f": it looks like {known[0]}." if known else ".")


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
            raise ModelFileError(
                f"the description is nested deeper than {MAX_DEPTH} levels: combine fewer kernels."
            )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ModelFileError("its description repeats a key.")
    return found


def _no_constant(name: str) -> Any:
    raise ModelFileError(f"its description holds {name}, which is not JSON.")


def _layouts(listed: Any, room: int) -> list[Layout]:
    """The arrays that the JSON announces, which have to fill the rest of the file exactly."""
    layouts = [Layout.parse(entry, room) for entry in listed]
    announced = sum(layout.n_bytes for layout in layouts)
    if announced != room:
        raise ModelFileError(f"it is damaged: it announces arrays of {announced} bytes and has {room}.")
    return layouts
