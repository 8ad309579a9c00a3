"""Compiled loops over the comparable pairs of samples, in O(n log n)."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def pair_sums(f, order, rank, event, A):  # type: ignore[no-untyped-def]
    """Sums of A, (n, k), over the partners of every sample in pairs with 1 - f_i + f_j > 0.

    A pair is a sample i with an event and a sample j of larger rank. Samples come in the `order` of f, and a
    tree over the ranks (Fenwick 1994) holds those that are near enough: of every i the j, and then of every j
    the i. All terms are added, none is taken away again.
    """
    n, k = A.shape
    top = rank.max() + 1
    later, earlier = np.zeros((n, k)), np.zeros((n, k))
    tree, place = np.zeros((top + 1, k)), n - 1
    for step in range(n - 1, -1, -1):  # j with f_j > f_i - 1, by falling rank
        i = order[step]
        if not event[i]:
            continue
        edge = f[i] - 1.0
        while place >= 0 and f[order[place]] > edge:
            j = order[place]
            at = top - rank[j]
            while at <= top:
                for c in range(k):
                    tree[at, c] += A[j, c]
                at += at & -at
            place -= 1
        at = top - rank[i] - 1
        while at > 0:
            for c in range(k):
                later[i, c] += tree[at, c]
            at -= at & -at
    tree[:] = 0.0
    place = 0
    for step in range(n):  # i with f_i - 1 < f_j, by rising rank
        j = order[step]
        while place < n and f[order[place]] - 1.0 < f[j]:
            i = order[place]
            if event[i]:
                at = rank[i] + 1
                while at <= top:
                    for c in range(k):
                        tree[at, c] += A[i, c]
                    at += at & -at
            place += 1
        at = rank[j]
        while at > 0:
            for c in range(k):
                earlier[j, c] += tree[at, c]
            at -= at & -at
    return later, earlier
