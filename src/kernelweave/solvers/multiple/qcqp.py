"""The quadratically constrained program, by a conic solver: a reference for small problems."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..._backend import Lazy
from ..._typing import FloatArray
from ...regularizers import Regularizer
from ..base import MKLSolver, State
from ..problem import Problem
from ..run import Run
from ..single.base import lacking
from .newton_weights import Coordinates

cvxpy: Any = Lazy(
    "cvxpy", "solver='qcqp' needs cvxpy: install it with `pip install cvxpy`, or use solver='auto'."
)

#: relative and absolute gap asked of the conic solver
EXACT = 1e-12


class QCQP(MKLSolver):
    """Solves for all dual variables at once, with one quadratic constraint per kernel.

        max_{alpha, t}  -sum_i C_i V*(y_i, -alpha_i / C_i) - t/2,   alpha' K_m alpha <= t for every m

    for p = 1; if each weight has a price, the constraints are alpha' K_m alpha <= price_m without t. The
    multipliers of the constraints are the weights. Lanckriet et al. (2004) and Bach et al. (2004); Kloft et
    al. (2011), section 3.2, and (15) for the squared loss.

    A reference for some hundred samples: an interior-point method of cvxpy factors every kernel matrix, and
    its work grows like M n^3. For losses whose dual is linear on a box, and the squared loss; for
    regularisers that make weights zero and whose price is linear. The program counts as one single-kernel
    fit; if rounding has left a gap, another fit is made at its weights.

    Parameters
    ----------
    single : str or SingleSolver, default="auto"

    Examples
    --------
    >>> from kernelweave.regularizers import LpNorm
    >>> QCQP().supports(LpNorm(p=1)), QCQP().supports(LpNorm(p=2))
    (True, False)
    """

    name = "qcqp"
    requires = ("linear_dual",)

    def can_handle(self, regularizer: Regularizer) -> bool:
        if not (regularizer.convex and regularizer.sparse and regularizer.priced):
            return False
        rule: Any = regularizer
        return not (rule.bent or rule.price_slopes(np.ones(1))[1].any())

    def init(self, run: Run, norms: FloatArray) -> FloatArray:
        loss = run.problem.loss
        if not (hasattr(loss, "linear_dual") or getattr(loss, "quadratic", False)):
            raise lacking(loss, "linear_dual", self, "use solver='auto'")
        self._program: FloatArray | None  # its alpha, until it is certified
        self._program, weights = solved(run.problem, run.gram, run.regularizer)
        self._trained, self._first_tol = False, 0.3 * run.tol
        return weights

    def train(
        self, run: Run, weights: FloatArray, previous: State | None, alpha: FloatArray | None = None
    ) -> State:
        """Certify the solution of the program; once that is done, train a machine."""
        if self._program is None:
            return super().train(run, weights, previous, alpha)
        run.K, found = run.gram.combine(weights), run.problem.feasible(self._program)
        self._program, values = None, (run.gram.dot(weights, found), run.gram.quad(found))
        return self.certified(run, weights, found, *values, self._first_tol)

    def next_weights(self, run: Run, state: State) -> FloatArray | None:
        """The same weights, once."""
        trained, self._trained = self._trained, True
        return None if trained else state.weights


def solved(problem: Problem, gram: Any, regularizer: Regularizer) -> tuple[FloatArray, FloatArray]:
    """alpha and weights of the program.

    The program is in units of C, a = alpha / c, and has |R_k a| <= bound for a' K_k a <= bound^2, so that
    conic solvers lose fewer digits. The multiplier of this constraint is bound times the weight.
    """
    rule: Any = regularizer
    M, unit = gram.n_kernels, float(problem.C.mean())
    T = Coordinates.under(regularizer, M)
    roots = [np.sqrt(unit) * root(gram.combine(one)) for one in np.eye(M)]
    a = cvxpy.Variable(problem.shape)
    bound = cvxpy.Variable() if rule.tied else None
    most = [bound] * M if rule.tied else np.sqrt(rule.price_slopes(np.ones(M))[0] / unit)
    columns = T.columns(np.arange(M), np.ones(M))
    limits = [cvxpy.norm(_stack(roots, columns[k]) @ a, "fro") <= most[k] for k in range(M)]
    lower, upper = (np.broadcast_to(side / unit, problem.shape) for side in problem.box())
    sides = [a >= lower] * bool(np.isfinite(lower).all()) + [a <= upper] * bool(np.isfinite(upper).all())
    if problem.fit_intercept:
        sides.append(cvxpy.sum(a, axis=0) == problem.loss.alpha_sum / unit)
    value = _dual_loss(problem, a, unit) - (0.5 * cvxpy.square(bound) if rule.tied else 0.0)
    program = cvxpy.Problem(cvxpy.Maximize(value), [*limits, *sides])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the certificate says how accurate the solution is
        program.solve(solver="CLARABEL", tol_gap_abs=EXACT, tol_gap_rel=EXACT, tol_feas=EXACT)
    if a.value is None:
        raise ValueError(f"cvxpy ended with status {program.status!r}: scale the data, or use solver='auto'.")
    multipliers = np.maximum([float(limit.dual_value) for limit in limits], 0.0)
    z = multipliers / (multipliers.sum() if rule.tied else most)
    return unit * a.value, T.weights(z)


def _stack(roots: list[FloatArray], factors: FloatArray) -> FloatArray:
    """R with R'R = sum_m factors_m K_m."""
    return np.vstack([np.sqrt(factor) * R for factor, R in zip(factors, roots, strict=True) if factor > 0.0])


def _dual_loss(problem: Problem, a: Any, unit: float) -> Any:
    """-sum_i C_i V*(y_i, -alpha_i / C_i) / unit on the box, alpha = unit a."""
    if getattr(problem.loss, "quadratic", False):
        weighted = cvxpy.multiply(np.broadcast_to((unit / problem.C) ** 0.5, problem.shape), a)
        return cvxpy.sum(cvxpy.multiply(problem.y, a)) - 0.5 * cvxpy.sum_squares(weighted)
    linear, kink = problem.loss.linear_dual(problem.y)
    total = cvxpy.sum(cvxpy.multiply(np.broadcast_to(linear, problem.shape), a))
    return total - float(kink) * cvxpy.sum(cvxpy.abs(a)) if kink else total


def root(K: FloatArray) -> FloatArray:
    """R with R'R = K, without the directions of no extent."""
    values, vectors = np.linalg.eigh(K)
    kept = values > len(K) * np.finfo(np.float64).eps * max(float(values[-1]), 0.0)
    return np.asarray((vectors[:, kept] * np.sqrt(values[kept])).T)
