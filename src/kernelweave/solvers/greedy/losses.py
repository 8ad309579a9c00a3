"""Refitting for losses other than the squared one: a black-box machine on the sum of the kernels."""

from __future__ import annotations

import numpy as np

from ..._typing import FloatArray
from ...gram._workers import mirror_lower
from ..problem import best_intercept
from ..single import choose_single
from .dictionary import FactorDictionary
from .refit import Refit, RidgeRefit
from .task import Fit, GreedyTask

#: relative duality gap of the machines
MACHINE_TOL = 1e-6


class MachineRefit(Refit):
    """Trains the single-kernel machine of the loss on the sum of the kernels, from the last solution."""

    def __init__(self, dictionary: FactorDictionary, task: GreedyTask) -> None:
        super().__init__(dictionary, task)
        n = dictionary.n_samples
        self.base = np.zeros((n, n), order="F")
        self.machine = choose_single("auto", task.loss)
        self.last: FloatArray | None = None

    def _add(self, m: int, weight: float) -> None:
        self.dictionary.block(m).add_to(self.base, weight)

    def fit(self) -> Fit:
        if not self.kernels:
            return self._constant()
        machine = self.machine.solve(self.matrix(), self.task.problem, MACHINE_TOL, self.last)
        self.last = machine.alpha
        return self._certified(machine.alpha, machine.fitted)

    def matrix(self) -> FloatArray:
        """The sum of the kernels, centred but not weighted."""
        mirror_lower(self.base)
        return np.ascontiguousarray(self.base) / (self.task.root * self.task.root.T)

    def _constant(self) -> Fit:
        """The model without kernels, and dual variables that prove it optimal."""
        problem = self.task.problem
        nothing = np.zeros(problem.shape)
        alpha = problem.feasible(problem.alpha_of(nothing + best_intercept(problem, nothing)))
        return self._certified(alpha, nothing)

    def _certified(self, alpha: FloatArray, fitted: FloatArray) -> Fit:
        problem, scale = self.task.problem, 2.0 * self.task.ridge
        intercept = best_intercept(problem, fitted)
        error = scale * problem.primal_loss(fitted, intercept)
        objective = error + 0.5 * scale * float((alpha * fitted).sum())
        level = scale * problem.dual_loss(alpha)
        return Fit(
            self.kernels, alpha / self.task.root, intercept - self.offset(alpha), objective, error, level
        )


def refit_for(dictionary: FactorDictionary, task: GreedyTask) -> Refit:
    """Linear systems for the squared loss, machines for the others."""
    quadratic = getattr(task.loss, "quadratic", False)
    return (RidgeRefit if quadratic else MachineRefit)(dictionary, task)
