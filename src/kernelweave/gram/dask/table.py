"""Dask arrays and data frames as tables: partitions stay on the workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..._typing import FloatArray, IntArray
from ...kernels.columns import column_names
from ..tables import Table, check_numbers


class DaskTable(Table):
    """The rows of a Dask array or data frame, in partitions that are computed where they are needed.

    Unknown sizes of partitions are computed first.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n, n_features)

    Attributes
    ----------
    parts : list of dask.delayed.Delayed
    starts : ndarray of int
        First row of every partition, and n.

    Examples
    --------
    >>> import dask.array as da
    >>> table = DaskTable(da.ones((10, 2), chunks=(4, 2)))
    >>> table.shape, table.starts.tolist(), table[[0, 9]].shape
    ((10, 2), [0, 4, 8, 10], (2, 2))
    """

    on_workers = True

    def __init__(self, X: Any) -> None:
        if len(X.shape) != 2:
            raise ValueError(f"X has {len(X.shape)} axes: pass samples in rows and features in columns.")
        frame = hasattr(X, "partitions") and hasattr(X, "columns")
        self._meta = X._meta if frame else None
        self.columns = [str(name) for name in X.columns] if frame else None
        self.dtype = _dtype(list(X.dtypes) if frame else [X.dtype])
        self._set(_partitions(X, frame), None if frame else X.chunks[0], int(X.shape[1]))

    def _set(self, parts: list[Any], sizes: Sequence[Any] | None, n_features: int) -> None:
        if sizes is None or np.isnan(np.asarray(sizes, dtype=float)).any():
            sizes = _compute([_length(part) for part in parts])
        self.parts = parts
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        self.shape = (int(self.starts[-1]), n_features)

    @property
    def head(self) -> Any:
        return np.empty((0, self.shape[1])) if self._meta is None else self._meta

    def read(self, rows: slice | IntArray) -> FloatArray:
        wanted = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        order = np.argsort(wanted, kind="stable")
        some, picked = self._picked(wanted[order]), np.empty((len(wanted), self.shape[1]), self.dtype)
        if some:
            picked[order] = np.concatenate(_compute(some))
        return picked

    def take(self, rows: IntArray) -> DaskTable:
        found = object.__new__(DaskTable)
        found._meta, found.columns, found.dtype = self._meta, self.columns, self.dtype
        cuts = np.searchsorted(rows, self.starts)
        found._set(self._picked(rows), [size for size in np.diff(cuts) if size], self.shape[1])
        return found

    def _picked(self, rows: IntArray) -> list[Any]:
        """Rising positions, by partition; partitions without any are left out."""
        from dask.delayed import delayed

        cuts = np.searchsorted(rows, self.starts)
        return [
            delayed(pick)(part, rows[first:last] - start, self.dtype)
            for part, start, (first, last) in zip(
                self.parts, self.starts[:-1].tolist(), pairwise(cuts.tolist()), strict=True
            )
            if last > first
        ]

    def map(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Send the function to the partitions: only its results come back."""
        from dask.delayed import delayed

        sizes, sent = np.diff(self.starts), delayed(function, pure=False)
        parts = [part for part, size in zip(self.parts, sizes, strict=True) if size]
        return np.concatenate(_compute([delayed(evaluate)(sent, part, self.dtype) for part in parts]))

    def groups(self, count: int) -> list[slice]:
        """Consecutive partitions in at most `count` groups with about the same number of rows."""
        ideal = np.linspace(0, self.shape[0], min(count, len(self.parts)) + 1)[1:-1]
        cuts = np.unique([0, *(int(np.abs(self.starts - row).argmin()) for row in ideal), len(self.parts)])
        return [slice(*pair) for pair in pairwise(cuts.tolist()) if np.diff(self.starts[list(pair)])[0]]

    def joined(self, group: slice) -> Any:
        """The rows of some partitions, as a task."""
        from dask.delayed import delayed

        return delayed(join)(self.parts[group], self.dtype)


# -- tasks ------------------------------------------------------------------------------------


def pick(part: Any, rows: IntArray, dtype: Any) -> FloatArray:
    """Some rows of a partition."""
    return np.asarray(part.iloc[rows] if hasattr(part, "iloc") else part[rows], dtype=dtype)


def join(parts: list[Any], dtype: Any) -> FloatArray:
    """Partitions as one array of finite floats."""
    rows = np.concatenate([np.asarray(part, dtype=dtype) for part in parts])
    found: FloatArray = check_numbers(rows, column_names(parts[0]))
    return found


def evaluate(function: Any, part: Any, dtype: Any) -> FloatArray:
    """A function of one partition."""
    found: FloatArray = function(check_numbers(np.asarray(part, dtype=dtype), column_names(part)))
    return found


# -- collections ------------------------------------------------------------------------------


def _partitions(X: Any, frame: bool) -> list[Any]:
    if frame:
        return list(X.to_delayed())
    whole = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    return list(whole.to_delayed().ravel())


def _dtype(dtypes: list[Any]) -> Any:
    """Single precision where nothing is lost by it, else double."""
    kinds = {getattr(dtype, "kind", "O") for dtype in dtypes}
    if not kinds <= set("biuf"):
        raise ValueError(
            "X holds text where kernels need numbers: select numeric columns of the Dask data frame, or "
            "encode the text first."
        )
    return np.dtype(np.float32 if all(dtype == np.float32 for dtype in dtypes) else np.float64)


def _length(part: Any) -> Any:
    from dask.delayed import delayed

    return delayed(len)(part)


def _compute(tasks: list[Any]) -> list[Any]:
    import dask

    untyped: Any = dask
    return list(untyped.compute(*tasks))
