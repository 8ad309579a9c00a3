"""How the weights change with the sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from ....gram.stack import as_stack
from ....inspection import stability_selection
from ..data import Stability
from .given import Given, Progress, as_rows, spread

#: sub-samples of few and of many samples, and how many are few
ROUNDS, FEWER_ROUNDS, FEW = 50, 20, 600

#: most samples, and bytes of their Gram matrices; fewer than the least say nothing
MOST_SAMPLES, MATRIX_BYTES, LEAST_SAMPLES = 1500, 400_000_000, 20


def stability(given: Given, wanted: Any, progress: Progress) -> Stability | None:
    """Shares of the weights over sub-samples: computed, or taken from a result; None when not wanted."""
    if wanted is False or wanted is None:
        return None
    if wanted is not True:
        return _plain(wanted, None)
    M, n = len(given.inner.kernel_names_), len(as_rows(given.X))
    size = min(n, MOST_SAMPLES, int((MATRIX_BYTES / (8 * M)) ** 0.5))
    if size < LEAST_SAMPLES:
        return None
    X, y = _part(given, spread(n, size)) if size < n else (given.X, given.y)
    result = stability_selection(
        given.model,
        X,
        y,
        n_subsamples=ROUNDS if size <= FEW else FEWER_ROUNDS,
        random_state=given.random_state,
        progress=lambda done, total: progress(f"weights on sub-sample {done} of {total}"),
    )
    return _plain(result, size)


def _part(given: Given, rows: Any) -> tuple[Any, Any]:
    X = as_stack(given.X)[np.ix_(rows, rows)] if given.precomputed else _safe_indexing(given.X, rows)
    return X, None if given.y is None else np.asarray(given.y)[rows]


def _plain(result: Any, n_samples: int | None) -> Stability:
    """Of a `StabilityResult`."""
    return Stability(
        lower=np.asarray(result.low),
        upper=np.asarray(result.high),
        frequency=np.asarray(result.frequency),
        n_rounds=len(result.weights),
        level=float(result.level),
        threshold=float(result.threshold),
        n_samples=n_samples,
    )
