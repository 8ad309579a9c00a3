"""Penalties on the parameters of a kernel, and constraints: where they may lie."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.base import BaseEstimator

from ..._registry import Registry
from ..._typing import FloatArray
from ...kernels.base import positive
from ..problem import Problem


class Penalty(BaseEstimator):
    """A penalty r(d) on the parameters of a kernel, differentiable on d >= 0; penalties add with ``+``.

    A subclass writes ``value(d)`` and ``gradient(d)``. One that depends on the Gram matrix K_d
    writes ``matrix_value(K, problem)`` and ``matrix_slope(K, problem)`` instead, S with
    dr/dd_k = tr(S dK/dd_k). Varma & Babu (2009), Eq. 1.
    """

    name: str = ""

    #: whether the Gram matrix is part of it
    uses_matrix = False

    @abstractmethod
    def value(self, d: FloatArray) -> float:
        """r(d), apart from what depends on the Gram matrix."""

    @abstractmethod
    def gradient(self, d: FloatArray) -> FloatArray:
        """dr/dd_k, apart from what depends on the Gram matrix."""

    def matrix_value(self, K: FloatArray, problem: Problem) -> float:
        """The part of r that depends on the Gram matrix."""
        return 0.0

    def matrix_slope(self, K: FloatArray, problem: Problem) -> FloatArray:
        """Its symmetric derivative S in K."""
        return np.zeros_like(K)

    def check(self, n_parameters: int) -> None:
        """Refuse options that make no penalty on so many parameters; nothing by default."""

    def __add__(self, other: Any) -> Penalty:
        if not isinstance(other, Penalty):
            return NotImplemented
        return PenaltySum([*_terms(self), *_terms(other)])


def _terms(penalty: Penalty) -> list[Penalty]:
    """The terms of a sum, or the penalty alone."""
    return list(getattr(penalty, "penalties", [penalty]))


def strengths(value: Any, n_parameters: int, owner: str, argument: str = "strength") -> FloatArray:
    """`value` as non-negative numbers, one per parameter or one for all."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in ((), (n_parameters,)):
        raise ValueError(
            f"{owner}: {argument} has shape {array.shape}: give one number, or one for each of the "
            f"{n_parameters} parameters."
        )
    if not ((array >= 0) & np.isfinite(array)).all():
        raise ValueError(f"{owner}: {argument}={value!r} must be non-negative and finite.")
    return array


class L1(Penalty):
    """r(d) = sum_k strength_k d_k, on d >= 0: many parameters become exactly zero.

    With `WeightedSum` it is ordinary multiple kernel learning with the price h(d) = 2 strength' d,
    ``LpNorm(p=1, form="penalty", costs=2 * strength)``. Varma & Babu (2009), section 3.

    Parameters
    ----------
    strength : float or array-like of shape (n_parameters,), default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> L1(2.0).value(np.array([1.0, 0.5]))
    3.0
    """

    name = "l1"

    def __init__(self, strength: Any = 1.0) -> None:
        self.strength = strength

    def check(self, n_parameters: int) -> None:
        strengths(self.strength, n_parameters, "L1")

    def value(self, d: FloatArray) -> float:
        return float((np.asarray(self.strength) * d).sum())

    def gradient(self, d: FloatArray) -> FloatArray:
        return np.asarray(self.strength) * np.ones_like(d)


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


class PowerNorm(Penalty):
    """r(d) = strength sum_k d_k^p / p,  p > 1: between sparse (p near 1) and even parameters.

    Parameters
    ----------
    p : float, default=2.0
        Above 1; use `L1` for p = 1.
    strength : float or array-like of shape (n_parameters,), default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> PowerNorm(p=3.0).gradient(np.array([1.0, 2.0]))
    array([1., 4.])
    """

    name = "power"

    def __init__(self, p: float = 2.0, strength: float = 1.0) -> None:
        self.p = p
        self.strength = strength

    def check(self, n_parameters: int) -> None:
        if not (isinstance(self.p, Real) and 1 < self.p < np.inf):
            raise ValueError(f"PowerNorm: p={self.p!r} must be finite and above 1; use L1 for p = 1.")
        strengths(self.strength, n_parameters, "PowerNorm")

    def value(self, d: FloatArray) -> float:
        return float((np.asarray(self.strength) * np.maximum(d, 0.0) ** self.p).sum() / self.p)

    def gradient(self, d: FloatArray) -> FloatArray:
        return np.asarray(self.strength) * np.maximum(d, 0.0) ** (self.p - 1.0)


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


class FunctionPenalty(Penalty):
    """r(d) = function(d), with its gradient.

    Parameters
    ----------
    function : callable
        ``function(d)`` returns a number.
    slope : callable
        ``slope(d)`` returns the gradient, of the shape of d. `check_gradient=True` on the
        estimator compares the two.

    Examples
    --------
    >>> import numpy as np
    >>> FunctionPenalty(lambda d: (d**4).sum(), lambda d: 4 * d**3).value(np.array([1.0, 2.0]))
    17.0
    """

    name = "function"

    def __init__(
        self, function: Callable[[FloatArray], float], slope: Callable[[FloatArray], FloatArray]
    ) -> None:
        self.function = function
        self.slope = slope

    def check(self, n_parameters: int) -> None:
        for argument in ("function", "slope"):
            if not callable(getattr(self, argument)):
                raise ValueError(f"FunctionPenalty: {argument} is not callable: pass a function of d.")

    def value(self, d: FloatArray) -> float:
        return float(self.function(d))

    def gradient(self, d: FloatArray) -> FloatArray:
        gradient = np.asarray(self.slope(d), dtype=np.float64)
        if gradient.shape != d.shape:
            raise ValueError(
                f"FunctionPenalty: slope returned shape {gradient.shape}, expected {d.shape}, one entry per "
                "parameter."
            )
        return gradient


class PenaltySum(Penalty):
    """r(d) = sum_t r_t(d); ``L1(0.5) + L2(0.5)`` makes one.

    Parameters
    ----------
    penalties : list of Penalty

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.solvers.kernel_gradient import L1, L2
    >>> (L1() + L2()).value(np.array([2.0]))
    6.0
    """

    name = "sum"

    def __init__(self, penalties: Sequence[Penalty]) -> None:
        self.penalties = penalties

    @property
    def uses_matrix(self) -> bool:  # type: ignore[override]
        return any(penalty.uses_matrix for penalty in self.penalties)

    def check(self, n_parameters: int) -> None:
        if len(self.penalties) == 0:
            raise ValueError("PenaltySum: penalties is empty, give at least one.")
        for penalty in self.penalties:
            penalty.check(n_parameters)

    def value(self, d: FloatArray) -> float:
        return sum(penalty.value(d) for penalty in self.penalties)

    def gradient(self, d: FloatArray) -> FloatArray:
        return sum((penalty.gradient(d) for penalty in self.penalties), 0.0 * d)

    def matrix_value(self, K: FloatArray, problem: Problem) -> float:
        return sum(part.matrix_value(K, problem) for part in self.penalties if part.uses_matrix)

    def matrix_slope(self, K: FloatArray, problem: Problem) -> FloatArray:
        return sum((p.matrix_slope(K, problem) for p in self.penalties if p.uses_matrix), 0.0 * K)


PENALTIES = Registry("penalty", (L1, L2, PowerNorm, LogDet))


class Box(BaseEstimator):
    """lower <= d <= upper, one bound a parameter or one for all.

    Parameters
    ----------
    lower : float or array-like, default=0.0
        Non-negative.
    upper : float or array-like, optional
        Unbounded by default.

    Examples
    --------
    >>> import numpy as np
    >>> Box(upper=[1.0, 2.0]).project(np.array([3.0, -1.0]))
    array([1., 0.])
    """

    #: every parameter is projected on its own
    separable = True

    def __init__(self, lower: Any = 0.0, upper: Any = None) -> None:
        self.lower = lower
        self.upper = upper

    def project(self, d: FloatArray) -> FloatArray:
        """The nearest point of the set."""
        lower, upper = self.bounds(len(d))
        return np.clip(d, lower, upper)

    def bounds(self, n_parameters: int) -> tuple[FloatArray, FloatArray]:
        """Both bounds, one per parameter."""
        upper = np.inf if self.upper is None else self.upper
        try:
            low, high = (
                np.broadcast_to(np.asarray(side, dtype=np.float64), n_parameters)
                for side in (self.lower, upper)
            )
        except ValueError:
            raise ValueError(
                f"Box: bounds must be numbers, or one for each of the {n_parameters} parameters."
            ) from None
        if not ((low >= 0) & (low <= high)).all():
            raise ValueError("Box: bounds must satisfy 0 <= lower <= upper.")
        return low, high


class Projection(BaseEstimator):
    """The closed convex set onto which a function projects; it must lie in d >= 0.

    Parameters
    ----------
    function : callable
        ``function(d)`` returns the nearest point of the set.

    Examples
    --------
    >>> import numpy as np
    >>> ball = Projection(lambda d: np.maximum(d, 0) / max(1, np.linalg.norm(np.maximum(d, 0))))
    >>> ball.project(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """

    separable = False

    def __init__(self, function: Callable[[FloatArray], FloatArray]) -> None:
        self.function = function

    def project(self, d: FloatArray) -> FloatArray:
        """The nearest point of the set."""
        projected = np.asarray(self.function(d.copy()), dtype=np.float64)
        if projected.shape != d.shape or not (projected >= 0).all():
            raise ValueError(
                "Projection: function must return an array of the shape of d with no negative entries."
            )
        return projected


def resolve_constraint(constraint: Any) -> Box | Projection:
    """None is d >= 0, a function is a projection.

    Examples
    --------
    >>> resolve_constraint(None)
    Box()
    """
    if constraint is None:
        return Box()
    if hasattr(constraint, "project"):
        return constraint
    if callable(constraint):
        return Projection(constraint)
    raise ValueError(f"constraint={constraint!r}: expected None, a Box, or a projection function of d.")
