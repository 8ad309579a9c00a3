"""Parquet files as tables: row groups are read when their rows are asked for."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._typing import FloatArray, IntArray
from .tables import Table

INSTALL = 'ParquetTable needs pyarrow: pip install "kernelweave[tables]".'

#: row groups kept in memory
CACHED = 4


class RowGroup(NamedTuple):
    """Where some consecutive rows are."""

    path: str
    number: int
    size: int


class ParquetTable(Table):
    """Columns of numbers in Parquet files, too large for memory, as `X` of an estimator with `approximation`.

    Rows are read a row group at a time whenever they are needed, and the last few row groups are kept; so a
    fit needs memory for its factors, or only for blocks of rows when `memory_limit` is small. ``table[rows]``
    is an array for a slice or positions.

    Kernels that take a parameter from the data (``RBF(gamma="scale")``) take it from at most 100,000 rows,
    evenly spread. Missing and infinite numbers are an error when they are read.

    Parameters
    ----------
    path : str, path, or list of them
        A file, a folder of ``*.parquet`` files, or a pattern such as ``"part-*.parquet"``; files are taken in
        the order of their names. With ``gram="dask"`` the workers read it themselves, so they must see the
        same path.
    columns : list of str, optional
        Which columns to read, in this order; all by default.

    Attributes
    ----------
    shape : tuple (n, n_features)
    columns : list of str
    dtype : dtype
        float32 if all columns are float32, else float64.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, Linear
    >>> rng = np.random.default_rng(0)
    >>> data = pa.table({"a": rng.normal(size=500), "b": rng.normal(size=500)})
    >>> data = data.append_column("label", pa.array(np.asarray(data["a"]) > 0))
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "data.parquet"
    >>> pq.write_table(data, path, row_group_size=100)
    >>> X = kw.ParquetTable(path, columns=["a", "b"])
    >>> X.shape, X[:2].shape
    ((500, 2), (2, 2))
    >>> model = kw.MKLClassifier([RBF(), Linear()], approximation="nystroem", rank=20, random_state=0)
    >>> bool(model.fit(X, X.column("label")).score(X, X.column("label")) > 0.9)
    True
    >>> folder.cleanup()
    """

    def __init__(self, path: Any, columns: Sequence[str] | None = None) -> None:
        self._paths = _files(path)
        self._lock, self._cache = threading.Lock(), OrderedDict[int, FloatArray]()
        parquet = _parquet()
        self._metadata = {name: parquet.read_metadata(name) for name in self._paths}
        schema = _common_schema(self._metadata)
        self.columns = list(schema) if columns is None else [str(name) for name in columns]
        self.dtype = _dtype({name: _type(schema, name) for name in self.columns})
        self._groups = [
            RowGroup(name, k, meta.row_group(k).num_rows)
            for name, meta in self._metadata.items()
            for k in range(meta.num_row_groups)
        ]
        self._starts = np.cumsum([0, *(group.size for group in self._groups)])
        self.shape = (int(self._starts[-1]), len(self.columns))

    def __repr__(self) -> str:
        where = self._paths[0] if len(self._paths) == 1 else f"{len(self._paths)} files"
        return f"ParquetTable({where!r}, shape={self.shape}, {len(self._groups)} row groups)"

    def __reduce__(self) -> tuple[Any, ...]:
        return ParquetTable, (self._paths, self.columns)

    @property
    def head(self) -> Any:
        import pyarrow

        names = self.columns or []
        return pyarrow.table([pyarrow.array([], pyarrow.float64()) for _ in names], names=names)

    def column(self, name: str) -> Any:
        """A whole column of any type as an array: labels, targets or weights."""
        _type(_common_schema(self._metadata), name)
        parts = [self._read(group, [name]).column(0).to_numpy() for group in self._groups]
        return np.concatenate(parts) if parts else np.empty(0)

    def read(self, rows: slice | IntArray) -> FloatArray:
        if isinstance(rows, slice):
            return self._consecutive(rows.start, rows.stop)
        order = np.argsort(rows, kind="stable")
        wanted, out = rows[order], np.empty((len(rows), self.shape[1]), self.dtype)
        cuts = np.searchsorted(wanted, self._starts)
        for k in np.flatnonzero(np.diff(cuts)):
            some = slice(cuts[k], cuts[k + 1])
            out[order[some]] = self._group(int(k))[wanted[some] - self._starts[k]]
        return out

    def _consecutive(self, start: int, stop: int) -> FloatArray:
        out = np.empty((stop - start, self.shape[1]), self.dtype)
        first, last = np.searchsorted(self._starts, [start, stop], side="right") - 1
        for k in range(int(first), min(int(last), len(self._groups) - 1) + 1):
            low, high = max(start, self._starts[k]), min(stop, self._starts[k + 1])
            if high > low:
                out[low - start : high - start] = self._group(k)[
                    low - self._starts[k] : high - self._starts[k]
                ]
        return out

    def _group(self, k: int) -> FloatArray:
        """A row group, from memory if it was read recently."""
        with self._lock:
            if k not in self._cache:
                self._cache[k] = self._values(self._groups[k])
            self._cache.move_to_end(k)
            while len(self._cache) > CACHED:
                self._cache.popitem(last=False)
            return self._cache[k]

    def _values(self, group: RowGroup) -> FloatArray:
        found, out = self._read(group, self.columns or []), np.empty((group.size, self.shape[1]), self.dtype)
        for k, name in enumerate(self.columns or []):
            out[:, k] = found.column(name).to_numpy()  # missing numbers become NaN
        return out

    def _read(self, group: RowGroup, columns: list[str]) -> Any:
        with _parquet().ParquetFile(group.path, metadata=self._metadata[group.path]) as file:
            return file.read_row_group(group.number, columns=columns)


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(INSTALL) from error
    return pyarrow.parquet


def _files(path: Any) -> list[str]:
    """Absolute paths of the files that a path, a folder, a pattern or a list of them means."""
    if isinstance(path, list | tuple):
        return [file for one in path for file in _files(one)]
    where = Path(path)
    if where.is_dir():
        found = sorted(where.rglob("*.parquet"))
    else:
        found = sorted(map(Path, glob(str(path)))) if has_magic(str(path)) else [where]
    if not found or not all(file.is_file() for file in found):
        raise FileNotFoundError(f"no Parquet file at {str(path)!r}.")
    return [str(file.resolve()) for file in found]


def _common_schema(metadata: dict[str, Any]) -> dict[str, Any]:
    """Types of the columns, which must be the same in all files."""
    schemas = [meta.schema.to_arrow_schema() for meta in metadata.values()]
    for path, schema in zip(metadata, schemas, strict=True):
        if not schema.equals(schemas[0]):
            raise ValueError(f"{path!r} has other columns than {next(iter(metadata))!r}: {schema.names}.")
    return dict(zip(schemas[0].names, schemas[0].types, strict=True))


def _type(schema: dict[str, Any], name: str) -> Any:
    if name not in schema:
        raise ValueError(f"columns: the Parquet file has no {name!r}; it has {', '.join(map(repr, schema))}.")
    return schema[name]


def _dtype(types: dict[str, Any]) -> Any:
    """Single precision if all columns have it, else double; an error for columns that hold no numbers."""
    import pyarrow as pa

    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    for name, kind in types.items():
        if not any(test(kind) for test in numbers):
            raise ValueError(
                f"column {name!r} holds {kind}, and kernels on a ParquetTable need numbers: pass columns="
                "[...] without it."
            )
    single = all(pa.types.is_float32(kind) or pa.types.is_float16(kind) for kind in types.values())
    return np.dtype(np.float32 if single else np.float64)
