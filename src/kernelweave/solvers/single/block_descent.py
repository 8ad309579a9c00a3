"""Block descent for the multiclass hinge: the dual variables of one sample at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._linalg import product
from ..._typing import FloatArray
from ..problem import Problem
from ._face import Face
from ._simplex_interior import interior_plan
from .base import Machine, SingleSolver, Standstill, centred, machine_gap, uncentred

#: sweeps between two looks at the gap, and slope below which steps are too small to continue, as a share of
#: tol
SWEEPS, STEEPEST = 10, 0.1

#: added to K so that steps keep the sums over samples: a share of its mean diagonal
RIDGE = 0.3

#: most that the search for the minimum on a face may cost: this many sweeps, or this many operations if that
#: is more
FACE_SWEEPS, FACE_WORK = 20, 2e7


#: sweeps per sample after which an interior-point method takes over, the least number of sweeps before that,
#: and most numbers in its factors
SAMPLE_SWEEPS, FEWEST_SWEEPS, MOST_NUMBERS = 0.3, 50, 5e7


class BlockDescent(SingleSolver):
    """Exact steps in the dual variables of one sample, for losses that couple the classes.

        min_alpha 1/2 sum_k alpha_k' K alpha_k - <linear, alpha>
        subject to  u_i = C_i own_i - alpha_i >= 0,  sum(u_i) = C_i

    A step projects onto a simplex (Crammer & Singer 2001; Keerthi et al. 2008). Intercepts ask for sum_i
    alpha_ik = 0 in every class, which steps of one sample cannot maintain. So the sums have a cost, b_k sum_i
    alpha_ik + (ridge / 2) (sum_i alpha_ik)^2, and the prices b rise with them (the method of multipliers)
    until they vanish. The minimum over the classes that share samples is one linear system; where it is small
    it ends the search exactly. If K is badly conditioned or C is large, many sweeps are needed. Then an
    interior-point method takes over, whose number of steps hardly depends on either.

    Parameters
    ----------
    max_iter : int, default=10_000
        Most sweeps over the samples.

    Examples
    --------
    >>> from kernelweave.losses import MulticlassHinge
    >>> y = 2.0 * np.eye(3) - 1.0
    >>> machine = BlockDescent().solve(np.eye(3), Problem(y, MulticlassHinge(), np.ones((3, 1))), tol=1e-9)
    >>> machine.alpha.round(6)
    array([[ 0.666667, -0.333333, -0.333333],
           [-0.333333,  0.666667, -0.333333],
           [-0.333333, -0.333333,  0.666667]])
    """

    name = "block_descent"
    requires = ("simplex_dual",)

    def __init__(self, max_iter: int = 10_000) -> None:
        self.max_iter = max_iter

    def solve(self, K: FloatArray, problem: Problem, tol: float, alpha: FloatArray | None = None) -> Machine:
        self.check(problem.loss)
        start, K = problem.start() if alpha is None else problem.feasible(alpha), np.asarray(K)
        if not problem.fit_intercept:
            return SimplexSearch(K, problem, tol, start).run(self.max_iter)
        about, means = centred(K)
        machine = SimplexSearch(about, problem, tol, start).run(self.max_iter)
        return replace(machine, fitted=uncentred(machine.fitted, means, machine.alpha))

    def solve_column(self, K: FloatArray, problem: Problem, tol: float, alpha: FloatArray) -> Machine:
        return self.solve(K, problem, tol, alpha)


class SimplexSearch:
    """A descent from a feasible point, and the best machine on the way.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    problem : Problem
    tol : float
        Relative gap that is enough.
    alpha : ndarray of shape (n, c)
        A feasible point.
    """

    def __init__(self, K: FloatArray, problem: Problem, tol: float, alpha: FloatArray) -> None:
        self.K, self.problem, self.tol, self.a = K, problem, tol, alpha.copy()
        self.diagonal = K.diagonal().astype(np.float64)
        self.linear = problem.loss.simplex_dual(problem.y)
        self.b: FloatArray = np.zeros(alpha.shape[1])
        self.ridge = RIDGE * float(self.diagonal.mean()) if problem.fit_intercept else 0.0
        self.gap, self.n_iter = np.inf, 0

    def run(self, most: int) -> Machine:
        """Make sweeps, and find the minimum on the face that they lead to, until the gap is closed."""
        still = Standstill()
        self.note(self.a)
        while self.gap > self.tol and self.n_iter < most:
            self.descend(min(SWEEPS, most - self.n_iter))
            self.note(self.problem.feasible(self.a))
            if self.gap > self.tol:
                self.guess()
            many = self.n_iter >= max(SAMPLE_SWEEPS * len(self.a), FEWEST_SWEEPS)
            if self.gap > self.tol and (still(self.objective, self.gap) or many):
                if self.K.size * self.a.shape[1] <= MOST_NUMBERS:
                    self.enter_interior()
                    break
                if not many:
                    break
        return self.best

    def descend(self, most: int) -> None:
        """Sweeps at fixed prices, which then follow the sums."""
        from ._block_loops import sweeps

        G = product(self.K, self.a) + self.b + self.ridge * self.a.sum(axis=0) - self.linear
        C, own = self.problem.C[:, 0].copy(), self.problem.y.argmax(axis=1)
        eps = STEEPEST * self.tol
        self.n_iter += sweeps(self.K, self.diagonal, self.ridge, C, own, self.a, G, eps, most)
        self.b += self.ridge * self.a.sum(axis=0)

    def note(self, alpha: FloatArray) -> bool:
        """Look at a feasible point, and remember it if none was better; whether it is the best."""
        machine = Machine(alpha.copy(), product(self.K, alpha), self.n_iter)
        gap = machine_gap(self.problem, machine.alpha, machine.fitted)
        self.objective = 0.5 * float(np.vdot(alpha, machine.fitted)) - float(np.vdot(self.linear, alpha))
        if not gap < self.gap:
            return False
        self.best, self.gap = machine, gap
        return True

    def enter_interior(self) -> None:
        """The solution of an interior-point method, and the minimum on the face that it leads to."""
        own, K = self.problem.C * (self.problem.y > 0), self.K.astype(np.float64)
        demand = own.sum(axis=0) if self.problem.fit_intercept else None
        present = np.arange(own.shape[1]) if demand is None else np.flatnonzero(demand)
        P, supply = (K @ own - self.linear)[:, present], self.problem.C[:, 0]
        gap = 0.1 * self.tol * abs(self.objective)
        U, S = interior_plan(K, P, supply, None if demand is None else demand[present], gap)
        for plan in (U, np.where(U > self.problem.C * S, U, 0.0)):
            self.a = own.copy()
            self.a[:, present] -= plan
            self.a = self.problem.feasible(self.a)
            self.note(self.a)
        self.guess()

    def guess(self) -> None:
        """Go to the minimum over the classes that share samples; classes that run empty drop out."""
        a: FloatArray = self.a.copy()
        own = self.problem.C * (self.problem.y > 0)
        allowed = max(FACE_SWEEPS * a.size * len(a), FACE_WORK)
        while True:
            face = Face.of(self.problem, a)
            allowed -= len(face.rows) ** 3 + a.size * len(a)
            if len(face.rows) == 0 or allowed < 0:
                return
            H = face.hessian(self.K[np.ix_(face.rows, face.rows)])
            slopes = face.components(product(self.K, a) - self.linear)
            z, b = face.minimum(H, slopes, a.sum(axis=0))
            step, room = face.spread(z, len(a)), own - a
            t = np.divide(room, step, out=np.full_like(room, np.inf), where=step > 0.0)
            if t.min() > 1.0:
                if self.note(self.problem.feasible(a + step)):
                    self.a, self.b = a + step, b
                return
            a = np.asarray(np.where(t <= t.min(), own, a + float(t.min()) * step))
