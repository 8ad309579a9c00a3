"""Low-rank factors whose rows are spread over the workers of a Dask cluster."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from ..._cluster import Cluster, Loaded, Made, Sent
from ..._typing import FloatArray, IntArray
from ..choice import free_share, show_bytes
from ..lowrank.dictionary import SINGLE_FROM, LowRankDictionary, sum_of
from ..lowrank.factors import Factors, Scatter
from ..lowrank.maps import Features, looked_at, settle
from ..tables import ArrayTable, Table
from . import row_share as tasks
from .engine import _evenly
from .row_share import RowConstants, Rows, make_rows, moments_of
from .share import FILLED
from .table import DaskTable


class DaskFactors(Factors):
    """M factors of n rows; each worker holds or computes its own rows.

    Coefficients go out and rows of f come back; rows of alpha go out and one vector per kernel comes back
    from every share, added up in the order of the shares; the curvature of a Newton step is summed among the
    workers, two shares at a time. The order stays the same whichever worker dies, and so does the result.

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
        Which of these factors are used; all by default.
    order : ndarray of shape (n,), optional
        Position among the rows of the factors of each row of the shares, the shares taken one after another.
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
        """The numbers by which the workers know some of the factors."""
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
        future = made.future  # comes first: it may have to be made again, elsewhere
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
        """The answers of all shares, each given its rows of A."""
        own, starts = self._own(kernels), self.starts

        def asked() -> list[Any]:
            return [
                self._submit(task, made, own, A[starts[k] : starts[k + 1]])
                for k, made in enumerate(self.shares)
            ]

        return self._answers(asked)


class Lot(NamedTuple):
    """Rows of one share, the partitions they come from, if any, and the worker they go to."""

    rows: slice
    group: slice | None
    worker: str

    @property
    def size(self) -> int:
        return int(self.rows.stop - self.rows.start)


class DaskLowRankDictionary(LowRankDictionary):
    """`LowRankDictionary` whose factors are on the workers of the current Dask client.

    Rows are dealt out to the threads of all workers. Landmarks are chosen in this process, from the rows
    needed for that. The workers compute the features of their rows and the moments, which are summed here. A
    worker that dies costs only time.
    """

    def _factors(self, normalize: Any, weight: FloatArray | None, memory_limit: int | None) -> DaskFactors:
        gc.collect()  # factors of an earlier fit that nobody uses would still fill the workers
        self.cluster = Cluster()
        lots = self._deal()
        roots = [self._root(lot, weight) for lot in lots]
        dtype, stored = self._plan_workers(lots, memory_limit)
        shares = self._shares(roots, dtype, stored)
        self._settle(normalize, weight, shares, roots)
        if any(one.mean is not None for one in self.features):
            shares = self._shares(roots, dtype, stored)  # once more, centred
        self._roots, self._sizes = roots, [lot.size for lot in lots]
        return self._spread(shares, dtype)

    def _spread(self, shares: list[Made], dtype: Any) -> DaskFactors:
        ranks = [one.map.rank for one in self.features]
        return DaskFactors(self.cluster, shares, self._sizes, ranks, dtype)

    def _fine_factors(self) -> DaskFactors:
        shares = self._shares(self._roots, np.float64, [False] * len(self._roots))
        return self._spread(shares, np.float64).take(None, self.live.tolist())

    def _shares(self, roots: list[Sent], dtype: Any, stored: list[bool]) -> list[Made]:
        settings = RowConstants(list(self.features)), np.dtype(dtype)
        return [Made(root, make_rows, *settings, kept) for root, kept in zip(roots, stored, strict=True)]

    def _settle(
        self, normalize: Any, weight: FloatArray | None, shares: list[Made], roots: list[Sent]
    ) -> None:
        """RowConstants of the normalisation, from moments that the workers sum over their rows."""

        def asked() -> list[Any]:
            return [self.cluster.submit(moments_of, made.future, near=made.worker) for made in shares]

        found, seen = self.cluster.answers(asked, roots), looked_at(normalize, self.source.X, weight)
        for one, several in zip(self.features, zip(*found, strict=True), strict=True):
            settle(one, normalize, sum_of(several), seen)

    # -- rows ---------------------------------------------------------------------------------

    def _deal(self) -> list[Lot]:
        """Consecutive rows for every thread of every worker; whole partitions of a Dask collection."""
        X, n = self.source.X, self.source.n_samples
        places = [worker for worker, threads in self.cluster.threads().items() for _ in range(threads)]
        if isinstance(X, DaskTable):
            groups = X.groups(len(places))
            rows = [slice(int(X.starts[g.start]), int(X.starts[g.stop])) for g in groups]
        else:
            cuts = np.linspace(0, n, min(len(places), n) + 1).astype(int).tolist()
            rows, groups = [slice(*pair) for pair in pairwise(cuts)], [None] * len(cuts)  # type: ignore[list-item]
        return [
            Lot(some, group, worker)
            for some, group, worker in zip(rows, groups, _evenly(places), strict=False)
        ]

    def _root(self, lot: Lot, weight: FloatArray | None) -> Sent:
        """The data of a share: made from partitions by Dask, read from a file by the worker, or sent."""
        X, n = self.source.X, self.source.n_samples
        even = weight is None or bool((weight == weight[0]).all())
        share = 1.0 / n if even or weight is None else weight[lot.rows] / weight.sum()
        if isinstance(X, DaskTable):
            from dask.delayed import delayed

            assert lot.group is not None
            value = delayed(Rows)(X.joined(lot.group), share)
            return Loaded(self.cluster, value, lot.worker, load=float(lot.size))
        if isinstance(X, Table):
            part: Any = X.part(lot.rows)
        else:
            part = _safe_indexing(X, lot.rows)
            part = np.asarray(part) if isinstance(part, np.ndarray) else part  # the content of a memory map
        return Sent(self.cluster, Rows(part, share), lot.worker, load=float(lot.size))

    # -- memory -------------------------------------------------------------------------------

    def _plan_workers(self, lots: list[Lot], memory_limit: int | None) -> tuple[Any, list[bool]]:
        """Precision of the factors, and which shares are kept."""
        width = sum(one.map.rank for one in self.features)
        loads = Counter[str]()
        for lot in lots:
            loads[lot.worker] += lot.size
        rooms = self._rooms(loads, memory_limit)
        total = self.source.n_samples * width
        double = 8 * total <= SINGLE_FROM and all(8 * width * loads[w] <= rooms[w] for w in loads)
        dtype = np.float64 if double else np.float32
        size = np.dtype(dtype).itemsize
        fits = {worker: size * width * loads[worker] <= rooms[worker] for worker in loads}
        stored = [fits[lot.worker] for lot in lots]
        self.gram_reason = self._describe(lots, loads, size * total, dtype, stored)
        return dtype, stored

    def _rooms(self, loads: Counter[str], memory_limit: int | None) -> dict[str, float]:
        """Bytes for factors on every worker, besides its rows."""
        limits, free = self.cluster.memory_limits(), free_share()
        even = np.inf if free is None else free / len(loads)
        read = isinstance(self.source.X, Table) and not isinstance(self.source.X, DaskTable | ArrayTable)
        width = 0 if read else 8
        taken = {worker: width * self.source.X.shape[1] * count for worker, count in loads.items()}
        rooms = {}
        for worker in loads:
            limit = limits.get(worker)
            most = even if limit is None else FILLED * limit
            rooms[worker] = min(most, np.inf if memory_limit is None else memory_limit) - taken[worker]
        return rooms

    def _describe(
        self, lots: list[Lot], loads: Counter[str], needed: int, dtype: Any, stored: list[bool]
    ) -> str:
        kept = sum(lot.size for lot, kept in zip(lots, stored, strict=True) if kept)
        n, rank = self.source.n_samples, max(one.map.rank for one in self.features)
        how = "are in memory" if kept == n else "are computed again in every pass"
        if 0 < kept < n:
            how = f"are in memory for {kept / n:.0%} of the rows and computed again for the others"
        workers = f"{len(loads)} worker{'s' if len(loads) > 1 else ''}"
        return (
            f"{len(self.names)} kernels of rank up to {rank}, rows on {workers} of Dask: factors of "
            f"{show_bytes(needed)} {how} as {dtype.__name__}."
        )

    # -- what is missing ----------------------------------------------------------------------

    def diagonal_sums(self, features: list[Features], alpha: FloatArray) -> FloatArray:
        """`error.diagonal_sums` over all rows, by the workers."""
        if not features:
            return np.zeros((0, alpha.shape[1] + 1))
        place = {id(self.features[m]): k for k, m in enumerate(self.live)}
        factors = self.gram.factors
        assert isinstance(factors, DaskFactors)
        return factors.missing(alpha, [place[id(one)] for one in features])
