"""What the displays of survival draw is what the metrics say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.inspection import KaplanMeierDisplay, SurvivalCalibrationDisplay, SurvivalCurvesDisplay
from kernelweave.inspection.survival import groups_by
from kernelweave.kernels import Linear
from kernelweave.metrics import kaplan_meier, log_rank


def cohort(n: int = 60) -> tuple[Any, Any, Any]:
    """Risks, events and times: exponential with hazard exp(risk)."""
    rng = np.random.default_rng(0)
    risk = rng.normal(size=n)
    died, censored = rng.exponential(np.exp(-risk)), rng.exponential(2.0, size=n)
    return risk, died <= censored, np.minimum(died, censored)


class Exact:
    """An estimator that knows the hazards."""

    def predict(self, X: Any) -> Any:
        return np.asarray(X)[:, 0]

    def predict_survival_function(self, X: Any) -> list[Any]:
        def curve(risk: float) -> Any:
            x = np.array([0.5, 1.0, 2.0])
            found = SimpleNamespace(x=x, y=np.exp(-x * np.exp(risk)))
            return type("Step", (), {**vars(found), "__call__": lambda _, t: np.exp(-t * np.exp(risk))})()

        return [curve(risk) for risk in np.asarray(X)[:, 0]]


def test_groups_are_of_the_same_size_and_keep_ties_together() -> None:
    assert np.bincount(groups_by(np.random.default_rng(0).random(30), 3)).tolist() == [10, 10, 10]
    assert groups_by([1.0, 1.0, 1.0, 2.0], 2).tolist() == [0, 0, 0, 1]
    with pytest.raises(ValueError, match="n_groups=1"):
        groups_by([1.0, 2.0], 1)


def test_curves_of_risk_groups() -> None:
    risk, event, time = cohort()
    display = KaplanMeierDisplay.from_estimator(Exact(), risk[:, None], (event, time), n_groups=3)
    group = groups_by(risk, 3)
    assert display.test_.p_value == log_rank(event, time, group).p_value < 0.01
    for g, line in enumerate(display.lines_):
        times, survival = kaplan_meier(event[group == g], time[group == g])
        np.testing.assert_array_equal(line.get_xdata()[1:], times)
        np.testing.assert_array_equal(line.get_ydata(), [1.0, *survival])
        assert len(display.marks_[g].get_xdata()) == (~event[group == g]).sum()
    assert display.lines_[2].get_label().startswith("high risk")
    with pytest.raises(ValueError, match="group_names has 1 names for 2 groups"):
        KaplanMeierDisplay(event, time, risk > 0, ["one"]).plot()


def test_curves_of_single_samples() -> None:
    display = SurvivalCurvesDisplay.from_estimator(Exact(), [[0.0], [1.0]], names=["Ann", "Bob"])
    np.testing.assert_allclose(display.lines_[0].get_ydata(), [1.0, *np.exp([-0.5, -1.0, -2.0])])
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["Ann", "Bob"]
    with pytest.raises(ValueError, match="names has 1 names for 2 curves"):
        SurvivalCurvesDisplay([([1.0], [0.5])] * 2, ["one"]).plot()


def test_of_a_fitted_model() -> None:
    risk, event, time = cohort(40)
    y = np.array(list(zip(event, time, strict=True)), dtype=[("died", bool), ("months", float)])
    X = np.column_stack([risk, risk**2])
    model = kw.MKLSurvival(Linear()).fit(X, y)
    assert KaplanMeierDisplay.from_estimator(model, X, y).test_.p_value < 0.05
    (curve,) = model.predict_survival_function(X[:1])
    (line,) = SurvivalCurvesDisplay.from_estimator(model, X[:1]).lines_
    np.testing.assert_array_equal(line.get_ydata()[-len(curve.y) :], curve.y)
    display = SurvivalCalibrationDisplay.from_estimator(model, X, y, at=0.5, n_groups=2)
    assert display.observed_[0] < display.observed_[1]


def test_calibration_of_the_true_hazards() -> None:
    risk, event, time = cohort(1000)
    display = SurvivalCalibrationDisplay.from_estimator(
        Exact(), risk[:, None], (event, time), at=0.7, n_groups=4
    )
    # 250 samples in a group
    np.testing.assert_allclose(display.observed_, display.predicted_, atol=3 * np.sqrt(0.25 / 200))
    assert (np.diff(display.predicted_) > 0.1).all()
    np.testing.assert_array_equal(display.line_.get_ydata(), display.observed_)


def test_calibration_where_nothing_is_known() -> None:
    event, time, S = [False, False, True, True], [1.0, 1.0, 2.0, 4.0], [0.1, 0.1, 0.9, 0.9]
    display = SurvivalCalibrationDisplay(event, time, S, at=3.0, n_groups=2).plot()
    np.testing.assert_array_equal(display.observed_, [np.nan, 0.5])
    with pytest.raises(ValueError, match=r"at=9\.0 must be among the times"):
        SurvivalCalibrationDisplay(event, time, S, at=9.0).plot()
    with pytest.raises(ValueError, match="survival has shape"):
        SurvivalCalibrationDisplay(event, time, S[:2], at=2.0).plot()
