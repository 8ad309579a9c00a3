"""Sequential minimal optimisation for hinge, eps-insensitive and one-class losses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._typing import FloatArray
from .._product import product
from ..problem import Problem
from ._active_set import ActiveSet
from ._box_qp import BoxQP
from .base import Machine, SingleSolver, machine_gap

# small machines are solved exactly, so that the order of samples plays no part: so many samples, steps
# of two variables for each sample before the free samples are guessed, and rounds to correct the guess
EXACT_SAMPLES, EXACT_STEPS, EXACT_ROUNDS = 256, 100, 300

#: below this gap, rounds without halving it after which a machine is as good as rounding lets it be
FINE_GAP, IDLE_ROUNDS = 1e-7, 5


class SMO(SingleSolver):
    """Decomposition with second-order working sets of two, warm-started.

    For losses whose dual is linear (with a kink at zero) on a box. Works on signed alpha, so
    regression needs no doubled variables. Small problems are finished exactly, by an active-set
    method on their free samples. Fan, Chen & Lin (2005), working set selection 3.

    Parameters
    ----------
    max_iter : int, default=10_000_000
        Most steps of two variables per call.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.losses import Hinge
    >>> from kernelweave.solvers import Problem
    >>> y = np.array([[1.0], [-1.0]])
    >>> SMO().solve(np.eye(2), Problem(y, Hinge(), np.ones((2, 1))), tol=1e-6).alpha.ravel()
    array([ 1., -1.])
    """

    name = "smo"
    requires = ("linear_dual",)

    def __init__(self, max_iter: int = 10_000_000) -> None:
        self.max_iter = max_iter

    def solve_column(self, K: FloatArray, problem: Problem, tol: float, alpha: FloatArray) -> Machine:
        qp = BoxQP.of(K, problem)
        a = alpha[:, 0].copy()
        G = _product(K, a) - qp.linear
        small, size = len(a) <= EXACT_SAMPLES, qp.size(a, G)
        eps, n_iter = start_eps(min(tol, 1e-4) if small else tol) * size, 0
        budget = EXACT_STEPS * len(a) if small else self.max_iter
        effort = Effort(tol, self.max_iter)
        while True:
            steps = qp.descend(a, G, eps, min(budget, self.max_iter - n_iter))
            n_iter += steps
            exact = ActiveSet(qp, a).run(EXACT_ROUNDS) if small else None
            machine = Machine(a[:, None], (G + qp.linear)[:, None], n_iter)
            if exact is not None:
                machine = Machine(exact[:, None], product(K, exact)[:, None], n_iter)
            finished = exact is not None or not small or n_iter >= budget
            gap = machine_gap(problem, machine.alpha, machine.fitted) if finished else np.inf
            if eps <= 1e-13 * size or effort.spent(gap, n_iter, steps >= budget):
                # G has the rounding of all its updates in it
                return replace(machine, fitted=_product(K, machine.alpha[:, 0])[:, None])
            if steps < budget:
                eps *= 0.2


class Effort:
    """When to stop: at the gap asked for, at the most steps, or when full rounds no longer help."""

    def __init__(self, tol: float, max_iter: int) -> None:
        self.tol, self.max_iter = tol, max_iter
        self.best, self.idle = np.inf, 0

    def spent(self, gap: float, n_iter: int, full: bool) -> bool:
        """Whether to stop after a round that ended at `gap`; `full` when it used all its steps."""
        self.idle = self.idle + 1 if full and 0.5 * self.best <= gap < FINE_GAP else 0
        self.best = min(self.best, gap)
        return gap <= self.tol or n_iter >= self.max_iter or self.idle >= IDLE_ROUNDS


def start_eps(tol: float) -> float:
    """First violation to solve to, relative to the slopes: that of LIBSVM's usual tolerance at a gap of 1e-3."""
    return min(0.5, 50.0 * tol)


def _product(K: FloatArray, a: FloatArray) -> FloatArray:
    """K a, reading only the rows where a is not zero."""
    support = np.flatnonzero(a)
    return product(K[support].T, a[support]) if len(support) < 0.5 * len(a) else product(K, a)
