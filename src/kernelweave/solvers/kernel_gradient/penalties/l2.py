"""l2 penalty around a prior mean: parameters known roughly."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._typing import FloatArray
from .base import Penalty, strengths


class L2(Penalty):
    """r(d) = strength (d - mean)' covariance^-1 (d - mean).

    For small kernels that need all their parameters, or with a prior from a similar task. Varma &
    Babu (2009), section 3.

    Parameters
    ----------
    strength : float, default=1.0
    mean : float or array-like of shape (n_parameters,), default=0.0
    covariance : array-like of shape (n_parameters,) or (n_parameters, n_parameters), optional
        Variances, or a positive definite matrix; the identity by default.

    Examples
    --------
    >>> import numpy as np
    >>> L2(mean=1.0, covariance=[1.0, 4.0]).gradient(np.array([2.0, 3.0]))
    array([2., 1.])
    """

    name = "l2"

    def __init__(self, strength: float = 1.0, mean: Any = 0.0, covariance: Any = None) -> None:
        self.strength = strength
        self.mean = mean
        self.covariance = covariance

    def check(self, n_parameters: int) -> None:
        strengths(self.strength, 0, "L2")
        strengths(self.mean, n_parameters, "L2", "mean")
        if self.covariance is None:
            return
        covariance = np.asarray(self.covariance, dtype=np.float64)
        if covariance.shape not in ((n_parameters,), (n_parameters, n_parameters)):
            raise ValueError(f"L2: covariance has shape {covariance.shape} for {n_parameters} parameters.")
        spread = covariance if covariance.ndim == 1 else np.linalg.eigvalsh(covariance)
        if not (spread > 0).all() or not np.allclose(covariance, covariance.T):
            raise ValueError("L2: covariance must be symmetric and positive definite.")

    def value(self, d: FloatArray) -> float:
        return float(self.strength * ((d - self.mean) @ self._scaled(d)))

    def gradient(self, d: FloatArray) -> FloatArray:
        return 2.0 * self.strength * self._scaled(d)

    def _scaled(self, d: FloatArray) -> FloatArray:
        """covariance^-1 (d - mean)."""
        off = d - np.asarray(self.mean)
        if self.covariance is None:
            return off
        covariance = np.asarray(self.covariance, dtype=np.float64)
        return off / covariance if covariance.ndim == 1 else np.linalg.solve(covariance, off)
