"""The decomposition f = b + sum_m f_m of chosen samples."""

from __future__ import annotations

import numpy as np

from ...._typing import FloatArray, IntArray
from ..data import Samples
from ..numbers import number
from .given import Given

#: most samples, and about how many numbers all of them may take
MOST_SAMPLES, MOST_NUMBERS, LEAST_SAMPLES = 200, 24_000, 24


def samples(given: Given) -> Samples | None:
    """Samples to look at closely: wrong ones and doubtful ones first, the others evenly spread."""
    if given.parts is None:
        return None
    chosen = choose(_doubt(given), _limit(given.parts))
    wrong = _wrong(given)
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


def _limit(parts: FloatArray) -> int:
    """Samples whose components keep the page small: a page shows at most 40 kernels of each."""
    numbers = parts.shape[0] * min(parts.shape[2], 40)
    return max(LEAST_SAMPLES, min(MOST_SAMPLES, MOST_NUMBERS // max(numbers, 1)))


def _wrong(given: Given) -> FloatArray | None:
    if given.task != "classification" or given.truth is None:
        return None
    return np.asarray(given.predicted != given.truth)


def _doubt(given: Given) -> FloatArray:
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
