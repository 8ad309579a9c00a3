"""Random parts of the samples: complementary pairs or single ones, by class and by group."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import IntArray

#: draws of groups before giving up on every class being in both halves
ATTEMPTS = 100


def draw_subsamples(
    n: int,
    n_subsamples: int,
    fraction: float,
    pairs: bool,
    strata: Any,
    groups: Any,
    random: np.random.RandomState,
) -> list[IntArray]:
    """Sorted row numbers of every sub-sample.

    Parameters
    ----------
    n : int
        Samples.
    n_subsamples : int
    fraction : float
        Share of the samples in each.
    pairs : bool
        Whether sub-samples 2k and 2k + 1 have no sample in common.
    strata : array-like of shape (n,) or None
        Classes, each of which is in every sub-sample in proportion.
    groups : array-like of shape (n,) or None
        Samples of one group are in the same sub-sample.
    random : RandomState

    Examples
    --------
    >>> from sklearn.utils import check_random_state
    >>> one, other = draw_subsamples(6, 2, 0.5, True, None, None, check_random_state(0))
    >>> sorted([*one.tolist(), *other.tolist()])
    [0, 1, 2, 3, 4, 5]
    """
    labels = np.zeros(n, dtype=int) if strata is None else np.unique(strata, return_inverse=True)[1]
    _check_counts(labels, fraction, pairs)
    parts: list[IntArray] = []
    while len(parts) < n_subsamples:
        halves = (
            _by_class(labels, fraction, random)
            if groups is None
            else _by_group(labels, groups, fraction, random)
        )
        parts.extend(halves if pairs else halves[:1])
    return parts[:n_subsamples]


def _check_counts(labels: IntArray, fraction: float, pairs: bool) -> None:
    """Refuse samples too few to be divided."""
    fewest = int(np.bincount(labels).min())
    if fewest < (2 if pairs else 1) or len(labels) * fraction < 2:
        raise ValueError(
            f"y: the smallest class has {fewest} of {len(labels)} samples, too few for sub-samples of "
            f"fraction={fraction}; join it with another class, or leave it out."
        )


def _by_class(labels: IntArray, fraction: float, random: np.random.RandomState) -> list[IntArray]:
    """Two parts, the same number of samples of a class in both; without overlap up to a half."""
    first, second = [], []
    for label in range(int(labels.max()) + 1):
        rows = random.permutation(np.flatnonzero(labels == label))
        size = max(1, int(fraction * len(rows)))
        first.append(rows[:size])
        second.append(rows[-size:])
    return [np.sort(np.concatenate(first)), np.sort(np.concatenate(second))]


def _by_group(
    labels: IntArray, groups: Any, fraction: float, random: np.random.RandomState
) -> list[IntArray]:
    """Two parts of whole groups, drawn until both have every class."""
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    n_groups, n_classes = int(codes.max()) + 1, int(labels.max()) + 1
    size = int(fraction * n_groups)
    for _ in range(ATTEMPTS if size else 0):
        order = random.permutation(n_groups)
        halves: list[IntArray] = [
            np.flatnonzero(np.isin(codes, part)) for part in (order[:size], order[-size:])
        ]
        if all(len(np.unique(labels[rows])) == n_classes for rows in halves):
            return halves
    raise ValueError(
        f"groups: {n_groups} groups cannot be divided so that both parts have every class; give finer groups."
    )
