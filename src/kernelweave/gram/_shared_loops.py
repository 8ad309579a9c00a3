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
def _gaussian(d, e, scratch, gamma, power, size):  # type: ignore[no-untyped-def]
    """e = exp(-gamma d), or e^power of what e holds when `power` is not 0."""
    if power:
        raise_to(e, scratch, power, size)
        return
    for j in range(size):
        e[j] = exp(-gamma * d[j])


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def add_gaussians(D, gammas, powers, weights, out, lower):  # type: ignore[no-untyped-def]
    """out += sum_m w_m exp(-gamma_m D): a row at a time, so that no kernel is stored."""
    width = D.shape[1]
    e, scratch = np.empty(width, D.dtype), np.empty(width, D.dtype)
    for i in range(D.shape[0]):
        d, o, size = D[i], out[i], (i + 1 if lower else width)
        for m in range(gammas.shape[0]):
            _gaussian(d, e, scratch, gammas[m], powers[m], size)
            weight = weights[m]
            for j in range(size):
                o[j] += weight * e[j]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def inner_gaussians(D, gammas, powers, W, out, lower):  # type: ignore[no-untyped-def]
    """out_m += sum_ij W_ij exp(-gamma_m D_ij)."""
    width = D.shape[1]
    e, scratch = np.empty(width, D.dtype), np.empty(width, D.dtype)
    for i in range(D.shape[0]):
        d, w, size = D[i], W[i], (i + 1 if lower else width)
        for m in range(gammas.shape[0]):
            _gaussian(d, e, scratch, gammas[m], powers[m], size)
            total = 0.0
            for j in range(size):
                total += w[j] * e[j]
            out[m] += total


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def gaussian_values(D, gamma, out):  # type: ignore[no-untyped-def]
    """out = exp(-gamma D)."""
    for i in range(D.shape[0]):
        d, o = D[i], out[i]
        for j in range(d.shape[0]):
            o[j] = exp(-gamma * d[j])


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def polynomial_values(products, gamma, coef0, degree, out):  # type: ignore[no-untyped-def]
    """out = (gamma x'z + coef0)^degree."""
    width = products.shape[1]
    scratch = np.empty(width)
    for i in range(products.shape[0]):
        p, o = products[i], out[i]
        for j in range(width):
            o[j] = gamma * p[j] + coef0
        raise_to(o, scratch, degree, width)
