"""Distances between the rows of two matrices, dense or sparse, in the precision of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel, euclidean_distances, manhattan_distances
from sklearn.utils import gen_batches

#: bytes of points about their mean at a time, and rows of single precision whose distances are in double
POINT_BYTES, SINGLE_ROWS = 1 << 26, 256


def squared_euclidean(X: Any, Z: Any) -> np.ndarray:
    """||x - z||^2 through one matrix product of points about the mean of Z.

    ||x||^2 + ||z||^2 - 2 x'z rounds by a share of ||x||^2 + ||z||^2: far from the origin that is more than
    the distance, about the mean it is not.
    """
    if sparse.issparse(X) or sparse.issparse(Z):
        return _sparse_distances(X, Z, squared=True)
    if np.result_type(X, Z) == np.float64:
        return _dense_distances(X, Z)
    D = np.empty((len(X), len(Z)), np.result_type(X, Z))
    for rows in gen_batches(len(X), SINGLE_ROWS):
        D[rows] = _dense_distances(X[rows], Z)
    if Z is X:
        np.fill_diagonal(D, 0.0)
    return D


def _dense_distances(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """||x - z||^2 in double precision, the sum over a few columns after another: no copy of all is made."""
    step = max(1, POINT_BYTES // (8 * (len(X) + len(Z))))
    D = np.zeros((len(X), len(Z)))
    for columns in gen_batches(X.shape[1], step):
        middle = column_means(Z[:, columns])
        right = np.subtract(Z[:, columns], middle, dtype=np.float64)
        left = right if X is Z else np.subtract(X[:, columns], middle, dtype=np.float64)
        part = euclidean_distances(left, right, squared=True)
        D = part if columns.start == 0 else np.add(D, part, out=D)
    return np.asarray(D)


def column_means(X: np.ndarray) -> np.ndarray:
    """Mean of every column, in double precision."""
    return np.asarray(X.mean(axis=0, dtype=np.float64))


def sparse_middle(*tables: Any) -> np.ndarray:
    """Mean of the last table in the columns where every table has an entry in every row, else 0.

    These are the columns that can be moved without filling a sparse table; in any other, some samples are
    at the origin, and samples far from it are far from those.

    Examples
    --------
    >>> sparse_middle(sparse.csr_matrix([[3.0, 0.0], [5.0, 1.0]]))
    array([4., 0.])
    """
    counts = [np.bincount(A.indices, minlength=A.shape[1]) == A.shape[0] for A in tables]
    return np.where(np.logical_and.reduce(counts), np.asarray(tables[-1].mean(axis=0)).ravel(), 0.0)


def moved(X: Any, middle: np.ndarray) -> Any:
    """A sparse table less `middle`, which is zero in columns where an entry is missing."""
    return sparse.csr_matrix((X.data - middle[X.indices], X.indices, X.indptr), X.shape)


def _sparse_distances(X: Any, Z: Any, squared: bool) -> np.ndarray:
    """Distances of tables of which one is sparse at least."""
    right = canonical(Z)
    left = right if X is Z else canonical(X)
    middle = sparse_middle(left, right)
    if middle.any():
        right = moved(right, middle)
        left = right if X is Z else moved(left, middle)
    D = euclidean_distances(left, right, squared=squared)
    return D.astype(np.result_type(X.dtype, Z.dtype), copy=False)


def euclidean(X: Any, Z: Any) -> np.ndarray:
    """||x - z||, from the differences themselves where the data are dense.

    The square root turns a rounding error e of ||x||^2 + ||z||^2 - 2 x'z into sqrt(e): kernels
    that are not smooth at distance 0 need the differences.
    """
    if sparse.issparse(X) or sparse.issparse(Z):
        return _sparse_distances(X, Z, squared=False)
    return cdist(X, Z).astype(np.result_type(X, Z), copy=False)


def manhattan(X: Any, Z: Any) -> np.ndarray:
    """||x - z||_1."""
    dtype = np.result_type(X.dtype, Z.dtype)
    if sparse.issparse(X) or sparse.issparse(Z):
        return manhattan_distances(canonical(X), canonical(Z)).astype(dtype, copy=False)
    return cdist(X, Z, metric="cityblock").astype(dtype, copy=False)


def chi2(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """sum_j (x_j - z_j)^2 / (x_j + z_j), with 0 / 0 = 0."""
    return -additive_chi2_kernel(X, Z)


def canonical(X: Any) -> Any:
    """CSR with sorted, unique indices; a copy where `X` is not, as the caller's matrix stays as it is."""
    X = sparse.csr_matrix(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
