from __future__ import annotations

import pytest
from reproduce import claim, compare, select, standard_error, table


@pytest.mark.parametrize(
    ("ours", "higher", "verdict"),
    [
        ([92.5, 93.5], True, "reproduced"),
        ([91.0, 91.0], True, "reproduced"),  # one deviation exactly
        ([90.0, 91.0], True, "different"),
        ([96.0, 97.0], True, "better"),
        ([90.0, 91.0], False, "better"),
        ([96.0, 97.0], False, "different"),
    ],
)
def test_the_verdict_is_one_standard_deviation_wide(ours: list[float], higher: bool, verdict: str) -> None:
    line = compare("x", ours, paper=93.0, deviation=2.0, higher=higher, why="because")
    assert line.verdict == verdict
    assert line.why == ("because" if verdict == "different" else "")
    assert (line.paper, line.n) == ("93.0 (sd 2.0)", 2)


def test_without_the_papers_deviation_ours_counts() -> None:
    assert compare("x", [90.0, 94.0], paper=94.5).verdict == "reproduced"  # mean 92, deviation 2.83
    assert compare("x", [90.0, 94.0], paper=95.5).verdict == "different"
    assert compare("x", [92.0], paper=92.1).verdict == "different"  # one value has no deviation


def test_a_difference_without_a_reason_is_said_to_be_unexplained() -> None:
    assert compare("x", [1.0], paper=2.0).why == "not explained"
    assert claim("x", False, paper="a", ours="b").why == "not explained"


def test_figures_without_a_counterpart() -> None:
    assert compare("x", [1.0, 2.0]).verdict == "ours alone"
    assert compare("x", [], paper=2.0).ours == "not run"


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
