"""Cox's partial likelihood: the order of events among the samples at risk."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._typing import BoolArray, FloatArray, IntArray
from .joint import JointLoss

#: how samples with an event at the same time share the likelihood
TIES = ("breslow", "efron")

#: most terms that Efron's rule may have, one for each unit of weight of the events
MOST_TERMS = 10**7


class Cox(JointLoss):
    """L(y, f) = sum_{i: event_i} w_i [ log sum_{j at risk at t_i} w_j exp(f_j) - f_i ].

    At risk at t are the samples with t_j >= t, of the same stratum where there are strata. f is the logarithm
    of the hazard relative to a baseline that the likelihood does not contain (Cox 1972), so that a larger f
    means an earlier event, and only differences of f count: there is no intercept. With the probabilities
    p_ij = w_j exp(f_j) / sum_{k at risk at t_i} w_k exp(f_k) that the next event is that of j,

        L'_j = h_j - w_j event_j,   h_j = sum_{i: event_i, t_i <= t_j} w_i p_ij
        H    = diag(h) - sum_{i: event_i} w_i p_i p_i'  <=  diag(h)

    This is Breslow's rule for events at the same time. Efron's rule lets them leave one after the other: with
    S the sum over those at risk and D the sum over the events at a time, of weight W, it has the terms
    log(S - l D / W), l = 0, ..., W - 1 (where W is not an integer, the last term counts by its fraction).
    Everything takes O(n log n), in logarithms, so that no prediction overflows.

    Targets have shape (n, 2), time and whether there was an event (1) or the sample was censored (0), or
    (n, 3) with a stratum (any number) in the third column: samples of different strata are not compared.
    Targets of shape (n,) are times, and all of them are events.

    Parameters
    ----------
    ties : {"breslow", "efron"}, default="breslow"

    Examples
    --------
    >>> y, f, weight = np.array([[1.0, 1], [2.0, 0], [3.0, 1]]), np.zeros(3), np.ones(3)
    >>> round(float(np.exp(Cox().value(y, f, weight))), 6)  # one of three at risk, then the only one
    3.0
    >>> Cox().gradient(y, f, weight).round(3)
    array([-0.667,  0.333,  0.333])
    """

    name = "cox"
    task = "survival"
    shift_invariant = True

    def __init__(self, ties: str = "breslow") -> None:
        self.ties = ties

    def check(self) -> None:
        if self.ties not in TIES:
            raise ValueError(f"Cox: ties={self.ties!r} must be one of {', '.join(map(repr, TIES))}.")

    def targets(self, Y: FloatArray) -> FloatArray:
        return Y[:, None]

    def value(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> float:  # type: ignore[override]
        return sum((risk.value() for risk in self._risks(y, f, weight)), 0.0)

    def gradient(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> FloatArray:  # type: ignore[override]
        found = self.curvature(y, f, weight)
        return found - weight if y.ndim == 1 else found - weight * y[:, 1]

    def curvature(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> FloatArray:
        """h, the expected number of events of every sample."""
        found = np.zeros(len(f))
        for risk in self._risks(y, f, weight):
            found[risk.rows] = risk.expected()
        return found

    def hessian_product(self, y: FloatArray, f: FloatArray, weight: FloatArray, v: FloatArray) -> FloatArray:
        found = np.zeros(len(f))
        for risk in self._risks(y, f, weight):
            found[risk.rows] = risk.hessian_product(v[risk.rows])
        return found

    def least(self, y: FloatArray, weight: FloatArray) -> float:
        """The likelihood of events that everybody else is sure to have later: only ties are left.

        sum_t W_t log W_t, with W_t the weight of the events at time t; with Efron's rule the sum of
        log(W_t - l).
        """
        return sum((risk.least() for risk in self._risks(y, np.zeros(len(y)), weight)), 0.0)

    def _risks(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> Iterator[RiskSets]:
        """Those of every stratum with an event."""
        for rows, time, event in strata(y):
            if event.any():
                yield RiskSets(rows, time, event, f[rows], weight[rows], self.ties == "efron")


def strata(y: FloatArray) -> Iterator[tuple[IntArray, FloatArray, BoolArray]]:
    """Rows, times and events of every stratum of survival targets.

    Examples
    --------
    >>> [rows.tolist() for rows, _, _ in strata(np.array([[1.0, 1, 7], [2.0, 0, 5], [3.0, 1, 7]]))]
    [[1], [0, 2]]
    """
    columns = y[:, None] if y.ndim == 1 else y
    event = columns[:, 1] > 0 if columns.shape[1] > 1 else np.ones(len(y), dtype=bool)
    stratum = columns[:, 2] if columns.shape[1] > 2 else np.zeros(len(y))
    for one in np.unique(stratum):
        rows = np.flatnonzero(stratum == one)
        yield rows, columns[rows, 0], event[rows]


class RiskSets:
    """The samples at risk at every time with an event, from the last time to the first.

    Parameters
    ----------
    rows : ndarray of int of shape (n,)
        Samples of a stratum.
    time, event, f, weight : ndarray of shape (n,)
        Theirs, some of them events; weights are positive.
    efron : bool, default=False

    Attributes
    ----------
    rows : ndarray of int of shape (n,)
        The samples, ordered by time.
    times, deaths : ndarray of shape (n_times,)
        Times with an event, and the weight of the events at each.
    log_total : ndarray of shape (n_times,)
        log sum_{j at risk} w_j exp(f_j).

    Examples
    --------
    >>> risk = RiskSets(np.arange(3), np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.zeros(3), np.ones(3))
    >>> risk.times, risk.deaths, np.exp(risk.log_total).round(6)
    (array([3., 1.]), array([1., 1.]), array([1., 3.]))
    """

    def __init__(
        self,
        rows: IntArray,
        time: FloatArray,
        event: BoolArray,
        f: FloatArray,
        weight: FloatArray,
        efron: bool = False,
    ) -> None:
        order = np.argsort(-time, kind="stable")
        self.rows, self.f, self.weight = rows[order], f[order], weight[order]
        time, self.event = time[order], np.asarray(event)[order] > 0
        self.score = self.f + np.log(self.weight)
        new = np.diff(time) < 0.0
        place = np.append(0, np.cumsum(new))  # among all times
        last = np.append(np.flatnonzero(new), len(time) - 1)
        deaths = np.bincount(place, self.weight * self.event)
        there = np.flatnonzero(deaths > 0.0)
        self.times, self.deaths, self.last = time[last][there], deaths[there], last[there]
        # of every sample, the first of the times with an event that are no later: they are behind it
        self.first = np.searchsorted(there, place)
        self.tied = np.flatnonzero(self.event)
        self.tied_starts = np.flatnonzero(np.diff(self.first[self.tied], prepend=-1))
        self.log_total = self._total(self.score)
        self._terms(efron)

    def _terms(self, efron: bool) -> None:
        """Of each term its time, factor u and share c: L = sum u log(S - c D) - sum_events w f."""
        count = len(self.deaths)
        self.of, self.factor, self.share = np.arange(count), self.deaths, None
        self.log_tied: FloatArray | None = None
        if efron:
            if self.deaths.sum() > MOST_TERMS:
                raise ValueError(
                    f"Cox(ties='efron') has a term for each unit of weight of the events, and these weigh "
                    f"{self.deaths.sum():.3g} together: pass ties='breslow', or smaller sample weights."
                )
            numbers = np.ceil(self.deaths).astype(int)
            self.of = np.repeat(np.arange(count), numbers)
            self.starts = np.cumsum(numbers) - numbers
            place = np.arange(len(self.of)) - self.starts[self.of]
            weight = self.deaths[self.of]
            self.factor, self.share = np.minimum(1.0, weight - place), place / weight
            self.log_tied = self._tied(self.score)
        self.log_left = self._left(self.log_total, self.log_tied)

    def _total(self, score: FloatArray) -> FloatArray:
        """log sum exp(score) over those at risk at every time."""
        return np.asarray(np.logaddexp.accumulate(score)[self.last])

    def _tied(self, score: FloatArray) -> FloatArray:
        """log sum exp(score) over the events at every time."""
        return np.asarray(np.logaddexp.reduceat(score[self.tied], self.tied_starts))

    def _left(self, total: FloatArray, tied: FloatArray | None) -> FloatArray:
        """log(S - c D) of every term from the logarithms of S and D."""
        whole = total[self.of]
        if tied is None or self.share is None:
            return whole
        part = tied[self.of]
        below = np.subtract(part, whole, out=np.full_like(whole, -np.inf), where=part > -np.inf)
        return np.asarray(whole + np.log1p(-self.share * np.exp(np.minimum(below, 0.0))))

    def _spread(self, log_terms: FloatArray) -> FloatArray:
        """sum over terms of x times the weight of a sample in them, w exp(f) or (1 - c) w exp(f)."""
        sums = log_terms if self.share is None else np.logaddexp.reduceat(log_terms, self.starts)
        behind = np.append(np.logaddexp.accumulate(sums[::-1])[::-1], -np.inf)
        found = np.exp(self.score + behind[self.first])
        if self.share is not None:
            log_share = np.log(self.share, out=np.full(len(self.share), -np.inf), where=self.share > 0.0)
            own = np.logaddexp.reduceat(log_terms + log_share, self.starts)
            found[self.tied] -= np.exp(self.score[self.tied] + own[self.first[self.tied]])
        return np.asarray(found)

    def value(self) -> float:
        """L of the stratum."""
        return float(self.factor @ self.log_left - (self.weight * self.event) @ self.f)

    def expected(self) -> FloatArray:
        """h."""
        return self._spread(np.log(self.factor) - self.log_left)

    def hessian_product(self, v: FloatArray) -> FloatArray:
        """H v = H (v - min v), whose terms are not negative."""
        v = v - v.min()
        score = self.score + np.log(v, out=np.full(len(v), -np.inf), where=v > 0.0)
        mean = self._left(self._total(score), None if self.share is None else self._tied(score))
        mean = mean - self.log_left  # log p'v of every term
        return self.expected() * v - self._spread(np.log(self.factor) + mean - self.log_left)

    def least(self) -> float:
        """L where nobody else is at risk."""
        log_deaths = np.log(self.deaths)
        return float(self.factor @ self._left(log_deaths, None if self.share is None else log_deaths))
