"""Parametric kernels made of kernels: every child keeps its own parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from ..._typing import FloatArray
from ..base import Kernel
from ..columns import as_table
from ..convert import as_kernel
from ..nested import NestedKernels
from .base import ParametricKernel


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
        return self.kernel_(X, None if Z is X else Z)

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
