"""Values and gradients of Gaussian product kernels on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._backend import torch
from ..._typing import FloatArray
from ...kernels.parametric import ParametricKernel, ProductRBF


def on_device(kernel: ParametricKernel, device: Any) -> Any:
    """The kernel, computed on a device if that is supported: `ProductRBF` and its subclasses."""
    if device is None or not isinstance(kernel, ProductRBF):
        return kernel
    return TorchProductRBF(kernel, device)


class TorchProductRBF:
    """A fitted kernel exp(-sum_k w_k (x_k - z_k)^2) whose work on all pairs is done on a device.

    With W = (alpha alpha') o K and x less its mean,

        alpha' (dK/dw_k) alpha = -2 [ sum_i (W 1)_i x_ik^2 - x_k' W x_k ]

    takes one product of an n x n and an n x n_features matrix. Everything else is asked of `kernel`.

    Parameters
    ----------
    kernel : ProductRBF
    device : torch.device
    """

    def __init__(self, kernel: ProductRBF, device: Any) -> None:
        self.kernel, self.device = kernel, device
        self._sent: tuple[Any, Any] = (None, None)  # data of the host, and the same on the device
        self._last: tuple[Any, Any] = (None, None)  # matrix of the host, and the same on the device

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    def __call__(self, X: Any, Z: Any = None, d: Any = None) -> FloatArray:
        if Z is not None:
            return self.kernel(X, Z, d=d)
        points = self._points(X) * self._roots(d)
        norms = (points * points).sum(dim=1)
        K = torch.addmm(norms[None, :], points, points.T, alpha=-2.0).add_(norms[:, None])
        K = K.clamp_(min=0.0).neg_().fill_diagonal_(0.0).exp_()
        host = np.asarray(K.cpu().numpy())
        self._last = (host, K)
        return host

    def grad_quad(self, X: Any, alpha: FloatArray, d: Any, K: FloatArray | None = None) -> FloatArray:
        """alpha' (dK/dd_k) alpha for all k, summed over the columns of alpha."""
        signed = torch.as_tensor(alpha.reshape(len(alpha), -1), device=self.device)
        return self._contract(X, signed, signed, d, K)

    def grad_trace(self, X: Any, A: FloatArray, d: Any, K: FloatArray | None = None) -> FloatArray:
        """tr(A dK/dd_k) for all k and a symmetric matrix A."""
        return self._contract(X, torch.as_tensor(A, device=self.device), None, d, K)

    def _contract(self, X: Any, left: Any, right: Any, d: Any, K: FloatArray | None) -> FloatArray:
        """sum_ij W_ij dk_ij, W = left right', or left itself; from the support of `left`."""
        matrix, points = self._matrix(X, d, K), self._points(X).double()
        if right is not None:
            support = left.any(dim=1).nonzero()[:, 0]
            matrix, points = matrix[support][:, support], points[support]
            left = left[support] @ right[support].T
        W = left * matrix
        x = points - points.mean(dim=0)
        slopes = 2.0 * ((x * (W @ x)).sum(dim=0) - W.sum(dim=1) @ (x * x))
        return self.kernel._gather(np.asarray(slopes.cpu().numpy()))

    def _matrix(self, X: Any, d: Any, K: FloatArray | None) -> Any:
        if K is None or self._last[0] is not K:
            K = self(X, d=d) if K is None else K
            return torch.as_tensor(np.ascontiguousarray(K), device=self.device)
        return self._last[1]

    def _points(self, X: Any) -> Any:
        """The columns that the kernel sees, less their mean; sent once."""
        if self._sent[0] is not X:
            values = self.kernel._prepare(X)
            points = torch.as_tensor(np.ascontiguousarray(values), device=self.device)
            self._sent = (X, points - points.mean(dim=0))
        return self._sent[1]

    def _roots(self, d: Any) -> Any:
        widths = self.kernel._widths(self.kernel._checked(d))
        return torch.as_tensor(np.sqrt(widths), device=self.device).to(self._sent[1].dtype)
