"""Ordered weights: the wedge."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import isotonic_regression

from .._typing import FloatArray
from .base import Regularizer, indicator


class Wedge(Regularizer):
    """h(d) = sum_m d_m if d_1 >= d_2 >= ... >= 0, else +inf.

        weights    sqrt of the decreasing isotonic regression of n^2
        penalty    1/2 sum_m (n_m^2 / d_m + d_m)
        conjugate  0 if s_1 + ... + s_k <= k for every k, else +inf,  s = r^2

    For kernels in an order of preference (coarse to fine, short to long): a later kernel never
    outweighs an earlier one. Micchelli, Morales & Pontil (2013); Tomioka & Suzuki (2010).

    Examples
    --------
    >>> import numpy as np
    >>> Wedge().weights(np.array([1.0, 3.0, 0.5])).round(4)
    array([2.2361, 2.2361, 0.5   ])
    """

    name = "wedge"
    sparse = True
    homogeneous = True

    def price(self, weights: FloatArray) -> float:
        return float(weights.sum()) + indicator(float(np.diff(weights).max(initial=0.0)))

    def generators(self, n_kernels: int) -> FloatArray:
        """d = T z, z >= 0: column k raises the first k + 1 weights, at the price k + 1."""
        return np.triu(np.ones((n_kernels, n_kernels)))

    def price_slopes(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes in z."""
        return np.arange(1.0, len(weights) + 1.0), np.zeros(len(weights))

    def penalty(self, norms: FloatArray) -> float:
        d = self.weights(norms)
        live = d > 0
        return 0.5 * float((norms[live] ** 2 / d[live] + d[live]).sum())

    def weights(self, norms: FloatArray) -> FloatArray:
        return np.asarray(np.sqrt(isotonic_regression(norms**2, increasing=False)))

    def conjugate(self, dual_norms: FloatArray) -> float:
        return indicator(self._excess(dual_norms) - 1.0)

    def dual_scale(self, dual_norms: FloatArray) -> float:
        return float(min(1.0, 1.0 / max(self._excess(dual_norms) ** 0.5, 1e-300)))

    def _excess(self, dual_norms: FloatArray) -> float:
        """max_k (s_1 + ... + s_k) / k."""
        return float((np.cumsum(dual_norms**2) / np.arange(1, len(dual_norms) + 1)).max(initial=0.0))
