"""Fits on kernels that an engine rounds: certified, and where that is needed finished, in double precision.

An engine may keep or multiply kernel values in single precision. What it solves is then a problem that
differs from the one that the model stands for by the rounding of its kernels, times dual variables that
may be as large as C; and so do its primal and dual values. Here both are computed once more, from the
kernel values with which the model predicts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..gram import Gram
from ..regularizers import Regularizer
from .certificate import certificate
from .problem import Problem

if TYPE_CHECKING:
    from .base import Callback, MKLSolver, Run, State


#: iterations on rounded kernels after which the gap has to be smaller, and by how much
PATIENCE, PROGRESS = 10, 0.9


class WhileItHelps:
    """A callback that also ends a run on rounded kernels whose gap no longer falls: rounding is its limit.

    Parameters
    ----------
    callback : callable
    run : Run
    """

    def __init__(self, callback: Callback, run: Run) -> None:
        self.callback, self.run = callback, run

    def __call__(self, iteration: int, state: State) -> bool:
        told = bool(self.callback(iteration, state))
        gaps = self.run.history["gap"]
        if told or not self.run.gram.rounds or len(gaps) <= PATIENCE:
            return told
        return min(gaps[-PATIENCE:]) > PROGRESS * min(gaps[:-PATIENCE])


def recheck(solver: MKLSolver, run: Run, problem: Problem, regularizer: Regularizer) -> bool:
    """Certify the best iterate of `run` without the rounding of its engine, and let that engine go.

    Returns
    -------
    rounded : bool
        Whether the engine rounds; otherwise nothing is done.
    """
    fine = run.gram.in_double()
    if fine is None or run.best is None:
        return False
    fine.n_passes = run.gram.n_passes
    rounded, state = run.best.certificate, certified(solver, problem, fine, regularizer, run.best)
    proof = state.certificate
    for place in np.flatnonzero(np.equal(run.history["primal"], rounded.primal)).tolist():
        run.history["primal"][place], run.history["dual"][place] = proof.primal, proof.dual
        run.history["gap"][place] = proof.gap
    run.gram, run.best = fine, state
    run.last = None  # type: ignore[assignment]
    return True


def certified(
    solver: MKLSolver, problem: Problem, gram: Gram, regularizer: Regularizer, state: State
) -> State:
    """An iterate with its values and its certificate from the kernels of another engine."""
    alpha, weights, own = state.alpha, state.weights, state.coefficients
    if own is None:
        fitted, norms = gram.dot(weights, alpha), None
    else:
        fitted, norms = gram.values_of(own), gram.component_norms(own)
    squares = gram.quad(alpha)
    proof = certificate(problem, gram, regularizer, alpha, weights, fitted, squares, norms)
    residual = solver.residual(proof, weights)
    return replace(state, fitted=fitted, squares=squares, certificate=proof, residual=residual)
