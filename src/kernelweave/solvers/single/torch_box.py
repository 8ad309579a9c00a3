"""Box-constrained duals on a device: accelerated projected gradient, then Newton steps on a face."""

from __future__ import annotations

from typing import Any

from ..._backend import torch
from ..._typing import FloatArray
from ..problem import Problem
from ._torch_descent import Descent, DualBox
from .base import Machine, SingleSolver

#: gradient steps between two looks at the gap; fewer if entries are computed again for each step
ROUND, SHORT_ROUND = 50, 10

#: a round that leaves more than this share of the gap is slow, and ends with Newton steps; after this many
#: rounds that stay slow even so, an interior-point method is tried
SLOW, SLOW_ROUNDS = 0.25, 4

#: samples that matter are solved for alone if there are this many samples in all, and those that matter are
#: at most this share; to this share of the gap asked for, or of the last gap if that is more; and at most
#: this often
LEAST_SHRUNK, SHRUNK, PART_SHARE, PART_GAP, MOST_PARTS = 4000, 0.7, 0.5, 0.05, 20

#: most samples whose factors cost less than gradient steps, if these need not compute entries again
MOST_EXCHANGED = 5000

#: gap above which the free samples are not known well enough to exchange some of them
FAR = 0.5

#: after this many rounds that leave more than this share of the least gap so far, only rounding is left
ROUNDED, IDLE_ROUNDS = 0.95, 5


class TorchBox(SingleSolver):
    """Hinge, eps-insensitive and one-class machines for a K on a device.

        min_a 1/2 a' K a - linear' a + kink |a|_1,   lower <= a <= upper,  sum(a) fixed

    Steps of the accelerated projected gradient method (Nesterov; restarts of O'Donoghue & Candes
    2015) cost one product with K each and never wait for the host. Under the sum constraint only
    the centred K matters: its largest eigenvalue, not that of K, sets the step length. Where a
    round of steps closes little of the gap, Newton steps on the free samples follow: one factor
    each, taken as far as the objective falls; and where these do not help, as with kernels of low
    rank, an interior-point method.

    Parameters
    ----------
    max_iter : int, default=20_000
        Most gradient steps.
    """

    name = "torch_box"
    requires = ("linear_dual",)

    def __init__(self, max_iter: int = 20_000) -> None:
        self.max_iter = max_iter

    def solve_column(self, K: Any, problem: Problem, tol: float, alpha: FloatArray) -> Machine:
        """If few samples have a dual variable, solve on these and on the samples that most ask for one.

        With alpha_i = 0 for all others, a feasible point of the part is feasible for the whole, with the same
        dual value. Its gap is the gap of the whole once -C_i V'(y_i, f_i) = 0 outside.
        """
        descent, n_iter, before = Descent(K, DualBox.of(problem, K.like.device), alpha[:, 0]), 0, None
        for _ in range(MOST_PARTS if len(K) > LEAST_SHRUNK else 0):
            gap, rows = descent.gap(), descent.concerned(LEAST_SHRUNK // 2)
            if (
                gap <= tol
                or len(rows) > SHRUNK * len(K)
                or (before is not None and torch.equal(rows, before))
            ):
                break
            part = descent.part(rows)
            n_iter += self._rounds(part, max(PART_SHARE * tol, PART_GAP * min(gap, 1.0)))
            descent.take(rows, part)
            before = rows
        n_iter += self._rounds(descent, tol)
        return descent.machine(problem, n_iter)

    def _rounds(self, descent: Descent, tol: float) -> int:
        """Make rounds until the gap is small enough or no longer falls; the number of steps they took."""
        gap = before = descent.gap()
        n, stored, best = len(descent.a), descent.K.stored, descent.point
        length, exchanges = ROUND if stored else SHORT_ROUND, n <= MOST_EXCHANGED or not stored
        slow = idle = n_iter = 0
        while n_iter < self.max_iter and gap > tol and idle < IDLE_ROUNDS:
            n_iter += length
            exchanged = exchanges and before < FAR and descent.exchange()
            if not exchanged:
                descent.steps(length)
            now = descent.gap()
            if now > max(tol, SLOW * before) and not exchanged and descent.newton():
                now = descent.gap()
            slow += now > max(tol, SLOW * before)
            if slow == SLOW_ROUNDS and descent.interior(0.1 * tol):
                slow += 1  # once is enough
                now = descent.gap()
            idle = idle + 1 if now > ROUNDED * gap else 0
            best, gap = (descent.point, now) if now < gap else (best, gap)
            before = now
        descent.a, descent.Ka = best
        return n_iter
