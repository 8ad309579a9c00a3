"""Results of cells in a CSV file that is added to as they come."""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from .experiment import Row

KEY, COUNT = "key", "rows"


class Store:
    """Rows of cells in a CSV file; a cell is done when all its rows are there.

    Each row carries the cell's key and the number of rows the cell has, so that a cell cut short by a kill is
    seen and done again.

    Parameters
    ----------
    path : Path
        The file; made at the first row.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._header, found = _read(path)
        by_key: dict[str, list[Row]] = defaultdict(list)
        for row in found:
            by_key[row[KEY]].append(row)
        self._rows = {key: rows for key, rows in by_key.items() if len(rows) == rows[0][COUNT]}
        self._damaged = sum(map(len, self._rows.values())) != _count_lines(path)

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def rows(self, keys: list[str]) -> list[Row]:
        """Rows of these cells, in their order, without what the store added."""
        hidden = (KEY, COUNT)
        return [
            {name: value for name, value in row.items() if name not in hidden and value != ""}
            for key in keys
            for row in self._rows.get(key, [])
        ]

    def add(self, key: str, rows: list[Row]) -> None:
        """Append the rows of a cell; the file is written anew if they bring new columns."""
        self._rows[key] = [{KEY: key, COUNT: len(rows), **row} for row in rows]
        names = list(dict.fromkeys(name for row in self._rows[key] for name in row))
        new = [name for name in names if name not in self._header]
        if new or self._damaged:
            self._header = [*self._header, *new]
            self._rewrite()
        else:
            with self.path.open("a", newline="", encoding="utf-8") as file:
                csv.DictWriter(file, self._header, restval="").writerows(self._rows[key])

    def _rewrite(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".tmp")
        with beside.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self._header, restval="")
            writer.writeheader()
            for rows in self._rows.values():
                writer.writerows(rows)
        os.replace(beside, self.path)
        self._damaged = False


def _read(path: Path) -> tuple[list[str], list[Row]]:
    """Header and complete rows; a line cut short has too few cells, and is left out."""
    if not path.exists():
        return [], []
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    if not lines or KEY not in lines[0] or COUNT not in lines[0]:
        return [], []
    header = lines[0]
    whole = [line for line in lines[1:] if len(line) == len(header)]
    rows = [{n: value(text) for n, text in zip(header, line, strict=True)} for line in whole]
    return header, [{**row, KEY: line[header.index(KEY)]} for row, line in zip(rows, whole, strict=True)]


def _count_lines(path: Path) -> int:
    if not path.exists():
        return 0
    with path.open(newline="", encoding="utf-8") as file:
        return max(sum(1 for _ in csv.reader(file)) - 1, 0)


def value(text: str) -> Any:
    """A cell's text as a whole number, a number, a truth value, or itself.

    Examples
    --------
    >>> value("3"), value("0.5"), value("True"), value("l1")
    (3, 0.5, True, 'l1')
    """
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
