"""Distances between the rows of two matrices, dense or sparse, in the precision of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel, euclidean_distances, manhattan_distances
from sklearn.utils import gen_batches

#: bytes of points about their origin at a time, and rows of single precision whose distances are in double
POINT_BYTES, SINGLE_ROWS = 1 << 26, 256


def squared_euclidean(X: Any, Z: Any) -> np.ndarray:
    """||x - z||^2 through one matrix product of points about `origin_of` Z.

    ||x||^2 + ||z||^2 - 2 x'z rounds by a share of ||x||^2 + ||z||^2: far from zero that is more than the
    distance, near the samples it is not.
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
        origin = origin_of(Z[:, columns])
        right = np.subtract(Z[:, columns], origin, dtype=np.float64)
        left = right if X is Z else np.subtract(X[:, columns], origin, dtype=np.float64)
        part = euclidean_distances(left, right, squared=True)
        D = part if columns.start == 0 else np.add(D, part, out=D)
    return np.asarray(D)


def origin_of(*tables: Any) -> np.ndarray:
    """The point of the box around all samples that is nearest to zero, column by column.

    No sample is farther from it than from zero, so rounding of distances about it is never more, and where
    all samples are far from zero it is less. Repeated rows and their order do not move it; sparse tables
    have to be moved only in columns without a zero.

    Examples
    --------
    >>> origin_of(np.array([[3.0, -1.0, -7.0], [5.0, 1.0, -6.0]]))
    array([ 3.,  0., -6.])
    """
    low = np.min([_along(A.min(axis=0)) for A in tables if A.shape[0]], axis=0)
    high = np.max([_along(A.max(axis=0)) for A in tables if A.shape[0]], axis=0)
    return np.clip(0.0, low, high)


def _along(row: Any) -> np.ndarray:
    """One row, of a sparse table perhaps, as an array of double precision."""
    values = row.toarray() if sparse.issparse(row) else np.asarray(row)
    return values.astype(np.float64).ravel()


def moved(X: Any, origin: np.ndarray) -> Any:
    """A sparse table less `origin`, which is zero in columns where an entry is missing."""
    return sparse.csr_matrix((X.data - origin[X.indices], X.indices, X.indptr), X.shape)


def _sparse_distances(X: Any, Z: Any, squared: bool) -> np.ndarray:
    """Distances of tables of which one is sparse at least."""
    right = canonical(Z)
    left = right if X is Z else canonical(X)
    origin = origin_of(left, right)
    if origin.any():
        right = moved(right, origin)
        left = right if X is Z else moved(left, origin)
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
