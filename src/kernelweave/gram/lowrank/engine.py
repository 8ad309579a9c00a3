"""Gram engine of low-rank kernels: everything is linear in the number of samples."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np

from ..._typing import FloatArray, IntArray
from .._workers import mirror_lower
from ..base import Gram
from ..choice import Needs, Task
from .factors import Factors
from .matrix import FactoredMatrix

#: samples, and samples a feature, up to which a sum of kernels is formed as a matrix: its machines are faster
MOST_FORMED, DENSE_FEATURES = 2000, 2

#: rows looked at for the size of the kernels
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
        """sum_m d_m K_m, as a matrix that is never formed unless the samples are fewer than the features."""
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

    def dots(self, weights: FloatArray, alpha: FloatArray, rows: IntArray) -> FloatArray:
        """Z_m' alpha is computed once for all `weights`."""
        every = list(range(self.n_kernels))
        inside = self.factors.adjoint(alpha.reshape(self.n_samples, 1), every)
        factors = weights * self.scales
        columns = {m: np.outer(part[:, 0], factors[:, m]) for m, part in enumerate(inside)}
        self.n_passes += 2.0
        return self.factors.apply(columns)[rows]

    def component_norms(self, coefficients: dict[int, FloatArray]) -> FloatArray:
        found = np.zeros(self.n_kernels)
        for m, w in coefficients.items():
            found[m] = float(np.linalg.norm(w)) / self.scales[m] ** 0.5
        return found

    def values_of(self, coefficients: dict[int, FloatArray]) -> FloatArray:
        self.n_passes += 1.0
        return self.factors.apply(coefficients)

    def quad(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        found = self.factors.adjoint(alpha.reshape(self.n_samples, -1), chosen.tolist())
        self.n_passes += len(chosen) / self.n_kernels
        return np.asarray(self.scales[chosen] * [float((part**2).sum()) for part in found])

    def inner(self, A: FloatArray) -> FloatArray:
        every = np.arange(self.n_samples)
        found = [self.factors.rows(every, [m]).astype(np.float64) for m in range(self.n_kernels)]
        return np.asarray(self.scales * [float(np.einsum("ij,ij->", A @ Z, Z)) for Z in found])

    def rows(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        return FactoredMatrix(self.factors, weights * self.scales)[np.asarray(indices)]

    def diag(self, weights: FloatArray) -> FloatArray:
        return FactoredMatrix(self.factors, weights * self.scales).diagonal()

    def _diagonals(self) -> FloatArray:
        """The largest entries of some rows: all of them would be one more pass over the data."""
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
