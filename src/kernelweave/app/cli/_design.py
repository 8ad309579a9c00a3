"""Tables ready to be learned from: targets, rows, and the kernels on a training part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ._columns import check_columns, check_decimals
from ._console import note
from ._encode import Encoder
from ._errors import CliError
from ._gram_design import GramDesign, gram_design
from ._kernels import Chosen, choose_kernels
from ._npz import Grams, read_arrays
from ._parts import KernelChoice, Parts, Reading
from ._paths import suffix
from ._read import read_table
from ._table import Table, is_missing, match
from ._task import Target, check_rows, infer_target, target_column


def load(path: Path, reading: Reading) -> Table | Grams:
    """What a data file holds."""
    if suffix(path) == ".npz":
        return read_arrays(path)
    return read_table(path, reading.sep, reading.encoding, reading.decimal)


@dataclass(frozen=True)
class TableDesign:
    """A table whose columns are all usable, its targets and the names of its rows."""

    table: Table
    target: Target
    ids: np.ndarray
    reading: Reading
    choice: KernelChoice
    categorical: set[str]

    @property
    def n_rows(self) -> int:
        return self.table.n_rows

    def split(self, train: np.ndarray, rest: np.ndarray) -> Parts:
        """Encoded parts; means, scales and categories are those of the training rows."""
        reading, scale = self.reading, self.reading.scale == "standard"
        roles = {"target": reading.target, "ident": reading.ident, "ignored": list(reading.drop)}
        encoder = Encoder.fit(self.table, train, self.categorical, reading.impute, scale, **roles)
        X, X_rest = (encoder.transform(self.table.take(rows)) for rows in (train, rest))
        chosen = self._kernels(encoder)
        return Parts(X, X_rest, encoder, chosen.kernels, chosen.why, chosen.groups, encoder.features)

    def _kernels(self, encoder: Encoder) -> Chosen:
        choice = self.choice
        return choose_kernels(
            self.table, encoder, choice.spec, choice.groups, choice.bands, list(choice.kinds)
        )


def design(path: Path, reading: Reading, choice: KernelChoice) -> TableDesign | GramDesign:
    """A file as data to learn from, or one error about what stands in the way."""
    data = load(path, reading)
    if isinstance(data, Grams):
        return gram_design(data, reading, choice)
    check_rows(data)
    values = target_column(data.columns, reading.target, path)
    dropped = set(match(list(reading.drop), data.names, "--drop", path)) | {reading.target}
    ids = np.arange(1, data.n_rows + 1)
    if reading.ident is not None:
        ids = target_column(data.columns, reading.ident, path, "--id")
        dropped.add(reading.ident)
    table = data.without(dropped)
    if not table.columns:
        raise CliError(f"{path} has no column left to learn from beside the target {reading.target!r}.")
    categorical = set(match(list(reading.categorical), table.names, "--categorical", path))
    whole = {reading.target: values} if reading.task != "classification" else {}
    check_decimals(path, {**table.without(categorical).columns, **whole})
    keep = set(match(list(reading.keep), table.names, "--keep", path))
    if reading.drop_rows:
        there = complete_rows(table, values, reading.impute is not None)
        table, values, ids = table.take(there), values[there], ids[there]
        check_rows(table)
    check_columns(table, categorical, keep, reading.impute is not None)
    target = infer_target(values, reading.target, path, reading.task)
    return TableDesign(table, target, ids, replace(reading, drop=tuple(sorted(dropped))), choice, categorical)


def complete_rows(table: Table, values: np.ndarray, imputed: bool) -> np.ndarray:
    """Rows with a target and, unless gaps are filled, a value in every column; says how many have not."""
    missing = is_missing(values)
    if not imputed:
        for column in table.columns.values():
            missing |= is_missing(column)
    if missing.any():
        note(
            f"{int(missing.sum())} of {len(missing)} rows have missing values and are left out (--drop-rows)."
        )
    return np.flatnonzero(~missing)
