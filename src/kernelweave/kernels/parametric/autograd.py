"""Any function written in torch as a parametric kernel: its gradient comes from torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from ..._typing import FloatArray
from ..base import positive_integer
from ..columns import Columns
from .base import ParametricKernel
from .domains import Box


class AutogradKernel(ParametricKernel):
    """A kernel k_d(X, Z) = function(X, Z, d) of torch tensors; no gradient to write.

    sum_ij B_ij dK_ij/dd_k is one backward pass through sum(B o function(X, Z, d)), in blocks of
    rows. The function must be symmetric and positive semidefinite for every d >= 0, or for every d where
    `signed`.

    Parameters
    ----------
    function : callable
        ``function(X, Z, d)`` returns a tensor of shape (n_x, n_z).
    size : int, optional
        Length of d; by default one parameter per column.
    start : array-like or float, default=1.0
        Start values of d; a parameter that starts at 0 stays there.
    signed : bool, default=False
        Whether d may have either sign.
    parameter_names : list of str, optional
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    Examples
    --------
    >>> def laplacian(X, Z, d):
    ...     return (-(X[:, None] - Z[None]).abs() @ d).exp()
    >>> AutogradKernel(laplacian).names([[1.0, 2.0]])
    ['x0', 'x1']
    """

    name = "autograd"

    def __init__(
        self,
        function: Callable[[Any, Any, Any], Any],
        size: int | None = None,
        start: Any = 1.0,
        parameter_names: Sequence[str] | None = None,
        columns: Columns = None,
        signed: bool = False,
    ) -> None:
        self.function = function
        self.size = size
        self.start = start
        self.parameter_names = parameter_names
        self.columns = columns
        self.signed = signed

    def domain(self) -> Box:
        """Any d where `signed`, else d >= 0."""
        return Box(lower=-np.inf if self.signed else 0.0)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        if not callable(self.function):
            raise ValueError(f"function={self.function!r} is not callable: pass a function of (X, Z, d).")
        return super().fit(X, y, sample_weight)

    def _initial(self, X: FloatArray, sample_weight: FloatArray) -> FloatArray:
        size = X.shape[1] if self.size is None else positive_integer(self.size, "size")
        start = np.asarray(self.start, dtype=np.float64)
        if start.shape not in ((), (size,)) or not ((start >= 0) | self.signed).all():
            number = "number" if self.signed else "non-negative number"
            raise ValueError(f"start={self.start!r}: expected a {number}, or {size} of them.")
        return np.broadcast_to(start, size).copy()

    def _names(self, columns: list[str]) -> list[str]:
        names = columns if self.size is None else [f"d{k}" for k in range(self.size)]
        names = names if self.parameter_names is None else [str(name) for name in self.parameter_names]
        if len(names) != len(self.initial_):
            raise ValueError(f"parameter_names has {len(names)} names for {len(self.initial_)} parameters.")
        return names

    def _feature_map(self, n_columns: int) -> FloatArray:
        return np.eye(n_columns) if self.size is None else np.zeros((len(self.initial_), n_columns))

    def _compute(self, X: FloatArray, Z: FloatArray, d: FloatArray) -> FloatArray:
        torch = _torch()
        with torch.no_grad():
            K: FloatArray = self._tensor(X, Z, torch.from_numpy(d)).numpy()
        if K.shape != (len(X), len(Z)):
            raise ValueError(f"the kernel function returned shape {K.shape}, expected {(len(X), len(Z))}.")
        return K

    def _contract(
        self, X: FloatArray, Z: FloatArray, B: FloatArray, d: FloatArray, K: FloatArray | None
    ) -> FloatArray:
        torch = _torch()
        parameters = torch.from_numpy(d.copy()).requires_grad_()
        total = (torch.from_numpy(np.ascontiguousarray(B)) * self._tensor(X, Z, parameters)).sum()
        (gradient,) = torch.autograd.grad(total, parameters)
        result: FloatArray = gradient.numpy().astype(np.float64)
        return result

    def _tensor(self, X: FloatArray, Z: FloatArray, d: Any) -> Any:
        torch = _torch()
        left, right = (torch.from_numpy(np.ascontiguousarray(part)) for part in (X, Z))
        return self.function(left, right, d.to(left.dtype))


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            'AutogradKernel needs torch: pip install "kernelweave[torch]", or derive from ParametricKernel '
            "and write the gradient."
        ) from error
    return torch
