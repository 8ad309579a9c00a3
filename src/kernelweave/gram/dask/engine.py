"""Kernels spread over the workers of a Dask cluster."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ..._cluster import Cluster, Made, Sent
from ..._typing import FloatArray, IntArray
from ...kernels import Normalization
from ..base import Gram
from ..blocks import Blocks
from ..choice import EngineChoice, Needs, Task, show_bytes
from ..shared import Given, Shared
from ..stack import KernelStack
from .share import Facts, Recipe, add, ask, facts_of, lower_of, make_share, square_of, take_part

if TYPE_CHECKING:
    from ..dictionary import Kernels


class Piece(NamedTuple):
    """A share on a worker, and which of all kernels it holds."""

    made: Made
    kernels: IntArray


def spread(cluster: Cluster, blocks: Blocks, recipe: Recipe) -> list[Piece]:
    """Kernels over the threads of all workers; the data of a worker's kernels are sent to it once."""
    gc.collect()  # kernels of an earlier fit that nobody uses would still fill the workers
    places = [worker for worker, threads in cluster.threads().items() for _ in range(threads)]
    groups = deal(blocks, min(len(places), blocks.n_kernels))
    own: dict[str, list[IntArray]] = {}
    for worker, group in zip(_evenly(places), groups, strict=False):
        own.setdefault(worker, []).append(group)
    _check_given(cluster, blocks, own)
    return [
        piece for worker, parts in own.items() for piece in _pieces(cluster, blocks, recipe, worker, parts)
    ]


def _evenly(places: list[str]) -> list[str]:
    """One thread of every worker, then a second one, and so on: few kernels still spread over all workers."""
    counts: dict[str, int] = {}
    turns = []
    for worker in places:
        counts[worker] = counts.get(worker, -1) + 1
        turns.append(counts[worker])
    return [places[k] for k in np.argsort(turns, kind="stable")]


def _pieces(
    cluster: Cluster, blocks: Blocks, recipe: Recipe, worker: str, groups: list[IntArray]
) -> list[Piece]:
    """The shares of one worker, all made from what it is sent."""
    kernels = np.concatenate(groups)
    own = only(blocks.take(kernels=kernels))
    settings = Recipe(
        recipe.normalize,
        recipe.sample_weight,
        None if recipe.scales is None else recipe.scales[kernels],
        recipe.combined,
        None if recipe.limit is None else recipe.limit // len(groups),
        len(groups),
    )
    sent = Sent(cluster, own, worker, load=float(len(kernels)))
    starts = np.cumsum([0, *map(len, groups)])
    return [
        Piece(Made(sent, make_share, np.arange(start, start + len(group)), settings), group)
        for start, group in zip(starts, groups, strict=False)
    ]


def only(blocks: Blocks) -> Blocks:
    """The same kernels, without the data that others in the same container would bring along."""
    parts = [
        Shared(Given(KernelStack([part.pairs.stack.matrix(part.pairs.m)]), 0), part.kernels)
        if isinstance(part.pairs, Given)
        else part
        for part in blocks.parts
    ]
    return blocks.with_parts(parts)


def deal(blocks: Blocks, count: int) -> list[IntArray]:
    """Kernels in `count` groups of about the same number.

    Kernels that share distances or inner products stay together, unless there are more of them than
    a group has.

    Examples
    --------
    >>> from kernelweave.kernels import RBF, Linear
    >>> X = np.eye(3)
    >>> kernels = [kernel.fit(X) for kernel in (RBF(1.0), Linear(), RBF(2.0), RBF(3.0), RBF(4.0))]
    >>> deal(Blocks.of_kernels(kernels, X), 2)
    [array([0, 1, 2]), array([3, 4])]
    """
    parts: list[IntArray] = []
    for members in blocks.members:
        whole = len(members) * count <= blocks.n_kernels
        parts += [members] if whole else np.array_split(members, min(count, len(members)))
    groups: list[list[IntArray]] = [[] for _ in range(count)]
    sizes = np.zeros(count, dtype=int)
    for part in sorted(parts, key=len, reverse=True):
        k = int(np.argmin(sizes))
        groups[k].append(part)
        sizes[k] += len(part)
    return [np.sort(np.concatenate(group)) for group in groups if group]


def _check_given(cluster: Cluster, blocks: Blocks, own: dict[str, list[IntArray]]) -> None:
    """Refuse to send a worker more matrices than its memory holds."""
    sizes = np.zeros(blocks.n_kernels)
    for part, members in zip(blocks.parts, blocks.members, strict=True):
        if isinstance(part.pairs, Given):
            sizes[members] = blocks.n_samples**2 * part.dtype.itemsize
    if not sizes.any():
        return
    limits = cluster.memory_limits()
    for worker, groups in own.items():
        needed, limit = float(sum(sizes[group].sum() for group in groups)), limits.get(worker)
        if limit is not None and needed > 0.6 * limit:
            raise MemoryError(
                f"one worker would receive {show_bytes(needed)} of precomputed matrices, and its memory "
                f"limit is {show_bytes(limit)}: start more workers, or pass kernels instead of matrices."
            )


#: how the engines on the workers keep kernels
WORDS = {
    "packed": "as lower triangles in memory",
    "dense": "as matrices in memory",
    "cached": "with rows in a cache",
    "blocked": "computed again in every pass",
}


class DaskGram(Gram):
    """M Gram matrices, each held or computed by one of the workers of a Dask cluster.

    Kernels are dealt out to the threads of all workers. A worker is sent the data of its kernels once,
    normalises them, and builds the engine that its memory allows: lower triangles in memory, rows in a cache,
    or blocks computed again in every pass. Weights and dual variables go out; M numbers, n numbers, or one
    lower triangle in double precision come back. The workers add up their triangles among themselves, two by
    two. Results equal those of the local engines up to rounding.

    A worker may die at any time. Tasks depend on their arguments alone, so Dask computes lost results again.
    The client sends data that only this worker had to a live worker (to the replacement, if a nanny starts
    one within a few seconds), and what was made from the data is made again. The solver does not notice.

    Parameters
    ----------
    kernels : Blocks, or matrices of shape (n, n)
    scales : ndarray of shape (M,), optional
        K_m = scales[m] * kernels[m].
    client : distributed.Client, optional
        The current one by default.
    recipe : Recipe, optional
        How the workers normalise the kernels and what they may take, instead of `scales`.

    Attributes
    ----------
    workers : dict of str to int
        Number of kernels on each worker.
    engines : list of str
        Engine of every share.

    Examples
    --------
    >>> from dask.distributed import Client  # doctest: +SKIP
    >>> client = Client(n_workers=2)  # doctest: +SKIP
    >>> DaskGram([np.eye(2), np.ones((2, 2))]).quad(np.array([1.0, 1.0]))  # doctest: +SKIP
    array([2., 4.])
    """

    name = "dask"
    bounded = False  # each worker knows its own memory
    portable = False  # futures belong to this process

    def __init__(
        self,
        kernels: Blocks | KernelStack | Sequence[FloatArray],
        scales: FloatArray | None = None,
        client: Any = None,
        recipe: Recipe | None = None,
    ) -> None:
        blocks = kernels if isinstance(kernels, Blocks) else Blocks.of_matrices(kernels)
        if recipe is None:
            factors = np.ones(blocks.n_kernels) if scales is None else np.asarray(scales, dtype=np.float64)
            recipe = Recipe(scales=factors)
        cluster = Cluster(client)
        self._set(cluster, spread(cluster, blocks, recipe), blocks.n_samples, blocks.n_kernels)
        self._learn(cluster.answers(self._ask_facts, self._needs))

    @classmethod
    def needs(cls, task: Task) -> Needs:
        if task.asked != cls.name:
            return Needs(None, "it needs a Dask cluster, and is taken only if asked for.")
        return Needs(0, "kernels are on the workers of a cluster")

    @classmethod
    def build(cls, kernels: Kernels, choice: EngineChoice) -> tuple[Gram, Sequence[Normalization], IntArray]:
        """Send the kernels to the workers, which normalise them."""
        task = choice.task
        recipe = Recipe(kernels.normalize, kernels.sample_weight, combined=task.combined, limit=task.limit)
        gram = cls(kernels.checked(), recipe=recipe)
        live = kernels.live(gram.scales)
        found = gram if len(live) == len(gram.scales) else gram.subset(kernels=live)
        found.words = gram.describe()
        return found, gram.rules, live

    def _set(self, cluster: Cluster, pieces: list[Piece], n_samples: int, n_kernels: int) -> None:
        self.cluster, self.pieces = cluster, pieces
        self.n_samples, self.n_kernels, self.n_passes = n_samples, n_kernels, 0.0

    def _ask_facts(self) -> list[Any]:
        return [self.cluster.submit(facts_of, made.future, near=made.worker) for made, _ in self.pieces]

    def _learn(self, facts: list[Facts]) -> None:
        """What the workers found out while they built their engines."""
        self.engines = [fact.engine for fact in facts]
        self.streams = any(fact.streams for fact in facts)
        rooms = [fact.most_combined for fact in facts if fact.most_combined is not None]
        self.most_combined = min(rooms, default=None)
        self.scales = np.empty(self.n_kernels)
        rules: dict[int, Normalization] = {}
        for (_, kernels), fact in zip(self.pieces, facts, strict=True):
            self.scales[kernels] = fact.scales
            rules.update(zip(kernels.tolist(), fact.rules, strict=False))
        self.rules = [rules[m] for m in sorted(rules)]

    @property
    def workers(self) -> dict[str, int]:
        """Number of kernels on each worker."""
        counts: Counter[str] = Counter()
        for made, kernels in self.pieces:
            counts[made.worker] += len(kernels)
        return dict(counts)

    def describe(self) -> str:
        """Where the kernels are, in words."""
        counts: Counter[str] = Counter()
        for engine, (_, kernels) in zip(self.engines, self.pieces, strict=True):
            counts[engine] += len(kernels)
        parts = ", ".join(f"{count} {WORDS[engine]}" for engine, count in counts.items())
        n = len(self.workers)
        return f"{self.n_kernels} kernels on {n} worker{'s' if n > 1 else ''}, {parts}"

    # -- the interface ------------------------------------------------------------------------

    def combine(self, weights: FloatArray) -> FloatArray:
        return self.combine_each(weights[None, :])[0]

    def combine_each(self, weights: FloatArray) -> list[FloatArray]:
        n, total = self.n_samples, self._total("combine_each", weights)
        return (
            [np.zeros((n, n)) for _ in weights] if total is None else [square_of(part, n) for part in total]
        )

    def dot(self, weights: FloatArray, alpha: FloatArray, rows: IntArray | None = None) -> FloatArray:
        count = self.n_samples if rows is None else len(rows)
        total = self._total("dot", weights, alpha, None if rows is None else np.asarray(rows))
        return np.zeros((count, *alpha.shape[1:])) if total is None else total

    def dot_each(
        self, weights: FloatArray, alpha: FloatArray, rows: Sequence[IntArray | None]
    ) -> list[FloatArray]:
        sizes = [self.n_samples if some is None else len(some) for some in rows]
        total = self._total("dot_each", weights, alpha, list(rows))
        return np.split(np.zeros(sum(sizes)) if total is None else total, np.cumsum(sizes)[:-1])

    def products(
        self, alpha: FloatArray, kernels: IntArray | None = None, rows: IntArray | None = None
    ) -> FloatArray:
        return self.products_each(alpha[:, None], kernels, [rows])[0]

    def products_each(
        self, alpha: FloatArray, kernels: IntArray | None, rows: Sequence[IntArray | None]
    ) -> list[FloatArray]:
        sizes = [self.n_samples if some is None else len(some) for some in rows]
        out: list[FloatArray] = [np.zeros((self.n_kernels, size)) for size in sizes]
        for own, found in self._some("products_each", alpha, kernels, list(rows)):
            for whole, part in zip(out, found, strict=True):
                whole[own] = part
        return out if kernels is None else [whole[np.asarray(kernels)] for whole in out]

    def quad(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        return np.asarray(self.quad_each(alpha.reshape(self.n_samples, -1), kernels).sum(axis=0))

    def quad_each(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        out = np.zeros((alpha.shape[1], self.n_kernels))
        for own, found in self._some("quad_each", alpha, kernels):
            out[:, own] = found
        return out if kernels is None else out[:, np.asarray(kernels)]

    def inner(self, A: FloatArray) -> FloatArray:
        out = np.empty(self.n_kernels)
        for (_, own), found in zip(self.pieces, self._all("inner", lower_of(A)), strict=True):
            out[own] = found
        return out

    def rows(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        chosen = np.asarray(indices, dtype=int)
        total = self._total("rows", weights, chosen)
        return np.zeros((len(chosen), self.n_samples)) if total is None else total

    def diag(self, weights: FloatArray) -> FloatArray:
        total = self._total("diag", weights)
        return np.zeros(self.n_samples) if total is None else total

    def _diagonals(self) -> FloatArray:
        out = np.empty((self.n_kernels, 1))
        asked = self._answers(lambda: [self._submit(made, "diagonals") for made, _ in self.pieces])
        for (_, own), found in zip(self.pieces, asked, strict=True):
            out[own] = found.max(axis=1, keepdims=True)
        return out

    def subset(self, samples: IntArray | None = None, kernels: IntArray | None = None) -> Self:
        part = object.__new__(type(self))
        n_kernels = self.n_kernels if kernels is None else len(kernels)
        pieces = [part for piece in self.pieces for part in _parts(piece, samples, kernels, self.n_kernels)]
        part._set(self.cluster, pieces, self.n_samples if samples is None else len(samples), n_kernels)
        part.streams, part.most_combined, part.engines = self.streams, self.most_combined, []
        part.scales = self.scales if kernels is None else self.scales[np.asarray(kernels)]
        return part

    # -- questions to the workers -------------------------------------------------------------

    def _submit(self, made: Made, method: str, *args: Any) -> Any:
        return self.cluster.submit(ask, made.future, method, *args, near=made.worker)

    @property
    def _needs(self) -> list[Sent]:
        """What the shares are made from, one item for every worker."""
        return list({id(piece.made.root): piece.made.root for piece in self.pieces}.values())

    def _answers(self, asked: Callable[[], list[Any]]) -> list[FloatArray]:
        """Answers to `ask`; what they cost is added to `n_passes`."""
        found = self.cluster.answers(asked, self._needs)
        self.n_passes += sum(cost for _, cost in found) / self.n_kernels
        return [values for values, _ in found]

    def _some(
        self, method: str, alpha: FloatArray, kernels: IntArray | None, *args: Any
    ) -> Iterator[tuple[IntArray, Any]]:
        """Which of some kernels, or of all, each share has, and what it answers for them."""
        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        live = [(piece, np.flatnonzero(np.isin(piece.kernels, chosen))) for piece in self.pieces]
        live = [(piece, own) for piece, own in live if len(own)]

        def asked() -> list[Any]:
            sent = [self.cluster.argument(value) for value in (alpha, *args)]
            return [self._submit(piece.made, method, sent[0], own, *sent[1:]) for piece, own in live]

        for (piece, own), found in zip(live, self._answers(asked), strict=True):
            yield piece.kernels[own], found

    def _all(self, method: str, argument: FloatArray) -> list[FloatArray]:
        """The answer of every share."""

        def asked() -> list[Any]:
            sent = self.cluster.argument(argument)
            return [self._submit(piece.made, method, sent) for piece in self.pieces]

        return self._answers(asked)

    def _total(self, method: str, weights: FloatArray, *args: Any) -> FloatArray | None:
        """The sum of the answers of the shares with a weight that is not zero; None if there is none."""
        live = [(made, weights[..., own]) for made, own in self.pieces if weights[..., own].any()]

        def asked() -> list[Any]:
            sent = [self.cluster.argument(value) for value in args]
            return [self.cluster.tree(add, [self._submit(made, method, own, *sent) for made, own in live])]

        return self._answers(asked)[0] if live else None


def _parts(piece: Piece, samples: IntArray | None, kernels: IntArray | None, n_kernels: int) -> list[Piece]:
    """The part of a share on some samples and kernels; nothing if it has none of these kernels."""
    taken = None if samples is None else np.asarray(samples)
    if kernels is None:
        return [Piece(Made(piece.made, take_part, taken, None), piece.kernels)]
    where = np.full(n_kernels, -1)
    where[piece.kernels] = np.arange(len(piece.kernels))
    own = where[np.asarray(kernels)]
    inside = np.flatnonzero(own >= 0)
    return [Piece(Made(piece.made, take_part, taken, own[inside]), inside)] if len(inside) else []
