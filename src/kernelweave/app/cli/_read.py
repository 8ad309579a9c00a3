"""Reading data files: CSV and TSV (also gzipped), Parquet, Feather, NPZ."""

from __future__ import annotations

from pathlib import Path

from ._arrow import read_arrow
from ._csv import read_csv
from ._errors import CliError
from ._paths import ARROW, TEXT, check_file, suffix
from ._table import Table

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
