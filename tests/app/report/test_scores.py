"""Scores against baselines: their errors from the definition, and the verdict in words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import kernelweave as kw
from kernelweave.app.report import Report
from kernelweave.app.report.data import Score, Scores
from kernelweave.app.report.scores import gains
from kernelweave.app.report.words import verdict
from kernelweave.kernels import RBF, Linear, per_feature


def test_the_mean_of_the_gains_is_the_score(rng: np.random.Generator) -> None:
    labels, guesses = rng.integers(0, 3, size=(2, 40))
    assert gains("classification", labels, guesses).mean() == pytest.approx(accuracy_score(labels, guesses))
    y, f = rng.normal(size=(2, 40, 2))
    assert gains("regression", y, f).mean() == pytest.approx(r2_score(y, f))
    assert gains("regression", y[:, 0], f[:, 0]).mean() == pytest.approx(r2_score(y[:, 0], f[:, 0]))


@pytest.mark.wide
def test_the_error_of_a_difference_is_that_of_the_paired_differences(cases: Any) -> None:
    case = cases("binary")
    scores = case.report.scores
    hits = case.model.predict(case.X_test) == case.y_test
    values, counts = np.unique(case.y, return_counts=True)
    majority = case.y_test == values[counts.argmax()]
    paired = hits.astype(float) - majority
    trivial = next(score for score in scores.baselines if score.name == scores.trivial)
    assert trivial.value == pytest.approx(majority.mean())
    assert trivial.difference == pytest.approx(paired.mean())
    assert trivial.difference_error == pytest.approx(paired.std(ddof=1) / np.sqrt(len(paired)))


def test_the_best_single_kernel_is_one_of_the_kernels(cases: Any) -> None:
    case = cases("binary")
    names = [score.name for score in case.report.scores.baselines]
    assert names[0] == "uniform sum of the kernels"
    assert names[1].removeprefix("best single kernel: ") in case.inner.kernel_names_


def scores(value: float, baseline: float, error: float | None, trivial: float = 0.5) -> Scores:
    other = Score("uniform sum", baseline, 0.01, value - baseline, error)
    none = Score("majority class", trivial, 0.01, value - trivial, 0.01)
    return Scores("accuracy", "held out", 100, Score("this model", value, 0.01), (other, none), none.name)


@pytest.mark.parametrize(
    ("found", "tone", "headline"),
    [
        (scores(0.90, 0.80, 0.01), "good", "helps here"),
        (scores(0.90, 0.89, 0.01), "even", "does not measurably help"),
        (scores(0.85, 0.90, 0.01), "poor", "worse than a baseline"),
        (scores(0.51, 0.60, 0.01), "poor", "next to nothing"),
        (scores(0.90, 0.80, None), "even", "does not measurably help"),
    ],
)
def test_the_verdict_follows_the_difference(found: Scores, tone: str, headline: str) -> None:
    judged = verdict(found)
    assert judged is not None
    assert judged.tone == tone
    assert headline in judged.headline


def test_noise_gets_a_verdict_that_says_so(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 2, 60)
    model = kw.MKLClassifier(per_feature(RBF())).fit(X[:30], y[:30])
    report = Report.from_model(model, X[:30], y[:30], X_test=X[30:], y_test=y[30:], stability=False)
    assert "learned next to nothing" in report.html()


@pytest.mark.wide
def test_baselines_of_the_caller_replace_those_computed(cases: Any) -> None:
    case = cases("multiclass")
    given = [{"name": "forest", "score": 0.5, "error": 0.1}, SimpleNamespace(name="rule", score=0.2)]
    options = {"X_test": case.X_test, "y_test": case.y_test, "baselines": given, "stability": False}
    found = Report.from_model(case.model, case.X, case.y, **options).scores
    assert [(score.name, score.value, score.error) for score in found.baselines] == [
        ("forest", 0.5, 0.1),
        ("rule", 0.2, None),
    ]
    assert found.baselines[0].difference_error == pytest.approx(np.hypot(0.1, found.model.error))


def test_a_baseline_without_a_score_is_refused(cases: Any) -> None:
    case = cases("multiclass")
    with pytest.raises(ValueError, match="needs a name and a score"):
        Report.from_model(case.model, case.X, case.y, baselines=[{"name": "forest"}], stability=False)


def test_without_held_out_samples_the_score_is_cross_validated(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=60) > 0
    model = kw.MKLClassifier({"a": Linear(columns=0), "b": Linear(columns=[1, 2])}).fit(X, y)
    report = Report.from_model(model, X, y, baselines=[], stability=False, random_state=3)
    order = np.random.RandomState(3).permutation(60)
    predicted = cross_val_predict(kw.MKLClassifier(model.kernels), X[order], y[order], cv=StratifiedKFold(3))
    assert report.scores.model.value == pytest.approx((predicted == y[order]).mean())
    assert "cross-validation of the training samples" in report.html()
    assert report.samples.part == "training"
