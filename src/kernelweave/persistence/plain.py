"""Forms of plain values and containers: numbers, tuples, dicts, long lists, arrays."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from .codec import (
    MOST_ALIKE,
    NUMBER,
    TEXT,
    Form,
    Reader,
    Writer,
    entries,
    exactly,
    instances,
    listed,
    pair_of,
    text,
)
from .errors import ModelFileError, NotStored


def _write_float(value: float, writer: Writer) -> str:
    return repr(value)


def _read_float(json: Any, reader: Reader) -> float:
    if json not in ("inf", "-inf", "nan"):
        raise ModelFileError(f"it holds {json!r:.20} where inf, -inf or nan has to be.")
    return float(json)


def _write_tuple(value: tuple[Any, ...], writer: Writer) -> list[Any]:
    return [writer.value(item, f"[{i}]") for i, item in enumerate(value)]


def _read_tuple(json: Any, reader: Reader) -> tuple[Any, ...]:
    return tuple(reader.value(item) for item in listed(json))


def _write_dict(value: dict[Any, Any], writer: Writer) -> list[Any]:
    return [[writer.value(key), writer.value(item, f"[{key!r}]")] for key, item in value.items()]


def _read_dict(json: Any, reader: Reader) -> dict[Any, Any]:
    pairs = [pair_of(pair) for pair in listed(json)]
    keys = [reader.value(key) for key, _ in pairs]
    # hashes are integers, and those that are equal are one key here: this takes no longer for colliding keys
    alike = Counter(map(hash, keys))
    if max(alike.values(), default=0) > MOST_ALIKE:
        raise ModelFileError("it holds a dict whose keys were made to collide.")
    return dict(zip(keys, (reader.value(item) for _, item in pairs), strict=True))


def _write_slice(value: slice, writer: Writer) -> list[Any]:
    return [writer.value(bound) for bound in (value.start, value.stop, value.step)]


def _read_slice(json: Any, reader: Reader) -> slice:
    start, stop, step = (reader.value(bound, int, str, type(None)) for bound in listed(json))
    return slice(start, stop, step)


def _write_absent(value: NotStored, writer: Writer) -> str:
    return value.what


def _read_absent(json: Any, reader: Reader) -> NotStored:
    return NotStored(text(json))


def _write_array(value: np.ndarray, writer: Writer) -> int:
    return writer.array(value)


def _read_array(json: Any, reader: Reader) -> np.ndarray:
    return reader.array(json)


def _write_scalar(value: np.generic, writer: Writer) -> int:
    return writer.array(np.asarray(value))


def _read_scalar(json: Any, reader: Reader) -> Any:
    array = reader.array(json, ndim=0)
    return reader.once(("scalar", json), TEXT + 2 * array.nbytes, lambda: array[()])


def _write_list(value: list[Any], writer: Writer) -> Any:
    """A long list: numbers as one array, strings as their bytes, anything else item by item."""
    kinds = {type(item) for item in value}
    if kinds == {float} or (kinds == {int} and max(map(abs, value)) < 1 << 62):
        return writer.array(np.array(value))
    if kinds == {str}:
        return pack_texts(value, writer)
    return {"items": [writer.value(item, f"[{i}]") for i, item in enumerate(value)]}


def _read_list(json: Any, reader: Reader) -> list[Any]:
    if isinstance(json, dict) and set(json) == {"items"}:
        return [reader.value(item) for item in listed(json["items"])]
    if isinstance(json, dict):
        return unpack_texts(json, reader)
    array = reader.array(json, "if", 1)
    return reader.once(("list", json), NUMBER * array.size, array.tolist)


def pack_texts(texts: list[str], writer: Writer) -> dict[str, int]:
    """Strings of any length and content as UTF-8 and lengths."""
    coded = [item.encode("utf-8", "surrogatepass") for item in texts]
    lengths = np.array([len(item) for item in coded], dtype=np.int64)
    return {"bytes": writer.array(np.frombuffer(b"".join(coded), np.uint8)), "lengths": writer.array(lengths)}


def unpack_texts(json: Any, reader: Reader) -> list[str]:
    """The strings of `pack_texts`."""
    number, sizes = entries(json, "bytes", "lengths")
    coded, lengths = reader.array(number, "u", 1), reader.array(sizes, "i", 1)
    # a byte may become a character of four
    cost = 6 * coded.nbytes + TEXT * lengths.size
    return reader.once(("texts", number, sizes), cost, lambda: _texts(coded.tobytes(), lengths))


def _texts(joined: bytes, lengths: np.ndarray) -> list[str]:
    if (lengths < 0).any() or int(lengths.sum(dtype=object)) != len(joined):
        raise ModelFileError("it is damaged: the lengths of its strings do not fit.")
    ends = np.cumsum(lengths).tolist()
    pairs = zip([0, *ends], ends, strict=False)
    return [joined[start:end].decode("utf-8", "surrogatepass") for start, end in pairs]


PLAIN = (
    Form("float", exactly(float), _write_float, _read_float),
    Form("list", exactly(list), _write_list, _read_list),
    Form("tuple", exactly(tuple), _write_tuple, _read_tuple),
    Form("dict", exactly(dict), _write_dict, _read_dict),
    Form("slice", exactly(slice), _write_slice, _read_slice),
    Form("not_stored", exactly(NotStored), _write_absent, _read_absent),
    Form("scalar", instances(np.generic), _write_scalar, _read_scalar),
)

#: after the forms of tables, which take arrays of objects
ARRAYS = (Form("array", instances(np.ndarray), _write_array, _read_array),)
