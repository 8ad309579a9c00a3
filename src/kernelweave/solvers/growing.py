"""Solving on the samples that matter: those with a dual variable, and those that ask for one."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from .._typing import FloatArray, IntArray
from ..gram import Gram
from ..losses import Loss
from ..regularizers import Regularizer
from .base import Callback, MKLSolver, Pilot, Run, State
from .certificate import certificate
from .problem import Problem

#: samples from which a matrix of all of them is avoided
FEWEST = 4000

#: gap of the first round on the violated samples, and share of the last gap asked for in the next
FIRST_GAP, NEXT_SHARE = 5e-3, 0.1

#: share of the support vectors that may join them however short memory is
LEAST_JOINING = 0.25

#: share of the samples from which all are taken
NEARLY_ALL = 0.9


def may_grow(loss: Loss, regularizer: Regularizer, n_samples: int) -> bool:
    """Whether there are many samples, most of whose dual variables may be zero."""
    return hasattr(loss, "linear_dual") and regularizer.convex and n_samples >= FEWEST


def can_grow(problem: Problem, gram: Gram, regularizer: Regularizer) -> bool:
    """Whether most dual variables may be zero, and the matrix of all samples is dear."""
    return gram.streams and may_grow(problem.loss, regularizer, gram.n_samples)


class Growing:
    """Rounds on a growing part of the samples, each certified on all of them.

    Samples outside the part have alpha_i = 0, which is feasible, so the dual value of the part
    is one of the whole problem, and alpha' K_m alpha too; the primal value takes one product,
    f = sum_m d_m K_m alpha on the others. Those where alpha_i = 0 is not optimal,

        -C_i V'(y_i, f_i) != 0

    join the part. Only pairs with a support vector are ever computed: n n_sv instead of n^2.

    Parameters
    ----------
    solver : MKLSolver
        Solves the rounds.
    problem, gram, regularizer
        What to solve.
    pilot : Pilot, optional
        A first solve on few samples, whose predictions choose the first part.
    start : State, optional
        An iterate on all samples to go on from instead.
    """

    def __init__(
        self,
        solver: MKLSolver,
        problem: Problem,
        gram: Gram,
        regularizer: Regularizer,
        pilot: Pilot | None,
        start: State | None = None,
    ) -> None:
        self.solver, self.problem, self.gram = solver, problem, gram
        self.regularizer, self.pilot = regularizer, pilot
        self.alpha: FloatArray
        if start is None:
            assert pilot is not None
            self.alpha = np.zeros(problem.shape)
            self.alpha[pilot.rows] = pilot.state.alpha
            fitted, start, self.norms = gram.dot(pilot.state.weights, self.alpha), pilot.state, pilot.norms
        else:
            self.alpha, fitted, self.norms = start.alpha, start.fitted, start.certificate.norms
        self.rows = self._with(self._violated(fitted + start.certificate.intercept), self._support)

    def run(self, run: Run, max_iter: int, callback: Callback | None) -> None:
        """Rounds until the gap on all samples is within the tolerance of `run`, recorded into it."""
        first = FIRST_GAP if run.best is None else min(FIRST_GAP, NEXT_SHARE * run.best.residual)
        wanted, told = max(first, 0.5 * run.tol), Told(callback)
        while True:
            part, count = self._round(run, wanted, max_iter - run.n_machines, told)
            state = self._on_all(part)
            run.record(state, None)
            run.n_machines += count - 1
            if run.finished or told(run.n_machines, state) or run.n_machines >= max_iter:
                return
            joining = np.setdiff1d(self._violated(state.fitted + state.certificate.intercept), self.rows)
            self.rows = self._with(joining, self.rows)
            wanted = max(
                NEXT_SHARE * min(state.residual, wanted if len(joining) == 0 else 1.0), 0.5 * run.tol
            )

    def _round(self, run: Run, tol: float, max_iter: int, callback: Callback) -> tuple[State, int]:
        """The best state on the samples of the part, and how many machines it took."""
        gram, solver = self.gram.subset(self.rows), clone(self.solver)
        inner = Run(gram, tol, run.place(rows=self.rows))
        problem, alpha = self.problem.part(self.rows), self.alpha[self.rows]
        solver.run(inner, problem, self.regularizer, max_iter, callback, self.pilot, self.norms, alpha)
        self.gram.n_passes += gram.n_passes * (len(self.rows) / self.gram.n_samples) ** 2
        return inner.best, inner.n_machines

    def _on_all(self, part: State) -> State:
        """The state of a part, certified on all samples."""
        rest = np.setdiff1d(np.arange(self.gram.n_samples), self.rows)
        self.alpha, fitted = np.zeros(self.problem.shape), np.zeros(self.problem.shape)
        self.alpha[self.rows], fitted[self.rows] = part.alpha, part.fitted
        fitted[rest] = self.gram.dot(part.weights, self.alpha, rest)
        proof = certificate(
            self.problem, self.gram, self.regularizer, self.alpha, part.weights, fitted, part.squares
        )
        self.norms = proof.norms
        residual = self.solver.residual(proof, part.weights)
        return State(part.weights, self.alpha, fitted, part.squares, proof, residual, part.machine_tol)

    def _violated(self, f: FloatArray) -> IntArray:
        """Samples whose dual variable should not be zero at predictions f."""
        return np.flatnonzero(self.problem.alpha_of(f).any(axis=1))

    @property
    def _support(self) -> IntArray:
        return np.flatnonzero(self.alpha.any(axis=1))

    def _with(self, joining: IntArray, rows: IntArray) -> IntArray:
        """Rows and those that join them; where memory is short, support vectors and some that join."""
        n, most = self.gram.n_samples, self.gram.most_combined or self.gram.n_samples
        if len(rows) + len(joining) > most:
            rows = self._support
            joining = np.setdiff1d(joining, rows)
            room = max(most - len(rows), int(LEAST_JOINING * len(rows)))
            joining = joining[np.unique(np.linspace(0, len(joining) - 1, room).astype(int))]
        rows = np.union1d(rows, joining)
        return rows if len(rows) < NEARLY_ALL * n or n > most else np.arange(n)


class Told:
    """A callback that remembers having been told to stop."""

    def __init__(self, callback: Callback | None) -> None:
        self.callback, self.stop = callback, False

    def __call__(self, iteration: int, state: State) -> bool:
        if self.callback is not None and self.callback(iteration, state):
            self.stop = True
        return self.stop
