"""What is wrong with a table of data: the columns at fault, how many rows, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from .._gaps import is_missing
from .._words import counted, listed, row_list
from .columns import column_names

FILL = "fill gaps, for example with make_pipeline(SimpleImputer(), model), or leave out those rows or columns"
MEND = "mend or clip these values, or leave out those rows or columns"
LEAVE_OUT = "or leave those columns out (kernels select numeric columns with `columns=`)"
AS_NUMBERS = f"turn dates and times into numbers first (days since a start, month, hour), {LEAVE_OUT}"
CELLS = "correct these cells (NaN where there is no value), or leave the column out"
OBJECTS = "what float() takes as its argument must be a string or a number"
ENCODE = f"encode text as numbers first (OneHotEncoder in a pipeline), {LEAVE_OUT}"

#: share of cells that are numbers from which a column of text is meant to hold numbers
MOSTLY = 0.5


def is_pandas(X: Any) -> bool:
    """Whether X is a table of pandas or like one."""
    return hasattr(X, "iloc") and hasattr(X, "columns")


def column_label(X: Any, j: int, positions: Sequence[int] | None = None) -> str:
    """A column as a message names it: by its own name in a data frame, by its position in an array."""
    names = column_names(X)
    return str(j if positions is None else int(positions[j])) if names is None else repr(names[j])


def not_finite_error(
    X: Any, positions: Sequence[int] | None = None, names: Sequence[str] | None = None, unit: str = "rows"
) -> ValueError | None:
    """The error about missing or infinite numbers in a table; None where all are finite.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, n_features)
        Columns that hold no numbers are not looked at.
    positions : sequence of int, optional
        Where the columns stand in the user's table.
    names : sequence of str, optional
        Names of the columns, where X is an array without.
    unit : str, default="rows"
        What the rows of X are among those of the user.

    Examples
    --------
    >>> str(not_finite_error(np.array([[1.0, np.nan], [2.0, 3.0]])))
    'Input X contains NaN in column 1 (1 of 2 rows): fill gaps, for example with ...'
    """
    missing, infinite = np.array([_faults(column) for column in _columns(X)]).reshape(-1, 2).T
    for counts, words, remedy in (
        (missing, "NaN", FILL),
        (infinite, "infinity or a value too large for dtype('float64')", MEND),
    ):
        at = np.flatnonzero(counts).tolist()
        if len(at):
            labels = [column_label(X, j, positions) if names is None else repr(names[j]) for j in at]
            found = [
                f"{label} ({counts[j]} of {X.shape[0]} {unit})" for label, j in zip(labels, at, strict=True)
            ]
            return ValueError(
                f"Input X contains {words} in column{'s' * (len(at) > 1)} {listed(found)}: {remedy}."
            )
    return None


def _columns(X: Any) -> Any:
    """The columns of a table, one after another; of a sparse matrix, what is stored of them."""
    if sparse.issparse(X):
        return (column.data for column in (X.tocsc()[:, [j]] for j in range(X.shape[1])))
    if is_pandas(X):
        return (X.iloc[:, j] for j in range(X.shape[1]))
    return np.asarray(X).T


def _faults(column: Any) -> tuple[int, int]:
    """How many entries of a column are missing, and how many are infinite."""
    missing = np.asarray(column.isna()) if hasattr(column, "isna") else is_missing(np.asarray(column))
    values = as_floats(column if not missing.any() else np.asarray(column)[~missing])
    return int(missing.sum()), 0 if values is None else int(np.isinf(values).sum())


def as_floats(column: Any) -> np.ndarray | None:
    """A column as floats; None where it holds text, dates or anything else that is no number."""
    values = np.asarray(column)
    if values.dtype.kind in "mM":
        return None
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def not_numbers_error(X: Any, positions: Sequence[int] | None = None) -> ValueError | TypeError | None:
    """The error about columns of dates, text or other objects where numbers are needed; None without any.

    Examples
    --------
    >>> str(not_numbers_error(np.array([["red", 1.0], ["blue", 2.0]], dtype=object)))
    "X: column 0 holds text, such as 'red', not numbers: encode text ..."
    """
    slips = slips_error(X, positions)
    if slips is not None:
        return slips
    found, remedies = [], []
    for j, column in enumerate(_columns(X)):
        values = np.asarray(column).ravel()
        there = values[~is_missing(values)]
        if as_floats(there) is None and len(there):
            odd = next(value for value in there if as_floats([value]) is None)
            what, remedy = _kind(odd)
            found.append(f"column {column_label(X, j, positions)} holds {what}, such as {str(odd)[:19]!r}")
            remedies.append(remedy)
    if not found:
        return None
    error = TypeError if OBJECTS in remedies else ValueError
    return error(f"X: {listed(found)}, not numbers: {'; '.join(dict.fromkeys(remedies))}.")


def slips_error(X: Any, positions: Sequence[int] | None = None) -> ValueError | None:
    """The error about columns of numbers in which some cells hold text; None without any.

    Examples
    --------
    >>> str(slips_error(np.array([[1.0], [2.0], ["n/a"]], dtype=object)))
    "X: column 0 holds numbers, but text in 1 cell, such as 'n/a' (row 3): correct ..."
    """
    found = []
    for j, column in enumerate(_columns(X)):
        values = np.asarray(column).ravel()
        if values.dtype.kind in "OUST":
            bad = np.array([isinstance(value, str) and as_floats(value) is None for value in values])
            slip = slip_in(values, bad) if as_floats(values[~bad & ~is_missing(values)]) is not None else None
            found += [f"column {column_label(X, j, positions)} {slip}"] if slip else []
    return ValueError(f"X: {listed(found)}: {CELLS}.") if found else None


def slip_in(values: np.ndarray, bad: np.ndarray) -> str | None:
    """What a column holds that is text in the `bad` cells, and numbers in most others that have a value.

    Examples
    --------
    >>> slip_in(np.array(["1", "2", "3?", None], dtype=object), np.array([False, False, True, False]))
    "holds numbers, but text in 1 cell, such as '3?' (row 3)"
    """
    count = int(np.count_nonzero(bad))
    if not 0 < count <= (1 - MOSTLY) * np.count_nonzero(~is_missing(values)):
        return None
    slip = str(values[int(np.argmax(bad))])
    return f"holds numbers, but text in {counted(count, 'cell')}, such as {slip!r} ({row_list(bad)})"


def _kind(value: Any) -> tuple[str, str]:
    """What a value that is no number is, and what to do about it."""
    if isinstance(value, np.datetime64 | np.timedelta64) or hasattr(value, "isoformat"):
        return "dates or times", AS_NUMBERS
    return ("text", ENCODE) if isinstance(value, str) else (f"{type(value).__name__} objects", OBJECTS)


def unusable_error(X: Any, positions: Sequence[int] | None = None) -> ValueError | TypeError | None:
    """The error about columns that are not finite numbers, whatever they are instead."""
    return not_numbers_error(X, positions) or not_finite_error(X, positions)


def refuse_dates(X: Any, positions: Sequence[int] | None = None) -> None:
    """Raise if a column has the type of dates or durations: as numbers they would be nanoseconds."""
    dtypes = X.dtypes if is_pandas(X) else [getattr(X, "dtype", None)]
    if any(getattr(dtype, "kind", "O") in "mM" for dtype in dtypes):
        dated = [j for j, dtype in enumerate(X.dtypes) if dtype.kind in "mM"] if is_pandas(X) else None
        error = not_numbers_error(X if dated is None else X.iloc[:, dated], positions)
        if error is not None:
            raise error
