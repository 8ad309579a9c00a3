"""How far kernels of low rank are from the kernels they stand for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from ..._typing import FloatArray
from .factors import parts
from .features import Features

#: kernel values that may be computed to know an error exactly, for all kernels together
MOST_PAIRS = 2e8

#: values of one kernel at a time
BLOCK_PAIRS = 1 << 22

#: `diagonal_sums` of features and alpha
DiagonalSums = Callable[..., FloatArray]

#: samples on whose pairs the error of random features is estimated
SAMPLE = 500


def relative_errors(features: list[Features], X: Any) -> FloatArray:
    """How much of each kernel is missing, between 0 and 1 or so.

    Of kernels approximated from below (Nystroem) tr(K - Z Z') / tr(K) over the training samples, which
    bounds the largest eigenvalue of the difference too; of random features
    ||K - Z Z'|| / ||K|| (Frobenius) on some of the samples, an estimate.
    """
    return np.array([_share(one, X) for one in features])


def _share(one: Features, X: Any) -> float:
    if one.map.exact or one.map.below:
        return one.error / one.size if one.size > 0 else 0.0
    some = _safe_indexing(X, np.unique(np.linspace(0, X.shape[0] - 1, SAMPLE).astype(int)))
    root = _sphere(one, some)
    K, Z = root[:, None] * one.map.kernel(some) * root, one.raw(some)
    return float(np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K))


def missing_energy(
    features: list[Features], X: Any, alpha: FloatArray, sums: DiagonalSums | None = None
) -> FloatArray:
    """Upper bounds of scale alpha' E alpha, E = K - Z Z', of several kernels.

    Exact where the pairs of samples with a dual variable are few enough to compute; else by the
    diagonal e of E, which is positive semidefinite, over these samples:

        alpha' E alpha <= min((sum_i |alpha_i| sqrt(e_i))^2, ||alpha||^2 sum_i e_i)

    Infinite where nothing is known: random features, and centred ones whose alpha does not sum to 0.

    Parameters
    ----------
    features : list of Features
    X : table of shape (n, n_features)
        The training samples.
    alpha : ndarray of shape (n, c)
    sums : callable, optional
        `diagonal_sums` of all samples, where others than this process have them.
    """
    support = np.flatnonzero(alpha.any(axis=1))
    few = len(support) ** 2 * len(features) <= MOST_PAIRS
    off = np.abs(alpha.sum(axis=0)) > 1e-9 * np.abs(alpha).sum(axis=0)
    found = np.array([_unknown(one, balanced=not off.any()) for one in features])
    open_ = np.flatnonzero(np.isnan(found))
    if few:
        rows = _safe_indexing(X, support)
        energies = [_from_pairs(features[m], rows, alpha[support]) for m in open_]
    else:
        totals = (sums or partial(diagonal_sums, X=X))([features[m] for m in open_], alpha=alpha)
        energies = [_bound(total, alpha) for total in totals]
    found[open_] = [features[m].scale * max(e, 0.0) for m, e in zip(open_, energies, strict=True)]
    return found


def _unknown(one: Features, balanced: bool) -> float:
    """NaN where something is to be computed; else the answer."""
    if one.map.exact:
        return 0.0
    return np.nan if one.map.below and (one.mean is None or balanced) else np.inf


def _from_pairs(one: Features, rows: Any, alpha: FloatArray) -> float:
    """alpha' E alpha itself."""
    weighted, total = _sphere(one, rows)[:, None] * alpha, 0.0
    for some in parts(len(alpha), max(1, BLOCK_PAIRS // len(alpha))):
        total += float((weighted[some] * (one.map.kernel(_safe_indexing(rows, some), rows) @ weighted)).sum())
    return total - float(((one.raw(rows).astype(np.float64).T @ alpha) ** 2).sum())


def _from_diagonal(one: Features, rows: Any, alpha: FloatArray) -> float:
    """The bound by e."""
    return _bound(diagonal_sums([one], alpha, rows)[0], alpha)


def _bound(sums: FloatArray, alpha: FloatArray) -> float:
    by_entries = float((sums[:-1] ** 2).sum())
    return min(by_entries, float((alpha**2).sum() * sums[-1]))


def diagonal_sums(features: list[Features], alpha: FloatArray, X: Any) -> FloatArray:
    """sum_i |alpha_i| sqrt(e_i) of every column, then sum_i e_i, over the rows with a dual variable.

    Read in blocks; sums of parts of the rows add up.

    Returns
    -------
    sums : ndarray of shape (number of features, c + 1)
    """
    support, found = np.flatnonzero(alpha.any(axis=1)), np.zeros((len(features), alpha.shape[1] + 1))
    widest = max([X.shape[1], *(one.map.rank for one in features)])
    for some in parts(len(support), max(1, BLOCK_PAIRS // widest)):
        block, a = _safe_indexing(X, support[some]), np.abs(alpha[support[some]])
        for one, total in zip(features, found, strict=True):
            Z = one.raw(block).astype(np.float64)
            e = np.maximum(one.diagonal(block) - np.einsum("ij,ij->i", Z, Z), 0.0)
            total += np.append(np.sqrt(e) @ a, e.sum())
    return found


def _sphere(one: Features, rows: Any) -> FloatArray:
    diagonal = np.asarray(one.map.kernel.diag(rows), dtype=np.float64)
    if not one.spherical:
        return np.ones(len(diagonal))
    return np.divide(1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0)
