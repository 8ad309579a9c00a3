"""Kernels that share nothing: any kernel on data, or a matrix given by the user."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from .._typing import FloatArray, IntArray
from ..kernels import Kernel
from .shared import Part, Shared
from .stack import KernelStack


class SingleKernel(Shared):
    """A kernel of any kind, alone: its base are its values.

    Parameters
    ----------
    kernel : Kernel
        Fitted.
    X : array-like, sparse matrix or DataFrame of shape (n, n_features)
    n_kernels : int, default=1
        How often it is listed.

    Examples
    --------
    >>> from kernelweave.kernels import Laplacian
    >>> X = np.array([[0.0], [1.0]])
    >>> SingleKernel(Laplacian(gamma=1.0).fit(X), X).base(slice(0, 1), slice(0, 2)).round(3)
    array([[1.   , 0.368]])
    """

    def __init__(self, kernel: Kernel, X: Any, n_kernels: int = 1) -> None:
        self.kernel, self.X = kernel, X
        self.n_samples, self.n_kernels = X.shape[0], n_kernels
        self.dtype = kernel(_safe_indexing(X, slice(0, 1))).dtype

    def base(self, rows: Part, columns: Part) -> FloatArray:
        return np.asarray(self.kernel(_safe_indexing(self.X, rows), _safe_indexing(self.X, columns)))

    def values(self, base: FloatArray, k: int) -> FloatArray:
        return base

    def diag(self, k: int) -> FloatArray:
        return np.asarray(self.kernel.diag(self.X), dtype=np.float64)

    def take(self, samples: IntArray | None, kernels: IntArray | None) -> SingleKernel:
        X = self.X if samples is None else _safe_indexing(self.X, samples)
        return SingleKernel(self.kernel, X, self.n_kernels if kernels is None else len(kernels))


class SingleMatrix(Shared):
    """A matrix given by the user, read where it lies.

    Parameters
    ----------
    stack : KernelStack of shape (n, n, M)
    m : int
        Which of its matrices.
    n_kernels : int, default=1
        How often it is listed.
    """

    def __init__(self, stack: KernelStack, m: int, n_kernels: int = 1) -> None:
        self.stack, self.m = stack, m
        self.n_samples, self.n_kernels = len(stack), n_kernels
        self.dtype = stack.matrices[m].dtype

    def base(self, rows: Part, columns: Part) -> FloatArray:
        return self.stack.part(self.m, rows, columns)

    def values(self, base: FloatArray, k: int) -> FloatArray:
        return base

    def diag(self, k: int) -> FloatArray:
        return self.stack.diagonal(self.m).astype(np.float64)

    def take(self, samples: IntArray | None, kernels: IntArray | None) -> SingleMatrix:
        stack = self.stack if samples is None else self.stack[samples, samples]
        return SingleMatrix(stack, self.m, self.n_kernels if kernels is None else len(kernels))
