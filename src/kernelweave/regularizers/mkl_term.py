"""Squared sum of norms as a group selection term (classical MKL)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray
from .concave import ConcaveTerm, check_factor, inverse_power


class MKLTerm(ConcaveTerm):
    """g(x) = 1/2 (sum_m eta_m sqrt(x_m))^2,   B_m = eta_m (sum_k eta_k sqrt(x_k)) / sqrt(x_m).

    Convex in the norms: alone, with eta = 1, it is ``LpNorm(p=1)``, which is certified; here for
    sums with concave terms. Subrahmanya & Shin (2010), Table 1.

    Parameters
    ----------
    eta : float or array-like of shape (M,), default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> MKLTerm().weights(np.array([3.0, 1.0]))
    array([0.75, 0.25])
    """

    name = "mkl"
    per_kernel = ("eta",)
    homogeneous = False

    def __init__(self, eta: Any = 1.0) -> None:
        self.eta = eta

    def value(self, x: FloatArray) -> float:
        return 0.5 * float((self._strength() * np.sqrt(x)).sum()) ** 2

    def slopes(self, x: FloatArray) -> FloatArray:
        eta, total = self._strength(), float((self._strength() * np.sqrt(x)).sum())
        return np.asarray(eta * (total if total > 0.0 else 1.0) * inverse_power(x, 0.5))

    def __mul__(self, factor: float) -> ConcaveTerm:
        # g is quadratic in eta
        return super().__mul__(check_factor(factor) ** 0.5)

    __rmul__ = __mul__
