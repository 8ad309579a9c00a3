"""Survival ranking: the sample with the earlier event should have the larger risk."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .._pairs import ranks
from .._typing import BoolArray, FloatArray, IntArray
from .cox import strata
from .joint import JointLoss


class SurvivalRanking(JointLoss):
    """L(y, f) = 1/2 sum w_i w_j max(0, 1 - f_i + f_j)^2 over the comparable pairs.

    A pair is comparable if sample i has an event and sample j is known to have had no event by then:
    t_i < t_j, or t_i = t_j and j censored; both in the same stratum where there are strata. f is a risk,
    larger for earlier events, and only differences of f count: there is no intercept. The share of comparable
    pairs in the right order is Harrell's concordance, of which L is a convex bound. With one kernel it is the
    survival support vector machine of Van Belle et al. (2007), solved like that of Poelsterl et al. (2015)
    without forming the pairs: all sums over them take O(n log n), as sums over the samples j of larger rank
    with f_j > f_i - 1.

    Targets are those of `Cox`: time, event, and perhaps a stratum.

    Examples
    --------
    >>> y, weight = np.array([[1.0, 1], [2.0, 0], [3.0, 1]]), np.ones(3)
    >>> SurvivalRanking().value(y, np.array([0.0, 1.0, -1.0]), weight)  # of two pairs one lacks 2
    2.0
    """

    name = "survival_ranking"
    task = "survival"
    shift_invariant = True

    def targets(self, Y: FloatArray) -> FloatArray:
        return Y[:, None]

    def value(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> float:  # type: ignore[override]
        f = f - f.mean()
        count, first, second = self._sums(y, f, weight * np.stack([np.ones_like(f), f, f**2]))[0]
        away = 1.0 - f
        # a sum of squares, which rounding may have made less than none
        return max(0.0, 0.5 * float(weight @ (away**2 * count + 2.0 * away * first + second)))

    def gradient(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> FloatArray:  # type: ignore[override]
        f = f - f.mean()
        later, earlier = self._sums(y, f, weight * np.stack([np.ones_like(f), f]))
        lacking = (1.0 + f) * earlier[0] - earlier[1] - (1.0 - f) * later[0] - later[1]
        return np.asarray(weight * lacking)

    def curvature(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> FloatArray:
        """H = sum of w_i w_j (e_i - e_j)(e_i - e_j)' over curved pairs, and (a - b)^2 <= 2 a^2 + 2 b^2."""
        later, earlier = self._sums(y, f, weight[None])
        return np.asarray(2.0 * weight * (later[0] + earlier[0]))

    def hessian_product(self, y: FloatArray, f: FloatArray, weight: FloatArray, v: FloatArray) -> FloatArray:
        later, earlier = self._sums(y, f, weight * np.stack([np.ones_like(v), v]))
        count, other = later + earlier
        return np.asarray(weight * (count * v - other))

    def _sums(self, y: FloatArray, f: FloatArray, A: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums of A, (k, n), over the later and over the earlier samples of pairs with 1 - f_i + f_j > 0."""
        from ._pair_loops import pair_sums

        later, earlier = np.zeros_like(A), np.zeros_like(A)
        for rows, rank, event in ranked(np.asarray(y, dtype=np.float64).tobytes(), y.shape):
            own, numbers = f[rows], np.ascontiguousarray(A[:, rows].T)
            found = pair_sums(own, np.argsort(own, kind="stable"), rank, event, numbers)
            later[:, rows], earlier[:, rows] = found[0].T, found[1].T
        return later, earlier


@lru_cache(maxsize=8)
def ranked(y: bytes, shape: tuple[int, ...]) -> tuple[tuple[IntArray, IntArray, BoolArray], ...]:
    """Rows, ranks and events of every stratum, of targets as numbers of 8 bytes: computed once for a fit."""
    parts = strata(np.frombuffer(y).reshape(shape))
    return tuple((rows, ranks(event, time), event) for rows, time, event in parts)
