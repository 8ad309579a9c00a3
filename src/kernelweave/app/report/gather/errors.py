"""Where the model is wrong."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import confusion_matrix

from ..data import Confusion, Novelty, Residuals
from .given import Given, spread

#: most points of a residual plot
MOST_POINTS = 400


def errors(given: Given) -> Confusion | Residuals | Novelty | None:
    """Confusion of a classifier, residuals of a regressor, values of a detector."""
    if given.task == "novelty":
        return Novelty(np.asarray(given.model.decision_function(given.seen), dtype=float), given.part)
    if given.truth is None:
        return None
    return _confusion(given) if given.task == "classification" else _residuals(given)


def _confusion(given: Given) -> Confusion:
    """Of all classes of the samples looked at, also those that training did not see."""
    classes = given.inner.classes_
    unseen = [label for label in np.unique(given.truth) if label not in classes]
    labels = [*classes, *unseen]
    counts = confusion_matrix(given.truth, given.predicted, labels=labels)
    return Confusion(tuple(str(label) for label in labels), counts, given.part)


def _residuals(given: Given) -> Residuals:
    n = len(given.truth)
    rows = spread(n, MOST_POINTS)
    observed = np.asarray(given.truth, dtype=float).reshape(n, -1)[rows].T
    predicted = np.asarray(given.predicted, dtype=float).reshape(n, -1)[rows].T
    names = given.functions if len(given.functions) == len(observed) else ("f",) * len(observed)
    labels = tuple(given.labels[row] for row in rows)
    return Residuals(names, observed, predicted, labels, given.part, given.n_seen)
