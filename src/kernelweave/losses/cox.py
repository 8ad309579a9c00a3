"""Cox's partial likelihood: the order of events among the samples at risk."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache

import numpy as np

from .._typing import BoolArray, FloatArray, IntArray
from .joint import JointLoss, Product

#: how samples with an event at the same time share the likelihood
TIES = ("breslow", "efron")

#: differences of logarithms whose exponentials are normal numbers
WIDEST = 600.0

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
            found[risk.rows] = risk.expected
        return found

    def hessian_product(self, y: FloatArray, f: FloatArray, weight: FloatArray, v: FloatArray) -> FloatArray:
        return self.hessian_at(y, f, weight)(v)

    def hessian_at(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> Product:
        risks = list(self._risks(y, f, weight))

        def product(V: FloatArray) -> FloatArray:
            found = np.zeros(V.shape)
            for risk in risks:
                found[risk.rows] = risk.hessian_product(V[risk.rows])
            return found

        return product

    def least(self, y: FloatArray, weight: FloatArray) -> float:
        """The likelihood of events that everybody else is sure to have later: only ties are left.

        sum_t W_t log W_t, with W_t the weight of the events at time t; with Efron's rule the sum of
        log(W_t - l).
        """
        return sum((order.least() for order in self._orders(y, weight)), 0.0)

    def _orders(self, y: FloatArray, weight: FloatArray) -> tuple[Order, ...]:
        targets, case = (np.asarray(part, dtype=np.float64).tobytes() for part in (y, weight))
        return orders(targets, y.shape, case, self.ties == "efron")

    def _risks(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> Iterator[RiskSets]:
        """Those of every stratum with an event."""
        return (RiskSets(order, f[order.rows]) for order in self._orders(y, weight))


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


@lru_cache(maxsize=32)
def orders(y: bytes, shape: tuple[int, ...], weight: bytes, efron: bool) -> tuple[Order, ...]:
    """The orders of all strata with an event, of targets and weights as numbers of 8 bytes.

    A fit asks for them with every step, a search with every model of a fold.
    """
    targets, case = np.frombuffer(y).reshape(shape), np.frombuffer(weight)
    parts = ((rows, time, event) for rows, time, event in strata(targets) if event.any())
    return tuple(Order(rows, time, event, case[rows], efron) for rows, time, event in parts)


class Order:
    """What times and weights decide: samples from the last time to the first, and times with an event.

    Parameters
    ----------
    rows : ndarray of int of shape (n,)
        Samples of a stratum.
    time, event, weight : ndarray of shape (n,)
        Theirs, some of them events; weights are positive.
    efron : bool, default=False

    Attributes
    ----------
    rows, event, weight : ndarray of shape (n,)
        The samples, ordered by time.
    times, deaths : ndarray of shape (n_times,)
        Times with an event, and the weight of the events at each.
    of, factor, share : ndarray of shape (n_terms,)
        Of each term its time, factor u and share c (None for zeros): L = sum u log(S - c D) - sum_events w f.
    """

    def __init__(
        self, rows: IntArray, time: FloatArray, event: BoolArray, weight: FloatArray, efron: bool = False
    ) -> None:
        order = np.argsort(-time, kind="stable")
        self.rows, self.weight, self.log_weight = rows[order], weight[order], np.log(weight[order])
        time, self.event = time[order], np.asarray(event)[order] > 0
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
        self._terms(efron)
        self.log_factor = np.log(self.factor)

    def _terms(self, efron: bool) -> None:
        count = len(self.deaths)
        self.of, self.factor = np.arange(count), self.deaths
        self.share: FloatArray | None = None
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

    def total(self, score: FloatArray) -> FloatArray:
        """log sum exp(score) over those at risk at every time."""
        return np.asarray(running_sums(score)[self.last])

    def tied_total(self, score: FloatArray) -> FloatArray | None:
        """log sum exp(score) over the events at every time, where a term asks for it."""
        if self.share is None:
            return None
        return np.asarray(np.logaddexp.reduceat(score[self.tied], self.tied_starts))

    def left(self, total: FloatArray, tied: FloatArray | None) -> FloatArray:
        """log(S - c D) of every term from the logarithms of S and D."""
        if tied is None or self.share is None:
            return total
        whole, part = total[self.of], tied[self.of]
        below = np.subtract(part, whole, out=np.full_like(whole, -np.inf), where=part > -np.inf)
        return np.asarray(whole + np.log1p(-like(self.share, whole) * np.exp(np.minimum(below, 0.0))))

    def least(self) -> float:
        """L where nobody else is at risk."""
        log_deaths = np.log(self.deaths)
        return float(self.factor @ self.left(log_deaths, log_deaths))


class RiskSets:
    """The samples at risk at every time with an event, at predictions f.

    Parameters
    ----------
    order : Order
    f : ndarray of shape (n,)
        Of the samples of the stratum, in that order.

    Attributes
    ----------
    rows : ndarray of int of shape (n,)
        The samples.
    log_total : ndarray of shape (n_times,)
        log sum_{j at risk} w_j exp(f_j).

    Examples
    --------
    >>> order = Order(np.arange(3), np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.ones(3))
    >>> order.times, order.deaths, np.exp(RiskSets(order, np.zeros(3)).log_total).round(6)
    (array([3., 1.]), array([1., 1.]), array([1., 3.]))
    """

    def __init__(self, order: Order, f: FloatArray) -> None:
        self.order, self.rows, self.f = order, order.rows, f
        self.score = f + order.log_weight
        self.log_total = order.total(self.score)
        self.log_left = order.left(self.log_total, order.tied_total(self.score))

    def _spread(self, log_terms: FloatArray) -> FloatArray:
        """sum over terms of x times the weight of a sample in them, w exp(f) or (1 - c) w exp(f)."""
        order, share = self.order, self.order.share
        sums = log_terms if share is None else np.logaddexp.reduceat(log_terms, order.starts)
        behind = np.concatenate([running_sums(sums[::-1])[::-1], np.full_like(sums[:1], -np.inf)])
        score = like(self.score, sums)
        found = np.exp(score + behind[order.first])
        if share is not None:
            log_share = np.log(share, out=np.full(len(share), -np.inf), where=share > 0.0)
            own = np.logaddexp.reduceat(log_terms + like(log_share, sums), order.starts)
            found[order.tied] -= np.exp(score[order.tied] + own[order.first[order.tied]])
        return np.asarray(found)

    def value(self) -> float:
        """L of the stratum."""
        order = self.order
        return float(order.factor @ self.log_left - (order.weight * order.event) @ self.f)

    @cached_property
    def expected(self) -> FloatArray:
        """h."""
        return self._spread(self.order.log_factor - self.log_left)

    def hessian_product(self, V: FloatArray) -> FloatArray:
        """H v = H (v - min v), whose terms are not negative, of every column."""
        order, V = self.order, V - V.min(axis=0)
        score = like(self.score, V) + np.log(V, out=np.full_like(V, -np.inf), where=V > 0.0)
        log_left, log_factor = (like(part, V) for part in (self.log_left, order.log_factor))
        mean = order.left(order.total(score), order.tied_total(score)) - log_left  # log p'v of every term
        return like(self.expected, V) * V - self._spread(log_factor + mean - log_left)


def like(column: FloatArray, V: FloatArray) -> FloatArray:
    """A column that is the same for all columns of V."""
    return column if V.ndim == 1 else column[:, None]


def running_sums(x: FloatArray) -> FloatArray:
    """log sum_{i <= k} exp(x_i) for every k, of every column.

    By sums of exp(x - max x) where none of them is too small for that: they are all positive, and lose no
    digits.

    Examples
    --------
    >>> running_sums(np.log([1.0, 2.0, 3.0])).round(6), running_sums(np.array([-1e3, 0.0]))
    (array([0.      , 1.098612, 1.791759]), array([-1000.,     0.]))
    """
    top, low = float(x.max(initial=-np.inf)), float(x.min(initial=np.inf, where=x > -np.inf))
    if not 0.0 <= top - low <= WIDEST:
        return np.asarray(np.logaddexp.accumulate(x))
    with np.errstate(divide="ignore"):  # of terms that are zero
        return np.asarray(np.log(np.cumsum(np.exp(x - top), axis=0)) + top)
