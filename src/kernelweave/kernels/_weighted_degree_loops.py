"""Compiled loops of the weighted degree kernel; imported when one is first evaluated."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _along(x, z, offset, by_run):
    """Sum of by_run[length of the run of matches x[l + offset] = z[l] that ends at l], over l."""
    total = 0.0
    run = 0
    longest = by_run.shape[0] - 1
    for position in range(max(0, -offset), min(z.shape[0], x.shape[0] - offset)):
        symbol = z[position]
        # 0 is the padding: it ends every run, its own among them
        run = min(run + 1, longest) if symbol != 0 and symbol == x[position + offset] else 0
        total += by_run[run]
    return total


@njit(cache=True, nogil=True)
def _pair(x, z, by_run, by_shift):
    total = by_shift[0] * _along(x, z, 0, by_run)
    for shift in range(1, by_shift.shape[0]):
        total += by_shift[shift] * (_along(x, z, shift, by_run) + _along(x, z, -shift, by_run))
    return total


@njit(cache=True, nogil=True)
def gram(X, Z, by_run, by_shift, symmetric):
    """Gram block of two matrices of symbols (strings in rows, padded with 0)."""
    K = np.empty((X.shape[0], Z.shape[0]))
    for i in range(X.shape[0]):
        for j in range(i if symmetric else 0, Z.shape[0]):
            K[i, j] = _pair(X[i], Z[j], by_run, by_shift)
            if symmetric:
                K[j, i] = K[i, j]
    return K


@njit(cache=True, nogil=True)
def diagonal(X, by_run, by_shift):
    """k(x_i, x_i) of every row."""
    values = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        values[i] = _pair(X[i], X[i], by_run, by_shift)
    return values
