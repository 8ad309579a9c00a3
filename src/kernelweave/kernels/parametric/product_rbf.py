"""Gaussian kernels with one learned width per column, or per group of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from ..._typing import FloatArray
from ..bandwidth import RBF
from ..bases import squared_euclidean
from ..columns import Columns, as_table, resolve_columns
from .base import ParametricKernel, weighted_variances


class ProductRBF(ParametricKernel):
    """Product of one Gaussian per feature, k(x, z) = exp(-sum_k d_k (x_k - z_k)^2).

    With W = B o K the gradient of all parameters is one matrix product,

        sum_ij B_ij dK_ij/dd_k = -[ sum_i (W 1)_i x_ik^2 + sum_j (W' 1)_j z_jk^2 - 2 x_k' W z_k ]

    A feature with d_k = 0 plays no part. d starts at 1 / (n_features * variance of the feature),
    where the exponent is -2 on average. Varma & Babu (2009), section 5.

    Parameters
    ----------
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    Examples
    --------
    >>> import numpy as np
    >>> X, alpha = np.array([[0.0, 1.0], [1.0, 3.0]]), np.array([1.0, -1.0])
    >>> ProductRBF()(X, d=[1.0, 0.0]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    >>> ProductRBF().grad_quad(X, alpha, [1.0, 0.0]).round(4)  # 2 exp(-1) (x_1k - x_2k)^2
    array([0.7358, 2.943 ])
    """

    name = "product_rbf"

    def __init__(self, columns: Columns = None) -> None:
        self.columns = columns

    def _initial(self, X: FloatArray, sample_weight: FloatArray) -> FloatArray:
        return inverse_spread(weighted_variances(X, sample_weight) * X.shape[1])

    def _widths(self, d: FloatArray) -> FloatArray:
        """The width of every column."""
        return d

    def _gather(self, slopes: FloatArray) -> FloatArray:
        """The gradient in d from that in the widths."""
        return np.asarray(slopes, dtype=np.float64)

    def frozen(self, d: FloatArray) -> RBF:
        """A Gaussian kernel of columns times the roots of their widths."""
        kernel = RBF(1.0)
        kernel.columns_, kernel.gamma_, kernel.column_scale_ = self.columns_, 1.0, np.sqrt(self._widths(d))
        return kernel

    def _compute(self, X: FloatArray, Z: FloatArray, d: FloatArray) -> FloatArray:
        widths = self._widths(d)
        active = np.flatnonzero(widths)
        if len(active) == 0:
            return np.ones((len(X), len(Z)), dtype=X.dtype)
        root = np.sqrt(widths[active]).astype(X.dtype)
        left = X[:, active] * root
        return gaussian(left, None if Z is X else Z[:, active] * root)

    def _contract(
        self, X: FloatArray, Z: FloatArray, B: FloatArray, d: FloatArray, K: FloatArray | None
    ) -> FloatArray:
        W = B * (self._compute(X, Z, d) if K is None else K)
        x, z = centred(X, Z)
        squares = _weighted_squares(W.sum(axis=1)[:, None], x) + _weighted_squares(W.sum(axis=0)[:, None], z)
        return self._gather(2.0 * np.einsum("ik,ik->k", x, W @ z) - squares)

    def _contract_outer(
        self,
        X: FloatArray,
        Z: FloatArray,
        left: FloatArray,
        right: FloatArray,
        d: FloatArray,
        K: FloatArray | None,
    ) -> FloatArray:
        """For one output W z = left o K (right o z), without W."""
        if left.shape[1] > 1:
            return super()._contract_outer(X, Z, left, right, d, K)
        K = self._compute(X, Z, d) if K is None else K
        x, z = centred(X, Z)
        squares = _weighted_squares(left * (K @ right), x) + _weighted_squares(right * (K.T @ left), z)
        product = K @ (right * z)
        product *= left
        return self._gather(2.0 * np.einsum("ik,ik->k", x, product) - squares)


def gaussian(P: FloatArray, Q: FloatArray | None) -> FloatArray:
    """exp(-||p_i - q_j||^2); None for Q means P itself."""
    K = squared_euclidean(P, P if Q is None else Q)
    np.negative(K, out=K)
    result: FloatArray = np.exp(K, out=K)
    return result


def centred(X: FloatArray, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both less the mean of Z: differences do not change, and rounding shrinks."""
    middle = Z.mean(axis=0)
    return X - middle, Z - middle


def _weighted_squares(weights: FloatArray, x: FloatArray) -> FloatArray:
    """sum_i weights_i x_ik^2, weights of shape (n, 1)."""
    result: FloatArray = np.einsum("ik,ik->k", weights * x, x)
    return result


def inverse_spread(spread: Any) -> FloatArray:
    """1 / spread, and 0 where a constant column leaves nothing to learn."""
    spread = np.asarray(spread, dtype=np.float64)
    result: FloatArray = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    return result


class GroupProductRBF(ProductRBF):
    """Product of one Gaussian per group, k(x, z) = exp(-sum_g d_g ||x_g - z_g||^2).

    It is `ProductRBF` with the widths G' d of the features, G_gk = 1 where feature k is in group
    g, so the gradient is G times that of the features. Groups may overlap; features in no group
    are left out. d starts at 1 / (n_groups * variance of the group).

    Parameters
    ----------
    groups : dict of name -> columns
        Columns by position, name, slice, mask or selector.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = GroupProductRBF({"place": [0, 1], "time": [2]}).fit(np.eye(3))
    >>> kernel.names_
    ['place', 'time']
    >>> kernel(np.eye(3), d=[0.5, 0.0]).round(4)
    array([[1.    , 0.3679, 0.6065],
           [0.3679, 1.    , 0.6065],
           [0.6065, 0.6065, 1.    ]])
    """

    name = "group_product_rbf"

    def __init__(self, groups: Mapping[str, Columns]) -> None:
        self.groups = groups

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        if not isinstance(self.groups, Mapping) or len(self.groups) == 0:
            raise ValueError(f"groups={self.groups!r}: expected a non-empty dict of name -> columns.")
        table = as_table(X)
        self.members_ = np.zeros((len(self.groups), table.shape[1]))
        for group, columns in enumerate(self.groups.values()):
            self.members_[group, resolve_columns(columns, table)] = 1.0
        return super().fit(X, y, sample_weight)

    def _initial(self, X: FloatArray, sample_weight: FloatArray) -> FloatArray:
        return inverse_spread(self.members_ @ weighted_variances(X, sample_weight) * len(self.members_))

    def _names(self, columns: list[str]) -> list[str]:
        return [str(name) for name in self.groups]

    def _feature_map(self, n_columns: int) -> FloatArray:
        return self.members_

    def _widths(self, d: FloatArray) -> FloatArray:
        return d @ self.members_

    def _gather(self, slopes: FloatArray) -> FloatArray:
        return self.members_ @ np.asarray(slopes, dtype=np.float64)
