"""Tables on disk: weights and predictions as CSV, the same everywhere."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ._bundle import write_text

#: weights below this share of the largest count as zero
LIVE = 1e-6


#: what a spreadsheet takes for the beginning of a formula, and what says that a cell is text
FORMULA, TEXT_MARK = ("=", "+", "-", "@", "\t", "\r"), "'"

#: numbers may begin like formulas
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|-")


def guarded(cell: Any) -> Any:
    """A cell that no spreadsheet runs: text that begins like a formula, or with ', gets a ' in front.

    `unguarded` takes it away again. Numbers, also those in a column of text, stay as they are.

    Examples
    --------
    >>> [guarded(cell) for cell in ("=1+1", "'tis", "a=1", "-2.5", -2.5)]
    ["'=1+1", "''tis", 'a=1', '-2.5', -2.5]
    """
    risky = isinstance(cell, str) and cell.startswith((*FORMULA, TEXT_MARK))
    return TEXT_MARK + cell if risky and not NUMBER.fullmatch(cell) else cell


def unguarded(cell: str) -> str:
    """The text of a cell that `guarded` has written.

    Examples
    --------
    >>> unguarded("'=1+1"), unguarded("a")
    ('=1+1', 'a')
    """
    return cell.removeprefix(TEXT_MARK)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    r"""Rows as CSV, one line per row, no cell of text a formula.

    Examples
    --------
    >>> csv_text(["a", "b"], [[1, "x,y"]])
    'a,b\n1,"x,y"\n'
    """
    lines = _Lines()
    writer = csv.writer(lines)
    writer.writerow(map(guarded, header))
    writer.writerows(map(guarded, row) for row in rows)
    return "".join(lines)


class _Lines(list[str]):
    """Lines that end in a line feed; a writer told so itself would not quote carriage returns in cells."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A CSV file that takes the place of an older one at once."""
    write_text(path, csv_text(header, rows))


def weight_rows(model: Any) -> list[tuple[str, str, float, float | None]]:
    """Model, kernel, weight and component norm, the heaviest kernels first."""
    weights = np.atleast_2d(model.weights_)
    norms = np.atleast_2d(model.norms_) if hasattr(model, "norms_") else None
    labels = model_labels(model, len(weights))
    order = np.argsort(-weights.max(axis=0), kind="stable")
    return [
        (
            labels[k],
            model.kernel_names_[m],
            float(weights[k, m]),
            None if norms is None else float(norms[k, m]),
        )
        for k in range(len(weights))
        for m in order
    ]


def model_labels(model: Any, count: int) -> list[str]:
    """Names of the models of a fit, where there are several: classes, pairs of them, outputs."""
    from ...estimators._base import model_names

    return [""] if count == 1 else [str(name) for name in model_names(model)]


def live_kernels(model: Any) -> int:
    """Kernels that carry weight in any of the models."""
    weights = np.atleast_2d(model.weights_)
    return int((weights > LIVE * max(weights.max(), 1e-300)).any(axis=0).sum())


def predictions(model: Any, X: Any) -> dict[str, np.ndarray]:
    """Predictions by name of the column they go to, with probabilities or deviations where there are any."""
    if hasattr(model, "classes_"):
        columns = {"prediction": model.predict(X)}
        if hasattr(model, "predict_proba"):
            P = model.predict_proba(X)
            columns |= {f"probability {name}": P[:, k] for k, name in enumerate(model.classes_)}
        return columns
    if "EmpiricalBayes" in type(model).__name__:
        mean, deviation = model.predict(X, return_std=True)
        return {"prediction": mean, "deviation": deviation}
    return {"prediction": model.predict(X)}


def table_text(ids: np.ndarray, truth: Any, columns: dict[str, np.ndarray], ident: str) -> str:
    """Predictions as CSV, one row per sample: its name or number, the truth if known, what was predicted."""
    known = {} if truth is None else {"truth": np.asarray(truth)}
    values = {ident: np.asarray(ids), **known, **columns}
    return csv_text(list(values), zip(*(cells(column) for column in values.values()), strict=True))


def cells(column: np.ndarray) -> list[Any]:
    """Values as Python writes them; whole floats of an identifier without their decimal point."""
    listed = column.tolist()
    if column.dtype.kind == "f" and all(value == value and float(value).is_integer() for value in listed):
        return [int(value) if abs(value) < 2**53 else value for value in listed]
    return listed
