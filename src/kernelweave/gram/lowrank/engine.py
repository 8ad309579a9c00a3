"""Low-rank factors as a Gram engine, and their weighted sum as a matrix."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_solve

from ..._linalg import positive_factor
from ..._typing import FloatArray, IntArray
from .._workers import mirror_lower
from ..base import Gram
from ..choice import Needs, Task
from .factors import Factors


class FactoredMatrix:
    """K = sum_m d_m Z_m Z_m' = Z Z', with Z the factors times sqrt(d_m) side by side.

    To solvers it looks like an array of shape (n, n) as long as they ask for K @ a, K[rows, columns] or
    K.diagonal(). Machines that solve the primal problem ask for products with Z itself.

    Parameters
    ----------
    factors : Factors
    weights : ndarray of shape (M,)
        d, including the scales of the kernels.

    Examples
    --------
    >>> from kernelweave.gram.lowrank.factors import StoredFactors
    >>> K = FactoredMatrix(StoredFactors([np.eye(2), np.ones((2, 1))]), np.array([1.0, 2.0]))
    >>> K @ np.array([1.0, 0.0])
    array([3., 2.])
    """

    dtype = np.dtype(np.float64)
    __array_ufunc__ = None

    #: coefficients of a function to start from, by kernel
    start: dict[int, FloatArray] | None = None

    #: how much a machine has smoothed the kinks of its loss; a curvature of the dual
    smoothing = 0.0

    def __init__(self, factors: Factors, weights: FloatArray) -> None:
        self.factors, self.weights = factors, weights
        self.kernels = np.flatnonzero(weights).tolist()
        self.roots = np.sqrt(weights[self.kernels])
        sizes = [factors.ranks[m] for m in self.kernels]
        self.cuts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        self.scales = np.repeat(self.roots, sizes)
        self.shape = (factors.n_samples, factors.n_samples)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def n_features(self) -> int:
        """Columns of Z."""
        return int(self.cuts[-1])

    def apply(self, v: FloatArray) -> FloatArray:
        """Z v for v of shape (n_features, c)."""
        if not self.kernels:
            return np.zeros((len(self), v.shape[1]))
        return self.factors.apply(self.split(v))

    def adjoint(self, A: FloatArray) -> FloatArray:
        """Z' A for A of shape (n, c)."""
        if not self.kernels:
            return np.zeros((0, A.shape[1]))
        return np.asarray(np.concatenate(self.factors.adjoint(A, self.kernels)) * self.scales[:, None])

    def rows(self, indices: IntArray) -> FloatArray:
        """Rows of Z, in the precision of the factors."""
        if not self.kernels:
            return np.zeros((len(indices), 0))
        return np.asarray(self.factors.rows(indices, self.kernels) * self.scales.astype(self.factors.dtype))

    def split(self, v: FloatArray) -> dict[int, FloatArray]:
        """Coefficients w_m = sqrt(d_m) v_m of the factors themselves: Z v = sum_m Z_m w_m."""
        if not self.kernels:
            return {}
        parts = zip(self.kernels, self.roots, np.split(v, self.cuts[1:-1]), strict=True)
        return {m: root * part for m, root, part in parts}

    def join(self, coefficients: dict[int, FloatArray]) -> FloatArray:
        """v from coefficients of the factors: 0 where there are none; kernels without weight are left out."""
        width = next(iter(coefficients.values())).shape[1]
        parts = [
            coefficients.get(m, np.zeros((self.factors.ranks[m], width))) / root
            for m, root in zip(self.kernels, self.roots, strict=True)
        ]
        return np.concatenate([np.zeros((0, width)), *parts])

    def weighted_gram(self, indices: IntArray, weights: FloatArray, centred: bool = False) -> FloatArray:
        """Z_S' W Z_S over some rows S, about their weighted mean if `centred`; summed in double precision."""
        if not self.kernels:
            return np.zeros((0, 0))
        return self.factors.scatter(indices, weights, self.kernels, self.scales, centred).matrix

    def inverse_form(self, rows: Any, extra: FloatArray, G: FloatArray, tied: bool) -> FloatArray:
        """G' P G with P the inverse of K + diag(extra) on some samples, within {x : sum(x) = 0} when tied.

        By Woodbury's identity: with W = 1 / extra, P = W - W Z (I + Z'WZ)^-1 Z'W.
        """
        if len(rows) <= int(tied):
            return np.zeros((G.shape[1], G.shape[1]))
        W = 1.0 / (extra + self.smoothing + 1e-8 * max(float(self.weights.sum()), 1e-300))
        right = np.column_stack([G, np.ones(len(G))])
        inner = self.weighted_gram(rows, W)
        inner.flat[:: len(inner) + 1] += 1.0
        full = np.zeros((len(self), right.shape[1]))
        full[rows] = W[:, None] * right
        crossed = self.adjoint(full)
        form = right.T @ (W[:, None] * right) - crossed.T @ cho_solve(positive_factor(inner), crossed)
        if not tied:
            return np.asarray(form[:-1, :-1])
        return np.asarray(form[:-1, :-1] - np.outer(form[:-1, -1], form[-1, :-1]) / form[-1, -1])

    def __matmul__(self, a: FloatArray) -> FloatArray:
        columns = a.reshape(len(self), -1)
        return self.apply(self.adjoint(columns)).reshape(a.shape)

    def __getitem__(self, key: Any) -> FloatArray:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        Z, other = (self.rows(_positions(part, len(self))).astype(np.float64) for part in (rows, columns))
        return np.asarray(Z @ other.T)

    def diagonal(self) -> FloatArray:
        if not self.kernels:
            return np.zeros(len(self))
        return np.asarray(self.factors.squares(self.kernels) @ self.roots**2)


def _positions(key: Any, n: int) -> IntArray:
    return np.arange(n)[key] if isinstance(key, slice) else np.atleast_1d(np.asarray(key)).ravel()


#: up to this many samples, and samples per feature, a sum is formed as a matrix: its machines are faster
MOST_FORMED, DENSE_FEATURES = 2000, 2

#: number of rows from which the size of the kernels is taken
LOOKED_AT = 1000


class LowRankGram(Gram):
    """K_m = scale_m Z_m Z_m', with factors of few columns.

    Parameters
    ----------
    factors : Factors
    scales : ndarray of shape (M,), optional
    fine : callable, optional
        Makes the same factors in double precision, where `factors` are in single.

    Examples
    --------
    >>> from kernelweave.gram.lowrank.factors import StoredFactors
    >>> gram = LowRankGram(StoredFactors([np.eye(2), np.ones((2, 1))]))
    >>> gram.quad(np.array([1.0, 1.0]))
    array([2., 4.])
    """

    name = "low_rank"

    def __init__(
        self, factors: Factors, scales: FloatArray | None = None, fine: Callable[[], Factors] | None = None
    ) -> None:
        self.fine = fine
        self.factors, self.n_samples, self.n_kernels = factors, factors.n_samples, len(factors.ranks)
        self.scales = np.ones(self.n_kernels) if scales is None else np.asarray(scales, dtype=np.float64)
        self.n_passes = 0.0

    @classmethod
    def needs(cls, task: Task) -> Needs:
        return Needs(None, "features take the place of matrices; pass approximation='nystroem' for them.")

    @property
    def rounds(self) -> bool:
        return self.fine is not None

    def in_double(self) -> Gram | None:
        return None if self.fine is None else LowRankGram(self.fine(), self.scales)

    @property
    def portable(self) -> bool:  # type: ignore[override]
        return self.factors.portable

    def combine(self, weights: FloatArray) -> Any:
        """sum_m d_m K_m, as a matrix that is formed only if there are fewer samples than features."""
        K = FactoredMatrix(self.factors, weights * self.scales)
        if self.n_samples > min(MOST_FORMED, DENSE_FEATURES * K.n_features or MOST_FORMED):
            return K
        every = np.arange(self.n_samples)
        formed = K[every, every]
        mirror_lower(formed)
        return formed

    def dot(self, weights: FloatArray, alpha: FloatArray, rows: IntArray | None = None) -> FloatArray:
        K = FactoredMatrix(self.factors, weights * self.scales)
        inside = K.adjoint(alpha.reshape(self.n_samples, -1))
        self.n_passes += 1.0 if rows is not None else 2.0
        found = K.apply(inside) if rows is None else K.rows(np.asarray(rows)).astype(np.float64) @ inside
        return np.asarray(found).reshape(len(found), *alpha.shape[1:])

    def products(
        self, alpha: FloatArray, kernels: IntArray | None = None, rows: IntArray | None = None
    ) -> FloatArray:
        """Z_m' alpha of all kernels, then products with the features: two passes however many kernels."""
        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        if len(chosen) == 0:
            return np.zeros((0, self.n_samples if rows is None else len(rows)))
        inside = self.factors.adjoint(alpha.reshape(self.n_samples, 1), chosen.tolist())
        each = np.diag(self.scales[chosen])
        columns = {m: part * own for m, part, own in zip(chosen.tolist(), inside, each, strict=True)}
        self.n_passes += 2.0 * len(chosen) / self.n_kernels
        return np.asarray(self.factors.apply(columns)[slice(None) if rows is None else rows].T)

    def component_norms(self, coefficients: dict[int, FloatArray]) -> FloatArray:
        found = np.zeros(self.n_kernels)
        for m, w in coefficients.items():
            found[m] = float(np.linalg.norm(w)) / self.scales[m] ** 0.5
        return found

    def values_of(self, coefficients: dict[int, FloatArray]) -> FloatArray:
        self.n_passes += 1.0
        return self.factors.apply(coefficients)

    def quad(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        return np.asarray(self.quad_each(alpha.reshape(self.n_samples, -1), kernels).sum(axis=0))

    def quad_each(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        found = self.factors.adjoint(alpha, chosen.tolist())
        self.n_passes += len(chosen) / self.n_kernels
        return np.asarray(self.scales[chosen] * np.array([(part**2).sum(axis=0) for part in found]).T)

    def inner(self, A: FloatArray) -> FloatArray:
        every = np.arange(self.n_samples)
        found = [self.factors.rows(every, [m]).astype(np.float64) for m in range(self.n_kernels)]
        return np.asarray(self.scales * [float(np.einsum("ij,ij->", A @ Z, Z)) for Z in found])

    def rows(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        return FactoredMatrix(self.factors, weights * self.scales)[np.asarray(indices)]

    def diag(self, weights: FloatArray) -> FloatArray:
        return FactoredMatrix(self.factors, weights * self.scales).diagonal()

    def _diagonals(self) -> FloatArray:
        """The largest entries of some rows: looking at all rows would be one more pass over the data."""
        some = np.unique(np.linspace(0, self.n_samples - 1, LOOKED_AT).astype(int))
        Z = self.factors.rows(some, range(self.n_kernels)).astype(np.float64)
        ends = np.cumsum(self.factors.ranks)[:-1]
        largest = [float((part**2).sum(axis=1).max()) for part in np.split(Z, ends, axis=1)]
        return (self.scales * largest)[:, None]

    def subset(self, samples: IntArray | None = None, kernels: IntArray | None = None) -> Self:
        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        rows = None if samples is None else np.asarray(samples)
        fine = None if self.fine is None else partial(_part_of, self.fine, rows, chosen.tolist())
        return type(self)(self.factors.take(rows, chosen.tolist()), self.scales[chosen], fine)


def _part_of(fine: Callable[[], Factors], rows: IntArray | None, kernels: list[int]) -> Factors:
    return fine().take(rows, kernels)
