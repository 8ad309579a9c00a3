"""The loops a user would write today around scikit-learn's SVC, stopping at a certified gap.

Both keep a list of precomputed Gram matrices and train ``SVC(kernel="precomputed", tol=1e-4)``
on their weighted sum. For p > 1 the weights follow in closed form; for p = 1 a linear program
over all cuts found so far gives the next weights on the simplex.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from sklearn.svm import SVC


@dataclass
class Fit:
    """Weights and dual variables a loop ends with, and the machines it trained.

    `bound` are the dual variables that prove the gap where those of the machine do not.
    """

    weights: np.ndarray
    alpha: np.ndarray
    gap: float
    n_machines: int
    bound: np.ndarray | None = None


def train(Ks: np.ndarray, weights: np.ndarray, y: np.ndarray, C: float):
    """SVC on the weighted sum: alpha, predictions, and alpha' K_m alpha for every m."""
    live = np.flatnonzero(weights)
    K = np.tensordot(weights[live], Ks[live], 1) if len(live) < len(Ks) else np.tensordot(weights, Ks, 1)
    machine = SVC(kernel="precomputed", C=C, tol=1e-4).fit(K, y)
    alpha = np.zeros(len(y))
    alpha[machine.support_] = machine.dual_coef_.ravel()
    f = K[:, machine.support_] @ alpha[machine.support_] + machine.intercept_[0]
    products = Ks @ alpha
    return alpha, f, products @ alpha


def closed_form(Ks: np.ndarray, y: np.ndarray, C: float, p: float, gap: float = 1e-3, most: int = 500) -> Fit:
    """Alternate SVC with d_m = n_m^(2/(p+1)) / (sum n^(2p/(p+1)))^(1/p)."""
    M, dual = len(Ks), p / (p - 1.0)
    weights = np.full(M, M ** (-1.0 / p))
    for machines in range(1, most + 1):
        alpha, f, s = train(Ks, weights, y, C)
        norms = weights * np.sqrt(s)
        q = 2.0 * p / (p + 1.0)
        primal = C * np.maximum(0.0, 1.0 - y * f).sum() + 0.5 * (norms**q).sum() ** (2.0 / q)
        value = np.abs(alpha).sum() - 0.5 * (s**dual).sum() ** (1.0 / dual)
        if primal - value <= gap * primal or machines == most:
            break
        weights = norms ** (2.0 / (p + 1.0)) / (norms**q).sum() ** (1.0 / p)
    return Fit(weights, alpha, (primal - value) / primal, machines)


def cutting_planes(Ks: np.ndarray, y: np.ndarray, C: float, gap: float = 1e-3, most: int = 500) -> Fit:
    """Alternate SVC with the linear program over its cuts (Sonnenburg et al. 2006)."""
    M = len(Ks)
    weights, cuts, alphas, best = np.full(M, 1.0 / M), [], [], np.inf
    for machines in range(1, most + 1):
        alpha, f, s = train(Ks, weights, y, C)
        primal = C * np.maximum(0.0, 1.0 - y * f).sum() + 0.5 * weights @ s
        if primal < best:
            best, kept = primal, (weights, alpha)
        cuts.append((np.abs(alpha).sum(), 0.5 * s))
        alphas.append(alpha)
        # minimise t subject to t >= linear - d' s / 2 for every cut, d on the simplex
        A = np.array([np.append(-half, -1.0) for _, half in cuts])
        b = np.array([-linear for linear, _ in cuts])
        master = linprog(
            np.append(np.zeros(M), 1.0),
            A_ub=A,
            b_ub=b,
            A_eq=[np.append(np.ones(M), 0.0)],
            b_eq=[1.0],
            bounds=[(0, None)] * M + [(None, None)],
        )
        if best - master.fun <= gap * abs(best) or machines == most:
            break
        weights = np.maximum(master.x[:M], 0.0)
    # the multipliers of the cuts mix their alphas into one whose dual value is at least the master's
    bound = -master.ineqlin.marginals @ np.array(alphas)
    return Fit(*kept, (best - master.fun) / abs(best), machines, bound)
