"""Product of parametric kernels, each with its own parameters."""

from __future__ import annotations

from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from ..._typing import FloatArray
from .composite import ParametricComposite


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
