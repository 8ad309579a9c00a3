"""Sample by sample: the decomposition f = b + sum_m f_m of chosen ones, and where the model is wrong."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import confusion_matrix

from ...._typing import FloatArray, IntArray
from ..data import Confusion, Novelty, Residuals, Samples
from ..numbers import number
from .given import Subject, spread

#: most samples, and about how many numbers all of them may take
MOST_SAMPLES, MOST_NUMBERS, LEAST_SAMPLES = 200, 24_000, 24

#: most points of a residual plot
MOST_POINTS = 400


def samples(given: Subject) -> Samples | None:
    """Samples to look at closely: wrong ones and doubtful ones first, the others evenly spread."""
    if given.parts is None:
        return None
    # samples whose components keep the page small: a page shows at most 40 kernels of each
    numbers = len(given.parts) * min(given.parts.shape[2], 40)
    most = max(LEAST_SAMPLES, min(MOST_SAMPLES, MOST_NUMBERS // max(numbers, 1)))
    chosen, wrong = choose(_doubt(given), most), _wrong(given)
    return Samples(
        part=given.part,
        labels=tuple(given.labels[row] for row in chosen),
        truth=_words(given.truth, chosen),
        predicted=_words(given.predicted, chosen),
        wrong=() if wrong is None else tuple(bool(wrong[row]) for row in chosen),
        intercept=given.intercept,
        parts=given.parts[:, chosen],
        n_all=given.n_seen,
    )


def choose(doubt: FloatArray, most: int) -> IntArray:
    """Rows in their order: all, or half of them the most doubtful and the rest evenly spread.

    Examples
    --------
    >>> import numpy as np
    >>> choose(np.array([0.0, 0.0, 9.0, 0.0, 0.0, 0.0]), 2).tolist()
    [0, 2]
    """
    n = len(doubt)
    if n <= most:
        return np.arange(n)
    doubtful = np.argsort(-doubt, kind="stable")[: most // 2]
    others = np.setdiff1d(np.arange(n), doubtful)
    picks = others[np.linspace(0, len(others) - 1, most - len(doubtful)).astype(int)]
    return np.sort(np.concatenate([doubtful, picks]))


def _wrong(given: Subject) -> FloatArray | None:
    if given.task != "classification" or given.truth is None:
        return None
    return np.asarray(given.predicted != given.truth)


def _doubt(given: Subject) -> FloatArray:
    """Large for samples worth a look: wrong, near the boundary, far from the observed value."""
    assert given.parts is not None
    values = given.parts.sum(axis=2) + given.intercept[:, None]
    if given.task == "regression":
        if given.truth is None:
            return np.zeros(values.shape[1])
        residuals = np.asarray(given.truth, dtype=float).reshape(values.shape[1], -1).T - values
        return np.abs(residuals).sum(axis=0)
    margin = np.abs(values[0]) if len(values) == 1 else np.ptp(np.sort(values, axis=0)[-2:], axis=0)
    wrong = _wrong(given)
    return -margin + (0.0 if wrong is None else 1e6 * wrong)


def _words(values: FloatArray | None, rows: IntArray) -> tuple[str, ...]:
    if values is None:
        return ()
    picked = np.asarray(values)[rows]
    if picked.dtype.kind == "f":
        return tuple(", ".join(number(v) for v in np.ravel(row)) for row in picked)
    return tuple(str(value) for value in picked)


def errors(given: Subject) -> Confusion | Residuals | Novelty | None:
    """Confusion of a classifier, residuals of a regressor, values of a detector."""
    if given.task == "novelty":
        return Novelty(np.asarray(given.model.decision_function(given.seen), dtype=float), given.part)
    if given.truth is None:
        return None
    return _confusion(given) if given.task == "classification" else _residuals(given)


def _confusion(given: Subject) -> Confusion:
    """Of all classes of the samples looked at, also those that training did not see."""
    classes = given.inner.classes_
    unseen = [label for label in np.unique(given.truth) if label not in classes]
    labels = [*classes, *unseen]
    counts = confusion_matrix(given.truth, given.predicted, labels=labels)
    return Confusion(tuple(str(label) for label in labels), counts, given.part)


def _residuals(given: Subject) -> Residuals:
    n = len(given.truth)
    rows = spread(n, MOST_POINTS)
    observed = np.asarray(given.truth, dtype=float).reshape(n, -1)[rows].T
    predicted = np.asarray(given.predicted, dtype=float).reshape(n, -1)[rows].T
    names = given.functions if len(given.functions) == len(observed) else ("f",) * len(observed)
    labels = tuple(given.labels[row] for row in rows)
    return Residuals(names, observed, predicted, labels, given.part, given.n_seen)
