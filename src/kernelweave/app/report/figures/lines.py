"""Lines over a common axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..html import Html, tag
from ..numbers import number
from .frame import line, svg, text, x_axis, y_axis
from .scale import Scale

#: pixels: height of the drawing, top and bottom of the plane in it; percent: its sides
HEIGHT, TOP, BOTTOM, LEFT, RIGHT = 300, 34, 258, 11.0, 98.0

#: colours there are
TONES = 8


@dataclass(frozen=True)
class Line:
    """One line; `tips` says what each of its points is."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    tips: Sequence[str]


def lines(
    key: str,
    title: str,
    desc: str,
    series: Sequence[Line],
    *,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    level: tuple[float, str] | None = None,
    chosen: float | None = None,
) -> Html:
    """Lines with a dot a point.

    Parameters
    ----------
    key, title, desc : str
        Id, name and description.
    series : sequence of Line
    x_label, y_label : str
    log_x, log_y : bool, default=False
    level : tuple (float, str), optional
        A horizontal line to compare with, and its name.
    chosen : float, optional
        Place on the x axis to mark.
    """
    across = Scale.covering([x for one in series for x in one.x], LEFT, RIGHT, log=log_x)
    heights = [y for one in series for y in one.y] + ([] if level is None else [level[0]])
    up = Scale.covering(heights, BOTTOM, TOP, log=log_y, pad=0.06)
    drawn = [part for k, one in enumerate(series) for part in _line(one, k % TONES, across, up)]
    return svg(
        key,
        title,
        desc,
        HEIGHT,
        *y_axis(up, y_label),
        *_ticks(across, series, log_x, x_label),
        *_level(level, up),
        *([] if chosen is None else [line(across(chosen), TOP, across(chosen), BOTTOM, "chosen")]),
        *drawn,
        class_="lines",
    )


def _ticks(across: Scale, series: Sequence[Line], log_x: bool, label: str) -> list[Html]:
    """Values below the plane; whole ones where all places are whole."""
    places = sorted({x for one in series for x in one.x})
    if log_x or not all(float(x).is_integer() for x in places):
        return [part for part in x_axis(across, BOTTOM, BOTTOM + 4, label)]
    every = max(1, -(-len(places) // 10))
    marks = [text(across(x), BOTTOM + 16, number(x), "middle", "tick") for x in places[::every]]
    return [*marks, text(50, BOTTOM + 34, label, "middle", "axis")]


def _level(level: tuple[float, str] | None, up: Scale) -> list[Html]:
    if level is None:
        return []
    y = up(level[0])
    return [line(0, y, 100, y, "level"), text(100, y - 5, level[1], "end", "level-name")]


def _line(one: Line, tone: int, across: Scale, up: Scale) -> list[Html]:
    """The line in a stretched drawing of its own (points of polylines take no percent), and its dots."""
    span, height = RIGHT - LEFT, BOTTOM - TOP
    points = " ".join(
        f"{100 * (across(x) - LEFT) / span:.2f},{100 * (up(y) - TOP) / height:.2f}"
        for x, y in zip(one.x, one.y, strict=True)
    )
    stroke = tag("polyline", points=points, class_=f"stroke s{tone}", vector_effect="non-scaling-stroke")
    plane = tag(
        "svg",
        stroke,
        x=f"{LEFT}%",
        y=f"{TOP}",
        width=f"{span}%",
        height=f"{height}",
        viewBox="0 0 100 100",
        preserveAspectRatio="none",
        class_="plane",
    )
    dots = [
        tag("circle", cx=f"{across(x):g}%", cy=f"{up(y):g}", r="3.5", class_=f"point s{tone}", data_tip=tip)
        for x, y, tip in zip(one.x, one.y, one.tips, strict=True)
    ]
    return [plane, *dots]
