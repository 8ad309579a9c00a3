"""Squared loss: one linear system."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack

from ..._linalg import positive_factor
from ..._typing import FloatArray
from ..problem import Problem
from .base import Machine, SingleSolver, centred, product, uncentred


class LeastSquares(SingleSolver):
    """Solves (K + diag(1/C)) alpha + b = y, sum(alpha) = 0, by one Cholesky factor for all outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.losses import Squared
    >>> from kernelweave.solvers import Problem
    >>> y = np.array([[2.0], [-2.0]])
    >>> LeastSquares().solve(np.eye(2), Problem(y, Squared(), np.ones((2, 1))), tol=1e-6).alpha.ravel()
    array([ 1., -1.])
    """

    name = "least_squares"
    requires = ("quadratic",)

    def solve(self, K: FloatArray, problem: Problem, tol: float, alpha: FloatArray | None = None) -> Machine:
        self.check(problem.loss)
        if not problem.fit_intercept:
            alpha = _solved(K, problem)
            return Machine(alpha, product(K, alpha), 1)
        about, means = centred(K)
        alpha = _solved(about, problem)
        return Machine(alpha, uncentred(product(about, alpha), means, alpha), 1)

    def solve_column(self, K: FloatArray, problem: Problem, tol: float, alpha: FloatArray) -> Machine:
        return self.solve(K, problem, tol, alpha)


def _solved(K: FloatArray, problem: Problem) -> FloatArray:
    """alpha of the linear system."""
    A = K.astype(np.float64)
    A.flat[:: len(A) + 1] += 1.0 / problem.C[:, 0]
    solution = cho_solve(positive_factor(A), np.hstack([problem.centred(problem.y), np.ones_like(problem.C)]))
    alpha = solution[:, :-1]
    if problem.fit_intercept:
        ones = solution[:, -1:]
        alpha = alpha - ones * (alpha.sum(axis=0) / ones.sum())
    return problem.feasible(alpha)


def symmetric_solver(A: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """The map B -> A^-1 B, by Cholesky, or by an indefinite factor where rounding makes A not positive."""
    try:
        factor = cho_factor(A, lower=True, check_finite=False)
    except LinAlgError:
        return lambda B: lapack.dsysv(A, B, lower=True)[2].reshape(B.shape)
    return lambda B: cho_solve(factor, B, check_finite=False)
