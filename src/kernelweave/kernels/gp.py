"""scikit-learn's Gaussian-process kernels, as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Kernel, _columns_label, require_dense
from .columns import Columns


class GPKernel(Kernel):
    """A kernel of `sklearn.gaussian_process.kernels`, with its parameters as they stand.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Estimators accept it directly, without this wrapper. `WhiteKernel` is refused: it is
        noise on a sample, not a function of two samples.
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RationalQuadratic
    >>> GPKernel(RationalQuadratic(length_scale=1.0, alpha=1.0))([[0.0], [2.0]]).round(4)
    array([[1.    , 0.3333],
           [0.3333, 1.    ]])
    """

    name = "gp"

    def __init__(self, kernel: Any, columns: Columns = None) -> None:
        self.kernel = kernel
        self.columns = columns

    @property
    def label(self) -> str:
        return str(self.kernel) + _columns_label(self.columns)

    def _view(self, X: Any) -> Any:
        view = super()._view(X)
        require_dense(view, self)
        return view

    def _fit(self, X: Any, sample_weight: np.ndarray | None) -> None:
        if not is_gp_kernel(self.kernel):
            raise ValueError(
                f"kernel={self.kernel!r}: expected a kernel of sklearn.gaussian_process.kernels."
            )
        first = X[:1]
        if not np.allclose(self.kernel(first), self.kernel(first, first)):
            raise ValueError(
                f"{self.label} contains WhiteKernel, which is noise and not a kernel of two samples: "
                "leave it out, the estimator has its own noise or regularisation parameter."
            )

    def _compute(self, X: Any, Z: Any) -> np.ndarray:
        return self.kernel(X, Z)

    def _diag(self, X: Any) -> np.ndarray:
        return self.kernel.diag(X)


def is_gp_kernel(value: Any) -> bool:
    """Whether `value` is a kernel object of scikit-learn's Gaussian processes, without importing them."""
    methods = ("diag", "is_stationary", "clone_with_theta")
    return not isinstance(value, type) and callable(value) and all(hasattr(value, name) for name in methods)
