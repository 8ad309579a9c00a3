"""The default of SMKL: logarithm plus group lasso."""

from __future__ import annotations

from typing import Any

from .._typing import FloatArray
from .concave import ConcaveTerm
from .group_lasso_term import GroupLassoTerm
from .log_term import LogTerm


class SMKL(ConcaveTerm):
    """g(x) = eta sum_m (log sqrt(eps + x_m) + sqrt(x_m)),  x_m = n_m^2: log plus group lasso.

    Selects fewer kernels than l1-norm MKL where several informative ones resemble one another.
    Weights under 1e-6 of the largest are exactly zero. Subrahmanya & Shin (2010), section 4.

    Parameters
    ----------
    eta : float or array-like of shape (M,), default=1.0
        Strength, one for all kernels or one each.
    eps : float, default=1e-12
        Keeps the logarithm bounded below; see `LogTerm`.

    Examples
    --------
    >>> import numpy as np
    >>> SMKL().weights(np.array([1.0, 0.0])).round(3)
    array([0.5, 0. ])
    """

    name = "smkl"
    per_kernel = ("eta",)

    def __init__(self, eta: Any = 1.0, eps: float = 1e-12) -> None:
        self.eta = eta
        self.eps = eps

    def value(self, x: FloatArray) -> float:
        return self._sum().value(x)

    def slopes(self, x: FloatArray) -> FloatArray:
        return self._sum().slopes(x)

    def _sum(self) -> ConcaveTerm:
        return LogTerm(self.eta, self.eps) + GroupLassoTerm(self.eta)
