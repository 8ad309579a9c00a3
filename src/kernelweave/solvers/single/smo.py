"""Sequential minimal optimisation for hinge, eps-insensitive and one-class losses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._linalg import product
from ..._typing import FloatArray
from ...gram.some_rows import RowsOnDemand
from ..problem import Problem, best_intercept
from ._box_qp import ActiveSet, BoxQP
from ._interior import Interior
from .base import Machine, SingleSolver, machine_gap

# small machines are solved exactly, so that the order of samples plays no part: most samples, steps of two
# variables per sample before the free samples are guessed, and rounds to correct the guess, for one guess and
# for all
EXACT_SAMPLES, EXACT_STEPS, EXACT_ROUNDS, ALL_ROUNDS = 256, 100, 300, 600

#: rounds to correct the guess of an interior-point method, which is nearly right
INTERIOR_ROUNDS = 20

#: steps after which the factors of an interior-point method cost less than continuing: this many per sample,
#: and this many per pair of samples
SAMPLE_STEPS, PAIR_STEPS = 100, 0.2

#: the next violation, as a share of the last: at most this, at least this, and in between such that its gap
#: is this share of the tolerance
NEXT, LEAST_NEXT, AIM = 0.2, 1e-3, 0.3

#: from this tolerance on, slopes that have the rounding of all steps tell whether the gap is still open; and
#: the number of samples from which a product with K takes longer than that
ROUGH, ROUGH_SAMPLES = 1e-6, 500

#: below this gap, a machine is as good as rounding allows after this many rounds that do not halve the gap
FINE_GAP, IDLE_ROUNDS = 1e-7, 5


class SMO(SingleSolver):
    """Decomposition with second-order working sets of two, warm-started.

    For losses whose dual is linear (with a kink at zero) on a box. Works on signed alpha, so
    regression needs no doubled variables. Small problems are finished exactly, by an active-set
    method on their free samples. Fan, Chen & Lin (2005), working set selection 3.

    If K is badly conditioned or C is large, many steps of two variables are needed. Once they cost more than
    the factors of an interior-point method, whose number hardly depends on either, that method takes over; it
    leaves only rounding. The work is O(n^3) at most, and the best point seen is returned.

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

    #: samples up to which the solution is exact, whatever gap is asked for; and the first violation,
    #: relative to the slopes, as a multiple of that gap: LIBSVM's usual tolerance at a gap of 1e-3
    exact_samples, first_violation = EXACT_SAMPLES, 50.0

    def __init__(self, max_iter: int = 10_000_000) -> None:
        self.max_iter = max_iter

    def roughly(self) -> SMO:
        other = SMO(self.max_iter)
        # with few samples, steps cost less than checking how far they got
        other.exact_samples, other.first_violation = 0, 5.0
        return other

    def solve_column(self, K: FloatArray, problem: Problem, tol: float, alpha: FloatArray) -> Machine:
        search = Search(BoxQP.of(K, problem), problem, tol, alpha[:, 0], len(alpha) <= self.exact_samples)
        if not search.qp.diagonal.any():  # K = 0, as it is positive semidefinite
            search.note(alpha[:, 0])  # many points are optimal: keep the known one
            if search.gap <= tol:
                return search.best
        n = len(alpha)
        allowed = min(self.max_iter, SAMPLE_STEPS * n + int(PAIR_STEPS * n * n))
        search.descend(min(0.5, self.first_violation * (min(tol, 1e-4) if search.small else tol)), allowed)
        if search.gap > tol and search.n_iter < self.max_iter:
            search.enter_interior()
        return search.best


class Search:
    """Several kinds of descent from a point of the box, and the best machine they led to.

    Parameters
    ----------
    qp : BoxQP
    problem : Problem
    tol : float
        Relative gap that is enough.
    a : ndarray of shape (n,)
        A feasible point.
    small : bool
        Whether there are so few samples that the exact solution is looked for.
    """

    def __init__(self, qp: BoxQP, problem: Problem, tol: float, a: FloatArray, small: bool) -> None:
        self.qp, self.problem, self.tol = qp, problem, tol
        self.small, self.rounds = small, ALL_ROUNDS
        self.gap, self.n_iter, self.a = np.inf, 0, a.copy()
        self.G = _product(qp.K, a) - qp.linear
        self.size = qp.size(a, self.G)
        self.roots = np.sqrt(np.maximum(qp.diagonal, 0.0))

    def descend(self, eps: float, allowed: int) -> None:
        """Rounds of steps to a relative violation of `eps`, then less, until `allowed` steps are made."""
        eps, size = eps * self.size, self.size
        budget, idle = EXACT_STEPS * len(self.a) if self.small else allowed, 0
        while True:
            steps = self.qp.descend(self.a, self.G, eps, min(budget, allowed - self.n_iter))
            self.n_iter += steps
            before, found = self.gap, self.small and self.guess(self.a)
            over, gap = eps <= 1e-13 * size or self.n_iter >= allowed, 0.0
            if not (self.small or over) and self.tol >= ROUGH and len(self.a) >= ROUGH_SAMPLES:
                gap = self.gap_at(self.a, self.G + self.qp.linear)  # rounded, but takes no product with K
            if not found and (over or (self.n_iter >= budget if self.small else gap <= self.tol)):
                self.note(self.a)
                gap = self.gap
            idle = idle + 1 if steps >= budget and 0.5 * before <= self.gap < FINE_GAP else 0
            if self.gap <= self.tol or over or idle >= IDLE_ROUNDS:
                return
            if steps < budget:
                # the gap falls about as the violation does
                eps *= NEXT if self.small else min(NEXT, max(LEAST_NEXT, AIM * self.tol / gap))

    def guess(self, a: FloatArray) -> bool:
        """Look for the exact solution from the samples that are free at `a`; whether few rounds found it."""
        active = ActiveSet(self.qp, a)
        exact = active.run(min(EXACT_ROUNDS, self.rounds))
        self.rounds -= active.n_rounds
        if exact is not None:
            self.note(exact)
        return exact is not None

    def note(self, a: FloatArray) -> None:
        """Remember a point if none was better; G is not used, as it has the rounding of all its updates."""
        fitted = _product(self.qp.K, a)
        gap = self.gap_at(a, fitted)
        if gap < self.gap or not np.isfinite(self.gap):
            self.best, self.gap = Machine(a[:, None].copy(), fitted[:, None], self.n_iter), gap

    def gap_at(self, a: FloatArray, fitted: FloatArray) -> float:
        """The relative gap at a point, given K a."""
        size = float(self.roots @ np.abs(a)) ** 2
        return machine_gap(self.problem, a[:, None], fitted[:, None], size)

    def enter_interior(self) -> None:
        """The solution of an interior-point method, and the exact solution from its free samples."""
        if isinstance(self.qp.K, RowsOnDemand):
            self.qp = replace(self.qp, K=self.qp.K.whole())
        qp, K = self.qp, self.qp.K.astype(np.float64)
        ridge = len(K) * np.finfo(np.float64).eps * float(K.diagonal().mean())
        program = Interior(K, qp.linear, qp.lower, qp.upper, qp.kink, float(self.a.sum()), qp.tied, ridge)
        # the objective of the machine, to which its gap is relative
        fitted = self.best.fitted
        energy = 0.5 * float((self.best.alpha * fitted).sum())
        size = abs(self.problem.primal_loss(fitted, best_intercept(self.problem, fitted)) + energy)
        snapped = program.solve(0.1 * self.tol * size)
        if not np.isfinite(snapped).all():
            return
        inside, snapped = (self.problem.feasible(a[:, None])[:, 0] for a in (program.inside, snapped))
        self.note(inside)
        self.rounds = max(self.rounds, INTERIOR_ROUNDS)
        self.guess(snapped)


def _product(K: FloatArray, a: FloatArray) -> FloatArray:
    """K a, reading only the rows where a is not zero."""
    from ...gram._matrix_loops import add_rows

    if isinstance(K, RowsOnDemand):
        return np.asarray(K.dot(a))
    support = np.flatnonzero(a)
    if len(support) >= 0.5 * len(a):
        return product(K, a)
    out = np.zeros(len(a))
    add_rows(out, K, support, a[support])
    return out
