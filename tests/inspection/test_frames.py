"""Weights of every estimator as a table, and as a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import kernelweave as kw

from .conftest import MODELS

Fitted = Callable[[str], tuple[Any, Any, Any]]


@pytest.mark.parametrize("name", MODELS)
def test_every_estimator_writes_its_weights(name: str, models: Fitted, tmp_path: Path) -> None:
    model, _, _ = models(name)
    weights = np.atleast_2d(model.weights_)
    frame = model.weights_frame()
    assert list(frame["kernel"]) == list(model.kernel_names_) * len(weights)
    frame.to_csv(tmp_path / "weights.csv", index=False)
    back = pd.read_csv(tmp_path / "weights.csv")
    assert_allclose(back["weight"], weights.ravel())
    assert list(back["model"]) == np.repeat(np.arange(len(weights)), weights.shape[1]).tolist()


@pytest.mark.parametrize("cls", [kw.MKLClassifierCV, kw.GroupOMPRegressorCV, kw.GMKLClassifier])
def test_an_unfitted_estimator_has_no_weights(cls: Any) -> None:
    with pytest.raises(ValueError, match="not fitted yet"):
        cls().weights_frame()
