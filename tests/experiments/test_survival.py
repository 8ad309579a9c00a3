"""Means over cohorts, hindsight and verdicts of the experiments on survival."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import survival_tables
import survival_tcga as tcga

GAINS = {tcga.UNIFORM: 0.0, "rnaseq alone": 0.01, "clinical alone": -0.02, "random survival forest": 0.0}


def rows_of(auto: float, rivals: bool = True) -> list[dict[str, Any]]:
    """Rows of ten cohorts and five folds; every second cohort has rnaseq alone as its best."""
    rng, rows = np.random.default_rng(0), []
    for place, cohort in enumerate(tcga.COHORTS):
        for fold in range(5):
            base = 0.6 + 0.02 * rng.normal()
            for method, gain in {**GAINS, tcga.AUTO: auto}.items():
                own = gain * (-1) ** place if method == "rnaseq alone" else gain
                value = base + own + 0.001 * rng.normal()
                rows.append({"data": cohort, "method": method, "split": fold, "concordance": value,
                             "seconds": 1.0})  # fmt: skip
    return [row for row in rows if rivals or row["method"] not in tcga.RIVALS]


@pytest.mark.parametrize(
    ("auto", "verdicts"),
    [
        (0.02, ["reproduced", "reproduced", "reproduced", "undecided"]),
        (-0.02, ["contradicted", "contradicted", "contradicted", "undecided"]),
    ],
)
def test_what_is_judged_of_the_cohorts(auto: float, verdicts: list[str]) -> None:
    rows = rows_of(auto)
    found = tcga.summarise(rows)
    assert [line.verdict for line in found.lines[:4]] == verdicts
    best, uniform = tcga.hindsight(rows), tcga.by_cohort(rows, tcga.UNIFORM)
    assert np.mean([best[c] - uniform[c] for c in best]) == pytest.approx(0.005, abs=1e-3)
    assert f"{auto:+.2f}" in found.notes[0]


def test_a_rival_is_compared_on_the_folds_that_it_has() -> None:
    rows = [row for row in rows_of(0.02) if row["method"] != "random survival forest" or row["split"] < 2]
    ours, theirs = tcga.beside(rows, "random survival forest")
    assert [ours[c] - theirs[c] for c in theirs] == pytest.approx([0.02] * 10, abs=0.01)
    first = [row["concordance"] for row in rows
             if (row["data"], row["method"]) == ("blca", tcga.AUTO) and row["split"] < 2]  # fmt: skip
    assert ours["blca"] == pytest.approx(np.mean(first))


def test_rows_may_be_missing() -> None:
    assert "scikit-survival is not installed" in tcga.summarise(rows_of(0.0, rivals=False)).notes[-1]
    assert tcga.summarise([row for row in rows_of(0.0) if row["method"] != tcga.AUTO]).lines
    row = {"data": "whas", "method": "linear", "split": 0, "concordance": 0.8}
    [line] = survival_tables.summarise([row]).lines
    assert line.verdict == "undecided"  # one split


def test_the_clinical_view_is_filled_and_scaled_by_the_training_samples() -> None:
    X = np.array([[40.0, 0.0], [np.nan, 1.0], [60.0, 1.0], [900.0, 0.0]])
    found = tcga.prepared({"clinical": X}, np.array([0, 1, 2]))["clinical"]
    np.testing.assert_allclose(found[:3].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(found[:3].std(axis=0), 1.0)
    assert found[1, 0] == 0.0  # the median of 40 and 60
