"""What every weight regulariser is: a penalty on component norms, and the weights behind it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from .._typing import FloatArray, IntArray


class Regularizer(BaseEstimator):
    """A regulariser of the kernel weights d >= 0, seen through its two block norms.

    With h(d) the price of the weights, n_m = ||f_m|| the norm of component m and
    r_m = sqrt(alpha' K_m alpha) its dual norm,

        Omega(n)  = min_{d>=0} 1/2 sum_m n_m^2 / d_m + 1/2 h(d)      penalty, weights
        Omega*(r) = max_{d>=0} 1/2 sum_m d_m r_m^2 - 1/2 h(d)        conjugate

    Optional abilities, which solvers ask for by name:

    * ``price_slopes(z)``: h' and h'' of a separable h, for Newton steps on the weights;
    * ``weights_from_dual(r)``: 2 dOmega*/d(r^2), the weights of given dual norms, for the joint ascent and
      the program of cutting planes, where weights do not become zero.
    """

    name: str

    #: concave penalties have no conjugate, and their fits no duality gap
    convex = True
    #: some weights are exactly zero at the optimum
    sparse = False
    #: the weights live on the simplex
    tied = False
    #: Omega(n) grows no faster than n; when convex, Omega(c n) = c Omega(n) and Omega* is 0 or infinite
    homogeneous = False
    #: weights come from a maximum, not from a minimum: `weights_from_dual`
    ascends = False
    #: weights stay below this
    max_weight = np.inf
    #: parameters that hold one number per kernel
    per_kernel: tuple[str, ...] = ()

    @abstractmethod
    def price(self, weights: FloatArray) -> float:
        """h(d); +inf outside its domain, up to rounding."""

    @abstractmethod
    def penalty(self, norms: FloatArray) -> float:
        """Omega(n)."""

    @abstractmethod
    def weights(self, norms: FloatArray) -> FloatArray:
        """The minimising d in Omega(n)."""

    def conjugate(self, dual_norms: FloatArray) -> float:
        """Omega*(r)."""
        raise NotImplementedError(f"{type(self).__name__} has no conjugate, so no duality gap.")

    def dual_scale(self, dual_norms: FloatArray) -> float:
        """The largest c <= 1 for which Omega*(c r) is finite."""
        return 1.0

    def initial_weights(self, n_kernels: int) -> FloatArray:
        """Where solvers start: the weights of equal norms."""
        return self.weights(np.ones(n_kernels))

    def generators(self, n_kernels: int) -> FloatArray:
        """T in d = T z, with h a function of z >= 0: an invertible matrix, or its diagonal."""
        return np.ones(n_kernels)

    def bound_to(self, gram: Any) -> Regularizer:
        """The regulariser with whatever it takes from the Gram matrices."""
        return self

    def select(self, kernels: IntArray, n_kernels: int) -> Self:
        """The regulariser of some of `n_kernels` kernels: parameters of the others are dropped."""
        part: Self = clone(self)
        for parameter in self.per_kernel:
            value = getattr(self, parameter)
            if np.ndim(value) == 0:
                continue
            if len(value) != n_kernels:
                raise ValueError(
                    f"{type(self).__name__}: {parameter} has {len(value)} entries for {n_kernels} kernels."
                )
            setattr(part, parameter, np.asarray(value)[np.ix_(*[kernels] * np.ndim(value))])
        return part


def power_norm(x: FloatArray, p: float) -> float:
    """||x||_p of a non-negative vector, scaled so that large p does not overflow."""
    top = float(x.max(initial=0.0))
    if top == 0.0 or np.isinf(p):
        return top
    return top * float(((x / top) ** p).sum() ** (1.0 / p))


def indicator(outside: float) -> float:
    """0 inside, +inf where a constraint is broken by more than rounding."""
    return 0.0 if outside <= 1e-9 else np.inf
