"""How alike the kernels are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..data import Redundancy
from ..figures import heatmap
from ..html import Html, join
from ..numbers import fixed
from ..words import alike
from .parts import Cell, details, figure, lead, legend, table
from .weights import left_out

if TYPE_CHECKING:
    from ..report import Report


def redundancy(report: Report) -> Html | None:
    """Heat map of the alignments, and the same as a table."""
    found = report.redundancy
    if found is None:
        return None
    M = len(found.names)
    drawing = heatmap(
        "alignment-figure",
        "Alignment of the kernels with one another",
        alike(found),
        found.matrix,
        found.names,
        found.names,
        lambda i, j: f"{found.names[i]} and {found.names[j]}: {fixed(float(found.matrix[i, j]), 2)}",
        words=(lambda i, j: fixed(float(found.matrix[i, j]), 2)) if M <= 14 else None,
    )
    caption = (
        "Centred alignment: 1 (darkest) for kernels that order the samples alike, 0 for unrelated ones. Like "
        "kernels stand side by side, so blocks along the diagonal are groups that say much the same."
    )
    shades = legend([("shade-0", "0"), ("shade-1", "0.5"), ("shade-2", "1")])
    intro = lead(alike(found), left_out(M + found.n_left_out, M))
    shown = figure(drawing, caption, shades, scroll="Alignment of the kernels, figure")
    return join([intro, shown, details("Alignments as a table", _table(found))])


def _table(found: Redundancy) -> Html:
    rows: list[list[Cell]] = [
        [name, *[(fixed(float(value), 2), float(value)) for value in row]]
        for name, row in zip(found.names, found.matrix, strict=True)
    ]
    return table("alignment-table", "Alignment of the kernels", ["Kernel", *found.names], rows)
