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


class Penalty(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A penalty r(d) on the parameters of a kernel, differentiable except at `kinks`; ``+`` adds penalties.

    A subclass writes ``value(d)`` and ``gradient(d)``. One that depends on the Gram matrix K_d writes
    ``matrix_value(K, problem)`` and ``matrix_slope(K, problem)`` instead, S with dr/dd_k = tr(S dK/dd_k). One
    that is not differentiable at d_k = 0 writes ``kinks(n)``, and its gradient there is the derivative from
    above. Varma & Babu (2009), Eq. 1.
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

    def kinks(self, n_parameters: int) -> FloatArray:
        """c >= 0 such that r(d) - sum_k c_k |d_k| is differentiable; zero by default."""
        return np.zeros(n_parameters)

    def matrix_value(self, K: FloatArray, problem: Problem) -> float:
        """The part of r that depends on the Gram matrix."""
        return 0.0

    def matrix_slope(self, K: FloatArray, problem: Problem) -> FloatArray:
        """Its symmetric derivative S in K."""
        return np.zeros_like(K)

    def check(self, n_parameters: int) -> None:
        """Refuse options that do not fit this number of parameters; does nothing by default."""

    def bound_to(self, kernel: Any) -> Penalty:
        """The penalty of the parameters of a fitted kernel; itself by default."""
        return self

    def __add__(self, other: Any) -> Penalty:
        if not isinstance(other, Penalty):
            return NotImplemented
        return PenaltySum([*_terms(self), *_terms(other)])


def _terms(penalty: Penalty) -> list[Penalty]:
    """The terms of a sum, or the penalty alone."""
    return list(getattr(penalty, "penalties", [penalty]))


def strengths(
    value: Any, n_parameters: int, owner: str, argument: str = "strength", signed: bool = False
) -> FloatArray:
    """`value` as numbers, one per parameter or one for all; not negative unless `signed`."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in ((), (n_parameters,)):
        raise ValueError(
            f"{owner}: {argument} has shape {array.shape}: give one number, or one for each of the "
            f"{n_parameters} parameters."
        )
    if not (((array >= 0) | signed) & np.isfinite(array)).all():
        raise ValueError(
            f"{owner}: {argument}={value!r} must be {'' if signed else 'non-negative and '}finite."
        )
    return array


class L1(Penalty):
    """r(d) = sum_k strength_k |d_k|: many parameters become exactly zero.

    Parameters of either sign are split into d = p - q, p and q >= 0, with the penalty sum_k strength_k
    (p_k + q_k), which has no kink: zero is stationary where the slope of the rest is within +-strength_k.
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
        return float((np.asarray(self.strength) * np.abs(d)).sum())

    def gradient(self, d: FloatArray) -> FloatArray:
        return np.asarray(self.strength) * np.where(d < 0.0, -1.0, 1.0)

    def kinks(self, n_parameters: int) -> FloatArray:
        return np.broadcast_to(np.asarray(self.strength, dtype=np.float64), n_parameters)


class L2(Penalty):
    """r(d) = strength (d - mean)' covariance^-1 (d - mean).

    For kernels with few parameters that are all needed, or with a prior from a similar task. Varma &
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
        strengths(self.mean, n_parameters, "L2", "mean", signed=True)
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
        off: FloatArray = d - np.asarray(self.mean)
        if self.covariance is None:
            return off
        covariance = np.asarray(self.covariance, dtype=np.float64)
        return off / covariance if covariance.ndim == 1 else np.linalg.solve(covariance, off)


class Prior(Penalty):
    """r(d) = strength sum_k ((d_k - start_k) / size_k)^2, with start values and sizes from the kernel.

    This is `L2` with the start values as mean and the sizes as standard deviations: the learned kernel stays
    near one of usual widths. For objectives that only a constant kernel minimises, such as in novelty
    detection.

    Parameters
    ----------
    strength : float, default=0.2

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import ProductRBF
    >>> kernel = ProductRBF().fit(np.array([[1.0], [-1.0]]))  # starts at 1
    >>> Prior(0.5).bound_to(kernel).value(np.array([3.0]))
    2.0
    """

    name = "prior"

    def __init__(self, strength: float = 0.2) -> None:
        self.strength = strength

    def check(self, n_parameters: int) -> None:
        strengths(self.strength, 0, "Prior")

    def bound_to(self, kernel: Any) -> L2:
        sizes = kernel._sizes()
        return L2(self.strength, mean=kernel.initial_, covariance=np.where(sizes > 0, sizes, 1.0) ** 2)

    def value(self, d: FloatArray) -> float:
        raise ValueError("Prior: ask bound_to(kernel), the start values are those of a fitted kernel.")

    def gradient(self, d: FloatArray) -> FloatArray:
        return np.full_like(d, self.value(d))


class PowerNorm(Penalty):
    """r(d) = strength sum_k |d_k|^p / p,  p > 1: between sparse (p near 1) and even parameters.

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
        return float((np.asarray(self.strength) * np.abs(d) ** self.p).sum() / self.p)

    def gradient(self, d: FloatArray) -> FloatArray:
        return np.asarray(self.strength) * np.sign(d) * np.abs(d) ** (self.p - 1.0)


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
        result: FloatArray = 0.5 * self.strength * inverse
        return result

    def _factor(self, K: FloatArray, problem: Problem) -> tuple[FloatArray, bool]:
        noise = 1.0 / problem.C[:, 0] if self.noise is None else self.noise
        try:
            result: tuple[FloatArray, bool] = cho_factor(
                K + np.diag(noise * np.ones(len(K))), lower=True, check_finite=False
            )
            return result
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

    def bound_to(self, kernel: Any) -> PenaltySum:
        return PenaltySum([penalty.bound_to(kernel) for penalty in self.penalties])

    def value(self, d: FloatArray) -> float:
        return sum(penalty.value(d) for penalty in self.penalties)

    def gradient(self, d: FloatArray) -> FloatArray:
        return sum((penalty.gradient(d) for penalty in self.penalties), 0.0 * d)

    def kinks(self, n_parameters: int) -> FloatArray:
        return sum((penalty.kinks(n_parameters) for penalty in self.penalties), np.zeros(n_parameters))

    def matrix_value(self, K: FloatArray, problem: Problem) -> float:
        return sum(part.matrix_value(K, problem) for part in self.penalties if part.uses_matrix)

    def matrix_slope(self, K: FloatArray, problem: Problem) -> FloatArray:
        return sum((p.matrix_slope(K, problem) for p in self.penalties if p.uses_matrix), 0.0 * K)


PENALTIES = Registry("penalty", (L1, L2, Prior, PowerNorm, LogDet))


class Projection(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The closed convex set onto which a function projects; it must lie in the domain of the kernel.

    Parameters
    ----------
    function : callable
        ``function(d)`` returns the nearest point of the set.
    lower : float or array-like, default=0.0
        Lower bounds that hold in the set; below 0 only where the kernel allows either sign.

    Examples
    --------
    >>> import numpy as np
    >>> ball = Projection(lambda d: np.maximum(d, 0) / max(1, np.linalg.norm(np.maximum(d, 0))))
    >>> ball.project(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """

    separable = False

    def __init__(self, function: Callable[[FloatArray], FloatArray], lower: Any = 0.0) -> None:
        self.function = function
        self.lower = lower

    def project(self, d: FloatArray) -> FloatArray:
        """The nearest point of the set."""
        projected = np.asarray(self.function(d.copy()), dtype=np.float64)
        if projected.shape != d.shape or not (projected >= self.lower).all():
            raise ValueError(
                "Projection: function must return an array of the shape of d with no negative entries (or, "
                "where the kernel allows either sign, none below lower)."
            )
        return projected

    def bounds(self, n_parameters: int) -> tuple[FloatArray, FloatArray]:
        """Bounds that hold in the set."""
        lower = np.broadcast_to(np.asarray(self.lower, dtype=np.float64), n_parameters)
        return lower, np.full(n_parameters, np.inf)


def resolve_constraint(constraint: Any, kernel: Any) -> Any:
    """The constraint: None is the domain of the fitted kernel; sets outside the domain are refused.

    Examples
    --------
    >>> from kernelweave.kernels import ProductRBF
    >>> resolve_constraint(None, ProductRBF().fit([[0.0], [1.0]]))
    Box()
    """
    domain, n = kernel.domain(), len(kernel.initial_)
    if constraint is None:
        return domain
    if not hasattr(constraint, "project"):
        if not callable(constraint):
            raise ValueError(
                f"constraint={constraint!r}: expected None, a Box, or a projection function of d."
            )
        constraint = Projection(constraint, domain.bounds(n)[0])
    name = type(kernel).__name__
    if constraint.separable and not domain.separable:
        raise ValueError(
            f"constraint={constraint!r}: the parameters of {name} lie in a set that is no box; pass a "
            "function that projects onto your set and that one."
        )
    if (constraint.bounds(n)[0] < domain.bounds(n)[0]).any():
        raise ValueError(
            f"constraint={constraint!r} lets parameters of {name} be negative, where it is no kernel: its "
            "bounds must satisfy 0 <= lower <= upper."
        )
    return constraint
