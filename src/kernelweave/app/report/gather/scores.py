"""The model's score beside those of simpler ones, on the same samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from ...._typing import FloatArray
from ....gram.stack import as_stack
from ..data import Score, Scores
from .baselines import FAILURES, Baseline, baselines_for
from .given import Given, Progress, spread

NOTE = "The baselines chose their cost C by cross-validation on the training samples."

#: folds where nothing is held out, and most samples in them
FOLDS, MOST_SAMPLES = 3, 1500


def scores(given: Given, baselines: Iterable[Any] | None, progress: Progress) -> Scores | None:
    """Scores on the held-out samples, or cross-validated where there are none.

    The errors of two models on the same samples go together, so the standard error of their difference is
    that of the differences sample by sample. Baselines given by the caller have no samples; their errors
    are added as if they were independent.
    """
    if given.task == "novelty" or given.y is None:
        return None
    check: Check = HeldOut(given) if given.held_out else Folds(given)
    progress("scoring the model")
    own = check.gains(check.predict(given.model, lambda X: X))
    model = Score("this model", *_mean_and_error(own))
    metric = "accuracy" if given.task == "classification" else "R²"
    if baselines is not None:
        others = tuple(_given_score(entry, model) for entry in baselines)
        return Scores(metric, check.how, len(own), model, others)
    progress("choosing the baselines")
    candidates = baselines_for(given)
    scored = [_scored(entry, check, own, progress) for entry in candidates]
    others = tuple(entry for entry in scored if isinstance(entry, Score))
    failed = tuple(entry for entry in scored if isinstance(entry, str))
    return Scores(metric, check.how, len(own), model, others, candidates[-1].name, failed, NOTE)


def _scored(baseline: Baseline, check: Check, own: FloatArray, progress: Progress) -> Score | str:
    """The score of a baseline, or why there is none."""
    progress(f"scoring the baseline: {baseline.name}")
    try:
        gains = check.gains(check.predict(baseline.estimator, baseline.view))
    except FAILURES as error:
        return f"{baseline.name} ({error})"
    return Score(baseline.name, *_mean_and_error(gains), *_mean_and_error(own - gains))


def _mean_and_error(gains: FloatArray) -> tuple[float, float]:
    return float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else np.nan


def _given_score(entry: Any, model: Score) -> Score:
    """A baseline of the caller: a dict or an object with name, score and maybe error."""
    read = entry.get if isinstance(entry, dict) else lambda key, default=None: getattr(entry, key, default)
    name, value, error = read("name"), read("score"), read("error")
    if name is None or value is None:
        raise ValueError(f"baselines: {entry!r} needs a name and a score.")
    both = None if error is None or model.error is None else float(np.hypot(float(error), model.error))
    return Score(
        str(name), float(value), None if error is None else float(error), model.value - float(value), both
    )


class Check:
    """Samples on which models are compared: `predict` gives the predictions of one on them."""

    given: Given
    truth: Any
    how: str

    def gains(self, predicted: Any) -> FloatArray:
        """What each sample adds to the score, which is the mean of them."""
        return gains(self.given.task, self.truth, predicted)

    def predict(self, estimator: Any, view: Callable[[Any], Any]) -> Any:
        """Predictions by the fitted model itself, or by a baseline fitted here."""
        raise NotImplementedError


class HeldOut(Check):
    """Trained on the training samples, scored on the held-out ones."""

    def __init__(self, given: Given) -> None:
        self.given, self.truth = given, np.asarray(given.y_test)
        self.how = "on the held-out samples"

    def predict(self, estimator: Any, view: Callable[[Any], Any]) -> Any:
        if estimator is self.given.model:
            return estimator.predict(self.given.X_test)
        trained = in_pipeline(self.given.model, estimator).fit(view(self.given.X), self.given.y)
        return trained.predict(view(self.given.X_test))


class Folds(Check):
    """Each sample predicted by a model fitted without its fold, with the parameters of the fitted one."""

    def __init__(self, given: Given) -> None:
        self.given = given
        n = len(np.asarray(given.y))
        rows = np.random.RandomState(given.random_state).permutation(spread(n, MOST_SAMPLES))
        self.rows, self.truth = rows, np.asarray(given.y)[rows]
        self.cv = check_cv(FOLDS, self.truth, classifier=given.task == "classification")
        self.how = f"by {FOLDS}-fold cross-validation of the training samples (nothing was held out)"

    def predict(self, estimator: Any, view: Callable[[Any], Any]) -> Any:
        own = estimator is self.given.model
        estimator = afresh(chosen(estimator)) if own else in_pipeline(self.given.model, estimator)
        return cross_val_predict(
            estimator, _square(view(self.given.X), self.rows, self.given), self.truth, cv=self.cv
        )


def _square(X: Any, rows: Any, given: Given) -> Any:
    """Samples in the order of `rows`; of matrices, on both axes."""
    return as_stack(X)[np.ix_(rows, rows)] if given.precomputed else _safe_indexing(X, rows)


def afresh(model: Any) -> Any:
    """An unfitted copy that neither reads nor writes the checkpoint of the fit."""
    copy = clone(model)
    kept = [name for name in copy.get_params() if name.split("__")[-1] == "checkpoint"]
    return copy.set_params(**dict.fromkeys(kept))


def chosen(model: Any) -> Any:
    """What a search chose, so that it is not searched for again."""
    return model.best_estimator_ if hasattr(model, "best_estimator_") else model


def in_pipeline(model: Any, estimator: Any) -> Any:
    """The estimator after the same transformers as the model."""
    model = chosen(model)
    if not hasattr(model, "steps"):
        return estimator
    return Pipeline([*[(name, clone(step)) for name, step in model.steps[:-1]], ("baseline", estimator)])


def gains(task: str, truth: Any, predicted: Any) -> FloatArray:
    """Numbers whose mean is the score: hits for accuracy, 1 - e^2 / mean e0^2 for R^2.

    e is the error of a sample, e0 that of the mean of all; of several outputs the mean.
    """
    if task == "classification":
        return np.asarray(truth == predicted, dtype=float)
    truth = np.asarray(truth, dtype=float).reshape(len(truth), -1)
    errors = (truth - np.asarray(predicted, dtype=float).reshape(truth.shape)) ** 2
    variance = ((truth - truth.mean(axis=0)) ** 2).mean(axis=0)
    return (1.0 - errors / np.maximum(variance, 1e-300)).mean(axis=1)
