from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from kernelweave.inspection import KernelWeightsDisplay


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def fitted(**attributes: Any) -> SimpleNamespace:
    """Stands for a fitted estimator: the display asks for attributes, never for a type."""
    return SimpleNamespace(
        **{"weights_": np.array([0.0, 0.6, 0.8]), "kernel_names_": list("abc"), **attributes}
    )


def labels(display: KernelWeightsDisplay) -> list[str]:
    return [text.get_text() for text in display.ax_.get_yticklabels()]


def test_bars_are_the_weights() -> None:
    display = KernelWeightsDisplay.from_estimator(fitted())
    assert [bar.get_width() for bar in display.bars_[0]] == [0.0, 0.6, 0.8]
    assert labels(display) == ["a", "b", "c"]


def test_it_draws_on_the_axes_given() -> None:
    figure, ax = plt.subplots()
    display = KernelWeightsDisplay([1.0], ["a"]).plot(ax=ax, color="red")
    assert display.ax_ is ax
    assert display.figure_ is figure


def test_max_kernels_keeps_the_largest_in_order() -> None:
    assert labels(KernelWeightsDisplay.from_estimator(fitted(), max_kernels=2)) == ["c", "b"]


def test_several_models_are_named_by_their_classes() -> None:
    weights = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    display = KernelWeightsDisplay.from_estimator(fitted(weights_=weights, classes_=["cat", "dog"]))
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["cat", "dog"]
    assert len(display.bars_) == 2


def test_several_models_without_matching_classes_are_numbered() -> None:
    weights = np.ones((3, 3))
    display = KernelWeightsDisplay.from_estimator(fitted(weights_=weights, classes_=["cat", "dog"]))
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["0", "1", "2"]


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
