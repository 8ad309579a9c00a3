"""Tables on disk, as CSV, and on the screen."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from ..._words import counted
from ...inspection._models import fitted_model
from ._console import show
from ._facts import TRIVIAL, certificate_words, weight_headings, weight_rows

#: kernels in the summary of a fit, and the longest bar of a weight
MOST, BAR = 8, 20


#: what a spreadsheet takes for the beginning of a formula, and what says that a cell is text
FORMULA, TEXT_MARK = ("=", "+", "-", "@", "\t", "\r"), "'"

#: numbers may begin like formulas
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|-")


def harmless(cell: Any) -> Any:
    """A cell that no spreadsheet runs: text that begins like a formula, or with ', gets a ' in front.

    Numbers, also those in a column of text, stay as they are.

    Examples
    --------
    >>> [harmless(cell) for cell in ("=1+1", "'tis", "a=1", "-2.5", -2.5)]
    ["'=1+1", "''tis", 'a=1', '-2.5', -2.5]
    """
    risky = isinstance(cell, str) and cell.startswith((*FORMULA, TEXT_MARK))
    return TEXT_MARK + cell if risky and not NUMBER.fullmatch(cell) else cell


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    r"""Rows as CSV, one line per row, no cell of text a formula.

    Examples
    --------
    >>> csv_text(["a", "b"], [[1, "x,y"]])
    'a,b\n1,"x,y"\n'
    """
    lines = _Lines()
    writer = csv.writer(lines)
    writer.writerow(map(harmless, header))
    writer.writerows(map(harmless, row) for row in rows)
    return "".join(lines)


class _Lines(list[str]):
    """Lines that end in a line feed; a writer told so itself would not quote carriage returns in cells."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def table_text(ids: np.ndarray, truth: Any, columns: dict[str, np.ndarray], ident: str) -> str:
    """Predictions as CSV, one row per sample: its name or number, the truth if known, what was predicted."""
    known = {} if truth is None else truth_columns(np.asarray(truth))
    values = {ident: np.asarray(ids), **known, **columns}
    return csv_text(list(values), zip(*(cells(column) for column in values.values()), strict=True))


def truth_columns(truth: np.ndarray) -> dict[str, np.ndarray]:
    """Targets by name of their column: one, or a time and its event."""
    if truth.dtype.names is None:
        return {"truth": truth}
    return {"true time": truth["time"], "true event": truth["event"].astype(int)}


def cells(column: np.ndarray) -> list[Any]:
    """Values as Python writes them; whole floats of an identifier without their decimal point."""
    values: list[Any] = column.tolist()
    if column.dtype.kind == "f" and all(value == value and float(value).is_integer() for value in values):
        return [int(value) if abs(value) < 2**53 else value for value in values]
    return values


# -- on the screen ------------------------------------------------------------------------------------


def screen_table(
    title: str | None, headings: Sequence[str], rows: Iterable[Sequence[Any]], left: int = 1
) -> Table:
    """A table whose first columns, `left` of them, hold text and whose others hold numbers."""
    table = Table(title=title, title_justify="left")
    for k, heading in enumerate(headings):
        table.add_column(heading, justify="left" if k < left or not heading else "right")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    return table


def print_summary(facts: dict[str, Any], model: Any, folder: Path) -> None:
    """Task, method, certificate, kernels, scores and files."""
    because = facts["task_because"] + ("" if facts["task"] == "survival" else "; --task overrides")
    what = f"{facts['task'].capitalize()} of {facts['target']!r} ({because})"
    show(f"{what}: {counted(facts['n_train'], 'row')} to learn from, {facts['n_test']} held out.")
    show(f"{counted(facts['n_kernels'], 'kernel')}: {facts['kernels']}.")
    show(f"Method {facts['method']}, {counted(facts['n_machines'], 'step')}, {facts['seconds']:.1f} s.")
    for reason in facts["reasons"]:
        show(f"  - {reason}")
    show(weights_table(model))
    show(f"Scores {own_score(facts)['how']}:")
    show(scores_table(facts))
    if facts.get("verdict"):
        show(facts["verdict"], soft_wrap=True, style="bold")
    show(certificate_words(model))
    if facts["reason"]:
        show(reason_words(facts["reason"]), soft_wrap=True)
    report = ", report.html" if "report" in facts else ""
    show(f"Written to {folder}: model.kw, weights.csv, predictions.csv, settings.json{report}")


def reason_words(reason: str) -> str:
    """Why a model was taken; its scores are not those on the rows that were held out."""
    return f"Why this model (scores are of cross-validation on the training rows): {reason}"


def weights_table(model: Any, most: int = MOST) -> Table:
    """The heaviest kernels, their weights averaged over the models where there are several."""
    model = fitted_model(model)
    weights, names = np.atleast_2d(model.weights_).mean(axis=0), model.kernel_names_
    columns = [names, [f"{weight:.3g}" for weight in weights]]
    top = max(float(weights.max()), 1e-300)
    columns.append(["█" * round(BAR * max(weight, 0.0) / top) for weight in weights])
    if hasattr(model, "norms_"):
        columns.append([f"{norm:.3g}" for norm in np.atleast_2d(model.norms_).mean(axis=0)])
    order = np.argsort(-weights, kind="stable")[:most]
    headings = ["kernel", "weight", "", "norm"][: len(columns)]
    rows = ([column[m] for column in columns] for m in order)
    return screen_table(f"Heaviest of {counted(len(names), 'kernel')}", headings, rows)


def own_score(facts: dict[str, Any]) -> dict[str, Any]:
    """The main score of the model, its standard error where a report was made, and on which rows.

    Where nothing was held out, the report has a score by cross-validation, which the baselines have too.
    """
    compared = facts.get("compared")
    if compared is not None and not facts["n_test"]:
        return dict(compared)
    score, error = next(iter(facts["scores"].values())), None if compared is None else compared["error"]
    return {"how": f"on the {facts['scored_on']}", "score": score, "error": error}


def scores_table(facts: dict[str, Any]) -> Table:
    """The model and its baselines on the same rows."""
    baselines = facts.get("baselines") or [{"name": TRIVIAL[facts["task"]], "score": facts["trivial"]}]
    rows = []
    for entry in [{"name": "this model", **own_score(facts)}, *baselines]:
        error = entry.get("error")
        spread = f" ± {error:.3f}" if error and np.isfinite(error) else ""
        rows.append((entry["name"], f"{entry['score']:.3f}{spread}"))
    return screen_table(None, ["model", next(iter(facts["scores"]))], rows)


def below_trivial(facts: dict[str, Any]) -> list[str]:
    """A warning, where the model scores less than one that sees no kernel.

    Examples
    --------
    >>> facts = {"task": "regression", "scores": {"R2": -0.2}, "trivial": -0.01, "n_test": 9}
    >>> below_trivial({**facts, "scored_on": "held-out rows"})
    ['Warning: the R2 of this model, -0.200, is below the -0.010 of a model without kernels (mean).']
    """
    score, trivial = own_score(facts)["score"], facts["trivial"]
    if not score < trivial:
        return []
    first = f"Warning: the {next(iter(facts['scores']))} of this model, {score:.3f}, is below the"
    return [f"{first} {trivial:.3f} of a model without kernels ({TRIVIAL[facts['task']]})."]


def candidates_table(candidates: Iterable[dict[str, Any]]) -> Table:
    """What competed for a model, from the simplest on, with its score on rows held out in turn."""
    keys = ("C", "mean_test_score", "standard_error", "stack_share")
    rows = (
        [one["candidate"], *("" if (value := one[key]) is None else f"{value:.3g}" for key in keys)]
        for one in candidates
    )
    headings = ("candidate", "C", "score", "standard error", "share of the stack")
    return screen_table("What competed", headings, rows)


def weights_listing(model: Any) -> Table:
    """All kernels of all models."""
    found = [
        (*row[:2], f"{row[2]:.4g}", "" if row[3] is None else f"{row[3]:.4g}") for row in weight_rows(model)
    ]
    first = 0 if len({row[0] for row in found}) > 1 else 1
    rows = (row[first:] for row in found)
    return screen_table("Kernel weights", weight_headings(model)[first:], rows, left=2 - first)
