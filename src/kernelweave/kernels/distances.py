"""Distances between the rows of two matrices, dense or sparse, in the precision of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel, euclidean_distances, manhattan_distances


def squared_euclidean(X: Any, Z: Any) -> np.ndarray:
    """||x - z||^2 through one matrix product."""
    return euclidean_distances(X, Z, squared=True)


def euclidean(X: Any, Z: Any) -> np.ndarray:
    """||x - z||, from the differences themselves where the data are dense.

    The square root turns a rounding error e of ||x||^2 + ||z||^2 - 2 x'z into sqrt(e): kernels
    that are not smooth at distance 0 need the differences.
    """
    if sparse.issparse(X) or sparse.issparse(Z):
        return euclidean_distances(X, Z)
    return cdist(X, Z).astype(np.result_type(X, Z), copy=False)


def manhattan(X: Any, Z: Any) -> np.ndarray:
    """||x - z||_1."""
    dtype = np.result_type(X.dtype, Z.dtype)
    if sparse.issparse(X) or sparse.issparse(Z):
        return manhattan_distances(_canonical(X), _canonical(Z)).astype(dtype, copy=False)
    return cdist(X, Z, metric="cityblock").astype(dtype, copy=False)


def chi2(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """sum_j (x_j - z_j)^2 / (x_j + z_j), with 0 / 0 = 0."""
    return -additive_chi2_kernel(X, Z)


def _canonical(X: Any) -> Any:
    """CSR with sorted, unique indices; a copy where `X` is not, as the caller's matrix stays as it is."""
    X = sparse.csr_matrix(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
