"""Joint ascent over machine and weights, for block norms q > 2."""

from __future__ import annotations

import numpy as np

from ..._typing import FloatArray
from ...regularizers import Regularizer
from ..base import State
from ..run import Run
from ._fixed_point import FixedPoint

#: dual norms under this share of the largest are raised to it, less as the gap closes: theta = 0 would
#: make the matrix of the machine infinite
LARGEST_FLOOR, SMALLEST_FLOOR = 1e-2, 1e-6


class JointAscent(FixedPoint):
    """Both steps go up: the machine at weights 1 / theta, then the theta of its dual norms.

        max_{alpha, theta}  -sum_i C_i V*(y_i, -alpha_i / C_i) - 1/2 sum_m alpha' K_m alpha / theta_m

    is jointly concave, and its maximum over theta is the dual with Omega*(r) = 1/2 ||r||_{q*}^2.
    Steps are extrapolated as in `Alternating`.

    Parameters
    ----------
    single : str or SingleSolver, default="auto"
    memory : int, default=5

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import DenseGram
    >>> from kernelweave.losses import Squared
    >>> from kernelweave.regularizers import BlockNorm
    >>> from kernelweave.solvers import Problem
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> gram = DenseGram([x @ x.T, np.exp(-((x - x.T) ** 2))])
    >>> problem = Problem(x, Squared(), np.ones((20, 1)))
    >>> JointAscent().solve(problem, gram, BlockNorm(q=8), tol=1e-6).converged
    True
    """

    name = "joint_ascent"

    def can_handle(self, regularizer: Regularizer) -> bool:
        return bool(getattr(regularizer, "ascends", False))

    def init(self, run: Run, norms: FloatArray) -> FloatArray:
        self._best = -np.inf  # lower bound of the highest joint value so far
        self._floor = LARGEST_FLOOR
        return super().init(run, norms)

    def restart(self, run: Run, state: State) -> FloatArray:
        self.init(run, state.certificate.dual_norms)
        self._lower_floor(state)
        return super().init(run, state.certificate.dual_norms)

    def next_weights(self, run: Run, state: State) -> FloatArray:
        self._lower_floor(state)
        return super().next_weights(run, state)

    def _lower_floor(self, state: State) -> None:
        """What a floor on theta costs is in proportion to it: it follows the gap."""
        wanted = 0.3 * state.residual / len(state.weights)
        while self._floor > max(wanted, SMALLEST_FLOOR):
            self._floor *= 0.3

    def safe(self, log_norms: FloatArray) -> FloatArray:
        log_norms = super().safe(log_norms)
        return np.maximum(log_norms, log_norms.max() + np.log(self._floor))

    def image(self, state: State) -> FloatArray:
        return state.certificate.dual_norms

    def weights_of(self, regularizer: Regularizer, norms: FloatArray) -> FloatArray:
        return regularizer.weights_from_dual(norms)

    def is_worse(self, run: Run, state: State) -> bool:
        if state.certificate.machine_primal < self._best:
            return True
        self._best = max(self._best, state.certificate.machine_dual)
        return False
