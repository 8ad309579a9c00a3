"""From the columns of a file to the matrix a model sees, in a training part and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ..._words import quoted, row_list
from ._columns import (
    Parts,
    Target,
    check_columns,
    check_decimals,
    check_rows,
    group_column,
    match,
    note_beside_curve,
    target_column,
    target_columns,
    target_of,
    unknown_in,
    warn_of_repeats,
    warn_of_survival,
    without_constants,
)
from ._console import CliError, note, suffix
from ._kernels import choose_kernels
from ._npz import GramDesign, Grams, gram_design, read_arrays
from ._options import KernelChoice, Reading
from ._read import Sheet, as_number, kind_of, read_table

#: what a missing category is called
NO_CATEGORY = "(missing)"


#: what a step of an encoder is called that leaves sequences as they are
SEQUENCES = "sequences"


def make_encoder(frame: pd.DataFrame, reading: Reading, sequences: Sequence[str] = ()) -> ColumnTransformer:
    """What encodes columns, in their order: text, which are categories, as zeros and ones, numbers scaled.

    Categories are those of the whole table; means, scales and fillings are learned by `fit`. Columns of
    `sequences` are the last ones, and stay as they are.
    """
    impute, scale = reading.impute, reading.scale == "standard"
    filling = [("fill", SimpleImputer(strategy=impute, keep_empty_features=True))] if impute else []
    steps: list[Any] = [*filling, *([("scale", StandardScaler())] if scale else [])]

    def encoder(names: list[str]) -> Any:
        if kind_of(frame[names[0]]) == "text":
            return OneHotEncoder(categories=[categories_of(frame[n]) for n in names], sparse_output=False)
        return Pipeline(steps) if steps else "passthrough"

    others = [name for name in frame.columns if name not in sequences]
    runs = [list(run) for _, run in groupby(others, lambda name: kind_of(frame[name]))]
    own = [(str(k), encoder(names), names) for k, names in enumerate(runs)]
    return ColumnTransformer([*own, *([(SEQUENCES, "passthrough", list(sequences))] if sequences else [])])


def categories_of(values: pd.Series) -> np.ndarray:
    """The categories of a column, sorted; NaN for missing values if there are any."""
    found: list[Any] = sorted(values.dropna().unique())
    return np.array([*found, np.nan] if values.isna().any() else found, dtype=object)


def as_categories(values: pd.Series) -> pd.Series:
    """A column as text; whole numbers without their decimal point."""
    names = [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in values]
    return pd.Series(names, dtype=object, index=values.index).where(values.notna(), np.nan)


def columns_of(encoder: ColumnTransformer) -> dict[str, list[Any] | None]:
    """The columns that an encoder takes, and their categories; None for numbers."""
    found: dict[str, list[Any] | None] = {}
    for _, step, names in encoder.transformers:
        known: Any = getattr(step, "categories", None)
        found |= {name: None if known is None else list(known[k]) for k, name in enumerate(names)}
    return found


def sequences_of(encoder: ColumnTransformer) -> list[str]:
    """The columns that an encoder takes for sequences."""
    return [name for step, _, names in encoder.transformers if step == SEQUENCES for name in names]


def features_of(encoder: ColumnTransformer) -> dict[str, list[str]]:
    """Column of the file -> names of its columns in the matrix."""
    return {
        name: [name] if known is None else [f"{name}={category}" for category in shown(known)]
        for name, known in columns_of(encoder).items()
    }


def shown(categories: list[Any]) -> list[str]:
    """Categories in words."""
    return [NO_CATEGORY if pd.isna(category) else str(category) for category in categories]


def encoded(encoder: ColumnTransformer, frame: pd.DataFrame) -> np.ndarray:
    """The matrix of a table, of shape (n_rows, n_features)."""
    with np.errstate(over="ignore", invalid="ignore"):
        X: np.ndarray = encoder.transform(frame)
    check_finite(encoder, X)
    return X


def check_finite(encoder: ColumnTransformer, X: np.ndarray) -> None:
    """Refuse numbers that are too large to be scaled."""
    finite = np.isfinite(X[:, : X.shape[1] - len(sequences_of(encoder))].astype(np.float64, copy=False))
    if not finite.all():
        names = [feature for features in features_of(encoder).values() for feature in features]
        bad = names[int(np.argmin(finite.all(axis=0)))]
        raise CliError(f"column {bad!r} has values too large to scale: divide it by a constant first.")


def conformed(encoder: ColumnTransformer, table: Sheet, allow_unseen: bool = False) -> pd.DataFrame:
    """The columns of new data that an encoder takes, or one error about what it cannot take."""
    columns = columns_of(encoder)
    missing = [name for name in columns if name not in table.frame]
    if missing:
        raise CliError(
            f"{table.path} has no column{'s' * (len(missing) > 1)} {quoted(missing)}, which the model was "
            f"fitted on; it has {quoted(table.names)}. Give it the same columns, or fit a model on "
            "those there are."
        )
    filled, sequences = "SimpleImputer" in str(encoder.transformers), sequences_of(encoder)

    def values(name: str, known: list[Any] | None) -> np.ndarray:
        if name in sequences:
            return sequence(table, name)
        if known is None:
            return _number(table, name, filled)
        result: np.ndarray = _category(table, name, known, allow_unseen).to_numpy()
        return result

    parts = {name: values(name, known) for name, known in columns.items()}
    return pd.DataFrame(parts, index=table.frame.index)


def sequence(table: Sheet, name: str) -> np.ndarray:
    """A column of sequences: text in every row."""
    values = table.frame[name].to_numpy()
    if kind_of(values) != "text":
        raise CliError(f"{table.path}: column {name!r} holds {kind_of(values)}s, not sequences (--sequence).")
    gaps = pd.isna(values)
    if gaps.any():
        raise CliError(
            f"{table.path}: column {name!r} has no sequence in {row_list(gaps)}; fill it in, or leave those "
            "rows out with --drop-rows."
        )
    return np.asarray(values)


def _number(table: Sheet, name: str, filled: bool) -> np.ndarray:
    """A column of numbers: finite, and without gaps unless they are filled."""
    values: np.ndarray = table.frame[name].to_numpy()
    if kind_of(values) == "date":
        raise CliError(f"{table.path}: column {name!r} holds dates, the model was fitted on numbers.")
    if kind_of(values) == "text":
        numbers = [np.nan if value is None else as_number(value) for value in values]
        bad = np.array([number is None for number in numbers])
        if bad.any():
            raise CliError(
                f"{table.path}: column {name!r} holds text, such as {values[int(np.argmax(bad))]!r} "
                f"({row_list(bad)}), where the model was fitted on numbers: correct those cells."
            )
        values = np.array(numbers, dtype=np.float64)
    if np.isinf(values).any():
        raise CliError(
            f"{table.path}: column {name!r} is infinite in {row_list(np.isinf(values))}: correct it."
        )
    if np.isnan(values).any() and not filled:
        raise CliError(
            f"{table.path}: column {name!r} has no value in {row_list(np.isnan(values))}; fill it in, or fit "
            "the model with --impute median, which then fills gaps at prediction too."
        )
    return values


def _category(table: Sheet, name: str, known: list[Any], allow_unseen: bool) -> pd.Series:
    """A column of categories, those that the model knows unless others are allowed."""
    values = as_categories(table.frame[name])
    unseen = ~values.isin(known)
    if unseen.any() and not allow_unseen:
        new = sorted(set(shown(values[unseen].tolist())))
        raise CliError(
            f"{table.path}: column {name!r} has {quoted(new, 5)} ({row_list(unseen)}), unknown to the model, "
            f"which was fitted on {quoted(shown(known), 8)}: correct those cells, or count them as none of "
            "these with --allow-unseen."
        )
    return values


# -- tables ready to be learned from ------------------------------------------------------------------


def load(path: Path, reading: Reading) -> Sheet | Grams:
    """What a data file holds."""
    if suffix(path) == ".npz":
        return read_arrays(path)
    return read_table(path, reading.sep, reading.encoding, reading.decimal)


def load_sheet(path: Path, reading: Reading) -> Sheet:
    """A file of columns, in which what names the samples stays as it is written."""
    if suffix(path) != ".npz":
        return read_table(path, reading.sep, reading.encoding, reading.decimal, reading.ident)
    held = read_arrays(path)
    if isinstance(held, Grams):
        raise CliError(f"{path} holds Gram matrices: --view and --labels take tables of columns.")
    return held


@dataclass(frozen=True)
class TableDesign:
    """A table whose columns are all usable, categories as text, its targets and the names of its rows."""

    table: Sheet
    target: Target
    ids: np.ndarray
    reading: Reading
    choice: KernelChoice
    sequences: list[str] = field(default_factory=list)
    group_of: np.ndarray | None = None

    def split(self, train: np.ndarray, rest: np.ndarray) -> Parts:
        """Encoded parts; means, scales and fillings are those of the training rows."""
        frame, reading = self.table.frame, self.reading
        encoder = make_encoder(frame, reading, self.sequences)
        with np.errstate(over="ignore", invalid="ignore"):
            encoder.fit(frame.iloc[train])
        X, X_rest = (encoded(encoder, frame.iloc[rows]) for rows in (train, rest))
        features = features_of(encoder)
        chosen = choose_kernels(self.table, features, self.choice, self.sequences)
        names = [name for held in features.values() for name in held]
        return Parts(X, X_rest, encoder, *chosen, names, reading.ident or "row")


def table_design(path: Path, reading: Reading, choice: KernelChoice) -> TableDesign | GramDesign:
    """A file as data to learn from, or one error about what stands in the way."""
    data = load(path, reading)
    if isinstance(data, Grams):
        return gram_design(data, reading, choice)
    check_rows(data)
    values = target_columns(data.frame, reading, path)
    dropped = {*match(reading.drop, data.names, "--drop", path), *values}
    ids = np.arange(1, data.n_rows + 1)
    if reading.ident is not None:
        ids = target_column(data.frame, reading.ident, path, "--id")
        dropped.add(reading.ident)
    group_of = group_column(data.frame, reading, path)
    dropped |= set() if reading.group is None else {reading.group}
    frame = data.frame.drop(columns=list(dropped))
    if frame.columns.empty:
        raise CliError(f"{path} has no column left to learn from beside the target {reading.outcome!r}.")
    categorical = match(reading.categorical, list(frame), "--categorical", path)
    sequences = match(reading.sequence, list(frame), "--sequence", path)
    whole = values if reading.task != "classification" else {}
    numbers = frame.drop(columns=[*categorical, *sequences])
    check_decimals(path, {**{name: numbers[name].to_numpy() for name in numbers}, **whole}, reading.decimal)
    keep = match(reading.keep, list(frame), "--keep", path)
    if reading.drop_rows:
        gaps = unknown_in(values) | (frame.isna().any(axis=1).to_numpy() & (reading.impute is None))
        if gaps.any():
            note(f"{gaps.sum()} of {len(gaps)} rows have missing values and are left out (--drop-rows).")
        frame, ids = frame[~gaps].reset_index(drop=True), ids[~gaps]
        values = {name: column[~gaps] for name, column in values.items()}
        group_of = None if group_of is None else group_of[~gaps]
        check_rows(replace(data, frame=frame))
    check_columns(path, frame, [*categorical, *sequences], keep, reading.impute is not None)
    target = target_of(values, reading, path)
    frame = without_constants(in_order(frame, categorical, sequences), sequences, path.name)
    note_beside_curve(list(frame), path)
    groups = {group: [name for name in held if name in frame] for group, held in data.groups.items()}
    table = Sheet(path, frame, {group: held for group, held in groups.items() if held})
    for name in sequences:
        sequence(table, name)
    warn_of_repeats(reading, ids, data.frame, path)
    warn_of_survival(target, reading.target, data.frame, path)
    return TableDesign(table, target, ids, reading, choice, sequences, group_of)


def in_order(frame: pd.DataFrame, categorical: list[str], sequences: list[str]) -> pd.DataFrame:
    """Columns ready for an encoder: categories as text, sequences at the end."""
    frame = frame.assign(**{name: as_categories(frame[name]) for name in categorical})
    return frame[[*(name for name in frame if name not in sequences), *sequences]]
