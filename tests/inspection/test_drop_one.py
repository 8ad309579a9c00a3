"""Scores without a kernel's component."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score

import kernelweave as kw
from kernelweave.inspection import contributions, drop_one

from .conftest import KERNELS, LABELS, MODELS, X, Y

Fitted = Callable[[str], tuple[Any, Any, Any]]


@pytest.mark.parametrize("name", [name for name in MODELS if name != "one class"])
def test_full_score_is_the_models_own(name: str, models: Fitted) -> None:
    model, data, y = models(name)
    result = drop_one(model, data, y)
    assert result.full_score == pytest.approx(model.score(data, y))
    assert len(result.scores) == len(result.kernel_names)


def test_scores_are_those_of_the_sum_without_the_component(models: Fitted) -> None:
    model, data, y = models("regressor")
    parts = contributions(model, data)
    expected = [
        r2_score(y, np.delete(parts, m, axis=1).sum(axis=1) + model.intercept_) for m in range(parts.shape[1])
    ]
    result = drop_one(model, data, y)
    assert_allclose(result.scores, expected)
    assert_allclose(result.effects, result.full_score - np.array(expected))


def test_scorers_may_ask_for_labels_values_and_probabilities(models: Fitted) -> None:
    model, data, y = models("binary")
    parts, b = contributions(model, data), model.intercept_
    without = np.delete(parts, 0, axis=1).sum(axis=1) + b
    labels = np.where(without > 0, "yes", "no")
    assert drop_one(model, data, y, "accuracy").scores[0] == pytest.approx(accuracy_score(y, labels))
    assert drop_one(model, data, y, "roc_auc").scores[0] == pytest.approx(roc_auc_score(y == "yes", without))
    probability = model.model_.link(without[:, None])[:, 0]
    loss = drop_one(model, data, y, "neg_log_loss").scores[0]
    assert loss == pytest.approx(-log_loss(y == "yes", probability))


def test_empirical_bayes_keeps_its_moderation(models: Fitted) -> None:
    model, data, y = models("bayes classifier")
    assert drop_one(model, data, y, "neg_log_loss").full_score == pytest.approx(
        -log_loss(y, model.predict_proba(data), labels=model.classes_)
    )


def test_a_kernel_without_weight_has_no_effect(models: Fitted) -> None:
    model, data, y = models("greedy regressor")
    effects = drop_one(model, data, y).effects
    assert (effects[model.weights_ == 0] == 0).all()
    assert (effects[model.weights_ > 0] != 0).all()


def test_the_frame_is_sorted_by_effect(models: Fitted) -> None:
    model, data, y = models("regressor")
    frame = drop_one(model, data, y).frame()
    assert frame["effect"].is_monotonic_decreasing
    assert set(frame["kernel"]) == set(KERNELS)


def test_the_model_is_left_as_it_was() -> None:
    model = kw.MKLClassifier(KERNELS).fit(X, LABELS)
    before = sorted(vars(model))
    drop_one(model, X, LABELS)
    assert sorted(vars(model)) == before
    assert model.score(X, LABELS) == pytest.approx(drop_one(model, X, LABELS).full_score)


def test_one_class_needs_a_scorer(models: Fitted) -> None:
    model, data, _ = models("one class")
    with pytest.raises(TypeError, match="score"):
        drop_one(model, data, Y)
