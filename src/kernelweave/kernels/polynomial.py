"""Polynomial kernel."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from math import comb, factorial, prod, sqrt
from typing import Any

import numpy as np
from scipy import sparse

from .base import Kernel, positive, positive_integer
from .bases import InnerProduct
from .columns import Columns


class Polynomial(Kernel):
    """Polynomial kernel, k(x, z) = (gamma x'z + coef0)^degree.

    Parameters
    ----------
    degree : int, default=3
    gamma : float, default=1.0
        Must be positive.
    coef0 : float, default=1.0
        Must be non-negative, or the kernel would not be positive semidefinite; 0 keeps the
        monomials of degree `degree` only.
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    Examples
    --------
    >>> import numpy as np
    >>> Polynomial(degree=2)(np.array([[1.0], [2.0]]))
    array([[ 4.,  9.],
           [ 9., 25.]])
    """

    name = "polynomial"
    base = InnerProduct()

    def __init__(
        self, degree: int = 3, gamma: float = 1.0, coef0: float = 1.0, columns: Columns = None
    ) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.columns = columns

    def _fit(self, X: Any, sample_weight: np.ndarray | None) -> None:
        positive_integer(self.degree, "degree")
        positive(self.gamma, "gamma")
        positive(self.coef0, "coef0", zero=True)

    def of_base(self, B: Any, xp: Any) -> Any:
        P = B * float(self.gamma)
        P += float(self.coef0)
        with np.errstate(over="ignore"):  # whoever fits on it says so
            P **= int(self.degree)
        return P

    def form(self) -> tuple[Any, ...]:
        """k = (gamma b + coef0)^degree."""
        return ("power", float(self.gamma), float(self.coef0), int(self.degree))

    def _low_rank(self, X: Any, max_rank: int) -> np.ndarray | None:
        """The monomials of degree `degree` in z = (sqrt(gamma) x, sqrt(coef0)), k = (z'z)^degree."""
        size, degree = X.shape[1] + (self.coef0 > 0), int(self.degree)
        if comb(size + degree - 1, degree) > max_rank:
            return None
        values = X.toarray() if sparse.issparse(X) else X
        Z = np.hstack([sqrt(self.gamma) * values, np.full((len(values), 1), sqrt(self.coef0))])
        powers = combinations_with_replacement(range(size), degree)
        return np.column_stack([_multiplicity(power) * Z[:, power].prod(axis=1) for power in powers])


def _multiplicity(power: tuple[int, ...]) -> float:
    """Root of the multinomial coefficient: how often a monomial occurs in (z'z)^degree."""
    return sqrt(factorial(len(power)) / prod(map(factorial, Counter(power).values())))
