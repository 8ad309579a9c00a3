"""Solving on some of the samples: a few for a first look, then those that matter.

Samples matter that have a dual variable, or ask for one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from .._typing import FloatArray, IntArray
from ..gram import Gram
from ..losses import Loss
from ..regularizers import Regularizer
from .problem import Problem
from .run import Method, Part, Run

if TYPE_CHECKING:
    from .base import State

#: samples from which a matrix of all of them is avoided
FEWEST = 4000

#: gap of the first round on the violated samples, and share of the last gap asked for in the next
FIRST_GAP, NEXT_SHARE = 5e-3, 0.1

#: share of the support vectors that may join them however short memory is
LEAST_JOINING = 0.25

#: share of the samples from which all are taken
NEARLY_ALL = 0.9

#: a first look at a problem takes no fewer samples than the one, no more than the other, and so many machines
PILOT_SAMPLES, PILOT_MOST, PILOT_MACHINES = 200, 4000, 30


@dataclass(frozen=True)
class Pilot:
    """A first solve on a few of the samples.

    Attributes
    ----------
    rows : ndarray of int
        The samples.
    problem, gram
        What was solved.
    state : State
        The best iterate.
    matrix : ndarray
        sum_m d_m K_m at its weights.
    norms : ndarray of shape (M,)
        Component norms to expect on all samples.
    """

    rows: IntArray
    problem: Problem
    gram: Gram
    state: State
    matrix: FloatArray = field(repr=False)
    norms: FloatArray = field(repr=False)


def pilot_of(run: Run, share: int) -> Pilot | None:
    """The problem of a run solved on one sample in `share`: a good start, found at little cost.

    None where there are too few samples, or `share` is 0.
    """
    problem, gram = run.problem, run.gram
    count = min(max(PILOT_SAMPLES, gram.n_samples // max(share, 1)), PILOT_MOST)
    if not share or gram.n_samples < 3 * count:
        return None
    rows = problem.spread(count)
    part, few = gram.subset(rows), problem.subset(rows)
    half = few.spread(count // 2)
    fewer = _solved_on(run, few.subset(half), part.subset(half))
    pilot = _solved_on(run, few, part, fewer)
    gram.n_passes += part.n_passes * (count / gram.n_samples) ** 2
    return replace(pilot, rows=rows, norms=run.method.foreseen_norms(fewer, pilot, gram.n_samples))


def _solved_on(whole: Run, problem: Problem, gram: Gram, start: Pilot | None = None) -> Pilot:
    """The problem solved on some of the samples."""
    solver, begin = clone(whole.method), (None, None, start)
    parts = (problem, gram, whole.regularizer, solver.pilot_tol, PILOT_MACHINES)
    run = Run(solver, *parts, None, whole.keeper, f"pilot {gram.n_samples}", begin)
    solver.resume(run)
    if run.best is None or not run.converged:
        run.iterate()
    matrix = gram.combine(run.best.weights) if run.matrix is None else run.matrix
    norms = run.best.certificate.norms
    return Pilot(np.arange(gram.n_samples), problem, gram, run.best, matrix, norms)


def may_grow(loss: Loss, regularizer: Regularizer, n_samples: int) -> bool:
    """Whether there are many samples, most of whose dual variables may be zero."""
    return hasattr(loss, "linear_dual") and regularizer.convex and n_samples >= FEWEST


def can_grow(problem: Problem, gram: Gram, regularizer: Regularizer) -> bool:
    """Whether most dual variables may be zero, and the matrix of all samples is expensive."""
    return gram.streams and may_grow(problem.loss, regularizer, gram.n_samples)


class Growing(Method):
    """Rounds on a growing part of the samples, each certified on all of them.

    Samples outside the part have alpha_i = 0, which is feasible, so the dual value of the part
    is one of the whole problem, and alpha' K_m alpha too; the primal value takes one product,
    f = sum_m d_m K_m alpha on the others. Those where alpha_i = 0 is not optimal,

        -C_i V'(y_i, f_i) != 0

    join the part. Only pairs with a support vector are ever computed: n n_sv instead of n^2. The method of
    the run solves the rounds; its pilot, or the iterate that it resumes, chooses the first part.
    """

    counts_start = True

    def start(self, run: Run) -> State:
        start, self.pilot = run.best, run.begin.pilot
        if start is None:
            start, self.norms = self.pilot.state, self.pilot.norms
            self.alpha = np.zeros(run.problem.shape)
            self.alpha[self.pilot.rows] = start.alpha
            fitted, first = run.gram.dot(start.weights, self.alpha), FIRST_GAP
        else:
            self.alpha, fitted, self.norms = start.alpha, start.fitted, start.certificate.norms
            first = min(FIRST_GAP, NEXT_SHARE * start.residual)
        violated = _violated(run.problem, fitted + start.certificate.intercept)
        self.rows = self._with(run.gram, violated, _support(self.alpha))
        self.wanted = max(first, 0.5 * run.tol)
        return self._round(run)

    def step(self, run: Run, state: State) -> State:
        violated = _violated(run.problem, state.fitted + state.certificate.intercept)
        joining = np.setdiff1d(violated, self.rows)
        self.rows = self._with(run.gram, joining, self.rows)
        left = min(state.residual, self.wanted if len(joining) == 0 else 1.0)
        self.wanted = max(NEXT_SHARE * left, 0.5 * run.tol)
        return self._round(run)

    def _round(self, run: Run) -> State:
        """Solve on the samples of the part, and certify on all of them."""
        gram, problem = run.gram.subset(self.rows), run.problem.part(self.rows)
        begin, part = (self.norms, self.alpha[self.rows], self.pilot), Part(run, rows=self.rows)
        parts = (problem, gram, run.regularizer, self.wanted, run.max_iter - run.n_iter)
        inner = Run(clone(run.method), *parts, run.tell, run.keeper, run.phase, begin, part)
        inner.iterate()
        run.gram.n_passes += gram.n_passes * (len(self.rows) / run.gram.n_samples) ** 2
        run.n_iter += inner.n_iter - 1
        found = inner.best
        rest = np.setdiff1d(np.arange(run.gram.n_samples), self.rows)
        self.alpha, fitted = np.zeros(run.problem.shape), np.zeros(run.problem.shape)
        self.alpha[self.rows], fitted[self.rows] = found.alpha, found.fitted
        fitted[rest] = run.gram.dot(found.weights, self.alpha, rest)
        parts = (found.weights, self.alpha, fitted, found.squares, found.machine_tol)
        state: State = run.method.certified(run, *parts)
        self.norms = state.certificate.norms
        return state

    def _with(self, gram: Gram, joining: IntArray, rows: IntArray) -> IntArray:
        """Rows and those that join them; where memory is short, support vectors and some that join."""
        n, most = gram.n_samples, gram.most_combined or gram.n_samples
        if len(rows) + len(joining) > most:
            rows = _support(self.alpha)
            joining = np.setdiff1d(joining, rows)
            room = max(most - len(rows), int(LEAST_JOINING * len(rows)))
            joining = joining[np.unique(np.linspace(0, len(joining) - 1, room).astype(int))]
        rows = np.union1d(rows, joining)
        return rows if len(rows) < NEARLY_ALL * n or n > most else np.arange(n)


def _violated(problem: Problem, f: FloatArray) -> IntArray:
    """Samples whose dual variable should not be zero at predictions f."""
    return np.flatnonzero(problem.alpha_of(f).any(axis=1))


def _support(alpha: FloatArray) -> IntArray:
    return np.flatnonzero(alpha.any(axis=1))
