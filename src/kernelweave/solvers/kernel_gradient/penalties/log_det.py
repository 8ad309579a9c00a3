"""log|K_d|: the price of a flexible Gaussian process, for regression."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ...._typing import FloatArray
from ....kernels.base import positive
from ...problem import Problem
from .base import Penalty, strengths


class LogDet(Penalty):
    """r(d) = strength / 2 log|K_d + noise I|, for regression.

    With the squared loss and noise = 1/C (the default), without intercept, T(d) is the negative log
    evidence of a Gaussian process up to a constant, 1/2 y' (K + I/C)^-1 y + 1/2 log|K + I/C|. The
    derivative in K is strength / 2 (K + noise I)^-1. Varma & Babu (2009), section 3.

    Parameters
    ----------
    strength : float, default=1.0
    noise : float, optional
        Keeps the matrix regular; by default 1/C, sample by sample.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.losses import Squared
    >>> problem = Problem(np.zeros((2, 1)), Squared(), np.ones((2, 1)))
    >>> round(LogDet().matrix_value(np.eye(2), problem), 4)  # 1/2 log 4
    0.6931
    """

    name = "log_det"
    uses_matrix = True

    def __init__(self, strength: float = 1.0, noise: float | None = None) -> None:
        self.strength = strength
        self.noise = noise

    def check(self, n_parameters: int) -> None:
        strengths(self.strength, 0, "LogDet")
        if self.noise is not None:
            positive(self.noise, "LogDet: noise")

    def value(self, d: FloatArray) -> float:
        return 0.0

    def gradient(self, d: FloatArray) -> FloatArray:
        return np.zeros_like(d)

    def matrix_value(self, K: FloatArray, problem: Problem) -> float:
        factor, _ = self._factor(K, problem)
        return float(self.strength * np.log(factor.diagonal()).sum())

    def matrix_slope(self, K: FloatArray, problem: Problem) -> FloatArray:
        inverse = cho_solve(self._factor(K, problem), np.eye(len(K)), check_finite=False)
        return 0.5 * self.strength * inverse

    def _factor(self, K: FloatArray, problem: Problem) -> tuple[FloatArray, bool]:
        noise = 1.0 / problem.C[:, 0] if self.noise is None else self.noise
        try:
            return cho_factor(K + np.diag(noise * np.ones(len(K))), lower=True, check_finite=False)
        except LinAlgError as error:
            raise ValueError("LogDet: K + noise I is not positive definite; increase noise.") from error
