"""Concave group selection terms, and their sums (SMKL)."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from .._typing import FloatArray, IntArray
from .base import Regularizer


class ConcaveTerm(Regularizer):
    """A penalty g(x) of the squared norms x_m = n_m^2 that is concave in x.

    Its tangent bounds it from above, g(x) <= g(x0) + 1/2 sum_m B_m(x0) (x_m - x0_m) with
    B_m = 2 dg/dx_m, so the fit with weights d_m = 1 / B_m never raises the objective
    C sum_i V(y_i, f_i) + g (majorise-minimise). Not convex: no duality gap, and d_m = 0 stays
    0. Terms add with ``+`` and scale with ``*``. Subrahmanya & Shin (2010).

    A subclass writes ``value(x)`` and ``slopes(x)`` = B.
    """

    convex = False
    sparse = True
    homogeneous = True

    @abstractmethod
    def value(self, x: FloatArray) -> float:
        """g(x)."""

    @abstractmethod
    def slopes(self, x: FloatArray) -> FloatArray:
        """B_m(x) = 2 dg/dx_m; +inf where x_m = 0 and g has a kink."""

    def price(self, weights: FloatArray) -> float:
        raise NotImplementedError(f"{type(self).__name__} has no price of weights: it is not convex.")

    def penalty(self, norms: FloatArray) -> float:
        return self.value(norms**2)

    def weights(self, norms: FloatArray) -> FloatArray:
        return np.asarray(1.0 / self.slopes(norms**2))

    def _strength(self) -> FloatArray:
        """eta, checked."""
        eta = np.asarray(self.eta, dtype=np.float64)
        if not ((eta > 0) & (eta < np.inf)).all():
            raise ValueError(f"{type(self).__name__}: eta must be positive.")
        return eta

    def __add__(self, other: ConcaveTerm) -> ConcaveTerm:
        if not isinstance(other, ConcaveTerm):
            return NotImplemented
        return TermSum([*_terms(self), *_terms(other)])

    def __mul__(self, factor: float) -> ConcaveTerm:
        scaled: ConcaveTerm = clone(self)
        eta = check_factor(factor) * self._strength()
        scaled.eta = float(eta) if eta.ndim == 0 else eta
        return scaled

    __rmul__ = __mul__


class TermSum(ConcaveTerm):
    """The sum of several concave terms; what ``+`` makes.

    Parameters
    ----------
    terms : list of ConcaveTerm

    Examples
    --------
    >>> from kernelweave.regularizers import GroupLassoTerm, LogTerm
    >>> len((LogTerm() + 2.0 * GroupLassoTerm()).terms)
    2
    """

    name = "sum"

    def __init__(self, terms: Any) -> None:
        self.terms = terms

    @property
    def homogeneous(self) -> bool:  # type: ignore[override]
        """Unless one of the terms grows faster than the norms."""
        return all(term.homogeneous for term in self.terms)

    def value(self, x: FloatArray) -> float:
        return float(sum(term.value(x) for term in self.terms))

    def slopes(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.sum([term.slopes(x) for term in self.terms], axis=0))

    def select(self, kernels: IntArray, n_kernels: int) -> Self:
        return type(self)([term.select(kernels, n_kernels) for term in self.terms])

    def __mul__(self, factor: float) -> ConcaveTerm:
        return TermSum([check_factor(factor) * term for term in self.terms])

    __rmul__ = __mul__


def _terms(term: ConcaveTerm) -> list[ConcaveTerm]:
    return list(term.terms) if isinstance(term, TermSum) else [term]


def check_factor(factor: float) -> float:
    """A positive factor: a term times a negative one would not be concave."""
    if not (isinstance(factor, Real) and 0 < factor < np.inf):
        raise ValueError(f"a term can be scaled by a positive number, not by {factor!r}.")
    return float(factor)


def inverse_power(x: FloatArray, power: float) -> FloatArray:
    """x^-power, +inf at 0."""
    positive = x > 0
    return np.where(positive, np.where(positive, x, 1.0) ** -power, np.inf)
