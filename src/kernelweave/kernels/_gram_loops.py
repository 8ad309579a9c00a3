"""Compiled loop over a square matrix."""

from __future__ import annotations

import numba
import numpy as np


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
