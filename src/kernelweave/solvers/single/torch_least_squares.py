"""Squared loss where K is on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._backend import torch
from ..._typing import FloatArray
from ..problem import Problem
from .base import Machine, SingleSolver, machine_gap
from .torch_linear import solve_shifted


class TorchLeastSquares(SingleSolver):
    """Solves (K + diag(1/C)) alpha + b = y, sum(alpha) = 0, by a factor or by conjugate gradients.

    Steps go on until the gap is what was asked for: all outputs at once, from where they are.
    """

    name = "torch_least_squares"
    requires = ("quadratic",)

    def solve(self, K: Any, problem: Problem, tol: float, alpha: FloatArray | None = None) -> Machine:
        self.check(problem.loss)
        device = K.like.device
        given = (problem.centred(problem.y), problem.C)
        y, C = (torch.as_tensor(np.ascontiguousarray(v), device=device) for v in given)
        right = torch.cat([y, torch.ones_like(C)], dim=1)
        found, residual = None, min(1e-3, tol)
        while True:
            found = solve_shifted(K, 1.0 / C[:, 0], right, residual, found)
            machine = self._machine(K, problem, found)
            if residual <= 1e-7 or machine_gap(problem, machine.alpha, machine.fitted) <= tol:
                return machine
            residual *= 0.1

    def _machine(self, K: Any, problem: Problem, found: Any) -> Machine:
        alpha = found[:, :-1]
        if problem.fit_intercept:
            ones = found[:, -1:]
            alpha = alpha - ones * (alpha.sum(dim=0) / ones.sum())
        host = problem.feasible(alpha.cpu().numpy())
        return Machine(host, K @ host, 1)

    def solve_column(self, K: Any, problem: Problem, tol: float, alpha: FloatArray) -> Machine:
        return self.solve(K, problem, tol, alpha)
