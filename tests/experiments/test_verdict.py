"""The rules that verdicts follow, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reproduce import (
    Line,
    alike,
    all_above,
    by,
    compare,
    error_of,
    ordering,
    select,
    standard_error,
    table,
    threshold,
    untestable,
)

numbers = st.lists(st.floats(-50, 50).map(lambda x: round(x, 3)), min_size=2, max_size=6)


def splits(values: list[float]) -> dict[int, float]:
    return dict(enumerate(values))


@given(numbers, st.floats(-50, 50), st.none() | st.floats(0.01, 20))
def test_a_figure_is_within_two_standard_errors_of_the_difference(
    values: list[float], paper: float, error: float | None
) -> None:
    own = np.var(values, ddof=1) / len(values)
    allowed = 2.0 * np.sqrt(own + (0.0 if error is None else error**2))
    line, distance = compare("x", values, paper, error), np.mean(values) - paper
    if abs(abs(distance) - allowed) > 1e-9:
        assert line.verdict == ("reproduced" if abs(distance) <= allowed else "not reproduced")
    assert line.side == ("" if line.verdict == "reproduced" else "higher" if distance > 0 else "lower")
    assert (line.kind, line.n) == ("figure", len(values))


@given(numbers, st.integers(0, 2**32 - 1), st.booleans())
def test_an_order_is_judged_on_paired_differences(values: list[float], seed: int, higher: bool) -> None:
    others = np.round(values + np.random.default_rng(seed).normal(scale=2.0, size=len(values)), 3).tolist()
    d = np.subtract(values, others) * (1.0 if higher else -1.0)
    t = d.mean() / (d.std(ddof=1) / np.sqrt(len(d)))
    line = ordering("a above b", splits(values), splits(others), paper="yes", higher=higher)
    if abs(abs(t) - 2.0) > 1e-6:
        assert line.verdict == ("reproduced" if t > 2 else "contradicted" if t < -2 else "undecided")
    turned = ordering("b above a", splits(others), splits(values), paper="yes", higher=higher).verdict
    opposite = {"reproduced": "contradicted", "contradicted": "reproduced", "undecided": "undecided"}
    assert turned == opposite[line.verdict]


def test_differences_that_the_deviation_of_one_draw_would_hide_are_seen() -> None:
    rng = np.random.default_rng(0)
    hard = rng.normal(80.0, 5.0, size=20)  # splits differ by far more than methods do
    ours, theirs = splits(hard + 1.0 + 0.1 * rng.normal(size=20)), splits(hard)
    assert ordering("a above b", ours, theirs, paper="yes").verdict == "reproduced"
    assert (
        ordering("a above b", splits(rng.permutation(hard) + 1.0), theirs, paper="yes").verdict == "undecided"
    )


def test_only_splits_that_both_have_are_compared() -> None:
    ours, theirs = {0: 3.0, 1: 5.0, 2: 100.0}, {1: 1.0, 0: 2.0, 3: -100.0}
    line = ordering("a above b", ours, theirs, paper="yes")
    assert (line.ours, line.n) == ("4.00 against 1.50: +2.50 ± 1.50", 2)


@pytest.mark.parametrize(
    ("shifts", "verdict", "pair"),
    [
        ((3.0, 4.0), "reproduced", "a and b"),
        ((-3.0, 4.0), "contradicted", "a and b"),
        ((4.0, 0.0), "undecided", "a and c"),
    ],
)
def test_several_orders_hold_if_all_do_and_fail_if_one_does(
    shifts: tuple[float, float], verdict: str, pair: str
) -> None:
    noise = np.random.default_rng(0).normal(size=(2, 12))
    noise = (noise - noise.mean(axis=1, keepdims=True)) / noise.std(axis=1, keepdims=True)
    ours = np.arange(12.0)
    rivals = {name: splits(ours - shift + e) for name, shift, e in zip("bc", shifts, noise, strict=True)}
    line = all_above("a is best", {"a": splits(ours)}, {**rivals, "never run": {}}, paper="a", why="because")
    assert line.verdict == verdict
    assert line.ours.startswith(f"{pair}, weakest of 2: ")
    assert line.why == ("" if verdict == "reproduced" else "because")


@pytest.mark.parametrize(
    ("bound", "verdict"), [(8.0, "reproduced"), (10.1, "undecided"), (12.0, "contradicted")]
)
def test_a_bound_is_judged_by_the_standard_error_of_our_mean(bound: float, verdict: str) -> None:
    values = [9.0, 10.0, 11.0, 10.0]  # 10.0 +- 0.4; one draw has a deviation of 0.8
    assert threshold("above", values, bound, paper="yes").verdict == verdict
    turned = {"reproduced": "contradicted", "contradicted": "reproduced"}.get(verdict, verdict)
    assert threshold("below", values, bound, paper="yes", above=False).verdict == turned


def test_methods_are_alike_unless_a_difference_is_seen() -> None:
    ours = splits([1.0, 2.0, 3.0, 4.0])
    other = {split: value + e for (split, value), e in zip(ours.items(), (0.5, -0.4, 0.3, -0.5), strict=True)}
    more = {split: value + 1.0 + 0.1 * split for split, value in ours.items()}
    assert alike("a as b", ours, other, paper="yes").verdict == "reproduced"
    worse = alike("a as b", ours, more, paper="yes")
    assert (worse.verdict, worse.side) == ("not reproduced", "behind")
    assert alike("a as b", more, ours, paper="yes").side == "ahead"
    assert alike("a loses nothing", more, ours, paper="yes", or_better=True).verdict == "reproduced"
    assert alike("a loses nothing", more, ours, paper="yes", or_better=True, higher=False).side == "behind"


def test_one_repetition_decides_nothing() -> None:
    assert compare("x", [1.0], 5.0).verdict == "undecided"
    assert ordering("a above b", {0: 2.0}, {0: 1.0}, paper="yes").verdict == "undecided"
    assert threshold("above", [2.0], 1.0, paper="yes").verdict == "undecided"
    assert alike("a as b", {0: 2.0}, {0: 1.0}, paper="yes").verdict == "undecided"
    assert {f("x", {}, {}, paper="").ours for f in (ordering, alike)} == {"not run"}
    assert (compare("x", [], 1.0).ours, threshold("x", [], 1.0, paper="").ours) == ("not run", "not run")


def test_values_that_never_differ_are_decided_without_a_standard_error() -> None:
    same = dict.fromkeys(range(3), 1.0)
    assert ordering("a above b", dict.fromkeys(range(3), 2.0), same, paper="yes").verdict == "reproduced"
    assert ordering("a above b", same, same, paper="yes").verdict == "undecided"
    assert compare("x", [100.0, 100.0], 100.0).verdict == "reproduced"


def test_figures_without_a_counterpart_and_statements_without_data() -> None:
    assert compare("x", [1.0, 2.0]).verdict == "ours alone"
    assert compare("x", [1.0, 2.0], 1.5, error_of(2.0, 4)).paper == "1.5 ± 1.0"
    line = untestable("x", "yes", "no data")
    assert (line.verdict, line.why) == ("not testable here", "no data")
    with pytest.raises(ValueError, match="verdict='better'"):
        Line("x", "1", "2", "better")


def test_values_by_split_and_by_several_settings() -> None:
    rows = [{"split": s, "size": n, "method": "a", "x": s + n} for s in (0, 1) for n in (10, 20)]
    assert by(rows, "x", ("size", "split"), method="a") == {
        (10, 0): 10,
        (20, 0): 20,
        (10, 1): 11,
        (20, 1): 21,
    }
    assert by([*rows, {"split": 2}], "x", size=10) == {0: 10.0, 1: 11.0}


def test_tables_hold_means_and_standard_errors() -> None:
    rows = [{"p": p, "n": n, "e": n + r} for p in ("l1", "l2") for n in (1, 2) for r in (0.0, 1.0, 5.0)]
    found = table("t", rows[:-3], "e", down="p", across="n")
    error = standard_error(select(rows, "e", p="l1", n=1))
    assert error == pytest.approx((7.0 / 3.0) ** 0.5)
    assert found.header == ["p", "1", "2"]
    assert found.lines == [
        ["l1", f"3.00 ± {error:.2f}", f"4.00 ± {error:.2f}"],
        ["l2", f"3.00 ± {error:.2f}", ""],
    ]
