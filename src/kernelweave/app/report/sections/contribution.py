"""What each kernel adds to the prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..data import Kernels
from ..figures import Bar, bars
from ..html import Html, join, tag
from ..numbers import count, fixed, number, percent, signed
from ..words import leading
from .parts import Cell, details, figure, lead, table
from .weights import AT_FIRST, MOST_KERNELS

if TYPE_CHECKING:
    from ..report import Report


def contribution(report: Report) -> Html:
    """Spread of the components and the effect of leaving one out; or why there are none."""
    kernels = report.kernels
    if kernels.spread is None:
        return lead(
            "The kernel of this model is not a sum of kernels, so its prediction has no components: the "
            "weights are parameters of one kernel."
        )
    order = np.argsort(-kernels.spread, kind="stable")[:MOST_KERNELS]
    part, n = (report.samples.part, report.samples.n_all) if report.samples is not None else ("training", 1)
    intro = lead(
        tag("span", "f(x) = b + Σₘ fₘ(x).", class_="formula"),
        leading(kernels),
        "A large weight need not mean a large part: what counts is how far fₘ moves the prediction.",
    )
    drawings = [_spread(kernels, order[:AT_FIRST], part), _dropped(kernels, order[:AT_FIRST], part, n)]
    pair = tag("div", *[drawing for drawing in drawings if drawing], class_="pair")
    return join([intro, pair, details("Contributions as a table", _table(kernels, order))])


def _spread(kernels: Kernels, order: np.ndarray, part: str) -> Html:
    assert kernels.spread is not None
    total = float(kernels.spread.sum()) or 1.0
    rows = [_spread_bar(kernels.names[m], float(kernels.spread[m]), total) for m in order]
    drawing = bars(
        "spread-figure",
        "How much each component varies",
        "; ".join(f"{row.label}: {row.text}" for row in rows),
        rows,
        label="standard deviation of fₘ",
    )
    return figure(drawing, f"How much each component varies over the {part} samples{_first(kernels, order)}.")


def _first(kernels: Kernels, order: np.ndarray) -> str:
    others = len(kernels.names) - len(order)
    return f"; the {len(order)} that vary most, of {len(kernels.names)}" if others else ""


def _spread_bar(name: str, value: float, total: float) -> Bar:
    share = percent(value / total)
    return Bar(
        name,
        value,
        share,
        tip=f"{name}: standard deviation {number(value)}, {share} of all",
        tone="" if value else "quiet",
    )


def _dropped(kernels: Kernels, order: np.ndarray, part: str, n: int) -> Html | None:
    if kernels.drop is None:
        return None
    rows = [_drop_bar(kernels.names[m], float(kernels.drop[m]), kernels.drop_metric) for m in order]
    drawing = bars(
        "drop-figure",
        f"Fall of the {kernels.drop_metric} without each component",
        "; ".join(f"{row.label}: {row.text}" for row in rows),
        rows,
        label=f"fall of the {kernels.drop_metric}",
    )
    useless = int((kernels.drop[kernels.used] <= 0).sum()) if len(kernels.used) == len(kernels.drop) else 0
    words = (
        f"Fall of the {kernels.drop_metric} on the {part} samples when a component is left out and the rest "
        "stays as it is."
    )
    if kernels.drop_metric == "accuracy":
        words += f" One sample counts {number(1 / n, 2)}."
    if useless:
        words += f" {count(useless, 'kernel')} can go one at a time without loss."
    return figure(drawing, words)


def _drop_bar(name: str, value: float, metric: str) -> Bar:
    tone = "minus" if value < 0 else "" if value > 0 else "quiet"
    return Bar(
        name,
        value,
        signed(value, 2),
        tip=f"{name}: without it the {metric} falls by {number(value)}",
        tone=tone,
    )


def _table(kernels: Kernels, order: np.ndarray) -> Html:
    assert kernels.spread is not None
    total = float(kernels.spread.sum()) or 1.0
    heads = ["Kernel", "Spread of fₘ", "Share"]
    heads += ["Norm ‖fₘ‖"] if kernels.norms is not None else []
    heads += [f"Fall of {kernels.drop_metric} without it"] if kernels.drop is not None else []
    rows: list[list[Cell]] = []
    for m in order:
        spread = float(kernels.spread[m])
        row: list[Cell] = [kernels.names[m], (number(spread), spread), (percent(spread / total), spread)]
        if kernels.norms is not None:
            norm = float(np.sqrt((kernels.norms[:, m] ** 2).mean()))
            row.append((number(norm), norm))
        if kernels.drop is not None:
            row.append((fixed(float(kernels.drop[m]), 4), float(kernels.drop[m])))
        rows.append(row)
    return table("contribution-table", "Contribution of each kernel", heads, rows)
