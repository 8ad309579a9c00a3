"""Compiled loops over symmetric matrices; where they can, they read only one triangle.

`triangles` are lower triangles stored row after row: K_ij at i (i + 1) / 2 + j, j <= i.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import carray

from .._instructions import fetch, pointer
from ..kernels._loops import dot

# sums may be reordered to use vector registers; NaN and infinity keep their meaning
FAST = {"reassoc", "contract", "nsz"}

MANY_SAMPLES = 4  # one sample in this many, or more, counts as many

EACH_ROWS, EACH_COLUMNS = 4, 2048  # rows and columns of the sums of several models that are in the cache
LOWER_ROWS = 16  # rows of a weighted sum that are in the cache while matrices are added
TAKEN_AHEAD = 2  # rows by which entries of a part are fetched ahead
MIRROR_ROWS, MIRROR_COLUMNS = 64, 256  # sides of the tiles that are transposed, which stay in the cache


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def add_lower(out, rows, places, kind, weights, first, whole=False):  # type: ignore[no-untyped-def]
    """out_r += sum_m w_m K_m at row rows[r], columns up to the diagonal, or `whole` rows.

    There may be any number of matrices (n, n) of the type of `kind`, so they are given by the addresses of
    their first entries, a multiple of four of them. A few rows of `out` stay in the cache for all of them,
    and are read and written once for four; the `first` four replace what was in them.
    """
    n, count = out.shape[1], len(rows)
    for top in range(0, count, LOWER_ROWS):
        for m in range(0, len(places), 4):
            wa, wb, wc, wd = weights[m], weights[m + 1], weights[m + 2], weights[m + 3]
            for r in range(top, min(top + LOWER_ROWS, count)):
                i = rows[r]
                size, row = n if whole else i + 1, kind.itemsize * n * i
                a = carray(pointer(places[m] + row), size, kind.dtype)
                b = carray(pointer(places[m + 1] + row), size, kind.dtype)
                c = carray(pointer(places[m + 2] + row), size, kind.dtype)
                d = carray(pointer(places[m + 3] + row), size, kind.dtype)
                o = out[r, :size]
                if first and m == 0:
                    for j in range(size):
                        o[j] = wa * a[j] + wb * b[j] + wc * c[j] + wd * d[j]
                else:
                    for j in range(size):
                        o[j] += wa * a[j] + wb * b[j] + wc * c[j] + wd * d[j]


@numba.njit(cache=True, nogil=True)
def make_row(room, i, maker):  # type: ignore[no-untyped-def]
    """Make row i of a weighted sum, unless it is made; `maker` is that of `RowsOnDemand`, or empty."""
    made, places, kind, factors = maker
    if made.shape[0] > 0 and not made[i]:
        add_lower(room[i : i + 1], np.array([i]), places, kind, factors, True, True)
        made[i] = True


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _add_one(o, a, b, c, d, e, f, g, h, w):  # type: ignore[no-untyped-def]
    """o += sum_m w_m k_m of eight rows k."""
    w0, w1, w2, w3, w4, w5, w6, w7 = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
    for j in range(o.shape[0]):
        x = w0 * a[j] + w1 * b[j] + w2 * c[j] + w3 * d[j]
        o[j] += x + w4 * e[j] + w5 * f[j] + w6 * g[j] + w7 * h[j]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _add_two(o, p, a, b, c, d, e, f, g, h, w, v):  # type: ignore[no-untyped-def]
    """o += sum_m w_m k_m and p += sum_m v_m k_m of eight rows k."""
    w0, w1, w2, w3, w4, w5, w6, w7 = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
    v0, v1, v2, v3, v4, v5, v6, v7 = v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]
    for j in range(o.shape[0]):
        k0, k1, k2, k3, k4, k5, k6, k7 = a[j], b[j], c[j], d[j], e[j], f[j], g[j], h[j]
        o[j] += (w0 * k0 + w1 * k1 + w2 * k2 + w3 * k3) + (w4 * k4 + w5 * k5 + w6 * k6 + w7 * k7)
        p[j] += (v0 * k0 + v1 * k1 + v2 * k2 + v3 * k3) + (v4 * k4 + v5 * k5 + v6 * k6 + v7 * k7)


@numba.njit(cache=True, nogil=True)
def _entries(place, width, kind, samples, room):  # type: ignore[no-untyped-def]
    """As many entries as `width` from an address on; or `samples` of the row that begins there, in `room`."""
    if len(samples) == 0:
        return carray(pointer(place), width, kind.dtype)
    row = carray(pointer(place), samples[-1] + 1, kind.dtype)
    for j in range(width):
        room[j] = row[samples[j]]
    return room[:width]


@numba.njit(cache=True, nogil=True)
def add_each(rows, cuts, sums, targets, places, kind, weights, samples, n, lower, first, start, stop):  # type: ignore[no-untyped-def]
    """Rows of several sums over matrices K_m, out_k += sum_m w_km K_m; up to the diagonal if `lower`.

    Row rows[r], r from start to stop, belongs to the sums[cuts[r]:cuts[r + 1]], and goes to the same places
    in `targets`. There may be any number of matrices and of sums, so both are given by addresses: `targets`
    of rows of sums, and `places` of matrices (n, n) of the type of `kind`, a multiple of eight of them. With
    `samples`, matrices are restricted to them. The `first` matrices replace what was in the sums. Rows of
    eight matrices stay in the cache while they are added to all sums, two at a time.
    """
    room, whole = np.empty((8, EACH_COLUMNS), kind.dtype), len(samples) == 0
    for top in range(start, stop, EACH_ROWS):
        for m in range(0, len(places), 8):
            for r in range(top, min(top + EACH_ROWS, stop)):
                i = rows[r]
                size = i + 1 if lower else n if whole else len(samples)
                row = kind.itemsize * n * (i if whole else samples[i])
                for left in range(0, size, EACH_COLUMNS):
                    width = min(EACH_COLUMNS, size - left)
                    chosen, at = samples[left : left + width], row + (kind.itemsize * left if whole else 0)
                    a = _entries(places[m] + at, width, kind, chosen, room[0])
                    b = _entries(places[m + 1] + at, width, kind, chosen, room[1])
                    c = _entries(places[m + 2] + at, width, kind, chosen, room[2])
                    d = _entries(places[m + 3] + at, width, kind, chosen, room[3])
                    e = _entries(places[m + 4] + at, width, kind, chosen, room[4])
                    f = _entries(places[m + 5] + at, width, kind, chosen, room[5])
                    g = _entries(places[m + 6] + at, width, kind, chosen, room[6])
                    h = _entries(places[m + 7] + at, width, kind, chosen, room[7])
                    for q in range(cuts[r], cuts[r + 1], 2):
                        o = carray(pointer(targets[q] + 8 * left), width, np.float64)
                        w = weights[sums[q], m : m + 8]
                        if first and m == 0:
                            o[:] = 0.0
                        if q + 1 == cuts[r + 1]:
                            _add_one(o, a, b, c, d, e, f, g, h, w)
                            continue
                        p = carray(pointer(targets[q + 1] + 8 * left), width, np.float64)
                        if first and m == 0:
                            p[:] = 0.0
                        _add_two(o, p, a, b, c, d, e, f, g, h, w, weights[sums[q + 1], m : m + 8])


@numba.njit(cache=True, nogil=True)
def mirror(out, start, stop, factor=1.0):  # type: ignore[no-untyped-def]
    """Multiply rows start..stop of the lower triangle, and copy them onto the upper one.

    Tile by tile, eight rows at a time.
    """
    if factor != 1.0:
        for i in range(start, stop):
            for j in range(i + 1):
                out[i, j] *= factor
    whole = stop - (stop - start) % 8
    for left in range(0, stop, MIRROR_COLUMNS):
        right = min(left + MIRROR_COLUMNS, stop)
        for i in range(start, whole, 8):
            a, b, c, d, e = out[i], out[i + 1], out[i + 2], out[i + 3], out[i + 4]
            f, g, h = out[i + 5], out[i + 6], out[i + 7]
            for j in range(left, min(right, i)):
                o = out[j, i : i + 8]
                o[0], o[1], o[2], o[3] = a[j], b[j], c[j], d[j]
                o[4], o[5], o[6], o[7] = e[j], f[j], g[j], h[j]
    for i in range(start, stop):
        for j in range(i - (i - start) % 8 if i < whole else 0, i):
            out[j, i] = out[i, j]


@numba.njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def _eight_prefixes(out, a, b, c, d, e, f, g, h, x, factor):  # type: ignore[no-untyped-def]
    """out_m += factor (2 sum_{j<i} k_j x_j + k_i x_i), k the m-th of eight rows of i + 1 entries, like x."""
    i = x.shape[0] - 1
    s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(i):
        z = x[j]
        s0 += a[j] * z
        s1 += b[j] * z
        s2 += c[j] * z
        s3 += d[j] * z
        s4 += e[j] * z
        s5 += f[j] * z
        s6 += g[j] * z
        s7 += h[j] * z
    z = x[i]
    out[0] += factor * (2.0 * s0 + a[i] * z)
    out[1] += factor * (2.0 * s1 + b[i] * z)
    out[2] += factor * (2.0 * s2 + c[i] * z)
    out[3] += factor * (2.0 * s3 + d[i] * z)
    out[4] += factor * (2.0 * s4 + e[i] * z)
    out[5] += factor * (2.0 * s5 + f[i] * z)
    out[6] += factor * (2.0 * s6 + g[i] * z)
    out[7] += factor * (2.0 * s7 + h[i] * z)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def inner_lower_eight(out, A, B, C, D, E, F, G, H, rows, P):  # type: ignore[no-untyped-def]
    """out_m += sum_r (2 sum_{j<i} K_ij P_rj + K_ii P_ri), i = rows[r], K the m-th of eight matrices."""
    for r in range(rows.shape[0]):
        i = rows[r]
        x, a, b, c, d, e, f, g, h = P[r, : i + 1], A[i], B[i], C[i], D[i], E[i], F[i], G[i], H[i]
        _eight_prefixes(out, a, b, c, d, e, f, g, h, x, 1.0)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def quad_eight(out, A, B, C, D, E, F, G, H, rows, cuts, columns, alpha):  # type: ignore[no-untyped-def]
    """out[k, m] += a_k' K_m a_k for eight matrices and the rows a_k of alpha; rows of K_m are read once.

        a' K a = sum_i a_i (2 sum_{j<i} K_ij a_j + K_ii a_i)

    In row rows[r], the vectors columns[cuts[r]:cuts[r + 1]] are not zero.
    """
    for r in range(rows.shape[0]):
        i = rows[r]
        a, b, c, d, e, f, g, h = A[i], B[i], C[i], D[i], E[i], F[i], G[i], H[i]
        for q in range(cuts[r], cuts[r + 1]):
            k = columns[q]
            x = alpha[k, : i + 1]
            _eight_prefixes(out[k], a, b, c, d, e, f, g, h, x, x[i])


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def multiply_lower(out, places, kind, rows, alpha):  # type: ignore[no-untyped-def]
    """out_m = K_m alpha at `rows`, which increase; alpha is zero elsewhere, where `out` is of no use.

    Only rows up to the diagonal are read: K_ij is multiplied with alpha_j for the i-th entry, and with
    alpha_i for the j-th. Four rows at a time. Matrices are given as in `add_lower`.
    """
    n, count = alpha.shape[0], rows.shape[0]
    whole = count - count % 4
    for place in range(len(places)):
        K, own = carray(pointer(places[place]), (n, n), kind.dtype), out[place]
        own[:] = 0.0
        for q in range(0, whole, 4):
            i, k, m, o = rows[q], rows[q + 1], rows[q + 2], rows[q + 3]
            a, b, c, d = K[i], K[k], K[m], K[o]
            wa, wb, wc, wd = alpha[i], alpha[k], alpha[m], alpha[o]
            sa, sb, sc, sd = 0.0, 0.0, 0.0, 0.0
            x, before, e, f, g, h = alpha[:i], own[:i], a[:i], b[:i], c[:i], d[:i]
            for j in range(x.shape[0]):
                z, s, t, u, v = x[j], e[j], f[j], g[j], h[j]
                sa += s * z
                sb += t * z
                sc += u * z
                sd += v * z
                before[j] += wa * s + wb * t + wc * u + wd * v
            # where the four rows meet
            own[i] += sa + a[i] * wa + b[i] * wb + c[i] * wc + d[i] * wd
            own[k] += sb + b[i] * wa + b[k] * wb + c[k] * wc + d[k] * wd
            own[m] += sc + c[i] * wa + c[k] * wb + c[m] * wc + d[m] * wd
            own[o] += sd + d[i] * wa + d[k] * wb + d[m] * wc + d[o] * wd
        for q in range(whole, count):
            i = rows[q]
            x, before, e, w, total = alpha[:i], own[:i], K[i, :i], alpha[i], 0.0
            for j in range(x.shape[0]):
                total += e[j] * x[j]
                before[j] += w * e[j]
            own[i] += total + K[i, i] * w


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def quad_gather(K, support, alpha):  # type: ignore[no-untyped-def]
    """alpha' K alpha, picking single entries: for a support so small that most of a row is not needed."""
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
        out[a] += weight * dot(K[rows[a]], alpha)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def multiply_many_rows(out, places, kind, rows, cuts, columns, targets, alpha):  # type: ignore[no-untyped-def]
    """out[m, targets[q]] = K_m[i] a_c, i = rows[r] and c = columns[q], q from cuts[r] to cuts[r + 1].

    Matrices are given as in `add_lower`, any number of them.
    """
    n = alpha.shape[1]
    for m in range(len(places)):
        K, own = carray(pointer(places[m]), (n, n), kind.dtype), out[m]
        for r in range(rows.shape[0]):
            row = K[rows[r]]
            for q in range(cuts[r], cuts[r + 1]):
                own[targets[q]] = dot(row, alpha[columns[q]])


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def add_rows(out, K, rows, coefficients):  # type: ignore[no-untyped-def]
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


@numba.njit(cache=True, nogil=True)
def take_block(K, rows, columns, part):  # type: ignore[no-untyped-def]
    """part = K at some rows and columns; unsigned columns save the test whether they count from the end."""
    for a in range(rows.shape[0]):
        row, own = K[rows[a]], part[a]
        for b in range(columns.shape[0]):
            own[b] = row[columns[b]]


@numba.njit(cache=True, nogil=True)
def take_square(K, samples, part):  # type: ignore[no-untyped-def]
    """part = K restricted to `samples` on both axes; unsigned samples are faster, as in `take_block`.

    With many samples, rows are read from end to end; with few, only one triangle is read.
    """
    size = samples.shape[0]
    if MANY_SAMPLES * size >= K.shape[0]:
        take_block(K, samples, samples, part)
        return
    for start in range(0, size, MIRROR_ROWS):
        stop = min(start + MIRROR_ROWS, size)
        for a in range(start, stop):
            row, own = K[samples[a]], part[a]
            later = K[samples[min(a + TAKEN_AHEAD, size - 1)]].ctypes.data
            for b in range(a + 1):
                fetch(later + K.itemsize * np.intp(samples[b]))
                own[b] = row[samples[b]]
        mirror(part, start, stop)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def add_square_eight(out, A, B, C, D, E, F, G, H, samples, w, start, stop):  # type: ignore[no-untyped-def]
    """out += sum_m w_m K_m of eight matrices between `samples`, on rows start..stop up to the diagonal.

    Samples are unsigned, which saves the test whether they count from the end.
    """
    w0, w1, w2, w3, w4, w5, w6, w7 = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
    for row in range(start, stop):
        i, o = samples[row], out[row]
        a, b, c, d, e, f, g, h = A[i], B[i], C[i], D[i], E[i], F[i], G[i], H[i]
        for k in range(row + 1):
            j = samples[k]
            x = w0 * a[j] + w1 * b[j] + w2 * c[j] + w3 * d[j]
            o[k] += x + w4 * e[j] + w5 * f[j] + w6 * g[j] + w7 * h[j]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def store(K, triangle, top, left):  # type: ignore[no-untyped-def]
    """Copy the part of the lower triangle that is in a tile, whose first entry is at (top, left)."""
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
    """Rows `chosen` of the sum: read as a row up to the diagonal, and as a column beyond it."""
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
    """`full_rows` for many rows: one pass over all rows, in order, instead of columns entry by entry."""
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
def quad_triangle_rows(out, triangles, kernels, support, alpha, start, stop):  # type: ignore[no-untyped-def]
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
    """out_ab = K_ij, i = rows[a], j = columns[b], on either side of the diagonal."""
    for a in range(rows.shape[0]):
        i = rows[a]
        first = i * (i + 1) // 2
        for b in range(columns.shape[0]):
            j = columns[b]
            out[a, b] = triangle[first + j] if j <= i else triangle[j * (j + 1) // 2 + i]
