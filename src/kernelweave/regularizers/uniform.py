"""All weights equal to one: the plain sum of kernels."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray
from .base import Regularizer, indicator


class Uniform(Regularizer):
    """h(d) = 0 if max_m d_m <= 1, else +inf:  the uniform sum, lp-norm at p = inf.

        weights    d_m = 1
        penalty    1/2 sum_m n_m^2
        conjugate  1/2 sum_m r_m^2

    The baseline every learned weighting has to beat. Kloft et al. (2011), section 2.

    Examples
    --------
    >>> import numpy as np
    >>> Uniform().weights(np.array([3.0, 0.0]))
    array([1., 1.])
    """

    name = "uniform"

    def price(self, weights: FloatArray) -> float:
        return indicator(float(weights.max(initial=0.0)) - 1.0)

    def penalty(self, norms: FloatArray) -> float:
        return 0.5 * float(norms @ norms)

    def weights(self, norms: FloatArray) -> FloatArray:
        return np.ones(norms.shape)

    def conjugate(self, dual_norms: FloatArray) -> float:
        return 0.5 * float(dual_norms @ dual_norms)
