"""Decomposition steps that keep the products K_m alpha of every kernel up to date."""

from __future__ import annotations

import numpy as np

from ..._typing import FloatArray, IntArray
from ...gram import Gram
from ..problem import Problem
from ..single._box_qp import ActiveSet, BoxQP
from ..single.smo import EXACT_ROUNDS, EXACT_SAMPLES

#: the small program of a step is solved to this share of the violation, in at most so many moves a variable
INNER_SHARE, INNER_MOVES = 0.1, 50

#: share of its bound max_i K_ii |alpha|_1^2 up to which a negative alpha' K alpha is rounding
ROUNDING = 1e-14

#: rows of one kernel computed at a time
ROWS_AT_ONCE = 256


class Fields:
    """A machine in the making: alpha, and g_m = K_m alpha for the kernels that carry weight.

    A step changes a few entries of alpha, so each g_m changes by a few rows of K_m: no matrix
    of all samples is ever formed. Products of kernels without weight go stale, and are computed
    anew when they are asked for. Kloft et al. (2011), Algorithm 2, lines 3-6.

    Parameters
    ----------
    problem : Problem
        With a loss whose dual is linear on a box.
    gram : Gram
    alpha : ndarray of shape (n, c)
        Feasible.
    """

    def __init__(self, problem: Problem, gram: Gram, alpha: FloatArray) -> None:
        self.problem, self.gram, self.alpha = problem, gram, alpha.copy()
        self.products = np.zeros((gram.n_kernels, problem.shape[1], gram.n_samples))
        self.fresh = np.zeros(gram.n_kernels, dtype=bool)
        self.largest = gram.diagonals().max(axis=1) * np.ones(gram.n_kernels)
        self.in_place = isinstance(getattr(gram, "matrices", [None])[0], np.ndarray)
        self.programs = [BoxQP.of(np.empty((0, 0)), problem.column(k)) for k in range(problem.shape[1])]

    def refresh(self, kernels: IntArray) -> None:
        """Make the products of some kernels those of the present alpha."""
        stale = kernels[~self.fresh[kernels]]
        if len(stale) == 0:
            return
        self.products[stale] = 0.0
        for k, column in enumerate(self.alpha.T):
            support = np.flatnonzero(column)
            self._add(stale, k, support, column[support])
        self.fresh[stale] = True

    def forget(self) -> None:
        """Compute products anew when they are next asked for: the rounding of every step is in them."""
        self.fresh[:] = False

    def fitted(self, weights: FloatArray) -> FloatArray:
        """sum_m d_m K_m alpha, shape (n, c)."""
        live = np.flatnonzero(weights)
        self.refresh(live)
        return np.tensordot(self.products[live], weights[live], (0, 0)).T

    def squares(self) -> FloatArray:
        """s_m = alpha' K_m alpha of every kernel."""
        found = np.empty(len(self.fresh))
        fresh, stale = np.flatnonzero(self.fresh), np.flatnonzero(~self.fresh)
        found[fresh] = self.squares_of(fresh)
        if len(stale):
            found[stale] = self.gram.quad(self.alpha, stale)
        return found

    def squares_of(self, kernels: IntArray) -> FloatArray:
        """The same of kernels whose products are up to date; below zero by rounding is zero."""
        found = np.einsum("mci,ic->m", self.products[kernels], self.alpha)
        bound = self.largest[kernels] * float((np.abs(self.alpha).sum(axis=0) ** 2).sum())
        drifted = kernels[found < -ROUNDING * bound]
        if len(drifted):  # by the rounding of steps from a larger alpha
            self.fresh[drifted] = False
            self.refresh(drifted)
            found = np.einsum("mci,ic->m", self.products[kernels], self.alpha)
        return np.where((found < 0.0) & (found >= -ROUNDING * bound), 0.0, found)

    def step(self, weights: FloatArray, size: int) -> float:
        """Improve at most `size` entries of each column of alpha; how optimal they were.

        That is the largest violation found, relative to the largest slope.
        """
        fitted, worst = self.fitted(weights), 0.0
        for k, qp in enumerate(self.programs):
            slopes = fitted[:, k] - qp.linear
            chosen, violation = working_set(qp, self.alpha[:, k], slopes, size)
            if violation > 0.0:
                self._improve(weights, k, chosen, slopes[chosen], INNER_SHARE * violation)
            worst = max(worst, violation / max(float(np.abs(slopes).max()), 1e-300))
        return worst

    def _improve(self, weights: FloatArray, k: int, chosen: IntArray, slopes: FloatArray, eps: float) -> None:
        """Solve the program of the chosen entries of column k, the others held."""
        qp, before = self.programs[k], self.alpha[chosen, k]
        K = self.gram.subset(chosen).combine(weights)
        part = BoxQP(K, K @ before - slopes, qp.kink, qp.lower[chosen], qp.upper[chosen], qp.tied)
        after = solved(part, before, slopes, eps)
        moved = np.flatnonzero(after != before)
        if len(moved) == 0:
            return
        self.alpha[chosen, k] = after
        self.fresh[weights == 0.0] = False
        self._add(np.flatnonzero(weights), k, chosen[moved], (after - before)[moved])

    def _add(self, kernels: IntArray, k: int, rows: IntArray, change: FloatArray) -> None:
        """g_m += sum_i change_i K_m[rows_i] for column k of some kernels."""
        if self.in_place:
            self._add_in_place(kernels, k, rows, change)
            return
        for m in kernels:
            for start in range(0, len(rows), ROWS_AT_ONCE):
                some = slice(start, start + ROWS_AT_ONCE)
                self.products[m, k] += change[some] @ self.gram.rows(rows[some], self._unit(m))

    def _unit(self, m: int) -> FloatArray:
        """Weight 1 on kernel m alone."""
        unit = np.zeros(self.gram.n_kernels)
        unit[m] = 1.0
        return unit

    def _add_in_place(self, kernels: IntArray, k: int, rows: IntArray, change: FloatArray) -> None:
        from ._interleaved_loops import add_rows

        matrices, scales = self.gram.matrices, self.gram.scales  # type: ignore[attr-defined]
        for m in kernels:
            add_rows(self.products[m, k], matrices[m], rows, scales[m] * change)
        self.gram.n_passes += len(rows) / self.gram.n_samples * len(kernels) / len(self.fresh)


def solved(qp: BoxQP, a: FloatArray, slopes: FloatArray, eps: float) -> FloatArray:
    """A solution of a small program: to a violation of `eps`, or exactly where that takes too long."""
    after, most = a.copy(), INNER_MOVES * len(a)
    if qp.descend(after, slopes, eps, most) < most or len(a) > EXACT_SAMPLES:
        return after
    active = ActiveSet(qp, after)
    active.run(EXACT_ROUNDS)  # never raises the objective, finished or not
    drift = abs(float(active.a.sum() - a.sum())) if qp.tied else 0.0
    return active.a if drift <= 1e-12 * float(np.abs(a).sum()) else after


def working_set(qp: BoxQP, alpha: FloatArray, slopes: FloatArray, size: int) -> tuple[IntArray, float]:
    """Entries of alpha that gain most by moving, and the largest first-order violation.

    With a fixed sum, half of them gain most by rising and half by falling, as in the steepest
    feasible direction with `size` nonzero entries (Joachims 1999).

    Parameters
    ----------
    qp : BoxQP
    alpha : ndarray of shape (n,)
    slopes : ndarray of shape (n,)
        K alpha - linear.
    size : int
    """
    rise, fall = qp.gains(alpha, slopes)
    if not qp.tied:
        gain = np.maximum(rise, fall)
        return _largest(gain, size, 0.0), float(gain.max())
    highest, lowest = float(rise.max()), float(fall.max())
    up, down = _largest(rise, size // 2, -lowest), _largest(fall, size // 2, -highest)
    return np.union1d(up, down), highest + lowest


def _largest(gains: FloatArray, count: int, above: float) -> IntArray:
    """Positions of the largest gains that are above a level."""
    top = np.argpartition(-gains, min(count, len(gains) - 1))[:count]
    return top[gains[top] > above]
