"""Reports of models for which candidates competed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict

import kernelweave as kw
from kernelweave.app.report import Report
from kernelweave.inspection import stability_selection
from kernelweave.kernels import RBF, Linear


@pytest.fixture(scope="module")
def case() -> tuple[Any, Any, Any, Report]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(36, 6))
    y = X @ np.arange(6.0) + 0.5 * rng.normal(size=36)
    auto = kw.MKLAutoRegressor([Linear(), RBF(gamma=3.0)], Cs=[1.0, 100.0], cv=3).fit(X, y)
    steady = stability_selection(auto, X, y, n_subsamples=4, random_state=0)
    return auto, X, y, Report.from_model(auto, X, y, stability=steady)


def test_what_is_scored_and_fitted_again_is_what_was_taken(case: Any) -> None:
    auto, X, y, report = case
    assert auto.weights_[1] == 0.0  # of linear kernels alone
    rows = np.random.RandomState(0).permutation(36)
    expected = r2_score(y[rows], cross_val_predict(clone(auto), X[rows], y[rows], cv=KFold(3)))
    assert report.scores.model.value == pytest.approx(expected)
    assert "uniform sum of the kernels" in [one.name for one in report.scores.baselines]
    assert report.kernels.stability.upper.tolist() == [1.0, 0.0]
