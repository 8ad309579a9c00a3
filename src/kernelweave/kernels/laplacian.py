"""Laplacian kernel."""

from __future__ import annotations

from .bandwidth import Exponential
from .bases import Manhattan


class Laplacian(Exponential):
    """Laplacian kernel, k(x, z) = exp(-factor * gamma ||x - z||_1).

    Less smooth than the Gaussian and more tolerant of outlying columns.

    Parameters
    ----------
    gamma : float, "scale", "weighted" or "median", default="scale"
        Inverse width. "scale" is 1 / (n_features * standard deviation of the training values),
        every row counted once; "weighted" is the same with a row of weight w counted as w rows;
        "median" is 1 / the weighted median of the positive L1 distances between training rows.
    factor : float, default=1.0
        Multiplies `gamma`.
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    Attributes
    ----------
    gamma_ : float
        The value in use, factor included.

    Examples
    --------
    >>> import numpy as np
    >>> Laplacian(gamma=0.5)(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    name = "laplacian"
    base = Manhattan()
    degree = 1
