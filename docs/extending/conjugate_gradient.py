"""Squared loss by conjugate gradients."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from kernelweave.solvers.single import Machine, SingleSolver, machine_gap


class ConjugateGradient(SingleSolver):
    """Solves (K + diag(1/C)) alpha + b = y, sum(alpha) = 0, by products with K alone.

    Examples
    --------
    >>> from kernelweave.losses import Squared
    >>> from kernelweave.solvers import Problem
    >>> y = np.array([[2.0], [-2.0]])
    >>> ConjugateGradient().solve(np.eye(2), Problem(y, Squared(), np.ones((2, 1))), tol=1e-6).alpha.ravel()
    array([ 1., -1.])
    """

    name = "conjugate_gradient"
    requires = ("quadratic",)  # V(y, f) = (y - f)^2 / 2

    def solve_column(self, K, problem, tol, alpha):
        n, n_iter = len(K), 0
        A = LinearOperator((n, n), matvec=lambda v: K @ v + v / problem.C[:, 0], dtype=np.float64)
        ones, start, accuracy = np.zeros(n), alpha[:, 0], 0.1 * tol
        while True:
            start, _ = cg(A, problem.y[:, 0], x0=start, rtol=accuracy)
            if problem.fit_intercept:  # the b that makes alpha sum to zero
                ones, _ = cg(A, np.ones(n), x0=ones, rtol=accuracy)
                alpha = (start - ones * (start.sum() / ones.sum()))[:, None]
            else:
                alpha = start[:, None]
            alpha, n_iter = problem.feasible(alpha), n_iter + 1
            fitted = K @ alpha
            if machine_gap(problem, alpha, fitted) <= tol or accuracy < 1e-15:
                return Machine(alpha, fitted, n_iter)
            accuracy *= 0.01
