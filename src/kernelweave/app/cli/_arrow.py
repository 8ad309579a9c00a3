"""Parquet and Feather files, through pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ._csv import check_header
from ._errors import CliError
from ._table import Table


def read_arrow(path: Path, kind: str) -> Table:
    """A Parquet or Feather file, through pyarrow."""
    try:
        import pyarrow as pa
        from pyarrow import feather, parquet
    except ImportError:
        raise CliError(
            f"{path}: reading {kind} files needs pyarrow: pip install 'kernelweave[tables]', or save the "
            "table as CSV."
        ) from None
    read = parquet.read_table if kind in (".parquet", ".pq") else feather.read_table
    try:
        table = read(str(path))
    except (pa.ArrowException, OSError) as error:
        first = str(error).splitlines()[0]
        raise CliError(f"{path} is damaged, or no {kind} file ({first}): write it again.") from error
    check_header(table.column_names, path)
    if table.num_rows == 0:
        raise CliError(f"{path} has columns and no rows of data.")
    return Table(path, {name: arrow_column(table.column(name), name, path) for name in table.column_names})


def arrow_column(column: Any, name: str, path: Path) -> np.ndarray:
    """A column of an Arrow table as numbers, dates or text."""
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_timestamp(kind) or types.is_date(kind):
        return np.array(column.to_pylist(), dtype="datetime64[us]")
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return np.array([np.nan if v is None else float(v) for v in column.to_pylist()], dtype=np.float64)
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_string(kind) or types.is_large_string(kind):
        texts = np.empty(len(column), dtype=object)
        texts[:] = column.to_pylist()
        return texts
    raise CliError(f"{path}: column {name!r} holds {column.type}, neither numbers nor text: leave it out.")
