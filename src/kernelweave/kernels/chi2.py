"""Exponential chi-square kernel."""

from __future__ import annotations

from typing import Any

from .bandwidth import Exponential
from .base import require_dense, require_non_negative
from .bases import ChiSquared
from .columns import Columns


class Chi2(Exponential):
    """Exponential chi-square kernel of histograms.

    k(x, z) = exp(-factor * gamma * sum_j (x_j - z_j)^2 / (x_j + z_j)), for x, z >= 0 and 0 / 0 = 0.

    Parameters
    ----------
    gamma : float or "median", default="median"
        Inverse width; "median" is 1 / the median of the positive chi-square distances between
        training rows.
    factor : float, default=1.0
        Multiplies `gamma`.
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    Attributes
    ----------
    gamma_ : float
        The value in use, factor included.

    References
    ----------
    Zhang, Marszalek, Lazebnik and Schmid, Local features and kernels for classification of
    texture and object categories, IJCV 2007.

    Examples
    --------
    >>> import numpy as np
    >>> Chi2(gamma=1.0)(np.array([[1.0, 0.0], [0.0, 1.0]])).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    """

    name = "chi2"
    base = ChiSquared()

    def __init__(self, gamma: float | str = "median", factor: float = 1.0, columns: Columns = None) -> None:
        super().__init__(gamma, factor, columns)

    def _view(self, X: Any) -> Any:
        view = super()._view(X)
        require_dense(view, self)
        require_non_negative(view, self)
        return view
