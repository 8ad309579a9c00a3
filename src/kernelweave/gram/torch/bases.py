"""Quantities of two samples that kernels share, on a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ..._backend import torch
from ..shared import Shared, SharedProducts


class Base(ABC):
    """One quantity of two samples: squared distances, inner products, or values of a kernel.

    Attributes
    ----------
    n_samples : int
    stored : bool
        Whether reading it computes nothing.
    """

    n_samples: int
    stored = False

    @abstractmethod
    def part(self, rows: Any, columns: Any) -> Any:
        """Between two sets of samples, each a tensor of positions, or a slice."""

    def to(self, Z: Any) -> Any:
        """Between new points, a tensor of shape (n_new, F) in double precision, and the samples."""
        raise NotImplementedError

    @abstractmethod
    def diag(self) -> Any:
        """Of every sample with itself."""

    @abstractmethod
    def ones(self) -> Any:
        """A tensor of n ones of the same kind."""

    def row_bytes(self, n_columns: int) -> int:
        """Bytes of one row of a part of so many columns."""
        return n_columns * int(self.ones().element_size())

    @abstractmethod
    def take(self, samples: Any) -> Base:
        """The same on some samples."""


class Distances(Base):
    """||x - z||^2 from the products of points moved to their mean, where rounding is least.

    Parameters
    ----------
    X : tensor of shape (n, F)
        Less `mean`.
    mean : tensor of shape (F,)
        In double precision.
    norms : tensor of shape (n,), optional
    """

    def __init__(self, X: Any, mean: Any, norms: Any = None) -> None:
        self.X, self.mean, self.n_samples = X, mean, len(X)
        self.norms = _squares(X) if norms is None else norms

    def part(self, rows: Any, columns: Any) -> Any:
        D = self._between(self.X[rows], self.norms[rows], columns)
        left, right = (positions(some, self.n_samples, D.device) for some in (rows, columns))
        return D.masked_fill_(left[:, None] == right, 0.0)

    def to(self, Z: Any) -> Any:
        moved = (Z - self.mean).to(self.X.dtype)
        return self._between(moved, _squares(moved), slice(None))

    def _between(self, X: Any, norms: Any, columns: Any) -> Any:
        D = torch.addmm(self.norms[columns][None, :], X, self.X[columns].T, alpha=-2.0)
        return D.add_(norms[:, None]).clamp_(min=0.0)

    def diag(self) -> Any:
        return torch.zeros_like(self.norms)

    def ones(self) -> Any:
        return torch.ones_like(self.norms)

    def take(self, samples: Any) -> Distances:
        return Distances(self.X[samples], self.mean, self.norms[samples])


class Products(Base):
    """x'z.

    Parameters
    ----------
    X : tensor of shape (n, F)
    """

    def __init__(self, X: Any) -> None:
        self.X, self.n_samples = X, len(X)

    def part(self, rows: Any, columns: Any) -> Any:
        return self.X[rows] @ self.X[columns].T

    def to(self, Z: Any) -> Any:
        return Z.to(self.X.dtype) @ self.X.T

    def diag(self) -> Any:
        return (self.X**2).sum(dim=1)

    def ones(self) -> Any:
        return torch.ones_like(self.X[:, 0])

    def take(self, samples: Any) -> Products:
        return Products(self.X[samples])


class Stored(Base):
    """A matrix of all pairs.

    Parameters
    ----------
    K : tensor of shape (n, n)
    """

    stored = True

    def __init__(self, K: Any) -> None:
        self.K, self.n_samples = K, len(K)

    def part(self, rows: Any, columns: Any) -> Any:
        return self.K[rows][:, columns]

    def diag(self) -> Any:
        return self.K.diagonal()

    def ones(self) -> Any:
        return torch.ones_like(self.K[0])

    def take(self, samples: Any) -> Stored:
        return Stored(self.K[samples][:, samples].contiguous())


class FromHost(Base):
    """What the host computes, a part at a time.

    Parameters
    ----------
    shared : Shared
    like : tensor
        Of the precision and on the device wanted.
    """

    def __init__(self, shared: Shared, like: Any) -> None:
        self.shared, self.like, self.n_samples = shared, like, shared.n_samples

    def part(self, rows: Any, columns: Any) -> Any:
        chosen = (_host(part, self.n_samples) for part in (rows, columns))
        return torch.as_tensor(np.ascontiguousarray(self.shared.base(*chosen))).to(self.like)

    def diag(self) -> Any:
        own = self.shared.norms if isinstance(self.shared, SharedProducts) else self.shared.diag(0)
        return torch.as_tensor(own).to(self.like)

    def ones(self) -> Any:
        return torch.ones(self.n_samples, dtype=self.like.dtype, device=self.like.device)

    def take(self, samples: Any) -> FromHost:
        return FromHost(self.shared.take(_host(samples, self.n_samples), None), self.like)


def _squares(X: Any) -> Any:
    """Squared lengths of rows, a few at a time summed in double precision."""
    return torch.cat([(some.double() ** 2).sum(dim=1).to(X.dtype) for some in X.split(8192)])


def positions(part: Any, n: int, device: Any) -> Any:
    """A set of samples as a tensor of positions."""
    return torch.arange(*part.indices(n), device=device) if isinstance(part, slice) else part


def _host(part: Any, n: int) -> Any:
    """A set of samples as the host writes it."""
    return slice(*part.indices(n)[:2]) if isinstance(part, slice) else part.cpu().numpy()
