"""Figures of a model beside its score, its ROC curves, and the views that its predictions had."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from sklearn import metrics

from ...inspection._models import spread
from ...kernels import Views
from ...metrics import concordance_harrell, concordance_uno
from .data import Curve, Roc, ViewsUsed
from .given import Subject, as_words

#: most points of a ROC curve
MOST_POINTS = 60


def measures(task: str, truth: Any, predicted: Any) -> dict[str, float]:
    """Figures beside the score: balanced accuracy and F1 (mean over the classes), or errors.

    Examples
    --------
    >>> measures("regression", np.array([1.0, 2.0]), np.array([1.0, 4.0]))["RMSE"].round(3)
    np.float64(1.414)
    """
    if task == "classification":
        options: dict[str, Any] = {"average": "macro", "zero_division": 0.0}
        return {
            "balanced accuracy": float(metrics.recall_score(truth, predicted, **options)),
            "F1": float(metrics.f1_score(truth, predicted, **options)),
        }
    if task == "survival":
        known, tau = (truth["event"], truth["time"], predicted), float(truth["time"].max())
        return {"Uno's concordance": concordance_uno(*known, tau=tau)}
    residuals = np.asarray(truth, dtype=float) - np.asarray(predicted, dtype=float).reshape(np.shape(truth))
    return {
        "RMSE": np.sqrt(np.mean(residuals**2)),
        "mean absolute error": float(np.mean(np.abs(residuals))),
    }


def roc(classes: Any, truth: Any, values: Any, part: str) -> Roc | None:
    """ROC curves of decision values, for the second of two classes, or for every class against the others."""
    values = np.asarray(values, dtype=float)
    if values.ndim == 1:
        values, classes = values[:, None], classes[1:]
    curves, areas = [], []
    for k, label in enumerate(classes if values.shape[1] == len(classes) else ()):
        hit = truth == label
        if hit.all() or not hit.any():
            continue
        false, true, _ = metrics.roc_curve(hit, values[:, k])
        at = spread(len(false), MOST_POINTS)
        curves.append(Curve(str(label), false[at].tolist(), true[at].tolist()))
        areas.append(float(metrics.roc_auc_score(hit, values[:, k])))
    return Roc(tuple(curves), tuple(areas), part) if curves else None


def views_used(given: Subject) -> ViewsUsed | None:
    """The views that each sample looked at has, and how well samples with the same views are predicted."""
    if not isinstance(given.seen, Views):
        return None
    fitted = tuple(getattr(given.inner, "views_in_", given.seen.names))
    used = given.seen.patterns
    metric = "RMSE" if given.task == "regression" else given.metric

    def score(pattern: str) -> float | None:
        if given.truth is None or given.task == "novelty":
            return None
        truth, found = given.truth[used == pattern], given.predicted[used == pattern]
        if metric == "accuracy":
            return float(np.mean(truth == found))
        if metric == "concordance":
            return concordance_harrell(truth["event"], truth["time"], found)
        return float(measures("regression", truth, found)["RMSE"])

    counts, known = Counter(used).most_common(), () if given.truth is None else given.truth
    return ViewsUsed(
        names=fitted,
        patterns=tuple((pattern, times, score(pattern)) for pattern, times in counts),
        labels=tuple(given.labels),
        used=tuple(used),
        truth=as_words(given.truth) if given.task == "survival" else tuple(map(str, known)),
        predicted=tuple(map(str, given.predicted)),
        part=given.part,
        metric=metric,
        missing=str(getattr(given.inner, "missing", "error")),
        training=tuple(Counter(given.X.patterns).most_common()),
    )
