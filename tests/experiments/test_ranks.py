from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reproduce.diagram import draw_ranks
from reproduce.ranks import alike, critical_difference, friedman, holm, ranks
from scipy import stats

#: two-tailed Nemenyi test at 5 % and 10 %, Demšar (2006), Table 5 (a); numbers of methods 2 to 10
Q05 = (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)
Q10 = (1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("levels", [3, 1000])  # with ties, and hardly any
def test_ranks_and_friedmans_test_are_those_of_scipy(seed: int, levels: int) -> None:
    scores = np.random.default_rng(seed).integers(levels, size=(9, 5)).astype(float)
    np.testing.assert_array_equal(ranks(scores), [stats.rankdata(-row) for row in scores])
    found, theirs = friedman(scores), stats.friedmanchisquare(*scores.T)
    assert found.chi2 == pytest.approx(theirs.statistic)
    assert found.p == pytest.approx(theirs.pvalue)


def test_the_corrected_statistic_is_the_two_way_analysis_of_the_ranks() -> None:
    R = ranks(np.random.default_rng(0).normal(size=(12, 4)))
    columns = 12 * np.sum((R.mean(axis=0) - R.mean()) ** 2)
    rest = np.sum((R - R.mean(axis=0)) ** 2)  # all rows have the same mean rank
    F = (columns / 3) / (rest / 33)
    found = friedman(-R)
    assert found.F == pytest.approx(F)
    assert found.p_corrected == pytest.approx(stats.f.sf(F, 3, 33))


def test_methods_that_always_tie_do_not_differ() -> None:
    assert friedman(np.ones((6, 3))).p == 1.0


@pytest.mark.parametrize(("alpha", "table"), [(0.05, Q05), (0.10, Q10)])
def test_critical_values_are_the_published_ones(alpha: float, table: tuple[float, ...]) -> None:
    for k, q in enumerate(table, 2):
        assert critical_difference(k, 20, alpha) == pytest.approx(q * (k * (k + 1) / 120) ** 0.5, abs=1e-3)


@given(st.lists(st.floats(1, 10), min_size=2, max_size=9), st.floats(0.1, 5))
def test_two_methods_share_a_bar_exactly_if_they_are_near(found: list[float], difference: float) -> None:
    r = np.sort(found)
    bars = alike(r.tolist(), difference)
    for a in range(len(r)):
        for b in range(a + 1, len(r)):
            joined = any(first <= a and b <= last for first, last in bars)
            assert joined == bool(r[b] <= r[a] + difference)
    assert all(not (x != y and x[0] <= y[0] and y[1] <= x[1]) for x in bars for y in bars)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_the_stepwise_procedure(p: list[float]) -> None:
    order, largest = np.argsort(p, kind="stable"), 0.0
    for step, i in enumerate(order):
        largest = max(largest, (len(p) - step) * p[i])
        assert holm(p)[i] == pytest.approx(min(largest, 1.0))


def test_the_diagram_names_all_methods_and_joins_those_that_do_not_differ() -> None:
    pytest.importorskip("matplotlib")
    found = {"b": 2.0, "a": 1.5, "d": 4.0, "c": 2.5}
    ax, other = draw_ranks({"": (found, 1.2), "others": ({"e": 1.0, "f": 2.0}, 0.5)}).axes
    assert other.get_title(loc="left") == "others"
    assert not [line for line in other.lines if line.get_linewidth() > 3]
    texts = [text.get_text() for text in ax.texts]
    assert {"a  1.5", "b  2.0", "c  2.5", "d  4.0", "critical difference 1.20"} <= set(texts)
    bars = [line.get_xdata() for line in ax.lines if line.get_linewidth() > 3]
    assert [np.round(bar, 2).tolist() for bar in bars] == [[1.44, 2.56]]
