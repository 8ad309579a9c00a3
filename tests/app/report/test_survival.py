"""What a report says of censored times, against its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from kernelweave.app.report import Report
from kernelweave.app.report.words import number
from kernelweave.inspection import KaplanMeierDisplay, SurvivalCalibrationDisplay
from kernelweave.metrics import concordance_harrell, log_rank


@pytest.fixture
def case(cases: Any) -> Any:
    return cases("survival")


def test_numbers_are_those_of_metrics_and_displays(case: Any, shown: Any) -> None:
    found, risk = case.report.survival, case.model.predict(case.X_test)
    event, time = case.y_test["f0"], case.y_test["f1"]
    scored = concordance_harrell(event, time, risk)
    assert found.concordance.value == pytest.approx(scored)
    assert case.report.scores.model.value == pytest.approx(scored)
    low, high = found.interval
    assert low < scored < high < low + 0.4
    display = KaplanMeierDisplay.from_estimator(case.model, case.X_test, case.y_test, n_groups=3)
    assert found.p_value == pytest.approx(display.test_.p_value)
    group = np.concatenate([np.full(one.n, k) for k, one in enumerate(found.groups)])
    order = np.argsort(risk, kind="stable")
    assert found.p_value == pytest.approx(log_rank(event[order], time[order], group).p_value)
    for at, one in zip(found.times, found.calibration, strict=True):
        drawn = SurvivalCalibrationDisplay.from_estimator(
            case.model, case.X_test, case.y_test, at, n_groups=3
        )
        seen = np.isfinite(drawn.observed_)
        np.testing.assert_allclose([one.x, one.y], [drawn.predicted_[seen], drawn.observed_[seen]])
    assert 0.0 < found.brier < found.reference < 0.3
    page = case.page
    assert page.column("groups-table", "Samples") == {one.curve.name: str(one.n) for one in found.groups}
    curves = case.model.predict_survival_function(case.X_test)
    told = page.column("survival-table", f"Survival at {number(found.times[1])}")
    for k, curve in enumerate(curves):
        assert shown(told[f"P{k:02d}"]) == pytest.approx(curve(found.times[1]), abs=6e-4)
    below = [curve.x[np.argmax(curve.y <= 0.5)] if (curve.y <= 0.5).any() else np.nan for curve in curves]
    np.testing.assert_allclose(found.median, below)
    drawn = {curve.name: curve for curve in found.curves}
    assert len(drawn) == 6
    for name, curve in drawn.items():
        truth = curves[int(name[1:])]
        np.testing.assert_allclose(curve.y, truth(curve.x))


def test_names_and_words(case: Any) -> None:
    page = case.page
    assert "Concordance" in page.text
    assert "same risk for all" in page.text
    assert "log-rank test, p = " in page.text
    assert "Cox, D. R. (1972)" in page.text
    assert f"{case.y['f0'].sum()} events, other times are censored" in page.text
    assert set(case.report.samples.labels) <= {f"P{k:02d}" for k in range(30)}
    assert "(event)" in case.report.samples.truth[0] or "(censored)" in case.report.samples.truth[0]


def test_other_losses_and_strata(case: Any) -> None:
    """Without curves, and with several baselines; nothing held out."""
    plain: dict[str, Any] = {"baselines": [], "stability": False}
    ranking = clone(case.model).set_params(loss="survival_ranking").fit(case.X, case.y)
    report = Report.from_model(ranking, case.X, case.y, X_test=case.X_test, y_test=case.y_test, **plain)
    assert report.survival.curves == report.survival.calibration == ()
    assert "Survival by predicted risk" in report.html()
    several = (case.y["f0"], case.y["f1"], np.arange(len(case.y)) % 2)
    model = clone(case.model).fit(case.X, several)
    report = Report.from_model(model, case.X, several, **plain)
    assert report.survival.baseline is None
    assert report.survival.part == "training"
    assert 'id="sample-curve"' not in report.html()
