"""Majorise-minimise for concave penalties (SMKL)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._typing import FloatArray
from ...regularizers import Regularizer
from ..base import MKLSolver, State
from ..run import Run

PRUNED = 1e-6  # weights under this share of the largest become exactly zero
COLLAPSED = 1e-9  # share of the objective below which all components together count as zero

#: share of the objective that is rounding
ROUNDING = 1e-13


class MajorizeMinimize(MKLSolver):
    """Trains the machine at the weights of the tangent, d_m = 1 / B_m, again and again.

    The tangent bounds a concave penalty from above and touches it at the current norms, so the
    objective C sum_i V(y_i, f_i) + g never rises. Kernels whose weight falls under 1e-6 of the
    largest are dropped and never looked at again. Stops when the weights have settled: the
    stationarity residual is the largest relative change of a weight by the next step.
    Subrahmanya & Shin (2010), Algorithm 1.

    Parameters
    ----------
    single : str or SingleSolver, default="auto"

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import DenseGram
    >>> from kernelweave.losses import Squared
    >>> from kernelweave.regularizers import SMKL
    >>> from kernelweave.solvers import Problem
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> gram = DenseGram([x @ x.T, np.exp(-((x - x.T) ** 2))])
    >>> problem = Problem(x, Squared(), np.full((20, 1), 10.0))
    >>> (MajorizeMinimize().solve(problem, gram, SMKL()).state.weights > 0).tolist()
    [True, False]
    """

    name = "majorize_minimize"
    residual_name = "stationarity residual"

    def can_handle(self, regularizer: Regularizer) -> bool:
        return not regularizer.convex

    def init(self, run: Run, norms: FloatArray) -> FloatArray:
        self._exhausted = False  # whether no machine lowers the objective any more
        return np.ones(run.gram.n_kernels)

    def restart(self, run: Run, state: State) -> FloatArray:
        self.init(run, state.certificate.norms)
        return self._updated(run, state)

    def next_weights(self, run: Run, state: State) -> FloatArray | None:
        return None if self._exhausted else self._updated(run, state)

    def train(
        self, run: Run, weights: FloatArray, previous: State | None, alpha: FloatArray | None = None
    ) -> State:
        """Train the machine tightly enough that the objective does not rise."""
        for self._tol in (min(1e-6, 0.01 * run.tol), 1e-9, 1e-12):
            state = super().train(run, weights, previous, alpha)
            if previous is None:
                return state
            before = previous.certificate
            if state.certificate.primal <= before.primal + ROUNDING * before.scale:
                return state
        # no machine does better: the previous iterate was stationary up to rounding, and no other step exists
        assert previous is not None
        self._exhausted = True
        return replace(previous, residual=max(previous.certificate.machine_gap, 0.0))

    def machine_tol(self, run: Run, previous: State | None) -> float:
        return self._tol

    def residual(self, run: Run, state: State) -> float:
        proof, weights = state.certificate, state.weights
        live = weights > 0
        if float(proof.norms[live] @ proof.dual_norms[live]) <= COLLAPSED * proof.scale:
            return max(proof.machine_gap, 0.0)  # every component vanishes: f is constant
        new, old = self._updated(run, state)[live], weights[live]
        change = np.abs(new - old) / np.maximum(new, old)
        return float(max(change.max(), proof.machine_gap))

    def _updated(self, run: Run, state: State) -> FloatArray:
        new = np.where(state.weights > 0, run.regularizer.weights(state.certificate.norms), 0.0)
        return np.where(new < PRUNED * new.max(initial=0.0), 0.0, new)
