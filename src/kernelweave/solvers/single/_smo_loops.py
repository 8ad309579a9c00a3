"""Compiled sequential minimal optimisation on a dense Gram matrix.

    min_a  1/2 a' K a - linear' a + kink |a|_1     lower <= a <= upper,  sum(a) fixed (if tied)

A variable moves up at the price  G_i + up_i  and down at the price  G_i + down_i, where
G = K a - linear and up_i, down_i in {-kink, +kink} are the slopes of kink |a| on either side
(infinite at a bound). The point is optimal when no pair (i up, j down) gains:
max_i -(G_i + up_i) <= min_j -(G_j + down_j).
"""

from __future__ import annotations

import numba
import numpy as np

FLAT = 1e-12  # relative curvature below which the objective is taken as flat


@numba.njit(cache=True, nogil=True)
def _curvature(value, scale):
    """A curvature kept away from zero, where rounding would decide."""
    return max(value, FLAT * scale, 1e-100)


@numba.njit(cache=True, nogil=True)
def _slopes(a, lower, upper, kink):
    """Slopes of the kink term above and below a; infinite where a bound stops the move."""
    up = np.inf if a >= upper else (kink if a >= 0.0 else -kink)
    down = -np.inf if a <= lower else (kink if a > 0.0 else -kink)
    return up, down


@numba.njit(cache=True, nogil=True)
def _room_up(a, upper, kink):
    """How far a may rise before its bound, or zero, where the slope changes."""
    return -a if kink > 0.0 and a < 0.0 else upper - a


@numba.njit(cache=True, nogil=True)
def _room_down(a, lower, kink):
    return a if kink > 0.0 and a > 0.0 else a - lower


@numba.njit(cache=True, nogil=True)
def _steepest_up(G, up):
    best, value = -1, -np.inf
    for i in range(G.shape[0]):
        gain = -(G[i] + up[i])
        if gain > value:
            best, value = i, gain
    return best, value


@numba.njit(cache=True, nogil=True)
def _best_partner(i, rise, K, diagonal, G, down):
    """The j whose pair with i gains most by a second-order model, and the largest violation."""
    best, value, violation = -1, 0.0, -np.inf
    row = K[i]
    for j in range(G.shape[0]):
        slope = rise + G[j] + down[j]
        if slope > 0.0 and j != i:
            violation = max(violation, slope)
            scale = diagonal[i] + diagonal[j]
            gain = slope * slope / _curvature(scale - 2.0 * row[j], scale)
            if gain > value:
                best, value = j, gain
    return best, violation


@numba.njit(cache=True, nogil=True)
def solve_tied(K, diagonal, lower, upper, kink, a, G, eps, max_iter):
    """SMO with sum(a) fixed; changes a and G = K a - linear in place, returns the iterations."""
    n = a.shape[0]
    up, down = np.empty(n), np.empty(n)
    for i in range(n):
        up[i], down[i] = _slopes(a[i], lower[i], upper[i], kink)
    for iteration in range(max_iter):
        i, rise = _steepest_up(G, up)
        if i < 0:
            return iteration
        j, violation = _best_partner(i, rise, K, diagonal, G, down)
        if j < 0 or violation <= eps:
            return iteration
        scale = diagonal[i] + diagonal[j]
        curvature = _curvature(scale - 2.0 * K[i, j], scale)
        room_i, room_j = _room_up(a[i], upper[i], kink), _room_down(a[j], lower[j], kink)
        step = min((rise + G[j] + down[j]) / curvature, room_i, room_j)
        a[i] = _moved(a[i], step, room_i, upper[i], kink)
        a[j] = -_moved(-a[j], step, room_j, -lower[j], kink)
        for k in range(n):
            G[k] += step * (K[i, k] - K[j, k])
        up[i], down[i] = _slopes(a[i], lower[i], upper[i], kink)
        up[j], down[j] = _slopes(a[j], lower[j], upper[j], kink)
    return max_iter


@numba.njit(cache=True, nogil=True)
def _moved(a, step, room, upper, kink):
    """a + step, landing exactly on the bound or kink when the step takes all the room."""
    if step < room:
        return a + step
    return 0.0 if kink > 0.0 and a < 0.0 else upper


@numba.njit(cache=True, nogil=True)
def solve_free(K, diagonal, lower, upper, kink, a, G, eps, max_iter):
    """Coordinate descent without a sum constraint: the coordinate of largest second-order gain."""
    n = a.shape[0]
    for iteration in range(max_iter):
        best, value, direction, violation = -1, 0.0, 1.0, 0.0
        for i in range(n):
            up, down = _slopes(a[i], lower[i], upper[i], kink)
            slope = max(-(G[i] + up), G[i] + down)
            gain = slope * slope / _curvature(diagonal[i], diagonal[i])
            if slope > 0.0 and gain > value:
                best, value, direction = i, gain, 1.0 if -(G[i] + up) >= G[i] + down else -1.0
            violation = max(violation, slope)
        if best < 0 or violation <= eps:
            return iteration
        bound = upper[best] if direction > 0 else -lower[best]
        room = _room_up(direction * a[best], bound, kink)
        up, down = _slopes(a[best], lower[best], upper[best], kink)
        slope = -(G[best] + up) if direction > 0 else G[best] + down
        step = min(slope / _curvature(diagonal[best], diagonal[best]), room)
        a[best] = direction * _moved(direction * a[best], step, room, bound, kink)
        for k in range(n):
            G[k] += direction * step * K[best, k]
    return max_iter
