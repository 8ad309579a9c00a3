"""Which samples stand for all of them: landmarks of the Nystroem method."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import _safe_indexing

from ..._typing import FloatArray, IntArray
from ...kernels import Kernel
from .maps import NystroemMap

#: samples among which landmarks are looked for: k-means, leverage scores
CANDIDATES = {"kmeans": 20_000, "leverage": 10_000}


def uniform(kernel: Kernel, X: Any, count: int, rng: np.random.Generator) -> IntArray:
    """Samples drawn at random, all alike.

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> len(uniform(Linear(), np.zeros((10, 1)), 3, np.random.default_rng(0)))
    3
    """
    return np.sort(rng.choice(X.shape[0], min(count, X.shape[0]), replace=False))


def kmeans(kernel: Kernel, X: Any, count: int, rng: np.random.Generator) -> IntArray:
    """The samples nearest to the centres of k-means on the columns of the kernel. Zhang et al. (2008).

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> np.round(X[kmeans(Linear().fit(X), X, 2, np.random.default_rng(0))]).ravel()
    array([0., 5.])
    """
    some = uniform(kernel, X, CANDIDATES["kmeans"], rng)
    columns = kernel._view(_safe_indexing(X, some))
    if not (sparse.issparse(columns) or getattr(columns, "dtype", np.dtype(object)).kind == "f"):
        raise ValueError(
            f"landmarks='kmeans': {kernel!r} is not a kernel of numbers; use 'uniform' or 'leverage'."
        )
    if count >= len(some):
        return some
    seed = int(rng.integers(2**31))
    centers = KMeans(count, n_init=1, max_iter=20, random_state=seed).fit(columns).cluster_centers_
    return np.unique(some[pairwise_distances_argmin(centers, columns)])


def leverage(kernel: Kernel, X: Any, count: int, rng: np.random.Generator) -> IntArray:
    """Samples drawn in proportion to their ridge leverage scores. Musco & Musco (2017).

        l_i = (K (K + lam I)^-1)_ii,  with lam such that they sum to half the landmarks

    from an approximation by uniform landmarks, made better once by those it leads to, on a part of the
    samples.

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> X = np.eye(4)
    >>> len(leverage(Linear().fit(X), X, 2, np.random.default_rng(0)))
    2
    """
    some = uniform(kernel, X, CANDIDATES["leverage"], rng)
    if count >= len(some):
        return some
    part = _safe_indexing(X, some)
    diagonal = np.asarray(kernel.diag(part), dtype=np.float64)
    chosen = pilot = uniform(kernel, part, 2 * count, rng)
    for _ in range(2):
        pilot = np.union1d(pilot, chosen)
        B = np.asarray(NystroemMap(kernel, _safe_indexing(part, pilot))(part), dtype=np.float64)
        scores = ridge_leverage(B, diagonal, count / 2.0)
        chosen = rng.choice(len(some), count, replace=False, p=scores / scores.sum())
    return np.sort(some[chosen])


def ridge_leverage(B: FloatArray, diagonal: FloatArray, total: float) -> FloatArray:
    """Scores from K ~ B B', what B misses of the diagonal counting in full; lam by bisection.

    Examples
    --------
    >>> ridge_leverage(np.eye(4), np.ones(4), 2.0)
    array([0.5, 0.5, 0.5, 0.5])
    """
    values, vectors = np.linalg.eigh(B.T @ B)
    values = np.maximum(values, 0.0)
    squares, missed = (B @ vectors) ** 2, np.maximum(diagonal - np.einsum("ij,ij->i", B, B), 0.0)

    def scores(lam: float) -> FloatArray:
        return np.asarray(np.minimum(squares @ (1.0 / (values + lam)) + missed / lam, 1.0))

    low, high = 1e-12 * float(diagonal.mean()), float(diagonal.sum())
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if scores(middle).sum() > total else (low, middle)
    return np.round(np.maximum(scores(high), 1e-12), 12)


LANDMARKS = {"uniform": uniform, "kmeans": kmeans, "leverage": leverage}
