"""What a solution with kernels of low rank is worth for the kernels themselves."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray
from ..regularizers import Regularizer
from .base import State
from .certificate import difference, relative
from .problem import Problem


def full_rank_gap(problem: Problem, regularizer: Regularizer, state: State, missing: FloatArray) -> float:
    """A bound on the relative duality gap of the problem with the kernels themselves.

    Factors approximate from below, Z_m Z_m' <= K_m: every function of theirs is one of the kernel, of no
    larger norm, so the primal value P of the approximated problem bounds the optimum from above; and

        alpha' K_m alpha = alpha' Z_m Z_m' alpha + alpha' (K_m - Z_m Z_m') alpha

    with the last term bounded by `missing` gives a dual value that bounds it from below.

    Parameters
    ----------
    problem, regularizer
        What was solved.
    state : State
        The solution with factors.
    missing : ndarray of shape (M,)
        Bounds of the last term.

    Returns
    -------
    gap : float
        (P - D) / |P|; NaN where nothing is known.
    """
    if not np.isfinite(missing).all():
        return np.nan
    dual_norms, proof = np.sqrt(np.maximum(state.squares, 0.0) + missing), state.certificate
    products = float(np.vdot(state.alpha, state.fitted))
    f = state.fitted + proof.intercept
    apart = difference(problem, regularizer, state.alpha, f, None, proof.norms, dual_norms, products)
    return relative(apart, proof.scale) if np.isfinite(apart) else np.nan
