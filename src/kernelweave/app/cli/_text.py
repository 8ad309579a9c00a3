"""Text files by their lines and columns, in plain Python: mistakes are reported before pandas is loaded."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from ..._registry import did_you_mean
from ..._words import quoted
from ._console import TEXT, CliError, suffix

SEPARATORS = ",;\t|"

#: characters in which the separator is looked for
SAMPLE = 1 << 16


def check_names(path: Path, wanted: dict[str, str], sep: str | None, encoding: str) -> None:
    """Refuse names that are no columns of a text file; `wanted` are names and the options that give them."""
    columns = names_of(path, sep, encoding) if suffix(path) in TEXT else None
    for name, option in wanted.items():
        if columns and not {name, *(part.strip() for part in name.split(","))} & {*columns}:
            raise no_column(columns, name, path, option)


def no_column(columns: Collection[str], name: str, path: Path, option: str) -> CliError:
    """The error about a column to predict that is not there."""
    if name == "y" and option in ("--target", "--labels"):  # most likely none was named
        how = f"--labels {path.name}:COLUMN" if option == "--labels" else "--target COLUMN"
        return CliError(
            f"{path} has no column {name!r}, the one to predict where none is named: name it with {how}. It "
            f"has {quoted(columns)}."
        )
    meant = did_you_mean(name, columns)
    return CliError(f"{path} has no column {name!r} ({option}).{meant} It has {quoted(columns)}.")


def names_of(path: Path, sep: str | None, encoding: str) -> list[str]:
    """Names of the columns from the beginning of a file; none where it takes a closer look."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    utf8 = encoding.lower() in ("utf-8", "utf8")
    try:
        with opened(path, "rt", encoding="utf-8-sig" if utf8 else encoding, newline="") as file:
            text = file.read(SAMPLE)
        return first_row(
            csv.reader(io.StringIO(text, newline=""), delimiter=sep or sniff(text), skipinitialspace=True)
        )
    except (OSError, EOFError, ValueError, TypeError, LookupError, zlib.error, csv.Error):
        return []  # reading it says what is wrong


def first_row(reader: Iterator[list[str]]) -> list[str]:
    """The names in the first line that is not empty."""
    return [name.strip() for name in next((row for row in reader if row), [])]


def check_lines(text: str, path: Path, sep: str) -> list[str]:
    """The names of the columns; a row of another width, which pandas fills, is an error with its line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sep, skipinitialspace=True)
    header = first_row(reader)
    check_header(header, path)
    for row in reader:
        if len(row) != len(header) and any(cell.strip() for cell in row):
            raise CliError(
                f"{path}, line {reader.line_num}: {len(row)} cells where the first line names {len(header)} "
                f"columns; correct the line, or name the separator with --sep (now {sep!r})."
            )
    return header


def check_header(names: list[str], path: Path) -> None:
    """Refuse column names that are missing or used twice."""
    twice = sorted(name for name, times in Counter(names).items() if times > 1 and name)
    if twice:
        raise CliError(f"{path}: column name {twice[0]!r} is used more than once; rename one of the columns.")
    blank = [position for position, name in enumerate(names, 1) if not name]
    if len(blank) > 1 or (blank and blank[0] != 1):
        raise CliError(f"{path}: column {blank[-1]} has no name; give it one in the first line.")


def read_text(path: Path, encoding: str) -> str:
    """The text of a file, unpacked if gzipped, or an error with the first line that is not text."""
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise CliError(f"{path} cannot be unpacked ({error}): download it again.") from error
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
