"""Parametric kernels made of others: weighted sums and products."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from ..._typing import FloatArray
from ..base import Kernel
from ..columns import as_table
from ..compose import NestedKernels
from ..convert import as_kernel
from .base import ParametricKernel
from .domains import Box, Joined


class Fixed(ParametricKernel):
    """An ordinary kernel among parametric ones: nothing to learn.

    Parameters
    ----------
    kernel : kernel

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> Fixed(Linear()).n_parameters([[1.0], [2.0]])
    0
    """

    name = "fixed"

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        self.kernel_ = clone(as_kernel(self.kernel)).fit(X, sample_weight=sample_weight)
        return super().fit(X, y, sample_weight)

    @property
    def label(self) -> str:
        """Short name for tables and plots."""
        return as_kernel(self.kernel).label

    def _prepare(self, X: Any) -> Any:
        return as_table(X)

    def _initial(self, X: Any, sample_weight: FloatArray) -> FloatArray:
        return np.zeros(0)

    def _names(self, columns: list[str]) -> list[str]:
        return []

    def _feature_map(self, n_columns: int) -> FloatArray:
        return np.zeros((0, n_columns))

    def _compute(self, X: Any, Z: Any, d: FloatArray) -> FloatArray:
        result: FloatArray = self.kernel_(X, None if Z is X else Z)
        return result

    def _contract(self, X: Any, Z: Any, B: FloatArray, d: FloatArray, K: FloatArray | None) -> FloatArray:
        return np.zeros(0)


class ParametricComposite(NestedKernels, ParametricKernel):
    """A parametric kernel that combines others on the same samples.

    Parameters
    ----------
    kernels : list of parametric kernels and kernels, or dict of name -> kernel

    Attributes
    ----------
    kernels_ : list of ParametricKernel
        The fitted children.
    """

    #: parameters of its own, before those of the children
    _n_own = 0

    def __init__(self, kernels: Any) -> None:
        self.kernels = kernels

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit a copy of every child on `X`."""
        if len(self.kernels) == 0:
            raise ValueError(f"{type(self).__name__}: kernels is empty, give at least one kernel.")
        children: Sequence[Any] = list(
            self.kernels.values() if isinstance(self.kernels, dict) else self.kernels
        )
        self.kernels_ = [
            clone(as_parametric(child)).fit(X, sample_weight=sample_weight) for child in children
        ]
        self._titles = list(self.kernels) if isinstance(self.kernels, dict) else None
        return super().fit(X, y, sample_weight)

    def _prepare(self, X: Any) -> Any:
        return as_table(X)

    def domain(self) -> Joined:
        """d >= 0 for parameters of its own, then the domains of the children."""
        children = [child.domain() for child in self.kernels_]
        sizes = [len(child.initial_) for child in self.kernels_]
        return Joined([Box(), *children], [self._n_own, *sizes])

    def _sizes(self) -> FloatArray:
        own = np.abs(self.initial_[: self._n_own])
        return np.concatenate([own, *(child._sizes() for child in self.kernels_)])

    def _parts(self, d: FloatArray) -> list[FloatArray]:
        """The parameters of every child."""
        ends = self._n_own + np.cumsum([len(child.initial_) for child in self.kernels_])
        return np.split(d[self._n_own :], ends[:-1] - self._n_own)

    def _values(self, X: Any, Z: Any, d: FloatArray) -> list[FloatArray]:
        other = None if Z is X else Z
        parts = zip(self.kernels_, self._parts(d), strict=True)
        return [child(X, other, part) for child, part in parts]

    def _child_names(self) -> list[str]:
        """Names of the children's parameters, told apart by the child where two agree."""
        names = [name for child in self.kernels_ for name in child.names_]
        if len(set(names)) == len(names):
            return names
        titles = self._child_titles()
        pairs = zip(titles, self.kernels_, strict=True)
        return [f"{title}: {name}" for title, child in pairs for name in child.names_]

    def _child_titles(self) -> list[str]:
        if self._titles is not None:
            return [str(title) for title in self._titles]
        titles = [getattr(child, "label", type(child).__name__) for child in self.kernels_]
        if len(set(titles)) == len(titles):
            return titles
        return [f"{position} {title}" for position, title in enumerate(titles)]

    def _child_map(self, n_columns: int) -> FloatArray:
        return np.vstack([child.feature_map(None) for child in self.kernels_])


def as_parametric(kernel: Any) -> ParametricKernel:
    """`kernel` itself if it is parametric; a kernel without parameters otherwise.

    Examples
    --------
    >>> from kernelweave.kernels import RBF
    >>> as_parametric(RBF(gamma=1.0))
    Fixed(kernel=RBF(gamma=1.0))
    """
    if isinstance(kernel, ParametricKernel):
        return kernel
    known = as_kernel(kernel, "kernels")
    assert isinstance(known, Kernel)
    return Fixed(known)


class WeightedSum(ParametricComposite):
    """Weighted sum, k(x, z) = sum_m d_m k_m(x, z).

    A child may be an ordinary kernel, which makes it ordinary multiple kernel learning, or a
    parametric one k_m(x, z; e_m), whose parameters e_m follow the M weights: sums of products are
    ``WeightedSum([ProductOf([...]), ...])``.

    Parameters
    ----------
    kernels : list of kernels, or dict of name -> kernel

    Examples
    --------
    >>> from kernelweave.kernels import Linear, Polynomial
    >>> kernel = WeightedSum([Linear(), Polynomial(degree=2, gamma=1.0)])
    >>> kernel([[1.0], [2.0]], d=[1.0, 0.5])
    array([[ 3. ,  6.5],
           [ 6.5, 16.5]])
    """

    name = "weighted_sum"

    @property
    def _n_own(self) -> int:  # type: ignore[override]
        return len(self.kernels_)

    def _initial(self, X: Any, sample_weight: FloatArray) -> FloatArray:
        M = len(self.kernels_)
        return np.concatenate([np.full(M, 1.0 / M), *(child.initial_ for child in self.kernels_)])

    def _names(self, columns: list[str]) -> list[str]:
        return [*self._child_titles(), *self._child_names()]

    def _feature_map(self, n_columns: int) -> FloatArray:
        return np.vstack([np.zeros((len(self.kernels_), n_columns)), self._child_map(n_columns)])

    def _compute(self, X: Any, Z: Any, d: FloatArray) -> FloatArray:
        total, other = np.zeros((X.shape[0], Z.shape[0])), None if Z is X else Z
        for weight, child, part in zip(d, self.kernels_, self._parts(d), strict=False):
            if weight != 0.0:
                total += weight * child(X, other, part)
        return total

    def _contract(self, X: Any, Z: Any, B: FloatArray, d: FloatArray, K: FloatArray | None) -> FloatArray:
        weights, inner = [], []
        for weight, child, part in zip(d, self.kernels_, self._parts(d), strict=False):
            values = child(X, Z, part)
            weights.append(float(np.einsum("ij,ij->", B, values)))
            inner.append(weight * child.contract(X, Z, B, part, values))
        return np.concatenate([weights, *inner])


class ProductOf(ParametricComposite):
    """Product, k(x, z) = prod_j k_j(x, z; d_j), the vectors d_j one after another.

    The gradient in d_j is that of k_j with B o prod_{i != j} K_i in the place of B. A child may also
    be an ordinary kernel, without parameters. Varma & Babu (2009), section 3.

    Parameters
    ----------
    kernels : list of kernels, or dict of name -> kernel

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> from kernelweave.kernels.parametric import ProductRBF
    >>> kernel = ProductOf([Linear(columns=[0]), ProductRBF(columns=[1])])
    >>> kernel([[2.0, 0.0], [3.0, 1.0]], d=[1.0]).round(4)
    array([[4.    , 2.2073],
           [2.2073, 9.    ]])
    """

    name = "product_of"

    def _initial(self, X: Any, sample_weight: FloatArray) -> FloatArray:
        return np.concatenate([child.initial_ for child in self.kernels_])

    def _names(self, columns: list[str]) -> list[str]:
        return self._child_names()

    def _feature_map(self, n_columns: int) -> FloatArray:
        return self._child_map(n_columns)

    def _compute(self, X: Any, Z: Any, d: FloatArray) -> FloatArray:
        return reduce(mul, self._values(X, Z, d))

    def _contract(self, X: Any, Z: Any, B: FloatArray, d: FloatArray, K: FloatArray | None) -> FloatArray:
        values, gradients = self._values(X, Z, d), []
        for j, (child, part) in enumerate(zip(self.kernels_, self._parts(d), strict=True)):
            # without division: a factor may be zero
            others = reduce(mul, values[:j] + values[j + 1 :], B)
            gradients.append(child.contract(X, Z, others, part, values[j]))
        return np.concatenate(gradients)
