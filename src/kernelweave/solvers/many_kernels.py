"""Dictionaries of many kernels: solve with a few of them, and look at all of them seldom."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from .._typing import FloatArray, IntArray
from ..gram import Gram
from ..regularizers import Regularizer
from .base import Callback, MKLSolver, Run, State
from .certificate import certificate
from .checkpoint import Keeper
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
    solver: MKLSolver, problem: Problem, gram: Gram, regularizer: Regularizer, keeper: Keeper
) -> tuple[FloatArray, FloatArray]:
    """alpha of the problem with a few kernels spread over the dictionary, and s_m of all kernels at it.

    Evenly chosen kernels look much like all of them, so alpha is a good start.
    """
    chosen = np.unique(np.linspace(0, gram.n_kernels - 1, FEW).astype(int))
    part, rule = gram.subset(kernels=chosen), regularizer.select(chosen, gram.n_kernels)
    run, solver = Run(part, BLIND_GAP, keeper.place("few kernels")), clone(solver)
    if not (solver.resume(run, problem, rule, keeper.found("few kernels")) and run.converged):
        solver.run(run, problem, rule, 30)
    gram.n_passes += part.n_passes * len(chosen) / gram.n_kernels
    return run.best.alpha, gram.quad(run.best.alpha)


def start_of(
    solver: MKLSolver, problem: Problem, gram: Gram, regularizer: Regularizer, keeper: Keeper
) -> tuple[FloatArray, FloatArray]:
    """Norms of all kernels and alpha to start from, after a solve with a few kernels.

    The weights at fixed alpha are where weights -> norms d_m sqrt(s_m) -> weights comes to rest.
    """
    alpha, squares = few_kernels(solver, problem, gram, regularizer, keeper)
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
    start : State or None
        An iterate to go on from; by default, what a few kernels chosen blindly tell.
    keeper : Keeper
    """

    def __init__(
        self,
        solver: MKLSolver,
        problem: Problem,
        gram: Gram,
        regularizer: Regularizer,
        start: State | None,
        keeper: Keeper,
    ) -> None:
        self.solver, self.problem, self.gram, self.regularizer = solver, problem, gram, regularizer
        self.weights: FloatArray
        if start is None:
            self.alpha, self.squares = few_kernels(solver, problem, gram, regularizer, keeper)
            self.weights = np.zeros(gram.n_kernels)
        else:
            self.alpha, self.squares, self.weights = start.alpha, start.squares, start.weights

    def run(self, run: Run, max_iter: int, callback: Callback | None) -> None:
        """Rounds until the gap on all kernels is within the tolerance of `run`, recorded into it."""
        wanted = BLIND_GAP if run.best is None else NEXT_SHARE * min(BLIND_GAP, run.best.residual)
        told = Told(callback)
        while True:
            kernels = self._kernels()
            inner = self._round(run, kernels, max(wanted, 0.3 * run.tol), max_iter - run.n_machines, told)
            state = self._on_all(kernels, inner.best)
            run.record(state, inner.matrix)
            run.n_machines += inner.n_machines - 1
            if run.finished or told(run.n_machines, state) or run.n_machines >= max_iter:
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

    def _round(self, run: Run, kernels: IntArray, tol: float, max_iter: int, callback: Callback) -> Run:
        gram = self.gram.subset(kernels=kernels)
        inner = Run(gram, tol, run.place(kernels=kernels))
        chosen = self.regularizer.select(kernels, self.gram.n_kernels)
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
