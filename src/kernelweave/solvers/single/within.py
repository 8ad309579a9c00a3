"""A machine on a matrix of which only some rows are known."""

from __future__ import annotations

from copy import copy

import numpy as np

from ..._typing import FloatArray
from ...gram.some_rows import RowsOfSum
from ..problem import Problem, best_intercept
from .base import Machine, SingleSolver, machine_gap
from .smo import SMO

#: share of the tolerance that the machine on some samples is asked for, and the next if no sample joins
FIRST_SHARE, NEXT_SHARE = 0.7, 0.3

#: rounds after which all samples join
MOST_ROUNDS = 10


class Within(SingleSolver):
    """Solves on the samples whose rows are known, and lets those join that ask for a dual variable.

    The other samples have alpha_i = 0, which is feasible. The known rows give the predictions f = K alpha on
    all samples, and so the duality gap of the whole problem. Samples where alpha_i = 0 is not optimal join.

    Parameters
    ----------
    machine : SMO, optional
        For the samples whose rows are known.

    Examples
    --------
    >>> from kernelweave.gram import DenseGram
    >>> from kernelweave.losses import Hinge
    >>> K = RowsOfSum(DenseGram([np.eye(2)]), np.ones(1), np.array([0]))
    >>> problem = Problem(np.array([[1.0], [-1.0]]), Hinge(), np.ones((2, 1)))
    >>> Within().solve(K, problem, tol=1e-6).alpha.ravel()
    array([ 1., -1.])
    """

    name = "within"
    requires = ("linear_dual",)

    def __init__(self, machine: SMO | None = None) -> None:
        self.machine = machine

    def solve_column(self, K: RowsOfSum, problem: Problem, tol: float, alpha: FloatArray) -> Machine:  # type: ignore[override]
        machine, wanted, n_iter = copy(self.machine or SMO()), FIRST_SHARE * tol, 0
        machine.exact_samples = 0  # the solution on some samples need not be exact
        roots = np.sqrt(np.maximum(K.diagonal(), 0.0))
        K.join(np.flatnonzero(alpha))
        if len(K.samples) == 0:
            K.join(np.arange(1))
        for left in range(MOST_ROUNDS, -1, -1):
            known = K.samples
            with K.between(known) as K_known:
                part = machine.solve(K_known, problem.part(known), wanted, alpha[known])
            alpha, n_iter = np.zeros(problem.shape), n_iter + part.n_iter
            alpha[known] = part.alpha
            fitted = K.dot(alpha)
            gap = machine_gap(problem, alpha, fitted, float(roots @ np.abs(alpha[:, 0])) ** 2)
            if gap <= tol or left == 0:
                break
            f = fitted + best_intercept(problem, fitted)
            asking = np.flatnonzero(problem.alpha_of(f).any(axis=1)) if left > 1 else np.arange(len(alpha))
            if len(K.lacks(asking)) == 0:
                wanted *= NEXT_SHARE
            K.join(asking)
        return Machine(alpha, fitted, n_iter)
