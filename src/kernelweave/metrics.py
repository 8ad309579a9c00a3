"""Metrics of predicted survival: concordance of risks, Brier scores of curves; and curves of groups."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2
from sklearn.utils.validation import check_consistent_length

from ._censored import survival_array
from ._pairs import halvings, ranks
from ._typing import BoolArray, FloatArray, IntArray

__all__ = [
    "LogRank",
    "SurvivalScorer",
    "brier_scorer",
    "brier_scores",
    "concordance_harrell",
    "concordance_jackknife",
    "concordance_uno",
    "harrell_scorer",
    "integrated_brier",
    "kaplan_meier",
    "log_rank",
    "uno_scorer",
]


#: samples up to which a table of all pairs is the fastest
FEW = 200


def concordance_harrell(event: Any, time: Any, risk: Any, sample_weight: Any = None) -> float:
    """Harrell's concordance: share of comparable pairs in which the first to fail has the larger risk.

        C = sum_ij w_i w_j H(r_i - r_j) / sum_ij w_i w_j  over pairs (i, j) with event_i and t_i < t_j,
        or t_i = t_j and j censored,

    where H is 1 for positive numbers, 0 for negative ones and 1/2 at 0. Two events at one time are not
    compared. Harrell, Lee & Mark (1996). All pairs are counted in O(n log n).

    Parameters
    ----------
    event : array-like of shape (n,)
        Whether the event was seen (True, 1) or the sample was censored (False, 0).
    time : array-like of shape (n,)
        Time of the event, or of censoring.
    risk : array-like of shape (n,)
        Predictions, larger for earlier events.
    sample_weight : array-like of shape (n,), optional
        A sample of weight 2 counts as two equal samples.

    Returns
    -------
    float
        Between 0 and 1; nan where no pair can be compared.

    Examples
    --------
    >>> concordance_harrell([True, True, False, True], [1.0, 2.0, 3.0, 4.0], [4.0, 1.0, 2.0, 1.0])
    0.7
    """
    event, time, risk, weight = _checked(event, time, risk, sample_weight)
    return _concordance(event, time, risk, weight, np.where(event, weight, 0.0))


def concordance_uno(
    event: Any, time: Any, risk: Any, tau: float | None = None, train: Any = None, sample_weight: Any = None
) -> float:
    """Uno's concordance: Harrell's with pairs weighted by how likely it was to see them.

        C = sum_ij w_i w_j H(r_i - r_j) / G(t_i)^2 / sum_ij w_i w_j / G(t_i)^2

    over the pairs of `concordance_harrell` with t_i < tau, where G(t) is the probability of not being
    censored up to t (Kaplan-Meier with the roles of events and censoring exchanged). Unlike Harrell's, its
    limit does not depend on how samples were censored. Uno, Cai, Pencina, D'Agostino & Wei (2011).

    Parameters
    ----------
    event, time, risk, sample_weight
        As in `concordance_harrell`.
    tau : float, optional
        Events from here on do not count; by default all do.
    train : tuple of (event, time), optional
        The samples that G is taken from; these samples by default.

    Examples
    --------
    >>> event, time, risk = [True, False, True, True], [1.0, 2.0, 3.0, 4.0], [4.0, 1.0, 1.0, 2.0]
    >>> round(concordance_uno(event, time, risk), 4)  # pairs of the event at 3 count (3 / 2)^2 times
    0.5714
    """
    event, time, risk, weight = _checked(event, time, risk, sample_weight)
    counted = event if tau is None else event & (time < tau)
    G = _censoring(train, event, time, weight)(time)
    _refuse_unseen(G[counted], "tau")
    own = np.where(counted, weight / np.where(counted, G, 1.0) ** 2, 0.0)
    return _concordance(event, time, risk, weight, own)


def _concordance(
    event: BoolArray, time: FloatArray, risk: FloatArray, weight: FloatArray, own: FloatArray
) -> float:
    """Share of the pairs of samples, of weight own_i w_j, that are in the right order."""
    rank = ranks(event, time)
    pairs = float(own @ _later(rank, weight))
    return float(own @ _outranked(rank, risk, weight)) / pairs if pairs > 0.0 else float("nan")


def concordance_jackknife(event: Any, time: Any, risk: Any) -> FloatArray:
    """One number per sample: their mean is Harrell's concordance, and the error of the mean its error.

        C + n dC/dw_i = C + n (A_i - C B_i) / B,   B = 1/2 sum_i B_i

    with A_i of the B_i comparable pairs of sample i in the right order (those of equal risks count half): the
    infinitesimal jackknife. The standard error of C is the deviation of these numbers over the square root
    of n; for the difference of two models on the same samples, take the differences of their numbers.

    Parameters
    ----------
    event, time, risk
        As in `concordance_harrell`.

    Returns
    -------
    ndarray of shape (n,)
        All nan where no pair can be compared.

    Examples
    --------
    >>> event, time, risk = [True, True, False, True], [1.0, 2.0, 3.0, 4.0], [4.0, 1.0, 2.0, 1.0]
    >>> concordance_jackknife(event, time, risk)
    array([1.42, 0.22, 0.38, 0.78])
    >>> concordance_harrell(event, time, risk)
    0.7
    """
    event, time, risk, weight = _checked(event, time, risk, None)
    rank, own, n = ranks(event, time), event.astype(float), len(risk)
    back = rank.max(initial=0) - rank
    pairs = own * _later(rank, weight) + _later(back, own)
    right = own * _outranked(rank, risk, weight) + _outranked(back, -risk, own)
    if not pairs.any():
        return np.full(n, np.nan)
    share = right.sum() / pairs.sum()
    return np.asarray(share + 2.0 * n * (right - share * pairs) / pairs.sum())


def _later(rank: IntArray, weight: FloatArray) -> FloatArray:
    """For every sample the weight of the samples of larger rank."""
    return np.asarray((weight.sum() - np.cumsum(np.bincount(rank, weight)))[rank])


def _outranked(rank: IntArray, risk: FloatArray, weight: FloatArray) -> FloatArray:
    """For every sample the weight of samples of larger rank and smaller risk; equal risks count half."""
    if len(rank) <= FEW:
        later, apart = rank > rank[:, None], np.sign(risk[:, None] - risk)
        return np.asarray(np.where(later, 0.5 * (1.0 + apart), 0.0) @ weight)
    both = (_later_before(np.lexsort((among, risk)), rank, weight) for among in (rank, -rank))
    return np.asarray(0.5 * sum(both))


def _later_before(order: IntArray, rank: IntArray, weight: FloatArray) -> FloatArray:
    """For every sample the weight of samples of larger rank that stand before it in the order."""
    found = np.zeros(len(rank))
    for own, start, late in halvings(rank, order):
        ahead = np.where(late, weight[own], 0.0)
        before = np.cumsum(ahead) - ahead
        found[own] += np.where(late, 0.0, before - before[start])
    return found


# -- survival curves ----------------------------------------------------------------------------------


def brier_scores(
    event: Any, time: Any, survival: Any, times: Any, train: Any = None, sample_weight: Any = None
) -> FloatArray:
    """Mean squared error of predicted survival at some times, corrected for censoring.

        BS(t) = mean_i  S_i(t)^2 event_i [t_i <= t] / G(t_i)  +  (1 - S_i(t))^2 [t_i > t] / G(t)

    with G as in `concordance_uno`: a sample censored before t says nothing about t, and samples like it that
    were seen count in its place. Graf, Schmoor, Sauerbrei & Schumacher (1999).

    Parameters
    ----------
    event, time, sample_weight
        As in `concordance_harrell`.
    survival : array-like of shape (n, n_times)
        Predicted probabilities S_i(t) of no event up to each of the `times`.
    times : array-like of shape (n_times,)
        Rising, and within the range of the samples' times.
    train : tuple of (event, time), optional
        The samples that G is taken from; these samples by default.

    Returns
    -------
    ndarray of shape (n_times,)
        0 is best; S = 1/2 for everybody gives 1/4.

    Examples
    --------
    >>> brier_scores([True, True, False], [1.0, 2.0, 3.0], [[0.5, 0.2], [0.5, 0.2], [0.8, 0.8]], [1.0, 2.0])
    array([0.18, 0.04])
    """
    event, time, weight = _checked_times(event, time, sample_weight)
    times = _numbers("times", times)
    survival = np.asarray(survival, dtype=np.float64)
    if survival.shape != (len(time), len(times)) or not ((survival >= 0) & (survival <= 1)).all():
        raise ValueError(
            f"survival must be probabilities of shape {(len(time), len(times))}, a row for every sample and "
            f"a column for every time; it has shape {survival.shape}."
        )
    if len(times) == 0 or (np.diff(times) <= 0).any() or times[0] < time.min() or times[-1] > time.max():
        raise ValueError(
            f"times must rise, within the times of the samples, {time.min():g} to {time.max():g}."
        )
    G = _censoring(train, event, time, weight)
    of_own, of_times = G(time), G(times)
    before, after = time[:, None] <= times, time[:, None] > times
    cases = before & event[:, None]
    _refuse_unseen(of_own[cases.any(axis=1)], "times")
    _refuse_unseen(of_times[after.any(axis=0)], "times")
    with np.errstate(divide="ignore"):
        early = np.where(cases, survival**2 / of_own[:, None], 0.0)
        late = np.where(after, (1.0 - survival) ** 2 / of_times, 0.0)
    return np.asarray(np.average(early + late, axis=0, weights=weight))


def integrated_brier(
    event: Any, time: Any, survival: Any, times: Any, train: Any = None, sample_weight: Any = None
) -> float:
    """The mean of `brier_scores` over time, by the trapezoidal rule: 0 is best.

        IBS = int_(t_1)^(t_T) BS(t) dt / (t_T - t_1)

    Parameters
    ----------
    event, time, survival, times, train, sample_weight
        As in `brier_scores`; two times at least.

    Examples
    --------
    >>> S = [[0.5, 0.2], [0.5, 0.2], [0.8, 0.8]]
    >>> round(integrated_brier([True, True, False], [1.0, 2.0, 3.0], S, [1.0, 2.0]), 4)
    0.11
    """
    scores, times = brier_scores(event, time, survival, times, train, sample_weight), _numbers("times", times)
    if len(times) < 2:
        raise ValueError("times must be two or more, to take a mean over.")
    return float(np.trapezoid(scores, times) / (times[-1] - times[0]))


def kaplan_meier(event: Any, time: Any, sample_weight: Any = None) -> tuple[FloatArray, FloatArray]:
    """The Kaplan-Meier curve: S(t) = product over t_k <= t of 1 - events at t_k / samples at risk at t_k.

    Parameters
    ----------
    event, time, sample_weight
        As in `concordance_harrell`.

    Returns
    -------
    times : ndarray of shape (n_times,)
        The different times, of events and of censoring.
    survival : ndarray of shape (n_times,)
        S from each time on; before the first it is 1.

    Examples
    --------
    >>> kaplan_meier([True, False, True], [1.0, 2.0, 3.0])
    (array([1., 2., 3.]), array([0.66666667, 0.66666667, 0.        ]))
    """
    times, events, _, at_risk = _counts(*_checked_times(event, time, sample_weight))
    return times, _product_limit(events, at_risk)


class LogRank(NamedTuple):
    """A log-rank test of two groups or more.

    Attributes
    ----------
    statistic : float
        Chi-squared, if the groups do not differ, with one degree of freedom fewer than there are groups.
    p_value : float
    observed, expected : ndarray of shape (n_groups,)
        Events of every group: those seen, and those expected if all groups had the same hazard.
    """

    statistic: float
    p_value: float
    observed: FloatArray
    expected: FloatArray


def log_rank(event: Any, time: Any, group: Any) -> LogRank:
    """Test whether groups have the same survival (Mantel 1966; Peto & Peto 1972).

    At each time of an event, with d events among n at risk, n_g of them in group g, the events of the groups
    are drawn without replacement: d n_g / n are expected, with covariances

        d (n - d) / (n - 1) (n_g / n [g = h] - n_g n_h / n^2).

    Parameters
    ----------
    event, time
        As in `concordance_harrell`.
    group : array-like of shape (n,)
        Labels, at least two different ones.

    Returns
    -------
    LogRank
        Groups in the order of ``numpy.unique(group)``.

    Examples
    --------
    >>> found = log_rank([1, 1, 1, 1], [1.0, 2.0, 3.0, 4.0], ["a", "a", "b", "b"])
    >>> found.observed, round(found.p_value, 3)
    (array([2., 2.]), 0.09)
    """
    event, time, _ = _checked_times(event, time, None)
    check_consistent_length(time, group)
    labels, group = np.unique(np.asarray(group), return_inverse=True)
    if len(labels) < 2:
        raise ValueError("group has one label: a test needs two or more.")
    member = np.equal.outer(group, np.arange(len(labels))).astype(float)
    times, place = np.unique(time, return_inverse=True)
    leave, failed = (np.zeros((len(times), len(labels))) for _ in range(2))
    np.add.at(leave, place, member)
    np.add.at(failed, place, member * event[:, None])
    at_risk = leave[::-1].cumsum(axis=0)[::-1]
    n, d = at_risk.sum(axis=1), failed.sum(axis=1)
    share = at_risk / n[:, None]
    spread = d * (n - d) / np.maximum(n - 1.0, 1.0)
    V = np.diag(spread @ share) - (share.T * spread) @ share
    expected, observed = d @ share, failed.sum(axis=0)
    apart = (observed - expected)[:-1]
    statistic = float(apart @ np.linalg.pinv(V[:-1, :-1], hermitian=True) @ apart)
    return LogRank(statistic, float(chi2.sf(statistic, len(labels) - 1)), observed, expected)


def _counts(event: BoolArray, time: FloatArray, weight: FloatArray) -> tuple[FloatArray, ...]:
    """The different times, and at each the weight of events, of samples censored and of those at risk."""
    times, place = np.unique(time, return_inverse=True)
    every: FloatArray = np.bincount(place, weight).astype(float)
    events: FloatArray = np.bincount(place, weight * event).astype(float)
    return times, events, every - events, every[::-1].cumsum()[::-1]


def _product_limit(left: FloatArray, at_risk: FloatArray) -> FloatArray:
    share = np.divide(left, at_risk, out=np.zeros_like(at_risk), where=left > 0)
    return np.asarray(np.cumprod(np.maximum(1.0 - share, 0.0)))


def _censoring(train: Any, event: BoolArray, time: FloatArray, weight: FloatArray) -> Any:
    """G as a function of times; samples with an event at a time are not at risk of being censored then.

    nan where nothing is known: after the last of the samples, unless all are censored by then.
    """
    if train is not None:
        event, time = train
        event, time, weight = _checked_times(event, time, None)
    times, events, censored, at_risk = _counts(event, time, weight)
    # what is left after the events at the last time is rounding where all samples are events
    G = np.append(1.0, _product_limit(censored, np.maximum(at_risk - events, censored)))

    def at(when: FloatArray) -> FloatArray:
        found = G[np.searchsorted(times, when, side="right")]
        return np.where((when > times[-1]) & (found > 0.0), np.nan, found)

    return at


def _refuse_unseen(G: FloatArray, remedy: str) -> None:
    if not (G > 0.0).all():
        raise ValueError(
            "train: by some of these times all samples that the probability of censoring is estimated from "
            f"have been censored, or the last of them was seen earlier: pass smaller {remedy}."
        )


# -- scorers ------------------------------------------------------------------------------------------


#: times at which a Brier score is taken where none are named
N_TIMES = 20


def scored_times(time: FloatArray) -> FloatArray:
    """Times between the tenth and the ninetieth percentile of those given, all before the last of them.

    Examples
    --------
    >>> scored_times(np.arange(11.0))[[0, -1]]
    array([1., 9.])
    """
    low, high = np.quantile(time, [0.1, 0.9])
    times = np.linspace(low, high, N_TIMES) if low < high else np.array([low])
    return np.asarray(times[times < time.max()])


class SurvivalScorer:
    """A measure as a scorer: ``scoring=`` of `GridSearchCV`, `cross_val_score`, `MKLSurvivalCV`.

    Larger is better, so that a Brier score is taken with a minus sign. Censoring is estimated from the
    samples that are scored.

    Parameters
    ----------
    measure : {"harrell", "uno", "brier"}, default="harrell"
        `concordance_harrell` or `concordance_uno` of ``predict``, or minus `integrated_brier` of
        ``predict_survival_function``.
    tau : float, optional
        For "uno": events from here on do not count; by default those from the last time of the samples on.
    times : array-like of shape (n_times,), optional
        For "brier"; by default 20 between the tenth and the ninetieth percentile of the times of the samples.

    Examples
    --------
    >>> import kernelweave as kw
    >>> from sklearn.model_selection import cross_val_score
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2))
    >>> y = np.column_stack([np.ones(40), rng.exponential(np.exp(-3.0 * X[:, 0]))])  # event, time
    >>> model = kw.MKLSurvival(kw.kernels.Linear())
    >>> scores = cross_val_score(model, X, y, cv=2, scoring=SurvivalScorer("uno", tau=2.0))
    >>> bool(scores.min() > 0.6)
    True
    """

    def __init__(self, measure: str = "harrell", tau: float | None = None, times: Any = None) -> None:
        if measure not in ("harrell", "uno", "brier"):
            raise ValueError(f"measure={measure!r} must be one of 'harrell', 'uno', 'brier'.")
        self.measure = measure
        self.tau = tau
        self.times = times

    def __repr__(self) -> str:
        told = {"tau": self.tau, "times": self.times}
        more = "".join(f", {name}={value!r}" for name, value in told.items() if value is not None)
        return f"SurvivalScorer({self.measure!r}{more})"

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of a fitted estimator on samples, with their events and times."""
        known = survival_array(y)
        event, time = known["event"], known["time"]
        if self.measure == "brier":
            return -self._brier(estimator, X, event, time, sample_weight)
        risk = estimator.predict(X)
        if self.measure == "harrell":
            return concordance_harrell(event, time, risk, sample_weight)
        tau = float(time.max()) if self.tau is None else self.tau
        return concordance_uno(event, time, risk, tau, sample_weight=sample_weight)

    def _brier(self, estimator: Any, X: Any, event: BoolArray, time: FloatArray, weight: Any) -> float:
        if not hasattr(estimator, "predict_survival_function"):
            raise ValueError(
                f"scoring={self!r} needs survival curves, which {type(estimator).__name__} does not predict: "
                "pass MKLSurvival with Cox's loss, in a search of scikit-learn such as GridSearchCV."
            )
        times = scored_times(time) if self.times is None else self.times
        if len(times) < 2:
            return float("nan")
        curves = estimator.predict_survival_function(X)
        survival = np.array([curve(times) for curve in curves])
        return integrated_brier(event, time, survival, times, sample_weight=weight)


#: Harrell's concordance, Uno's, and minus the integrated Brier score, as scorers
harrell_scorer, uno_scorer, brier_scorer = map(SurvivalScorer, ("harrell", "uno", "brier"))


# -- input --------------------------------------------------------------------------------------------


def _checked_times(event: Any, time: Any, sample_weight: Any) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Events, times and weights as arrays of one length."""
    event, time, _, weight = _checked(event, time, time, sample_weight)
    return event, time, weight


def _checked(
    event: Any, time: Any, risk: Any, sample_weight: Any
) -> tuple[BoolArray, FloatArray, FloatArray, FloatArray]:
    """All four as arrays of one length, checked."""
    check_consistent_length(event, time, risk, sample_weight)
    event, risk = _events(event), _numbers("risk", risk)
    weight = np.ones(len(risk)) if sample_weight is None else _numbers("sample_weight", sample_weight)
    if (weight < 0.0).any():
        raise ValueError("sample_weight has negative entries: pass weights that are 0 or larger.")
    return event, _numbers("time", time), risk, weight


def _events(event: Any) -> BoolArray:
    event = np.asarray(event)
    if event.ndim != 1 or not np.isin(event, (0, 1)).all():
        raise ValueError(
            "event must be of shape (n,): True or 1 for an event, False or 0 for a censored time."
        )
    result: BoolArray = event.astype(bool)
    return result


def _numbers(name: str, values: Any) -> FloatArray:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be an array of shape (n,) of finite numbers.")
    return numbers
