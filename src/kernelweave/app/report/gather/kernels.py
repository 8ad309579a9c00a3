"""Weights, norms, stability and contributions of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._typing import FloatArray, IntArray
from ....inspection import drop_one, kernel_alignments
from ....theory.alignment import effective_number
from ..data import Kernels, Redundancy, Stability
from .convergence import model_names
from .given import Given

#: most kernels of the heat map, and samples on which they are compared
MOST_ALIGNED, ALIGNED_SAMPLES = 40, 500


def kernels(given: Given, stability: Stability | None) -> Kernels:
    """What is known of each kernel."""
    weights = np.atleast_2d(np.asarray(given.inner.weights_, dtype=float))
    norms = getattr(given.inner, "norms_", None)
    result = _dropped(given)
    return Kernels(
        names=tuple(str(name) for name in given.inner.kernel_names_),
        models=tuple(model_names(given, len(weights))),
        weights=weights,
        norms=None if norms is None else np.atleast_2d(np.asarray(norms, dtype=float)),
        stability=stability,
        spread=_spread(given),
        drop=None if result is None else np.asarray(result.effects),
        drop_metric="accuracy" if given.task == "classification" else "R²",
    )


def _dropped(given: Given) -> Any:
    if given.parts is None or given.truth is None or given.task == "novelty":
        return None
    return drop_one(given.model, given.seen, given.truth)


def _spread(given: Given) -> FloatArray | None:
    """Standard deviation of f_m over the samples, root mean square over the functions."""
    if given.parts is None:
        return None
    return np.sqrt((given.parts.std(axis=1) ** 2).mean(axis=0))


def redundancy(given: Given, found: Kernels) -> Redundancy | None:
    """Alignments of the heaviest kernels, like ones side by side."""
    chosen = np.sort(_kept(given.inner, found.heaviest(len(found.names)))[:MOST_ALIGNED])
    if given.parts is None or len(chosen) < 2:
        return None
    matrix = kernel_alignments(given.model, given.X, ALIGNED_SAMPLES, kernels=chosen)
    order = _side_by_side(matrix)
    names = tuple(found.names[m] for m in chosen[order])
    left_out = len(found.names) - len(chosen)
    return Redundancy(names, matrix[np.ix_(order, order)], effective_number(matrix), left_out)


def _kept(inner: Any, kernels: IntArray) -> IntArray:
    """Of the kernels those that the model still has: one read from a file has only those with weight."""
    held = getattr(inner.model_.source, "kernels", None)
    return kernels if held is None else np.array([m for m in kernels if held[m] is not None], dtype=int)


def _side_by_side(matrix: FloatArray) -> Any:
    """Order of the leaves of a clustering: blocks of like kernels show along the diagonal."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(matrix) < 3:
        return np.arange(len(matrix))
    distance = np.clip(1.0 - matrix, 0.0, None)
    np.fill_diagonal(distance, 0.0)
    condensed = squareform(0.5 * (distance + distance.T), checks=False)
    return leaves_list(linkage(condensed, "average", optimal_ordering=True))
