"""Dictionaries of many kernels: solve with a few of them, and look at all of them seldom."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from .._typing import FloatArray, IntArray
from ..gram import Gram
from ..regularizers import Regularizer
from .base import Callback, MKLSolver, Run, State
from .certificate import certificate
from .growing import Told
from .problem import Problem

#: kernels from which a dictionary is large, and how many are taken in the first round
MANY, FEW = 2000, 500

#: kernels that join in a round: so many times those with weight, and no fewer than that
JOINING_SHARE, JOINING = 2, 100

#: steps of the weights at fixed alpha
RESTING = 20

#: gap of a solve with a few kernels chosen blindly, and share of the last gap asked for in a round
BLIND_GAP, NEXT_SHARE = 0.02, 0.3


def can_select(gram: Gram, regularizer: Regularizer) -> bool:
    """Whether there are many kernels of which most will have no weight."""
    separable = np.ndim(getattr(regularizer, "generators", np.ones)(1)) == 1
    return gram.n_kernels >= MANY and regularizer.convex and regularizer.sparse and separable


def few_kernels(
    solver: MKLSolver, problem: Problem, gram: Gram, regularizer: Regularizer
) -> tuple[FloatArray, FloatArray]:
    """alpha of the problem with a few kernels spread over the dictionary, and s_m of all kernels at it.

    Evenly chosen kernels look much like all of them, so alpha is a good start.
    """
    chosen = np.unique(np.linspace(0, gram.n_kernels - 1, FEW).astype(int))
    part, run = gram.subset(kernels=chosen), Run(gram.subset(kernels=chosen), BLIND_GAP)
    clone(solver).run(run, problem, regularizer.select(chosen, gram.n_kernels), 30)
    gram.n_passes += part.n_passes * len(chosen) / gram.n_kernels
    return run.best.alpha, gram.quad(run.best.alpha)


def start_of(
    solver: MKLSolver, problem: Problem, gram: Gram, regularizer: Regularizer
) -> tuple[FloatArray, FloatArray]:
    """Norms of all kernels and alpha to start from, after a solve with a few kernels.

    The weights at fixed alpha are where weights -> norms d_m sqrt(s_m) -> weights comes to rest.
    """
    alpha, squares = few_kernels(solver, problem, gram, regularizer)
    roots = np.sqrt(np.maximum(squares, 0.0))
    norms = roots.copy()
    for _ in range(RESTING):
        norms = regularizer.weights(norms) * roots
    return norms, alpha


class SelectingKernels:
    """Rounds with a few kernels, each certified on all of them.

    With alpha of the kernels taken so far, s_m = alpha' K_m alpha of all kernels gives the dual
    value on the whole dictionary, and tells which kernels would lower the objective most: they
    replace those that got no weight. All kernels are looked at once a round.

    Parameters
    ----------
    solver : MKLSolver
    problem, gram, regularizer
        What to solve.
    """

    def __init__(self, solver: MKLSolver, problem: Problem, gram: Gram, regularizer: Regularizer) -> None:
        self.solver, self.problem, self.gram, self.regularizer = solver, problem, gram, regularizer
        self.alpha, self.squares = few_kernels(solver, problem, gram, regularizer)
        self.weights = np.zeros(gram.n_kernels)

    def run(self, run: Run, max_iter: int, callback: Callback | None) -> None:
        """Rounds until the gap on all kernels is within the tolerance of `run`, recorded into it."""
        wanted, told = BLIND_GAP, Told(callback)
        while True:
            kernels = self._kernels()
            inner = self._round(kernels, max(wanted, 0.3 * run.tol), max_iter - run.n_machines, told)
            state = self._on_all(kernels, inner.best)
            run.record(state, inner.matrix)
            run.n_machines += inner.n_machines - 1
            if run.converged or told(run.n_machines, state) or run.n_machines >= max_iter:
                return
            wanted = NEXT_SHARE * min(wanted, state.residual)

    def _kernels(self) -> IntArray:
        """Kernels with weight, and those that promise most."""
        live = np.flatnonzero(self.weights)
        count = min(max(JOINING, JOINING_SHARE * len(live)), self.gram.n_kernels)
        # a kernel is worth its s_m, less what it costs: the same for all, up to the regulariser's costs
        promise = self.squares * getattr(self.regularizer, "generators", np.ones)(self.gram.n_kernels)
        best = np.argpartition(-promise, count - 1)[:count]
        return np.union1d(live, best)

    def _round(self, kernels: IntArray, tol: float, max_iter: int, callback: Callback) -> Run:
        gram = self.gram.subset(kernels=kernels)
        inner, chosen = Run(gram, tol), self.regularizer.select(kernels, self.gram.n_kernels)
        norms = self.weights[kernels] * np.sqrt(np.maximum(self.squares[kernels], 0.0))
        start = norms if norms.any() else None
        clone(self.solver).run(inner, self.problem, chosen, max_iter, callback, None, start, self.alpha)
        self.gram.n_passes += gram.n_passes * len(kernels) / self.gram.n_kernels
        return inner

    def _on_all(self, kernels: IntArray, part: State) -> State:
        """The state of a few kernels, certified on all of them."""
        self.weights = np.zeros(self.gram.n_kernels)
        self.weights[kernels] = part.weights
        self.alpha, self.squares = part.alpha, self.gram.quad(part.alpha)
        proof = certificate(
            self.problem, self.gram, self.regularizer, self.alpha, self.weights, part.fitted, self.squares
        )
        residual = self.solver.residual(proof, self.weights)
        return State(self.weights, self.alpha, part.fitted, self.squares, proof, residual, part.machine_tol)
