"""Factors Z_m with K_m = Z_m Z_m': where their rows are, and products with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from ..._typing import FloatArray, IntArray
from .._workers import map_tiles
from ..blocks import tiles
from .maps import Features

#: rows whose products are summed in single precision before they join a sum in double precision
ROWS = 1 << 12

#: rows that a thread takes at a time
TILE_ROWS = 1 << 15

#: bytes of features computed at a time
BLOCK_BYTES = 1 << 26

#: bytes of rows gathered at a time
GATHER_BYTES = 1 << 27


class Scatter(NamedTuple):
    """Z_S' W Z_S over some rows S, about their weighted mean if there is one, and the sum of the weights."""

    matrix: FloatArray
    weight: float
    mean: FloatArray | None = None


class Factors(ABC):
    """M factors of n rows.

    Attributes
    ----------
    n_samples : int
    ranks : list of int
        Columns of every factor.
    dtype : dtype
    """

    n_samples: int
    ranks: list[int]
    dtype: Any

    #: whether other processes may have a copy
    portable = True

    @abstractmethod
    def apply(self, columns: dict[int, FloatArray]) -> FloatArray:
        """sum_m Z_m columns[m] over some of the factors, each (rank, c); shape (n, c)."""

    @abstractmethod
    def adjoint(self, A: FloatArray, kernels: Sequence[int]) -> list[FloatArray]:
        """Z_m' A for some of the factors, A of shape (n, c)."""

    @abstractmethod
    def squares(self, kernels: Sequence[int]) -> FloatArray:
        """Squared norms of the rows of some of the factors, shape (n, number)."""

    @abstractmethod
    def rows(self, indices: IntArray, kernels: Sequence[int]) -> FloatArray:
        """Some rows of some of the factors, side by side."""

    @abstractmethod
    def take(self, samples: IntArray | None, kernels: Sequence[int]) -> Factors:
        """Some rows (None: all) of some of the factors, as new factors."""

    def scatter(
        self,
        indices: IntArray,
        weights: FloatArray,
        kernels: Sequence[int],
        scales: FloatArray,
        centred: bool,
    ) -> Scatter:
        """Z_S' W Z_S of some rows S of some of the factors, summed in double precision.

        Parameters
        ----------
        indices : ndarray of int
            S.
        weights : ndarray of shape (number of rows,)
            The diagonal of W.
        kernels : list of int
        scales : ndarray of shape (number of columns,)
            Factors of the columns.
        centred : bool
            Whether the weighted mean of Z is subtracted.
        """
        size, center = len(scales), np.zeros(len(scales))
        total, first = np.zeros((size, size)), np.zeros(size)
        for number, some in enumerate(tiles(len(indices), max(256, GATHER_BYTES // (8 * max(size, 1))))):
            Z = self.rows(indices[some], kernels) * scales.astype(self.dtype)
            w = weights[some].astype(self.dtype)
            if centred and number == 0:
                # nearly the mean: what is left to subtract is small
                center = np.asarray(w @ Z / max(w.sum(), 1e-300), dtype=np.float64)
            if centred:
                Z -= center.astype(Z.dtype)
            first += w @ Z
            Z *= np.sqrt(w)[:, None]
            total += Z.T @ Z
        weight = float(weights.sum())
        if not centred:
            return Scatter(total, weight)
        return Scatter(total - np.outer(first, first) / weight, weight, center + first / weight)


class StoredFactors(Factors):
    """Factors in memory.

    Products of single precision factors are summed in double precision, one block of rows after another.

    Parameters
    ----------
    arrays : list of ndarray of shape (n, rank)

    Examples
    --------
    >>> factors = StoredFactors([np.eye(2), np.ones((2, 1))])
    >>> factors.apply({1: np.array([[2.0]])}).ravel()
    array([2., 2.])
    """

    def __init__(self, arrays: list[FloatArray]) -> None:
        self.arrays = arrays
        self.n_samples, self.dtype = len(arrays[0]), arrays[0].dtype
        self.ranks = [Z.shape[1] for Z in arrays]

    def apply(self, columns: dict[int, FloatArray]) -> FloatArray:
        given = {m: np.ascontiguousarray(values, dtype=self.dtype) for m, values in columns.items()}
        out = np.zeros((self.n_samples, next(iter(given.values())).shape[1]))

        def fill(rows: slice) -> None:
            for m, values in given.items():
                out[rows] += _product(self.arrays[m][rows], values)

        deque(map_tiles(fill, tiles(self.n_samples, TILE_ROWS)), maxlen=0)
        return out

    def adjoint(self, A: FloatArray, kernels: Sequence[int]) -> list[FloatArray]:
        found: list[FloatArray] = [np.zeros((self.ranks[m], A.shape[1])) for m in kernels]

        def of_tile(tile: slice) -> list[FloatArray]:
            totals: list[FloatArray] = [np.zeros_like(total) for total in found]
            for rows in tiles(tile.stop, ROWS, tile.start):
                values = np.ascontiguousarray(A[rows], dtype=self.dtype)
                for m, total in zip(kernels, totals, strict=True):
                    total += _product(self.arrays[m][rows].T, values)
            return totals

        for totals in map_tiles(of_tile, tiles(self.n_samples, TILE_ROWS)):
            for total, part in zip(found, totals, strict=True):
                total += part
        return found

    def squares(self, kernels: Sequence[int]) -> FloatArray:
        found = [np.einsum("ij,ij->i", self.arrays[m], self.arrays[m]) for m in kernels]
        return np.column_stack(found).astype(np.float64)

    def rows(self, indices: IntArray, kernels: Sequence[int]) -> FloatArray:
        return np.hstack([self.arrays[m][indices] for m in kernels])

    def take(self, samples: IntArray | None, kernels: Sequence[int]) -> StoredFactors:
        some = [self.arrays[m] for m in kernels]
        return StoredFactors(some if samples is None else [Z[samples] for Z in some])


class ComputedFactors(Factors):
    """Factors that memory cannot hold: their rows are computed from the data whenever they are asked for.

    Parameters
    ----------
    features : list of Features
    X : table of shape (n, n_features)
        Read in blocks of rows; may be mapped from disk.
    dtype : dtype
    """

    def __init__(self, features: list[Features], X: Any, dtype: Any) -> None:
        self.features, self.X, self.dtype = features, X, np.dtype(dtype)
        self.n_samples, self.ranks = X.shape[0], [one.map.rank for one in features]

    def blocks(self, kernels: Sequence[int]) -> Iterator[tuple[slice, StoredFactors]]:
        """All rows, a part at a time."""
        for rows in self._steps(self.n_samples, kernels):
            yield rows, self._stored(_safe_indexing(self.X, rows), kernels)

    def _steps(self, count: int, kernels: Sequence[int]) -> list[slice]:
        """A number of rows, split into parts; in wide data the rows take more memory than their features."""
        width = max(sum(self.ranks[m] for m in kernels), self.X.shape[1], 1)
        return tiles(count, max(1, BLOCK_BYTES // (8 * width)))

    def _stored(self, block: Any, kernels: Sequence[int]) -> StoredFactors:
        return StoredFactors([self.features[m](block).astype(self.dtype, copy=False) for m in kernels])

    def apply(self, columns: dict[int, FloatArray]) -> FloatArray:
        kernels = list(columns)
        values = {k: columns[m] for k, m in enumerate(kernels)}
        return np.concatenate([block.apply(values) for _, block in self.blocks(kernels)])

    def adjoint(self, A: FloatArray, kernels: Sequence[int]) -> list[FloatArray]:
        found: list[FloatArray] = [np.zeros((self.ranks[m], A.shape[1])) for m in kernels]
        for rows, block in self.blocks(kernels):
            for total, part in zip(found, block.adjoint(A[rows], range(len(kernels))), strict=True):
                total += part
        return found

    def squares(self, kernels: Sequence[int]) -> FloatArray:
        return np.concatenate([block.squares(range(len(kernels))) for _, block in self.blocks(kernels)])

    def rows(self, indices: IntArray, kernels: Sequence[int]) -> FloatArray:
        return np.hstack(self._gathered(indices, kernels))

    def _gathered(self, indices: IntArray, kernels: Sequence[int]) -> list[FloatArray]:
        found: list[FloatArray] = [np.empty((len(indices), self.ranks[m]), self.dtype) for m in kernels]
        for some in self._steps(len(indices), kernels):
            block = _safe_indexing(self.X, indices[some])
            for m, Z in zip(kernels, found, strict=True):
                Z[some] = self.features[m](block)
        return found

    def take(self, samples: IntArray | None, kernels: Sequence[int]) -> Factors:
        if samples is None:
            return ComputedFactors([self.features[m] for m in kernels], self.X, self.dtype)
        return StoredFactors(self._gathered(samples, kernels))


def _product(Z: FloatArray, values: FloatArray) -> FloatArray:
    """Z values; one column is multiplied as a vector, which is faster than as a matrix."""
    if values.shape[1] == 1:
        return (Z @ values[:, 0])[:, None]
    return Z @ values
