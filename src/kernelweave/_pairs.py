"""Sums over the pairs of samples that two orders agree on, in O(n log n)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ._typing import BoolArray, IntArray


def halvings(rank: IntArray, order: IntArray) -> Iterator[tuple[IntArray, IntArray, BoolArray]]:
    """Parts in which every pair of different ranks meets once.

    Two ranks differ first at one bit, from the highest: items that agree in all higher bits are a group, in
    which those with the bit have the larger rank. Groups are parted by the bit, and keep their order.

    Parameters
    ----------
    rank : ndarray of int of shape (n,)
        Not negative.
    order : ndarray of int of shape (n,)
        The order in which the items of each group are kept.

    Yields
    ------
    order : ndarray of int of shape (n,)
        Items, group after group.
    start : ndarray of int of shape (n,)
        Where the group of each of them begins.
    late : ndarray of bool of shape (n,)
        Whether it has the bit.

    Examples
    --------
    >>> for order, start, late in halvings(np.array([0, 3, 2]), np.array([2, 1, 0])):
    ...     print(order, start, late.astype(int))
    [2 1 0] [0 0 0] [1 1 0]
    [0 2 1] [0 1 1] [0 0 1]
    """
    index = np.arange(len(rank))
    for bit in reversed(range(int(rank.max(initial=0)).bit_length())):
        own = rank[order]
        group, late = own >> (bit + 1), (own >> bit) & 1
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        sizes = np.diff(starts, append=len(rank))
        start = np.repeat(starts, sizes)
        yield order, start, late.astype(bool)
        ones = np.cumsum(late) - late
        ones -= ones[start]
        early = np.repeat(sizes - np.add.reduceat(late, starts), sizes)
        parted = np.empty_like(order)
        parted[start + np.where(late, early + ones, index - start - ones)] = order
        order = parted


def ranks(event: BoolArray, time: object) -> IntArray:
    """Ranks in the order of the times: events at one time share a rank, samples censored then have the next.

    A sample with an event is comparable with those of a larger rank.

    Examples
    --------
    >>> ranks(np.array([True, False, True, True]), np.array([1.0, 1.0, 1.0, 3.0]))
    array([0, 1, 0, 2])
    """
    t = np.asarray(time, dtype=np.float64)
    order = np.lexsort((~event, t))
    new = (np.diff(t[order]) > 0) | (event[order][:-1] & ~event[order][1:])
    rank = np.zeros(len(t), dtype=np.int64)
    rank[order[1:]] = np.cumsum(new)
    return rank
