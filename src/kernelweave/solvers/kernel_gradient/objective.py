"""T(d), the value of the machine trained with the kernel k_d, and its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._typing import BoolArray, FloatArray
from ...kernels.parametric import ParametricKernel
from ..problem import Problem, best_intercept
from ..single import Machine, SingleSolver, choose_single
from .constraints import Box, Projection
from .penalties import Penalty

#: relative gaps of the inner machines: the first, and the smallest asked for
FIRST_ACCURACY, FINEST_ACCURACY = 1e-4, 1e-12

#: relative variance below which a kernel is constant, and u from which zero is looked at
CONSTANT, NEAR = 1e-8, 0.05


@dataclass
class Point:
    """An iterate: parameters, the machine trained at them, T and its gradient.

    Attributes
    ----------
    u : ndarray of shape (n_parameters,)
        d in units of its start values: d = scale u.
    value : float
        T(d); +inf where the kernel is infinite or constant.
    machine : Machine
    intercept : ndarray of shape (c,)
    matrix : ndarray of shape (n, n) or None
        K_d, until the gradient is known.
    slope : ndarray of shape (n_parameters,)
        dT/du; empty until it is asked for.
    """

    u: FloatArray
    value: float
    machine: Machine
    intercept: FloatArray
    matrix: FloatArray | None
    slope: FloatArray


class Objective:
    """T(d) = min_{w,b} 1/2 w'w + sum_i C_i V(y_i, f_i) + r(d),  f = K_d alpha + b.

    By Danskin's theorem, with alpha of the inner machine,

        dT/dd_k = dr/dd_k - 1/2 alpha' (dK_d/dd_k) alpha

    Varma & Babu (2009), Eqs. 3-8. Works in u = d / scale, so that parameters of features in
    different units are alike. Machines start from the last one, and are solved to a relative
    gap of `accuracy`.

    Parameters
    ----------
    problem : Problem
    kernel : ParametricKernel, fitted
    X : ndarray of shape (n, n_features)
    penalty : Penalty
    constraint : Box or Projection
    free : ndarray of bool, optional
        Parameters to learn; the others stay zero.
    single : str or SingleSolver, default="auto"
    """

    def __init__(
        self,
        problem: Problem,
        kernel: ParametricKernel,
        X: FloatArray,
        penalty: Penalty,
        constraint: Box | Projection,
        free: BoolArray | None = None,
        single: str | SingleSolver = "auto",
    ) -> None:
        self.problem, self.kernel, self.X = problem, kernel, X
        self.penalty, self.constraint = penalty, constraint
        self.start = kernel.initial(X)
        self.free = np.ones(len(self.start), bool) if free is None else free
        self.scale = _units(self.start, constraint.separable)
        self.single = choose_single(single, problem.loss)
        self.accuracy, self.n_machines = FIRST_ACCURACY, 0
        self.alpha: FloatArray | None = None
        penalty.check(len(self.start))

    def d(self, u: FloatArray) -> FloatArray:
        """The parameters of u."""
        return self.scale * u

    def project(self, u: FloatArray) -> FloatArray:
        """The nearest feasible u."""
        return self.constraint.project(np.where(self.free, self.scale * u, 0.0)) / self.scale * self.free

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Bounds of u, of a box."""
        assert isinstance(self.constraint, Box)
        lower, upper = self.constraint.bounds(len(self.scale))
        return lower / self.scale * self.free, np.where(self.free, upper / self.scale, 0.0)

    def evaluate(self, u: FloatArray) -> Point:
        """Train the machine at u."""
        d = self.d(u)
        K = self.kernel(self.X, d=d)
        if not self._usable(K):
            nothing = Machine(np.empty((0, 0)), np.empty((0, 0)), 0)
            return Point(u, np.inf, nothing, np.empty(0), None, np.empty(0))
        return self._train(u, d, K)

    def _train(self, u: FloatArray, d: FloatArray, K: FloatArray) -> Point:
        machine = self.single.solve(K, self.problem, self.accuracy, self.alpha)
        self.alpha, self.n_machines = machine.alpha, self.n_machines + 1
        intercept = best_intercept(self.problem, machine.fitted)
        energy = float(np.einsum("ic,ic->", machine.alpha, machine.fitted))
        value = self.problem.primal_loss(machine.fitted, intercept) + 0.5 * energy + self.penalty.value(d)
        if self.penalty.uses_matrix:
            value += self.penalty.matrix_value(K, self.problem)
        return Point(u, float(value), machine, intercept, K, np.empty(0))

    def _usable(self, K: FloatArray) -> bool:
        """Whether K is finite and, for losses with kinks, not constant.

        With a constant kernel alpha is not unique for such losses, T has a kink, and the slope of
        one alpha may point nowhere: the descent comes near, but not there.
        """
        total = float(K.sum(dtype=np.float64))
        if not np.isfinite(total) or not hasattr(self.problem.loss, "linear_dual"):
            return bool(np.isfinite(total))
        level = float(K.diagonal().mean(dtype=np.float64))
        return level - total / K.size > CONSTANT * level

    def limit(self, point: Point, tol: float) -> Point | None:
        """The constant kernel at d = 0, if the descent tends to it and it is stationary.

        alpha of a point nearby is (in the limit) one of those optimal at zero, so its slope is a
        subgradient of T there; without a descending entry, zero is stationary.
        """
        slope, zero = self.slope(point), np.zeros_like(point.u)
        falls = slope.min(initial=0.0) < -tol * abs(point.value)
        if falls or point.u.max(initial=0.0) > NEAR or self.project(zero).any():
            return None
        K = self.kernel(self.X, d=zero)
        if self._usable(K):
            return None
        end = self._train(zero, zero, K)
        end.slope, end.matrix = slope, None
        return end if end.value <= point.value else None

    def slope(self, point: Point) -> FloatArray:
        """dT/du, computed once a point; K is let go then."""
        if len(point.slope) == 0:
            d, K = self.d(point.u), point.matrix
            slope = self.penalty.gradient(d) - 0.5 * self.kernel.grad_quad(self.X, point.machine.alpha, d, K)
            if self.penalty.uses_matrix:
                assert K is not None
                inside = self.penalty.matrix_slope(K, self.problem)
                slope = slope + self.kernel.grad_trace(self.X, inside, d, K)
            point.slope, point.matrix = self.scale * slope * self.free, None
        return point.slope

    def residual(self, point: Point) -> float:
        """Largest entry of u - P(u - T'(u) / |T|): zero where no feasible direction descends."""
        step = self.slope(point) / max(abs(point.value), 1e-12)
        return float(np.abs(point.u - self.project(point.u - step)).max(initial=0.0))


def _units(start: FloatArray, separable: bool) -> FloatArray:
    """The size of every parameter; one for all where the projection ties them together."""
    known = start > 0
    typical = float(np.exp(np.log(start[known]).mean())) if known.any() else 1.0
    return np.where(known & separable, start, typical)
