"""Losses that couple samples: risk sets, pairs, the worst of a group."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np

from .._typing import FloatArray
from .base import Loss

#: a linear map, such as that of a Hessian
Product = Callable[[FloatArray], FloatArray]

#: step of difference quotients, relative to the change of f that changes the gradient by as much as it is
STEP = 1e-5

#: the least of that change, relative to f: a step of 1e-9 of f leaves the quotient seven digits
SEEN = 1e-4


class JointLoss(Loss):
    """A convex loss L(y, f) of all samples together, which is no sum over them.

    The primal problem is  C L(y, f) + Omega.  No conjugate is asked for: alpha = -C L'(f) is the dual
    point that belongs to the predictions f, and there Fenchel's inequality is an equality. A subclass
    writes `value`, `gradient` and `curvature`, sets `name`, `task` (any word that its estimator asks for) and
    where it applies `shift_invariant`, and gives its infimum by `least` where that is not 0. Its methods take

    * ``y``, the targets: (n,), or (n, k) where a sample has k numbers (`Problem.y` has shape (n, 1, k));
    * ``f``, the predictions: (n,);
    * ``weight``, case weights > 0: (n,); a sample of weight 2 counts as two equal samples.

    Examples
    --------
    The squared deviation from the mean prediction, (1/2) sum_i w_i (f_i - mean(f) - y_i)^2:

    >>> class Centred(JointLoss):
    ...     name, task, shift_invariant = "centred", "regression", True
    ...
    ...     def residual(self, y, f, weight):
    ...         away = f - y
    ...         return away - np.average(away, weights=weight)
    ...
    ...     def value(self, y, f, weight):
    ...         return 0.5 * float(weight @ self.residual(y, f, weight) ** 2)
    ...
    ...     def gradient(self, y, f, weight):
    ...         return weight * self.residual(y, f, weight)
    ...
    ...     def curvature(self, y, f, weight):
    ...         return weight
    >>> y, f, weight = np.array([0.0, 1.0]), np.array([5.0, 8.0]), np.ones(2)
    >>> Centred().value(y, f, weight), Centred().gradient(y, f, weight)
    (1.0, array([-1.,  1.]))
    """

    separable = False

    #: whether L(y, f + b) = L(y, f) for every number b; there is no intercept then
    shift_invariant = False

    @abstractmethod
    def value(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> float:  # type: ignore[override]
        """L(y, f), one number."""

    @abstractmethod
    def gradient(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> FloatArray:  # type: ignore[override]
        """The gradient of L in f, shape (n,)."""

    @abstractmethod
    def curvature(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> FloatArray:
        """h >= 0 of shape (n,) such that diag(h) - H is positive semidefinite, H the Hessian of L at f."""

    def hessian_product(self, y: FloatArray, f: FloatArray, weight: FloatArray, v: FloatArray) -> FloatArray:
        """H v, by differences of the gradient; a subclass that knows it saves two gradients."""
        largest = float(np.abs(v).max(initial=0.0))
        rate = float(self.curvature(y, f, weight).max(initial=0.0))
        if largest == 0.0 or rate == 0.0:
            return np.zeros_like(v)
        # at a minimum the gradient is rounding: a step has to be seen beside f
        change = float(np.abs(self.gradient(y, f, weight)).max()) / rate
        unit = max(change, SEEN * float(np.abs(f).max())) or 1.0
        t = STEP * unit / largest
        ahead, behind = (self.gradient(y, f + side * v, weight) for side in (t, -t))
        return np.asarray((ahead - behind) / (2.0 * t))

    def hessian_at(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> Product:
        """The map V -> H V at f, of every column of V, (n, k): what they share may be computed once."""
        return lambda V: np.column_stack([self.hessian_product(y, f, weight, v) for v in V.T])

    def least(self, y: FloatArray, weight: FloatArray) -> float:
        """A finite number that L is never below, best its infimum: the gap is relative to P - C least."""
        return 0.0
