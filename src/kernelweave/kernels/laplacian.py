"""Laplacian kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from .bandwidth import resolve_gamma
from .base import Kernel, positive
from .columns import Columns
from .distances import manhattan


class Laplacian(Kernel):
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
    bandwidth = "gamma"

    def __init__(self, gamma: float | str = "scale", factor: float = 1.0, columns: Columns = None) -> None:
        self.gamma = gamma
        self.factor = factor
        self.columns = columns

    def _fit(self, X: Any, sample_weight: np.ndarray | None) -> None:
        gamma = resolve_gamma(self.gamma, X, sample_weight, manhattan, power=1)
        self.gamma_ = positive(self.factor, "factor") * gamma

    def _compute(self, X: Any, Z: Any) -> np.ndarray:
        K = manhattan(X, Z)
        K *= -self.gamma_
        return np.exp(K, out=K)

    def _diag(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0], dtype=X.dtype)
