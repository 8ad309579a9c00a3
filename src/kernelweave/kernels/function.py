"""Kernels of a user's own: functions, and kernels of scikit-learn's Gaussian processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from .base import Kernel, _columns_label, as_numeric, require_dense
from .columns import Columns, take_columns, take_rows
from .strings import as_strings


class FunctionKernel(Kernel):
    """A kernel computed by a function, k(X, Z) = function(X, Z).

    The function must be symmetric and positive semidefinite, which is not checked.

    Parameters
    ----------
    function : callable
        ``function(X, Z)`` returns an array or sparse matrix of shape (n_x, n_z). The functions of
        `sklearn.metrics.pairwise` that are kernels work as they are.
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.
    title : str, optional
        The name in tables and plots; by default that of the function.
    accepts : {"numeric", "string", "any"}, default="numeric"
        What `function` receives: a float array or CSR matrix, a one-dimensional array of strings,
        or the selected columns as the user gave them.

    Examples
    --------
    >>> from sklearn.metrics.pairwise import cosine_similarity
    >>> FunctionKernel(cosine_similarity)([[1.0, 0.0], [3.0, 4.0]])
    array([[1. , 0.6],
           [0.6, 1. ]])
    """

    name = "function"

    def __init__(
        self,
        function: Callable[[Any, Any], Any],
        columns: Columns = None,
        title: str | None = None,
        accepts: str = "numeric",
    ) -> None:
        self.function = function
        self.columns = columns
        self.title = title
        self.accepts = accepts

    @property
    def label(self) -> str:
        name = self.title or getattr(self.function, "__name__", type(self.function).__name__)
        return str(name) + _columns_label(self.columns)

    def _view(self, X: Any) -> Any:
        views: dict[str, Callable[[Any], Any]] = {
            "numeric": lambda table: as_numeric(table, self.columns_),
            "string": as_strings,
            "any": lambda table: table,
        }
        if self.accepts not in views:
            raise ValueError(f"accepts={self.accepts!r}: expected one of {sorted(views)}.")
        return views[self.accepts](take_columns(X, self.columns_))

    def _fit(self, X: Any, sample_weight: np.ndarray | None) -> None:
        if not callable(self.function):
            raise ValueError(f"function={self.function!r} is not callable: pass a function of (X, Z).")

    def _compute(self, X: Any, Z: Any) -> np.ndarray:
        K = self.function(X, Z)
        K = K.toarray() if sparse.issparse(K) else np.asarray(K)
        expected = (X.shape[0], Z.shape[0])
        if K.shape != expected:
            raise ValueError(
                f"the kernel function {self.label} returned shape {K.shape}, expected {expected}."
            )
        if K.dtype.kind != "f":
            K = K.astype(np.float64)
        if not np.isfinite(K).all():
            raise ValueError(f"the kernel function {self.label} returned NaN or infinite values.")
        return K

    def _diag(self, X: Any) -> np.ndarray:
        rows = (take_rows(X, slice(i, i + 1)) for i in range(X.shape[0]))
        return np.array([self._compute(row, row)[0, 0] for row in rows])


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
        result: np.ndarray = self.kernel(X, Z)
        return result

    def _diag(self, X: Any) -> np.ndarray:
        result: np.ndarray = self.kernel.diag(X)
        return result


def is_gp_kernel(value: Any) -> bool:
    """Whether `value` is a kernel object of scikit-learn's Gaussian processes, without importing them."""
    methods = ("diag", "is_stationary", "clone_with_theta")
    return not isinstance(value, type) and callable(value) and all(hasattr(value, name) for name in methods)
