"""What kernels share between two samples, on a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from ..._backend import torch
from ...kernels.bases import Base
from ..pairs import Distances, Given, OwnValues, Pairs

#: entries of a table above which a sparse one is not written out
MOST_DENSE = 1 << 31


class DevicePairs(ABC):
    """One quantity of two samples: a base, values of a kernel, or differences column by column.

    Attributes
    ----------
    n_samples : int
    stored : bool
        Whether reading it computes nothing.
    like : tensor
        Of its precision and on its device.
    """

    n_samples: int
    stored = False
    like: Any

    @abstractmethod
    def part(self, rows: Any, columns: Any) -> Any:
        """Between two sets of samples, each a tensor of positions, or a slice."""

    def to(self, Z: Any) -> Any:
        """Between new points, a tensor of shape (n_new, F) in double precision, and the samples."""
        raise NotImplementedError

    @abstractmethod
    def diag(self) -> Any:
        """Of every sample with itself."""

    def row_bytes(self, n_columns: int) -> int:
        """Bytes of one row of a part of so many columns."""
        return n_columns * int(self.like.element_size())

    @abstractmethod
    def take(self, samples: Any) -> DevicePairs:
        """The same on some samples."""


class Points(DevicePairs):
    """A base of points; where it may, they are moved to their mean, where rounding is least.

    Parameters
    ----------
    base : Base
    X : tensor of shape (n, F)
        Less `mean`.
    mean : tensor of shape (F,), optional
        In double precision.
    each : tensor of shape (n,), optional
        ``base.each(X)``.
    """

    def __init__(self, base: Base, X: Any, mean: Any = None, each: Any = None) -> None:
        self.base, self.X, self.mean, self.n_samples, self.like = base, X, mean, len(X), X[:0, :0]
        self.each = base.each(X) if each is None else each

    def part(self, rows: Any, columns: Any) -> Any:
        if self.each is None:
            return self.base.between(self.X[rows], self.X[columns])
        B = self.base.between(self.X[rows], self.X[columns], self.each[rows], self.each[columns])
        if self.base.distance:  # a difference of products misses 0 by rounding
            left, right = (positions(some, self.n_samples, B.device) for some in (rows, columns))
            B.masked_fill_(left[:, None] == right, 0.0)
        return B

    def to(self, Z: Any) -> Any:
        moved = (Z if self.mean is None else Z - self.mean).to(self.X.dtype)
        return self.base.between(moved, self.X, None, self.each)

    def diag(self) -> Any:
        return self.base.diag(self.X)

    def take(self, samples: Any) -> Points:
        each = None if self.each is None else self.each[samples]
        return Points(self.base, self.X[samples], self.mean, each)


class Stored(DevicePairs):
    """A matrix of all pairs.

    Parameters
    ----------
    K : tensor of shape (n, n)
    """

    stored = True

    def __init__(self, K: Any) -> None:
        self.K, self.n_samples, self.like = K, len(K), K[:0]

    def part(self, rows: Any, columns: Any) -> Any:
        return self.K[rows][:, columns]

    def diag(self) -> Any:
        return self.K.diagonal()

    def take(self, samples: Any) -> Stored:
        return Stored(self.K[samples][:, samples].contiguous())


class FromHost(DevicePairs):
    """What the host computes, a part at a time.

    Parameters
    ----------
    pairs : Pairs
    like : tensor
        Of the precision and on the device wanted.
    """

    def __init__(self, pairs: Pairs, like: Any) -> None:
        self.pairs, self.like, self.n_samples = pairs, like, pairs.n_samples

    def part(self, rows: Any, columns: Any) -> Any:
        chosen = (_host(part, self.n_samples) for part in (rows, columns))
        return as_tensor(self.pairs.between(*chosen)).to(self.like)

    def diag(self) -> Any:
        return torch.as_tensor(self.pairs.diag()).to(self.like)

    def take(self, samples: Any) -> FromHost:
        return FromHost(self.pairs.take(_host(samples, self.n_samples)), self.like)


class Differences(DevicePairs):
    """Squared differences of two samples, column by column.

    Parameters
    ----------
    X : tensor of shape (n, F)
        Less `mean`, which is where rounding is least.
    mean : tensor of shape (F,)
        In double precision.
    """

    def __init__(self, X: Any, mean: Any) -> None:
        self.X, self.mean, self.n_samples, self.like = X, mean, len(X), X[:0, :0]

    def part(self, rows: Any, columns: Any) -> Any:
        return (self.X[rows][:, None, :] - self.X[columns][None, :, :]).square_()

    def to(self, Z: Any) -> Any:
        return ((Z - self.mean).to(self.X.dtype)[:, None, :] - self.X[None, :, :]).square_()

    def diag(self) -> Any:
        return torch.zeros_like(self.X)

    def row_bytes(self, n_columns: int) -> int:
        return n_columns * int(self.X.shape[1] * self.X.element_size())

    def take(self, samples: Any) -> Differences:
        return Differences(self.X[samples], self.mean)


def pairs_on(pairs: Pairs, like: Any) -> DevicePairs:
    """Pairs of the host, on the device and in the precision of the tensor `like`."""
    if isinstance(pairs, OwnValues | Given):
        return FromHost(pairs, like)
    assert pairs.base is not None
    X: Any = pairs.X
    if sparse.issparse(X):
        if X.shape[0] * X.shape[1] > MOST_DENSE:
            return FromHost(pairs, like)
        X = X.toarray()
    points = as_tensor(X).to(like.device)
    if not pairs.base.moves:
        return Points(pairs.base, points.to(like.dtype))
    mean = points.mean(dim=0, dtype=torch.float64)
    centred = (points - mean).to(like.dtype)
    if isinstance(pairs, Distances) and sparse.issparse(pairs.X):  # kept less their origin
        mean = mean + torch.as_tensor(pairs.origin).to(mean)
    return Points(pairs.base, centred, mean)


def as_tensor(values: Any) -> Any:
    """An array of the host as a tensor there; a copy of one that may not be written, which torch refuses."""
    return torch.as_tensor(np.require(values, requirements=("C", "W")))


def positions(part: Any, n: int, device: Any) -> Any:
    """A set of samples as a tensor of positions."""
    return torch.arange(*part.indices(n), device=device) if isinstance(part, slice) else part


def _host(part: Any, n: int) -> Any:
    """A set of samples as the host writes it."""
    return slice(*part.indices(n)[:2]) if isinstance(part, slice) else part.cpu().numpy()
