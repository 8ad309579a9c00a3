"""Alternating minimisation over machine and weights."""

from __future__ import annotations

import numpy as np

from ..._typing import FloatArray
from ...gram import Gram
from ...regularizers import Regularizer
from ..base import State
from ..problem import Problem
from ._fixed_point import FixedPoint


class Alternating(FixedPoint):
    """Machine at fixed weights, then the closed-form weights of its norms, in turn.

    Each half-step minimises the joint objective, which therefore never rises; for the lp norm
    with p > 1 every limit point is optimal (Kloft et al. 2011, Algorithm 1 and Theorem 4).
    Two things make it fast: machines are solved only as well as the current gap deserves, and
    steps are extrapolated (Anderson acceleration), falling back to the plain step whenever the
    objective rises.

    Parameters
    ----------
    single : str or SingleSolver, default="auto"
    memory : int, default=5
        Iterates used to extrapolate; 0 is the plain algorithm.

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

    def can_handle(self, regularizer: Regularizer) -> bool:
        return self.supports(regularizer) and not regularizer.sparse

    def supports(self, regularizer: Regularizer) -> bool:
        return regularizer.convex and not getattr(regularizer, "ascends", False)

    def init(self, problem: Problem, gram: Gram, regularizer: Regularizer, norms: FloatArray) -> FloatArray:
        self._best = np.inf  # upper bound of the lowest objective so far
        return super().init(problem, gram, regularizer, norms)

    def image(self, state: State) -> FloatArray:
        return state.certificate.norms

    def weights_of(self, norms: FloatArray) -> FloatArray:
        return self._regularizer.weights(norms)

    def is_worse(self, state: State) -> bool:
        price = 0.5 * self._regularizer.price(state.weights)
        if state.certificate.machine_dual + price > self._best:
            return True
        self._best = min(self._best, state.certificate.machine_primal + price)
        return False
