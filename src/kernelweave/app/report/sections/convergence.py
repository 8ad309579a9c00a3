"""How the fit went, and the models on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..data import Convergence, Curve, Path
from ..figures import Line, lines
from ..html import Html, join
from ..numbers import count, number, plus_minus
from ..words import certificate
from .header import banner
from .parts import Cell, details, figure, lead, legend, table

if TYPE_CHECKING:
    from ..report import Report


def convergence(report: Report) -> Html | None:
    """The certificate in words, and the curve that led to it."""
    fit, judged = report.convergence, certificate(report.convergence)
    if fit is None or judged is None:
        return None
    curves = [curve for curve in fit.curves if len(curve.x)]
    if not curves:
        return banner(judged)
    log = all(value > 0 for curve in curves for value in curve.y)
    drawing = lines(
        "convergence-figure",
        f"{fit.y_label.capitalize()} over the iterations",
        f"From {number(curves[0].y[0])} to {number(curves[0].y[-1])} in {len(curves[0].x)} iterations.",
        [_line(curve, "iteration") for curve in curves],
        x_label="kernels let in" if fit.kind == "greedy" else "iteration",
        y_label=f"{fit.y_label}{', logarithmic' if log else ''}",
        log_y=log,
        level=None if fit.y_label == "objective" else (fit.tol, f"asked for: {number(fit.tol)}"),
    )
    shown = figure(drawing, _caption(fit), _legend(curves))
    return join(
        [
            banner(judged),
            shown,
            details("The curve as a table", _curve_table("convergence-table", fit.y_label, curves)),
        ]
    )


def _caption(fit: Convergence) -> str:
    if fit.kind == "greedy":
        return (
            "The gain that each kernel promised when it came in, as a share of the objective without "
            "kernels; the path ends when none promises more than the dashed line."
        )
    what = {"gap": "an upper bound on how far the objective is from the best possible, as a share of it"}
    meaning = what.get(fit.kind, "zero where no small change of the weights improves the objective")
    if fit.y_label == "objective":
        return f"The objective after each of {count(fit.n_iter, 'iteration')}; it falls at every step."
    return f"{fit.y_label.capitalize()} after each iteration: {meaning}. The fit ends below the dashed line."


def _line(curve: Curve, unit: str, marks: tuple[str, ...] = ()) -> Line:
    tips = [f"{curve.name}, {unit} {number(x)}: {number(y)}" for x, y in zip(curve.x, curve.y, strict=True)]
    tips = [f"{tip} ({mark})" for tip, mark in zip(tips, marks, strict=True)] if marks else tips
    return Line(curve.name, list(curve.x), list(curve.y), tips)


def _legend(curves: list[Curve] | tuple[Curve, ...]) -> Html | None:
    return legend([(f"s{k}", curve.name) for k, curve in enumerate(curves)]) if len(curves) > 1 else None


def _curve_table(key: str, name: str, curves: list[Curve]) -> Html:
    longest = max(len(curve.x) for curve in curves)
    rows: list[list[Cell]] = [
        [(str(k + 1), k + 1), *[_at(curve, k) for curve in curves]] for k in _thinned(longest)
    ]
    return table(key, name.capitalize(), ["Iteration", *[curve.name for curve in curves]], rows)


def _thinned(length: int, most: int = 60) -> list[int]:
    return np.unique(np.linspace(0, length - 1, min(length, most)).astype(int)).tolist()


def _at(curve: Curve, k: int) -> Cell:
    return (number(curve.y[k]), float(curve.y[k])) if k < len(curve.y) else "–"


def path(report: Report) -> Html | None:
    """Errors along the greedy path, or scores over the costs of a search."""
    found = report.path
    if found is None:
        return None
    log_y = found.y_label == "error" and _many_sizes([value for curve in found.curves for value in curve.y])
    drawing = lines(
        "path-figure",
        f"{found.y_label.capitalize()} over the {found.x_label}",
        found.words,
        [_line(curve, found.x_label, found.marks) for curve in found.curves],
        x_label=found.x_label,
        y_label=f"{found.y_label}{', logarithmic' if log_y else ''}",
        log_x=found.log_x,
        log_y=log_y,
        chosen=found.chosen,
    )
    caption = (
        f"{found.y_label.capitalize()} over the {found.x_label}; the vertical line marks the model chosen."
    )
    shown = figure(drawing, caption, _legend(found.curves))
    return join([lead(found.words), shown, details("The path as a table", _path_table(found))])


def _many_sizes(values: list[float]) -> bool:
    """Whether values are all positive and of very different size, as a logarithmic axis wants them."""
    return min(values) > 0 and max(values) > 20 * min(values)


def _path_table(found: Path) -> Html:
    places = sorted({x for curve in found.curves for x in curve.x})
    heads = [found.x_label.capitalize(), *(["Kernel that came in"] if found.marks else [])]
    rows: list[list[Cell]] = []
    for k, x in enumerate(places):
        row: list[Cell] = [(number(x), float(x)), *([found.marks[k]] if found.marks else [])]
        rows.append([*row, *[_value_at(curve, x) for curve in found.curves]])
    names = [curve.name for curve in found.curves]
    return table("path-table", "Path", [*heads, *names], rows, text_columns=2 if found.marks else 1)


def _value_at(curve: Curve, x: float) -> Cell:
    if x not in curve.x:
        return "–"
    k = list(curve.x).index(x)
    if curve.error is None:
        return number(curve.y[k]), float(curve.y[k])
    return plus_minus(curve.y[k], curve.error[k]), float(curve.y[k])
