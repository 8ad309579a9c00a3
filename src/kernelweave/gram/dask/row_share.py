"""What a worker does for kernels of low rank: hold the factors of some rows, and answer questions."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from ..._typing import FloatArray, IntArray
from ..lowrank.dictionary import diagonal_sums, factors_of, one_pass
from ..lowrank.factors import Factors, Scatter, StoredFactors
from ..lowrank.maps import Features, Moments


@dataclass(frozen=True)
class Rows:
    """Data of a share: its rows, and their weights in the moments (one for all, or one each)."""

    X: Any
    share: float | FloatArray


class RowConstants:
    """The features of all kernels, which every worker needs.

    Parameters
    ----------
    features : list of Features
    """

    def __init__(self, features: list[Features]) -> None:
        self.features = features

    @property
    def nbytes(self) -> int:
        """About the number of bytes they take."""
        arrays = (value for one in self.features for value in vars(one.map).values())
        return sum(int(getattr(value, "nbytes", 0)) for value in arrays)


class RowShare:
    """Factors of some rows.

    Only the data, and how to compute the factors, travel or are written to disk; the factors are computed
    again where these arrive.

    Parameters
    ----------
    rows : Rows
    constants : RowConstants
    dtype : dtype
    stored : bool
        Whether factors are kept.
    factors : Factors, optional
        The factors, if they exist already.
    """

    def __init__(
        self, rows: Rows, constants: RowConstants, dtype: Any, stored: bool, factors: Factors | None = None
    ) -> None:
        self.rows, self.constants, self.dtype, self.stored = rows, constants, dtype, stored
        self.moments: list[Moments] = []
        self._factors = factors
        self._lock = threading.Lock()

    @property
    def factors(self) -> Factors:
        """The factors, computed when first asked for, together with the moments of their features."""
        with self._lock:
            if self._factors is None:
                features, X = self.constants.features, self.rows.X
                each = np.broadcast_to(np.asarray(self.rows.share, dtype=np.float64), X.shape[:1])
                arrays, self.moments = one_pass(features, X, [each] * len(features), self.dtype, self.stored)
                self._factors = factors_of(features, X, self.dtype, arrays)
            return self._factors

    def take(self, rows: IntArray) -> RowShare:
        """Some of the rows."""
        some = Rows(_safe_indexing(self.rows.X, rows), self.rows.share)
        every = range(len(self.factors.ranks))
        return RowShare(some, self.constants, self.dtype, self.stored, self.factors.take(rows, every))

    def __reduce__(self) -> tuple[Any, ...]:
        return RowShare, (self.rows, self.constants, self.dtype, self.stored)

    def __sizeof__(self) -> int:
        kept = self._factors.arrays if isinstance(self._factors, StoredFactors) else []
        return object.__sizeof__(self) + sum(Z.nbytes for Z in kept)


# -- tasks ------------------------------------------------------------------------------------


def make_rows(rows: Rows, constants: RowConstants, dtype: Any, stored: bool) -> RowShare:
    """A share of rows, its factors computed."""
    share = RowShare(rows, constants, dtype, stored)
    _ = share.factors
    return share


def take_rows(share: RowShare, rows: IntArray) -> RowShare:
    """`RowShare.take`, as a task."""
    return share.take(rows)


def moments_of(share: RowShare) -> list[Moments]:
    """Moments of the features before they are centred."""
    _ = share.factors
    return share.moments


def apply(share: RowShare, kernels: Sequence[int], V: FloatArray) -> FloatArray:
    """`Factors.apply`, with the coefficients of the factors stacked."""
    cuts = np.cumsum([share.factors.ranks[m] for m in kernels])[:-1]
    return share.factors.apply(dict(zip(kernels, np.split(V, cuts), strict=True)))


def adjoint(share: RowShare, kernels: Sequence[int], A: FloatArray) -> FloatArray:
    """`Factors.adjoint`, with the answers stacked."""
    return np.concatenate(share.factors.adjoint(A, kernels))


def squares(share: RowShare, kernels: Sequence[int]) -> FloatArray:
    """`Factors.squares`, as a task."""
    return share.factors.squares(kernels)


def rows_of(share: RowShare, kernels: Sequence[int], indices: IntArray) -> FloatArray:
    """`Factors.rows`, as a task."""
    return share.factors.rows(indices, kernels)


def scatter(
    share: RowShare,
    kernels: Sequence[int],
    indices: IntArray,
    weights: FloatArray,
    scales: FloatArray,
    centred: bool,
) -> Scatter:
    """`Factors.scatter`, as a task."""
    return share.factors.scatter(indices, weights, kernels, scales, centred)


def missing(share: RowShare, kernels: Sequence[int], alpha: FloatArray) -> FloatArray:
    """How much of the kernels the features miss on the rows with a dual variable: `diagonal_sums`."""
    return diagonal_sums([share.constants.features[m] for m in kernels], alpha, share.rows.X)


def merge(left: Scatter, right: Scatter) -> Scatter:
    """The scatter of two sets of rows together; neither is changed. Chan, Golub & LeVeque (1983).

    The scatter about the common mean is the sum of the two scatters about their own means, plus

        W_1 W_2 / (W_1 + W_2) (mean_1 - mean_2) (mean_1 - mean_2)'

    Examples
    --------
    >>> Z, w = np.array([[0.0], [1.0], [5.0]]), np.ones(3)
    >>> one, two = Scatter(np.array([[0.5]]), 2.0, np.array([0.5])), Scatter(np.zeros((1, 1)), 1.0, Z[2])
    >>> bool(np.isclose(merge(one, two).matrix[0, 0], ((Z - Z.mean()) ** 2).sum()))
    True
    """
    total, weight = left.matrix + right.matrix, left.weight + right.weight
    if left.mean is None or right.mean is None:
        return Scatter(total, weight)
    apart, share = right.mean - left.mean, right.weight / weight
    total += left.weight * share * np.outer(apart, apart)
    return Scatter(total, weight, left.mean + share * apart)
