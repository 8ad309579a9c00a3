"""Group lasso as a group selection term."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray
from .concave import ConcaveTerm, inverse_power


class GroupLassoTerm(ConcaveTerm):
    """g(x) = sum_m eta_m sqrt(x_m),   B_m = eta_m / sqrt(x_m),   x_m = n_m^2.

    Convex in the norms: alone it is the block 1-norm, ``ElasticNet(l1_ratio=1)``, which is
    certified; here for sums with concave terms. Subrahmanya & Shin (2010), Table 1.

    Parameters
    ----------
    eta : float or array-like of shape (M,), default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> GroupLassoTerm(eta=2.0).penalty(np.array([3.0, 1.0]))
    8.0
    """

    name = "group_lasso"
    per_kernel = ("eta",)

    def __init__(self, eta: Any = 1.0) -> None:
        self.eta = eta

    def value(self, x: FloatArray) -> float:
        return float((self._strength() * np.sqrt(x)).sum())

    def slopes(self, x: FloatArray) -> FloatArray:
        return np.asarray(self._strength() * inverse_power(x, 0.5))
