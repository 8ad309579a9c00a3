"""Compiled loops over lower triangles stored row after row: K_ij at i (i + 1) / 2 + j, j <= i."""

from __future__ import annotations

import numba
import numpy as np

# sums may be reordered to use vector registers; NaN and infinity keep their meaning
FAST = {"reassoc", "contract", "nsz"}


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def store(K, triangle, top, left):  # type: ignore[no-untyped-def]
    """Copy what a tile, its first entry at (top, left), has of the lower triangle."""
    for i in range(K.shape[0]):
        row = (top + i) * (top + i + 1) // 2 + left
        for j in range(min(K.shape[1], top + i - left + 1)):
            triangle[row + j] = K[i, j]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def add_row(o, triangles, kernels, factors, first, size):  # type: ignore[no-untyped-def]
    """o += sum_m factors[m] K_m on `size` entries from `first`, four kernels at a time."""
    whole = kernels.shape[0] - kernels.shape[0] % 4
    for m in range(0, whole, 4):
        a = triangles[kernels[m], first : first + size]
        b = triangles[kernels[m + 1], first : first + size]
        c = triangles[kernels[m + 2], first : first + size]
        d = triangles[kernels[m + 3], first : first + size]
        wa, wb, wc, wd = factors[m], factors[m + 1], factors[m + 2], factors[m + 3]
        for j in range(size):
            o[j] += wa * a[j] + wb * b[j] + wc * c[j] + wd * d[j]
    for m in range(whole, kernels.shape[0]):
        a, wa = triangles[kernels[m], first : first + size], factors[m]
        for j in range(size):
            o[j] += wa * a[j]


@numba.njit(cache=True, nogil=True)
def combine_rows(out, triangles, kernels, factors, start, stop):  # type: ignore[no-untyped-def]
    """out = sum_m factors[m] K_m on the lower triangle of rows start..stop."""
    for i in range(start, stop):
        out[i, : i + 1] = 0.0
        add_row(out[i], triangles, kernels, factors, i * (i + 1) // 2, i + 1)


@numba.njit(cache=True, nogil=True)
def full_rows(out, triangles, kernels, factors, chosen, start, stop):  # type: ignore[no-untyped-def]
    """Rows `chosen` of the sum: up to the diagonal a row, beyond it a column."""
    n = out.shape[1]
    for a in range(start, stop):
        i = chosen[a]
        out[a] = 0.0
        add_row(out[a], triangles, kernels, factors, i * (i + 1) // 2, i + 1)
        for m in range(kernels.shape[0]):
            triangle, w = triangles[kernels[m]], factors[m]
            for j in range(i + 1, n):
                out[a, j] += w * triangle[j * (j + 1) // 2 + i]


@numba.njit(cache=True, nogil=True)
def many_rows(out, triangles, kernels, factors, chosen):  # type: ignore[no-untyped-def]
    """`full_rows` for many of them: one pass over all rows, in order, instead of columns entry by entry."""
    n = out.shape[1]
    row = np.empty(n)
    for j in range(n):
        row[: j + 1] = 0.0
        add_row(row, triangles, kernels, factors, j * (j + 1) // 2, j + 1)
        for a in range(chosen.shape[0]):
            if chosen[a] < j:
                out[a, j] = row[chosen[a]]
            elif chosen[a] == j:
                out[a, : j + 1] = row[: j + 1]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def product(out, triangles, kernels, factors, alpha):  # type: ignore[no-untyped-def]
    """out += sum_m factors[m] K_m alpha', every row of the sum used both ways; shapes (c, n)."""
    n = alpha.shape[1]
    row = np.empty(n)
    for i in range(n):
        row[: i + 1] = 0.0
        add_row(row, triangles, kernels, factors, i * (i + 1) // 2, i + 1)
        for c in range(alpha.shape[0]):
            a, o, own, total = alpha[c], out[c], alpha[c, i], row[i] * alpha[c, i]
            for j in range(i):
                total += row[j] * a[j]
                o[j] += row[j] * own
            o[i] += total


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def quad_rows(out, triangles, kernels, support, alpha, start, stop):  # type: ignore[no-untyped-def]
    """out_km = a_i (2 sum_{j<i} K_m,ij a_j + K_m,ii a_i), i = support[k], over the rows a of alpha (c, n)."""
    for k in range(start, stop):
        i = support[k]
        first = i * (i + 1) // 2
        for m in range(kernels.shape[0]):
            row, total = triangles[kernels[m], first : first + i + 1], 0.0
            for c in range(alpha.shape[0]):
                a, part = alpha[c], 0.0
                for j in range(i):
                    part += row[j] * a[j]
                total += a[i] * (2.0 * part + row[i] * a[i])
            out[k, m] = total


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def quad_entries(out, triangles, kernels, support, alpha, start, stop):  # type: ignore[no-untyped-def]
    """The same, picking single entries: for a support so small that most of a row is not needed."""
    for k in range(start, stop):
        i = support[k]
        first = i * (i + 1) // 2
        for m in range(kernels.shape[0]):
            row, total = triangles[kernels[m], first : first + i + 1], 0.0
            for c in range(alpha.shape[0]):
                a, part = alpha[c], 0.0
                for b in range(k):
                    part += row[support[b]] * a[support[b]]
                total += a[i] * (2.0 * part + row[i] * a[i])
            out[k, m] = total


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def inner_rows(out, triangles, kernels, A, start, stop):  # type: ignore[no-untyped-def]
    """out_im = 2 sum_{j<i} A_ij K_m,ij + A_ii K_m,ii."""
    for i in range(start, stop):
        first, a = i * (i + 1) // 2, A[i]
        for m in range(kernels.shape[0]):
            row, total = triangles[kernels[m], first : first + i + 1], 0.0
            for j in range(i):
                total += a[j] * row[j]
            out[i, m] = 2.0 * total + a[i] * row[i]


@numba.njit(cache=True, nogil=True)
def take(triangle, samples, out, start, stop):  # type: ignore[no-untyped-def]
    """The triangle of some samples, in their order."""
    for a in range(start, stop):
        for b in range(a + 1):
            i, j = max(samples[a], samples[b]), min(samples[a], samples[b])
            out[a * (a + 1) // 2 + b] = triangle[i * (i + 1) // 2 + j]


@numba.njit(cache=True, nogil=True)
def entries(triangle, rows, columns, out):  # type: ignore[no-untyped-def]
    """out_ab = K_ij, i = rows[a], j = columns[b], on whichever side of the diagonal."""
    for a in range(rows.shape[0]):
        i = rows[a]
        first = i * (i + 1) // 2
        for b in range(columns.shape[0]):
            j = columns[b]
            out[a, b] = triangle[first + j] if j <= i else triangle[j * (j + 1) // 2 + i]
