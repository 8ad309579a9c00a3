"""Tables of numbers whose rows are read when they are asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_array

from .._typing import FloatArray, IntArray
from ..kernels.columns import row_positions
from ..kernels.faults import not_finite_error

#: most rows of a table, and most bytes of rows, from which kernels take their parameters
FIT_ROWS, FIT_BYTES = 100_000, 1 << 28

#: bytes of rows read at a time
READ_BYTES = 1 << 26


class Table(ABC):
    """n rows of numbers; only rows that are asked for are in memory.

    ``table[rows]`` is an array of floats, for a slice or an array of positions. A NaN or infinite number is
    an error. The ways in which scikit-learn takes rows work too.

    Attributes
    ----------
    shape : tuple (n, n_features)
    dtype : dtype
        float64 or float32.
    columns : list of str, or None
        Names of the columns.
    """

    shape: tuple[int, int]
    dtype: Any
    columns: list[str] | None = None

    #: whether the rows are on the workers of a Dask cluster
    on_workers = False

    @abstractmethod
    def read(self, rows: slice | IntArray) -> FloatArray:
        """Some rows; a slice has bounds, and positions count from 0."""

    @property
    @abstractmethod
    def head(self) -> Any:
        """A table without rows, from which scikit-learn takes the names and the number of the columns."""

    def take(self, rows: IntArray) -> Table:
        """Some rows as a table, none of them read yet; positions must rise."""
        return SomeRows(self, rows)

    def part(self, rows: slice) -> Table:
        """Consecutive rows as a table that can be sent to another process."""
        return SomeRows(self, rows)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> FloatArray:
        if isinstance(key, tuple):  # table[rows, ...], as scikit-learn asks
            key = key[0]
        found: FloatArray = check_numbers(self.read(row_positions(key, len(self))), self.columns)
        return found

    def map(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """The results of a function on all rows, computed block by block and joined."""
        step = max(1, READ_BYTES // (8 * max(self.shape[1], 1)))
        blocks = [slice(start, min(start + step, len(self))) for start in range(0, len(self), step)]
        return np.concatenate([function(self[rows]) for rows in blocks])

    def sample(self) -> tuple[ArrayTable, IntArray]:
        """Evenly spread rows from which kernels take their parameters, and their positions; all if few."""
        most = min(FIT_ROWS, max(1000, FIT_BYTES // (8 * max(self.shape[1], 1))))
        rows = np.arange(len(self))
        if len(self) > most:
            rows = np.unique(np.linspace(0, len(self) - 1, most).astype(int))
        return ArrayTable(self[rows], self.columns), rows


class ArrayTable(Table):
    """An array as a table, for example mapped from a file; `read` returns some of its rows as floats.

    Parameters
    ----------
    values : ndarray of shape (n, n_features)
    columns : list of str, optional

    Examples
    --------
    >>> ArrayTable(np.eye(2, dtype=int))[1:]
    array([[0., 1.]])
    """

    def __init__(self, values: FloatArray, columns: list[str] | None = None) -> None:
        self.values, self.columns, self.shape = values, columns, values.shape
        self.dtype = values.dtype if values.dtype in (np.float32, np.float64) else np.dtype(np.float64)

    def read(self, rows: slice | IntArray) -> FloatArray:
        return np.asarray(self.values[rows], dtype=self.dtype)

    @property
    def head(self) -> Any:
        return self.values[:0]

    def part(self, rows: slice) -> Table:
        return ArrayTable(self.values[rows], self.columns)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.asarray(self.values, dtype=dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrayTable, (np.asarray(self.values), self.columns)  # the content of a memory map


class SomeRows(Table):
    """Some rows of a table, as a table; no row is read before it is asked for.

    Parameters
    ----------
    table : Table
    rows : slice or ndarray of int

    Examples
    --------
    >>> SomeRows(ArrayTable(np.arange(8.0).reshape(4, 2)), np.array([1, 3]))[1:]
    array([[6., 7.]])
    """

    def __init__(self, table: Table, rows: slice | IntArray) -> None:
        self.table, self.rows = table, rows
        count = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        self.shape, self.dtype, self.columns = (count, table.shape[1]), table.dtype, table.columns

    def read(self, rows: slice | IntArray) -> FloatArray:
        return self.table.read(self._there(rows))

    def _there(self, rows: slice | IntArray) -> slice | IntArray:
        if not isinstance(self.rows, slice):
            return self.rows[rows]
        first = self.rows.start
        return slice(first + rows.start, first + rows.stop) if isinstance(rows, slice) else first + rows

    @property
    def head(self) -> Any:
        return self.table.head

    def take(self, rows: IntArray) -> Table:
        return SomeRows(self.table, self._there(rows))


def check_numbers(rows: Any, columns: list[str] | None = None) -> Any:
    """Rows as finite numbers in double precision; an error that names the columns if they are not."""
    try:
        return check_array(rows, dtype=np.float64, input_name="X", ensure_min_samples=0)
    except ValueError as error:
        raise not_finite_error(rows, names=columns, unit="rows read") or error from error


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; dask is not imported to find out.

    Examples
    --------
    >>> is_dask(np.zeros(2))
    False
    """
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(X, "dask")


def computed(values: Any) -> Any:
    """Targets or weights in memory: a Dask array or series is computed."""
    return np.asarray(values.compute()) if is_dask(values) else values


def as_lazy(X: Any, mapped: bool) -> Any:
    """A Dask array or data frame, or with `mapped` an array mapped from a file, as a `Table`; else X itself.

    Examples
    --------
    >>> X = np.zeros((2, 2))
    >>> as_lazy(X, mapped=True) is X
    True
    """
    if mapped and isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "biuf":
        return ArrayTable(X)
    if not is_dask(X):
        return X
    from .dask.table import DaskTable

    return DaskTable(X)
