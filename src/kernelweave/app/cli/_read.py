"""Data files as tables of named columns, through pandas: CSV and TSV (also gzipped), Excel, Parquet, Feather.

AnnData and MuData files are tables too: the values of the variables, and the columns that describe samples.
"""

from __future__ import annotations

import csv
import importlib
import io
import re
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ._console import ANNOTATED, ARROW, EXCEL, TEXT, CliError, check_file, suffix
from ._text import SAMPLE, check_header, check_lines, read_text, sniff

KNOWN = "CSV, TSV (.csv, .tsv, .txt, also .gz), Excel (.xlsx), Parquet, Feather, NPZ, .h5ad and .h5mu"

#: what stands for "no value" in text files, in any case
MISSING = frozenset(
    {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", "nil", "?", "-", "missing"}
)

TRUTH = {"true": 1.0, "false": 0.0}

#: the points of 1.000.000,5
THOUSANDS = re.compile(r"(?<=\d)\.(?=\d{3}(\D|$))")

#: what pandas calls columns of numbers and of dates
NUMBERS = ("empty", "boolean", "integer", "floating", "decimal", "mixed-integer-float")
DATES = ("date", "datetime", "datetime64")


@dataclass(frozen=True)
class Sheet:
    """A data frame whose columns are float64 (NaN is missing), text (None is missing) or datetime64.

    Attributes
    ----------
    path : Path
        The file, for messages.
    frame : DataFrame
    groups : dict of str -> list of str
        Views the file itself declares: name -> columns.
    """

    path: Path
    frame: pd.DataFrame
    groups: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path, columns: dict[str, np.ndarray], groups: Any = None) -> Sheet:
        """A table of columns that keep their types: text stays objects."""
        frame = pd.DataFrame(
            {name: pd.Series(values, dtype=values.dtype) for name, values in columns.items()}
        )
        return cls(path, frame, groups or {})

    @property
    def n_rows(self) -> int:
        return len(self.frame)

    @property
    def names(self) -> list[str]:
        return list(self.frame.columns)


def read_table(
    path: Path, sep: str | None = None, encoding: str = "utf-8", decimal: str = ".", text: str | None = None
) -> Sheet:
    """The table in a file with named columns; archives of arrays go to `_npz.read_arrays`.

    `text` names a column that stays as it is written, such as 007.
    """
    check_file(path)
    kind = suffix(path)
    convert: Callable[..., np.ndarray]
    groups: dict[str, list[str]] = {}
    if kind in ARROW:
        frame, convert = read_arrow(path, kind), arrow_column
    elif kind in EXCEL:
        frame, convert = read_excel(path, text), excel_column
    elif kind in ANNOTATED:
        frame, groups = read_annotated(path, kind)
        convert = arrow_column
    elif kind in TEXT:
        sep = "\t" if kind in (".tsv", ".tab") and sep is None else sep
        frame, convert = read_csv(path, sep, encoding, decimal, text), partial(text_column, decimal=decimal)
    else:
        raise CliError(f"{path}: the name ends in {kind or 'nothing'!r}; kernelweave reads {KNOWN}.")
    if frame.empty:
        raise CliError(f"{path} has names of columns and no rows of data.")
    columns = {name: convert(frame[name]) for name in frame if name != text}
    kept = {name: as_written(frame[name]) if name == text else columns[name] for name in frame}
    return Sheet.of(path, kept, groups)


def as_written(values: pd.Series) -> np.ndarray:
    """A column of names: whole numbers without their decimal point, None where a name is missing."""
    cells = zip(values, values.isna(), strict=True)
    return objects(
        None
        if gap
        else str(int(cell))
        if isinstance(cell, float) and cell.is_integer()
        else str(cell).strip()
        for cell, gap in cells
    )


def arrow_column(values: pd.Series) -> np.ndarray:
    """A column of a Parquet or Feather file as numbers, dates or text."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(values.cat.categories.dtype)
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if kind in NUMBERS:
        result: np.ndarray = values.to_numpy(np.float64, na_value=np.nan)
        return result
    if kind in DATES:
        result = pd.to_datetime(values).to_numpy("datetime64[us]")
        return result
    if kind != "string":
        raise CliError(
            f"column {values.name!r} holds {values.dtype} ({kind}), neither numbers nor text: leave it out."
        )
    return objects(None if gap else cell for cell, gap in zip(values, values.isna(), strict=True))


def objects(values: Iterable[Any]) -> np.ndarray:
    """An array of objects, as they are."""
    found = list(values)
    return np.fromiter(found, dtype=object, count=len(found))


# -- text -------------------------------------------------------------------------------------


def text_column(values: pd.Series, decimal: str) -> np.ndarray:
    """A column of a text file: numbers as pandas has read them, or what else its cells may be."""
    if values.dtype.kind in "biuf":
        result: np.ndarray = values.to_numpy(np.float64)
        return result
    return from_text(
        ["" if gap else str(cell) for cell, gap in zip(values, values.isna(), strict=True)], decimal
    )


def from_text(cells: Iterable[str], decimal: str = ".") -> np.ndarray:
    """A column of a text file: numbers where all cells are numbers, truth values or missing, else text.

    Examples
    --------
    >>> from_text(["1", "", "2.5"])
    array([1. , nan, 2.5])
    >>> from_text(["red", "NA"])
    array(['red', None], dtype=object)
    """
    texts = [cell.strip() for cell in cells]
    numbers = [as_number(text, decimal) for text in texts]
    if None not in numbers:
        return np.array(numbers, dtype=np.float64)
    return objects(None if text.lower() in MISSING else text for text in texts)


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


def read_csv(
    path: Path, sep: str | None, encoding: str, decimal: str, kept: str | None = None
) -> pd.DataFrame:
    """A delimited text file whose first line names the columns; rows without any value are left out."""
    text = read_text(path, encoding)
    sep = sep or sniff(text[:SAMPLE])
    if len(sep) != 1 or len(decimal) != 1:
        raise CliError(f"--sep {sep!r}, --decimal {decimal!r}: expected one character each.")
    try:
        frame = pd.read_csv(
            io.StringIO(text), sep=sep, header=0, names=check_lines(text, path, sep), index_col=False,
            decimal=decimal, na_values=sorted(MISSING), skipinitialspace=True, low_memory=False,
            dtype=None if kept is None else {kept: str},
        )  # fmt: skip
    except (csv.Error, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise CliError(f"{path}: {error}; is {sep!r} the separator (--sep)?") from None
    return frame.dropna(how="all")


# -- Parquet and Feather ----------------------------------------------------------------------


def read_arrow(path: Path, kind: str) -> pd.DataFrame:
    """A Parquet or Feather file, through pandas and pyarrow."""
    read = pd.read_parquet if kind in (".parquet", ".pq") else pd.read_feather
    try:
        frame = read(path)
    except ImportError:
        raise CliError(
            f'{path}: reading {kind} files needs pyarrow: pip install "kernelweave[tables]", or save the '
            "table as CSV."
        ) from None
    except (ValueError, OSError) as error:
        first = str(error).splitlines()[0]
        raise CliError(f"{path} is damaged, or no {kind} file ({first}): write it again.") from error
    frame = frame if isinstance(frame.index, pd.RangeIndex) else frame.reset_index()
    frame.columns = [str(name) for name in frame.columns]
    check_header(list(frame.columns), path)
    return frame


# -- Excel, AnnData and MuData ----------------------------------------------------------------


def read_excel(path: Path, kept: str | None) -> pd.DataFrame:
    """The first sheet of an Excel file, whose first row names the columns."""
    try:
        frame = pd.read_excel(path, na_values=sorted(MISSING), dtype=None if kept is None else {kept: str})
    except ImportError as error:
        raise CliError(
            f'{path}: reading Excel files needs openpyxl: pip install "kernelweave[excel]", or save the '
            f"sheet as CSV ({error})."
        ) from None
    except (ValueError, OSError, KeyError, zipfile.BadZipFile) as error:
        raise CliError(f"{path} is damaged, or no Excel file ({error}): save it as CSV.") from error
    frame.columns = ["" if str(name).startswith("Unnamed: ") else str(name).strip() for name in frame.columns]
    check_header(list(frame.columns), path)
    return frame.dropna(how="all")


def excel_column(values: pd.Series) -> np.ndarray:
    """A column of a sheet as numbers, dates or text."""
    return arrow_column(values) if values.dtype.kind == "M" else text_column(values, ".")


def read_annotated(path: Path, kind: str) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """The variables of an AnnData file, or of every modality of a MuData file, and what it says of samples.

    The names of the samples are the first column.
    """
    module = "anndata" if kind == ".h5ad" else "mudata"
    try:
        reader = importlib.import_module(module)
    except ImportError:
        raise CliError(
            f'{path}: reading {kind} files needs {module}: pip install "kernelweave[omics]".'
        ) from None
    try:
        held = reader.read_h5ad(path) if kind == ".h5ad" else reader.read_h5mu(path)
    except (OSError, ValueError, KeyError) as error:
        raise CliError(f"{path} is damaged, or no {kind} file ({error}): write it again.") from error
    parts = {"X": held} if kind == ".h5ad" else dict(held.mod)
    tables = {name: values_of(part, path).reindex(held.obs_names) for name, part in parts.items()}
    if len(tables) > 1:
        tables = {name: table.add_prefix(f"{name}:") for name, table in tables.items()}
    ids = pd.DataFrame({str(held.obs.index.name or "sample"): held.obs_names}, index=held.obs_names)
    frame = pd.concat([ids, *tables.values(), held.obs], axis=1)
    frame.columns = [str(name) for name in frame.columns]
    check_header(list(frame.columns), path)
    return frame, {name: list(map(str, table.columns)) for name, table in tables.items()}


def values_of(part: Any, path: Path) -> pd.DataFrame:
    """The matrix X of an AnnData object, samples in rows."""
    if part.X is None:
        raise CliError(f"{path} has no matrix X: write one of its layers there.")
    X = part.X.toarray() if hasattr(part.X, "toarray") else np.asarray(part.X)
    return pd.DataFrame(X, index=part.obs_names, columns=part.var_names)


# -- columns ----------------------------------------------------------------------------------


def kind_of(values: Any) -> str:
    """What a column holds: "number", "text" or "date"."""
    return {"M": "date", "f": "number"}.get(values.dtype.kind, "text")
