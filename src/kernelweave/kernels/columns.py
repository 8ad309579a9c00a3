"""Which columns of the data a kernel sees: by position, name, slice, mask or selector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing

from .._registry import did_you_mean

Columns = int | str | slice | Sequence[int] | Sequence[str] | Callable[[Any], Any] | None


def is_frame(X: Any) -> bool:
    """Whether X is a data frame: of pandas, or a table of polars, pyarrow and others in memory."""
    return hasattr(X, "iloc") or is_foreign_frame(X)


def is_foreign_frame(X: Any) -> bool:
    """Whether X is a data frame, but not of pandas."""
    return _narwhals(X) is not None


def _narwhals(X: Any) -> Any:
    """A data frame other than those of pandas, under one interface; None for everything else."""
    if hasattr(X, "iloc") or not hasattr(X, "__arrow_c_stream__") or len(getattr(X, "shape", ())) != 2:
        return None
    try:
        import narwhals.stable.v2 as nw
    except ImportError as error:  # scikit-learn has it from 1.9 on
        raise ImportError(
            f"X is a {type(X).__module__.split('.')[0]} table, which needs narwhals: pip install narwhals."
        ) from error
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def column_names(X: Any) -> list[str] | None:
    """Names of the columns of a data frame, or None for plain arrays."""
    frame = _narwhals(X)
    names = getattr(X if frame is None else frame, "columns", None)
    return None if names is None else [str(name) for name in names]


def as_table(X: Any) -> Any:
    """`X` with two axes: lists become arrays, one axis becomes one column, sparse matrices become CSR."""
    if sparse.issparse(X):
        return X.tocsr()
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    if len(X.shape) == 1:
        return X.to_frame() if hasattr(X, "to_frame") else np.asarray(X)[:, None]
    if len(X.shape) != 2:
        raise ValueError(
            f"X has shape {tuple(X.shape)}: kernels take samples in rows and features in columns."
        )
    return X


def is_views(X: Any) -> bool:
    """Whether X is `Views`, which hold several tables; a column of a data frame may have any name."""
    return hasattr(type(X), "in_order_of")


def tables_of(X: Any) -> list[Any]:
    """The tables of views, or the only table."""
    return list(X.tables.values()) if is_views(X) else [X]


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix, or has a view that is one."""
    return any(map(sparse.issparse, tables_of(X)))


def numeric_positions(X: Any) -> np.ndarray:
    """Positions of the columns of numbers; every column of an array or sparse matrix."""
    if is_views(X):
        parts = zip(X.starts, X.tables.values(), strict=False)
        return np.concatenate([start + numeric_positions(table) for start, table in parts])
    frame = _narwhals(X)
    if frame is not None:
        kinds = frame.schema.values()
        return np.flatnonzero([kind.is_numeric() or str(kind) == "Boolean" for kind in kinds])
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(X, "iloc"):
        return np.arange(X.shape[1])
    kinds = [getattr(dtype, "kind", "O") for dtype in dtypes]
    # a column of objects may hold numbers alone, as of a table that had text in others
    return np.flatnonzero(
        [k in "biuf" or (k == "O" and _has_numbers(X.iloc[:, j])) for j, k in enumerate(kinds)]
    )


def _has_numbers(column: Any) -> bool:
    """Whether all objects of a column are numbers or missing, and some are numbers."""
    if column.dtype != object:
        return False
    gaps = column.isna().to_numpy()
    return not gaps.all() and all(
        gap or isinstance(value, Real | np.bool_) for value, gap in zip(column, gaps, strict=True)
    )


def take_rows(X: Any, rows: np.ndarray | slice) -> Any:
    """The rows at the positions `rows` of an array, sparse matrix or data frame."""
    return _safe_indexing(X, rows) if is_frame(X) else X[rows]


def row_positions(key: Any, n: int) -> Any:
    """A key of rows as a slice with bounds and step 1, or as positions from 0.

    Examples
    --------
    >>> row_positions(slice(None, 3), 5)
    slice(0, 3, None)
    >>> row_positions([-1], 5)
    array([4])
    """
    if isinstance(key, slice):
        start, stop, step = key.indices(n)
        return slice(start, max(start, stop)) if step == 1 else np.arange(start, stop, step)
    rows = np.asarray(key)
    if rows.dtype == bool:
        return np.flatnonzero(rows)
    found = np.atleast_1d(rows).astype(int, copy=False)
    if len(found) and not (-n <= found.min() and found.max() < n):
        raise IndexError(f"row {int(found.max())} of a table of {n}.")
    return np.where(found < 0, found + n, found)


def with_gaps(X: Any, places: np.ndarray) -> Any:
    """The rows at `places`, and a row without values for every -1 among them; zeros in a sparse matrix.

    Examples
    --------
    >>> with_gaps(np.array([[1.0], [2.0]]), np.array([1, -1]))
    array([[ 2.],
           [nan]])
    """
    there = places >= 0
    if there.all():
        return take_rows(X, places)
    if sparse.issparse(X):
        at = (np.flatnonzero(there), places[there])
        return (sparse.csr_array((np.ones(len(at[0]), X.dtype), at), (len(places), X.shape[0])) @ X).tocsr()
    if hasattr(X, "iloc"):  # of truth values with gaps pandas would make objects
        flags = [
            name for name, dtype in X.dtypes.items() if isinstance(dtype, np.dtype) and dtype.kind == "b"
        ]
        numbers = X.astype(dict.fromkeys(flags, np.float64))
        return numbers.set_axis(range(X.shape[0]), axis=0).reindex(places)
    some = take_rows(X, np.where(there, places, 0))
    frame = _narwhals(some)
    if frame is not None:
        import narwhals.stable.v2 as nw

        name = "there" + "_".join(frame.columns)  # no column has that name
        known = frame.with_columns(nw.new_series(name, there, nw.Boolean, backend=frame.implementation))
        kept = [nw.when(nw.col(name)).then(nw.col(column)).alias(column) for column in frame.columns]
        return known.select(kept).to_native()
    some = (
        some if some.dtype.kind in "fO" else some.astype(np.float64 if some.dtype.kind in "biu" else object)
    )
    some[~there] = np.nan
    return some


def split_column(X: Any, name: str) -> tuple[Any, Any]:
    """A column of a data frame, and the others."""
    frame = _narwhals(X)
    if frame is None:
        return X[name], X.drop(columns=name)
    return frame[name].to_list(), frame.drop(name).to_native()


def matching(pattern: str, names: Sequence[str]) -> list[str]:
    """The column of that name, or those that a pattern such as ``mrna_*`` stands for, in their order.

    Examples
    --------
    >>> matching("a*", ["a1", "b", "a2"]), matching("a*", ["a1", "a*"])
    (['a1', 'a2'], ['a*'])
    """
    return [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]


def resolve_columns(columns: Columns, X: Any) -> np.ndarray | None:
    """Turn a column specification into integer positions in `X` (None: all columns).

    Parameters
    ----------
    columns : int, str, slice, list of int or str, boolean mask, callable or None
        Names may be patterns, such as ``"mrna_*"``. A callable receives `X` and returns any of the others,
        so the result of `sklearn.compose.make_column_selector` works as it is.
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)

    Returns
    -------
    positions : ndarray of int, or None for every column

    Examples
    --------
    >>> import numpy as np
    >>> resolve_columns(slice(1, 3), np.zeros((2, 4)))
    array([1, 2])
    """
    if columns is None:
        return None
    if callable(columns):
        return resolve_columns(columns(X), X)
    n_columns = X.shape[1]
    if isinstance(columns, slice):
        return _slice_positions(columns, X)
    values: list[Any] = [columns] if isinstance(columns, str | int | np.integer) else list(columns)
    if len(values) == 0:
        raise ValueError("columns selects nothing: give at least one column.")
    if all(isinstance(value, str) for value in values):
        return _named_positions(values, X)
    if all(isinstance(value, bool | np.bool_) for value in values):
        if len(values) != n_columns:
            raise ValueError(f"columns: the mask has {len(values)} entries, X has {n_columns} columns.")
        return np.flatnonzero(values)
    positions = np.asarray(values)
    if positions.ndim != 1 or not np.issubdtype(positions.dtype, np.integer):
        raise ValueError(f"columns={columns!r}: expected positions, names, a slice or a mask, not a mixture.")
    if positions.min() < -n_columns or positions.max() >= n_columns:
        raise ValueError(
            f"columns={columns!r} is out of range: X has {n_columns} columns, 0 to {n_columns - 1}."
        )
    result: np.ndarray | None = positions % n_columns
    return result


def _slice_positions(columns: slice, X: Any) -> np.ndarray:
    """Positions of a slice; with names as bounds both ends are included, as in pandas."""
    start, stop = columns.start, columns.stop
    if isinstance(start, str):
        start = int(_named_positions([start], X)[0])
    if isinstance(stop, str):
        stop = int(_named_positions([stop], X)[-1]) + 1
    positions = np.arange(X.shape[1])[slice(start, stop, columns.step)]
    if positions.size == 0:
        raise ValueError(f"columns={columns!r} selects nothing: X has {X.shape[1]} columns.")
    return positions


def _named_positions(names: Sequence[str], X: Any) -> np.ndarray:
    known = column_names(X)
    if known is None:
        raise ValueError(
            f"columns={list(names)!r} are names, but X has none: pass a DataFrame or positions. In a "
            'pipeline, steps before the model keep names with .set_output(transform="pandas").'
        )
    where = {name: position for position, name in enumerate(known)}
    if all(name in where for name in names):
        return np.array([where[name] for name in names])
    found = {name: matching(name, known) for name in names}
    missing = [name for name, matches in found.items() if not matches]
    if missing:
        raise ValueError(
            f"columns: unknown columns {missing!r}: X has {known[:10]!r}{'...' if len(known) > 10 else ''}."
            f"{did_you_mean(missing[0], known)}"
        )
    return np.array(list(dict.fromkeys(where[name] for matches in found.values() for name in matches)))


def take_columns(X: Any, positions: np.ndarray | None) -> Any:
    """The columns at `positions` of an array, sparse matrix or data frame."""
    if positions is None:
        return X
    if is_views(X):
        return X.at(positions)
    if hasattr(X, "iloc"):
        return X.iloc[:, positions]
    if is_frame(X):
        return _safe_indexing(X, positions, axis=1)
    if sparse.issparse(X):
        return X.tocsc()[:, positions].tocsr()
    return np.asarray(X)[:, positions]
