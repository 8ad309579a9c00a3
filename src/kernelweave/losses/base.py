"""What every loss is: value, gradient and conjugate, and what more it can do."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from sklearn.base import BaseEstimator

from .._typing import BoolArray, FloatArray

#: how far outside its domain a conjugate's argument may lie by rounding alone, as a share of its size
ROUNDING = 1e-9


class Loss(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A convex loss V(y, f), sample by sample, with its conjugate.

    The primal problem is  C sum_i V(y_i, f_i) + Omega,  its dual variables are signed,
    f = sum_m d_m K_m alpha + b,  and at the optimum  alpha_i = -C V'(y_i, f_i).

    Methods work elementwise on arrays of equal shape. Optional abilities, which solvers ask
    for by name:

    * ``hessian(y, f)``: second derivative in f, for Newton's method;
    * ``quadratic = True``: V is (y - f)^2 / 2, one linear system solves a single-kernel fit;
    * ``linear_dual(y)``: (linear, kink) such that -V*(y, -a) = linear * a - kink * |a| on the
      box, for decomposition solvers (SMO); such a loss is piecewise linear, and ``kinks(y)``
      lists the f at which its slope rises by 1 (inf for samples with fewer of them);
    * ``probability(f)``: P(y = +1 | f), for losses that are likelihoods;
    * ``agreement(y, f, sample_weight=None)``: how well predictions agree with targets as `fit` takes them,
      larger is better: what `score` of a regressor is in place of R^2, and what searches choose by;
    * ``multiclass()``: its generalisation from two classes to the values of all classes together.

    A loss with ``coupled = True`` takes the values of all outputs of a sample together: y, f and derivatives
    have shape (n, c), values and conjugates (n, 1). Its dual is linear where the alpha / C of a sample differ
    from those of its own class alone by a point of the simplex, and ``simplex_dual(y)`` gives its slopes.
    """

    name: str
    #: what it is for: "classification", "regression", "one_class", "ranking", "quantile", "survival",
    #: "ordinal", or what an estimator of your own asks for
    task: str

    #: whether it is a sum over samples; others are of the class `JointLoss`
    separable = True

    #: whether it takes the values of all outputs of a sample together
    coupled = False

    #: V(a y, a f) = a^degree V(y, f) for targets in another unit; a width of the loss is in that unit too
    degree: float = 2.0

    #: the intercept's optimality condition is sum_i alpha_i = alpha_sum
    alpha_sum: float = 0.0

    def check(self) -> None:
        """Refuse parameters that make no loss; nothing by default."""

    def targets(self, Y: FloatArray) -> FloatArray:
        """Columns of y as targets: an output each by default; shape (n, 1, k) where k of them make one."""
        return Y

    def size(self, y: FloatArray) -> FloatArray:
        """How large the targets are beside f, of the shape of y: what their rounding is a share of."""
        return np.abs(y)

    @abstractmethod
    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """V(y, f)."""

    @abstractmethod
    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """A subgradient of V in f."""

    @abstractmethod
    def conjugate(self, y: FloatArray, v: FloatArray) -> FloatArray:
        """V*(y, v) = sup_f v f - V(y, f); +inf outside its domain."""

    @abstractmethod
    def dual_box(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of a = alpha / C, the closure of {a : V*(y, -a) < inf}; may be infinite."""

    @abstractmethod
    def dual_curvature(self, y: FloatArray, a: FloatArray) -> FloatArray:
        """Second derivative of V*(y, -a) in a; +inf where a is held fast (bound or kink)."""


def restrict(values: FloatArray, outside: FloatArray, margin: float = ROUNDING) -> FloatArray:
    """`values` where `outside` (the distance to the domain) is rounding, +inf elsewhere."""
    return np.where(outside > margin, np.inf, values)


def inside_box(a: FloatArray, lower: FloatArray, upper: FloatArray) -> BoolArray:
    """Mask of the entries strictly between their bounds, up to rounding."""
    margin = negligible(a)
    return (a > lower + margin) & (a < upper - margin)


def negligible(a: FloatArray) -> float:
    """What counts as zero among the entries of a: 1e-10 of the largest."""
    return 1e-10 * float(np.abs(a).max(initial=0.0))
