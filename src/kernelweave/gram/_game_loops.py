"""Compiled loops over games of features: products of numbers, of truncated polynomials, of equal symbols.

Rows r, expansion points i and background rows b; every loop adds, for each function j,

    out[j, r, f] += sum_i coef[i, j] sum_b weight[b] phi_f(r, b, i)

with phi the Shapley values of the game that takes the features of a set from row r and the others from row b.
"""

from __future__ import annotations

import numba
import numpy as np

from .._typing import FloatArray, IntArray

# sums may be reordered to use vector registers; NaN and infinity keep their meaning
FAST = {"reassoc", "contract", "nsz"}

#: a product with a factor below this in both rows counts as zero
NOTHING = 1e-140


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def product_games(
    V: FloatArray,
    A: FloatArray,
    weight: FloatArray,
    coef: FloatArray,
    limits: FloatArray,
    starts: IntArray,
    nodes: FloatArray,
    shares: FloatArray,
    out: FloatArray,
) -> None:
    """Games prod_f k_f of positive factors V (R, I, F) and A (B, I, F).

    Rule q of Gauss and Legendre has nodes[starts[q]:starts[q + 1]], and serves games with
    sum_f |v_f - a_f| / (v_f + a_f) up to limits[q], or with at most twice as many features that differ.
    """
    R, points, F = V.shape
    delta, phi = np.empty(F), np.empty(F)
    for r in range(R):
        for i in range(points):
            v = V[r, i]
            phi[:] = 0.0
            for b in range(A.shape[0]):
                a = A[b, i]
                spread, differ, least = 0.0, 0, 1.0
                for f in range(F):
                    delta[f] = v[f] - a[f]
                    spread += abs(delta[f]) / (v[f] + a[f] + 1e-300)
                    least = min(least, max(v[f], a[f]))
                    differ += delta[f] != 0.0
                if differ == 0 or least < NOTHING:
                    continue
                q = 0
                while spread > limits[q] and differ > 2 * (starts[q + 1] - starts[q]):
                    q += 1
                _add_product(a, delta, weight[b], nodes, shares, starts[q], starts[q + 1], phi)
            for j in range(coef.shape[1]):
                c = coef[i, j]
                for f in range(F):
                    out[j, r, f] += c * phi[f]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _add_product(
    a: FloatArray,
    delta: FloatArray,
    weight: float,
    nodes: FloatArray,
    shares: FloatArray,
    start: int,
    stop: int,
    phi: FloatArray,
) -> None:
    """Add weight * int_0^1 delta_f prod_{g != f} (a_g + u delta_g) du to phi_f, two nodes at a time.

    Factors are positive, so dividing the product by one of them rounds no more than leaving it out.
    """
    F = a.shape[0]
    for n in range(start, stop - 1, 2):
        s, t = nodes[n], nodes[n + 1]
        left, right = weight * shares[n], weight * shares[n + 1]
        for f in range(F):
            left *= a[f] + s * delta[f]
            right *= a[f] + t * delta[f]
        for f in range(F):
            x, y = a[f] + s * delta[f], a[f] + t * delta[f]
            phi[f] += delta[f] * (left * y + right * x) / (x * y)
    if (stop - start) % 2:
        s, left = nodes[stop - 1], weight * shares[stop - 1]
        for f in range(F):
            left *= a[f] + s * delta[f]
        for f in range(F):
            phi[f] += delta[f] * left / (a[f] + s * delta[f])


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def power_games(
    S: FloatArray,
    T: FloatArray,
    constant: float,
    weight: FloatArray,
    coef: FloatArray,
    cumulants: FloatArray,
    slopes: FloatArray,
    out: FloatArray,
) -> None:
    """Games (c + sum_f s_f)^p of summands S (R, I, F) and T (B, I, F).

    With delta_f = s_f - t_f, P_r = sum_f delta_f^r, and cumulants b_r(u) of a variable that is 1 with
    probability u, else 0, the value of a random set of features has the exponential generating function
    M(e) = exp((c + sum_f t_f) e + sum_r b_r(u) P_r e^r / r!), and

        phi_f = p! sum_k delta_f^k / k! int_0^1 b_k'(u) M_(p - k)(u) du

    `cumulants` has b_r / r!, `slopes` weights of nodes times p! b_r' / r!, shapes (n_nodes, p + 1).
    """
    R, points, F = S.shape
    p = cumulants.shape[1] - 1
    delta, phi, sums = np.empty(F), np.empty(F), np.empty(p + 1)
    M, A = np.empty(p + 1), np.empty(p + 1)
    for r in range(R):
        for i in range(points):
            s = S[r, i]
            phi[:] = 0.0
            for b in range(T.shape[0]):
                t = T[b, i]
                start = constant
                for f in range(F):
                    delta[f] = s[f] - t[f]
                    start += t[f]
                for m in range(1, p + 1):
                    total = 0.0
                    for f in range(F):
                        total += delta[f] ** m
                    sums[m] = total
                A[:] = 0.0
                for q in range(cumulants.shape[0]):
                    M[0] = 1.0
                    for n in range(1, p):
                        value = start * M[n - 1]
                        for m in range(1, n + 1):
                            value += m * cumulants[q, m] * sums[m] * M[n - m]
                        M[n] = value / n
                    for k in range(1, p + 1):
                        A[k] += weight[b] * slopes[q, k] * M[p - k]
                for f in range(F):
                    value = A[p]
                    for k in range(p - 1, 0, -1):
                        value = value * delta[f] + A[k]
                    phi[f] += value * delta[f]
            for j in range(coef.shape[1]):
                for f in range(F):
                    out[j, r, f] += coef[i, j] * phi[f]


@numba.njit(cache=True, nogil=True)
def _exponential(scale: float, s: FloatArray, powers: IntArray, out: FloatArray) -> None:
    """scale * exp(s_1 e_1 + s_2 e_2 + ...), truncated: the coefficient of prod_k e_k^m_k has powers m."""
    for n in range(powers.shape[0]):
        value = scale
        for k in range(s.shape[0]):
            for m in range(1, powers[n, k] + 1):
                value *= s[k] / m
        out[n] = value


@numba.njit(cache=True, nogil=True)
def _multiply(x: FloatArray, y: FloatArray, table: IntArray, out: FloatArray) -> None:
    """The product of two truncated polynomials; `table` says which two coefficients make which."""
    out[:] = 0.0
    for t in range(table.shape[0]):
        out[table[t, 2]] += x[table[t, 0]] * y[table[t, 1]]


@numba.njit(cache=True, nogil=True)
def _norms(constants: FloatArray, S: FloatArray, T: FloatArray, powers: IntArray, out: FloatArray) -> None:
    """prod_k scale_k^m_k of every term, scale_k = 1 / (|c_k| + sum_f max(|s_fk|, |t_fk|)).

    With these shares, sum_n out_n |p_n| is a norm. The norm of a product is at most the product of the norms,
    and the norm of the product of all exponentials is at most e.
    """
    for n in range(powers.shape[0]):
        out[n] = 1.0
    for k in range(constants.shape[0]):
        total = abs(constants[k]) + 1e-300
        for f in range(S.shape[0]):
            total += max(abs(S[f, k]), abs(T[f, k]))
        for n in range(powers.shape[0]):
            out[n] *= total ** -powers[n, k]


@numba.njit(cache=True, nogil=True)
def polynomial_games(
    V: FloatArray,
    A: FloatArray,
    S: FloatArray,
    T: FloatArray,
    constants: FloatArray,
    weight: FloatArray,
    coef: FloatArray,
    powers: IntArray,
    table: IntArray,
    limits: FloatArray,
    starts: IntArray,
    nodes: FloatArray,
    shares: FloatArray,
    out: FloatArray,
) -> None:
    """Games prod_f v_f prod_k (c_k + sum_f s_fk)^p_k: products over f in an algebra.

    (c + s)^p = p! times the coefficient of e^p in exp(c e) prod_f exp(s_f e), so every game is a product over
    features of polynomials in e_1, e_2, ... truncated at degrees p_1, p_2, ...; its value is the last
    coefficient. V (R, I, F) and A (B, I, F) are factors, S (R, I, F, K) and T (B, I, F, K) summands. The
    rules of nodes are the same as in `product_games`, with the norms of `_norms` in place of sizes.
    """
    R, points, F = V.shape
    N = powers.shape[0]
    of_row, of_background = np.empty((F, N)), np.empty((F, N))
    before, after = np.empty((F + 1, N)), np.empty(N)
    mixed, part, phi, share_of = np.empty(N), np.empty(N), np.empty(F), np.empty(N)
    top = 1.0
    for k in range(powers.shape[1]):
        for m in range(1, powers[N - 1, k] + 1):
            top *= m
    for r in range(R):
        for i in range(points):
            for f in range(F):
                _exponential(V[r, i, f], S[r, i, f], powers, of_row[f])
            phi[:] = 0.0
            for b in range(A.shape[0]):
                for f in range(F):
                    _exponential(A[b, i, f], T[b, i, f], powers, of_background[f])
                _norms(constants, S[r, i], T[b, i], powers, share_of)
                spread, differ = 0.0, 0
                for f in range(F):
                    apart, together = 0.0, 1e-300
                    for n in range(N):
                        apart += share_of[n] * abs(of_row[f, n] - of_background[f, n])
                        together += share_of[n] * abs(of_row[f, n] + of_background[f, n])
                    spread += apart / together
                    differ += apart != 0.0
                if differ == 0:
                    continue
                rule = 0
                while spread > limits[rule] and differ > 2 * (starts[rule + 1] - starts[rule]):
                    rule += 1
                for q in range(starts[rule], starts[rule + 1]):
                    u, share = nodes[q], shares[q] * weight[b] * top
                    _exponential(1.0, constants, powers, before[0])
                    for f in range(F):
                        for n in range(N):
                            mixed[n] = (1.0 - u) * of_background[f, n] + u * of_row[f, n]
                        _multiply(before[f], mixed, table, before[f + 1])
                    after[:] = 0.0
                    after[0] = 1.0
                    for f in range(F - 1, -1, -1):
                        _multiply(before[f], after, table, part)
                        total = 0.0
                        for t in range(table.shape[0]):
                            if table[t, 2] == N - 1:
                                n = table[t, 0]
                                total += (of_row[f, n] - of_background[f, n]) * part[table[t, 1]]
                        phi[f] += share * total
                        for n in range(N):
                            mixed[n] = (1.0 - u) * of_background[f, n] + u * of_row[f, n]
                        _multiply(mixed, after, table, part)
                        after[:] = part
            for j in range(coef.shape[1]):
                for f in range(F):
                    out[j, r, f] += coef[i, j] * phi[f]


@numba.njit(cache=True, nogil=True)
def window_games(
    X: IntArray,
    Z: IntArray,
    background: IntArray,
    weight: FloatArray,
    coef: FloatArray,
    lengths: FloatArray,
    shifts: FloatArray,
    table: FloatArray,
    out: FloatArray,
) -> None:
    """Games of substrings that are equal: symbols X (R, L), Z (I, Lz) and background (B, L), 0 for none.

    A window is equal where p symbols come from row r, q from row b, and the others, equal in both, from
    either row. Each of the p gets table[p, q] = (p - 1)! q! / (p + q)!, and each of the q gets -table[q, p].
    """
    longest, reach = lengths.shape[0] - 1, shifts.shape[0] - 1
    phi = np.empty(X.shape[1])
    for r in range(X.shape[0]):
        for i in range(Z.shape[0]):
            phi[:] = 0.0
            for b in range(background.shape[0]):
                for shift in range(-reach, reach + 1):
                    factor = weight[b] * shifts[abs(shift)]
                    for start in range(max(0, -shift), min(Z.shape[1], X.shape[1] - shift)):
                        stop = min(start + longest, Z.shape[1], X.shape[1] - shift)
                        _add_windows(
                            X[r], Z[i], background[b], factor, lengths, table, start, stop, shift, phi
                        )
            for j in range(coef.shape[1]):
                for place in range(phi.shape[0]):
                    out[j, r, place] += coef[i, j] * phi[place]


@numba.njit(cache=True, nogil=True)
def _add_windows(
    x: IntArray,
    z: IntArray,
    other: IntArray,
    factor: float,
    lengths: FloatArray,
    table: FloatArray,
    start: int,
    stop: int,
    shift: int,
    phi: FloatArray,
) -> None:
    """Add the values of all windows that start at one place."""
    p, q = 0, 0
    for last in range(start, stop):
        symbol, place = z[last], last + shift
        here, there = x[place] == symbol, other[place] == symbol
        if symbol == 0 or not (here or there):
            return
        p += here and not there
        q += there and not here
        value = factor * lengths[last - start + 1]
        if value == 0.0 or p + q == 0:
            continue
        for t in range(start, last + 1):
            mine, theirs = x[t + shift] == z[t], other[t + shift] == z[t]
            if mine and not theirs:
                phi[t + shift] += value * table[p, q]
            elif theirs and not mine:
                phi[t + shift] -= value * table[q, p]
