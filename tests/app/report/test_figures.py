"""Figures: places proportional to values, ticks that are round and inside, text that is escaped."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave._words import plain
from kernelweave.app.report.figures import Bar, Dot, Scale, Square, short
from kernelweave.app.report.page import FORBIDDEN, environment
from kernelweave.app.report.words import number

FINITE = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))


@given(st.lists(FINITE, min_size=1, max_size=20))
def test_a_scale_covers_its_values_in_order(values: list[float]) -> None:
    scale = Scale.covering(values, 0.0, 100.0)
    places = [scale(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)
    ticks = scale.ticks()
    assert len(ticks) <= 6
    room = 1e-6 * (scale.high - scale.low) + 1e-9
    assert all(scale.low - room <= tick <= scale.high + room for tick in ticks)


@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=20))
def test_a_logarithmic_scale_has_powers_of_ten(values: list[float]) -> None:
    scale = Scale.covering(values, 0.0, 100.0, log=True)
    assert scale.low <= min(values) * (1 + 1e-9)
    assert scale.high >= max(values) * (1 - 1e-9)
    assert all(np.isclose(np.log10(tick) % 1, [0, 1], atol=1e-9).any() for tick in scale.ticks())


@pytest.fixture
def draw() -> Any:
    """The macros that draw figures."""
    return environment().get_template("figures.html").module


def attribute(drawing: str, class_: str, name: str) -> list[float]:
    found = re.findall(rf"<\w+ ([^>]*class=\"{class_}\"[^>]*)>", drawing)
    return [float(re.search(rf' {name}="([-\d.]+)%?"', " " + text)[1]) for text in found]  # type: ignore[index]


def test_bars_are_as_long_as_their_values(draw: Any) -> None:
    values = [0.5, 0.25, -0.125]
    drawing = draw.bars("b", "title", [Bar(f"k{v}", v, str(v)) for v in values], "axis")
    widths = np.array(attribute(drawing, "bar", "width"))
    assert widths / widths[0] == pytest.approx(np.abs(values) / 0.5, abs=1e-3)


def test_intervals_end_where_they_should(draw: Any) -> None:
    scale = Scale(0.0, 2.0, 0.0, 100.0)
    drawing = draw.bars("b", "title", [Bar("k", 1.0, "1", interval=(0.5, 1.5))], "axis", scale)
    assert attribute(drawing, "interval", "x1") == [25.0, 25.0, 75.0]
    assert attribute(drawing, "interval", "x2") == [75.0, 25.0, 75.0]


def test_points_of_a_scatter_keep_their_order(draw: Any) -> None:
    points = [Dot(float(x), float(x) ** 2, "tip") for x in range(4)]
    drawing = draw.scatter("s", "title", "desc", points, "x", "y")
    across, down = attribute(drawing, "point", "cx"), attribute(drawing, "point", "cy")
    assert across == sorted(across)
    assert down == sorted(down, reverse=True)


def test_lines_fall_where_their_values_fall(draw: Any) -> None:
    points = [Dot(x, 10.0**-x, "tip") for x in range(3)]
    drawing = draw.lines("l", "title", "desc", [points], "x", "y", log_y=True)
    down = attribute(drawing, "point s0", "cy")
    assert down[1] - down[0] == pytest.approx(down[2] - down[1], abs=0.02)


def test_squares_are_as_dark_as_their_shares(draw: Any) -> None:
    squares = [[Square(1.0, ""), Square(0.25, "")], [Square(0.5, ""), Square(0.0, "")]]
    drawing = draw.heatmap("h", "title", "desc", squares, ["a", "b"], ["a", "b"], 40)
    found = [float(x) for x in re.findall(r'fill-opacity="([\d.]+)"', drawing)]
    assert found == pytest.approx([1.0, 0.25, 0.5, 0.03])


EVIL = '"><script>alert(1)</script>'


@pytest.mark.parametrize("kind", ["bars", "scatter", "lines", "heatmap"])
def test_names_in_figures_are_escaped(kind: str, draw: Any) -> None:
    drawing = {
        "bars": lambda: draw.bars("b", EVIL, [Bar(EVIL, 1.0, EVIL, tip=EVIL)], EVIL),
        "scatter": lambda: draw.scatter("s", EVIL, EVIL, [Dot(0.0, 0.0, EVIL)], EVIL, names=[EVIL]),
        "lines": lambda: draw.lines("l", EVIL, EVIL, [[Dot(0.0, 0.0, EVIL)]], EVIL, EVIL),
        "heatmap": lambda: draw.heatmap("h", EVIL, EVIL, [[Square(1.0, EVIL, EVIL)]], [EVIL], [EVIL], 400),
    }[kind]()
    assert "<script" not in drawing
    assert drawing.count("&lt;script&gt;") >= 5


def test_text_cannot_end_what_it_stands_in() -> None:
    show = environment().from_string("<p title='{{ text }}'>{{ text }}</p>{{ {'a': text}|tojson }}").render
    page = show(text="</p></script><!--\u2028&'")
    assert page.count("<") == 2
    assert "\\u003c/script\\u003e" in page
    assert "\u2028" not in page.split("</p>")[1]
    assert FORBIDDEN.sub("\ufffd", "a\x00\ud800\n") == "a\ufffd\ufffd\n"


def test_what_is_not_a_number_becomes_null() -> None:
    values = {"a": np.array([1.0, np.nan]), 2: (np.inf, np.int64(3))}
    assert plain(values) == {"a": [1.0, None], "2": [None, 3]}


@given(st.floats(-1e9, 1e9))
def test_numbers_keep_three_digits(value: float) -> None:
    text = number(value).replace("\u2212", "-")
    if "10" in text and text[-1] in "⁻⁰¹²³⁴⁵⁶⁷⁸⁹":
        factor, _, power = text.rpartition("10")
        factor = factor.rstrip("\u00d7").replace("-", "-1") if factor in ("-",) else factor.rstrip("\u00d7")
        exponent = int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
        parsed = float(factor or 1) * 10.0**exponent
    else:
        parsed = float(text)
    assert parsed == pytest.approx(value, rel=6e-3, abs=1e-300)


def test_long_labels_keep_both_ends() -> None:
    label = "expression of " + "x" * 60 + " at 24 h"
    assert len(short(label)) == 40
    assert short(label).startswith("expression")
    assert short(label).endswith("24 h")
