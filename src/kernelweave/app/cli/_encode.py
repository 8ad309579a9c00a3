"""From columns to the matrix a model sees, the same way at prediction as at training."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ._errors import CliError
from ._paths import listed
from ._table import Table, as_number, is_missing, kind_of, row_list

#: what a missing category is called once gaps are filled
NO_CATEGORY = "(missing)"


@dataclass(frozen=True)
class Rule:
    """How one column becomes one or more features.

    Attributes
    ----------
    name : str
    mean, scale : float
        Numbers become (value - mean) / scale.
    fill : float or None
        What stands for a missing number; None refuses them.
    categories : list of str or None
        Text becomes one feature of zeros and ones a category.
    """

    name: str
    mean: float = 0.0
    scale: float = 1.0
    fill: float | None = None
    categories: list[str] | None = None

    @property
    def features(self) -> list[str]:
        if self.categories is None:
            return [self.name]
        return [f"{self.name}={category}" for category in self.categories]


@dataclass(frozen=True)
class Encoder:
    """All rules of a model, and the classes of files it can be applied to.

    Attributes
    ----------
    rules : list of Rule
    target, ident : str or None
        Columns that are no features: what is predicted, and what names the rows.
    """

    rules: list[Rule]
    target: str | None = None
    ident: str | None = None
    ignored: list[str] = field(default_factory=list)

    @classmethod
    def fit(
        cls,
        table: Table,
        rows: np.ndarray,
        categorical: set[str],
        impute: str | None,
        scale: bool,
        **roles: Any,
    ) -> Encoder:
        """Learn means, scales and fillings from training rows; categories are those of the whole table."""
        rules = []
        for name, values in table.columns.items():
            if name in categorical:
                rules.append(Rule(name, categories=categories_of(values)))
            else:
                rules.append(number_rule(name, values[rows], impute, scale))
        return cls(rules, **roles)

    @property
    def features(self) -> list[str]:
        """Names of the columns of the matrix."""
        return [feature for rule in self.rules for feature in rule.features]

    def positions(self) -> dict[str, list[int]]:
        """Column of the file -> its columns in the matrix."""
        found: dict[str, list[int]] = {}
        start = 0
        for rule in self.rules:
            found[rule.name] = list(range(start, start + len(rule.features)))
            start += len(rule.features)
        return found

    def transform(self, table: Table, allow_unseen: bool = False) -> np.ndarray:
        """The matrix of a table, of shape (n_rows, n_features)."""
        missing = [rule.name for rule in self.rules if rule.name not in table.columns]
        if missing:
            raise CliError(
                f"{table.path} has no column {listed(missing)}, which the model was fitted on; it has "
                f"{listed(table.names)}. Give it the same columns, or fit a model on those there are."
            )
        X = np.empty((table.n_rows, len(self.features)))
        for rule, places in zip(self.rules, self.positions().values(), strict=True):
            X[:, places] = encoded(rule, table, allow_unseen)
        return X

    def to_json(self) -> dict[str, Any]:
        """The encoder in the types of JSON; `from_json` makes it again."""
        return {"kind": "table", **asdict(self)}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Encoder:
        rules = [Rule(**rule) for rule in document["rules"]]
        return cls(rules, document["target"], document["ident"], document["ignored"])


def categories_of(values: np.ndarray) -> list[str]:
    """The categories of a column, sorted; one for missing values if there are any."""
    found = sorted({category_name(value) for value in values[~is_missing(values)]})
    return [*found, NO_CATEGORY] if is_missing(values).any() else found


def category_name(value: Any) -> str:
    """A category as text; whole numbers without their decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def number_rule(name: str, values: np.ndarray, impute: str | None, scale: bool) -> Rule:
    """Mean and standard deviation of the values there are, and what fills gaps."""
    there = values[~np.isnan(values)]
    fill = None if impute is None else float(np.median(there) if impute == "median" else np.mean(there))
    if not scale:
        return Rule(name, fill=fill)
    filled = there if fill is None else np.where(np.isnan(values), fill, values)
    with np.errstate(over="ignore"):
        mean, deviation = float(filled.mean()), float(filled.std())
    if not np.isfinite(deviation):
        raise CliError(f"column {name!r} has values too large to scale: divide it by a constant first.")
    small = deviation <= 1e-12 * max(abs(mean), 1e-300)  # a constant but for rounding
    return Rule(name, mean, 1.0 if small else deviation, fill)


def encoded(rule: Rule, table: Table, allow_unseen: bool) -> np.ndarray:
    """The features of one column, shape (n_rows, n_features)."""
    values = table.columns[rule.name]
    if rule.categories is not None:
        return indicator(rule, values, table, allow_unseen)
    if kind_of(values) == "text":
        values = refuse_text(rule, values, table)
    missing = is_missing(values) if kind_of(values) == "number" else np.ones(len(values), dtype=bool)
    if kind_of(values) == "date":
        raise CliError(f"{table.path}: column {rule.name!r} holds dates, the model was fitted on numbers.")
    if np.isinf(values).any():
        raise CliError(
            f"{table.path}: column {rule.name!r} is infinite in {row_list(np.isinf(values))}: mend it."
        )
    if missing.any() and rule.fill is None:
        raise CliError(
            f"{table.path}: column {rule.name!r} has no value in {row_list(missing)}; fill it in, or fit the "
            "model with --impute median, which then fills gaps at prediction too."
        )
    filled = np.where(missing, rule.fill if rule.fill is not None else 0.0, values)
    return ((filled - rule.mean) / rule.scale)[:, None]


def refuse_text(rule: Rule, values: np.ndarray, table: Table) -> np.ndarray:
    """Numbers of a column of text, or an error with the first cell that is none."""
    numbers = [np.nan if value is None else as_number(value) for value in values]
    bad = np.array([number is None for number in numbers])
    if bad.any():
        cell = values[int(np.argmax(bad))]
        raise CliError(
            f"{table.path}: column {rule.name!r} holds text, such as {cell!r} ({row_list(bad)}), where the "
            "model was fitted on numbers: mend those cells."
        )
    return np.array(numbers, dtype=np.float64)


def indicator(rule: Rule, values: np.ndarray, table: Table, allow_unseen: bool) -> np.ndarray:
    """Zeros and ones, one column a category; categories not seen in training are refused or all zeros."""
    assert rule.categories is not None
    missing = is_missing(values)
    names = [NO_CATEGORY if gap else category_name(value) for value, gap in zip(values, missing, strict=True)]
    where = {category: place for place, category in enumerate(rule.categories)}
    unseen = np.array([name not in where for name in names])
    if unseen.any() and not allow_unseen:
        new = sorted({name for name, is_new in zip(names, unseen, strict=True) if is_new})
        raise CliError(
            f"{table.path}: column {rule.name!r} has {listed(new, 5)} ({row_list(unseen)}), unknown to the "
            f"model, which was fitted on {listed(rule.categories, 8)}: mend those cells, or count them as "
            "none of these with --allow-unseen."
        )
    X = np.zeros((len(values), len(rule.categories)))
    for row, name in enumerate(names):
        if name in where:
            X[row, where[name]] = 1.0
    return X
