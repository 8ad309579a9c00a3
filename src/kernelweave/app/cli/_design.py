"""Tables ready to be learned from: targets, rows, and the kernels on a training part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ._columns import check_columns, check_decimals, match
from ._console import note
from ._encode import as_categories, encoded, features_of, make_encoder
from ._errors import CliError
from ._gram_design import GramDesign, gram_design
from ._kernels import choose_kernels
from ._npz import Grams, read_arrays
from ._options import KernelChoice, Reading
from ._parts import Parts
from ._paths import suffix
from ._read import Table, read_table
from ._task import Target, check_rows, infer_target, target_column


def load(path: Path, reading: Reading) -> Table | Grams:
    """What a data file holds."""
    if suffix(path) == ".npz":
        return read_arrays(path)
    return read_table(path, reading.sep, reading.encoding, reading.decimal)


@dataclass(frozen=True)
class TableDesign:
    """A table whose columns are all usable, categories as text, its targets and the names of its rows."""

    table: Table
    target: Target
    ids: np.ndarray
    reading: Reading
    choice: KernelChoice

    @property
    def n_rows(self) -> int:
        return self.table.n_rows

    def split(self, train: np.ndarray, rest: np.ndarray) -> Parts:
        """Encoded parts; means, scales and fillings are those of the training rows."""
        frame, reading = self.table.frame, self.reading
        encoder = make_encoder(frame, reading.impute and str(reading.impute), reading.scale == "standard")
        with np.errstate(over="ignore", invalid="ignore"):
            encoder.fit(frame.iloc[train])
        X, X_rest = (encoded(encoder, frame.iloc[rows]) for rows in (train, rest))
        features = features_of(encoder)
        chosen = choose_kernels(self.table, features, self.choice)
        names = [name for held in features.values() for name in held]
        return Parts(
            X, X_rest, encoder, chosen.kernels, chosen.why, chosen.groups, names, reading.ident or "row"
        )


def design(path: Path, reading: Reading, choice: KernelChoice) -> TableDesign | GramDesign:
    """A file as data to learn from, or one error about what stands in the way."""
    data = load(path, reading)
    if isinstance(data, Grams):
        return gram_design(data, reading, choice)
    check_rows(data)
    values = target_column(data.frame, reading.target, path)
    dropped = {*match(reading.drop, data.names, "--drop", path), reading.target}
    ids = np.arange(1, data.n_rows + 1)
    if reading.ident is not None:
        ids = target_column(data.frame, reading.ident, path, "--id")
        dropped.add(reading.ident)
    frame = data.frame.drop(columns=list(dropped))
    if frame.columns.empty:
        raise CliError(f"{path} has no column left to learn from beside the target {reading.target!r}.")
    categorical = match(reading.categorical, list(frame), "--categorical", path)
    whole = {reading.target: values} if reading.task != "classification" else {}
    numbers = frame.drop(columns=categorical)
    check_decimals(path, {**{name: numbers[name].to_numpy() for name in numbers}, **whole})
    keep = match(reading.keep, list(frame), "--keep", path)
    if reading.drop_rows:
        there = complete_rows(frame, values, reading.impute is not None)
        frame, values, ids = frame.iloc[there].reset_index(drop=True), values[there], ids[there]
        check_rows(replace(data, frame=frame))
    check_columns(path, frame, categorical, keep, reading.impute is not None)
    target = infer_target(values, reading.target, path, reading.task)
    frame = frame.assign(**{name: as_categories(frame[name]) for name in categorical})
    groups = {group: [name for name in held if name in frame] for group, held in data.groups.items()}
    table = Table(path, frame, {group: held for group, held in groups.items() if held})
    return TableDesign(table, target, ids, reading, choice)


def complete_rows(frame: pd.DataFrame, values: np.ndarray, imputed: bool) -> np.ndarray:
    """Rows with a target and, unless gaps are filled, a value in every column; says how many have not."""
    missing = pd.isna(values) if imputed else pd.isna(values) | frame.isna().any(axis=1).to_numpy()
    if missing.any():
        note(
            f"{int(missing.sum())} of {len(missing)} rows have missing values and are left out (--drop-rows)."
        )
    return np.flatnonzero(~missing)
