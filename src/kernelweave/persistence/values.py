"""Forms of plain values and of rows of data: numbers, containers, arrays, sparse matrices, data frames."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec
from math import prod
from typing import Any

import numpy as np
from scipy import sparse

from ..kernels import Views
from ..kernels.columns import column_names, is_foreign_frame, take_columns
from .codec import (
    MOST_ALIKE,
    NUMBER,
    TEXT,
    Form,
    ModelFileError,
    NotStored,
    Reader,
    Writer,
    count_of,
    entries,
    exactly,
    instances,
    list_of,
    pair_of,
    text,
)


def _read_float(json: Any, reader: Reader) -> float:
    if json not in ("inf", "-inf", "nan"):
        raise ModelFileError(f"it holds {json!r:.20} where inf, -inf or nan has to be.")
    return float(json)


def _write_dict(value: dict[Any, Any], writer: Writer) -> list[Any]:
    return [[writer.value(key), writer.value(item, f"[{key!r}]")] for key, item in value.items()]


def _read_dict(json: Any, reader: Reader) -> dict[Any, Any]:
    pairs = [pair_of(pair) for pair in list_of(json)]
    keys = [reader.value(key) for key, _ in pairs]
    # hashes are integers, and those that are equal are one key here: this takes no longer for colliding keys
    alike = Counter(map(hash, keys))
    if max(alike.values(), default=0) > MOST_ALIKE:
        raise ModelFileError("it holds a dict whose keys were made to collide.")
    return dict(zip(keys, (reader.value(item) for _, item in pairs), strict=True))


def _write_slice(value: slice, writer: Writer) -> list[Any]:
    return [writer.value(bound) for bound in (value.start, value.stop, value.step)]


def _read_slice(json: Any, reader: Reader) -> slice:
    start, stop, step = (reader.value(bound, int, str, type(None)) for bound in list_of(json))
    return slice(start, stop, step)


def write_items(items: Iterable[Any], writer: Writer) -> list[Any]:
    """Values one by one, named by their places."""
    return [writer.value(item, f"[{i}]") for i, item in enumerate(items)]


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
    return {"items": write_items(value, writer)}


def _read_list(json: Any, reader: Reader) -> list[Any]:
    if isinstance(json, dict) and set(json) == {"items"}:
        return [reader.value(item) for item in list_of(json["items"])]
    if isinstance(json, dict):
        return unpack_texts(json, reader)
    array = reader.array(json, "if", 1)
    result: list[Any] = reader.once(("list", json), NUMBER * array.size, array.tolist)
    return result


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
    result: list[str] = reader.once(("texts", number, sizes), cost, lambda: _texts(coded.tobytes(), lengths))
    return result


def _texts(joined: bytes, lengths: np.ndarray) -> list[str]:
    if (lengths < 0).any() or int(lengths.sum(dtype=object)) != len(joined):
        raise ModelFileError("it is damaged: the lengths of its strings do not fit.")
    ends = np.cumsum(lengths).tolist()
    pairs = zip([0, *ends], ends, strict=False)
    return [joined[start:end].decode("utf-8", "surrogatepass") for start, end in pairs]


# -- rows of training data ----------------------------------------------------------------------------


def _is_objects(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "OT"


def _is_frame(value: Any) -> bool:
    """Whether a value is a data frame of pandas, which need not be installed, or of polars or pyarrow."""
    pandas = sys.modules.get("pandas")
    return (pandas is not None and isinstance(value, pandas.DataFrame)) or is_foreign_frame(value)


def _write_objects(value: np.ndarray, writer: Writer) -> dict[str, Any]:
    items = value.ravel().tolist()
    if all(type(item) is str for item in items):
        return {"shape": list(value.shape), "texts": pack_texts(items, writer)}
    return {"shape": list(value.shape), "items": write_items(items, writer)}


def _read_objects(json: Any, reader: Reader) -> np.ndarray:
    if isinstance(json, dict) and "texts" in json:
        shape, packed = entries(json, "shape", "texts")
        items = unpack_texts(packed, reader)
    else:
        shape, listing = entries(json, "shape", "items")
        items = [reader.value(item) for item in list_of(listing)]
    shape = tuple(count_of(axis) for axis in list_of(shape))
    if prod(shape) != len(items) or len(shape) > 2:
        raise ModelFileError(f"it holds {len(items)} objects for an array of shape {shape}.")
    reader.spend(8 * len(items))
    # one by one: NumPy would look into items that are arrays
    return np.fromiter(items, dtype=object, count=len(items)).reshape(shape)


def _write_csr(value: Any, writer: Writer) -> dict[str, Any]:
    parts = {name: writer.array(getattr(value, name)) for name in ("data", "indices", "indptr")}
    sorted_ = bool(value.has_sorted_indices)
    return {"shape": list(value.shape), "matrix": sparse.isspmatrix(value), "sorted": sorted_, **parts}


def _read_csr(json: Any, reader: Reader) -> Any:
    """A sparse matrix whose indices lie inside it: compiled code does not check them."""
    names = ("shape", "matrix", "sorted", "data", "indices", "indptr")
    shape, matrix, sorted_, data, indices, indptr = entries(json, *names)
    size = tuple(count_of(axis) for axis in list_of(shape))
    parts = (reader.array(data, "fiub", 1), reader.array(indices, "i", 1), reader.array(indptr, "i", 1))
    if len(size) != 2 or len(parts[2]) != size[0] + 1 or len(parts[0]) != len(parts[1]):
        raise ModelFileError("it is damaged: the parts of a sparse matrix do not fit.")
    reader.spend(2 * sum(part.nbytes for part in parts))
    made = (sparse.csr_matrix if matrix is True else sparse.csr_array)(parts, shape=size, copy=False)
    made.check_format(full_check=True)
    made.has_sorted_indices = sorted_ is True and bool(made.has_sorted_indices)
    return made


def _pandas(frame: Any) -> tuple[list[Any], list[np.ndarray]]:
    names = [name.item() if isinstance(name, np.generic) else name for name in frame.columns]
    return names, [np.asarray(frame.iloc[:, position]) for position in range(frame.shape[1])]


def _foreign(frame: Any) -> tuple[list[Any], list[np.ndarray]]:
    columns = [take_columns(frame, np.array([position])) for position in range(frame.shape[1])]
    return column_names(frame) or [], [np.asarray(column)[:, 0] for column in columns]


def _write_frame(value: Any, writer: Writer) -> dict[str, Any]:
    names, columns = _foreign(value) if is_foreign_frame(value) else _pandas(value)
    parts = [writer.value(column, f"[{name!r}]") for column, name in zip(columns, names, strict=True)]
    return {"names": writer.value(names), "columns": parts}


def _read_frame(json: Any, reader: Reader) -> Any:
    names, parts = entries(json, "names", "columns")
    columns = [reader.value(part, np.ndarray) for part in list_of(parts)]
    for column in columns:  # pandas takes numbers as they are and makes objects of text
        reader.spend(0 if column.dtype.kind in "biufO" else TEXT * column.size)
    labels = reader.value(names, list)
    shapes = {column.shape for column in columns}
    if len(shapes) != 1 or len(shapes.pop()) != 1 or len(labels) != len(columns):
        raise ModelFileError("it is damaged: the columns of a data frame do not fit.")
    return _frame(labels, columns)


def _frame(labels: list[Any], columns: list[np.ndarray]) -> Any:
    """A data frame of pandas, or of polars where only polars is installed."""
    if find_spec("pandas") is None and find_spec("polars") is not None:
        import polars as pl

        return pl.DataFrame([pl.Series(str(name), list(c)) for name, c in zip(labels, columns, strict=True)])
    import pandas as pd

    frame = pd.DataFrame(dict(enumerate(columns)), copy=False)
    frame.columns = labels
    return frame


def _write_views(value: Views, writer: Writer) -> dict[str, Any]:
    """Views without the IDs of their samples, which predictions do not need."""
    tables = [writer.value(table, f"[{name!r}]") for name, table in value.tables.items()]
    return {"names": writer.value(value.names), "tables": tables, "observed": writer.array(value.observed)}


def _read_views(json: Any, reader: Reader) -> Views:
    names, listing, number = entries(json, "names", "tables", "observed")
    labels, observed = reader.value(names, list), reader.array(number, "b", 2)
    tables = [reader.value(table) for table in list_of(listing)]
    fits = all(len(getattr(table, "shape", ())) == 2 and table.shape[0] == len(observed) for table in tables)
    named = all(type(label) is str for label in labels) and len({*labels}) == len(labels) > 0
    if not (fits and named and observed.shape[1] == len(tables) == len(labels)):
        raise ModelFileError("it is damaged: the tables of its views do not fit.")
    return Views.made_of(dict(zip(labels, tables, strict=True)), observed)


def _is_selector(value: Any) -> bool:
    """Whether a value is what `sklearn.compose.make_column_selector` makes."""
    cls = type(value)
    return cls.__name__ == "make_column_selector" and cls.__module__.startswith("sklearn.")


def _read_absent(json: Any, reader: Reader) -> NotStored:
    return NotStored(text(json))


#: arrays come after the forms of tables, which take arrays of objects
VALUES = (
    Form("float", exactly(float), lambda value, w: repr(value), _read_float),
    Form("list", exactly(list), _write_list, _read_list),
    Form("tuple", exactly(tuple), write_items, lambda json, r: tuple(map(r.value, list_of(json)))),
    Form("dict", exactly(dict), _write_dict, _read_dict),
    Form("slice", exactly(slice), _write_slice, _read_slice),
    Form("not_stored", exactly(NotStored), lambda value, w: value.what, _read_absent),
    Form("not_stored", _is_selector, lambda value, w: "make_column_selector", _read_absent),
    Form("scalar", instances(np.generic), lambda value, w: w.array(np.asarray(value)), _read_scalar),
    Form("objects", _is_objects, _write_objects, _read_objects),
    Form("csr", exactly(sparse.csr_matrix, sparse.csr_array), _write_csr, _read_csr),
    Form("frame", _is_frame, _write_frame, _read_frame),
    Form("views", exactly(Views), _write_views, _read_views),
    Form("array", instances(np.ndarray), lambda value, w: w.array(value), lambda json, r: r.array(json)),
)
