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
    models = list(dict.fromkeys(back["model"]))
    assert len(models) == len(weights)
    assert list(back["model"]) == np.repeat(models, weights.shape[1]).tolist()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("binary", ["yes vs no"]),
        ("ovr", [0, 1, 2]),
        ("ovo", ["1 vs 0", "2 vs 0", "2 vs 1"]),
        ("shared", ["all classes"]),
        ("classifier cv", ["yes vs no"]),
        ("greedy classes", ["all classes"]),
        ("bayes classes", [0, 1, 2]),
        ("generalized classifier", ["yes vs no"]),
        ("regressor", [0]),
        ("outputs", ["all outputs"]),
        ("bayes outputs", [0, 1]),
        ("one class", [0]),
    ],
)
def test_models_are_named_by_what_they_learn(name: str, expected: list[Any], models: Fitted) -> None:
    frame = models(name)[0].weights_frame()
    assert list(dict.fromkeys(frame["model"])) == expected


@pytest.mark.parametrize("cls", [kw.MKLClassifierCV, kw.GroupOMPRegressorCV, kw.GMKLClassifier])
def test_an_unfitted_estimator_has_no_weights(cls: Any) -> None:
    with pytest.raises(ValueError, match="not fitted yet"):
        cls().weights_frame()
