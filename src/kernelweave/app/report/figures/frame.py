"""The frame of a figure: its names for screen readers, its axes."""

from __future__ import annotations

from typing import Any

from ..html import Html, tag
from ..numbers import number
from .scale import Scale

#: characters of a label that fit beside a value on a phone
LABEL_LENGTH = 40


def svg(key: str, title: str, desc: str, height: float, *children: Any, **attributes: Any) -> Html:
    """An image of full width and `height` pixels, named by `title` and described by `desc`."""
    return tag(
        "svg",
        tag("title", title, id=f"{key}-title"),
        tag("desc", desc, id=f"{key}-desc"),
        *children,
        id=key,
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        height=f"{height:g}",
        width=attributes.pop("width", "100%"),
        **attributes,
    )


def text(
    x: float, y: float, words: Any, anchor: str = "start", class_: str | None = None, **more: Any
) -> Html:
    """Text at x percent, y pixels."""
    return tag("text", words, x=f"{x:g}%", y=f"{y:g}", text_anchor=anchor, class_=class_, **more)


def line(x1: float, y1: float, x2: float, y2: float, class_: str, **more: Any) -> Html:
    """A line between places in percent and pixels."""
    return tag("line", x1=f"{x1:g}%", y1=f"{y1:g}", x2=f"{x2:g}%", y2=f"{y2:g}", class_=class_, **more)


def short(label: str, length: int = LABEL_LENGTH) -> str:
    """A label cut in its middle, so that its end still tells it apart."""
    if len(label) <= length:
        return label
    head = (length - 1) * 2 // 3
    return f"{label[:head]}…{label[head + 1 - length :]}"


def x_axis(scale: Scale, top: float, bottom: float, label: str = "") -> list[Html]:
    """Vertical grid lines with their values below, and what they measure."""
    out = []
    for value in scale.ticks():
        x = scale(value)
        anchor = "start" if x < 4 else "end" if x > 96 else "middle"
        out.append(line(x, top, x, bottom, "zero" if value == 0 else "grid"))
        out.append(text(x, bottom + 16, number(value), anchor, "tick"))
    return [*out, text(50, bottom + 34, label, "middle", "axis")] if label else out


def y_axis(scale: Scale, label: str = "", zero: bool = True) -> list[Html]:
    """Horizontal grid lines with their values on them, and what they measure above."""
    out = []
    for value in scale.ticks():
        y = scale(value)
        out.append(line(0, y, 100, y, "zero" if value == 0 and zero else "grid"))
        out.append(text(0, y - 4, number(value), "start", "tick"))
    return [*out, text(0, 12, label, "start", "axis")] if label else out
