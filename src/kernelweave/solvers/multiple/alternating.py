"""Alternating minimisation over machine and weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._typing import FloatArray, IntArray
from ...gram import Gram
from ...regularizers import Regularizer
from ..base import State
from ..growing import Pilot
from ..problem import Problem
from ..run import Run
from ._fixed_point import LEAST, NEAR, FixedPoint, _log
from .newton_weights import value_hessian

#: kernels up to which Newton steps pay: their matrix is of that size
MOST_NEWTON = 1000

#: share of the tolerance left to the last machine
LAST_SHARE = 0.2


class Alternating(FixedPoint):
    """Machine at fixed weights, then the closed-form weights of its norms, in turn.

    Each half-step minimises the joint objective, which therefore never rises; for the lp norm
    with p > 1 every limit point is optimal (Kloft et al. 2011, Algorithm 1 and Theorem 4).
    Three things make it fast. Machines are solved only as well as the current gap deserves.
    Many samples are first looked at through a few of them, twice: the norms on few and on fewer
    samples, continued to all of them, are the start, and the Jacobian of the map from log norms
    to log norms turns plain steps into Newton steps; it is taken anew on all samples where steps
    are slow,

        d log n_m / d log d_l = [m = l] - H_ml d_l / s_m,   H = d2J/dd2,  s_m = alpha' K_m alpha

    And steps are extrapolated (Anderson acceleration), falling back to the plain step whenever
    the objective rises.

    Parameters
    ----------
    single : str or SingleSolver, default="auto"
    memory : int, default=5
        Iterates used to extrapolate; 0 is the plain algorithm, without Newton steps.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import DenseGram
    >>> from kernelweave.losses import Squared
    >>> from kernelweave.regularizers import LpNorm
    >>> from kernelweave.solvers import Problem
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> gram = DenseGram([x @ x.T, np.exp(-((x - x.T) ** 2))])
    >>> problem = Problem(x, Squared(), np.ones((20, 1)))
    >>> Alternating().solve(problem, gram, LpNorm(p=2), tol=1e-6).converged
    True
    """

    name = "alternating"
    pilot_share, pilot_tol = 10, 0.001

    def can_handle(self, regularizer: Regularizer) -> bool:
        return self.supports(regularizer) and not regularizer.sparse

    def supports(self, regularizer: Regularizer) -> bool:
        return regularizer.convex and not getattr(regularizer, "ascends", False)

    def init(self, run: Run, norms: FloatArray) -> FloatArray:
        self._best = np.inf  # upper bound of the lowest objective so far
        return super().init(run, norms)

    def restart(self, run: Run, state: State) -> FloatArray:
        """Plain steps start with no norm near zero: they would hardly change it."""
        norms = state.certificate.norms
        if self.memory == 0:
            state = replace(
                state, certificate=replace(state.certificate, norms=np.maximum(norms, LEAST * norms.max()))
            )
        return super().restart(run, state)

    def learn_from(self, run: Run, pilot: Pilot) -> None:
        # the weights are nearly right, a coarse machine would hide by how much
        self._first_tol = LAST_SHARE * run.tol
        if self._takes_newton_steps(run):
            parts = (pilot.problem, pilot.gram, run.regularizer, pilot.state, pilot.matrix)
            self._newton = newton_factor(*parts)

    def foreseen_norms(self, fewer: Pilot, pilot: Pilot, n_samples: int) -> FloatArray:
        """Log norms continued in 1 / sqrt(samples), the rate at which the sampling bias falls."""
        few, some, all_ = (count**-0.5 for count in (len(fewer.rows), len(pilot.rows), n_samples))
        change = _log(pilot.norms) - _log(fewer.norms)
        return np.asarray(pilot.norms * np.exp((some - all_) / (few - some) * np.clip(change, -1.0, 1.0)))

    def machine_tol(self, run: Run, previous: State | None) -> float:
        """Fine at once where Newton steps will make the machine most of what is left."""
        near = previous is not None and self._newton is not None and previous.residual < NEAR
        return LAST_SHARE * run.tol if near else super().machine_tol(run, previous)

    def _takes_newton_steps(self, run: Run) -> bool:
        return self.memory > 0 and run.gram.n_kernels <= MOST_NEWTON

    def newton(self, run: Run, state: State) -> FloatArray | None:
        if not self._takes_newton_steps(run):
            return None
        return newton_factor(run.problem, run.gram, run.regularizer, state, run.K)

    def image(self, state: State) -> FloatArray:
        return state.certificate.norms

    def weights_of(self, regularizer: Regularizer, norms: FloatArray) -> FloatArray:
        return regularizer.weights(norms)

    def is_worse(self, run: Run, state: State) -> bool:
        price = 0.5 * run.regularizer.price(state.weights)
        if state.certificate.machine_dual + price > self._best:
            return True
        self._best = min(self._best, state.certificate.machine_primal + price)
        return False


def newton_factor(
    problem: Problem, gram: Gram, regularizer: Regularizer, state: State, K: FloatArray
) -> FloatArray | None:
    """(I - J)^-1 with J the Jacobian of the map of log norms at `state`, if it exists."""
    each = np.eye(gram.n_kernels)
    norms, squares = state.certificate.norms, state.squares
    if not (norms.min() > 0.0 and squares.min() > 0.0):
        return None

    def products(alpha: FloatArray, rows: IntArray) -> FloatArray:
        return gram.dots(each, alpha, rows)

    H = value_hessian(problem, state, K, products)
    of_weights = each - H * state.weights / squares[:, None]
    factor = np.linalg.inv(each - of_weights @ log_weight_slopes(regularizer, norms))
    return factor if np.isfinite(factor).all() else None


def log_weight_slopes(regularizer: Regularizer, norms: FloatArray, step: float = 1e-5) -> FloatArray:
    """d log d_m / d log n_l, by differences."""
    start = np.log(regularizer.weights(norms))
    moved = [np.log(regularizer.weights(norms * np.exp(step * unit))) for unit in np.eye(len(norms))]
    return (np.array(moved) - start).T / step
