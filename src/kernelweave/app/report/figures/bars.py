"""Horizontal bars with intervals, each under its label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..html import Html, tag
from .frame import line, short, svg, text, x_axis
from .scale import Scale

#: pixels: height of a row, top and height of the bar in it
PITCH, TOP, THICK = 38, 20, 9


@dataclass(frozen=True)
class Bar:
    """One bar, from `start` to `value`.

    Attributes
    ----------
    label, text : str
        What it is, and its value in words.
    value, start : float
    low, high : float, optional
        Ends of its interval.
    marks : sequence of float
        Small ticks on it, such as the values of single models.
    tip : str
        What is said when it is pointed at.
    tone : str
        "", "quiet", "minus" or "total".
    """

    label: str
    value: float
    text: str
    start: float = 0.0
    low: float | None = None
    high: float | None = None
    marks: Sequence[float] = ()
    tip: str = ""
    tone: str = ""


def bars(
    key: str,
    title: str,
    desc: str,
    rows: Sequence[Bar],
    *,
    label: str = "",
    scale: Scale | None = None,
    dots: bool = False,
) -> Html:
    """One bar (or with `dots`, one dot) a row, on a common scale.

    Parameters
    ----------
    key : str
        Id of the figure.
    title, desc : str
        Its name and description for those who do not see it.
    rows : sequence of Bar
    label : str
        What the axis measures.
    scale : Scale, optional
        By default the one that covers all values; with bars, from zero.
    dots : bool, default=False
        Dots need no zero on the axis.
    """
    scale = scale or Scale.covering(_extent(rows, dots), zero=not dots, pad=0.06 if dots else 0.02)
    bottom = PITCH * len(rows) + 4
    drawn = [_row(bar, k, scale, dots) for k, bar in enumerate(rows)]
    axis = x_axis(scale, 0, bottom, label)
    return svg(key, title, desc, bottom + (40 if label else 22), *axis, *drawn, class_="bars")


def _extent(rows: Sequence[Bar], dots: bool) -> list[float]:
    ends = [end for bar in rows for end in (bar.value, bar.low, bar.high, *bar.marks) if end is not None]
    return ends if dots else ends + [bar.start for bar in rows]


def _row(bar: Bar, k: int, scale: Scale, dots: bool) -> Html:
    top = PITCH * k
    middle = top + TOP + THICK / 2
    shape = _dot(bar, middle, scale) if dots else _bar(bar, top, scale)
    return tag(
        "g",
        tag("rect", x="0", y=f"{top}", width="100%", height=f"{PITCH}", class_="hit"),
        text(0, top + 14, short(bar.label), class_="label"),
        text(100, top + 14, bar.text, "end", "value"),
        *([] if dots else [shape]),
        *_interval(bar, middle, scale),
        *[line(scale(mark), middle - 6, scale(mark), middle + 6, "mark") for mark in bar.marks],
        *([shape] if dots else []),
        class_=f"row {bar.tone}".strip(),
        data_tip=bar.tip or None,
    )


def _bar(bar: Bar, top: float, scale: Scale) -> Html:
    left, right = sorted((scale(bar.start), scale(bar.value)))
    width = max(right - left, 0.25)  # a weight of zero still shows where it is
    return tag("rect", x=f"{left:g}%", y=f"{top + TOP}", width=f"{width:g}%", height=f"{THICK}", class_="bar")


def _dot(bar: Bar, middle: float, scale: Scale) -> Html:
    if bar.value < scale.low:
        return text(0, middle + 4, "◂ further left", class_="outside")
    return tag("circle", cx=f"{scale(bar.value):g}%", cy=f"{middle:g}", r="5", class_="dot")


def _interval(bar: Bar, middle: float, scale: Scale) -> list[Html]:
    if bar.low is None or bar.high is None or bar.value < scale.low:
        return []
    low, high = scale(bar.low), scale(bar.high)
    caps = [line(x, middle - 4, x, middle + 4, "interval") for x in (low, high)]
    return [line(low, middle, high, middle, "interval"), *caps]
