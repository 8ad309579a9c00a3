"""A table in memory, whatever file it came from: named columns of numbers, text or dates."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from ._errors import CliError
from ._paths import listed

#: what stands for "no value" in text files
MISSING = frozenset(
    {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", "nil", "?", "-", "missing"}
)

TRUTH = {"true": 1.0, "false": 0.0}

#: the points of 1.000.000,5
THOUSANDS = re.compile(r"(?<=\d)\.(?=\d{3}(\D|$))")


@dataclass(frozen=True)
class Table:
    """Columns by name: float64 (NaN is missing), text (None is missing) or datetime64.

    Attributes
    ----------
    path : Path
        The file, for messages.
    columns : dict of str -> ndarray
    groups : dict of str -> list of str
        Views the file itself declares: name -> columns.
    """

    path: Path
    columns: dict[str, np.ndarray]
    groups: dict[str, list[str]] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def take(self, rows: np.ndarray) -> Table:
        """The same columns on some of the rows."""
        return replace(self, columns={name: values[rows] for name, values in self.columns.items()})

    def without(self, names: set[str]) -> Table:
        """The table less some columns."""
        groups = {group: [name for name in held if name not in names] for group, held in self.groups.items()}
        columns = {name: values for name, values in self.columns.items() if name not in names}
        return replace(self, columns=columns, groups={group: held for group, held in groups.items() if held})


def kind_of(values: np.ndarray) -> str:
    """What a column holds: "number", "text" or "date"."""
    return {"M": "date", "f": "number"}.get(values.dtype.kind, "text")


def is_missing(values: np.ndarray) -> np.ndarray:
    """Where a column has no value."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "M":
        return np.isnat(values)
    return np.array([value is None for value in values], dtype=bool)


def from_text(cells: list[str], decimal: str = ".") -> np.ndarray:
    """A column of a text file: numbers where all cells are numbers, truth values or missing, else text.

    Examples
    --------
    >>> from_text(["1", "", "2.5"])
    array([1. , nan, 2.5])
    >>> from_text(["red", "NA"])
    array(['red', None], dtype=object)
    """
    with suppress(ValueError):
        if decimal == "." and not any("_" in cell for cell in cells):
            return np.array(cells, dtype=np.float64)  # the fast way, for columns without gaps
    stripped = [cell.strip() for cell in cells]
    numbers = [as_number(cell, decimal) for cell in stripped]
    if None not in numbers:
        return np.array(numbers, dtype=np.float64)
    texts = np.empty(len(cells), dtype=object)
    texts[:] = [None if cell.lower() in MISSING else cell for cell in stripped]
    return texts if any(text is not None for text in texts) else np.full(len(cells), np.nan)


def as_number(cell: str, decimal: str = ".") -> float | None:
    """The number a cell holds, NaN where it is missing, None where it is neither."""
    low = cell.lower()
    if low in MISSING:
        return np.nan
    if low in TRUTH:
        return TRUTH[low]
    if "_" in cell:  # 1_000 is a number to Python, an identifier in a table
        return None
    if decimal != ".":
        cell = THOUSANDS.sub("", cell) if THOUSANDS.search(cell) else cell
        cell = "no number" if "." in cell else cell.replace(decimal, ".")
    try:
        return float(cell)
    except ValueError:
        return None


def is_date(text: str) -> bool:
    """Whether a cell is a calendar date, such as 2024-03-01 or 01/03/2024."""
    for form in ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y"):
        try:
            return bool(datetime.strptime(text, form))
        except ValueError:
            continue
    try:
        return len(text) >= 8 and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def match(patterns: list[str], names: list[str], option: str, path: Path) -> list[str]:
    """Columns that names or globs stand for, in the order of the table; a pattern without any is an error."""
    chosen: set[str] = set()
    for pattern in patterns:
        hits = [name for name in names if name == pattern] or [
            name for name in names if fnmatchcase(name, pattern)
        ]
        if not hits:
            raise CliError(
                f"{option}: no column of {path.name} is called or matches {pattern!r}; "
                f"it has {listed(names)}."
            )
        chosen.update(hits)
    return [name for name in names if name in chosen]


def row_list(mask: np.ndarray, most: int = 5) -> str:
    """Rows where `mask` holds, counted from 1, for a message.

    Examples
    --------
    >>> row_list(np.array([True, False, True]))
    'rows 1, 3'
    """
    rows = (np.flatnonzero(mask) + 1).tolist()
    shown = ", ".join(map(str, rows[:most])) + (", ..." if len(rows) > most else "")
    return f"row{'s' if len(rows) > 1 else ''} {shown}"
