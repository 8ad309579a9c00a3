"""Compiled loops over tiles of a quantity that many kernels share.

With `lower`, the tile lies on the diagonal and only entries up to its diagonal are wanted.
"""

from __future__ import annotations

import numba
import numpy as np

from ._exp import exp

# sums may be reordered to use vector registers; NaN and infinity keep their meaning
FAST = {"reassoc", "contract", "nsz"}


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def distances(products, left, right, out):  # type: ignore[no-untyped-def]
    """out_ij = max(0, ||x_i||^2 + ||z_j||^2 - 2 x_i'z_j)."""
    for i in range(products.shape[0]):
        p, o, a = products[i], out[i], left[i]
        for j in range(p.shape[0]):
            o[j] = max(a + right[j] - 2.0 * p[j], 0.0)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def direct_distances(X, Z, out):  # type: ignore[no-untyped-def]
    """out_ij = ||x_i - z_j||^2 from the differences, for a few rows: every z is read once."""
    for j in range(Z.shape[0]):
        z = Z[j]
        for i in range(X.shape[0]):
            x, total = X[i], 0.0
            for k in range(z.shape[0]):
                difference = np.float64(x[k]) - np.float64(z[k])
                total += difference * difference
            out[i, j] = total


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def raise_to(x, scratch, power, size):  # type: ignore[no-untyped-def]
    """x = x^power entry by entry, by squaring: the binary digits of `power` from the second on."""
    if power & (power - 1):
        for j in range(size):
            scratch[j] = x[j]
    top = 0
    while power >> (top + 1):
        top += 1
    for digit in range(top - 1, -1, -1):
        for j in range(size):
            x[j] *= x[j]
        if (power >> digit) & 1:
            for j in range(size):
                x[j] *= scratch[j]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _exponential(d, e, scratch, rate, power, size):  # type: ignore[no-untyped-def]
    """e = exp(rate d), or e^power of what e holds when `power` is not 0."""
    if power:
        raise_to(e, scratch, power, size)
        return
    for j in range(size):
        e[j] = exp(rate * d[j])


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def add_exponentials(D, rates, powers, weights, out, lower):  # type: ignore[no-untyped-def]
    """out += sum_m w_m exp(r_m D) (1 + c_m1 D + c_m2 D^2): a row at a time, so that no kernel is stored."""
    width = D.shape[1]
    e, scratch = np.empty(width, D.dtype), np.empty(width, D.dtype)
    for i in range(D.shape[0]):
        d, o, size = D[i], out[i], (i + 1 if lower else width)
        for m in range(rates.shape[0]):
            rate, first, second = rates[m]
            _exponential(d, e, scratch, rate, powers[m], size)
            weight = weights[m]
            if first == 0.0 and second == 0.0:
                for j in range(size):
                    o[j] += weight * e[j]
            else:
                for j in range(size):
                    o[j] += weight * (1.0 + d[j] * (first + d[j] * second)) * e[j]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def inner_exponentials(D, rates, powers, W, out, lower):  # type: ignore[no-untyped-def]
    """out_m += sum_ij W_ij K_m,ij of the same kernels."""
    width = D.shape[1]
    e, scratch = np.empty(width, D.dtype), np.empty(width, D.dtype)
    for i in range(D.shape[0]):
        d, w, size = D[i], W[i], (i + 1 if lower else width)
        for m in range(rates.shape[0]):
            rate, first, second = rates[m]
            _exponential(d, e, scratch, rate, powers[m], size)
            total = 0.0
            if first == 0.0 and second == 0.0:
                for j in range(size):
                    total += w[j] * e[j]
            else:
                for j in range(size):
                    total += w[j] * (1.0 + d[j] * (first + d[j] * second)) * e[j]
            out[m] += total


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def exponential_values(D, rates, out):  # type: ignore[no-untyped-def]
    """out = exp(r D) (1 + c_1 D + c_2 D^2)."""
    rate, first, second = rates
    for i in range(D.shape[0]):
        d, o = D[i], out[i]
        for j in range(d.shape[0]):
            o[j] = exp(rate * d[j])
        if first != 0.0 or second != 0.0:
            for j in range(d.shape[0]):
                o[j] *= 1.0 + d[j] * (first + d[j] * second)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def power_values(B, gamma, coef0, degree, out):  # type: ignore[no-untyped-def]
    """out = (gamma b + coef0)^degree."""
    width = B.shape[1]
    scratch = np.empty(width)
    for i in range(B.shape[0]):
        b, o = B[i], out[i]
        for j in range(width):
            o[j] = gamma * b[j] + coef0
        raise_to(o, scratch, degree, width)
