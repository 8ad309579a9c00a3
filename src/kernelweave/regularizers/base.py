"""What every weight regulariser is: a penalty on component norms, and the weights behind it."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from sklearn.base import BaseEstimator

from .._typing import FloatArray


class Regularizer(BaseEstimator):
    """A regulariser of the kernel weights d >= 0, seen through its two block norms.

    With h(d) the price of the weights, n_m = ||f_m|| the norm of component m and
    r_m = sqrt(alpha' K_m alpha) its dual norm,

        Omega(n)  = min_{d>=0} 1/2 sum_m n_m^2 / d_m + 1/2 h(d)      penalty, weights
        Omega*(r) = max_{d>=0} 1/2 sum_m d_m r_m^2 - 1/2 h(d)        conjugate

    A regulariser without ``conjugate`` gets no duality gap.
    """

    name: str

    @abstractmethod
    def price(self, weights: FloatArray) -> float:
        """h(d); +inf outside its domain, up to rounding."""

    @abstractmethod
    def penalty(self, norms: FloatArray) -> float:
        """Omega(n)."""

    @abstractmethod
    def weights(self, norms: FloatArray) -> FloatArray:
        """The minimising d in Omega(n)."""

    @abstractmethod
    def conjugate(self, dual_norms: FloatArray) -> float:
        """Omega*(r)."""

    def initial_weights(self, n_kernels: int) -> FloatArray:
        """Where solvers start: the weights of equal norms."""
        return self.weights(np.ones(n_kernels))
