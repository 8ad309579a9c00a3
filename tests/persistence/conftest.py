"""Fitted models and the comparison of a model with what a file gave back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernelweave as kw


def fitted(model: Any, *data: Any) -> Any:
    """Fit on tiny data, where convergence and dead kernels are not the point."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data)


def answers(model: Any, X: Any) -> dict[str, Any]:
    """Everything a model says about samples."""
    methods = ("predict", "decision_function", "predict_proba", "predict_log_proba", "score_samples")
    found = {name: getattr(model, name)(X) for name in methods if _can(model, name)}
    if hasattr(model, "staged_predict"):
        found["staged_predict"] = np.array(list(model.staged_predict(X)))
    if hasattr(model, "noise_") and not hasattr(model, "classes_") and not model._precomputed:
        found["std"] = model.predict(X, return_std=True)[1]
    return found


def _can(model: Any, name: str) -> bool:
    # without k(x, x) of new samples there are no predictive variances
    uncertain = isinstance(model, kw.EmpiricalBayesClassifier) and model._precomputed
    return hasattr(model, name) and not (uncertain and "proba" in name)


@pytest.fixture
def round_trip(tmp_path: Path) -> Callable[[Any, Any], Any]:
    """Store, load, and compare: equal answers, equal attributes (the same file again), equal looks."""

    def check(model: Any, X_new: Any) -> Any:
        first, second = tmp_path / "first.kw", tmp_path / "second.kw"
        kw.save_model(model, first)
        loaded = kw.load_model(first)
        before, after = answers(model, X_new), answers(loaded, X_new)
        assert before.keys() == after.keys() != set()
        for name, values in before.items():
            assert np.array_equal(values, after[name]), name
            assert values.dtype == after[name].dtype
        kw.save_model(loaded, second)
        assert first.read_bytes() == second.read_bytes()
        assert type(loaded) is type(model)
        if hasattr(model, "weights_frame"):
            assert loaded.weights_frame().equals(model.weights_frame())
        return loaded

    return check
