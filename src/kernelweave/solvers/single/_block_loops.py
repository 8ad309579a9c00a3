"""Compiled block descent on a dense Gram matrix: the dual variables of one sample at a time, exactly.

    min_a  1/2 sum_k a_k' (K + ridge) a_k - <linear, a>     u_i = C_i own_i - a_i >= 0,  sum(u_i) = C_i

In the variables u_i of one sample the objective is (K_ii + ridge)/2 |u_i|^2 plus a linear term, so its
minimum is the projection of a point onto a simplex.
"""

from __future__ import annotations

import numba
import numpy as np

FLAT = 1e-12  # relative curvature below which the objective is taken as flat


@numba.njit(cache=True, nogil=True)
def project(v, total):  # type: ignore[no-untyped-def]
    """Replace v by the nearest point of {u >= 0, sum(u) = total} (Michelot 1986)."""
    inside = v.shape[0]
    level = (v.sum() - total) / inside
    while True:
        rest, count = -total, 0
        for k in range(v.shape[0]):
            if v[k] > level:
                rest += v[k]
                count += 1
        if count >= inside or count == 0:  # more of them is rounding
            break
        inside, level = count, rest / count
    for k in range(v.shape[0]):
        v[k] = max(v[k] - level, 0.0)


@numba.njit(cache=True, nogil=True)
def sweeps(K, diagonal, ridge, C, own, a, G, eps, most):  # type: ignore[no-untyped-def]
    """Sweeps over the samples; changes a and G = (K + ridge) a - linear in place, returns how many.

    They end after `most` sweeps, or after a sweep in which no step was larger than the slope `eps` explains.
    """
    n, c = a.shape
    u, change = np.empty(c), np.empty(c)
    largest = diagonal.max() + ridge
    for sweep in range(most):
        steepest = 0.0
        for i in range(n):
            curvature = max(diagonal[i] + ridge, FLAT * largest, 1e-100)
            for k in range(c):
                u[k] = -a[i, k] + G[i, k] / curvature
            u[own[i]] += C[i]
            project(u, C[i])
            moved = 0.0
            for k in range(c):
                change[k] = (C[i] if k == own[i] else 0.0) - u[k] - a[i, k]
                moved = max(moved, abs(change[k]))
            if moved <= 1e-15 * C[i]:
                continue
            steepest = max(steepest, moved * curvature)
            for k in range(c):
                a[i, k] += change[k]
            for j in range(n):
                value = K[i, j] + ridge
                for k in range(c):
                    G[j, k] += value * change[k]
        if steepest <= eps:
            return sweep + 1
    return most
