"""From the columns of a file to the matrix a model sees: a `ColumnTransformer`, stored with the model."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ._errors import CliError
from ._paths import listed
from ._read import Table, as_number, kind_of, row_list

#: what a missing category is called
NO_CATEGORY = "(missing)"


def make_encoder(frame: pd.DataFrame, impute: str | None, scale: bool) -> ColumnTransformer:
    """What encodes columns, in their order: text, which are categories, as zeros and ones, numbers scaled.

    Categories are those of the whole table; means, scales and fillings are learned by `fit`.
    """
    filling = [("fill", SimpleImputer(strategy=impute, keep_empty_features=True))] if impute else []
    steps: list[Any] = [*filling, *([("scale", StandardScaler())] if scale else [])]

    def encoder(names: list[str]) -> Any:
        if kind_of(frame[names[0]]) == "text":
            known = [categories_of(frame[name]) for name in names]
            return OneHotEncoder(categories=known, sparse_output=False)
        return Pipeline(steps) if steps else "passthrough"

    runs = [list(run) for _, run in groupby(frame.columns, lambda name: kind_of(frame[name]))]
    return ColumnTransformer([(str(k), encoder(names), names) for k, names in enumerate(runs)])


def categories_of(values: pd.Series) -> np.ndarray:
    """The categories of a column, sorted; NaN for missing values if there are any."""
    found: list[Any] = sorted(values.dropna().unique())
    return np.array([*found, np.nan] if values.isna().any() else found, dtype=object)


def as_categories(values: pd.Series) -> pd.Series:
    """A column as text; whole numbers without their decimal point."""
    names = [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in values]
    return pd.Series(names, dtype=object).where(values.notna(), np.nan)


def columns_of(encoder: ColumnTransformer) -> dict[str, list[Any] | None]:
    """The columns that an encoder takes, and their categories; None for numbers."""
    found: dict[str, list[Any] | None] = {}
    for _, step, names in encoder.transformers:
        known: Any = getattr(step, "categories", None)
        found |= {name: None if known is None else list(known[k]) for k, name in enumerate(names)}
    return found


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
    if not np.isfinite(X).all():
        names = [feature for features in features_of(encoder).values() for feature in features]
        bad = names[int(np.argmin(np.isfinite(X).all(axis=0)))]
        raise CliError(f"column {bad!r} has values too large to scale: divide it by a constant first.")
    return X


def conformed(encoder: ColumnTransformer, table: Table, allow_unseen: bool = False) -> pd.DataFrame:
    """The columns of new data that an encoder takes, or one error about what it cannot take."""
    columns = columns_of(encoder)
    missing = [name for name in columns if name not in table.frame]
    if missing:
        raise CliError(
            f"{table.path} has no column {listed(missing)}, which the model was fitted on; it has "
            f"{listed(table.names)}. Give it the same columns, or fit a model on those there are."
        )
    filled = "SimpleImputer" in str(encoder.transformers)
    parts = {
        name: _number(table, name, filled) if known is None else _category(table, name, known, allow_unseen)
        for name, known in columns.items()
    }
    return pd.DataFrame(parts)


def _number(table: Table, name: str, filled: bool) -> np.ndarray:
    """A column of numbers: finite, and without gaps unless they are filled."""
    values = table.frame[name].to_numpy()
    if kind_of(values) == "date":
        raise CliError(f"{table.path}: column {name!r} holds dates, the model was fitted on numbers.")
    if kind_of(values) == "text":
        numbers = [np.nan if value is None else as_number(value) for value in values]
        bad = np.array([number is None for number in numbers])
        if bad.any():
            raise CliError(
                f"{table.path}: column {name!r} holds text, such as {values[int(np.argmax(bad))]!r} "
                f"({row_list(bad)}), where the model was fitted on numbers: mend those cells."
            )
        values = np.array(numbers, dtype=np.float64)
    if np.isinf(values).any():
        raise CliError(f"{table.path}: column {name!r} is infinite in {row_list(np.isinf(values))}: mend it.")
    if np.isnan(values).any() and not filled:
        raise CliError(
            f"{table.path}: column {name!r} has no value in {row_list(np.isnan(values))}; fill it in, or fit "
            "the model with --impute median, which then fills gaps at prediction too."
        )
    return values


def _category(table: Table, name: str, known: list[Any], allow_unseen: bool) -> pd.Series:
    """A column of categories, those that the model knows unless others are allowed."""
    values = as_categories(table.frame[name])
    unseen = ~values.isin(known)
    if unseen.any() and not allow_unseen:
        new = sorted(set(shown(values[unseen].tolist())))
        raise CliError(
            f"{table.path}: column {name!r} has {listed(new, 5)} ({row_list(unseen)}), unknown to the model, "
            f"which was fitted on {listed(shown(known), 8)}: mend those cells, or count them as none of "
            "these with --allow-unseen."
        )
    return values
