"""Classification or regression: what the target column says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ._errors import CliError
from ._paths import listed
from ._read import Table, kind_of, row_list

#: whole numbers of so few different values are classes
FEW_VALUES = 10

#: fewest rows of a fit
FEWEST_ROWS = 6


@dataclass(frozen=True)
class Target:
    """The targets, what they are, and how that was decided."""

    y: np.ndarray
    task: str
    why: str

    @property
    def classes(self) -> list[str]:
        return [str(name) for name in np.unique(self.y)] if self.task == "classification" else []


def target_column(columns: Any, name: str, path: Path, option: str = "--target") -> np.ndarray:
    """The column of the targets."""
    if name in columns:
        return np.asarray(columns[name])
    close = [known for known in columns if known.lower() == name.lower()]
    meant = f" Did you mean {close[0]!r}?" if close else ""
    raise CliError(f"{path} has no column {name!r} ({option}).{meant} It has {listed(list(columns))}.")


def check_target(values: np.ndarray, name: str, path: Path) -> None:
    """Refuse targets that are missing, infinite or dates."""
    missing = pd.isna(values)
    if missing.all():
        raise CliError(f"{path}: the target column {name!r} is empty.")
    if missing.any():
        raise CliError(
            f"{path}: the target {name!r} is missing in {int(missing.sum())} of {len(missing)} rows "
            f"({row_list(missing)}); fill it in, or leave those rows out with --drop-rows."
        )
    if kind_of(values) == "date":
        raise CliError(f"{path}: the target {name!r} holds dates; turn them into numbers first.")
    if kind_of(values) == "number" and np.isinf(values).any():
        raise CliError(f"{path}: the target {name!r} is infinite in {row_list(np.isinf(values))}; mend it.")


def infer_target(values: np.ndarray, name: str, path: Path, task: str = "auto") -> Target:
    """The targets as classes or numbers."""
    check_target(values, name, path)
    kind, why = decided(values, name)
    if task != "auto":
        kind, why = task, f"--task {task}"
    if kind == "regression":
        return Target(as_numbers(values, name, path), kind, why)
    y = labels(values)
    check_classes(y, name, path, why)
    return Target(y, kind, why)


def decided(values: np.ndarray, name: str) -> tuple[str, str]:
    """The task that the values suggest, and why."""
    distinct = len(set(values.tolist()))
    if kind_of(values) == "text":
        return "classification", f"{name!r} holds text, {distinct} classes"
    whole = bool((values == np.round(values)).all())
    if distinct == 2 or (whole and distinct <= FEW_VALUES):
        return "classification", f"{name!r} has {distinct} different values"
    return "regression", f"{name!r} holds numbers, {distinct} different ones"


def as_numbers(values: np.ndarray, name: str, path: Path) -> np.ndarray:
    if kind_of(values) == "text":
        raise CliError(
            f"{path}: the target {name!r} holds text, such as {values[0]!r}, so it cannot be regressed; use "
            "--task classification."
        )
    if len(np.unique(values)) == 1:
        raise CliError(
            f"{path}: the target {name!r} is {values[0]:g} in every row: there is nothing to learn."
        )
    return values


def labels(values: np.ndarray) -> np.ndarray:
    """Class labels: whole numbers as integers, anything else as text."""
    if kind_of(values) == "number":
        whole = bool((values == np.round(values)).all())
        return values.astype(np.int64) if whole else values
    return values.astype(str)


def check_classes(y: np.ndarray, name: str, path: Path, why: str) -> None:
    """Refuse one class, classes of one sample, and classes as many as samples."""
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) == 1:
        raise CliError(
            f"{path}: the target {name!r} has one class, {classes.tolist()[0]!r}, in every row; a classifier "
            "needs at least two."
        )
    if counts.max() == 1 or len(classes) > max(len(y) // 2, 2):
        raise CliError(
            f"{path}: the target {name!r} has {len(classes)} classes in {len(y)} rows ({why}); if it is a "
            "number, use --task regression; if it names the rows, choose another --target."
        )
    if counts.min() < 2:
        lonely = [str(cls) for cls, count in zip(classes, counts, strict=True) if count < 2]
        raise CliError(
            f"{path}: class {listed(lonely, 5)} of the target {name!r} has one row; training and test part "
            "both need some: leave it out, or join it with another class."
        )


def check_rows(table: Table, needed: int = FEWEST_ROWS) -> None:
    """Refuse tables with too few rows to learn from."""
    n = table.n_rows
    if n < needed:
        raise CliError(f"{table.path} has {n} row{'s' * (n != 1)} of data; a fit needs at least {needed}.")
