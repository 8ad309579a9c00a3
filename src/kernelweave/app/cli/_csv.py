"""Delimited text: CSV, TSV and the like, plain or gzipped."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ._errors import CliError
from ._table import Table, from_text

SEPARATORS = ",;\t|"

#: characters in which the separator is looked for
SAMPLE = 1 << 16


def read_csv(path: Path, sep: str | None, encoding: str, decimal: str) -> Table:
    """A delimited text file whose first line names the columns."""
    text = read_text(path, encoding)
    sep = sep or sniff(text[:SAMPLE])
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sep)
    try:
        header = [name.strip() for name in next(reader, [])]
        rows = [row for row in numbered(reader, len(header), path, sep) if row]
    except csv.Error as error:
        raise CliError(
            f"{path}, line {reader.line_num}: {error}; is {sep!r} the separator (--sep)?"
        ) from None
    check_header(header, path)
    if not rows:
        raise CliError(f"{path} has a line of column names and no rows of data.")
    cells = zip(header, zip(*rows, strict=True), strict=True)
    return Table(path, {name: from_text(list(column), decimal) for name, column in cells})


def numbered(reader: Any, width: int, path: Path, sep: str) -> Iterator[list[str]]:
    """Rows of the wanted width; blank lines are left out, other widths are an error with the line."""
    for row in reader:
        if len(row) != width and any(cell.strip() for cell in row):
            raise CliError(
                f"{path}, line {reader.line_num}: {len(row)} cells where the first line names {width} "
                f"columns; mend the line, or name the separator with --sep (now {sep!r})."
            )
        yield row if len(row) == width and any(cell.strip() for cell in row) else []


def read_text(path: Path, encoding: str) -> str:
    """The text of a file, unpacked if gzipped."""
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise CliError(f"{path} cannot be unpacked ({error}): download it again.") from error
    return decoded(data, path, encoding)


def decoded(data: bytes, path: Path, encoding: str) -> str:
    """Bytes as text, or an error with the first line that is none."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    try:
        text = data.decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CliError(
            f"{path} is not {encoding} text (byte 0x{data[error.start]:02x} in line {line}): name its "
            "encoding, for example --encoding latin-1, or save it as UTF-8."
        ) from None
    except LookupError:
        raise CliError(f"--encoding {encoding}: no such encoding; try utf-8, latin-1 or cp1252.") from None
    if "\0" in text[:SAMPLE]:
        raise CliError(f"{path} is not a text file, whatever its name: write it again as CSV.")
    if not text.strip():
        raise CliError(f"{path} has no text in it: write or download it again.")
    return text


def sniff(sample: str) -> str:
    r"""The separator that splits the first lines into the same number of cells, most of them.

    Examples
    --------
    >>> sniff("a;b;c\n1,5;2;3\n")
    ';'
    """
    lines = [line for line in sample.splitlines()[:20] if line.strip()]
    lines = lines[:-1] if len(lines) > 2 else lines  # the last may be cut
    best, most = ",", 1
    for sep in SEPARATORS:
        widths = {len(row) for row in csv.reader(lines, delimiter=sep)}
        if len(widths) == 1 and max(widths) > most:
            best, most = sep, max(widths)
    return best


def check_header(names: list[str], path: Path) -> None:
    """Refuse column names that are missing or used twice."""
    twice = sorted(name for name, times in Counter(names).items() if times > 1 and name)
    if twice:
        raise CliError(f"{path}: column name {twice[0]!r} is used more than once; rename one of the columns.")
    blank = [position for position, name in enumerate(names, 1) if not name]
    if len(blank) > 1 or (blank and blank[0] != 1):
        raise CliError(f"{path}: column {blank[-1]} has no name; give it one in the first line.")
