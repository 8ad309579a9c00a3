"""The prediction of single samples, kernel by kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...._typing import FloatArray, IntArray
from ..data import Fitted, Samples
from ..figures import Bar, Point, bars, scatter
from ..figures.frame import short
from ..figures.scale import Scale
from ..html import Html, join, tag
from ..numbers import count, number, signed
from .parts import Cell, details, figure, lead, legend, table

if TYPE_CHECKING:
    from ..report import Report

#: most kernels with a row of their own; the others are one row together
MOST_ROWS = 14

#: most samples in the table
MOST_IN_TABLE = 60


def samples(report: Report) -> Html | None:
    """A picker, the sample picked taken apart, and a table of all of them."""
    found = report.samples
    if found is None or not found.labels:
        return None
    return join(
        [
            lead(_intro(found)),
            _map(found, report.fitted),
            tag("div", _picker(report.fitted), _taken_apart(report, found), class_="explorer"),
            details("The decomposition as a table", _table(report, found)),
        ]
    )


def _intro(found: Samples) -> str:
    S = len(found.labels)
    if S == found.n_all:
        which = f"All {count(S, f'{found.part} sample')}."
    else:
        kind = "far from the observed value" if not found.wrong else "wrong or doubtful"
        which = (
            f"{S} of {count(found.n_all, f'{found.part} sample')}: half of them {kind}, half evenly spread."
        )
    return f"{which} Each value f is the intercept b plus one part from every kernel."


# -- one sample ---------------------------------------------------------------------------------


def condensed(found: Samples) -> tuple[IntArray, FloatArray]:
    """The kernels that matter most to these samples, and (K, S, rows): b, those kernels, the rest."""
    size = np.abs(found.parts).mean(axis=(0, 1))
    live = np.flatnonzero(size > 0)
    order = live[np.argsort(-size[live], kind="stable")][:MOST_ROWS]
    rest = np.setdiff1d(np.arange(len(size)), order)
    K, S, _ = found.parts.shape
    columns = [np.broadcast_to(found.intercept[:, None, None], (K, S, 1)), found.parts[:, :, order]]
    if len(np.setdiff1d(live, order)):
        columns.append(found.parts[:, :, rest].sum(axis=2, keepdims=True))
    return order, np.concatenate(columns, axis=2)


def row_names(report: Report, found: Samples) -> list[str]:
    """What the rows of `condensed` are."""
    order, values = condensed(found)
    names = ["intercept b", *[report.kernels.names[m] for m in order]]
    others = int((np.abs(found.parts).sum(axis=(0, 1)) > 0).sum()) - len(order)
    return [*names, f"{count(others, 'other kernel')}"] if values.shape[2] > len(names) else names


def first_shown(found: Samples) -> tuple[int, int]:
    """The sample shown at first, a wrong one where there is one, and the function: the largest."""
    sample = found.wrong.index(True) if True in found.wrong else 0
    return sample, int(np.argmax(found.values[:, sample]))


def _common_scale(values: FloatArray) -> Scale:
    """One scale for all samples, so that they can be compared."""
    return Scale.covering(np.cumsum(values, axis=2).ravel().tolist(), zero=True, pad=0.03)


def _taken_apart(report: Report, found: Samples) -> Html:
    sample, function = first_shown(found)
    _, values = condensed(found)
    names = row_names(report, found)
    parts = values[function, sample]
    ends = np.cumsum(parts)
    rows = [
        _step(name, part, end) for name, part, end in zip(names, parts.tolist(), ends.tolist(), strict=True)
    ]
    total = float(ends[-1])
    rows.append(Bar("f, the sum", total, number(total), tone="total"))
    drawing = bars(
        "sample-figure",
        "Parts of the prediction of one sample",
        "; ".join(f"{row.label}: {row.text}" for row in rows),
        rows,
        label="running sum, from b to f",
        scale=_common_scale(values),
    )
    heading = tag(
        "h3", _heading(found, report.fitted, sample, function), id="sample-heading", aria_live="polite"
    )
    caption = (
        "Each bar begins where the one above ends: blue adds to f, orange takes away. All samples share one "
        "scale."
    )
    return tag("div", heading, figure(drawing, caption), class_="taken-apart")


def _step(name: str, part: float, end: float) -> Bar:
    return Bar(
        name,
        end,
        signed(part),
        start=end - part,
        tone="minus" if part < 0 else "",
        tip=f"{name}: {signed(part)}",
    )


def _heading(found: Samples, fitted: Fitted, sample: int, function: int) -> str:
    words = f"Sample {found.labels[sample]}"
    if found.truth:
        words += f": {_seen_as(fitted)} {found.truth[sample]}, predicted {found.predicted[sample]}"
    if len(fitted.functions) > 1:
        words += f"; f of {_functions(fitted)[function]}"
    return words


def _functions(fitted: Fitted) -> list[str]:
    """What the functions are: classes, pairs of them, or outputs."""
    if len(fitted.functions) == 1:
        return list(fitted.functions)
    pairs = fitted.task == "classification" and fitted.functions != tuple(name for name, _ in fitted.classes)
    kind = "" if pairs else "output " if fitted.task == "regression" else "class "
    return [f"{kind}{name}" for name in fitted.functions]


def _seen_as(fitted: Fitted) -> str:
    return "observed" if fitted.task == "regression" else "true"


def _picker(fitted: Fitted) -> Html:
    """Filled and shown by the script; without it the table below holds the same."""
    options = [tag("option", name, value=str(k)) for k, name in enumerate(_functions(fitted))]
    choice = [
        tag("label", "Function", for_="function-choice"),
        tag("select", *options, id="function-choice"),
    ]
    return tag(
        "div",
        tag("p", "Pick a sample", id="picker-name", class_="picker-name"),
        tag("div", id="sample-list", role="listbox", tabindex="0", aria_labelledby="picker-name"),
        tag("p", "Arrow keys, Home and End move; a click on a dot picks its sample.", class_="hint"),
        *(choice if len(options) > 1 else []),
        class_="picker",
        hidden=True,
    )


# -- all samples --------------------------------------------------------------------------------


def _map(found: Samples, fitted: Fitted) -> Html | None:
    """All samples in one figure."""
    if fitted.task == "regression":
        return None  # the residual plot shows them, and its dots pick samples too
    classes = [name for name, _ in fitted.classes]
    margins = _margins(found, classes)
    if margins is None:
        return None
    rows = classes if found.truth and len(classes) <= 8 else ["all samples"]
    points = [_point(found, k, float(margins[k]), rows) for k in range(len(margins))]
    binary = len(found.intercept) == 1
    label = "f of the true class, minus the largest other"
    if binary:
        label = f"value f, positive for {short(classes[1])}" if len(classes) == 2 else "value f"
    wrong = sum(found.wrong)
    caption = f"Each dot is a sample{', in the row of its true class' if classes else ''}, at its {label}."
    if found.wrong:
        caption += f" {count(wrong, 'sample')} shown {'is' if wrong == 1 else 'are'} wrong (orange, ringed)."
    drawing = scatter(
        "map-figure",
        "Samples by their value",
        caption,
        points,
        x_label=label,
        y_label="",
        names=rows,
        height=46 + max(64, min(90, 300 // len(rows))) * len(rows),
    )
    return figure(
        drawing, caption, legend([("dot-right", "right"), ("dot-wrong", "wrong")]) if found.wrong else None
    )


def _margins(found: Samples, classes: list[str]) -> FloatArray | None:
    values = found.values
    if len(values) == 1:
        return values[0]
    if len(values) != len(classes) or not set(found.truth) <= set(classes):
        return None
    own = np.array([classes.index(name) for name in found.truth])
    columns = np.arange(values.shape[1])
    others = values.copy()
    others[own, columns] = -np.inf
    return values[own, columns] - others.max(axis=0)


def _point(found: Samples, k: int, value: float, rows: list[str]) -> Point:
    row = rows.index(found.truth[k]) if found.truth and found.truth[k] in rows else 0
    jitter = (k * 0.6180339887 % 1.0 - 0.5) * 0.5 + 0.1
    wrong = bool(found.wrong) and found.wrong[k]
    tip = f"sample {found.labels[k]}: {number(value)}"
    if found.truth:
        tip += f", {found.truth[k]}, predicted {found.predicted[k]}"
    return Point(value, row + jitter, tip, "wrong" if wrong else "", k)


def _table(report: Report, found: Samples) -> Html:
    """Of the largest function of each sample; samples beyond the most are left to the picker."""
    _, values = condensed(found)
    several = len(report.fitted.functions) > 1
    heads = ["Sample", *(["True", "Predicted"] if found.truth else []), *row_names(report, found), "f"]
    shown = range(min(len(found.labels), MOST_IN_TABLE))
    rows = [_row(found, k, values[:, k] if not several else values[_own(found, k) :, k]) for k in shown]
    caption = "Parts of the prediction" + (" (of the largest function of each sample)" if several else "")
    if len(shown) < len(found.labels):
        caption += f"; the first {len(shown)} of {count(len(found.labels), 'sample')}"
    return table("samples-table", caption, heads, rows, text_columns=3 if found.truth else 1)


def _own(found: Samples, k: int) -> int:
    return int(np.argmax(found.values[:, k]))


def _row(found: Samples, k: int, values: FloatArray) -> list[Cell]:
    row: list[Cell] = [found.labels[k]]
    if found.truth:
        row += [found.truth[k], found.predicted[k]]
    parts = values[0].tolist()
    return [*row, *[(signed(part), part) for part in parts], (number(sum(parts)), sum(parts))]


def sample_data(report: Report) -> dict[str, Any]:
    """What the picker shows, for the script."""
    found = report.samples
    if found is None or not found.labels:
        return {}
    _, values = condensed(found)
    scale = _common_scale(values)
    sample, function = first_shown(found)
    return {
        "labels": found.labels,
        "truth": found.truth,
        "predicted": found.predicted,
        "wrong": found.wrong,
        "seen_as": _seen_as(report.fitted),
        "functions": _functions(report.fitted),
        "rows": row_names(report, found),
        "parts": [[[float(f"{part:.5g}") for part in one] for one in each] for each in values],
        "scale": [scale.low, scale.high],
        "first": [sample, function],
    }
