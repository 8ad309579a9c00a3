"""Cauchy kernel."""

from __future__ import annotations

from kernelweave.kernels import Kernel, SquaredEuclidean
from kernelweave.kernels.bandwidth import resolve_gamma
from kernelweave.kernels.base import positive


class Cauchy(Kernel):
    """Cauchy kernel, k(x, z) = 1 / (1 + factor * gamma ||x - z||^2): far samples still count a little.

    Parameters
    ----------
    gamma : float, "scale" or "median", default="scale"
    factor : float, default=1.0
    columns : int, str, slice, list, mask or callable, optional

    Examples
    --------
    >>> import numpy as np
    >>> Cauchy(gamma=1.0)(np.array([[0.0], [2.0]]))
    array([[1. , 0.2],
           [0.2, 1. ]])
    """

    name = "cauchy"
    bandwidth = "gamma"
    base = SquaredEuclidean()

    def __init__(self, gamma="scale", factor=1.0, columns=None) -> None:
        self.gamma = gamma
        self.factor = factor
        self.columns = columns

    def _fit(self, X, sample_weight):
        gamma = resolve_gamma(self.gamma, X, sample_weight, self.base.between, power=2)
        self.gamma_ = positive(self.factor, "factor") * gamma

    def of_base(self, B, xp):
        return 1.0 / (1.0 + self.gamma_ * B)
