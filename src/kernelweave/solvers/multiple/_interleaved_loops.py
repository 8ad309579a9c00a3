"""Compiled update of the products K_m alpha after a few entries of alpha have changed."""

from __future__ import annotations

import numba

# sums may be reordered to use vector registers; NaN and infinity keep their meaning
FAST = {"reassoc", "contract", "nsz"}


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def add_rows(out, K, rows, coefficients):
    """out += sum_q coefficients[q] K[rows[q]], four rows at a time, none of them copied."""
    whole = rows.shape[0] - rows.shape[0] % 4
    for q in range(0, whole, 4):
        a, b, c, d = K[rows[q]], K[rows[q + 1]], K[rows[q + 2]], K[rows[q + 3]]
        wa, wb, wc, wd = coefficients[q], coefficients[q + 1], coefficients[q + 2], coefficients[q + 3]
        for j in range(out.shape[0]):
            out[j] += wa * a[j] + wb * b[j] + wc * c[j] + wd * d[j]
    for q in range(whole, rows.shape[0]):
        a, wa = K[rows[q]], coefficients[q]
        for j in range(out.shape[0]):
            out[j] += wa * a[j]
