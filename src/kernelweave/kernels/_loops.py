"""Compiled loops: over a square matrix, and over pairs of strings."""

from __future__ import annotations

import numba
import numpy as np
from numba import njit

# sums may be reordered to use vector registers; NaN and infinity keep their meaning
FAST = {"reassoc", "contract", "nsz"}


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def products(K, v, u, rows, part):  # type: ignore[no-untyped-def]
    """K u and the diagonal of K, in one pass over K, four rows at a time, with K v and K'v.

    Of these the largest entry and the largest difference; NaN for the former where one is not finite. On the
    way the entries between the samples `rows`, which increase, go to the lower triangle of `part`.
    """
    n, found = K.shape[0], 0
    right, left, other, diagonal = np.zeros(n), np.zeros(n), np.zeros(n), np.empty(n, K.dtype)
    whole = n - n % 4
    for i in range(0, whole, 4):
        a, b, c, d = K[i], K[i + 1], K[i + 2], K[i + 3]
        va, vb, vc, vd = v[i], v[i + 1], v[i + 2], v[i + 3]
        ta, tb, tc, td = 0.0, 0.0, 0.0, 0.0
        sa, sb, sc, sd = 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            x, y = v[j], u[j]
            ta += a[j] * x
            tb += b[j] * x
            tc += c[j] * x
            td += d[j] * x
            sa += a[j] * y
            sb += b[j] * y
            sc += c[j] * y
            sd += d[j] * y
            left[j] += a[j] * va + b[j] * vb + c[j] * vc + d[j] * vd
        right[i], right[i + 1], right[i + 2], right[i + 3] = ta, tb, tc, td
        other[i], other[i + 1], other[i + 2], other[i + 3] = sa, sb, sc, sd
        diagonal[i], diagonal[i + 1], diagonal[i + 2], diagonal[i + 3] = a[i], b[i + 1], c[i + 2], d[i + 3]
        found = _take(K, rows, part, found, i + 4)
    for i in range(whole, n):
        for j in range(n):
            right[i] += K[i, j] * v[j]
            other[i] += K[i, j] * u[j]
            left[j] += K[i, j] * v[i]
        diagonal[i] = K[i, i]
    _take(K, rows, part, found, n)
    largest, apart = _compare(right, left)
    return other, diagonal, largest, apart


@numba.njit(cache=True, nogil=True)
def _compare(a, b):  # type: ignore[no-untyped-def]
    """The largest size of an entry of a and b, NaN where one is not finite, and their largest difference."""
    largest, apart = 0.0, 0.0
    for i in range(a.shape[0]):
        if not (np.isfinite(a[i]) and np.isfinite(b[i])):
            return np.nan, np.nan
        largest = max(largest, abs(a[i]), abs(b[i]))
        apart = max(apart, abs(a[i] - b[i]))
    return largest, apart


@numba.njit(cache=True, nogil=True)
def _take(K, rows, part, found, stop):  # type: ignore[no-untyped-def]
    """Copy the entries of those `rows` under `stop` that are not yet in `part`; how many are."""
    while found < rows.shape[0] and rows[found] < stop:
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
