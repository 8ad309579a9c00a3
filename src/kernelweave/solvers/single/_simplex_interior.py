"""An interior-point method for the dual variables of coupled outputs."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, lapack

from ..._linalg import positive_factor
from ..._typing import FloatArray

#: most steps, the share of the gap that a step aims at, and how near to the boundary it may go
MOST_STEPS, CENTRE, NEAR = 60, 0.1, 0.99


def interior_plan(
    K: FloatArray, P: FloatArray, supply: FloatArray, demand: FloatArray | None, gap: float
) -> tuple[FloatArray, FloatArray]:
    """min_U 1/2 sum_k U_k' K U_k - <P, U>  over U >= 0 with rows that sum to `supply`, columns to `demand`.

    With multipliers t of the rows, b of the columns and S >= 0 of U, the conditions are
    K U - P + t - b = S  and  U S = 0. A Newton step towards U S = mu solves, for every column,

        (K + diag(S_k / U_k)) dU_k + dt - db_k = mu / U_k - S_k,   sum_k dU_k = 0,  sum_i dU_ik = 0

    by one Cholesky factor per column and one of the sum of their inverses.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    P : ndarray of shape (n, c)
    supply : ndarray of shape (n,)
        Positive.
    demand : ndarray of shape (c,), or None
        Positive, of the same sum; None leaves the columns free.
    gap : float
        The difference of primal and dual value, <U, S>, to end at.

    Returns
    -------
    U, S : ndarray of shape (n, c)
    """
    n, c = P.shape
    shares = np.full(c, 1.0 / c) if demand is None else demand / demand.sum()
    U = np.outer(supply, shares)
    A = P - K @ U
    S = A.max(axis=1, keepdims=True) + (float(np.ptp(A, axis=1).max()) or 1.0) - A
    for _ in range(MOST_STEPS):
        left = float(np.vdot(U, S))
        if left <= gap:
            break
        D, right = S / U, CENTRE * left / (U.size * U) - S
        factors = [positive_factor(_plus(K, D[:, k])) for k in range(c)]
        v = np.column_stack([cho_solve(factor, right[:, k]) for k, factor in enumerate(factors)])
        m = np.column_stack([cho_solve(factor, np.ones(n)) for factor in factors])
        inverses = np.zeros_like(K)
        for factor in factors:
            inverses += _inverse(*factor)
        total = positive_factor(inverses)
        missing = v.sum(axis=1) - (supply - U.sum(axis=1))
        db = np.zeros(c)
        if demand is not None:
            of_m = cho_solve(total, m)
            system = np.diag(m.sum(axis=0)) - m.T @ of_m
            wanted = demand - U.sum(axis=0) - v.sum(axis=0) + of_m.T @ missing
            db[:-1] = np.linalg.lstsq(system[:-1, :-1], wanted[:-1], rcond=None)[0]
        dt = cho_solve(total, missing + m @ db)
        back = np.column_stack([cho_solve(factor, dt) for factor in factors])
        dU = v - back + m * db
        dS = right - D * dU
        step = min(1.0, *(NEAR * _reach(x, dx) for x, dx in ((U, dU), (S, dS))))
        U, S = U + step * dU, S + step * dS
    return U, S


def _plus(K: FloatArray, diagonal: FloatArray) -> FloatArray:
    A = K.copy()
    A.flat[:: len(A) + 1] += diagonal
    return A


def _inverse(factor: FloatArray, lower: bool) -> FloatArray:
    """The inverse of a matrix from its Cholesky factor."""
    half = lapack.dpotri(factor, lower=lower)[0]
    half = half if lower else half.T
    return np.asarray(np.tril(half) + np.tril(half, -1).T)


def _reach(x: FloatArray, dx: FloatArray) -> float:
    """The largest t up to which x + t dx stays positive."""
    return float(np.divide(x, -dx, out=np.full_like(x, np.inf), where=dx < 0.0).min())
