"""Sum of penalties."""

from __future__ import annotations

from collections.abc import Sequence

from ...._typing import FloatArray
from ...problem import Problem
from .base import Penalty


class PenaltySum(Penalty):
    """r(d) = sum_t r_t(d); ``L1(0.5) + L2(0.5)`` makes one.

    Parameters
    ----------
    penalties : list of Penalty

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.solvers.kernel_gradient import L1, L2
    >>> (L1() + L2()).value(np.array([2.0]))
    6.0
    """

    name = "sum"

    def __init__(self, penalties: Sequence[Penalty]) -> None:
        self.penalties = penalties

    @property
    def uses_matrix(self) -> bool:  # type: ignore[override]
        return any(penalty.uses_matrix for penalty in self.penalties)

    def check(self, n_parameters: int) -> None:
        if len(self.penalties) == 0:
            raise ValueError("PenaltySum: penalties is empty, give at least one.")
        for penalty in self.penalties:
            penalty.check(n_parameters)

    def value(self, d: FloatArray) -> float:
        return sum(penalty.value(d) for penalty in self.penalties)

    def gradient(self, d: FloatArray) -> FloatArray:
        return sum((penalty.gradient(d) for penalty in self.penalties), 0.0 * d)

    def matrix_value(self, K: FloatArray, problem: Problem) -> float:
        return sum(part.matrix_value(K, problem) for part in self.penalties if part.uses_matrix)

    def matrix_slope(self, K: FloatArray, problem: Problem) -> FloatArray:
        return sum((p.matrix_slope(K, problem) for p in self.penalties if p.uses_matrix), 0.0 * K)
