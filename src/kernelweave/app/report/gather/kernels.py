"""Weights, norms, stability and contributions of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._typing import IntArray
from ....inspection import drop_one, kernel_alignments, stability_selection
from ....inspection.alignments import clustered
from ....theory.alignment import effective_number
from ..data import KernelFacts, Redundancy, Stability
from .fit import model_names
from .given import Progress, Subject, as_rows, spread

#: sub-samples of few and of many samples, and how many are few
ROUNDS, FEWER_ROUNDS, FEW = 50, 20, 600

#: most samples of the sub-samples, and bytes of their Gram matrices; fewer than the least say nothing
MOST_SAMPLES, MATRIX_BYTES, LEAST_SAMPLES = 1500, 400_000_000, 20

#: most kernels of the heat map, and samples on which they are compared
MOST_ALIGNED, ALIGNED_SAMPLES = 40, 500


def stability(given: Subject, wanted: Any, progress: Progress) -> Stability | None:
    """Shares of the weights over sub-samples: computed, or taken from a result; None when not wanted."""
    if wanted is False or wanted is None:
        return None
    size = None
    if wanted is True:
        M, n = len(given.inner.kernel_names_), len(as_rows(given.X))
        size = min(n, MOST_SAMPLES, int((MATRIX_BYTES / (8 * M)) ** 0.5))
        if size < LEAST_SAMPLES:
            return None
        X, y = given.X, given.y
        if size < n:
            rows = spread(n, size)
            X, y = given.subset(X, rows), None if y is None else np.asarray(y)[rows]
        wanted = stability_selection(
            given.model,
            X,
            y,
            n_subsamples=ROUNDS if size <= FEW else FEWER_ROUNDS,
            random_state=given.random_state,
            progress=lambda done, total: progress(f"weights on sub-sample {done} of {total}"),
        )
    low, high, frequency = np.asarray(wanted.low), np.asarray(wanted.high), np.asarray(wanted.frequency)
    n_rounds = len(wanted.weights)
    return Stability(low, high, frequency, n_rounds, float(wanted.level), float(wanted.threshold), size)


def kernels(given: Subject, stability: Stability | None) -> KernelFacts:
    """Weights, norms and stability of the kernels; spread and worth of their components."""
    weights = np.atleast_2d(np.asarray(given.inner.weights_, dtype=float))
    norms, parts, drop = getattr(given.inner, "norms_", None), given.parts, None
    if parts is not None and given.truth is not None and given.task != "novelty":
        drop = np.asarray(drop_one(given.model, given.seen, given.truth).effects)
    return KernelFacts(
        names=tuple(str(name) for name in given.inner.kernel_names_),
        models=tuple(model_names(given, len(weights))),
        weights=weights,
        norms=None if norms is None else np.atleast_2d(np.asarray(norms, dtype=float)),
        stability=stability,
        spread=None if parts is None else np.sqrt((parts.std(axis=1) ** 2).mean(axis=0)),
        drop=drop,
        drop_metric="accuracy" if given.task == "classification" else "R²",
    )


def redundancy(given: Subject, found: KernelFacts) -> Redundancy | None:
    """Alignments of the heaviest kernels, like ones side by side."""
    chosen = np.sort(_kept(given.inner, found.heaviest(len(found.names)))[:MOST_ALIGNED])
    if given.parts is None or len(chosen) < 2:
        return None
    matrix = kernel_alignments(given.model, given.X, ALIGNED_SAMPLES, kernels=chosen)
    order = clustered(matrix, optimal_ordering=True)
    names = tuple(found.names[m] for m in chosen[order])
    left_out = len(found.names) - len(chosen)
    return Redundancy(names, matrix[np.ix_(order, order)], effective_number(matrix), left_out)


def _kept(inner: Any, kernels: IntArray) -> IntArray:
    """Of the kernels those that the model still has: one read from a file has only those with weight."""
    held = getattr(inner.model_.source, "kernels", None)
    return kernels if held is None else np.array([m for m in kernels if held[m] is not None], dtype=int)
