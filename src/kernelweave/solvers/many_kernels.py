"""Dictionaries of many kernels: solve with a few of them, and look at all of them seldom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from .._typing import FloatArray, IntArray
from ..gram import Gram
from ..regularizers import Regularizer
from .run import Method, Part, Run

if TYPE_CHECKING:
    from .base import State

#: kernels from which a dictionary is large, and how many are taken in the first round
MANY, FEW = 2000, 500

#: kernels that join in a round: so many times those with weight, and no fewer than that
JOINING_SHARE, JOINING = 2, 100

#: steps of the weights at fixed alpha
RESTING = 20

#: gap of a solve with a few kernels chosen blindly, most machines of it, and share of the last gap asked for
#: in a round
BLIND_GAP, BLIND_MACHINES, NEXT_SHARE = 0.02, 30, 0.3


def can_select(gram: Gram, regularizer: Regularizer) -> bool:
    """Whether there are many kernels of which most will have no weight."""
    if gram.n_kernels < MANY or not (regularizer.convex and regularizer.sparse):
        return False
    return np.ndim(getattr(regularizer, "generators", np.ones)(1)) == 1


def few_kernels(whole: Run) -> tuple[FloatArray, FloatArray]:
    """alpha of the problem with a few kernels spread over the dictionary, and s_m of all kernels at it.

    Evenly chosen kernels look much like all of them, so alpha is a good start.
    """
    gram, solver = whole.gram, clone(whole.method)
    chosen = np.unique(np.linspace(0, gram.n_kernels - 1, FEW).astype(int))
    part, rule = gram.subset(kernels=chosen), whole.regularizer.select(chosen, gram.n_kernels)
    parts = (whole.problem, part, rule, BLIND_GAP, BLIND_MACHINES)
    run = Run(solver, *parts, None, whole.keeper, "few kernels")
    solver.resume(run)
    if run.best is None or not run.converged:
        run.iterate()
    gram.n_passes += part.n_passes * len(chosen) / gram.n_kernels
    return run.best.alpha, gram.quad(run.best.alpha)


def start_of(run: Run) -> tuple[FloatArray, FloatArray] | tuple[()]:
    """Norms of all kernels and alpha to start from, after a solve with a few; nothing if all are few.

    The weights at fixed alpha are where weights -> norms d_m sqrt(s_m) -> weights comes to rest.
    """
    if run.gram.n_kernels < MANY:
        return ()
    alpha, squares = few_kernels(run)
    roots = np.sqrt(np.maximum(squares, 0.0))
    norms = roots.copy()
    for _ in range(RESTING):
        norms = run.regularizer.weights(norms) * roots
    return norms, alpha


class SelectingKernels(Method):
    """Rounds with a few kernels, each certified on all of them.

    With alpha of the kernels taken so far, s_m = alpha' K_m alpha of all kernels gives the dual
    value on the whole dictionary, and tells which kernels would lower the objective most: they
    replace those that got no weight. All kernels are looked at once per round. The method of the run solves
    the rounds; what a few kernels chosen blindly tell, or the iterate that it resumes, is where it starts.
    """

    counts_start = True

    def start(self, run: Run) -> State:
        if run.best is None:
            self.wanted, weights = BLIND_GAP, np.zeros(run.gram.n_kernels)
            return self._round(run, *few_kernels(run), weights)
        self.wanted = NEXT_SHARE * min(BLIND_GAP, run.best.residual)
        return self._round(run, run.best.alpha, run.best.squares, run.best.weights)

    def step(self, run: Run, state: State) -> State:
        self.wanted = NEXT_SHARE * min(self.wanted, state.residual)
        return self._round(run, state.alpha, state.squares, state.weights)

    def _round(self, run: Run, alpha: FloatArray, squares: FloatArray, weights: FloatArray) -> State:
        """Solve with the kernels that have weight and those that promise most, and certify on all."""
        kernels, M = _promising(run, squares, weights), run.gram.n_kernels
        gram, chosen = run.gram.subset(kernels=kernels), run.regularizer.select(kernels, M)
        norms = weights[kernels] * np.sqrt(np.maximum(squares[kernels], 0.0))
        begin, part = (norms if norms.any() else None, alpha, None), Part(run, kernels=kernels)
        tol, max_iter = max(self.wanted, 0.3 * run.tol), run.max_iter - run.n_iter
        parts = (run.problem, gram, chosen, tol, max_iter, run.tell, run.keeper, run.phase, begin, part)
        inner = Run(clone(run.method), *parts)
        inner.iterate()
        run.gram.n_passes += gram.n_passes * len(kernels) / M
        run.n_iter += inner.n_iter - 1
        run.K, found, weights = inner.matrix, inner.best, np.zeros(M)
        weights[kernels] = found.weights
        values = (weights, found.alpha, found.fitted, run.gram.quad(found.alpha), found.machine_tol)
        state: State = run.method.certified(run, *values)
        return state


def _promising(run: Run, squares: FloatArray, weights: FloatArray) -> IntArray:
    """Kernels with weight, and those that promise most."""
    live = np.flatnonzero(weights)
    count = min(max(JOINING, JOINING_SHARE * len(live)), run.gram.n_kernels)
    # a kernel is worth its s_m, less what it costs: the same for all, up to the regulariser's costs
    promise = squares * getattr(run.regularizer, "generators", np.ones)(run.gram.n_kernels)
    best = np.argpartition(-promise, count - 1)[:count]
    return np.union1d(live, best)
