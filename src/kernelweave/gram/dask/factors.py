"""Factors whose rows are on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._cluster import Cluster, Made, Sent
from ..._typing import FloatArray, IntArray
from ..lowrank.factors import Factors, Scatter
from . import row_share as tasks


class DaskFactors(Factors):
    """M factors of n rows, each worker holding or computing those of its rows.

    Coefficients go out and rows of f come back; rows of alpha go out and one vector per kernel comes
    back from every share, added up in the order of the shares; the curvature of a Newton step is
    summed among the workers, two shares at a time. The order is the same whoever dies, and so is the result.

    Parameters
    ----------
    cluster : Cluster
    shares : list of Made
        A `RowShare` each, in the order of the rows.
    sizes : list of int
        Rows of every share.
    ranks : list of int
        Columns of every factor on the workers.
    dtype : dtype
    kernels : list of int, optional
        Which of these factors are meant; all by default.
    order : ndarray of shape (n,), optional
        Where the rows of the shares, one after another, stand among the rows of the factors.
    """

    portable = False  # futures belong to this process

    def __init__(
        self,
        cluster: Cluster,
        shares: list[Made],
        sizes: Sequence[int],
        ranks: list[int],
        dtype: Any,
        kernels: Sequence[int] | None = None,
        order: IntArray | None = None,
    ) -> None:
        self.cluster, self.shares, self.order, self.dtype = cluster, shares, order, np.dtype(dtype)
        self.kernels = list(range(len(ranks)) if kernels is None else kernels)
        self._ranks, self.ranks = ranks, [ranks[m] for m in self.kernels]
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        self.n_samples = int(self.starts[-1])

    # -- the interface ------------------------------------------------------------------------

    def apply(self, columns: dict[int, FloatArray]) -> FloatArray:
        V = np.concatenate(list(columns.values()))
        return self._outside(self._all(tasks.apply, list(columns), V))

    def adjoint(self, A: FloatArray, kernels: Sequence[int]) -> list[FloatArray]:
        inside = A if self.order is None else A[self.order]
        total = sum(self._each(tasks.adjoint, kernels, inside))
        return np.split(np.asarray(total), np.cumsum([self.ranks[m] for m in kernels])[:-1])

    def squares(self, kernels: Sequence[int]) -> FloatArray:
        return self._outside(self._all(tasks.squares, kernels))

    def rows(self, indices: IntArray, kernels: Sequence[int]) -> FloatArray:
        out = np.empty((len(indices), sum(self.ranks[m] for m in kernels)), self.dtype)
        own = self._own(kernels)
        pieces = self._pieces(indices)

        def asked() -> list[Any]:
            return [self._submit(tasks.rows_of, made, own, local) for made, _, local in pieces]

        for (_, where, _), found in zip(pieces, self._answers(asked), strict=True):
            out[where] = found
        return out

    def scatter(
        self,
        indices: IntArray,
        weights: FloatArray,
        kernels: Sequence[int],
        scales: FloatArray,
        centred: bool,
    ) -> Scatter:
        own, pieces = self._own(kernels), self._pieces(indices)
        pieces = [piece for piece in pieces if weights[piece[1]].any()]

        def asked() -> list[Any]:
            found = [
                self._submit(tasks.scatter, made, own, local, weights[where], scales, centred)
                for made, where, local in pieces
            ]
            return [self.cluster.tree(tasks.merge, found)]

        if not pieces:
            return Scatter(np.zeros((len(scales), len(scales))), 0.0, np.zeros(len(scales)))
        found: Scatter = self._answers(asked)[0]
        return found

    def take(self, samples: IntArray | None, kernels: Sequence[int]) -> DaskFactors:
        own = self._own(kernels)
        if samples is None:
            return self._with(self.shares, np.diff(self.starts).tolist(), own, self.order)
        pieces = self._pieces(np.asarray(samples))
        shares = [Made(made, tasks.take_rows, local) for made, _, local in pieces]
        order = np.concatenate([where for _, where, _ in pieces])
        in_order = bool((np.diff(order) > 0).all())
        return self._with(shares, [len(where) for _, where, _ in pieces], own, None if in_order else order)

    def missing(self, alpha: FloatArray, kernels: Sequence[int]) -> FloatArray:
        """`error.diagonal_sums` of some of the factors, over all rows."""
        inside = alpha if self.order is None else alpha[self.order]
        return np.asarray(sum(self._each(tasks.missing, kernels, inside)))

    # -- rows and shares ----------------------------------------------------------------------

    def _with(self, shares: list[Made], sizes: list[int], kernels: list[int], order: Any) -> DaskFactors:
        return DaskFactors(self.cluster, shares, sizes, self._ranks, self.dtype, kernels, order)

    def _own(self, kernels: Sequence[int]) -> list[int]:
        """The numbers that the workers know some of the factors by."""
        return [self.kernels[m] for m in kernels]

    def _outside(self, parts: list[FloatArray]) -> FloatArray:
        """Answers of the shares, in the order of the rows."""
        inside = np.concatenate(parts)
        if self.order is None:
            return inside
        out = np.empty_like(inside)
        out[self.order] = inside
        return out

    def _pieces(self, indices: IntArray) -> list[tuple[Made, IntArray, IntArray]]:
        """Shares that have some of the rows, with where these stand in `indices` and in the share."""
        inside = np.asarray(indices)
        if self.order is not None:
            inverse = np.empty_like(self.order)
            inverse[self.order] = np.arange(len(inverse))
            inside = inverse[inside]
        owner = np.searchsorted(self.starts, inside, side="right") - 1
        found = [(k, np.flatnonzero(owner == k)) for k in range(len(self.shares))]
        return [(self.shares[k], where, inside[where] - self.starts[k]) for k, where in found if len(where)]

    # -- questions to the workers -------------------------------------------------------------

    @property
    def _needs(self) -> list[Sent]:
        return [made.root for made in self.shares]

    def _answers(self, asked: Callable[[], list[Any]]) -> list[Any]:
        return self.cluster.answers(asked, self._needs)

    def _submit(self, task: Callable[..., Any], made: Made, *args: Any) -> Any:
        future = made.future  # first: it may have to be made again, elsewhere
        sent = [self.cluster.argument_for(value, made) for value in args]
        return self.cluster.submit(task, future, *sent, near=made.worker)

    def _all(self, task: Callable[..., Any], kernels: Sequence[int], *args: Any) -> list[Any]:
        """The answers of all shares to the same question."""
        own = self._own(kernels)

        def asked() -> list[Any]:
            futures = [made.future for made in self.shares]
            sent = [self.cluster.argument(value) for value in args]
            return [
                self.cluster.submit(task, future, own, *sent, near=made.worker)
                for future, made in zip(futures, self.shares, strict=True)
            ]

        return self._answers(asked)

    def _each(self, task: Callable[..., Any], kernels: Sequence[int], A: FloatArray) -> list[Any]:
        """The answers of all shares, each of which is given its rows of A."""
        own, starts = self._own(kernels), self.starts

        def asked() -> list[Any]:
            return [
                self._submit(task, made, own, A[starts[k] : starts[k + 1]])
                for k, made in enumerate(self.shares)
            ]

        return self._answers(asked)
