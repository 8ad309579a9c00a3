"""The short account of a fit on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from ._console import out as console
from ._facts import certificate_words, top_kernels

#: kernels shown
MOST = 8

BAR = 20


def print_summary(facts: dict[str, Any], model: Any, folder: Path) -> None:
    """Task, method, certificate, kernels, scores and files."""
    screen = console()
    for line in header_lines(facts):
        screen.print(line, markup=False, highlight=False)
    screen.print(weights_table(model))
    screen.print(f"Scores on the {facts['scored_on']}:", markup=False, highlight=False)
    screen.print(scores_table(facts))
    screen.print(certificate_words(model), markup=False, highlight=False)
    names = "model.kw, weights.csv, predictions.csv, settings.json" + (
        ", report.html" if "report" in facts else ""
    )
    screen.print(f"Written to {folder}: {names}", markup=False, highlight=False)


def header_lines(facts: dict[str, Any]) -> list[str]:
    """What was fitted, and why so."""
    what = f"{facts['task'].capitalize()} of {facts['target']!r} ({facts['task_because']}; --task overrides)"
    lines = [
        f"{what}: {facts['n_train']} rows to learn from, {facts['n_test']} held out.",
        f"{facts['n_kernels']} kernels: {facts['kernels']}.",
        f"Method {facts['method']}, {facts['n_machines']} machines, {facts['seconds']:.1f} s.",
    ]
    return [*lines, *(f"  - {reason}" for reason in facts["reasons"])]


def weights_table(model: Any, most: int = MOST) -> Table:
    """The heaviest kernels, their weights averaged over the models where there are several."""
    weights, names = np.atleast_2d(model.weights_).mean(axis=0), model.kernel_names_
    order = np.argsort(-weights, kind="stable")[:most]
    norms = np.atleast_2d(model.norms_).mean(axis=0) if hasattr(model, "norms_") else None
    table = Table(title=f"Heaviest of {len(names)} kernels", title_justify="left")
    for heading in ("kernel", "weight", ""):
        table.add_column(heading, justify="right" if heading == "weight" else "left")
    if norms is not None:
        table.add_column("norm", justify="right")
    top = max(float(weights.max()), 1e-300)
    for m in order:
        cells = [Text(names[m]), f"{weights[m]:.3g}", "█" * round(BAR * max(weights[m], 0.0) / top)]
        table.add_row(*cells, *([] if norms is None else [f"{norms[m]:.3g}"]))
    return table


def scores_table(facts: dict[str, Any]) -> Table:
    """The model and its baselines on the same rows."""
    metric, value = next(iter(facts["scores"].items()))
    table = Table()
    table.add_column("model")
    table.add_column(metric, justify="right")
    table.add_row("this model", f"{value:.3f}")
    baselines = facts.get("baselines") or [
        {"name": "majority class" if facts["task"] == "classification" else "mean", "score": facts["trivial"]}
    ]
    for entry in baselines:
        error = entry.get("error")
        table.add_row(Text(entry["name"]), f"{entry['score']:.3f}" + (f" ± {error:.3f}" if error else ""))
    return table


def weights_listing(model: Any) -> Table:
    """All kernels of all models."""
    rows = top_kernels(model)
    several = len({row["model"] for row in rows}) > 1
    table = Table(title="Kernel weights", title_justify="left")
    for heading in (["model"] if several else []) + ["kernel", "weight", "norm"]:
        table.add_column(heading, justify="right" if heading in ("weight", "norm") else "left")
    for row in rows:
        norm = "" if row["norm"] is None else f"{row['norm']:.4g}"
        cells: list[Any] = [Text(row["kernel"]), f"{row['weight']:.4g}", norm]
        table.add_row(*([Text(row["model"])] if several else []), *cells)
    return table
