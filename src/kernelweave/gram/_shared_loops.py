"""Compiled loops over tiles of what many kernels share: a base, or the columns of one table.

With `lower`, the tile lies on the diagonal and only entries up to its diagonal are wanted.

The compiler has no vector form of math.exp without Intel's library; `exp` for x <= 0 is additions,
multiplications and shifts only:

    exp(x) = 2^k exp(r),    k = round(x / log 2),    r = x - k log 2 in [-0.35, 0.35]

exp(r) is a polynomial; the relative error is 1e-15 in double and 1e-7 in single precision. x is raised to at
least -708 (-87 in single precision): values that would underflow become the smallest normal number.

Loops over Gaussian kernels on many subsets of columns go from segment to segment: one sample on the left, and
up to `WIDTH` samples on the right. The squared differences of a segment are summed once over all subsets of a
few neighbouring columns, a group; a kernel then adds up a row of this table for every group, not for every
column (as the "four Russians" multiply Boolean matrices: Arlazarov et al. 1970). `codes` name these rows,
eight per line, and lines starts[k] to starts[k + 1] belong to kernel k; row 0 is zero and pads incomplete
lines.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

# adding it rounds a number to an integer, which then stands in the lowest bits
ROUND64, ROUND32 = 1.5 * 2.0**52, np.float32(1.5 * 2.0**23)

# log 2 in two parts, the first short enough for k times it to be exact
HIGH64, LOW64 = 0.6931471803691238, 1.9082149292705877e-10
HIGH32, LOW32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
INVERSE64, INVERSE32 = 1.0 / math.log(2.0), np.float32(1.0 / math.log(2.0))
LEAST64, LEAST32 = -708.0, np.float32(-87.0)
ONE32, HALF32 = np.float32(1.0), np.float32(0.5)

# 1 / k! down to the rounding error
C3, C4, C5, C6, C7, C8, C9, C10, C11, C12 = (1.0 / math.factorial(k) for k in range(3, 13))
S3, S4, S5, S6, S7 = (np.float32(1.0 / math.factorial(k)) for k in range(3, 8))


def _bitcast(returned: Any, given: Any, width: Any) -> Any:
    """An intrinsic that reads the bits of one number as another."""

    def typed(context, x):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return builder.bitcast(arguments[0], width)

        return returned(given), generate

    return intrinsic(typed)


bits64 = _bitcast(types.int64, types.float64, ir.IntType(64))
bits32 = _bitcast(types.int32, types.float32, ir.IntType(32))
float64_of = _bitcast(types.float64, types.int64, ir.DoubleType())
float32_of = _bitcast(types.float32, types.int32, ir.FloatType())


# no reordering of sums in these two: it would undo the rounding and the split of log 2
@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def exp64(x):  # type: ignore[no-untyped-def]
    """exp(x) in double precision, x <= 0."""
    x = max(x, LEAST64)
    shifted = x * INVERSE64 + ROUND64
    k = shifted - ROUND64
    r = (x - k * HIGH64) - k * LOW64
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + r2 * (0.5 + r * C3)
    middle = (C4 + r * C5) + r2 * (C6 + r * C7)
    high = (C8 + r * C9) + r2 * (C10 + r * C11) + r4 * C12
    return (low + r4 * middle + r4 * r4 * high) * float64_of((bits64(shifted) + 1023) << 52)


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def exp32(x):  # type: ignore[no-untyped-def]
    """exp(x) in single precision, x <= 0."""
    x = max(x, LEAST32)
    shifted = x * INVERSE32 + ROUND32
    k = shifted - ROUND32
    r = (x - k * HIGH32) - k * LOW32
    p = ((((S7 * r + S6) * r + S5) * r + S4) * r + S3) * r + HALF32
    p = p * (r * r) + r + ONE32
    return p * float32_of((bits32(shifted) + np.int32(127)) << np.int32(23))


def exp(x: float) -> float:
    """exp(x) in the precision of x, x <= 0."""
    return math.exp(x)


@overload(exp)
def _exp(x):  # type: ignore[no-untyped-def]
    if x == types.float32:
        return lambda x: exp32(x)
    return lambda x: exp64(x)


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
def _add_exponential(d, e, o, weight, first, second, size):  # type: ignore[no-untyped-def]
    """o += weight e (1 + first d + second d^2)."""
    if first == 0.0 and second == 0.0:
        for j in range(size):
            o[j] += weight * e[j]
    else:
        for j in range(size):
            o[j] += weight * (1.0 + d[j] * (first + d[j] * second)) * e[j]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def add_exponentials(D, rates, powers, weights, out, lower):  # type: ignore[no-untyped-def]
    """out += sum_m w_m exp(r_m D) (1 + c_m1 D + c_m2 D^2): a row at a time, so that no kernel is stored."""
    width = D.shape[1]
    e, scratch = np.empty(width, D.dtype), np.empty(width, D.dtype)
    for i in range(D.shape[0]):
        d, o, size = D[i], out[i], (i + 1 if lower else width)
        for m in range(rates.shape[0]):
            _exponential(d, e, scratch, rates[m, 0], powers[m], size)
            _add_exponential(d, e, o, weights[m], rates[m, 1], rates[m, 2], size)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def add_exponentials_each(D, rates, powers, weights, out, lower):  # type: ignore[no-untyped-def]
    """out_k += sum_m w_km K_m of the same kernels for several models: exponentials are computed once."""
    width = D.shape[1]
    e, scratch = np.empty(width, D.dtype), np.empty(width, D.dtype)
    for i in range(D.shape[0]):
        d, size = D[i], (i + 1 if lower else width)
        for m in range(rates.shape[0]):
            _exponential(d, e, scratch, rates[m, 0], powers[m], size)
            for k in range(out.shape[0]):
                _add_exponential(d, e, out[k, i], weights[k, m], rates[m, 1], rates[m, 2], size)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def multiply_exponentials(D, rates, powers, vectors, out):  # type: ignore[no-untyped-def]
    """out_mj += sum_i vectors_mi K_m,ij of the same kernels."""
    width = D.shape[1]
    e, scratch = np.empty(width, D.dtype), np.empty(width, D.dtype)
    for i in range(D.shape[0]):
        for m in range(rates.shape[0]):
            _exponential(D[i], e, scratch, rates[m, 0], powers[m], width)
            _add_exponential(D[i], e, out[m], vectors[m, i], rates[m, 1], rates[m, 2], width)


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


#: samples of a segment, and the number its length is a multiple of: a remainder would be computed one by one
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
    """t = the sum of all lines but the last, and whether there are any: if so, t is `used` next time."""
    if used:
        t[:] = 0.0
    for c in range(first, last - 1):
        a = line(table, codes, c)
        for p in range(t.shape[0]):
            t[p] += eight(a, p)
    return last - first > 1


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def segment(store, x, z, start, size, bits):  # type: ignore[no-untyped-def]
    """The table of a segment, its length rounded up; entries beyond its end are finite but meaningless."""
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
