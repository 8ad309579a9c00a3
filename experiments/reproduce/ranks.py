"""Methods ranked over data sets: Friedman's test, Nemenyi's critical difference, groups that do not differ.

Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7, 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats


class Friedman(NamedTuple):
    """Statistics and p-values of the hypothesis that all methods are equal."""

    chi2: float
    p: float
    F: float
    p_corrected: float


def ranks(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks of the columns in every row, 1 for the highest; equal scores share the mean of their ranks.

    Examples
    --------
    >>> ranks(np.array([[90.0, 80.0, 90.0]]))
    array([[1.5, 3. , 1.5]])
    """
    return np.asarray(stats.rankdata(-np.asarray(scores, dtype=np.float64), axis=1))


def friedman(scores: NDArray[np.float64]) -> Friedman:
    """Friedman's test of N data sets (rows) and k methods (columns), corrected for ties.

        chi2 = (k - 1) N^2 sum_j (R_j - (k+1)/2)^2 / sum_ij (r_ij - (k+1)/2)^2,   k - 1 degrees of freedom
        F    = (N - 1) chi2 / (N (k - 1) - chi2),    k - 1 and (k - 1)(N - 1) degrees (Iman & Davenport)

    with r_ij the ranks and R_j their means; without ties it is Demšar's formula.

    Examples
    --------
    >>> round(friedman(np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [3.0, 1.0, 2.0]])).chi2, 2)
    4.67
    """
    R = ranks(scores) - (np.shape(scores)[1] + 1) / 2.0
    N, k = R.shape
    spread = float(np.sum(R**2))
    chi2 = (k - 1) * N**2 * float(np.sum(R.mean(axis=0) ** 2)) / spread if spread > 0 else 0.0
    rest = N * (k - 1) - chi2
    F = (N - 1) * chi2 / rest if rest > 1e-12 else float("inf")
    p = float(stats.chi2.sf(chi2, k - 1))
    return Friedman(chi2, p, F, float(stats.f.sf(F, k - 1, (k - 1) * (N - 1))))


def critical_difference(n_methods: int, n_sets: int, alpha: float = 0.05) -> float:
    """Nemenyi: mean ranks that are farther apart than this differ, for all pairs together.

        CD = q sqrt(k (k + 1) / (6 N)),   q = studentized range of k groups / sqrt(2)

    Examples
    --------
    Demšar's example, 4 methods on 14 data sets:

    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    q = float(stats.studentized_range.ppf(1.0 - alpha, n_methods, np.inf)) / np.sqrt(2.0)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_sets)))


def alike(mean_ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """The longest runs (first, last) of ascending mean ranks that lie within the critical difference.

    Examples
    --------
    >>> alike([1.0, 2.0, 2.5, 4.0], difference=1.6)
    [(0, 2), (2, 3)]
    """
    r = np.asarray(mean_ranks)
    ends = [int(np.flatnonzero(r <= start + difference)[-1]) for start in r]
    runs = [(first, last) for first, last in enumerate(ends) if last > first]
    return [run for i, run in enumerate(runs) if i == 0 or run[1] > runs[i - 1][1]]


def holm(p: Sequence[float]) -> list[float]:
    """P-values of several tests, made larger so that all hold together (Holm 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    factors = np.arange(len(p), 0, -1)
    raised = np.minimum(np.maximum.accumulate(factors * np.asarray(p)[order]), 1.0)
    found = np.empty(len(p))
    found[order] = raised
    return found.tolist()
