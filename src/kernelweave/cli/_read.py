"""Reading data files: CSV and TSV (also gzipped), Parquet, Feather, NPZ."""

from __future__ import annotations

from pathlib import Path

from ._arrow import read_arrow
from ._csv import read_csv
from ._errors import CliError
from ._table import Table, listed

TEXT = (".csv", ".tsv", ".txt", ".tab", ".data")
ARROW = (".parquet", ".pq", ".feather", ".arrow")
KNOWN = "CSV, TSV (.csv, .tsv, .txt, also .gz), Parquet, Feather and NPZ"


def read_table(path: Path, sep: str | None = None, encoding: str = "utf-8", decimal: str = ".") -> Table:
    """The table in a file with named columns; archives of arrays go to `_npz.read_arrays`."""
    check_file(path)
    kind = suffix(path)
    if kind in ARROW:
        return read_arrow(path, kind)
    if kind not in TEXT:
        raise CliError(f"{path}: the name ends in {kind or 'nothing'!r}; kernelweave reads {KNOWN}.")
    return read_csv(path, "\t" if kind in (".tsv", ".tab") and sep is None else sep, encoding, decimal)


def suffix(path: Path) -> str:
    """The ending that says what a file is, without .gz."""
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def check_file(path: Path) -> None:
    """Refuse what is not a file with something in it."""
    try:
        if path.is_dir():
            raise CliError(f"{path} is a folder: name the data file in it. {inside(path)}")
        if not path.exists():
            raise CliError(f"{path} does not exist: check the name. {inside(path.parent)}")
        if path.stat().st_size == 0:
            raise CliError(f"{path} is empty (0 bytes): write or download it again.")
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise CliError(f"{path} cannot be read ({error.strerror}): check its permissions.") from error


def inside(folder: Path) -> str:
    """The data files of a folder, for a message."""
    try:
        names = sorted(entry.name for entry in folder.iterdir() if suffix(entry) in (*TEXT, *ARROW, ".npz"))
    except OSError:
        return f"There is no folder {folder}."
    return f"Data files there: {listed(names, 5)}." if names else "There are no data files there."
