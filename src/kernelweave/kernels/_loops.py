"""Compiled loops: over a square matrix, and over pairs of strings."""

from __future__ import annotations

import numba
import numpy as np
from numba import njit


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def both_products(K, v):
    """K v and K' v in one pass over K, four rows at a time."""
    n = K.shape[0]
    right, left = np.zeros(n), np.zeros(n)
    whole = n - n % 4
    for i in range(0, whole, 4):
        a, b, c, d = K[i], K[i + 1], K[i + 2], K[i + 3]
        va, vb, vc, vd = v[i], v[i + 1], v[i + 2], v[i + 3]
        ta, tb, tc, td = 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            x = v[j]
            ta += a[j] * x
            tb += b[j] * x
            tc += c[j] * x
            td += d[j] * x
            left[j] += a[j] * va + b[j] * vb + c[j] * vc + d[j] * vd
        right[i], right[i + 1], right[i + 2], right[i + 3] = ta, tb, tc, td
    for i in range(whole, n):
        for j in range(n):
            right[i] += K[i, j] * v[j]
            left[j] += K[i, j] * v[i]
    return right, left


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
