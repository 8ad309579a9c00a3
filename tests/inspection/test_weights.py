from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.inspection import KernelWeightsDisplay, StabilityResult

from .conftest import CLASSES, KERNELS, LABELS, X


def fitted(**attributes: Any) -> SimpleNamespace:
    """Stands for a fitted estimator: the display asks for attributes, never for a type."""
    return SimpleNamespace(
        **{"weights_": np.array([0.0, 0.6, 0.8]), "kernel_names_": list("abc"), **attributes}
    )


def labels(display: KernelWeightsDisplay) -> list[str]:
    return [text.get_text() for text in display.ax_.get_yticklabels()]


def widths(display: KernelWeightsDisplay, model: int = 0) -> list[float]:
    return [float(bar.get_width()) for bar in display.bars_[model]]


def ends(display: KernelWeightsDisplay, model: int = 0) -> Any:
    """Lower and upper ends of the intervals drawn, shape (2, n_kernels)."""
    return np.array([path.vertices[:, 0] for path in display.intervals_[model].get_paths()]).T


def test_bars_are_the_weights() -> None:
    display = KernelWeightsDisplay.from_estimator(fitted())
    assert widths(display) == [0.0, 0.6, 0.8]
    assert labels(display) == ["a", "b", "c"]
    assert display.intervals_ == []


def test_it_draws_on_the_axes_given() -> None:
    figure, ax = plt.subplots()
    display = KernelWeightsDisplay([1.0], ["a"]).plot(ax=ax, color="red")
    assert display.ax_ is ax
    assert display.figure_ is figure


def test_max_kernels_keeps_the_largest_in_order() -> None:
    assert labels(KernelWeightsDisplay.from_estimator(fitted(), max_kernels=2)) == ["c", "b"]


def test_of_very_many_kernels_the_largest_are_shown() -> None:
    weights = np.random.default_rng(0).random(1000)
    names = [f"k{m}" for m in range(1000)]
    display = KernelWeightsDisplay(weights, names).plot()
    assert_allclose(widths(display), np.sort(weights)[::-1][:60])
    assert "60 of 1,000 kernels" in display.ax_.get_xlabel()
    assert len(KernelWeightsDisplay(weights[:80], names[:80]).plot(max_kernels=None).bars_[0]) == 80
    assert labels(KernelWeightsDisplay(weights[:60], names[:60]).plot()) == names[:60]


def test_a_wrong_number_of_kernels_to_show_is_refused() -> None:
    with pytest.raises(ValueError, match="max_kernels=0 must be a positive integer"):
        KernelWeightsDisplay([1.0], ["a"]).plot(max_kernels=0)


def test_several_models_are_named_by_their_classes() -> None:
    weights = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    display = KernelWeightsDisplay.from_estimator(fitted(weights_=weights, classes_=["cat", "dog"]))
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["cat", "dog"]
    assert len(display.bars_) == 2


def test_several_models_without_matching_classes_are_numbered() -> None:
    weights = np.ones((3, 3))
    display = KernelWeightsDisplay.from_estimator(fitted(weights_=weights, classes_=["cat", "dog"]))
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["0", "1", "2"]


def test_intervals_are_drawn_over_their_bars() -> None:
    low, high = [0.1, 0.2, 0.3], [0.4, 0.5, 0.6]
    display = KernelWeightsDisplay([0.2, 0.3, 0.7], list("abc"), intervals=[low, high]).plot(max_kernels=2)
    assert labels(display) == ["c", "b"]
    assert_allclose(ends(display), [[0.3, 0.2], [0.6, 0.5]])
    middles = [bar.get_y() + bar.get_height() / 2 for bar in display.bars_[0]]
    assert_allclose([path.vertices[0, 1] for path in display.intervals_[0].get_paths()], middles)


@pytest.mark.parametrize("y", [LABELS, CLASSES], ids=["one model", "three models"])
def test_folds_of_a_cross_validation(y: Any) -> None:
    model = make_pipeline(StandardScaler(), kw.MKLClassifier(KERNELS))
    results = cross_validate(model, X, y, cv=3, return_estimator=True)
    weights = np.array([np.atleast_2d(fold[-1].weights_) for fold in results["estimator"]])
    for given in (results, results["estimator"]):
        display = KernelWeightsDisplay.from_cv_results(given)
        assert labels(display) == list(KERNELS)
        for k in range(weights.shape[1]):
            assert_allclose(widths(display, k), weights[:, k].mean(axis=0))
            assert_allclose(ends(display, k), [weights[:, k].min(axis=0), weights[:, k].max(axis=0)])


def test_folds_of_searches() -> None:
    results = cross_validate(kw.MKLClassifierCV(KERNELS, Cs=2, cv=2), X, LABELS, cv=2, return_estimator=True)
    expected = np.mean([search.weights_ for search in results["estimator"]], axis=0)
    assert_allclose(widths(KernelWeightsDisplay.from_cv_results(results)), expected)


def test_results_that_hold_no_comparable_fits_are_refused() -> None:
    with pytest.raises(ValueError, match="return_estimator=True"):
        KernelWeightsDisplay.from_cv_results({"test_score": [1.0]})
    with pytest.raises(ValueError, match="at least one"):
        KernelWeightsDisplay.from_cv_results([])
    with pytest.raises(ValueError, match="different kernels or classes"):
        KernelWeightsDisplay.from_cv_results([fitted(), fitted(weights_=np.ones(2))])


def test_stability_shows_shares_intervals_and_frequencies() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(3), size=20)
    result = StabilityResult(list("abc"), weights, np.array([0.5, 0.3, 0.2]), 0.8, 0.3)
    display = KernelWeightsDisplay.from_stability(result)
    assert widths(display) == [0.5, 0.3, 0.2]
    assert_allclose(ends(display), [result.low, result.high])
    percent = [f"{name} ({100 * f:.0f} %)" for name, f in zip("abc", result.frequency, strict=True)]
    assert labels(display) == percent
    assert display.ax_.get_xlabel() == "share of the kernel weights"


def test_wrong_number_of_names() -> None:
    with pytest.raises(ValueError, match="kernel_names has 1 names for 2 kernels"):
        KernelWeightsDisplay([1.0, 2.0], ["a"]).plot()


def test_an_unfitted_estimator_is_refused() -> None:
    with pytest.raises(ValueError, match="has no `weights_`"):
        KernelWeightsDisplay.from_estimator(SimpleNamespace())


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "kernelweave\[plot\]"'):
        KernelWeightsDisplay([1.0], ["a"]).plot()
