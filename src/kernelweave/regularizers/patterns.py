"""Margins of samples that lack views, each in the space of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog, nnls

from .._typing import FloatArray, IntArray
from .base import Regularizer


class PatternNorm(Regularizer):
    """Omega(n) = 1/2 N(n)^2,  N(n) = max_p sum_m s_pm n_m: the largest norm that any sample sees.

        penalty    1/2 max_p (sum_m s_pm n_m)^2
        conjugate  1/2 min { sum_p q_p : q >= 0, sum_p q_p s_pm >= r_m for all m }^2

    s_pm = 1 where samples of pattern p have kernel m. The margin of a sample that lacks kernels counts in the
    space of those it has (Chechik et al. 2008): scaled to functional margin 1, the smallest geometric margin
    is 1 / N. A pattern within another never decides; where some samples have everything Omega is that of
    `LpNorm` with p = 1, and where no two patterns share a kernel it is the block norm with q = inf. In
    general it is neither a minimum nor a maximum over weights, so it has no price: `solvers.multiple`'s
    ``NewtonNorms`` moves the norms themselves.

    Parameters
    ----------
    patterns : array-like of bool, shape (P, M)

    Examples
    --------
    >>> rule = PatternNorm([[1, 1, 0], [0, 1, 1]])
    >>> rule.penalty(np.array([1.0, 2.0, 4.0])), rule.conjugate(np.array([1.0, 2.0, 1.0]))
    (18.0, 2.0)
    """

    name = "patterns"
    sparse = True
    priced = False
    one_form = "its norm is no price of weights"

    def __init__(self, patterns: Any) -> None:
        self.patterns = patterns

    @property
    def maximal(self) -> FloatArray:
        """The patterns that are within no other, as zeros and ones."""
        S = np.unique(np.asarray(self.patterns, dtype=np.float64), axis=0)
        inside = (S @ S.T >= S.sum(axis=1)[:, None]) & ~np.eye(len(S), dtype=bool)
        return np.asarray(S[~inside.any(axis=1)])

    def select(self, kernels: IntArray, n_kernels: int) -> PatternNorm:
        S = np.asarray(self.patterns, dtype=bool)
        if S.shape[1] != n_kernels:
            raise ValueError(f"PatternNorm: patterns has {S.shape[1]} columns for {n_kernels} kernels.")
        return PatternNorm(np.unique(S[:, kernels], axis=0))

    def price(self, weights: FloatArray) -> float:
        raise NotImplementedError("PatternNorm has no price of weights.")

    def penalty(self, norms: FloatArray) -> float:
        return 0.5 * float((self.maximal @ norms).max()) ** 2

    def conjugate(self, dual_norms: FloatArray) -> float:
        S, top = self.maximal, float(dual_norms.max(initial=0.0))
        if top == 0.0:
            return 0.0
        found = linprog(np.ones(len(S)), A_ub=-S.T, b_ub=-dual_norms / top)
        return 0.5 * (top * float(found.fun)) ** 2

    def weights(self, norms: FloatArray) -> FloatArray:
        """d_m = n_m / (N(n) c_m) with all patterns in the same part of c: optimal where all decide alike."""
        S = self.maximal
        norms = norms if norms.any() else np.ones(norms.shape)
        return np.asarray(norms / (float((S @ norms).max()) * S.mean(axis=0)))

    def model_step(self, norms: FloatArray, dual_norms: FloatArray, curvature: FloatArray) -> FloatArray:
        """argmin_{v >= 0} -r'v + 1/2 (v - n)' Q (v - n) + Omega(v).

        A least-distance problem: minimise over (v, N) subject to N >= sum_m s_pm v_m (Lawson & Hanson 1974).
        """
        S, M = self.maximal, len(norms)
        H = np.zeros((M + 1, M + 1))
        H[:M, :M], H[M, M] = curvature, 1.0
        G = np.block([[np.eye(M), np.zeros((M, 1))], [-S, np.ones((len(S), 1))]])
        L = np.linalg.cholesky(H)
        centre = np.linalg.solve(L, np.append(dual_norms + curvature @ norms, 0.0))
        G = np.linalg.solve(L, G.T)  # of y = L'x - centre
        h = -centre @ G
        size = max(float(np.abs(h).max()), 1e-300)
        u = nnls(np.vstack([G, h / size]), np.append(np.zeros(M + 1), 1.0))[0]
        left = np.append(np.zeros(M + 1), 1.0) - np.vstack([G, h / size]) @ u
        y = -size * left[:-1] / max(left[-1], 1e-300) if h.max() > 0 else np.zeros(M + 1)
        v = np.linalg.solve(L.T, y + centre)[:M]
        return np.asarray(np.where(v > 1e-12 * v.max(initial=0.0), v, 0.0))
