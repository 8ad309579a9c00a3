"""One Gram matrix on a device: the weighted sum of the kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._backend import torch
from ..._linalg import GROWTH
from ..._typing import FloatArray

#: rows of a matrix that is computed anew, at a time: their bytes
ROW_BYTES = 1 << 30


def positive_factor(A: Any) -> Any:
    """Cholesky factor of a tensor, to whose diagonal as much is added as rounding has taken away."""
    factor, failed = torch.linalg.cholesky_ex(A)
    added = len(A) * torch.finfo(A.dtype).eps * float(A.diagonal().abs().max())
    while int(failed) and np.isfinite(added):
        factor, failed = torch.linalg.cholesky_ex(
            A + added * torch.eye(len(A), dtype=A.dtype, device=A.device)
        )
        added *= GROWTH
    return factor


class Matrix(ABC):
    """K = S + shift 11', an n x n matrix that stays where it was made.

    The shift is about the mean of the entries: without it, entries of wide kernels differ by little
    more than rounding. Under sum(alpha) = 0 it plays no part. To solvers of the host it looks like
    an array: K @ a, K[rows], K[np.ix_(rows, columns)], K.diagonal() give arrays of NumPy.

    Attributes
    ----------
    shape : (int, int)
    shift : float
    like : tensor
        Of the same precision and device.
    """

    #: what the host gets
    dtype = np.dtype(np.float64)

    #: NumPy leaves the products to this class
    __array_ufunc__ = None

    def __init__(self, n: int, shift: float, like: Any) -> None:
        self.shape, self.shift, self.like = (n, n), shift, like

    def __len__(self) -> int:
        return self.shape[0]

    # -- on the device ------------------------------------------------------------------------

    @abstractmethod
    def multiply(self, v: Any) -> Any:
        """S v for a tensor v of shape (n,) or (n, c)."""

    @abstractmethod
    def rows(self, indices: Any) -> Any:
        """Rows of S, for a tensor of positions."""

    @abstractmethod
    def diag(self) -> Any:
        """Diagonal of S, in double precision."""

    def block(self, rows: Any, columns: Any) -> Any:
        """S between two sets of samples, tensors of positions."""
        return self.rows(rows)[:, columns]

    def product(self, v: Any) -> Any:
        """K v, the shift's share in double precision."""
        return self.multiply(v.to(self.like.dtype)).double() + self.shift * v.sum(dim=0, dtype=torch.float64)

    def tensor(self, values: Any) -> Any:
        """Numbers of the host in the precision and on the device of this matrix."""
        return torch.as_tensor(np.ascontiguousarray(values)).to(self.like)

    def inverse_form(self, rows: Any, extra: FloatArray, G: FloatArray, tied: bool) -> FloatArray:
        """G' P G with P the inverse of K + diag(extra) on some samples, within {x : sum(x) = 0} when tied."""
        if len(rows) <= int(tied):
            return np.zeros((G.shape[1], G.shape[1]))
        chosen = self._positions(rows)
        A = self.block(chosen, chosen).double() + self.shift
        size = float(A.diagonal().mean())
        # single precision can leave K short of positive by its rounding
        A.diagonal().add_(torch.as_tensor(extra, device=A.device) + 1e-7 * size)
        right = torch.as_tensor(np.column_stack([G, np.ones(len(G))]), device=A.device)
        solved = torch.cholesky_solve(right, positive_factor(A))
        form, ones = right[:, :-1].T @ solved[:, :-1], solved[:, -1]
        if tied:
            shift = right[:, :-1].T @ ones
            form = form - torch.outer(shift, shift) / ones.sum()
        return np.asarray(form.cpu().numpy())

    # -- for the host -------------------------------------------------------------------------

    def __matmul__(self, v: FloatArray) -> FloatArray:
        found = self.product(torch.as_tensor(np.ascontiguousarray(v), device=self.like.device))
        return np.asarray(found.cpu().numpy())

    def __getitem__(self, key: Any) -> FloatArray:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        part = self.rows(self._positions(rows))[:, self._positions(columns)]
        return np.asarray(part.double().cpu().numpy()) + self.shift

    def _positions(self, key: Any) -> Any:
        if isinstance(key, slice):
            return torch.arange(*key.indices(len(self)), device=self.like.device)
        return torch.as_tensor(np.atleast_1d(np.asarray(key)).ravel(), device=self.like.device)

    def diagonal(self) -> FloatArray:
        return np.asarray(self.diag().double().cpu().numpy()) + self.shift

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return self[np.arange(len(self))].astype(dtype or np.float64, copy=False)


class StoredMatrix(Matrix):
    """A matrix held on the device.

    Parameters
    ----------
    S : tensor of shape (n, n)
    shift : float
    """

    def __init__(self, S: Any, shift: float) -> None:
        super().__init__(len(S), shift, S[:0])
        self.S = S

    def multiply(self, v: Any) -> Any:
        return self.S @ v

    def rows(self, indices: Any) -> Any:
        return self.S[indices]

    def diag(self) -> Any:
        return self.S.diagonal()


class ComputedMatrix(Matrix):
    """A matrix that fits nowhere: its rows are computed whenever they are asked for.

    Parameters
    ----------
    compute : callable
        Rows of S, from a tensor of positions.
    diagonal : tensor of shape (n,)
        Of S.
    shift : float
    """

    def __init__(self, compute: Callable[[Any], Any], diagonal: Any, shift: float) -> None:
        super().__init__(len(diagonal), shift, diagonal[:0])
        self._compute, self._diagonal = compute, diagonal

    def rows(self, indices: Any) -> Any:
        return self._compute(indices)

    def multiply(self, v: Any) -> Any:
        step = max(1, ROW_BYTES // (len(self) * self.like.element_size()))
        every = torch.arange(len(self), device=self.like.device)
        return torch.cat([self.rows(some) @ v for some in every.split(step)])

    def diag(self) -> Any:
        return self._diagonal
