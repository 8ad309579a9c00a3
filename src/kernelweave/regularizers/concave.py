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

    Parameters
    ----------
    eta : float or array-like of shape (M,), default=1.0
        Strength, one for all kernels or one each.
    """

    convex = False
    sparse = True
    homogeneous = True
    per_kernel = ("eta",)
    one_form = "it is not convex, and has no price of weights that a constraint could bound"

    def __init__(self, eta: Any = 1.0) -> None:
        self.eta = eta

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


class GroupLassoTerm(ConcaveTerm):
    """g(x) = sum_m eta_m sqrt(x_m),   B_m = eta_m / sqrt(x_m),   x_m = n_m^2.

    Convex in the norms: alone it is the block 1-norm, ``ElasticNet(l1_ratio=1)``, which is
    certified; here for sums with concave terms. Subrahmanya & Shin (2010), Table 1.

    Parameters
    ----------
    eta : float or array-like of shape (M,), default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> GroupLassoTerm(eta=2.0).penalty(np.array([3.0, 1.0]))
    8.0
    """

    name = "group_lasso"

    def value(self, x: FloatArray) -> float:
        return float((self._strength() * np.sqrt(x)).sum())

    def slopes(self, x: FloatArray) -> FloatArray:
        return np.asarray(self._strength() * inverse_power(x, 0.5))


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


class MKLTerm(ConcaveTerm):
    """g(x) = 1/2 (sum_m eta_m sqrt(x_m))^2,   B_m = eta_m (sum_k eta_k sqrt(x_k)) / sqrt(x_m).

    Convex in the norms: alone, with eta = 1, it is ``LpNorm(p=1)``, which is certified; here for
    sums with concave terms. Subrahmanya & Shin (2010), Table 1.

    Parameters
    ----------
    eta : float or array-like of shape (M,), default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> MKLTerm().weights(np.array([3.0, 1.0]))
    array([0.75, 0.25])
    """

    name = "mkl"
    homogeneous = False

    def value(self, x: FloatArray) -> float:
        return 0.5 * float((self._strength() * np.sqrt(x)).sum()) ** 2

    def slopes(self, x: FloatArray) -> FloatArray:
        eta, total = self._strength(), float((self._strength() * np.sqrt(x)).sum())
        return np.asarray(eta * (total if total > 0.0 else 1.0) * inverse_power(x, 0.5))

    def __mul__(self, factor: float) -> ConcaveTerm:
        # g is quadratic in eta
        return super().__mul__(check_factor(factor) ** 0.5)

    __rmul__ = __mul__


class SMKL(LogTerm):
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

    def value(self, x: FloatArray) -> float:
        return super().value(x) + GroupLassoTerm(self.eta).value(x)

    def slopes(self, x: FloatArray) -> FloatArray:
        return super().slopes(x) + GroupLassoTerm(self.eta).slopes(x)
