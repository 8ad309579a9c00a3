"""Second derivatives of the value of the machine in the weights of the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from ..._cholesky import positive_factor
from ..._typing import FloatArray, IntArray
from ..base import State
from ..problem import Problem

#: products(alpha, rows): one column per kernel, K_m alpha on some rows
Products = Callable[[FloatArray, IntArray], FloatArray]


def value_hessian(problem: Problem, state: State, K: Any, products: Products) -> FloatArray:
    """d2J/dd_m dd_l = g_m' P g_l, with J(d) the value of the machine at weights d and g_m = K_m alpha.

    P inverts K_d + diag(V*'' / C) on the samples free to move, on the subspace that keeps
    sum(alpha). Chapelle & Rakotomamonjy (2008).

    Parameters
    ----------
    problem : Problem
    state : State
    K : ndarray of shape (n, n)
        K_d at the weights of `state`.
    products : callable
    """
    curvature = problem.loss.dual_curvature(problem.y, state.alpha / problem.C) / problem.C
    total: FloatArray | float = 0.0
    for k in range(problem.shape[1]):
        free = np.flatnonzero(np.isfinite(curvature[:, k]))
        G = products(state.alpha[:, k], free)
        if isinstance(K, np.ndarray):
            K_free = K[np.ix_(free, free)]
            size = float(K.diagonal().mean())
            form = projected_inverse_form(K_free, curvature[free, k], G, problem.fit_intercept, size)
        else:  # on another device
            form = K.inverse_form(free, curvature[free, k], G, problem.fit_intercept)
        total = total + form
    return np.asarray(total)


def projected_inverse_form(
    K: FloatArray, curvature: FloatArray, G: FloatArray, tied: bool, size: float = 0.0
) -> FloatArray:
    """G' P G with P the inverse of K + diag(curvature), within {x : sum(x) = 0} when `tied`.

    A share of the diagonal of K, or of `size` where that is more, is added to it: K may be zero on the
    samples that are free.
    """
    ridge = 1e-10 * max(float(K.diagonal().mean()) if len(K) else 0.0, size)
    if len(K) <= int(tied) or not (ridge > 0.0 or curvature.any()):
        return np.zeros((G.shape[1], G.shape[1]))
    A = K.copy()
    A.flat[:: len(A) + 1] += curvature + ridge
    solved = cho_solve(positive_factor(A), np.column_stack([G, np.ones(len(A))]))
    form, ones = G.T @ solved[:, :-1], solved[:, -1]
    if tied:
        shift = G.T @ ones
        form -= np.outer(shift, shift) / ones.sum()
    return 0.5 * (form + form.T)
