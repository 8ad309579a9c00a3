"""Ranks, critical differences, verdicts and costs of the experiment `alternatives`."""

from __future__ import annotations

from typing import Any

import alternatives
import numpy as np
import pytest
from reproduce import within
from scipy.stats import norm

SETS = ["mfeat", "sonar", "pima", "liver"]
METHODS = ["SVM", "GOMP", "MKLAuto"]


def rows_of(scores: np.ndarray, splits: int = 2) -> list[dict[str, Any]]:
    """Rows with these means of sets (rows) and methods (columns); 0.1 less and more on two splits."""
    return [
        {"data": data, "method": method, "split": s, "score": score + 0.1 * (-1) ** s, "seconds": 1.0 + m}
        for data, line in zip(SETS, scores, strict=True)
        for m, (method, score) in enumerate(zip(METHODS, line, strict=True))
        for s in range(splits)
    ]


def test_mean_ranks_count_the_methods_that_are_better_and_share_ties() -> None:
    scores = np.array([[90.0, 91.0, 92.0], [80.0, 80.0, 79.0], [70.0, 75.0, 75.0], [60.0, 50.0, 55.0]])
    found, width = alternatives.mean_ranks(rows_of(scores), SETS)
    better = (scores[:, None] > scores[:, :, None]).sum(axis=2)
    equal = (scores[:, None] == scores[:, :, None]).sum(axis=2)
    expected = (better + (equal + 1) / 2).mean(axis=0)
    assert found == pytest.approx(dict(zip(METHODS, expected, strict=True)))
    # the range of three standard normal numbers is over sqrt(2) q with probability 5 %
    x = np.linspace(-9.0, 9.0, 4001)
    q = width / np.sqrt(3 * 4 / (6 * len(SETS))) * np.sqrt(2)
    inside = 3.0 * np.trapezoid(norm.pdf(x) * (norm.cdf(x) - norm.cdf(x - q)) ** 2, x)
    assert inside == pytest.approx(0.95, abs=1e-6)


def test_a_method_that_lacks_a_set_has_no_rank() -> None:
    rows = rows_of(np.ones((4, 3)))[:-1][:-1]  # MKLAuto not run on the last set
    found, _ = alternatives.mean_ranks(rows, SETS)
    assert found == {"SVM": 1.5, "GOMP": 1.5}
    assert alternatives.mean_ranks(rows, [])[0] == {}


def test_methods_are_compared_on_splits_that_all_of_them_have() -> None:
    rows = rows_of(np.ones((4, 3)))
    fewer = [row for row in rows if (row["data"], row["method"], row["split"]) != ("pima", "MKLAuto", 1)]
    found = alternatives.shared_splits(fewer)
    assert {row["split"] for row in found if row["data"] == "pima"} == {0}
    assert [row for row in found if row["data"] != "pima"] == [row for row in rows if row["data"] != "pima"]
    lost = [row for row in fewer if row["method"] != "MKLAuto" or row["data"] != "pima"]
    assert alternatives.shared_splits(lost) == lost


def test_cells_of_other_methods_have_no_version_of_ours() -> None:
    for classes in (True, False):
        assert all(alternatives.version(name, classes) == {} for name in alternatives.rivals(classes, [1]))
        searches = (*alternatives.ours(classes), "best single kernel")
        assert {alternatives.version(name, classes)["rule"] for name in searches} == {alternatives.SEARCH}
    rules = [alternatives.version("MKLAuto", classes)["rule"] for classes in (True, False)]
    assert rules == [alternatives.RULE, alternatives.REGRESSION_RULE]


@pytest.mark.parametrize(
    ("auto", "verdict"),
    [
        ([1.0] * 4, "reproduced"),
        ([-0.5] * 4, "undecided"),
        ([-5.0] * 4, "contradicted"),
    ],  # CD 1.66
)
def test_the_best_mean_rank_is_judged_with_the_critical_difference(auto: list[float], verdict: str) -> None:
    scores = np.column_stack([np.zeros(4), np.full(4, -1.0), auto])
    line = alternatives.summarise(rows_of(scores)).lines[0]
    assert "mean rank" in line.what
    assert line.verdict == verdict
    wide = {"SVM": 1.0, "MKLAuto": 3.0}
    assert alternatives.rank_line("x", 4, wide, width=1.9).verdict == "contradicted"
    assert alternatives.rank_line("x", 4, wide, width=2.1).verdict == "undecided"


def test_every_set_is_judged_against_its_own_best() -> None:
    scores = np.array([[90.0, 91.0, 89.5], [80.0, 79.0, 77.5], [70.0, 75.0, 80.0], [60.0, 50.0, 60.0]])
    lines = alternatives.summarise(rows_of(scores)).lines[1:]
    assert [line.what.rpartition(" ")[2] for line in lines] == ["GOMP", "SVM", "GOMP", "SVM"]
    assert [line.verdict for line in lines] == ["reproduced", "contradicted", "reproduced", "reproduced"]


def test_being_behind_needs_both_the_margin_and_two_standard_errors() -> None:
    theirs = dict.fromkeys(range(4), 0.0)
    steady, noisy = {s: -3.0 + 0.1 * s for s in range(4)}, dict(enumerate([-12.0, 6.0, -12.0, 6.0]))
    assert within("x", steady, theirs, 2.0, paper="").verdict == "contradicted"
    assert within("x", steady, theirs, 3.5, paper="").verdict == "reproduced"
    assert within("x", noisy, theirs, 2.0, paper="").verdict == "reproduced"
    assert within("x", theirs, steady, 2.0, paper="", higher=False).verdict == "contradicted"
    assert within("x", {0: -9.0}, theirs, 2.0, paper="").verdict == "undecided"
    assert within("x", {}, theirs, 2.0, paper="").ours == "not run"


def test_costs_are_means_and_ratios_on_the_same_splits() -> None:
    table = alternatives.costs(rows_of(np.zeros((4, 3)), splits=1))
    assert table.lines == [
        ["SVM", "1.0", "1.0", "", ""],
        ["GOMP", "2.0", "2.0", "", ""],
        ["MKLAuto", "3.0", "3.0", "", ""],
    ]


def test_the_picture_has_a_diagram_for_each_kind_that_has_ranks() -> None:
    pytest.importorskip("matplotlib")
    figure = alternatives.draw(rows_of(np.arange(12.0).reshape(4, 3)))
    (ax,) = figure.axes
    assert ax.get_title(loc="left") == "mean rank, classification, 4 sets"
    assert {"MKLAuto  1.0", "GOMP  2.0", "SVM  3.0"} <= {text.get_text() for text in ax.texts}
