"""Tanimoto kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .base import Kernel
from .columns import Columns


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
        return np.divide(K, union, out=np.ones_like(K), where=union > 0)

    def _diag(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0], dtype=X.dtype)
