"""The weighted sum of low-rank kernels, as a matrix that is never formed."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from ..._linalg import positive_factor
from ..._typing import FloatArray, IntArray
from .factors import Factors


class FactoredMatrix:
    """K = sum_m d_m Z_m Z_m' = Z Z', with Z the factors times sqrt(d_m) side by side.

    To solvers it looks like an array of shape (n, n) where that is possible: K @ a, K[rows, columns],
    K.diagonal(); machines of the primal problem ask for products with Z itself.

    Parameters
    ----------
    factors : Factors
    weights : ndarray of shape (M,)
        d, scales of the kernels included.

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
        """v of the coefficients of the factors: 0 for kernels without any, none for those without weight."""
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
