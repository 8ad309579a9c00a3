"""Product of Gaussians, one width per group of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from ..._typing import FloatArray
from ..columns import Columns, as_table, resolve_columns
from .base import weighted_variances
from .product_rbf import ProductRBF, inverse_spread


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
