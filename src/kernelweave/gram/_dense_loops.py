"""Compiled loops over symmetric matrices; where they can, they read only one triangle."""

from __future__ import annotations

import numba
import numpy as np

# sums may be reordered to use vector registers; NaN and infinity keep their meaning
FAST = {"reassoc", "contract", "nsz"}

MIRROR_ROWS = 64  # sides of the tiles that are transposed: two of them stay in the cache


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def add_lower(out, K, weight, start, stop):  # type: ignore[no-untyped-def]
    """out += weight * K on rows start..stop, columns up to the diagonal."""
    for i in range(start, stop):
        for j in range(i + 1):
            out[i, j] += weight * K[i, j]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def add_lower_eight(out, A, B, C, D, E, F, G, H, w, start, stop):  # type: ignore[no-untyped-def]
    """`add_lower` for eight matrices at once: `out` is read and written once instead of eight times."""
    w0, w1, w2, w3, w4, w5, w6, w7 = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
    for i in range(start, stop):
        o, a, b, c, d, e, f, g, h = out[i], A[i], B[i], C[i], D[i], E[i], F[i], G[i], H[i]
        for j in range(i + 1):
            o[j] += (
                w0 * a[j] + w1 * b[j] + w2 * c[j] + w3 * d[j] + w4 * e[j] + w5 * f[j] + w6 * g[j] + w7 * h[j]
            )


@numba.njit(cache=True, nogil=True)
def mirror(out, start, stop):  # type: ignore[no-untyped-def]
    """Copy rows start..stop of the lower triangle onto the upper one, tile by tile."""
    for j0 in range(0, stop, MIRROR_ROWS):
        for i in range(start, stop):
            for j in range(j0, min(j0 + MIRROR_ROWS, i)):
                out[j, i] = out[i, j]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _prefix(row, alpha, start, stop):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(start, stop):
        total += row[j] * alpha[j]
    return total


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def quad_rows(K, support, alpha):  # type: ignore[no-untyped-def]
    """alpha' K alpha = sum_i alpha_i (2 sum_{j<i} K_ij alpha_j + K_ii alpha_i), i in `support`.

    Reads whole row prefixes, four rows at a time; `alpha` is complete, `support` increasing.
    """
    total, size = 0.0, support.shape[0]
    whole = size - size % 4
    for s in range(0, whole, 4):
        i0, i1, i2, i3 = support[s], support[s + 1], support[s + 2], support[s + 3]
        r0, r1, r2, r3 = K[i0], K[i1], K[i2], K[i3]
        t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
        for j in range(i0):
            a = alpha[j]
            t0 += r0[j] * a
            t1 += r1[j] * a
            t2 += r2[j] * a
            t3 += r3[j] * a
        t1 += _prefix(r1, alpha, i0, i1)
        t2 += _prefix(r2, alpha, i0, i2)
        t3 += _prefix(r3, alpha, i0, i3)
        total += alpha[i0] * (2.0 * t0 + r0[i0] * alpha[i0]) + alpha[i1] * (2.0 * t1 + r1[i1] * alpha[i1])
        total += alpha[i2] * (2.0 * t2 + r2[i2] * alpha[i2]) + alpha[i3] * (2.0 * t3 + r3[i3] * alpha[i3])
    for s in range(whole, size):
        i = support[s]
        total += alpha[i] * (2.0 * _prefix(K[i], alpha, 0, i) + K[i, i] * alpha[i])
    return total


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def quad_gather(K, support, alpha):  # type: ignore[no-untyped-def]
    """The same, picking single entries: for a support so small that most of a row is not needed."""
    total = 0.0
    for a in range(support.shape[0]):
        i = support[a]
        row = 0.0
        for b in range(a):
            row += K[i, support[b]] * alpha[support[b]]
        total += alpha[i] * (2.0 * row + K[i, i] * alpha[i])
    return total


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def add_product(out, K, rows, weight, alpha):  # type: ignore[no-untyped-def]
    """out += weight * K[rows] alpha, without copying the rows."""
    for a in range(rows.shape[0]):
        out[a] += weight * _prefix(K[rows[a]], alpha, 0, alpha.shape[0])


@numba.njit(cache=True, nogil=True)
def take_square(K, samples):  # type: ignore[no-untyped-def]
    """K restricted to `samples` on both axes."""
    size = samples.shape[0]
    part = np.empty((size, size), K.dtype)
    for a in range(size):
        row = K[samples[a]]
        for b in range(size):
            part[a, b] = row[samples[b]]
    return part
