"""What every penalty on the parameters d of a kernel is."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ...._typing import FloatArray
from ...problem import Problem


class Penalty(BaseEstimator):
    """A penalty r(d) on the parameters of a kernel, differentiable on d >= 0; penalties add with ``+``.

    A subclass writes ``value(d)`` and ``gradient(d)``. One that depends on the Gram matrix K_d
    writes ``matrix_value(K, problem)`` and ``matrix_slope(K, problem)`` instead, S with
    dr/dd_k = tr(S dK/dd_k). Varma & Babu (2009), Eq. 1.
    """

    name: str = ""

    #: whether the Gram matrix is part of it
    uses_matrix = False

    @abstractmethod
    def value(self, d: FloatArray) -> float:
        """r(d), apart from what depends on the Gram matrix."""

    @abstractmethod
    def gradient(self, d: FloatArray) -> FloatArray:
        """dr/dd_k, apart from what depends on the Gram matrix."""

    def matrix_value(self, K: FloatArray, problem: Problem) -> float:
        """The part of r that depends on the Gram matrix."""
        return 0.0

    def matrix_slope(self, K: FloatArray, problem: Problem) -> FloatArray:
        """Its symmetric derivative S in K."""
        return np.zeros_like(K)

    def check(self, n_parameters: int) -> None:
        """Refuse options that make no penalty on so many parameters; nothing by default."""

    def __add__(self, other: Any) -> Penalty:
        from .sum import PenaltySum

        if not isinstance(other, Penalty):
            return NotImplemented
        return PenaltySum([*_terms(self), *_terms(other)])


def _terms(penalty: Penalty) -> list[Penalty]:
    """The terms of a sum, or the penalty alone."""
    return list(getattr(penalty, "penalties", [penalty]))


def strengths(value: Any, n_parameters: int, owner: str, argument: str = "strength") -> FloatArray:
    """`value` as non-negative numbers, one per parameter or one for all."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in ((), (n_parameters,)):
        raise ValueError(
            f"{owner}: {argument} has shape {array.shape}: give one number, or one for each of the "
            f"{n_parameters} parameters."
        )
    if not ((array >= 0) & np.isfinite(array)).all():
        raise ValueError(f"{owner}: {argument}={value!r} must be non-negative and finite.")
    return array
