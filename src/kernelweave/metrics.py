"""Metrics of predicted survival: how well risks order the times of events."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from ._typing import BoolArray, FloatArray, IntArray

__all__ = ["concordance_harrell"]


def concordance_harrell(event: Any, time: Any, risk: Any, sample_weight: Any = None) -> float:
    """Harrell's concordance: share of the comparable pairs in which who fails first has the larger risk.

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
    rank, own = _ranks(event, time), np.where(event, weight, 0.0)
    pairs = float(own @ (weight.sum() - np.cumsum(np.bincount(rank, weight)))[rank])
    if pairs <= 0.0:
        return float("nan")
    lower, upper = (  # those of equal risk are not before a sample, or are
        float(own @ _later_before(np.lexsort((among, risk)), rank, weight)) for among in (rank, -rank)
    )
    return 0.5 * (lower + upper) / pairs


def _ranks(event: BoolArray, time: FloatArray) -> IntArray:
    """Numbers in the order of the times: events of one time have one, those censored at it the next."""
    order = np.lexsort((~event, time))
    new = (np.diff(time[order]) > 0) | (event[order][:-1] & ~event[order][1:])
    rank = np.zeros(len(time), dtype=np.int64)
    rank[order[1:]] = np.cumsum(new)
    return rank


def _later_before(order: IntArray, rank: IntArray, weight: FloatArray) -> FloatArray:
    """For every sample the weight of those of larger rank that stand before it in the order.

    Two ranks differ first at one bit, from the highest: the samples that agree in all higher bits are a
    group, in which those with the bit are later than those without. Within its group each sample without it
    counts the weight ahead; then the groups are parted by the bit, and keep their order.
    """
    found, index = np.zeros(len(rank)), np.arange(len(rank))
    for bit in reversed(range(int(rank.max()).bit_length())):
        own = rank[order]
        group, late = own >> (bit + 1), (own >> bit) & 1
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        start = np.repeat(starts, np.diff(starts, append=len(rank)))
        before = np.cumsum(late * weight[order]) - late * weight[order]
        found[order] += (1 - late) * (before - before[start])
        ones = np.cumsum(late) - late
        ones -= ones[start]
        early = np.bincount(group, 1 - late)[group].astype(int)
        parted = np.empty_like(order)
        parted[start + np.where(late, early + ones, index - start - ones)] = order
        order = parted
    return found


def _checked(
    event: Any, time: Any, risk: Any, sample_weight: Any
) -> tuple[BoolArray, FloatArray, FloatArray, FloatArray]:
    """The four as arrays of one length, without surprises."""
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
    return event.astype(bool)


def _numbers(name: str, values: Any) -> FloatArray:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"{name} must be an array of shape (n,) of finite numbers.")
    return values
