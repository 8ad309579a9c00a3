"""Points in a plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..html import Html, tag
from .frame import line, short, svg, text, x_axis, y_axis
from .scale import Scale

#: pixels above and below the plane; percent: its sides
ABOVE, BELOW, LEFT, RIGHT = 34, 42, 2.0, 98.0


@dataclass(frozen=True)
class Point:
    """One point; `key` is what the script of the page knows it by."""

    x: float
    y: float
    tip: str
    tone: str = ""
    key: int | None = None


def scatter(
    key: str,
    title: str,
    desc: str,
    points: Sequence[Point],
    *,
    x_label: str,
    y_label: str,
    diagonal: bool = False,
    names: Sequence[str] = (),
    height: int = 340,
) -> Html:
    """Points, with the diagonal where both axes measure the same.

    Parameters
    ----------
    key, title, desc : str
        Id, name and description.
    points : sequence of Point
    x_label, y_label : str
    diagonal : bool, default=False
        Draw x = y, and give both axes the same range.
    names : sequence of str
        Rows at y = 0, 1, ..., the first on top, to name instead of values.
    height : int, default=340
        Pixels of the drawing.
    """
    xs, ys = [point.x for point in points], [point.y for point in points]
    if diagonal:
        xs = ys = xs + ys
    top, bottom = (4 if names else ABOVE), height - BELOW
    across = Scale.covering(xs, LEFT if names else 11.0, RIGHT, pad=0.04)
    up = Scale(-0.5, len(names) - 0.5, top, bottom) if names else Scale.covering(ys, bottom, top, pad=0.04)
    low, high = max(across.low, up.low), min(across.high, up.high)
    guide = [line(across(low), up(low), across(high), up(high), "guide")] if diagonal else []
    axis = _named(up, names) if names else y_axis(up, y_label)
    dots = [_dot(point, across, up) for point in points]
    plane = [*x_axis(across, top, bottom, x_label), *axis, *guide, *dots]
    return svg(key, title, desc, height, *plane, class_="scatter")


def _named(up: Scale, names: Sequence[str]) -> list[Html]:
    """Rows parted by lines, each under its name."""
    parts = []
    for k, name in enumerate(names):
        parts.append(line(0, up(k + 0.5), 100, up(k + 0.5), "grid"))
        parts.append(text(0, up(k - 0.5) + 15, short(name, 32), "start", "label"))
    return parts


def _dot(point: Point, across: Scale, up: Scale) -> Html:
    return tag(
        "circle",
        cx=f"{across(point.x):g}%",
        cy=f"{up(point.y):g}",
        r="4",
        class_=f"point {point.tone}".strip(),
        data_tip=point.tip,
        data_sample=point.key,
    )
