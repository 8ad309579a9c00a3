"""Reversed Huber penalty of the component norms."""

from __future__ import annotations

import numpy as np

from kernelweave.regularizers import Regularizer
from kernelweave.regularizers.base import indicator


class BerHu(Regularizer):
    """Small components are selected, large ones shrunk.

    Omega(n) = sum_m (n_m if n_m <= 1, else (n_m^2 + 1) / 2)

        price      h(d) = sum_m d_m,  d_m <= 1
        weights    d_m = min(n_m, 1)
        conjugate  1/2 sum_m (r_m^2 - 1)_+

    Owen (2007) proposed it for regression coefficients.

    Examples
    --------
    >>> BerHu().weights(np.array([0.2, 3.0]))
    array([0.2, 1. ])
    """

    name = "berhu"
    sparse = True
    max_weight = 1.0

    def price(self, weights):
        return float(weights.sum()) + indicator(float(weights.max(initial=0.0)) - 1.0)

    def price_slopes(self, weights):
        """h' = 1, h'' = 0: Newton steps on the weights can use it."""
        return np.ones_like(weights), np.zeros_like(weights)

    def penalty(self, norms):
        return float(np.where(norms <= 1.0, norms, 0.5 * (norms**2 + 1.0)).sum())

    def weights(self, norms):
        return np.minimum(norms, 1.0)

    def conjugate(self, dual_norms):
        return 0.5 * float(np.maximum(dual_norms**2 - 1.0, 0.0).sum())
