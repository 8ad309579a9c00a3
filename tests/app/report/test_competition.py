"""Reports of models for which candidates competed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict

import kernelweave as kw
from kernelweave.app.cli._facts import certificate_words
from kernelweave.app.report import Report
from kernelweave.app.report.fit import convergence, fitted
from kernelweave.app.report.given import Subject
from kernelweave.app.report.words import certificate
from kernelweave.estimators import auto as competition
from kernelweave.inspection import stability_selection
from kernelweave.kernels import RBF, Linear

from .conftest import Page, number_shown


@pytest.fixture(scope="module")
def case() -> Iterator[tuple[Any, Any, Any, Report]]:
    """One candidate is taken alone where it is no worse than the stack, as for classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(36, 6))
    y = X @ np.arange(6.0) + 0.5 * rng.normal(size=36)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(competition, "CLEAR", 0.0)
        auto = kw.MKLAutoRegressor([Linear(), RBF(gamma=3.0)], Cs=[1.0, 100.0], cv=3).fit(X, y)
        steady = stability_selection(auto, X, y, n_subsamples=4, random_state=0)
        yield auto, X, y, Report.from_model(auto, X, y, stability=steady)


def test_what_is_scored_and_fitted_again_is_what_was_taken(case: Any) -> None:
    auto, X, y, report = case
    assert auto.weights_[1] == 0.0  # of linear kernels alone
    rows = np.random.RandomState(0).permutation(36)
    expected = r2_score(y[rows], cross_val_predict(clone(auto), X[rows], y[rows], cv=KFold(3)))
    assert report.scores.model.value == pytest.approx(expected)
    assert "uniform sum of the kernels" in [one.name for one in report.scores.baselines]
    assert report.kernels.stability.upper.tolist() == [1.0, 0.0]


def test_the_page_says_what_was_chosen_from_what(case: Any) -> None:
    auto, _, _, report = case
    count = len(auto.candidates_) - 1
    assert report.title == "MKLAutoRegressor, 2 kernels"
    assert report.fitted.estimator == "MKLAutoRegressor"
    assert f"chosen from {count} candidates" in report.methods
    assert "losses in 3-fold" in report.methods
    assert "“linear kernels alone”: one kernel" in report.methods
    assert "weights of the kernels are learned" not in report.methods
    page = Page(report.html())
    cells = page.column("choice-table", "Score")
    assert list(cells) == [
        f"{row['candidate']}{' (taken)' * (k == auto.best_index_)}" for k, row in enumerate(auto.candidates_)
    ]
    shown = [number_shown(text) for text in cells.values()]
    assert shown == pytest.approx([row["mean_test_score"] for row in auto.candidates_], abs=6e-4)
    assert auto.reason_.split(" (")[0] in report.choice.reason
    json.dumps(report.to_dict(), allow_nan=False)


def test_a_stack_names_its_models_and_their_problems(case: Any) -> None:
    auto, X, y, _ = case
    joined = copy(auto)
    joined.stack_weights_ = np.append([0.25, 0.75], np.zeros(len(auto.stack_weights_) - 2))
    given = Subject(joined, X, y)
    words = fitted(given, None).method
    assert "a weighted mean of several of them: 25 % uniform sum and 75 % linear kernels alone" in words
    assert "Regulariser" not in words
    judged = certificate(convergence(given))
    assert "Each of the 2 models was solved to a relative duality gap of at most" in judged.text
    assert "optimal" not in judged.headline
    assert "Each of the 2 models was solved to a relative gap of at most" in certificate_words(joined)
