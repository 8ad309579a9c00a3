"""T(d), the value of the single-kernel fit with the kernel k_d, and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._typing import BoolArray, FloatArray, IntArray
from ...kernels.parametric import ParametricKernel
from ..problem import Problem, best_intercept
from ..single import Machine, SingleSolver, choose_single
from .penalties import Penalty

#: relative gaps of the single-kernel fits: of the first fit, and the smallest that is asked for
FIRST_ACCURACY, FINEST_ACCURACY = 1e-4, 1e-12

#: most halvings of a start value that costs too much
HALVINGS = 200

#: relative variance below which a kernel is constant, and u below which zero is tried
CONSTANT, NEAR = 1e-8, 0.05


@dataclass
class KernelPoint:
    """An iterate: parameters, the single-kernel fit at them, T and its gradient.

    Attributes
    ----------
    u : ndarray of shape (n_parameters,), or longer
        d in units of its start values: d = scale u. Split parameters have a second part at the end, which is
        subtracted.
    d : ndarray of shape (n_parameters,)
        The parameters.
    objective : float
        T(d); +inf where the kernel is infinite or constant.
    size : float
        The sum of the absolute values of both parts of T, the fit and r: what T is compared with.
    machine : Machine
    intercept : ndarray of shape (c,)
    matrix : ndarray of shape (n, n) or None
        K_d, until the gradient is known.
    slope : ndarray of the shape of u
        dT/du; empty until it is asked for.
    residual : float
        See `Objective.residual`.
    n_machines : int
        Number of single-kernel fits until it was accepted.
    """

    u: FloatArray
    d: FloatArray
    objective: float
    size: float
    machine: Machine
    intercept: FloatArray
    matrix: FloatArray | None
    slope: FloatArray
    residual: float = np.nan
    n_machines: int = 0

    @property
    def alpha(self) -> FloatArray:
        """Dual variables, shape (n, c)."""
        return self.machine.alpha

    @property
    def fitted(self) -> FloatArray:
        """K_d alpha, shape (n, c)."""
        return self.machine.fitted


class Objective:
    """T(d) = min_{w,b} 1/2 w'w + sum_i C_i V(y_i, f_i) + unit r(d),  f = K_d alpha + b.

    By Danskin's theorem, with alpha of the single-kernel fit,

        dT/dd_k = unit dr/dd_k - 1/2 alpha' (dK_d/dd_k) alpha

    Varma & Babu (2009), Eqs. 3-8. It works in u = d / scale, so that parameters of features in different
    units are comparable. If the penalty of a parameter at its start value alone would cost more than the
    constant model (features in large or small units), the parameter starts at a cheaper value, which is
    nearer to the optimum, since that costs less than the constant model. Each fit starts from the last one,
    and is solved to a relative gap of `accuracy`.

    If a parameter may have either sign and r has a kink c |d_k| at its zero, it is split: d = scale (p - q),
    p and q >= 0, with c scale (p + q) in place of c |d_k|. That is smooth in p and q. Its stationary points
    are those of T: p q = 0 there, and where both are zero, the slopes c +- dT/dd_k of the two are not
    negative, so that |dT/dd_k| <= c for the rest of T.

    Parameters
    ----------
    problem : Problem
    kernel : ParametricKernel, fitted
    X : ndarray of shape (n, n_features)
    penalty : Penalty
    constraint : Box, Projection or the domain of the kernel
    free : ndarray of bool, optional
        Parameters to learn; the others stay zero.
    single : str or SingleSolver, default="auto"
    unit : float, default=1.0
        What r is multiplied with, the square of the unit of the targets.
    """

    def __init__(
        self,
        problem: Problem,
        kernel: ParametricKernel,
        X: FloatArray,
        penalty: Penalty,
        constraint: Any,
        free: BoolArray | None = None,
        single: str | SingleSolver = "auto",
        unit: float = 1.0,
    ) -> None:
        self.problem, self.kernel, self.X = problem, kernel, X
        self.penalty, self.constraint, self.unit = penalty.bound_to(kernel), constraint, unit
        self.n_parameters = len(kernel.initial_)
        self.penalty.check(self.n_parameters)
        self.free = np.ones(self.n_parameters, bool) if free is None else free
        share = self._affordable(kernel._sizes())
        self.start = share * kernel.initial_
        self.scale = _units(share * kernel._sizes(), constraint.separable)
        self.split, self.kinks = self._splits()
        self.single = choose_single(single, problem.loss)
        self.accuracy, self.n_machines = FIRST_ACCURACY, 0
        self.alpha: FloatArray | None = None

    def _splits(self) -> tuple[IntArray, FloatArray]:
        """Parameters of either sign at which the penalty has a kink, and its height c."""
        kinks = self.penalty.kinks(self.n_parameters)
        split = np.flatnonzero(self.free & (kinks > 0) & (self.constraint.bounds(self.n_parameters)[0] < 0))
        if len(split) and not self.constraint.separable:
            names = ", ".join(repr(self.kernel.names_[k]) for k in split[:3])
            raise ValueError(
                f"{type(self.penalty).__name__} is not differentiable where parameters of either sign are 0 "
                f"(such as {names}), and these lie in a set that is no box: give them strength 0, or use L2."
            )
        return split, self.unit * kinks[split]

    def d(self, u: FloatArray) -> FloatArray:
        """The parameters of u."""
        d: FloatArray = self.scale * u[: self.n_parameters]
        d[self.split] -= self.scale[self.split] * u[self.n_parameters :]
        return d

    def u(self, d: FloatArray) -> FloatArray:
        """The feasible u nearest to parameters d; one part of each split parameter is zero."""
        u = np.append(d / self.scale, np.maximum(-d / self.scale, 0.0)[self.split])
        u[self.split] = np.maximum(u[self.split], 0.0)
        return self.project(u)

    def project(self, u: FloatArray) -> FloatArray:
        """The nearest feasible u."""
        if self.constraint.separable:
            return np.clip(u, *self.bounds())
        result: FloatArray = (
            self.constraint.project(np.where(self.free, self.scale * u, 0.0)) / self.scale * self.free
        )
        return result

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Bounds of u, if the constraint is a box."""
        low, high = (
            np.where(self.free, side / self.scale, 0.0) for side in self.constraint.bounds(self.n_parameters)
        )
        second = [np.maximum(-side[self.split], 0.0) for side in (high, low)]
        for side in (low, high):
            side[self.split] = np.maximum(side[self.split], 0.0)
        return np.append(low, second[0]), np.append(high, second[1])

    def settled(self, point: KernelPoint) -> KernelPoint:
        """The same parameters, with one part of each split parameter zero: T is lower, or the same."""
        first, second = point.u[self.split], point.u[self.n_parameters :]
        both = np.minimum(first, second)
        if not both.any():
            return point
        u = point.u.copy()
        u[self.split], u[self.n_parameters :] = first - both, second - both
        saved = 2.0 * float(self.kinks @ (self.scale[self.split] * both))
        settled = replace(point, u=u, objective=point.objective - saved)
        settled.residual = self.residual(settled)
        return settled

    def evaluate(self, u: FloatArray) -> KernelPoint:
        """The single-kernel fit at u."""
        d = self.d(u)
        K = self.kernel(self.X, d=d)
        if not self._usable(K):
            nothing = Machine(np.empty((0, 0)), np.empty((0, 0)), 0)
            return KernelPoint(u, d, np.inf, np.inf, nothing, np.empty(0), None, np.empty(0))
        return self._train(u, d, K)

    def _train(self, u: FloatArray, d: FloatArray, K: FloatArray) -> KernelPoint:
        machine = self.single.solve(K, self.problem, self.accuracy, self.alpha)
        self.alpha, self.n_machines = machine.alpha, self.n_machines + 1
        intercept = best_intercept(self.problem, machine.fitted)
        energy = float(np.einsum("ic,ic->", machine.alpha, machine.fitted))
        value, price = (
            self.problem.primal_loss(machine.fitted, intercept) + 0.5 * energy,
            self.penalty.value(d),
        )
        if self.penalty.uses_matrix:
            price += self.penalty.matrix_value(K, self.problem)
        both = np.minimum(u[self.split], u[self.n_parameters :])
        price = float(self.unit * price) + 2.0 * float(self.kinks @ (self.scale[self.split] * both))
        size = abs(value - self.problem.floor) + abs(price)
        return KernelPoint(u, d, value + price, size, machine, intercept, K, np.empty(0))

    def _usable(self, K: FloatArray) -> bool:
        """Whether K is finite and, for losses with kinks, not constant.

        With a constant kernel, alpha is not unique for such losses, T has a kink, and the slope of one alpha
        may be useless: the descent comes near such a point but does not reach it.
        """
        total = float(K.sum(dtype=np.float64))
        if not np.isfinite(total) or not hasattr(self.problem.loss, "linear_dual"):
            return bool(np.isfinite(total))
        level = float(K.diagonal().mean(dtype=np.float64))
        return level - total / K.size > CONSTANT * level

    def limit(self, point: KernelPoint, tol: float) -> KernelPoint | None:
        """The constant kernel at d = 0, if the descent tends to it and it is a stationary point.

        The alpha of a nearby point is, in the limit, one of the optimal alphas at zero, so its slope is a
        subgradient of T there. If no entry descends, zero is stationary.
        """
        slope, zero = self.slope(point), np.zeros_like(point.u)
        if np.abs(point.u).max(initial=0.0) > NEAR or self.project(zero).any():
            return None
        falls = np.abs(self.project(-slope / (point.size or 1.0))).max(initial=0.0) > tol
        K = self.kernel(self.X, d=self.d(zero))
        if falls or self._usable(K):
            return None
        end = self._train(zero, self.d(zero), K)
        end.slope, end.matrix = slope, None
        return end if end.objective <= point.objective else None

    def slope(self, point: KernelPoint) -> FloatArray:
        """dT/du, computed once per point; then K is dropped."""
        if len(point.slope) == 0:
            d, K = self.d(point.u), point.matrix
            slope: FloatArray = self.unit * self.penalty.gradient(d)
            slope = slope - 0.5 * self.kernel.grad_quad(self.X, self._dual(point), d, K)
            if self.penalty.uses_matrix:
                assert K is not None
                inside = self.penalty.matrix_slope(K, self.problem)
                slope = slope + self.unit * self.kernel.grad_trace(self.X, inside, d, K)
            side = np.where(d[self.split] < 0.0, -1.0, 1.0)
            second = -slope[self.split] + self.kinks * (1.0 + side)
            slope[self.split] += self.kinks * (1.0 - side)
            slope = np.append(np.where(self.free, self.scale * slope, 0.0), self.scale[self.split] * second)
            point.slope, point.matrix = slope, None
        return point.slope

    def _dual(self, point: KernelPoint) -> FloatArray:
        """alpha of the dual optimum, not just any with the same K alpha: derivatives of K differ for them."""
        if self.problem.loss.separable:
            return point.alpha
        return self.problem.alpha_of(point.fitted + point.intercept)

    def residual(self, point: KernelPoint) -> float:
        """The root of the share of T that a projected step would save, to first order.

        With g = T'(u) / |T| and the step s = u - P(u - g), this is the largest sqrt(g_k s_k) of a parameter,
        or sqrt(g's) where the projection ties the parameters together. It is |g_k| away from the bounds, and
        zero where no feasible direction descends. A small u_k does not hide a slope: near a bound the
        residual is the geometric mean of u_k and the slope.
        """
        step = self.slope(point) / (point.size or 1.0)
        saved = step * (point.u - self.project(point.u - step))
        return float(np.sqrt(max(saved.max() if self.constraint.separable else saved.sum(), 0.0)))

    def sharpen(self, residual: float) -> None:
        """Accuracy of fits: finer than the fall of T in a step, which is about residual^2 |T|."""
        self.accuracy = min(self.accuracy, max(0.1 * residual**2, FINEST_ACCURACY))

    def _affordable(self, sizes: FloatArray) -> FloatArray:
        """Shares of the start values: halves where d_k dr/dd_k alone exceeds the value of the constant model.

        If this would begin at a constant kernel, the start values stay, and the descent approaches from afar.
        """
        d, most = sizes.copy(), self.problem.ceiling - self.problem.floor
        for _ in range(HALVINGS if most > 0 else 0):
            costly = self.unit * self.penalty.gradient(d) * d > most
            if not costly.any():
                break
            d[costly] *= 0.5
        share = np.divide(d, sizes, out=np.ones_like(d), where=sizes > 0)
        moved = (share < 1.0).any() and self._usable(self.kernel(self.X, d=share * self.kernel.initial_))
        return share if moved else np.ones_like(share)


def _units(sizes: FloatArray, separable: bool) -> FloatArray:
    """The size of every parameter; one for all where the projection ties them together."""
    known = sizes > 0
    typical = float(np.exp(np.log(sizes[known]).mean())) if known.any() else 1.0
    return np.where(known & separable, sizes, typical)


#: samples that are checked, and the relative error that counts as a mistake
ROWS, TOLERANCE = 40, 1e-4


def check_gradient(
    kernel: ParametricKernel, X: FloatArray, d: FloatArray | None = None, penalty: Penalty | None = None
) -> None:
    """Compare the gradients with finite differences; raise ValueError naming the wrong components.

    Parameters
    ----------
    kernel : ParametricKernel
    X : array-like of shape (n, n_features)
        The first 40 rows are used.
    d : ndarray of shape (n_parameters,), optional
        Where to look; by default the start values.
    penalty : Penalty, optional
        Checked as well.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import ProductRBF
    >>> check_gradient(ProductRBF(), np.arange(6.0).reshape(3, 2))
    """
    kernel = kernel._fitted_on(X)
    rows = np.asarray(X[:ROWS], dtype=np.float64)
    d = kernel.initial(X) if d is None else np.asarray(d, dtype=np.float64)
    d = np.where(d != 0, d, max(float(np.abs(d).max(initial=0.0)), 1e-3))
    alpha = np.random.RandomState(0).standard_normal((len(rows), 1))

    def quadratic(at: FloatArray) -> float:
        return float((alpha.T @ kernel(rows, d=at) @ alpha)[0, 0])

    size = float(np.abs(quadratic(d))) / np.abs(d)
    what = f"{type(kernel).__name__}.grad_quad"
    _compare(kernel.grad_quad(rows, alpha, d), quadratic, d, size, kernel, what)
    if penalty is not None:
        penalty = penalty.bound_to(kernel)
        size = abs(penalty.value(d)) / np.abs(d)
        _compare(penalty.gradient(d), penalty.value, d, size, kernel, f"{type(penalty).__name__}.gradient")


def _compare(
    gradient: FloatArray,
    value: Callable[[FloatArray], float],
    d: FloatArray,
    size: FloatArray,
    kernel: ParametricKernel,
    what: str,
) -> None:
    """Each slope against its difference quotient; the error is relative to it, or to value / d."""
    expected = _differences(value, d)
    error = np.abs(gradient - expected) / np.maximum(np.maximum(np.abs(expected), 1e-3 * size), 1e-300)
    wrong = np.flatnonzero(~(error <= TOLERANCE))
    if len(wrong):
        told = ", ".join(
            f"{k} ({kernel.names_[k]!r}): {gradient[k]:.6g}, finite differences {expected[k]:.6g}"
            for k in wrong[:5]
        )
        raise ValueError(f"{what} is wrong in {len(wrong)} of {len(d)} components, such as {told}.")


def _differences(value: Callable[[FloatArray], float], d: FloatArray) -> FloatArray:
    """Central differences of fourth order."""
    slopes = np.empty_like(d)
    for k, step in enumerate(2e-3 * d):
        e = np.zeros_like(d)
        e[k] = step
        near, far = value(d + e) - value(d - e), value(d + 2 * e) - value(d - 2 * e)
        slopes[k] = (8.0 * near - far) / (12.0 * step)
    return slopes
