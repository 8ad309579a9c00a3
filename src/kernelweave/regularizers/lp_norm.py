"""lp-norm constraint on the kernel weights."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray
from .base import Regularizer


class LpNorm(Regularizer):
    """h(d) = 0 if ||d||_p <= 1, else +inf:  lp-norm multiple kernel learning.

        weights    d_m = n_m^(2/(p+1)) / (sum_k n_k^(2p/(p+1)))^(1/p)
        penalty    1/2 (sum_m n_m^q)^(2/q),  q = 2p/(p+1)
        conjugate  1/2 ||s||_{p*},  s_m = r_m^2,  p* = p/(p-1)

    p = 1 is sparse (the simplex of classical MKL), larger p spreads the weights, p = inf is
    the uniform sum. Kloft, Brefeld, Sonnenburg & Zien (2011), sections 2-4.

    Parameters
    ----------
    p : float, default=2.0
        From 1 to infinity.

    Examples
    --------
    >>> import numpy as np
    >>> LpNorm(p=1).weights(np.array([3.0, 1.0]))
    array([0.75, 0.25])
    """

    name = "lp"

    def __init__(self, p: float = 2.0) -> None:
        self.p = p

    @property
    def sparse(self) -> bool:
        """Whether weights can be exactly zero: on the simplex, p = 1."""
        return self._order() == 1.0

    def price(self, weights: FloatArray) -> float:
        return 0.0 if _power_norm(weights, self._order()) <= 1.0 + 1e-9 else np.inf

    def penalty(self, norms: FloatArray) -> float:
        p = self._order()
        q = 2.0 if np.isinf(p) else 2.0 * p / (p + 1.0)
        return 0.5 * _power_norm(norms, q) ** 2

    def weights(self, norms: FloatArray) -> FloatArray:
        p = self._order()
        top = norms.max(initial=0.0)
        if np.isinf(p) or top == 0.0:
            return np.full(norms.shape, norms.size ** (-1.0 / p))
        raised = (norms / top) ** (2.0 / (p + 1.0))
        return np.asarray(raised / _power_norm(raised, p))

    def conjugate(self, dual_norms: FloatArray) -> float:
        p = self._order()
        dual = 1.0 if np.isinf(p) else np.inf if p == 1.0 else p / (p - 1.0)
        return 0.5 * _power_norm(dual_norms**2, dual)

    def _order(self) -> float:
        if not self.p >= 1:
            raise ValueError(f"LpNorm: p={self.p!r} must be at least 1; for sparser models use p=1.")
        return float(self.p)


def _power_norm(x: FloatArray, p: float) -> float:
    """||x||_p of a non-negative vector, scaled so that large p does not overflow."""
    top = float(x.max(initial=0.0))
    if top == 0.0 or np.isinf(p):
        return top
    return top * float(((x / top) ** p).sum() ** (1.0 / p))
