"""Second-order steps on the component norms, for penalties that are not a minimum over weights."""

from __future__ import annotations

import numpy as np

from ..._typing import FloatArray
from ...regularizers import Regularizer
from ..base import MKLSolver, State
from ..run import Run
from .newton_weights import response_to_weights

#: largest factor by which a step may change a norm or a weight; and how far it may raise a norm that is zero,
#: as a share of the largest
LEAP, RETURN = 5.0, 0.3

#: share of the tolerance left to each machine
MACHINE_SHARE = 0.1


class NewtonNorms(MKLSolver):
    """Newton steps on Phi(v) = L(v) + Omega(v), with L(v) the least loss of components of norms v.

        L(v) = min { sum_i C_i V(y_i, f_i) : ||f_m|| <= v_m },    dL/dv_m = -r_m

    The machine at weights d gives L and its slopes at v = n, n_m = d_m r_m; its Hessian H in the weights
    gives the curvature, from dr = -diag(1/r) H dd and dn = diag(r) dd + diag(d) dr:

        Q = -dr/dv = diag(1/r) H (diag(r) - diag(d/r) H)^-1

    The regulariser minimises the model, ``model_step``, and the next weights are d_m = v_m / r_m(v) of its
    minimum. A step that does not lower Phi is halved.

    Parameters
    ----------
    single : str or SingleSolver, default="auto"

    Examples
    --------
    >>> from kernelweave.gram import DenseGram
    >>> from kernelweave.losses import Squared
    >>> from kernelweave.regularizers import PatternNorm
    >>> from kernelweave.solvers import Problem
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> gram = DenseGram([x @ x.T, np.exp(-((x - x.T) ** 2)), x**2 @ x.T**2])
    >>> problem = Problem(x + x**2, Squared(), np.ones((20, 1)))
    >>> rule = PatternNorm([[1, 1, 0], [0, 1, 1]])
    >>> NewtonNorms().solve(problem, gram, rule, tol=1e-6).converged
    True
    """

    name = "newton_norms"

    def can_handle(self, regularizer: Regularizer) -> bool:
        return not regularizer.priced

    def init(self, run: Run, norms: FloatArray) -> FloatArray:
        self._best: State | None = None
        return super().init(run, norms)

    def machine_tol(self, run: Run, previous: State | None) -> float:
        """Fine from the start: a coarse machine does not have the norms of its weights, and steps are few."""
        return MACHINE_SHARE * run.tol

    def next_weights(self, run: Run, state: State) -> FloatArray:
        best = self._best
        risen = best is not None and state.certificate.primal > best.certificate.primal
        if risen and best is not None and state.residual >= best.residual:
            return np.asarray(0.5 * (best.weights + state.weights))
        self._best = state
        return self._model_minimum(run, state)

    def _model_minimum(self, run: Run, state: State) -> FloatArray:
        n, r, old = state.certificate.norms, state.certificate.dual_norms, state.weights
        Q, top = curvature(run, state), float(n.max())
        ridge = 1e-9 * max(float(Q.diagonal().max()), float(r.max()) / max(top, 1e-300))
        v = run.regularizer.model_step(n, r, Q + ridge * np.eye(len(n)))
        v = np.clip(v, n / LEAP, np.maximum(LEAP * n, RETURN * top)) * (v > 0)
        slopes = np.maximum(r - Q @ (v - n), r / LEAP)
        d = np.divide(v, slopes, out=np.zeros_like(v), where=slopes > 0)
        # a kernel that is in no deciding pattern wants r = 0, an infinite weight
        result: FloatArray = np.where(old > 0, np.clip(d, (v > 0) * old / LEAP, LEAP * old), d)
        return result


def curvature(run: Run, state: State) -> FloatArray:
    """Q = d2L/dv2 at the norms of a machine, made positive semidefinite where rounding has spoilt this."""
    d, r = state.weights, np.maximum(state.certificate.dual_norms, 1e-12 * state.certificate.dual_norms.max())
    H = response_to_weights(run.problem, run.gram, state, run.K).hessian
    Q = (H / r[:, None]) @ np.linalg.pinv(np.diag(r) - (d / r)[:, None] * H)
    values, U = np.linalg.eigh(0.5 * (Q + Q.T))
    return np.asarray((U * np.maximum(values, 0.0)) @ U.T)
