"""Kernels of inner products and of what samples have in common; and the constant kernel."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from math import comb, factorial, prod, sqrt
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .base import Kernel, positive, positive_integer, require_non_negative
from .bases import InnerProduct, Intersection, Zero
from .columns import Columns, as_table


class Linear(Kernel):
    """Linear kernel, k(x, z) = x'z.

    Parameters
    ----------
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.
    standardize : bool, default=False
        Divide every column by its deviation over the training rows first, so that units do not matter.
        (In a table that is mostly zero, columns of counts share one unit.)

    Examples
    --------
    >>> import numpy as np
    >>> Linear()(np.array([[1.0, 2.0], [0.0, 3.0]]))
    array([[5., 6.],
           [6., 9.]])
    """

    name = "linear"
    base = InnerProduct()

    def __init__(self, columns: Columns = None, standardize: bool = False) -> None:
        self.columns = columns
        self.standardize = standardize

    def of_base(self, B: Any, xp: Any) -> Any:
        return B

    def form(self) -> tuple[Any, ...]:
        return ("power", 1.0, 0.0, 1)

    def affine(self, Z: Any, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        table = as_table(Z)
        W = np.zeros((table.shape[1], coef.shape[1]))
        columns = np.arange(len(W)) if self.columns_ is None else self.columns_
        # a column may be given twice
        own = safe_sparse_dot(self._view(table).T, coef, dense_output=True)
        np.add.at(W, columns, own if self.base_scale is None else self.base_scale[:, None] * own)
        return W, np.zeros(coef.shape[1])

    def _low_rank(self, X: Any, max_rank: int) -> np.ndarray | None:
        if X.shape[1] > max_rank:
            return None
        result: np.ndarray | None = X.toarray() if sparse.issparse(X) else X
        return result


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


class Tanimoto(Kernel):
    """Tanimoto similarity, k(x, z) = x'z / (x'x + z'z - x'z).

    On binary fingerprints it is the number of shared bits over the number of bits set in either.
    It is positive semidefinite on all real vectors: k = sum_{r>=1} (x'z / (x'x + z'z))^r. Two
    zero vectors count as equal (k = 1), a zero and a non-zero vector as unrelated (k = 0).

    Parameters
    ----------
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    References
    ----------
    Ralaivola, Swamidass, Saigo and Baldi, Graph kernels for chemical informatics, Neural
    Networks 2005.

    Examples
    --------
    >>> import numpy as np
    >>> Tanimoto()(np.array([[1, 1, 0], [0, 1, 1]])).round(4)
    array([[1.    , 0.3333],
           [0.3333, 1.    ]])
    """

    name = "tanimoto"

    def __init__(self, columns: Columns = None) -> None:
        self.columns = columns

    def _compute(self, X: Any, Z: Any) -> np.ndarray:
        K = safe_sparse_dot(X, Z.T, dense_output=True)
        union = np.add.outer(row_norms(X, squared=True), row_norms(Z, squared=True))
        union -= K
        # x'x + z'z - x'z >= (x'x + z'z) / 2, so it is 0 for two zero vectors only
        result: np.ndarray = np.divide(K, union, out=np.ones_like(K), where=union > 0)
        return result

    def _diag(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0], dtype=X.dtype)


class HistogramIntersection(Kernel):
    """Histogram intersection, k(x, z) = sum_j min(x_j, z_j), for x, z >= 0.

    Parameters
    ----------
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    References
    ----------
    Swain and Ballard, Color indexing, IJCV 1991; Barla, Odone and Verri, Histogram intersection
    kernel for image classification, ICIP 2003.

    Examples
    --------
    >>> import numpy as np
    >>> HistogramIntersection()(np.array([[1.0, 4.0], [3.0, 2.0]]))
    array([[5., 3.],
           [3., 5.]])
    """

    name = "histogram_intersection"
    base = Intersection()

    def __init__(self, columns: Columns = None) -> None:
        self.columns = columns

    def _view(self, X: Any) -> Any:
        view = super()._view(X)
        require_non_negative(view, self)
        return view

    def of_base(self, B: Any, xp: Any) -> Any:
        return B

    def form(self) -> tuple[Any, ...]:
        return ("power", 1.0, 0.0, 1)


class Constant(Kernel):
    """Constant kernel, k(x, z) = value >= 0; ``kernel + 1.0`` adds one.

    It has no variance, so on its own it is an intercept; inside a product or a sum it lets
    a kernel act at a lower order: (Linear() + 1.0) * Linear() is x'z + (x'z)^2.

    Parameters
    ----------
    value : float, default=1.0
    columns : int, str, slice, list, mask or callable, optional
        Accepted for uniformity; the values are not read.

    Examples
    --------
    >>> Constant(2.0)([[0.0], [1.0]])
    array([[2., 2.],
           [2., 2.]])
    """

    name = "constant"
    accepts = "any"
    base = Zero()

    def __init__(self, value: float = 1.0, columns: Columns = None) -> None:
        self.value = value
        self.columns = columns

    def _view(self, X: Any) -> Any:
        return np.empty((X.shape[0], 0))

    def _fit(self, X: Any, sample_weight: np.ndarray | None) -> None:
        positive(self.value, "value", zero=True)

    def of_base(self, B: Any, xp: Any) -> Any:
        return xp.full_like(B, float(self.value))

    def sum_of_products(self) -> list[tuple[float, list[Kernel]]]:
        return [(float(self.value), [])]

    def affine(self, Z: Any, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        return np.zeros((as_table(Z).shape[1], coef.shape[1])), float(self.value) * coef.sum(axis=0)

    def _low_rank(self, X: Any, max_rank: int) -> np.ndarray | None:
        return np.full((X.shape[0], 1), np.sqrt(float(self.value))) if max_rank >= 1 else None
