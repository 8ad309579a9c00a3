"""Kernel weights and how stable they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..data import Kernels
from ..figures import Bar, bars
from ..figures.scale import Scale
from ..html import Html, join
from ..numbers import count, fixed, number, percent
from ..words import share_rule, stable
from .parts import Cell, details, figure, lead, table

if TYPE_CHECKING:
    from ..report import Report

#: most kernels on the page, and in the first part of the figure
MOST_KERNELS, AT_FIRST = 40, 16

#: most models with a column each
MOST_MODELS = 6


def weights(report: Report) -> Html:
    """Bars with intervals, the heaviest first, and the same as a table."""
    kernels = report.kernels
    order = kernels.heaviest(MOST_KERNELS)
    rows = [_bar(kernels, int(m)) for m in order]
    largest = max((end for row in rows for end in (row.value, row.high or 0.0)), default=1.0)
    first = _drawing(report, "weights-figure", rows[:AT_FIRST], largest)
    more = []
    if len(rows) > AT_FIRST:
        rest = _drawing(report, "weights-figure-more", rows[AT_FIRST:], largest)
        more.append(details(f"Show the next {count(len(rows) - AT_FIRST, 'kernel')}", rest))
    intro = lead(_used(kernels), stable(kernels), left_out(len(kernels.names), len(order)))
    shown = figure(first, _caption(kernels), *more)
    return join([intro, shown, details("Weights as a table", _table(kernels, order))])


def left_out(n_all: int, n_shown: int) -> str:
    """Says how many kernels are not shown."""
    if n_all == n_shown:
        return ""
    others = count(n_all - n_shown, "kernel")
    return f"The {n_shown} heaviest are shown; {others} of smaller weight are left out."


def _used(kernels: Kernels) -> str:
    used, total = len(kernels.used), len(kernels.names)
    if used == total:
        return f"All {count(total, 'kernel')} have a weight."
    return f"{used} of {count(total, 'kernel')} have a weight, the others have none."


def _caption(kernels: Kernels) -> str:
    found, models = kernels.stability, len(kernels.models)
    words = "Share of each normalised kernel in the sum of the weights, the heaviest on top."
    if models > 1:
        words += f" Bars are means over {models} models, ticks the single ones."
    if found is not None:
        part = (
            "the training samples"
            if found.n_samples is None
            else f"{count(found.n_samples, 'training sample')}"
        )
        words += (
            f" Lines hold the share in {percent(found.level)} of {found.n_rounds} fits on halves of {part}."
        )
    return words


def _drawing(report: Report, key: str, rows: list[Bar], largest: float) -> Html:
    scale = Scale.covering([largest], zero=True, pad=0.02)
    desc = "; ".join(f"{row.label}: {row.text}" for row in rows)
    return bars(key, "Kernel weights", desc, rows, label="share of the weights", scale=scale)


def _bar(kernels: Kernels, m: int) -> Bar:
    value, found = float(kernels.shares[m]), kernels.stability
    weights = kernels.weights[:, m] / np.maximum(kernels.weights.sum(axis=1), 1e-300)
    low, high = (None, None) if found is None else (float(found.lower[m]), float(found.upper[m]))
    marks = tuple(weights.tolist()) if len(weights) > 1 else ()
    tone = "" if value else "quiet"
    return Bar(
        kernels.names[m],
        value,
        _brief(value),
        low=low,
        high=high,
        marks=marks,
        tip=_tip(kernels, m),
        tone=tone,
    )


def _brief(value: float) -> str:
    """Three decimals, or more for a weight that is small but not zero."""
    return number(value, 2) if 0 < value < 0.0005 else fixed(value)


def _tip(kernels: Kernels, m: int) -> str:
    words, found = (
        f"{kernels.names[m]}: {percent(float(kernels.shares[m]))} of the weights",
        kernels.stability,
    )
    if found is None:
        return words
    ends = f"{number(float(found.lower[m]))} to {number(float(found.upper[m]))}"
    selected = percent(float(found.frequency[m]))
    return f"{words}; interval {ends}; {share_rule(found)} in {selected} of the sub-samples"


def _table(kernels: Kernels, order: np.ndarray) -> Html:
    models = kernels.models if len(kernels.models) <= MOST_MODELS else ()
    single = len(kernels.models) == 1
    heads = ["Kernel", "Share", *[("Weight" if single else f"Weight, {name}") for name in models]]
    heads += ["Interval of the share", "Selected"] if kernels.stability is not None else []
    heads += ["Norm ‖fₘ‖"] if kernels.norms is not None else []
    rows = [_row(kernels, int(m), len(models)) for m in order]
    return table("weights-table", "Kernel weights", heads, rows)


def _row(kernels: Kernels, m: int, n_models: int) -> list[Cell]:
    row: list[Cell] = [kernels.names[m], _number(kernels.shares[m])]
    row += [_number(value, 5) for value in kernels.weights[:n_models, m]]
    if (found := kernels.stability) is not None:
        interval = f"{number(float(found.lower[m]))} to {number(float(found.upper[m]))}"
        row += [
            (interval, float(found.lower[m])),
            (percent(float(found.frequency[m])), float(found.frequency[m])),
        ]
    if kernels.norms is not None:
        row.append(_number(np.sqrt((kernels.norms[:, m] ** 2).mean())))
    return row


def _number(value: float, digits: int = 3) -> Cell:
    return number(float(value), digits), float(value)
