"""Cauchy kernel."""

from __future__ import annotations

import numpy as np

from kernelweave.kernels import Kernel
from kernelweave.kernels.bandwidth import resolve_gamma
from kernelweave.kernels.base import positive
from kernelweave.kernels.distances import squared_euclidean


class Cauchy(Kernel):
    """Cauchy kernel, k(x, z) = 1 / (1 + factor * gamma ||x - z||^2): far samples still count a little.

    Parameters
    ----------
    gamma : float, "scale" or "median", default="scale"
    factor : float, default=1.0
    columns : int, str, slice, list, mask or callable, optional

    Examples
    --------
    >>> Cauchy(gamma=1.0)(np.array([[0.0], [2.0]]))
    array([[1. , 0.2],
           [0.2, 1. ]])
    """

    name = "cauchy"
    bandwidth = "gamma"

    def __init__(self, gamma="scale", factor=1.0, columns=None) -> None:
        self.gamma = gamma
        self.factor = factor
        self.columns = columns

    def _fit(self, X, sample_weight):
        gamma = resolve_gamma(self.gamma, X, sample_weight, squared_euclidean, power=2)
        self.gamma_ = positive(self.factor, "factor") * gamma

    def _compute(self, X, Z):
        return 1.0 / (1.0 + self.gamma_ * squared_euclidean(X, Z))

    def _diag(self, X):
        return np.ones(X.shape[0], dtype=X.dtype)
