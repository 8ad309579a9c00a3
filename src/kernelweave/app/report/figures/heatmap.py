"""A matrix as squares, darker for larger."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...._typing import FloatArray
from ..html import Html, tag
from .frame import short, svg

#: pixels of a character of a label
CHARACTER = 6.6


def heatmap(
    key: str,
    title: str,
    desc: str,
    shades: FloatArray,
    rows: Sequence[str],
    columns: Sequence[str],
    tip: Callable[[int, int], str],
    *,
    words: Callable[[int, int], str] | None = None,
    cell: int | None = None,
) -> Html:
    """A grid of squares, `shades` between 0 and 1.

    Parameters
    ----------
    key, title, desc : str
        Id, name and description.
    shades : ndarray of shape (R, C)
        How dark each square is, from 0 to 1.
    rows, columns : sequence of str
        Labels at the left and on top; where those on top have no room, rows and columns are numbered.
    tip : callable
        What is said when square (i, j) is pointed at.
    words : callable, optional
        What is written in square (i, j); nothing by default.
    cell : int, optional
        Pixels of a square; by the size of the matrix by default.
    """
    size = cell or max(14, min(40, 560 // max(len(columns), 1)))
    numbered = CHARACTER * max(len(label) for label in columns) > size
    room = 26 if numbered else 8
    left = round(CHARACTER * max(len(short(label, 28)) for label in rows)) + room + 4
    squares = [
        _square(left + j * size, 22 + i * size, size, float(shades[i, j]), tip(i, j), words and words(i, j))
        for i in range(len(rows))
        for j in range(len(columns))
    ]
    names = [
        _label(left - room, 22 + (i + 0.5) * size + 4, short(name, 28), "end") for i, name in enumerate(rows)
    ]
    if numbered:
        columns = [str(j + 1) for j in range(len(columns))]
        names += [_count(left - 6, 22 + (i + 0.5) * size + 4, i + 1) for i in range(len(rows))]
    shown = [j for j in range(len(columns)) if not numbered or size >= 20 or (j + 1) % 5 == 0]
    heads = [_label(left + (j + 0.5) * size, 15, columns[j], "middle") for j in shown]
    width, height = left + size * len(columns) + 2, 24 + size * len(rows)
    return svg(
        key,
        title,
        desc,
        height,
        *names,
        *heads,
        *squares,
        width=f"{width}",
        class_="heat",
        viewBox=f"0 0 {width} {height}",
    )


def _label(x: float, y: float, words: str, anchor: str) -> Html:
    return tag("text", words, x=f"{x:g}", y=f"{y:g}", text_anchor=anchor, class_="label")


def _count(x: float, y: float, k: int) -> Html:
    return tag("text", str(k), x=f"{x:g}", y=f"{y:g}", text_anchor="end", class_="count")


def _square(x: float, y: float, size: int, shade: float, tip: str, words: str | None) -> Html:
    gap = 1 if size < 24 else 2
    square = tag(
        "rect",
        x=f"{x:g}",
        y=f"{y:g}",
        width=f"{size - gap}",
        height=f"{size - gap}",
        rx="2",
        class_="cell",
        fill_opacity=f"{max(shade, 0.03):.3f}",
    )
    if words is None:
        return tag("g", square, data_tip=tip)
    tone = "on" if shade > 0.55 else "off"
    label = tag(
        "text",
        words,
        x=f"{x + (size - gap) / 2:g}",
        y=f"{y + size / 2 + 3.5:g}",
        text_anchor="middle",
        class_=tone,
    )
    return tag("g", square, label, data_tip=tip)
