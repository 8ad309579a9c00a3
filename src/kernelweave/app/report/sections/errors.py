"""Where the model is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..data import Confusion, Novelty, Residuals, Samples
from ..figures import Bar, Point, bars, heatmap, scatter
from ..html import Html, join, tag
from ..numbers import count, fixed, number, percent
from .parts import Cell, details, figure, lead, table

if TYPE_CHECKING:
    from ..report import Report


def errors(report: Report) -> Html | None:
    """Confusion, residuals, or values of a detector."""
    found = report.errors
    if isinstance(found, Confusion):
        return _confusion(found)
    if isinstance(found, Residuals):
        return _residuals(found, report.samples)
    return _novelty(found) if isinstance(found, Novelty) else None


# -- classification -----------------------------------------------------------------------------


def _confusion(found: Confusion) -> Html:
    counts, labels = found.counts, found.labels
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    right, total = int(np.trace(counts)), int(counts.sum())
    drawing = heatmap(
        "confusion-figure",
        "True and predicted classes",
        f"{right} of {total} samples are right.",
        shares,
        [f"true {label}" for label in labels],
        labels,
        lambda i, j: (
            f"true {labels[i]}, predicted {labels[j]}: {counts[i, j]}, {percent(float(shares[i, j]))}"
        ),
        words=(lambda i, j: str(counts[i, j])) if len(labels) <= 20 else None,
        cell=max(16, min(88, 480 // len(labels))),
    )
    caption = (
        f"Counts of {found.part} samples: rows are true classes, columns predicted ones; darker is a larger "
        "share of the true class."
    )
    shown = figure(drawing, caption, scroll="True and predicted classes, figure")
    words = f"{right} of {count(total, f'{found.part} sample')} are right. {_worst(found, shares)}"
    return join([lead(words), shown, details("Classes as a table", _class_table(found))])


def _worst(found: Confusion, shares: np.ndarray) -> str:
    """The most frequent confusion."""
    off = found.counts - np.diag(np.diag(found.counts))
    if not off.any():
        return "No sample is confused with another class."
    i, j = np.unravel_index(int(off.argmax()), off.shape)
    share = percent(float(shares[i, j]))
    taken = f"Most often {found.labels[i]} is taken for {found.labels[j]}"
    return f"{taken}: {count(int(off[i, j]), 'time')}, {share} of its samples."


def _class_table(found: Confusion) -> Html:
    counts = found.counts
    rows: list[list[Cell]] = []
    for k, label in enumerate(found.labels):
        hits, true, predicted = int(counts[k, k]), int(counts[k].sum()), int(counts[:, k].sum())
        recall, precision = hits / true if true else np.nan, hits / predicted if predicted else np.nan
        cells = [(str(true), true), (fixed(recall), recall), (fixed(precision), precision)]
        rows.append([label, *cells, *[(str(n), int(n)) for n in counts[k]]])
    heads = ["True class", "Samples", "Recall", "Precision", *[f"As {label}" for label in found.labels]]
    return table("confusion-table", "Samples by true and predicted class", heads, rows)


# -- regression ---------------------------------------------------------------------------------


def _residuals(found: Residuals, picked: Samples | None) -> Html:
    drawings = [_against(found, k, picked) for k in range(min(len(found.outputs), 3))]
    residuals = found.observed - found.predicted
    spread = [number(float(np.sqrt((row**2).mean()))) for row in residuals]
    words = f"The root mean square error is {', '.join(spread)} on the {found.part} samples."
    if found.observed.shape[1] < found.n_all:
        words += f" {found.observed.shape[1]} of {found.n_all} samples are drawn, evenly spread."
    parts = [lead(words), *drawings, _spread(found)]
    return join([*parts, details("Largest residuals as a table", _table(found))])


def _against(found: Residuals, k: int, picked: Samples | None) -> Html:
    keys = {} if picked is None or k else {label: row for row, label in enumerate(picked.labels)}
    several = len(found.outputs) > 1
    name = f" of output {found.outputs[k]}" if several else ""
    points = [
        Point(
            float(p),
            float(o),
            f"sample {label}: observed {number(o)}, predicted {number(p)}",
            "",
            keys.get(label),
        )
        for p, o, label in zip(found.predicted[k], found.observed[k], found.labels, strict=True)
    ]
    r = float(np.corrcoef(found.predicted[k], found.observed[k])[0, 1]) if np.ptp(found.predicted[k]) else 0.0
    caption = f"Observed against predicted values{name}; on the line they agree (correlation {fixed(r, 2)})."
    drawing = scatter(
        f"residual-figure-{k}",
        f"Observed and predicted values{name}",
        caption,
        points,
        x_label="predicted",
        y_label="observed",
        diagonal=True,
    )
    return figure(drawing, caption)


def _spread(found: Residuals) -> Html:
    """Residuals against predictions of the first output: what a good model leaves is shapeless."""
    residuals = found.observed[0] - found.predicted[0]
    points = [
        Point(float(p), float(e), f"sample {label}: residual {number(e)}")
        for p, e, label in zip(found.predicted[0], residuals, found.labels, strict=True)
    ]
    caption = (
        "Residuals (observed minus predicted) against predictions: any shape left in them is something the "
        "model missed."
    )
    drawing = scatter(
        "spread-of-residuals-figure",
        "Residuals",
        caption,
        points,
        x_label="predicted",
        y_label="residual",
        height=260,
    )
    return figure(drawing, caption)


def _table(found: Residuals) -> Html:
    residuals = found.observed[0] - found.predicted[0]
    order = np.argsort(-np.abs(residuals), kind="stable")[:20]
    rows: list[list[Cell]] = [
        [
            found.labels[k],
            *[
                (number(float(v)), float(v))
                for v in (found.observed[0, k], found.predicted[0, k], residuals[k])
            ],
        ]
        for k in order
    ]
    return table(
        "residual-table", "Samples of largest residual", ["Sample", "Observed", "Predicted", "Residual"], rows
    )


# -- novelty ------------------------------------------------------------------------------------


def _novelty(found: Novelty) -> Html:
    outside = int((found.values < 0).sum())
    counts, edges = np.histogram(found.values, bins=min(20, max(5, len(found.values) // 10)))
    rows = [
        Bar(
            f"{number(low)} to {number(high)}",
            float(n),
            str(n),
            tip=f"{n} samples",
            tone="minus" if high <= 0 else "",
        )
        for n, low, high in zip(counts, edges, edges[1:], strict=False)
    ]
    drawing = bars("novelty-figure", "Samples by their value", "", rows, label="samples")
    words = f"{outside} of {count(len(found.values), f'{found.part} sample')} lie outside (f < 0)."
    return join(
        [lead(words), tag("div", figure(drawing, "Number of samples by value f; negative ones are outside."))]
    )
