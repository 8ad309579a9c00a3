"""Linear kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from .base import Kernel
from .bases import InnerProduct
from .columns import Columns, as_table


class Linear(Kernel):
    """Linear kernel, k(x, z) = x'z.

    Parameters
    ----------
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    Examples
    --------
    >>> import numpy as np
    >>> Linear()(np.array([[1.0, 2.0], [0.0, 3.0]]))
    array([[5., 6.],
           [6., 9.]])
    """

    name = "linear"
    base = InnerProduct()

    def __init__(self, columns: Columns = None) -> None:
        self.columns = columns

    def of_base(self, B: Any, xp: Any) -> Any:
        return B

    def form(self) -> tuple[Any, ...]:
        return ("power", 1.0, 0.0, 1)

    def affine(self, Z: Any, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        table = as_table(Z)
        W = np.zeros((table.shape[1], coef.shape[1]))
        columns = np.arange(len(W)) if self.columns_ is None else self.columns_
        # a column may be given twice
        np.add.at(W, columns, safe_sparse_dot(self._view(table).T, coef, dense_output=True))
        return W, np.zeros(coef.shape[1])

    def _low_rank(self, X: Any, max_rank: int) -> np.ndarray | None:
        if X.shape[1] > max_rank:
            return None
        return X.toarray() if sparse.issparse(X) else X
