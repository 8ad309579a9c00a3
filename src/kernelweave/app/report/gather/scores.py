"""The model's score beside those of simpler ones, on the same samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.pipeline import Pipeline

from ...._typing import FloatArray
from ..data import Score, Scores
from .baselines import FAILURES, Baseline, baselines_for
from .given import Progress, Subject, spread

NOTE = "The baselines chose their cost C by cross-validation on the training samples."

#: folds where nothing is held out, and most samples in them
FOLDS, MOST_SAMPLES = 3, 1500


def scores(given: Subject, baselines: Iterable[Any] | None, progress: Progress) -> Scores | None:
    """Scores on the held-out samples, or cross-validated where there are none.

    The errors of two models on the same samples go together, so the standard error of their difference is
    that of the differences sample by sample. Baselines given by the caller have no samples; their errors
    are added as if they were independent.
    """
    if given.task == "novelty" or given.y is None:
        return None
    check = _held_out(given) if given.held_out else _folds(given)
    progress("scoring the model")
    own = gains(given.task, check.truth, check.predict(given.model, lambda X: X))
    model = Score("this model", *_mean_and_error(own))
    metric = "accuracy" if given.task == "classification" else "R²"
    if baselines is not None:
        others = tuple(_given_score(entry, model) for entry in baselines)
        return Scores(metric, check.how, len(own), model, others)
    progress("choosing the baselines")
    candidates = baselines_for(given)
    scored = [_scored(entry, given.task, check, own, progress) for entry in candidates]
    others = tuple(entry for entry in scored if isinstance(entry, Score))
    failed = tuple(entry for entry in scored if isinstance(entry, str))
    return Scores(metric, check.how, len(own), model, others, candidates[-1].name, failed, NOTE)


def _scored(baseline: Baseline, task: str, check: Check, own: FloatArray, progress: Progress) -> Score | str:
    """The score of a baseline, or why there is none."""
    progress(f"scoring the baseline: {baseline.name}")
    try:
        found = gains(task, check.truth, check.predict(baseline.estimator, baseline.view))
    except FAILURES as error:
        return f"{baseline.name} ({error})"
    return Score(baseline.name, *_mean_and_error(found), *_mean_and_error(own - found))


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


@dataclass(frozen=True)
class Check:
    """Samples on which models are compared.

    `predict(estimator, view)` gives the predictions of the model itself, or of a baseline fitted on what
    `view` takes from the data.
    """

    truth: Any
    how: str
    predict: Callable[[Any, Callable[[Any], Any]], Any]


def _held_out(given: Subject) -> Check:
    """Trained on the training samples, scored on the held-out ones."""

    def predict(estimator: Any, view: Callable[[Any], Any]) -> Any:
        if estimator is given.model:
            return estimator.predict(given.X_test)
        trained = _in_pipeline(given.model, estimator).fit(view(given.X), given.y)
        return trained.predict(view(given.X_test))

    return Check(np.asarray(given.y_test), "on the held-out samples", predict)


def _folds(given: Subject) -> Check:
    """Each sample predicted by a model fitted without its fold, with the parameters of the fitted one."""
    n = len(np.asarray(given.y))
    rows = np.random.RandomState(given.random_state).permutation(spread(n, MOST_SAMPLES))
    truth = np.asarray(given.y)[rows]
    cv = check_cv(FOLDS, truth, classifier=given.task == "classification")

    def predict(estimator: Any, view: Callable[[Any], Any]) -> Any:
        own = estimator is given.model
        estimator = _afresh(given.model) if own else _in_pipeline(given.model, estimator)
        return cross_val_predict(estimator, given.subset(view(given.X), rows), truth, cv=cv)

    how = f"by {FOLDS}-fold cross-validation of the training samples (nothing was held out)"
    return Check(truth, how, predict)


def _afresh(model: Any) -> Any:
    """An unfitted copy of what a search chose, that neither reads nor writes the checkpoint of the fit."""
    copy = clone(getattr(model, "best_estimator_", model))
    kept = [name for name in copy.get_params() if name.split("__")[-1] == "checkpoint"]
    return copy.set_params(**dict.fromkeys(kept))


def _in_pipeline(model: Any, estimator: Any) -> Any:
    """The estimator after the same transformers as the model."""
    model = getattr(model, "best_estimator_", model)
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
