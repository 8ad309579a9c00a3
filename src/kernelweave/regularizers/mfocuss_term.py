"""Power of the norms as a group selection term (M-FOCUSS)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray
from .concave import ConcaveTerm, inverse_power


class MFocussTerm(ConcaveTerm):
    """g(x) = sum_m eta_m x_m^(p/2),   B_m = eta_m p x_m^(p/2 - 1),   x_m = n_m^2,  0 < p <= 1.

    p = 1 is the group lasso, smaller p is sparser. Subrahmanya & Shin (2010), Table 1; the
    exponent printed there for B is not the derivative, this one is.

    Parameters
    ----------
    p : float, default=0.5
    eta : float or array-like of shape (M,), default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> MFocussTerm(p=1.0).weights(np.array([3.0, 1.0]))
    array([3., 1.])
    """

    name = "mfocuss"
    per_kernel = ("eta",)

    def __init__(self, p: float = 0.5, eta: Any = 1.0) -> None:
        self.p = p
        self.eta = eta

    def value(self, x: FloatArray) -> float:
        return float((self._strength() * x ** (0.5 * self._order())).sum())

    def slopes(self, x: FloatArray) -> FloatArray:
        p = self._order()
        return np.asarray(self._strength() * p * inverse_power(x, 1.0 - 0.5 * p))

    def _order(self) -> float:
        if not 0 < self.p <= 1:
            raise ValueError(f"MFocussTerm: p={self.p!r} must be in (0, 1].")
        return float(self.p)
