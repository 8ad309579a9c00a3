"""Gram matrices with the same distances, but all samples at the same distance from the origin."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray, IntArray
from .base import OF_ENGINE, Gram


class SphereGram(Gram):
    """M matrices with the same distances as given ones, and a constant diagonal.

        K~_m(i, j) = K_m(i, j) + (g_m(i) + g_m(j)) / 2,    g_m(i) = kappa_m - K_m(i, i),
        kappa_m = max_i K_m(i, i)

    so that K~_m(i, i) = kappa_m and K~_m(i, j) = kappa_m - ||x_i - x_j||^2 / 2 with the distance in the space
    of kernel m. They are positive semidefinite on vectors of sum 0, where they equal K_m, and alpha' K~_m
    alpha = kappa_m - (sum_i alpha_i K_m(i, i) - alpha' K_m alpha), which is not negative for alpha >= 0 of
    sum 1. The smallest enclosing ball is computed with them.

    Parameters
    ----------
    gram : Gram
        The matrices K_m, whose weighted sums are arrays.
    diagonals : ndarray of shape (M, n), optional
        Their diagonals, if known; `tops`, of shape (M,), are the kappa_m.

    Examples
    --------
    >>> from kernelweave.gram import DenseGram
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> SphereGram(DenseGram([X @ X.T])).combine(np.ones(1))
    array([[4. , 3.5, 2. ],
           [3.5, 4. , 3.5],
           [2. , 3.5, 4. ]])
    """

    conditional = True

    def __init__(
        self, gram: Gram, diagonals: FloatArray | None = None, tops: FloatArray | None = None
    ) -> None:
        if diagonals is None:
            diagonals = np.array([gram.diag(unit) for unit in np.eye(gram.n_kernels)])
        self.gram, self.own = gram, diagonals
        self.tops = diagonals.max(axis=1) if tops is None else tops
        self.gaps = self.tops[:, None] - diagonals
        for name in (*OF_ENGINE, "portable"):
            setattr(self, name, getattr(gram, name))

    @property
    def n_passes(self) -> float:
        """The diagonals of the matrices K_m."""
        return self.gram.n_passes

    @n_passes.setter
    def n_passes(self, value: float) -> None:
        self.gram.n_passes = value

    @property
    def nbytes(self) -> int:
        return self.gram.nbytes + self.own.nbytes + self.gaps.nbytes

    def in_double(self) -> Gram | None:
        inner = self.gram.in_double()
        return None if inner is None else SphereGram(inner)

    def combine(self, weights: FloatArray) -> FloatArray:
        K, half = self.gram.combine(weights), 0.5 * (weights @ self.gaps)
        K += half
        K += half[:, None]
        return K

    def dot(self, weights: FloatArray, alpha: FloatArray, rows: IntArray | None = None) -> FloatArray:
        half = 0.5 * (weights @ self.gaps)
        own = half if rows is None else half[rows]
        shift = np.multiply.outer(own, alpha.sum(axis=0)) + half @ alpha
        return np.asarray(self.gram.dot(weights, alpha, rows) + shift)

    def quad(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        gaps, columns = (
            self.gaps if kernels is None else self.gaps[kernels],
            alpha.reshape(self.n_samples, -1),
        )
        return np.asarray(self.gram.quad(alpha, kernels) + gaps @ columns @ columns.sum(axis=0))

    def inner(self, A: FloatArray) -> FloatArray:
        return np.asarray(self.gram.inner(A) + self.gaps @ A.sum(axis=1))

    def rows(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        half = 0.5 * (weights @ self.gaps)
        return np.asarray(self.gram.rows(indices, weights) + half + half[indices, None])

    def diag(self, weights: FloatArray) -> FloatArray:
        return np.full(self.n_samples, float(weights @ self.tops))

    def subset(self, samples: IntArray | None = None, kernels: IntArray | None = None) -> Any:
        diagonals, tops = self.own, self.tops
        if kernels is not None:
            diagonals, tops = diagonals[kernels], tops[kernels]
        if samples is not None:
            diagonals = diagonals[:, samples]
        return SphereGram(self.gram.subset(samples, kernels), diagonals, tops)
