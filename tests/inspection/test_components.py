"""f = b + sum_m f_m for every estimator that learns kernel weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.gram import KernelStack, Predictor
from kernelweave.inspection import contributions
from kernelweave.kernels import RBF, Linear, per_feature

from .conftest import CLASSES, KERNELS, LABELS, MODELS, NEW, X, Y

Fitted = Callable[[str], tuple[Any, Any, Any]]


def values(model: Any, X: Any) -> Any:
    """f of every function, shape (n, n_functions), by the model's own methods."""
    inner = getattr(model, "best_estimator_", model)
    if hasattr(inner, "_predictive"):  # a classifier moderates the posterior mean
        return inner._predictive(X, False)[0]
    if getattr(inner, "_pairwise", False):  # votes of pairs are not their values
        return inner._decision(X)
    ask = model.decision_function if hasattr(model, "decision_function") else model.predict
    return np.asarray(ask(X)).reshape(len(X), -1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_the_components_and_the_intercept_sum_to_the_prediction(name: str, models: Fitted) -> None:
    model, data, _ = models(name)
    new = data[:7] + 0.05
    parts = contributions(model, new)
    intercept = getattr(model, "best_estimator_", model).intercept_
    f = values(model, new)
    assert parts.shape == ((7, parts.shape[-1]) if f.shape[1] == 1 else (f.shape[1], 7, parts.shape[-1]))
    total = np.atleast_3d(parts.T).sum(axis=0) + intercept  # (n, n_functions)
    assert_allclose(total, f, rtol=1e-9, atol=1e-9 * np.abs(f).max())


@pytest.mark.parametrize("name", MODELS)
def test_kernels_without_weight_add_nothing_and_others_something(name: str, models: Fitted) -> None:
    model, data, _ = models(name)
    parts = contributions(model, data)
    used = np.atleast_2d(model.weights_).any(axis=0)[: parts.shape[-1]]
    moved = np.abs(parts).reshape(-1, parts.shape[-1]).max(axis=0) > 0
    assert_allclose(moved, used)


@pytest.mark.parametrize("normalize", ["variance", "center", "trace", None])
def test_a_component_is_weight_times_kernel_times_alpha(normalize: str | None) -> None:
    model = kw.MKLRegressor([RBF(gamma=0.3), Linear()], normalize=normalize).fit(X, Y)
    raw = [RBF(gamma=0.3), Linear()]
    parts = contributions(model, X)
    for m, kernel in enumerate(raw):
        K = kernel.fit(X)(X)
        if normalize == "center":
            H = np.eye(len(X)) - 1.0 / len(X)
            K = H @ K @ H
        scale = {None: 1.0, "trace": K.diagonal().mean()}.get(normalize, K.diagonal().mean() - K.mean())
        assert_allclose(parts[:, m], model.weights_[m] * K @ model.dual_coef_ / scale, atol=1e-9)


def test_kernels_computed_together_are_told_apart() -> None:
    """Sixteen Gaussian kernels on different columns make one term; each alone is the definition."""
    data = np.random.default_rng(1).normal(size=(50, 20))
    y = np.sign(data[:, 0] + data[:, 1])
    for normalize in ("variance", "center"):
        model = kw.MKLClassifier(per_feature(RBF(gamma=0.5)), normalize=normalize).fit(data, y)
        parts = contributions(model, data)
        assert_allclose(parts.sum(axis=1) + model.intercept_, model.decision_function(data), atol=1e-9)
        K = RBF(gamma=0.5, columns=[3]).fit(data)(data)
        if normalize == "center":
            K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        scale = K.diagonal().mean() - K.mean()
        assert_allclose(parts[:, 3], model.weights_[3] * K @ model.dual_coef_ / scale, atol=1e-9)


def test_precomputed_matrices() -> None:
    stack = KernelStack([kernel.fit(X)(X) for kernel in (RBF(gamma=0.3), Linear())])
    model = kw.MKLClassifier("precomputed").fit(stack, LABELS)
    total = contributions(model, stack).sum(axis=1) + model.intercept_
    assert_allclose(total, model.decision_function(stack))


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch, models: Fitted) -> None:
    model, data, _ = models("binary")
    whole = contributions(model, data)
    monkeypatch.setattr(Predictor, "block_bytes", 8 * 60 * 7)
    assert_allclose(contributions(model, data), whole, atol=1e-12)


def test_a_pipeline_is_asked_with_raw_data() -> None:
    model = make_pipeline(StandardScaler(), kw.MKLClassifier(KERNELS)).fit(X, CLASSES)
    parts = contributions(model, NEW)
    assert_allclose(parts.sum(axis=2).T + model[-1].intercept_, model.decision_function(NEW))


def test_a_product_of_kernels_has_no_components() -> None:
    model = kw.GMKLRegressor().fit(X, Y)
    with pytest.raises(ValueError, match="ProductRBF is not a sum of kernels"):
        contributions(model, X)


def test_an_unfitted_model_is_refused() -> None:
    with pytest.raises(ValueError, match="not fitted yet"):
        contributions(kw.MKLClassifier(), X)


def test_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="StandardScaler has no `weights_`"):
        contributions(StandardScaler().fit(X), X)
