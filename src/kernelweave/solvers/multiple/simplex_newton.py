"""Second-order steps on the simplex, for the sparse case p = 1."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..._typing import FloatArray, IntArray
from ...gram import Gram
from ...regularizers import Regularizer
from ..base import MKLSolver, State
from ..problem import Problem
from ..single import SingleSolver


class SimplexNewton(MKLSolver):
    """Newton steps on the value J(d) of the machine, d on the simplex.

        J(d) = max_alpha -sum_i C_i V*(y_i, -alpha_i / C_i) - 1/2 alpha' K_d alpha
        dJ/dd_m = -s_m / 2,   d2J/dd_m dd_l = g_m' P g_l,   g_m = K_m alpha on the free samples

    where P inverts K_d + diag(V*'' / C) on the samples free to move, on the subspace that keeps
    sum(alpha). The quadratic model is minimised over the simplex; a step that does not lower
    the primal is shortened by interpolation. Only kernels that carry weight or whose s_m asks
    for some enter the model. Chapelle & Rakotomamonjy (2008), for every loss.

    Parameters
    ----------
    single : str or SingleSolver, default="auto"
    max_entering : int, default=20
        Most kernels without weight that may enter at once, largest s_m first.
    """

    name = "simplex_newton"
    uses_pilot = True

    def __init__(self, single: str | SingleSolver = "auto", max_entering: int = 20) -> None:
        super().__init__(single)
        self.max_entering = max_entering

    def can_handle(self, regularizer: Regularizer) -> bool:
        return getattr(regularizer, "sparse", False)

    def init(self, problem: Problem, gram: Gram, regularizer: Regularizer, norms: FloatArray) -> FloatArray:
        self._best: State | None = None
        return super().init(problem, gram, regularizer, norms)

    def next_weights(self, state: State) -> FloatArray:
        best = self._best
        if best is not None and state.certificate.machine_dual > best.certificate.machine_primal:
            return _interpolate(best, state)
        self._best = state
        return self._model_minimum(state)

    def _model_minimum(self, state: State) -> FloatArray:
        chosen = self._candidates(state)
        hessian = self._hessian(state, chosen)
        weights = np.zeros_like(state.weights)
        weights[chosen] = minimise_on_simplex(hessian, 0.5 * state.squares[chosen], state.weights[chosen])
        return weights

    def _candidates(self, state: State) -> IntArray:
        """Kernels with weight, and those whose s_m exceeds the mean that the weighted ones have."""
        s, weights = state.squares, state.weights
        level = float(weights @ s) / float(weights.sum())
        entering = np.flatnonzero((s > level) & (weights == 0))
        entering = entering[np.argsort(-s[entering])][: self.max_entering]
        return np.concatenate([np.flatnonzero(weights), entering])

    def _hessian(self, state: State, chosen: IntArray) -> FloatArray:
        total = np.zeros((len(chosen), len(chosen)))
        problem = self._problem
        curvature = problem.loss.dual_curvature(problem.y, state.alpha / problem.C) / problem.C
        for k in range(problem.shape[1]):
            free = np.flatnonzero(np.isfinite(curvature[:, k]))
            if len(free) > 1:
                G = self._products(state.alpha[:, k], chosen, free)
                K = self._K[np.ix_(free, free)]
                total += projected_inverse_form(K, curvature[free, k], G, problem.fit_intercept)
        return total

    def _products(self, alpha: FloatArray, chosen: IntArray, rows: IntArray) -> FloatArray:
        """Columns K_m alpha on some rows, for the chosen kernels."""
        units = np.eye(self._gram.n_kernels)[chosen]
        return np.column_stack([self._gram.dot(unit, alpha, rows) for unit in units])


def projected_inverse_form(K: FloatArray, curvature: FloatArray, G: FloatArray, tied: bool) -> FloatArray:
    """G' P G with P the inverse of K + diag(curvature), within {x : sum(x) = 0} when `tied`."""
    A = K.copy()
    A.flat[:: len(A) + 1] += curvature + 1e-10 * float(K.diagonal().mean())
    solved = cho_solve(
        cho_factor(A, lower=True, overwrite_a=True, check_finite=False), np.column_stack([G, np.ones(len(A))])
    )
    form, ones = G.T @ solved[:, :-1], solved[:, -1]
    if tied:
        shift = G.T @ ones
        form -= np.outer(shift, shift) / ones.sum()
    return 0.5 * (form + form.T)


def minimise_on_simplex(hessian: FloatArray, descent: FloatArray, start: FloatArray) -> FloatArray:
    """min_x -descent'(x - start) + 1/2 (x - start)' H (x - start) over the simplex, by SMO."""
    from ..single._smo_loops import solve_tied

    size = len(start)
    x = start / start.sum()
    G = hessian @ (x - start) - descent
    eps = 1e-10 * max(float(np.abs(descent).max()), 1e-300)
    solve_tied(hessian, hessian.diagonal().copy(), np.zeros(size), np.ones(size), 0.0, x, G, eps, 100_000)
    return x / x.sum()


def _interpolate(best: State, trial: State) -> FloatArray:
    """A point between two, where the quadratic through J(best), its slope, and J(trial) is least."""
    step = trial.weights - best.weights
    slope = -0.5 * float(best.squares @ step)
    rise = trial.certificate.machine_dual - best.certificate.machine_primal
    t = -0.5 * slope / max(rise - slope, 1e-300) if slope < 0 else 0.5
    return best.weights + min(max(t, 0.05), 0.5) * step
