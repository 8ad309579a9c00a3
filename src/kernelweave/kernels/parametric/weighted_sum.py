"""Weighted sum of kernels: ordinary multiple kernel learning, and sums of parametric kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import FloatArray
from .composite import ParametricComposite


class WeightedSum(ParametricComposite):
    """Weighted sum, k(x, z) = sum_m d_m k_m(x, z).

    A child may be an ordinary kernel, which makes it ordinary multiple kernel learning, or a
    parametric one k_m(x, z; e_m), whose parameters e_m follow the M weights: sums of products are
    ``WeightedSum([ProductOf([...]), ...])``.

    Parameters
    ----------
    kernels : list of kernels, or dict of name -> kernel

    Examples
    --------
    >>> from kernelweave.kernels import Linear, Polynomial
    >>> kernel = WeightedSum([Linear(), Polynomial(degree=2, gamma=1.0)])
    >>> kernel([[1.0], [2.0]], d=[1.0, 0.5])
    array([[ 3. ,  6.5],
           [ 6.5, 16.5]])
    """

    name = "weighted_sum"

    @property
    def _n_own(self) -> int:  # type: ignore[override]
        return len(self.kernels_)

    def _initial(self, X: Any, sample_weight: FloatArray) -> FloatArray:
        M = len(self.kernels_)
        return np.concatenate([np.full(M, 1.0 / M), *(child.initial_ for child in self.kernels_)])

    def _names(self, columns: list[str]) -> list[str]:
        return [*self._child_titles(), *self._child_names()]

    def _feature_map(self, n_columns: int) -> FloatArray:
        return np.vstack([np.zeros((len(self.kernels_), n_columns)), self._child_map(n_columns)])

    def _compute(self, X: Any, Z: Any, d: FloatArray) -> FloatArray:
        total, other = np.zeros((X.shape[0], Z.shape[0])), None if Z is X else Z
        for weight, child, part in zip(d, self.kernels_, self._parts(d), strict=False):
            if weight != 0.0:
                total += weight * child(X, other, part)
        return total

    def _contract(self, X: Any, Z: Any, B: FloatArray, d: FloatArray, K: FloatArray | None) -> FloatArray:
        weights, inner = [], []
        for weight, child, part in zip(d, self.kernels_, self._parts(d), strict=False):
            values = child(X, Z, part)
            weights.append(float(np.einsum("ij,ij->", B, values)))
            inner.append(weight * child.contract(X, Z, B, part, values))
        return np.concatenate([weights, *inner])
