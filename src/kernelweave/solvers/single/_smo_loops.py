"""Compiled sequential minimal optimisation on a dense Gram matrix.

    min_a  1/2 a' K a - linear' a + kink |a|_1     lower <= a <= upper,  sum(a) fixed (if tied)

A variable moves up at the price  G_i + up_i  and down at the price  G_i + down_i, where
G = K a - linear and up_i, down_i in {-kink, +kink} are the slopes of kink |a| on either side
(infinite at a bound). The point is optimal when no pair (i up, j down) gains:
max_i -(G_i + up_i) <= min_j -(G_j + down_j). Rows of K that are not yet made are made when they are needed,
if there is a `maker`.
"""

from __future__ import annotations

import numba
import numpy as np

from ..._instructions import LINE, fetch, larger
from ...gram._matrix_loops import make_row

FLAT = 1e-12  # relative curvature below which the objective is taken as flat

# sums may be reordered to use vector registers, and nothing is ever NaN; infinity keeps its meaning
FAST = {"nnan", "nsz", "reassoc", "contract"}

#: entries whose largest is found in vector registers, before its place is looked for; blocks are slices that
#: are indexed from 0, since what is read at an index that might be negative is read entry by entry
BLOCK = 512


@numba.njit(cache=True, nogil=True)
def _curvature(value, scale):  # type: ignore[no-untyped-def]
    """A curvature kept away from zero, where rounding would decide."""
    return max(value, FLAT * scale, 1e-100)


@numba.njit(cache=True, nogil=True)
def _slopes(a, lower, upper, kink):  # type: ignore[no-untyped-def]
    """Slopes of the kink term above and below a; infinite where a bound stops the move."""
    up = np.inf if a >= upper else (kink if a >= 0.0 else -kink)
    down = -np.inf if a <= lower else (kink if a > 0.0 else -kink)
    return up, down


@numba.njit(cache=True, nogil=True)
def _room_up(a, upper, kink):  # type: ignore[no-untyped-def]
    """How far a may rise before it reaches its bound, or zero, where the slope changes."""
    return -a if kink > 0.0 and a < 0.0 else upper - a


@numba.njit(cache=True, nogil=True)
def _room_down(a, lower, kink):  # type: ignore[no-untyped-def]
    return a if kink > 0.0 and a > 0.0 else a - lower


@numba.njit(cache=True, nogil=True)
def _fetch_block(row, start):  # type: ignore[no-untyped-def]
    """Bring a block of a row into the cache while others are worked on."""
    place = row.ctypes.data
    for at in range(start * row.itemsize, min(start + BLOCK, row.shape[0]) * row.itemsize, LINE):
        fetch(place + at)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _move_block(G, step, up_row, down_row, up):  # type: ignore[no-untyped-def]
    top = -np.inf
    for k in range(G.shape[0]):
        G[k] += step * (up_row[k] - down_row[k])
        top = larger(top, -(G[k] + up[k]))
    return top


@numba.njit(cache=True, nogil=True)
def _move(G, step, up_row, down_row, up):  # type: ignore[no-untyped-def]
    """G += step (up_row - down_row); the largest of -(G_i + up_i) then, and where its block begins.

    -1 where nothing may move up.
    """
    value, block = -np.inf, -1
    _fetch_block(down_row, BLOCK)
    for start in range(0, G.shape[0], BLOCK):
        some = slice(start, start + BLOCK)
        _fetch_block(down_row, start + 2 * BLOCK)
        top = _move_block(G[some], step, up_row[some], down_row[some], up[some])
        if top > value:
            value, block = top, start
    return value, block


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _gains_block(rise, own, row, diagonal, G, down, gains):  # type: ignore[no-untyped-def]
    top, violation = 0.0, 0.0
    for j in range(G.shape[0]):
        slope = larger(rise + G[j] + down[j], 0.0)
        scale = own + diagonal[j]
        curvature = larger(larger(scale - 2.0 * row[j], FLAT * scale), 1e-100)
        gains[j] = slope * slope / curvature
        top = larger(top, gains[j])
        violation = larger(violation, slope)
    return top, violation


@numba.njit(cache=True, nogil=True)
def _gains(rise, own, row, diagonal, G, down, gains):  # type: ignore[no-untyped-def]
    """The gain of every pair (i, j) in a second-order model, and the largest violation.

    Also the largest gain, and where its block begins; -1 where no pair gains.
    """
    value, block, violation = 0.0, -1, 0.0
    _fetch_block(row, BLOCK)
    for start in range(0, G.shape[0], BLOCK):
        some = slice(start, start + BLOCK)
        _fetch_block(row, start + 2 * BLOCK)
        parts = (row[some], diagonal[some], G[some], down[some], gains[some])
        top, worst = _gains_block(rise, own, *parts)
        violation = max(violation, worst)
        if top > value:
            value, block = top, start
    return violation, value, block


@numba.njit(cache=True, nogil=True)
def solve_tied(K, maker, diagonal, lower, upper, kink, a, G, eps, max_iter):  # type: ignore[no-untyped-def]
    """SMO with sum(a) fixed; changes a and G = K a - linear in place, returns the iterations."""
    n = a.shape[0]
    up, down, gains = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        up[i], down[i] = _slopes(a[i], lower[i], upper[i], kink)
    rise, i = _move(G, 0.0, diagonal, diagonal, up)
    for iteration in range(max_iter):
        while 0 <= i < n and -(G[i] + up[i]) != rise:
            i += 1
        if i < 0 or i >= n:
            return iteration
        make_row(K, i, maker)
        own, down[i] = down[i], -np.inf  # no pair with itself
        violation, gain, j = _gains(rise, diagonal[i], K[i], diagonal, G, down, gains)
        down[i] = own
        while 0 <= j < n and gains[j] != gain:
            j += 1
        if j < 0 or j >= n or violation <= eps:
            return iteration
        make_row(K, j, maker)
        scale = diagonal[i] + diagonal[j]
        curvature = _curvature(scale - 2.0 * K[i, j], scale)
        room_i, room_j = _room_up(a[i], upper[i], kink), _room_down(a[j], lower[j], kink)
        step = min((rise + G[j] + down[j]) / curvature, room_i, room_j)
        a[i] = _moved(a[i], step, room_i, upper[i], kink)
        a[j] = -_moved(-a[j], step, room_j, -lower[j], kink)
        up[i], down[i] = _slopes(a[i], lower[i], upper[i], kink)
        up[j], down[j] = _slopes(a[j], lower[j], upper[j], kink)
        rise, i = _move(G, step, K[i], K[j], up)
    return max_iter


@numba.njit(cache=True, nogil=True)
def _moved(a, step, room, upper, kink):  # type: ignore[no-untyped-def]
    """a + step, landing exactly on the bound or kink when the step takes all the room."""
    if step < room:
        return a + step
    return 0.0 if kink > 0.0 and a < 0.0 else upper


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _own_gains_block(G, up, down, curvature, gains):  # type: ignore[no-untyped-def]
    top, violation = 0.0, 0.0
    for i in range(G.shape[0]):
        slope = larger(larger(-(G[i] + up[i]), G[i] + down[i]), 0.0)
        gains[i] = slope * slope / curvature[i]
        top = larger(top, gains[i])
        violation = larger(violation, slope)
    return top, violation


@numba.njit(cache=True, nogil=True)
def _own_gains(G, up, down, curvature, gains):  # type: ignore[no-untyped-def]
    """Like `_gains`, for every variable that moves alone."""
    value, block, violation = 0.0, -1, 0.0
    for start in range(0, G.shape[0], BLOCK):
        some = slice(start, start + BLOCK)
        top, worst = _own_gains_block(G[some], up[some], down[some], curvature[some], gains[some])
        violation = max(violation, worst)
        if top > value:
            value, block = top, start
    return violation, value, block


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def solve_free(K, maker, diagonal, lower, upper, kink, a, G, eps, max_iter):  # type: ignore[no-untyped-def]
    """Coordinate descent without a sum constraint: the coordinate of largest second-order gain."""
    n = a.shape[0]
    up, down, curvature, gains = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        up[i], down[i] = _slopes(a[i], lower[i], upper[i], kink)
        curvature[i] = _curvature(diagonal[i], diagonal[i])
    for iteration in range(max_iter):
        violation, gain, i = _own_gains(G, up, down, curvature, gains)
        while 0 <= i < n and gains[i] != gain:
            i += 1
        if i < 0 or i >= n or violation <= eps:
            return iteration
        make_row(K, i, maker)
        rise, fall = -(G[i] + up[i]), G[i] + down[i]
        direction = 1.0 if rise >= fall else -1.0
        bound = upper[i] if direction > 0.0 else -lower[i]
        room = _room_up(direction * a[i], bound, kink)
        step = min(max(rise, fall) / curvature[i], room)
        a[i] = direction * _moved(direction * a[i], step, room, bound, kink)
        up[i], down[i] = _slopes(a[i], lower[i], upper[i], kink)
        for k in range(n):
            G[k] += direction * step * K[i, k]
    return max_iter
