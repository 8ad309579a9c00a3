"""Results of cells in CSV files: one that grows as cells end, and compressed ones of the documentation."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections import defaultdict
from collections.abc import Iterable
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
        The file; made at the first row. A name that ends in ``.gz`` is read compressed.
    *earlier : Path
        Other such files, read and never written: what is done there is done.
    """

    def __init__(self, path: Path, *earlier: Path) -> None:
        self.path = path
        self._header, self._rows, self._damaged = _read(path)
        self._earlier = {key: rows for one in earlier for key, rows in _read(one)[1].items()}

    def __contains__(self, key: str) -> bool:
        return key in self._rows or key in self._earlier

    def keys(self) -> list[str]:
        """Cells that are done, in the order they are stored."""
        return list({**self._earlier, **self._rows})

    def rows(self, keys: Iterable[str]) -> list[Row]:
        """Rows of these cells, in their order, without what the store added."""
        hidden = (KEY, COUNT)
        return [
            {name: value for name, value in row.items() if name not in hidden and value != ""}
            for key in keys
            for row in self._cell(key)
        ]

    def _cell(self, key: str) -> list[Row]:
        return self._rows.get(key, self._earlier.get(key, []))

    def add(self, key: str, rows: list[Row]) -> None:
        """Append the rows of a cell; the file is written again if they bring new columns."""
        read = [{name: value(str(one)) for name, one in row.items()} for row in rows]
        self._rows[key] = [{KEY: key, COUNT: len(rows), **row} for row in read]
        new = [name for name in _names(self._rows[key]) if name not in self._header]
        if new or self._damaged:
            self._header = [*self._header, *new]
            self._rewrite()
        else:
            with self.path.open("a", newline="", encoding="utf-8") as file:
                csv.DictWriter(file, self._header, restval="").writerows(self._rows[key])

    def save(self, path: Path, keys: Iterable[str]) -> None:
        """Write these cells to a compressed file; equal rows make equal files."""
        rows = [row for key in keys for row in self._cell(key)]
        text = io.StringIO(newline="")
        _write(text, _names(rows), rows)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))

    def _rewrite(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".tmp")
        with beside.open("w", newline="", encoding="utf-8") as file:
            _write(file, self._header, [row for rows in self._rows.values() for row in rows])
        os.replace(beside, self.path)
        self._damaged = False


def _names(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _write(file: Any, header: list[str], rows: list[Row]) -> None:
    writer = csv.DictWriter(file, header, restval="")
    writer.writeheader()
    writer.writerows(rows)


def _read(path: Path) -> tuple[list[str], dict[str, list[Row]], bool]:
    """Header, rows of complete cells, and whether there is more; lines cut short are left out."""
    lines = _lines(path)
    if not lines or KEY not in lines[0] or COUNT not in lines[0]:
        return [], {}, len(lines) > 1
    header, *others = lines
    by_key: dict[str, list[Row]] = defaultdict(list)
    for line in others:
        if len(line) == len(header):
            key = line[header.index(KEY)]
            by_key[key].append({**{n: value(text) for n, text in zip(header, line, strict=True)}, KEY: key})
    whole = {key: rows for key, rows in by_key.items() if len(rows) == rows[0][COUNT]}
    return header, whole, sum(map(len, whole.values())) != len(others)


def _lines(path: Path) -> list[list[str]]:
    if not path.exists():
        return []
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return list(csv.reader(io.StringIO(data.decode(errors="replace"), newline="")))


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
