"""Smooth losses by linear systems: one for the squared loss, Newton's method for the others."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter

import numpy as np
from scipy.linalg import cho_solve

from ..._linalg import positive_factor, product
from ..._typing import FloatArray
from ..certificate import relative
from ..problem import Problem, best_intercept
from .base import Machine, SingleSolver, Standstill, centred, uncentred
from .primal_newton import step_length

#: relative gap of a descent that led nowhere; then costs rise to those of the problem, by these shares
NOWHERE, COST_SHARES = 0.1, (1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0)


class LeastSquares(SingleSolver):
    """Solves (K + diag(1/C)) alpha + b = y, sum(alpha) = 0, by one Cholesky factor for all outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.losses import Squared
    >>> from kernelweave.solvers import Problem
    >>> y = np.array([[2.0], [-2.0]])
    >>> LeastSquares().solve(np.eye(2), Problem(y, Squared(), np.ones((2, 1))), tol=1e-6).alpha.ravel()
    array([ 1., -1.])
    """

    name = "least_squares"
    requires = ("quadratic",)

    def solve(self, K: FloatArray, problem: Problem, tol: float, alpha: FloatArray | None = None) -> Machine:
        self.check(problem.loss)
        if not problem.fit_intercept:
            alpha = _solved(K, problem)
            return Machine(alpha, product(K, alpha), 1)
        about, means = centred(K)
        alpha = _solved(about, problem)
        return Machine(alpha, uncentred(product(about, alpha), means, alpha), 1)

    def solve_column(self, K: FloatArray, problem: Problem, tol: float, alpha: FloatArray) -> Machine:
        return self.solve(K, problem, tol, alpha)


def _solved(K: FloatArray, problem: Problem) -> FloatArray:
    """alpha of the linear system."""
    A = K.astype(np.float64, order="C")
    A.flat[:: len(A) + 1] += 1.0 / problem.C[:, 0]
    right = np.hstack([problem.centred(problem.y), np.ones_like(problem.C)])
    solution = cho_solve(positive_factor(A, own=True), right, check_finite=False)
    alpha = solution[:, :-1]
    if problem.fit_intercept:
        ones = solution[:, -1:]
        alpha = alpha - ones * (alpha.sum(axis=0) / ones.sum())
    return problem.feasible(alpha)


class Newton(SingleSolver):
    """Semismooth Newton steps on  alpha + C V'(y, K alpha + b) = 0,  sum(alpha) = 0,  with a line search.

    Samples with zero curvature drop out of the linear system, so a step costs the cube of the
    number of curved ones (margin violators for the squared hinge). Chapelle (2007). Where C K is so large
    that steps from afar end at the first bend of the loss, costs are raised step by step.

    Parameters
    ----------
    max_iter : int, default=200

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.losses import SquaredHinge
    >>> from kernelweave.solvers import Problem
    >>> y = np.array([[1.0], [-1.0]])
    >>> machine = Newton().solve(np.eye(2), Problem(y, SquaredHinge(), np.ones((2, 1))), tol=1e-9)
    >>> machine.alpha.ravel()
    array([ 0.5, -0.5])
    """

    name = "newton"
    requires = ("hessian",)

    def __init__(self, max_iter: int = 200) -> None:
        self.max_iter = max_iter

    def solve_column(self, K: FloatArray, problem: Problem, tol: float, alpha: FloatArray) -> Machine:
        if not (problem.fit_intercept and isinstance(K, np.ndarray)):
            return self._raised(K, problem, tol, alpha)
        about, means = centred(K)
        machine = self._raised(about, problem, tol, alpha)
        return replace(machine, fitted=uncentred(machine.fitted, means, machine.alpha))

    def _raised(self, K: FloatArray, problem: Problem, tol: float, alpha: FloatArray) -> Machine:
        """Newton steps from alpha; if they lead nowhere, from the solutions at smaller costs."""
        machine = self._descended(K, problem, tol, alpha)
        if machine.n_iter >= self.max_iter or _gaps(problem, machine)[0] <= max(tol, NOWHERE):
            return machine
        other, count = Machine(problem.start(), problem.start(), 0), machine.n_iter
        for share in COST_SHARES:
            smaller = replace(problem, C=share * problem.C)
            other = self._descended(K, smaller, tol, smaller.feasible(other.alpha))
            count += other.n_iter
        best = min(machine, other, key=lambda one: _gaps(problem, one)[0])
        return replace(best, n_iter=count)

    def _descended(self, K: FloatArray, problem: Problem, tol: float, alpha: FloatArray) -> Machine:
        """Newton steps from alpha."""
        g = product(K, alpha)
        b, still, start = best_intercept(problem, g), Standstill(), Machine(alpha, g, 0)
        best, before = (_gaps(problem, start)[1], start), np.inf
        for iteration in range(1, self.max_iter + 1):
            step, db = self.direction(K, problem, alpha, g + b)
            dg = product(K, step)
            t = _step_length(problem, alpha, g, b, step, dg, db)
            alpha, g = alpha + t * step, g + t * dg
            b = best_intercept(problem, g)
            machine = _feasible_machine(K, problem, problem.alpha_of(g + b))
            gap, left = _gaps(problem, machine)
            if gap <= tol:
                return replace(machine, n_iter=iteration)
            best = min(best, (left, machine), key=itemgetter(0))
            if left > 0.5 * before:
                # where K is large, K times the rounding of -C V'(f) may exceed f: then the iterate itself may
                # do
                itself = _feasible_machine(K, problem, alpha)
                gap, found = _gaps(problem, itself)
                best = min(best, (found, itself), key=itemgetter(0))
                if gap <= tol:
                    break
            primal = problem.primal_loss(g, b) + 0.5 * float(np.vdot(alpha, g))
            if t == 0.0 or still(primal, best[0]):
                break
            before = left
        return replace(best[1], n_iter=iteration)

    def direction(
        self, K: FloatArray, problem: Problem, alpha: FloatArray, f: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Newton direction (dalpha, db) of the optimality conditions.

        Where the curvature W = C V'' vanishes, dalpha = -(alpha + C V'); elsewhere
        (diag(1/W) + K) dalpha + db = -(alpha + C V') / W  with the known part of K dalpha moved to
        the right, solved in the well-conditioned form S (I + S K S)^-1 S, S = sqrt(W).
        """
        residual = (alpha - problem.alpha_of(f))[:, 0]
        W = (problem.C * problem.loss.hessian(problem.y, f))[:, 0]
        curved = np.flatnonzero(W > 1e-12 * W.max(initial=0.0))
        step, db = -residual, 0.0
        if len(curved):
            flat = np.flatnonzero(W <= 1e-12 * W.max(initial=0.0))
            right = -residual[curved] / W[curved] + K[np.ix_(curved, flat)] @ residual[flat]
            block = K if len(curved) == len(W) else K[np.ix_(curved, curved)]
            x, ones = _solve_scaled(block, np.sqrt(W[curved]), right)
            if problem.fit_intercept:
                wanted = problem.loss.alpha_sum - alpha.sum() + residual[flat].sum()
                db = (x.sum() - wanted) / ones.sum()
            step[curved] = x - db * ones
        return step[:, None], np.array([db])


def _feasible_machine(K: FloatArray, problem: Problem, alpha: FloatArray) -> Machine:
    """The machine at a dual point, such as -C V'(f) for predictions f, which is always inside the box."""
    moved = problem.feasible(alpha)
    return Machine(moved, product(K, moved), 0)


def _gaps(problem: Problem, machine: Machine) -> tuple[float, float]:
    """The relative gap of a machine, and P - D; alpha' K alpha counts as 0 if rounding made it negative."""
    intercept = best_intercept(problem, machine.fitted)
    energy = float(np.vdot(machine.alpha, machine.fitted))
    loss = problem.primal_loss(machine.fitted, intercept)
    misfit = float(problem.misfit(machine.alpha, machine.fitted + intercept).sum())
    return relative(misfit, loss + 0.5 * energy), loss + abs(energy) - problem.dual_loss(machine.alpha)


def _solve_scaled(K: FloatArray, S: FloatArray, right: FloatArray) -> FloatArray:
    """Rows (diag(1/S^2) + K)^-1 right and (diag(1/S^2) + K)^-1 1."""
    B = np.multiply.outer(S, S)
    B *= K
    B.flat[:: len(S) + 1] += 1.0
    scaled = S[:, None] * np.column_stack([right, np.ones_like(S)])
    result: FloatArray = (S[:, None] * cho_solve(positive_factor(B, own=True), scaled, check_finite=False)).T
    return result


def _step_length(
    problem: Problem,
    alpha: FloatArray,
    g: FloatArray,
    b: FloatArray,
    step: FloatArray,
    dg: FloatArray,
    db: FloatArray,
) -> float:
    """Where the slope of the primal objective along the step has nearly vanished; 0 if it does not fall."""
    f, along = g + b, dg + db
    energy, rise = (float(np.vdot(part, dg)) for part in (alpha, step))

    def slope(t: float) -> float:
        ahead = problem.alpha_of(f + t * along)
        return energy + t * rise + problem.loss.alpha_sum * float(db.sum()) - float(np.vdot(ahead, along))

    return step_length(slope)
