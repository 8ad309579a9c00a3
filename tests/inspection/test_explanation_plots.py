"""Plots of explanations, their intervals, and the way to shap."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.inspection import AttributionCurveDisplay, BeeswarmDisplay, Explanation, WaterfallDisplay
from kernelweave.kernels import RBF, Linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 6))


@pytest.fixture(scope="module")
def found() -> Explanation:
    model = kw.MKLRegressor({"rbf": RBF(), "line": Linear()}).fit(X, X[:, 1] * X[:, 4])
    return kw.explain(model, X[:20], X[20:30])


@pytest.fixture(scope="module")
def classes() -> Explanation:
    model = kw.MKLClassifier(RBF()).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    return kw.explain(model, X[:4], X[4:8])


def ends(display: Any) -> float:
    last = display.bars_[-1]
    return float(last.get_x() + last.get_width())


@pytest.mark.parametrize("by", ["feature", "kernel"])
def test_a_waterfall_ends_at_the_value(found: Explanation, by: str) -> None:
    pytest.importorskip("matplotlib")
    value = found.base_value + found.values[3].sum()
    assert ends(WaterfallDisplay(found).plot(sample=3, by=by, max_bars=2)) == pytest.approx(value)
    display = WaterfallDisplay(found).plot(sample=3, by=by)
    assert f"to {value:.4g}" in display.ax_.get_xlabel()
    part = ends(WaterfallDisplay(found).plot(sample=3, kernel="rbf"))
    assert part == pytest.approx(found.kernel_values[3, 0])
    with pytest.raises(ValueError, match="by='class'"):
        WaterfallDisplay(found).plot(by="class")


def test_features_fill_the_bar_of_their_kernel(found: Explanation) -> None:
    pytest.importorskip("matplotlib")
    display = WaterfallDisplay(found).plot(sample=3, by="both", max_bars=8)
    heights = [bar.get_height() for bar in display.bars_]
    outer = [k for k, height in enumerate(heights) if height == max(heights)]
    assert {display.labels_[k] for k in outer} == {"rbf", "line"}
    for k, until in zip(outer, [*outer[1:], len(heights)], strict=True):
        inner, kernel = display.bars_[k + 1 : until], display.bars_[k]
        assert sum(bar.get_width() for bar in inner) == pytest.approx(kernel.get_width())
        assert inner[0].get_x() == pytest.approx(kernel.get_x())
        m = found.kernel_names.index(display.labels_[k])
        assert kernel.get_width() == pytest.approx(found.kernel_values[3, m])
    value = found.base_value + found.values[3].sum()
    assert f"to {value:.4g}" in display.ax_.get_xlabel()


def test_samples_and_functions_are_found_by_name(found: Explanation, classes: Explanation) -> None:
    pytest.importorskip("matplotlib")
    named = replace(found, sample_names=[f"s{i}" for i in range(20)])
    assert ends(WaterfallDisplay(named).plot(sample="s3")) == ends(WaterfallDisplay(found).plot(sample=3))
    with pytest.raises(ValueError, match="sample='s99' is none of 20: give a row, or an ID such as 's0'"):
        WaterfallDisplay(named).plot(sample="s99")
    with pytest.raises(ValueError, match="sample=20 is none of 20"):
        WaterfallDisplay(named).plot(sample=20)
    told = replace(classes, function_names=["low", "middle", "high"])
    np.testing.assert_array_equal(told.function("high"), told.function(2))
    with pytest.raises(ValueError, match=r"function='none': choose one of 0 \(low\)"):
        BeeswarmDisplay(told).plot(function="none")


def test_plots_of_several_functions_want_a_choice(classes: Explanation) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match="function: choose one of 0"):
        BeeswarmDisplay(classes).plot()
    value = classes.base_value[2] + classes.values[2, 1].sum()
    assert ends(WaterfallDisplay(classes).plot(sample=1, function=2)) == pytest.approx(value)


def test_a_swarm_shows_every_value_and_the_interaction_first(found: Explanation) -> None:
    pytest.importorskip("matplotlib")
    display = BeeswarmDisplay(found).plot(max_features=3)
    assert set(display.shown_[:2]) == {1, 4}
    for points, f in zip(display.points_, display.shown_, strict=True):
        np.testing.assert_allclose(points.get_offsets()[:, 0], found.values[:, f])


def test_a_curve_has_a_point_for_each_channel(found: Explanation) -> None:
    pytest.importorskip("matplotlib")
    display = AttributionCurveDisplay(found).plot()
    np.testing.assert_allclose(display.line_.get_ydata(), np.abs(found.values).mean(axis=0))
    with pytest.raises(ValueError, match="positions has shape"):
        AttributionCurveDisplay(found, [1.0]).plot()


def test_intervals_hold_the_mean_and_shrink_with_their_level(found: Explanation) -> None:
    wide, narrow = found.importance(0.99), found.importance(0.5)
    assert (wide.low <= narrow.low).all()
    assert (narrow.high <= wide.high).all()
    assert ((wide.low <= wide.mean) & (wide.mean <= wide.high)).all()
    np.testing.assert_allclose(wide.mean, np.abs(found.values).mean(axis=0))
    with pytest.raises(ValueError, match=r"level=1\.5"):
        found.importance(1.5)


def test_shap_gets_the_same_numbers(
    found: Explanation, classes: Explanation, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = SimpleNamespace(Explanation=lambda values, **rest: SimpleNamespace(values=values, **rest))
    monkeypatch.setitem(sys.modules, "shap", made)
    one, several = found.to_shap(), classes.to_shap()
    np.testing.assert_array_equal(one.values, found.values)
    assert one.base_values.shape == (20,)
    assert several.values.shape == (4, 6, 3)
    assert several.base_values.shape == (4, 3)
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match="pip install shap"):
        found.to_shap()
