"""Gaussian (RBF) kernel."""

from __future__ import annotations

from .bandwidth import Exponential
from .bases import SquaredEuclidean


class RBF(Exponential):
    """Gaussian kernel, k(x, z) = exp(-factor * gamma ||x - z||^2).

    Parameters
    ----------
    gamma : float, "scale", "weighted" or "median", default="scale"
        Inverse squared width. "scale" is 1 / (n_features * variance of the training
        values), as in scikit-learn's SVC, where every row given to `fit` counts once, whatever its
        weight. "weighted" is the same with a row of weight w counted as w rows. "median" is 1 / the
        weighted median of the positive squared distances between training rows. Without weights "scale"
        and "weighted" agree; with them, "weighted" and "median" make a weight of 2 a row given twice.
    factor : float, default=1.0
        Multiplies `gamma`: a dictionary of widths around a rule is ``RBF("scale", factor=f)``
        for several f, and needs no look at the data.
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    Attributes
    ----------
    gamma_ : float
        The value in use, factor included.

    Examples
    --------
    >>> import numpy as np
    >>> RBF(gamma=0.5)(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    """

    name = "rbf"
    base = SquaredEuclidean()
    degree = 2
