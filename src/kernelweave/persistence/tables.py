"""Rows of training data: arrays of objects, sparse matrices, data frames."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from math import prod
from typing import Any

import numpy as np
from scipy import sparse

from ..kernels.columns import column_names, is_foreign_frame, take_columns
from .codec import TEXT, Form, Reader, Writer, count_of, entries, exactly, listed
from .errors import ModelFileError
from .plain import pack_texts, unpack_texts


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
    return {
        "shape": list(value.shape),
        "items": [writer.value(item, f"[{i}]") for i, item in enumerate(items)],
    }


def _read_objects(json: Any, reader: Reader) -> np.ndarray:
    if isinstance(json, dict) and "texts" in json:
        shape, packed = entries(json, "shape", "texts")
        items = unpack_texts(packed, reader)
    else:
        shape, listing = entries(json, "shape", "items")
        items = [reader.value(item) for item in listed(listing)]
    shape = tuple(count_of(axis) for axis in listed(shape))
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
    size = tuple(count_of(axis) for axis in listed(shape))
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
    columns = [reader.value(part, np.ndarray) for part in listed(parts)]
    for column in columns:  # pandas takes numbers as they are and makes objects of text
        reader.spend(0 if column.dtype.kind in "biufO" else TEXT * column.size)
    labels = reader.value(names, list)
    shapes = {column.shape for column in columns}
    if len(shapes) != 1 or len(shapes.pop()) != 1 or len(labels) != len(columns):
        raise ModelFileError("it is damaged: the columns of a data frame do not fit.")
    return _frame(labels, columns)


def _frame(labels: list[Any], columns: list[np.ndarray]) -> Any:
    """A data frame of pandas; of polars, whose users need not have pandas, where that alone is there."""
    if find_spec("pandas") is None and find_spec("polars") is not None:
        import polars as pl

        return pl.DataFrame([pl.Series(str(name), list(c)) for name, c in zip(labels, columns, strict=True)])
    import pandas as pd

    frame = pd.DataFrame(dict(enumerate(columns)), copy=False)
    frame.columns = labels
    return frame


TABLES = (
    Form("objects", _is_objects, _write_objects, _read_objects),
    Form("csr", exactly(sparse.csr_matrix, sparse.csr_array), _write_csr, _read_csr),
    Form("frame", _is_frame, _write_frame, _read_frame),
)
