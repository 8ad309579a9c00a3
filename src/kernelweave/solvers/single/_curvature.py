"""Newton directions of the primal problem: the curvature of a loss in the features, and its inverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from ..._cholesky import positive_factor
from ..._typing import FloatArray
from ..problem import Problem

#: rows for every feature up to which the curvature is computed from all of them, and otherwise from how many
MOST_ROWS, SOME_ROWS = 60, 20

#: most products with the curvature in one Newton step
MOST_PRODUCTS = 30


def curvatures(problem: Problem, f: FloatArray) -> FloatArray:
    """W = C V'' of every sample, shape (n,)."""
    w = (problem.C * problem.loss.hessian(problem.y, f))[:, 0]
    return np.where(w > 1e-12 * w.max(initial=0.0), w, 0.0)


def direction(
    K: Any, w: FloatArray, gradient: FloatArray, v: FloatArray, tol: float, tied: bool
) -> FloatArray:
    """Newton direction in v; the intercept, at its best, follows.

    Parameters
    ----------
    K : FactoredMatrix
    w : ndarray of shape (n,)
        W.
    gradient, v : ndarray of shape (n_features, 1)
    tol : float
        Relative duality gap that is asked for in the end.
    tied : bool
        Whether there is an intercept.
    """
    if not gradient.any():
        return np.zeros_like(gradient)
    curvature = Curvature(K, np.flatnonzero(w), w, tied and bool(w.any()))
    wanted = _accuracy(gradient, v, tol)
    return conjugate_gradients(curvature.product, curvature.precondition, -gradient[:, 0], wanted)[:, None]


def _accuracy(gradient: FloatArray, v: FloatArray, tol: float) -> float:
    """Relative accuracy of the linear system: finer near the optimum, where the steps converge fast."""
    size = float(np.linalg.norm(gradient)) / max(float(np.linalg.norm(v)), 1e-300)
    return float(np.clip(size, min(1e-2, tol), 0.1))


class Curvature:
    """I + Z'WZ, with Z about its weighted mean where the intercept takes that, and its approximate inverse.

    Parameters
    ----------
    K : FactoredMatrix
    curved : ndarray of int
        Rows with W > 0.
    w : ndarray of shape (n,)
    tied : bool
        Whether there is an intercept.
    """

    def __init__(self, K: Any, curved: Any, w: FloatArray, tied: bool) -> None:
        self.K, self.w, self.tied = K, w, tied
        self.exact = len(curved) <= MOST_ROWS * (K.n_features + 1)
        stride = 1 if self.exact else max(1, len(curved) // (SOME_ROWS * (K.n_features + 1)))
        some = curved[::stride]
        self.matrix = K.weighted_gram(some, stride * w[some], tied)
        self.matrix.flat[:: len(self.matrix) + 1] += 1.0
        self.factor = positive_factor(self.matrix)

    def product(self, p: FloatArray) -> FloatArray:
        """The matrix times p."""
        if self.exact:
            return np.asarray(self.matrix @ p)
        values = self.K.apply(p[:, None])[:, 0]
        if self.tied:
            values -= float(self.w @ values) / float(self.w.sum())
        return p + self.K.adjoint((self.w * values)[:, None])[:, 0]

    def precondition(self, p: FloatArray) -> FloatArray:
        """The inverse over some of the rows, times p."""
        return np.asarray(cho_solve(self.factor, p, check_finite=False))


def conjugate_gradients(
    product: Callable[[FloatArray], FloatArray],
    precondition: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    accuracy: float,
) -> FloatArray:
    """Solve A x = right, A positive definite, to a relative residual in the norm of the preconditioner."""
    residual, x = right.copy(), np.zeros_like(right)
    z = precondition(residual)
    p, size = z, float(residual @ z)
    wanted = accuracy**2 * size
    for _ in range(MOST_PRODUCTS):
        Ap = product(p)
        t = size / float(p @ Ap)
        x, residual = x + t * p, residual - t * Ap
        z = precondition(residual)
        before, size = size, float(residual @ z)
        if size <= wanted:
            break
        p = z + (size / before) * p
    return x
