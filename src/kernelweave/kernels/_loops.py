"""Compiled loops: over a square matrix, and over pairs of strings."""

from __future__ import annotations

import numba
import numpy as np
from numba import carray, njit

from .._instructions import LINE, fetch, larger, pointer

# sums may be reordered to use vector registers; NaN and infinity keep their meaning
FAST = {"reassoc", "contract", "nsz"}


#: entries of a row that are multiplied with the same numbers as the next: these stay in the fastest cache
PERIOD = 160

#: bytes after those that are being read which are fetched meanwhile
AHEAD = 8192

#: the same where two matrices are read side by side, and rows of their sum that are in the cache
SUMMED_PERIOD, SUMMED_AHEAD, SUMMED_ROWS = 64, 4096, 16

#: rows that are in the cache when entries of some of them are copied
CACHED_ROWS = 8


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def products(K, inner, outer, rows, part, others, other_part, alpha):  # type: ignore[no-untyped-def]
    """What `look_at` wants to know of K, in one pass from the first entry to the last.

    That is K 1, the diagonal, the largest entry of every row without its sign, the largest product with a
    probe without its sign (not finite if any entry is not), and <K, A> for the antisymmetric A of `_probes`,
    so that reading K leaves the cache to the numbers that it is multiplied with. On the way the entries
    between the samples `rows`, which increase, go to the lower triangle of `part`, and those between the
    samples `others` to that of `other_part`. The last result is alpha'K alpha from the lower triangle, or 0
    for an empty alpha.
    """
    n, found, also_found, largest, apart, square = K.shape[0], 0, 0, 0.0, 0.0, 0.0
    totals, diagonal, sizes = np.empty(n), np.empty(n, K.dtype), np.empty(n)
    first, second, ahead = inner[0], inner[1], K.ctypes.data + AHEAD
    for i in range(n):
        Kv, Kw, Ka, whole, size, own, mine = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, i // PERIOD
        if alpha.shape[0] > 0:
            own = alpha[i]
        for block in range(outer.shape[1]):
            left = block * PERIOD
            some, here = K[i, left : left + PERIOD], ahead + K.itemsize * (i * n + left)
            for place in range(0, K.itemsize * min(PERIOD, n - left), LINE):
                fetch(here + place)
            s, r, total = 0.0, 0.0, 0.0
            if own != 0.0 and block < mine:
                a = alpha[left : left + PERIOD]
                for j in range(some.shape[0]):
                    s += some[j] * first[j]
                    r += some[j] * a[j]
                    total += some[j]
                    size = larger(size, abs(some[j]))
            else:
                for j in range(some.shape[0]):
                    s += some[j] * first[j]
                    total += some[j]
                    size = larger(size, abs(some[j]))
            if block == mine:
                at = i - left
                x = dot(some, second)
                apart += second[at] * s - first[at] * x
                largest = _largest(largest, s, x)
                if own != 0.0:
                    r = dot(some[:at], alpha[left : left + at]) + 0.5 * some[at] * own
            Ka += r
            Kv += s * outer[0, block]
            Kw += s * outer[1, block]
            whole += total
        totals[i], diagonal[i], sizes[i] = whole, K[i, i], size
        square += 2.0 * own * Ka
        apart += first[i - mine * PERIOD] * (outer[1, mine] * Kv - outer[0, mine] * Kw)
        largest = _largest(largest, Kv, Kw)
        if i % CACHED_ROWS == CACHED_ROWS - 1 or i == n - 1:
            found = _take(K, rows, part, found, i + 1)
            also_found = _take(K, others, other_part, also_found, i + 1)
    return totals, diagonal, sizes, largest, apart, square


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def dot(a, b):  # type: ignore[no-untyped-def]
    """a'b over the entries of a; b may have more."""
    total = 0.0
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def products_and_sum(out, places, weights, inner, outer, rows, found):  # type: ignore[no-untyped-def]
    """`products` of several matrices (n, n), given by the addresses of their first entries, and their sum.

    The sum is out = sum_m w_m K_m, in columns up to the diagonal and a few more. A few rows of it stay in the
    cache while the same rows of all matrices are read, two matrices at a time, an even number in all. Entry m
    of the arrays in `found` is what `products` finds for matrix m: K 1, the diagonal, the largest entry of
    every row, the largest product with a probe, <K, A> (both zero before), and the lower triangle between
    the samples `rows`.
    """
    totals, diagonals, sizes, largest, apart, parts = found
    n, taken = out.shape[0], 0
    first, second = inner[0], inner[1]
    for top in range(0, n, SUMMED_ROWS):
        stop = min(top + SUMMED_ROWS, n)
        for m in range(0, len(places), 2):
            wa, wb = weights[m], weights[m + 1]
            for i in range(top, stop):
                Kv, Kw, whole, Lv, Lw, all_of, mine = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, i // SUMMED_PERIOD
                size_a, size_b = 0.0, 0.0
                for block in range(outer.shape[1]):
                    left = block * SUMMED_PERIOD
                    width, at = min(SUMMED_PERIOD, n - left), 8 * (n * i + left)
                    for place in range(at + SUMMED_AHEAD, at + SUMMED_AHEAD + 8 * width, LINE):
                        fetch(places[m] + place)
                        fetch(places[m + 1] + place)
                    a = carray(pointer(places[m] + at), width, np.float64)
                    b = carray(pointer(places[m + 1] + at), width, np.float64)
                    s, u, x, z = 0.0, 0.0, 0.0, 0.0
                    o = out[i, left : left + width]
                    if block > mine:  # only to be checked
                        for j in range(width):
                            s += a[j] * first[j]
                            u += a[j]
                            x += b[j] * first[j]
                            z += b[j]
                            size_a = larger(size_a, abs(a[j]))
                            size_b = larger(size_b, abs(b[j]))
                    else:
                        if m == 0:
                            o[:] = 0.0
                        for j in range(width):
                            s += a[j] * first[j]
                            u += a[j]
                            x += b[j] * first[j]
                            z += b[j]
                            size_a = larger(size_a, abs(a[j]))
                            size_b = larger(size_b, abs(b[j]))
                            o[j] += wa * a[j] + wb * b[j]
                    if block == mine:
                        t, y = dot(a, second), dot(b, second)
                        apart[m] += second[i - left] * s - first[i - left] * t
                        apart[m + 1] += second[i - left] * x - first[i - left] * y
                        largest[m] = _largest(largest[m], s, t)
                        largest[m + 1] = _largest(largest[m + 1], x, y)
                    Kv += s * outer[0, block]
                    Kw += s * outer[1, block]
                    whole += u
                    Lv += x * outer[0, block]
                    Lw += x * outer[1, block]
                    all_of += z
                totals[m, i], totals[m + 1, i] = whole, all_of
                sizes[m, i], sizes[m + 1, i] = size_a, size_b
                own = first[i - mine * SUMMED_PERIOD]
                apart[m] += own * (outer[1, mine] * Kv - outer[0, mine] * Kw)
                apart[m + 1] += own * (outer[1, mine] * Lv - outer[0, mine] * Lw)
                largest[m] = _largest(largest[m], Kv, Kw)
                largest[m + 1] = _largest(largest[m + 1], Lv, Lw)
            for k in (m, m + 1):
                K = carray(pointer(places[k]), (n, n), np.float64)
                for i in range(top, stop):
                    diagonals[k, i] = K[i, i]
                last = _take(K, rows, parts[k], taken, stop)
        taken = last


@numba.njit(cache=True, nogil=True)
def _largest(known, Kv, Kw):  # type: ignore[no-untyped-def]
    """The largest of a number and the sizes of two others; NaN stays, as it is not less than anything."""
    for size in (abs(Kv), abs(Kw)):
        if size > known or size != size:
            known = size
    return known


@numba.njit(cache=True, nogil=True)
def _take(K, rows, part, found, stop):  # type: ignore[no-untyped-def]
    """Copy the entries of those `rows` under `stop` that are not yet in `part`; how many are.

    Rows are unsigned, which saves the test whether they count from the end.
    """
    while found < rows.shape[0] and rows[found] < np.uintp(stop):
        row = K[rows[found]]
        for k in range(found + 1):
            part[found, k] = row[rows[k]]
        found += 1
    return found


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def is_definite(A, share):  # type: ignore[no-untyped-def]
    """Whether a matrix, given by its lower triangle, has a Cholesky factor, which overwrites it.

    A share of its largest diagonal entry is added to the diagonal before. Two columns at a time, for four
    rows each; of the diagonal the inverse is kept. For matrices of some hundred rows, with which LAPACK is
    not yet fast.
    """
    n, slack = A.shape[0], 1e-300
    for i in range(n):
        slack = max(slack, A[i, i])
    for i in range(n):
        A[i, i] += share * slack
    for j in range(0, n, 2):
        r = A[j]
        t = r[j]
        for k in range(j):
            t -= r[k] * r[k]
        if not t > 0.0:
            return False
        if j + 1 == n:
            break
        t = 1.0 / np.sqrt(t)
        q = A[j + 1]
        x, u = 0.0, q[j + 1]
        for k in range(j):
            x += q[k] * r[k]
            u -= q[k] * q[k]
        q[j] = (q[j] - x) * t
        u -= q[j] * q[j]
        if not u > 0.0:
            return False
        u, qj = 1.0 / np.sqrt(u), q[j]
        for i in range(j + 2, n - 3, 4):
            a, b, c, d = A[i], A[i + 1], A[i + 2], A[i + 3]
            xa, xb, xc, xd = 0.0, 0.0, 0.0, 0.0
            za, zb, zc, zd = 0.0, 0.0, 0.0, 0.0
            for k in range(j):
                y, z = r[k], q[k]
                xa += a[k] * y
                xb += b[k] * y
                xc += c[k] * y
                xd += d[k] * y
                za += a[k] * z
                zb += b[k] * z
                zc += c[k] * z
                zd += d[k] * z
            a[j], b[j], c[j], d[j] = (a[j] - xa) * t, (b[j] - xb) * t, (c[j] - xc) * t, (d[j] - xd) * t
            a[j + 1] = (a[j + 1] - za - a[j] * qj) * u
            b[j + 1] = (b[j + 1] - zb - b[j] * qj) * u
            c[j + 1] = (c[j + 1] - zc - c[j] * qj) * u
            d[j + 1] = (d[j + 1] - zd - d[j] * qj) * u
        for i in range(n - (n - j - 2) % 4, n):
            a, xa, za = A[i], 0.0, 0.0
            for k in range(j):
                xa += a[k] * r[k]
                za += a[k] * q[k]
            a[j] = (a[j] - xa) * t
            a[j + 1] = (a[j + 1] - za - a[j] * qj) * u
    return True


@njit(cache=True, nogil=True)
def _along(x, z, offset, by_run):  # type: ignore[no-untyped-def]
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
def _pair(x, z, by_run, by_shift):  # type: ignore[no-untyped-def]
    total = by_shift[0] * _along(x, z, 0, by_run)
    for shift in range(1, by_shift.shape[0]):
        total += by_shift[shift] * (_along(x, z, shift, by_run) + _along(x, z, -shift, by_run))
    return total


@njit(cache=True, nogil=True)
def gram(X, Z, by_run, by_shift, symmetric):  # type: ignore[no-untyped-def]
    """Gram block of two matrices of symbols (strings in rows, padded with 0)."""
    K = np.empty((X.shape[0], Z.shape[0]))
    for i in range(X.shape[0]):
        for j in range(i if symmetric else 0, Z.shape[0]):
            K[i, j] = _pair(X[i], Z[j], by_run, by_shift)
            if symmetric:
                K[j, i] = K[i, j]
    return K


@njit(cache=True, nogil=True)
def diagonal(X, by_run, by_shift):  # type: ignore[no-untyped-def]
    """k(x_i, x_i) of every row."""
    values = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        values[i] = _pair(X[i], X[i], by_run, by_shift)
    return values
