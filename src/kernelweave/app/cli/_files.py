"""Files whose rows have sample IDs: each of them read once, its samples in rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..._words import listed, quoted
from ._columns import check_decimals, target_column
from ._console import CliError
from ._design import load_sheet
from ._options import Reading, Source, view_name
from ._read import Sheet, as_written, kind_of
from ._text import check_header

#: IDs that a message shows
SHOWN = 3


def with_ids(sheet: Sheet, ident: str | None) -> Sheet:
    """The table indexed by its sample IDs, which are all there and all different."""
    frame, path = sheet.frame, sheet.path
    name = id_column(sheet, ident)
    ids = as_written(frame[name])
    gaps = int(pd.isna(ids).sum())
    if gaps:
        raise CliError(f"{path}: {gaps} of {len(ids)} rows have no ID in column {name!r}: fill them in.")
    refuse_repeated(ids, f"{path}: column {name!r}")
    return replace(sheet, frame=frame.drop(columns=name).set_axis(ids, axis=0))


def id_column(sheet: Sheet, ident: str | None) -> str:
    """The column of sample IDs: that of --id, else the first one if it is text, in every row another."""
    frame, path = sheet.frame, sheet.path
    first = sheet.names[0]
    if ident is not None and (ident in frame or first != ""):
        target_column(frame, ident, path, "--id")
        return ident
    if path.suffix == ".npz":
        raise CliError(
            f"{path}: arrays have no sample IDs to join them by. Save a vector of them in the archive and "
            f"name it with --id; or, as its rows are in one order, give the file alone: kernelweave fit "
            f"{path.name}."
        )
    if kind_of(frame[first].to_numpy()) != "text":
        raise CliError(
            f"{path}: the first column, {first!r}, holds no text, so it is not taken for sample IDs: name "
            "their column with --id."
        )
    return first


def refuse_repeated(ids: Iterable[str], what: str) -> None:
    """Raise unless IDs differ."""
    counts = Counter(ids)
    repeated = [f"{label!r} ({times} times)" for label, times in counts.items() if times > 1]
    if repeated:
        raise CliError(
            f"{what}: {len(repeated)} of {len(counts)} sample IDs are there more than once, "
            f"{listed(repeated, SHOWN)}: keep one row for each sample, for example their mean. Repeated "
            "measurements of a patient need IDs of their own, and --group for the column of patients."
        )


def turned(sheet: Sheet, decimal: str) -> Sheet:
    """A table with features in rows, the first column naming them: samples in rows, indexed by their IDs."""
    path, first = sheet.path, sheet.names[0]
    values = sheet.frame.drop(columns=first)
    check_decimals(path, {name: values[name].to_numpy() for name in values}, decimal)
    odd = next((name for name in values if kind_of(values[name].to_numpy()) != "number"), None)
    if odd is not None:
        cells = [cell for cell in values[odd] if isinstance(cell, str)]
        raise CliError(
            f"{path} (--transpose): the column of sample {odd!r} holds {quoted(cells[:1])}, and values of "
            f"features are numbers; the names of features are in the first column, {first!r}."
        )
    names = [str(name) for name in as_written(sheet.frame[first])]
    check_header(names, path)
    ids = np.array([str(name) for name in values], dtype=object)
    return Sheet(path, pd.DataFrame(values.to_numpy().T, index=ids, columns=names))


@dataclass
class Files:
    """The files of a command, each of them read once.

    Attributes
    ----------
    views : dict of str to Sheet
        Of each view its own columns, indexed by sample IDs.
    whole : dict of Path to Sheet
        All columns of each file, indexed by sample IDs.
    taken : list of str
        Which columns hold the IDs, in words.
    """

    reading: Reading
    views: dict[str, Sheet] = field(default_factory=dict)
    whole: dict[Path, Sheet] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)

    def read(self, path: Path, transposed: bool = False) -> Sheet:
        """A file, indexed by sample IDs."""
        key = path.resolve()
        if key not in self.whole:
            sheet = load_sheet(path, self.reading)
            name = sheet.names[0] if transposed else id_column(sheet, self.reading.ident)
            where = "names of columns" if transposed else f"column {name!r}"
            self.taken.append(f"{where} of {path.name}")
            ident, decimal = self.reading.ident, self.reading.decimal
            self.whole[key] = turned(sheet, decimal) if transposed else with_ids(sheet, ident)
        return self.whole[key]

    def add(self, name: str, path: Path, transposed: bool) -> None:
        """The views of a file: the one of that name, or without a name all of them."""
        sheet = self.read(path, transposed)
        groups = {view: [c for c in held if c in sheet.frame] for view, held in sheet.groups.items()}
        if len(groups) > 1 and name and name not in groups:
            raise CliError(f"--view {name}={path}: the file holds {quoted(groups)}; name one of these.")
        if len(groups) > 1 and not name:
            found = groups
        else:
            alone = view_name(name, path)
            found = {alone: groups.get(alone, next(iter(groups.values()), sheet.names))}
        for view, held in found.items():
            own = f"{view}:" if len(groups) > 1 else ""  # the name of its modality, in MuData files
            frame = sheet.frame[held].set_axis([column.removeprefix(own) for column in held], axis=1)
            self.views[view] = replace(sheet, frame=frame)


def read_views(source: Source, reading: Reading) -> Files:
    """All views, and a word on where their sample IDs were found."""
    files = Files(reading)
    odd = [name for name in source.transpose if name not in source.names]
    if odd:
        raise CliError(f"--transpose {odd[0]}: no such view; the views are {quoted(source.names)}.")
    for (given, path), name in zip(source.tables, source.names, strict=True):
        files.add(given, path, name in source.transpose)
    return files


def present(sheet: Sheet) -> Sheet:
    """The rows in which something is there; others are samples that lack the view."""
    return replace(sheet, frame=sheet.frame[sheet.frame.notna().any(axis=1)])


def such_as(labels: Sequence[str]) -> str:
    """A few names, for a message."""
    return f"such as {quoted(labels[:SHOWN])}"
