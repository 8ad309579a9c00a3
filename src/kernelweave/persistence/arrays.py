"""Arrays in a file: which types may be there, how long they are, and their bytes."""

from __future__ import annotations

import re
from math import prod
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .errors import ModelFileError

#: numbers, truth values, dates and text of fixed width; never objects, records or pointers
DTYPES = re.compile(r"\|b1|[|<][iu]1|<[iu][248]|<f[248]|<[Mm]8\[[a-z]{1,2}\]|<U[1-9]\d{0,6}|\|S[1-9]\d{0,6}")

MAX_AXES, MAX_AXIS = 8, 1 << 40


class Layout(NamedTuple):
    """Type, order in memory ("C" or "F") and shape of an array."""

    dtype: str
    order: str
    shape: list[int]

    @property
    def n_bytes(self) -> int:
        """Bytes the array takes, counted in integers that do not overflow."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    @classmethod
    def parse(cls, entry: Any, room: int) -> Layout:
        """A layout from JSON: a plain type, sane axes, and no more bytes than `room`."""
        dtype, order, shape = entry
        if type(dtype) is not str or not DTYPES.fullmatch(dtype) or order not in ("C", "F"):
            raise ModelFileError(
                f"it announces an array of type {dtype!r:.40} and order {order!r:.20}, which none has."
            )
        sane = type(shape) is list and len(shape) <= MAX_AXES
        if not sane or any(type(axis) is not int or not 0 <= axis <= MAX_AXIS for axis in shape):
            raise ModelFileError(f"it announces an array of shape {shape!r:.60}, which no model file holds.")
        layout = cls(dtype, order, shape)
        if layout.n_bytes > room:
            raise ModelFileError(
                f"it announces an array of {layout.n_bytes} bytes and has {room} left for all of them."
            )
        return layout


def layout_of(array: np.ndarray) -> Layout:
    """How an array is stored: a matrix product of the loaded array rounds as one of the original."""
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    return Layout(array.dtype.str, order, list(array.shape))


def array_bytes(array: np.ndarray, layout: Layout) -> Any:
    """The content of an array, without a copy where it is contiguous."""
    flat = np.ascontiguousarray(array.T if layout.order == "F" else array).reshape(-1)
    return flat.view(np.uint8).data


def storable_dtype(dtype: np.dtype) -> bool:
    """Whether arrays of this type may be in a file (after `little`)."""
    return dtype.itemsize > 0 and DTYPES.fullmatch(dtype.newbyteorder("<").str) is not None


def read_bytes(file: BinaryIO, layout: Layout) -> Any:
    """The bytes of the next array of a file."""
    raw: Any = np.empty(layout.n_bytes, dtype=np.uint8)
    if file.readinto(raw.data) != len(raw):  # type: ignore[attr-defined]
        raise ModelFileError("it is truncated.")
    return raw


def as_array(raw: Any, layout: Layout) -> np.ndarray:
    """An array on its bytes: truth values are 0 or 1, text is of Unicode's characters."""
    kind = layout.dtype[1]
    top = {"b": 1, "U": 0x10FFFF}.get(kind)
    if top is not None and raw.size and int(raw.view(np.uint32 if kind == "U" else np.uint8).max()) > top:
        raise ModelFileError("it is damaged: an array of text or truth values holds neither.")
    return raw.view(layout.dtype).reshape(tuple(layout.shape), order=layout.order)
