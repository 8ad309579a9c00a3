"""Histogram intersection kernel."""

from __future__ import annotations

from typing import Any

from .base import Kernel, require_non_negative
from .bases import Intersection
from .columns import Columns


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
