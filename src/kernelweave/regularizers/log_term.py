"""Logarithmic group selection term."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray
from .concave import ConcaveTerm


class LogTerm(ConcaveTerm):
    """g(x) = sum_m eta_m log sqrt(eps + x_m),   B_m = eta_m / (eps + x_m),   x_m = n_m^2.

    The sparsest of the terms: large components are hardly shrunk, small ones vanish.
    Subrahmanya & Shin (2010), Table 1.

    Parameters
    ----------
    eta : float or array-like of shape (M,), default=1.0
        Strength, one for all kernels or one each.
    eps : float, default=1e-12
        Keeps the logarithm bounded below. A component that vanishes ends at a weight of
        eps / eta, so it is dropped if that is under 1e-6 of the largest weight.

    Examples
    --------
    >>> import numpy as np
    >>> LogTerm(eps=1.0).weights(np.array([2.0, 0.0]))
    array([5., 1.])
    """

    name = "log"
    per_kernel = ("eta",)

    def __init__(self, eta: Any = 1.0, eps: float = 1e-12) -> None:
        self.eta = eta
        self.eps = eps

    def value(self, x: FloatArray) -> float:
        return 0.5 * float((self._strength() * np.log(self._floor() + x)).sum())

    def slopes(self, x: FloatArray) -> FloatArray:
        return np.asarray(self._strength() / (self._floor() + x))

    def _floor(self) -> float:
        if not 0 < self.eps < np.inf:
            raise ValueError(f"{type(self).__name__}: eps={self.eps!r} must be positive.")
        return float(self.eps)
