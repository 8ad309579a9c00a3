"""Compiled loops over Gaussian kernels on many subsets of columns.

They go from segment to segment: one sample on the left, and up to `WIDTH` samples on the right. The
squared differences of a segment are summed once over all subsets of a few neighbouring columns, a
group; a kernel then adds up a row of this table for every group, not for every column (as the "four
Russians" multiply Boolean matrices: Arlazarov et al. 1970). `codes` name these rows, eight a line,
and lines starts[k] to starts[k + 1] are those of kernel k; row 0 is zero and fills lines up.

With `lower`, the tile lies on the diagonal and only entries up to its diagonal are wanted.
"""

from __future__ import annotations

import numba
import numpy as np

from ._exp import exp

# sums may be reordered to use vector registers; NaN and infinity keep their meaning
FAST = {"reassoc", "contract", "nsz"}

#: samples of a segment, and what its length is a multiple of: a rest would be computed one by one
WIDTH, STEP = 128, 16


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def tabulate(x, z, start, size, bits, table):  # type: ignore[no-untyped-def]
    """table[2^bits g + b] = sum of (x_f - z_f)^2 over the columns f in the subset b of group g."""
    n_columns, square = x.shape[0], np.empty(table.shape[1], table.dtype)
    for first in range(0, n_columns, bits):
        group = (first // bits) << bits
        table[group] = 0.0
        for c in range(min(bits, n_columns - first)):
            a, other = x[first + c], z[first + c][start : start + size]
            for p in range(size):
                square[p] = (a - other[p]) * (a - other[p])
            # subsets whose last column is c are the subsets before it, and c
            for b in range(1 << c):
                without, out = table[group + b], table[group + (1 << c) + b]
                for p in range(size):
                    out[p] = without[p] + square[p]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def line(table, codes, c):  # type: ignore[no-untyped-def]
    """The eight rows of a line."""
    return (
        table[codes[c, 0]],
        table[codes[c, 1]],
        table[codes[c, 2]],
        table[codes[c, 3]],
        table[codes[c, 4]],
        table[codes[c, 5]],
        table[codes[c, 6]],
        table[codes[c, 7]],
    )


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def eight(a, p):  # type: ignore[no-untyped-def]
    """Sum of eight rows at p."""
    return ((a[0][p] + a[1][p]) + (a[2][p] + a[3][p])) + ((a[4][p] + a[5][p]) + (a[6][p] + a[7][p]))


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def before(table, codes, first, last, t, used):  # type: ignore[no-untyped-def]
    """t = the sum of all lines but the last, and whether there are any: then t is `used` next time."""
    if used:
        t[:] = 0.0
    for c in range(first, last - 1):
        a = line(table, codes, c)
        for p in range(t.shape[0]):
            t[p] += eight(a, p)
    return last - first > 1


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def segment(store, x, z, start, size, bits):  # type: ignore[no-untyped-def]
    """The table of a segment, its length rounded up; what is beyond its end is finite, no more."""
    full, rows = (size + STEP - 1) // STEP * STEP, ((x.shape[0] + bits - 1) // bits) << bits
    table = store[: rows * full].reshape(rows, full)
    tabulate(x, z, start, size, bits, table)
    return table


@numba.njit(cache=True, nogil=True)
def room(left, bits):  # type: ignore[no-untyped-def]
    """Memory for the table of any segment."""
    return np.zeros((((left.shape[0] + bits - 1) // bits) << bits) * WIDTH, left.dtype)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def add_segment(table, codes, starts, gammas, factors, total):  # type: ignore[no-untyped-def]
    """total += sum_k factors_k K_k on a segment."""
    t, used = np.zeros(table.shape[1], table.dtype), False
    for k in range(gammas.shape[0]):
        used = before(table, codes, starts[k], starts[k + 1], t, used)
        a, gamma, factor = line(table, codes, starts[k + 1] - 1), -gammas[k], factors[k]
        for p in range(t.shape[0]):
            total[p] += factor * exp(gamma * (t[p] + eight(a, p)))


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def add_squares(left, right, bits, codes, starts, gammas, factors, out, lower):  # type: ignore[no-untyped-def]
    """out_ij += sum_k factors_k exp(-gamma_k sum_{f of k} (left_fi - right_fj)^2)."""
    store = room(left, bits)
    for i in range(left.shape[1]):
        stop, x = i + 1 if lower else right.shape[1], left[:, i].copy()
        pieces = (stop + WIDTH - 1) // WIDTH
        for piece in range(pieces):
            start, end = piece * stop // pieces, (piece + 1) * stop // pieces
            table = segment(store, x, right, start, end - start, bits)
            total = np.zeros(table.shape[1])
            add_segment(table, codes, starts, gammas, factors, total)
            for p in range(end - start):
                out[i, start + p] += total[p]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def inner_segment(table, codes, starts, gammas, w, out):  # type: ignore[no-untyped-def]
    """out_k += sum_p w_p K_k,p on a segment."""
    t, used = np.zeros(table.shape[1], table.dtype), False
    for k in range(gammas.shape[0]):
        used = before(table, codes, starts[k], starts[k + 1], t, used)
        a, gamma, total = line(table, codes, starts[k + 1] - 1), -gammas[k], 0.0
        for p in range(t.shape[0]):
            total += w[p] * exp(gamma * (t[p] + eight(a, p)))
        out[k] += total


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def inner_squares(left, right, bits, codes, starts, gammas, W, out, lower):  # type: ignore[no-untyped-def]
    """out_k += sum_ij W_ij exp(-gamma_k sum_{f of k} (left_fi - right_fj)^2)."""
    store = room(left, bits)
    for i in range(left.shape[1]):
        stop, x = i + 1 if lower else right.shape[1], left[:, i].copy()
        pieces = (stop + WIDTH - 1) // WIDTH
        for piece in range(pieces):
            start, end = piece * stop // pieces, (piece + 1) * stop // pieces
            table = segment(store, x, right, start, end - start, bits)
            w = np.zeros(table.shape[1])
            w[: end - start] = W[i, start:end]
            inner_segment(table, codes, starts, gammas, w, out)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def multiply_segment(table, codes, starts, gammas, vectors, out, i, start, size):  # type: ignore[no-untyped-def]
    """Shares of K_k v_k on a segment and on its mirror image across the diagonal."""
    t, used, e = np.zeros(table.shape[1], table.dtype), False, np.empty(table.shape[1], table.dtype)
    for k in range(gammas.shape[0]):
        used = before(table, codes, starts[k], starts[k + 1], t, used)
        a, gamma = line(table, codes, starts[k + 1] - 1), -gammas[k]
        for p in range(t.shape[0]):
            e[p] = exp(gamma * (t[p] + eight(a, p)))
        v, o = vectors[k, start : start + size], out[k, start : start + size]
        own, total = vectors[k, i], 0.0
        for p in range(size):
            total += e[p] * v[p]
            o[p] += own * e[p]
        # the diagonal counts once
        out[k, i] += total - (own if i < start + size else 0.0)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def multiply_squares(points, bits, codes, starts, gammas, vectors, out):  # type: ignore[no-untyped-def]
    """out_k += K_k vectors_k on all samples, by the lower triangle."""
    n, store = points.shape[1], room(points, bits)
    for start in range(0, n, WIDTH):  # the same part of all `out` stays in the cache
        for i in range(start, n):
            size = min(WIDTH, i + 1 - start)
            table = segment(store, points[:, i].copy(), points, start, size, bits)
            multiply_segment(table, codes, starts, gammas, vectors, out, i, start, size)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def store_segment(table, codes, starts, gammas, triangles, members, first, size):  # type: ignore[no-untyped-def]
    """triangles[members[k]] = K_k on a segment, whose entries are stored from `first` on."""
    t, used, e = np.zeros(table.shape[1], table.dtype), False, np.empty(table.shape[1], table.dtype)
    for k in range(gammas.shape[0]):
        used = before(table, codes, starts[k], starts[k + 1], t, used)
        a, gamma = line(table, codes, starts[k + 1] - 1), -gammas[k]
        for p in range(t.shape[0]):
            e[p] = exp(gamma * (t[p] + eight(a, p)))
        out = triangles[members[k]]
        for p in range(size):
            out[first + p] = e[p]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def store_squares(points, bits, codes, starts, gammas, triangles, members, top, bottom):  # type: ignore[no-untyped-def]
    """Rows `top` to `bottom` of the lower triangles of all kernels, stored row after row."""
    store = room(points, bits)
    for i in range(top, bottom):
        row, x = i * (i + 1) // 2, points[:, i].copy()
        for start in range(0, i + 1, WIDTH):
            size = min(WIDTH, i + 1 - start)
            table = segment(store, x, points, start, size, bits)
            store_segment(table, codes, starts, gammas, triangles, members, row + start, size)
