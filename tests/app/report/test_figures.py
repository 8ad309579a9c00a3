"""Figures: places proportional to values, ticks that are round and inside, text that is escaped."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave.app.report.figures import Bar, Line, Point, bars, heatmap, lines, scatter
from kernelweave.app.report.figures.frame import short
from kernelweave.app.report.figures.scale import Scale
from kernelweave.app.report.html import escape, json_block, plain, tag
from kernelweave.app.report.numbers import number

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


def attribute(drawing: str, class_: str, name: str) -> list[float]:
    found = re.findall(rf"<\w+ ([^>]*class=\"{class_}\"[^>]*)>", drawing)
    return [float(re.search(rf' {name}="([-\d.]+)%?"', " " + text)[1]) for text in found]  # type: ignore[index]


def test_bars_are_as_long_as_their_values() -> None:
    values = [0.5, 0.25, -0.125]
    drawing = bars("b", "title", "desc", [Bar(f"k{v}", v, str(v)) for v in values])
    widths = np.array(attribute(drawing, "bar", "width"))
    assert widths / widths[0] == pytest.approx(np.abs(values) / 0.5, abs=1e-3)


def test_intervals_end_where_they_should() -> None:
    scale = Scale(0.0, 2.0, 0.0, 100.0)
    drawing = bars("b", "title", "desc", [Bar("k", 1.0, "1", low=0.5, high=1.5)], scale=scale)
    assert attribute(drawing, "interval", "x1") == [25.0, 25.0, 75.0]
    assert attribute(drawing, "interval", "x2") == [75.0, 25.0, 75.0]


def test_points_of_a_scatter_keep_their_order() -> None:
    points = [Point(float(x), float(x) ** 2, "tip") for x in range(4)]
    drawing = scatter("s", "title", "desc", points, x_label="x", y_label="y")
    across, down = attribute(drawing, "point", "cx"), attribute(drawing, "point", "cy")
    assert across == sorted(across)
    assert down == sorted(down, reverse=True)


def test_lines_fall_where_their_values_fall() -> None:
    series = [Line("a", [1, 2, 3], [1.0, 0.1, 0.01], "abc")]
    drawing = lines("l", "title", "desc", series, x_label="x", y_label="y", log_y=True)
    down = attribute(drawing, "point s0", "cy")
    assert down[1] - down[0] == pytest.approx(down[2] - down[1], abs=0.02)


def test_squares_are_as_dark_as_their_shares() -> None:
    shades = np.array([[1.0, 0.25], [0.5, 0.0]])
    drawing = heatmap("h", "title", "desc", shades, ["a", "b"], ["a", "b"], lambda i, j: f"{i}{j}")
    found = [float(x) for x in re.findall(r'fill-opacity="([\d.]+)"', drawing)]
    assert found == pytest.approx([1.0, 0.25, 0.5, 0.03])


@pytest.mark.parametrize("make", [bars, scatter])
def test_names_in_figures_are_escaped(make: Any) -> None:
    evil = '"><script>alert(1)</script>'
    if make is bars:
        drawing = bars("b", evil, evil, [Bar(evil, 1.0, evil, tip=evil)], label=evil)
    else:
        drawing = scatter("s", evil, evil, [Point(0.0, 0.0, evil)], x_label=evil, y_label=evil, names=[evil])
    assert "<script" not in drawing
    assert drawing.count("&lt;script&gt;") >= 4


def test_markup_is_escaped_unless_it_is_markup() -> None:
    assert tag("p", "<b>", tag("i", "x"), data_tip='"') == '<p data-tip="&quot;">&lt;b&gt;<i>x</i></p>'
    assert escape("\x00\ud800") == "\ufffd\ufffd"
    block = json_block("d", {"a": "</script><!--\u2028&"})
    assert block.count("<") == 2
    assert "\\u003c/script\\u003e" in block


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
