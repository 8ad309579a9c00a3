"""What every single-kernel solver is: a machine for a fixed Gram matrix."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from ..._typing import FloatArray
from ...losses import Loss
from ..certificate import relative, scale_of
from ..problem import Problem, best_intercept

#: number of steps in which the objective has to fall by this share, or the gap to the other share
IDLE_STEPS, IDLE_FALL, IDLE_SHARE = 10, 1e-7, 0.9


@dataclass(frozen=True)
class Machine:
    """A solution for one Gram matrix K.

    Attributes
    ----------
    alpha : ndarray of shape (n, c)
        Feasible dual variables.
    fitted : ndarray of shape (n, c)
        K alpha, or the values of `coefficients`.
    n_iter : int
    coefficients : dict of int to ndarray of shape (rank, c), optional
        w_m of machines that solve the primal problem: f = sum_m Z_m w_m, with Z_m the factor of kernel m.
    """

    alpha: FloatArray
    fitted: FloatArray
    n_iter: int
    coefficients: dict[int, FloatArray] | None = None


class SingleSolver(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Solves  min_alpha 1/2 alpha' K alpha + sum_i C_i V*(y_i, -alpha_i / C_i)  for one matrix K.

    A subclass names in `requires` the optional abilities of the loss it relies on, and writes
    ``solve_column``; outputs are independent once K is fixed.
    """

    name: str
    requires: tuple[str, ...] = ()

    def solve(self, K: FloatArray, problem: Problem, tol: float, alpha: FloatArray | None = None) -> Machine:
        """Solve to a relative duality gap of `tol`, starting from `alpha` if given.

        Parameters
        ----------
        K : ndarray of shape (n, n)
        problem : Problem
        tol : float
        alpha : ndarray of shape (n, c), optional
            Warm start; need not be feasible.
        """
        self.check(problem.loss)
        start = problem.start() if alpha is None else problem.feasible(alpha)
        parts = [
            self.solve_column(K, problem.column(k), tol, start[:, k : k + 1]) for k in range(problem.shape[1])
        ]
        return Machine(
            np.hstack([part.alpha for part in parts]),
            np.hstack([part.fitted for part in parts]),
            sum(part.n_iter for part in parts),
        )

    def roughly(self) -> SingleSolver:
        """A faster solver that is no more accurate than asked for, if there is one."""
        return self

    @abstractmethod
    def solve_column(self, K: FloatArray, problem: Problem, tol: float, alpha: FloatArray) -> Machine:
        """Solve a problem of one output, from the feasible `alpha` of shape (n, 1)."""

    def missing(self, loss: Loss) -> list[str]:
        """The abilities that this solver requires and `loss` lacks."""
        return [ability for ability in self.requires if not getattr(loss, ability, False)]

    def check(self, loss: Loss) -> None:
        """Refuse a pair that cannot work, naming the missing piece."""
        for ability in self.missing(loss):
            raise lacking(loss, ability, self, "use another single-kernel solver, or 'auto'")


def lacking(loss: Loss, ability: str, solver: object, remedy: str) -> ValueError:
    """The error to raise if a solver needs an ability that a loss does not have."""
    reason = "" if loss.separable else " (no loss that couples samples has it)"
    return ValueError(
        f"{type(loss).__name__} has no `{ability}`, required by {type(solver).__name__}{reason}; {remedy}."
    )


class Standstill:
    """Whether steps no longer help: in the last ones neither the objective nor the least gap has fallen.

    Examples
    --------
    >>> still = Standstill()
    >>> [still(1.0, 0.5) for _ in range(IDLE_STEPS + 1)].index(True) == IDLE_STEPS
    True
    """

    def __init__(self) -> None:
        self.seen: list[tuple[float, float]] = []  # least objective and least gap after each step

    def __call__(self, objective: float, gap: float) -> bool:
        """Whether to stop after a step that led to `objective` and `gap`."""
        best = self.seen[-1] if self.seen else (np.inf, np.inf)
        self.seen.append((min(objective, best[0]), min(gap, best[1])))
        if len(self.seen) <= IDLE_STEPS:
            return False
        before, now = self.seen[-1 - IDLE_STEPS], self.seen[-1]
        return before[0] - now[0] <= IDLE_FALL * abs(before[0]) and now[1] > IDLE_SHARE * before[1]


def machine_gap(problem: Problem, alpha: FloatArray, fitted: FloatArray, size: float = 0.0) -> float:
    """Relative duality gap of the single-kernel machine at a feasible alpha.

    P = sum_i C_i V(y_i, f_i) + 1/2 alpha' K alpha,  D = -sum_i C_i V*(y_i, -alpha_i/C_i) - 1/2 alpha' K alpha

    and P - D is the slack in Fenchel's inequality, summed over the samples. With the `size` of the terms of
    alpha' K alpha, an optimum that is zero up to rounding is recognised (`scale_of`).
    """
    intercept = best_intercept(problem, fitted)
    primal = problem.primal_loss(fitted, intercept) + 0.5 * float(np.vdot(alpha, fitted))
    difference = float(problem.misfit(alpha, fitted + intercept).sum())
    return relative(difference, scale_of(problem, primal, primal - difference, size))


def centred(K: FloatArray) -> tuple[FloatArray, FloatArray]:
    """K - u 1' - 1 u' + m and u, with u the means of the columns of K and m that of u.

    Under sum(a) = 0 both matrices have the same a' K a, and their products differ by a constant, which an
    intercept absorbs. Far from the origin, centred entries have less rounding.

    Examples
    --------
    >>> centred(np.array([[3.0, 1.0], [1.0, 3.0]]))[0]
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    means = np.asarray(K.mean(axis=0, dtype=np.float64))
    about = K - np.add.outer(means, means)  # symmetric to the last bit
    about += means.mean()
    return about, means


def uncentred(products: FloatArray, means: FloatArray, a: FloatArray) -> FloatArray:
    """K a from the product of the centred K, for a of shape (n, c)."""
    total = a.sum(axis=0)
    return np.asarray(products + np.multiply.outer(means, total) + means @ a - means.mean() * total)
