"""What two samples have in common, of which kernels are functions: distances, inner products.

A kernel that declares its `Base` and writes ``of_base`` shares it with every other kernel on the same
columns, on every engine and on every device. Below the bases are the functions that compute them with NumPy
and SciPy, for matrices dense or sparse, in the precision of the data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel, euclidean_distances, manhattan_distances
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .._backend import is_tensor, torch

#: bytes of points about their origin at a time, and rows of single precision whose distances are in double
POINT_BYTES, SINGLE_ROWS = 1 << 26, 256


@dataclass(frozen=True)
class Base(ABC):
    """A quantity b(x, z) of two samples; two bases of a class and of equal parameters are the same.

    Examples
    --------
    >>> SquaredEuclidean().between(np.array([[0.0]]), np.array([[1.0], [3.0]]))
    array([[1., 9.]])
    >>> SquaredEuclidean() == SquaredEuclidean(), SquaredEuclidean() == Manhattan()
    (True, False)
    """

    #: whether b(x + c, z + c) = b(x, z), so that points may be moved to where rounding is least
    moves = False

    #: whether b >= 0, b(x, x) = 0 and exp(-gamma b) is positive semidefinite for every gamma >= 0
    distance = False

    @abstractmethod
    def between(self, X: Any, Z: Any, of_x: Any = None, of_z: Any = None) -> Any:
        """b(x_i, z_j), shape (n_x, n_z), of arrays, CSR matrices or tensors; `of_x` may be `each(X)`."""

    def each(self, X: Any) -> Any:
        """Numbers of each row of a tensor that `between` would compute again on every call; or None."""
        return None

    def by_column(self, X: Any, Z: Any) -> Any:
        """b_f(x_if, z_jf), shape (n_x, n_z, F), where b is the sum of these over the columns f; else None.

        Of arrays or tensors.
        """
        return None

    def diag(self, X: Any) -> Any:
        """b(x_i, x_i), shape (n_x,)."""
        return (torch if is_tensor(X) else np).zeros(X.shape[0], dtype=X.dtype, **home_of(X))


class SquaredEuclidean(Base):
    """||x - z||^2, through one matrix product: see `squared_euclidean`."""

    moves = distance = True

    def between(self, X: Any, Z: Any, of_x: Any = None, of_z: Any = None) -> Any:
        if not is_tensor(X):
            return squared_euclidean(X, Z)
        of_x, of_z = (self.each(A) if own is None else own for A, own in ((X, of_x), (Z, of_z)))
        return torch.addmm(of_z[None, :], X, Z.T, alpha=-2.0).add_(of_x[:, None]).clamp_(min=0.0)

    def by_column(self, X: Any, Z: Any) -> Any:
        difference = X[:, None] - Z
        difference *= difference
        return difference

    def each(self, X: Any) -> Any:
        """Squared lengths, a few rows at a time summed in double precision."""
        return torch.cat([(some.double() ** 2).sum(dim=1).to(X.dtype) for some in X.split(8192)])


class Euclidean(Base):
    """||x - z||, from the differences: for kernels that are not smooth at distance 0, see `euclidean`."""

    moves = distance = True

    def between(self, X: Any, Z: Any, of_x: Any = None, of_z: Any = None) -> Any:
        if is_tensor(X):
            return torch.cdist(X, Z, compute_mode="donot_use_mm_for_euclid_dist")
        return euclidean(X, Z)


class Manhattan(Base):
    """||x - z||_1."""

    moves = distance = True

    def between(self, X: Any, Z: Any, of_x: Any = None, of_z: Any = None) -> Any:
        return torch.cdist(X, Z, p=1.0) if is_tensor(X) else manhattan(X, Z)

    def by_column(self, X: Any, Z: Any) -> Any:
        difference = X[:, None] - Z
        return (torch if is_tensor(X) else np).abs(difference, out=difference)


class InnerProduct(Base):
    """x'z."""

    def between(self, X: Any, Z: Any, of_x: Any = None, of_z: Any = None) -> Any:
        return X @ Z.T if is_tensor(X) else safe_sparse_dot(X, Z.T, dense_output=True)

    def by_column(self, X: Any, Z: Any) -> Any:
        return X[:, None] * Z

    def diag(self, X: Any) -> Any:
        return (X**2).sum(dim=1) if is_tensor(X) else row_norms(X, squared=True)


class ChiSquared(Base):
    """sum_j (x_j - z_j)^2 / (x_j + z_j), with 0 / 0 = 0, for x, z >= 0."""

    distance = True

    def between(self, X: Any, Z: Any, of_x: Any = None, of_z: Any = None) -> Any:
        if not is_tensor(X):
            return chi2(X, Z)
        return _by_column(X, Z, self._of_tensors)

    @staticmethod
    def _of_tensors(x: Any, z: Any) -> Any:
        return (x - z).square_().div_((x + z).clamp_(min=torch.finfo(x.dtype).tiny))

    def by_column(self, X: Any, Z: Any) -> Any:
        if is_tensor(X):
            return self._of_tensors(X[:, None], Z)
        x, total = X[:, None], X[:, None] + Z
        result: np.ndarray = np.divide((x - Z) ** 2, total, out=np.zeros_like(total), where=total > 0)
        return result


class Intersection(Base):
    """sum_j min(x_j, z_j)."""

    def between(self, X: Any, Z: Any, of_x: Any = None, of_z: Any = None) -> Any:
        if is_tensor(X):
            return _by_column(X, Z, torch.minimum)
        # min(a, b) = (a + b - |a - b|) / 2
        B = np.add.outer(self.diag(X), self.diag(Z))
        B -= manhattan(X, Z)
        B *= 0.5
        return B

    def by_column(self, X: Any, Z: Any) -> Any:
        return (torch if is_tensor(X) else np).minimum(X[:, None], Z)

    def diag(self, X: Any) -> Any:
        return X.sum(dim=1) if is_tensor(X) else np.asarray(X.sum(axis=1)).ravel()


class Zero(Base):
    """0, for kernels that look at no sample; they are functions of every other base too."""

    def between(self, X: Any, Z: Any, of_x: Any = None, of_z: Any = None) -> Any:
        xp = torch if is_tensor(X) else np
        return xp.zeros((X.shape[0], Z.shape[0]), dtype=X.dtype, **home_of(X))


def home_of(X: Any) -> dict[str, Any]:
    """Where a new array like X is to be made."""
    return {"device": X.device} if is_tensor(X) else {}


def _by_column(X: Any, Z: Any, function: Callable[[Any, Any], Any]) -> Any:
    """sum_j function(x_j, z_j) of two tensors, column after column: no array of three axes is made."""
    total = torch.zeros((len(X), len(Z)), dtype=X.dtype, device=X.device)
    for x, z in zip(X.T, Z.T, strict=True):
        total += function(x[:, None], z[None, :])
    return total


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
    result: np.ndarray = np.clip(0.0, low, high)
    return result


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
    result: np.ndarray = D.astype(np.result_type(X.dtype, Z.dtype), copy=False)
    return result


def euclidean(X: Any, Z: Any) -> np.ndarray:
    """||x - z||, from the differences themselves where the data are dense.

    The square root turns a rounding error e of ||x||^2 + ||z||^2 - 2 x'z into sqrt(e): kernels
    that are not smooth at distance 0 need the differences.
    """
    if sparse.issparse(X) or sparse.issparse(Z):
        return _sparse_distances(X, Z, squared=False)
    result: np.ndarray = cdist(X, Z).astype(np.result_type(X, Z), copy=False)
    return result


def manhattan(X: Any, Z: Any) -> np.ndarray:
    """||x - z||_1."""
    dtype = np.result_type(X.dtype, Z.dtype)
    if sparse.issparse(X) or sparse.issparse(Z):
        result: np.ndarray = manhattan_distances(canonical(X), canonical(Z)).astype(dtype, copy=False)
        return result
    result = cdist(X, Z, metric="cityblock").astype(dtype, copy=False)
    return result


def chi2(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """sum_j (x_j - z_j)^2 / (x_j + z_j), with 0 / 0 = 0."""
    result: np.ndarray = -additive_chi2_kernel(X, Z)
    return result


def canonical(X: Any) -> Any:
    """CSR with sorted, unique indices; a copy where `X` is not, as the caller's matrix stays as it is."""
    X = sparse.csr_matrix(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
