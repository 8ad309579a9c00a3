"""What a worker does: hold some of the kernels, and answer questions about them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._typing import FloatArray, IntArray
from ...kernels import Normalization
from ..base import Gram
from ..blocked import BlockedGram
from ..blocks import Blocks, normalised
from ..cached import CachedGram
from ..choice import SHARE, Needs, Task, free_memory, show_bytes
from ..dense import DenseGram
from ..packed import PackedGram, triangle_size
from ..shared import Given

#: share of a worker's memory that its kernels may fill (beyond it, Dask writes what it holds to disk), and
#: share that may be in use where nothing is kept (beyond it, Dask pauses the worker)
FILLED, AT_WORK = 0.55, 0.75

#: from this many kernels computed together on, no engine that keeps them is faster
LIGHT = 2000

_choosing = threading.Lock()
_promised: dict[int, int] = {}  # bytes of engines that are being built, by number of the thread


@dataclass(frozen=True)
class Recipe:
    """How the kernels become Gram matrices.

    Attributes
    ----------
    normalize : str or None
    sample_weight : ndarray of shape (n,) or None
    scales : ndarray of shape (M,), optional
        Factors of kernels that are normalised already.
    combined : bool or int
        Samples on which the solver asks for the weighted sum of the kernels; see `choice.Task`.
    limit : int or None
        Bytes that a share may take; the memory of its worker is a bound as well.
    crowd : int
        Shares on one worker.
    """

    normalize: Any = None
    sample_weight: FloatArray | None = None
    scales: FloatArray | None = None
    combined: bool | int = True
    limit: int | None = None
    crowd: int = 1


class Share:
    """Some of the kernels on a worker: how to compute them, and the engine that does.

    Only how to compute the kernels travels or is written to disk (a worker that retires hands its data on);
    the engine is built again where this arrives.

    Parameters
    ----------
    blocks : Blocks
        Normalised except for their scale.
    scales : ndarray of shape (M,)
    recipe : Recipe
    rules : list of Normalization
        The normalisations, if they were fitted here.
    gram : Gram, optional
        The engine, if there is one.
    """

    def __init__(
        self,
        blocks: Blocks,
        scales: FloatArray,
        recipe: Recipe,
        rules: list[Normalization],
        gram: Gram | None = None,
    ) -> None:
        self.blocks, self.scales, self.recipe, self.rules = blocks, scales, recipe, rules
        self._gram = gram
        self._lock = threading.Lock()

    @property
    def gram(self) -> Gram:
        """The engine, built when it is first asked for, within the memory of the worker."""
        with self._lock:
            if self._gram is None:
                self._gram = build(self.blocks, self.scales, self.recipe)
            return self._gram

    def subset(self, samples: IntArray | None, kernels: IntArray | None) -> Share:
        """The same on some samples, or some of the kernels."""
        scales = self.scales if kernels is None else self.scales[kernels]
        part = self.blocks.take(samples, kernels)
        return Share(part, scales, self.recipe, [], self.gram.subset(samples, kernels))

    def __reduce__(self) -> tuple[Any, ...]:
        return Share, (self.blocks, self.scales, self.recipe, self.rules)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + (0 if self._gram is None else self._gram.nbytes)


# -- tasks ------------------------------------------------------------------------------------


def make_share(blocks: Blocks, kernels: IntArray, recipe: Recipe) -> Share:
    """Some of the kernels that a worker was sent, normalised, and their engine."""
    raw = blocks if len(kernels) == blocks.n_kernels else blocks.take(kernels=kernels)
    if recipe.scales is not None:
        share = Share(raw, recipe.scales[kernels], recipe, [])
    else:
        ready, rules = normalised(raw, recipe.normalize, recipe.sample_weight)
        share = Share(ready, np.array([rule.scale_ for rule in rules]), recipe, rules)
    _ = share.gram
    return share


def take_part(share: Share, samples: IntArray | None, kernels: IntArray | None) -> Share:
    """`Share.subset`, as a task."""
    return share.subset(samples, kernels)


@dataclass(frozen=True)
class Facts:
    """What the client has to know about a share: engine, normalisations and, if it streams, its memory."""

    engine: str
    streams: bool
    most_combined: int | None
    rules: list[Normalization]
    scales: FloatArray


def facts_of(share: Share) -> Facts:
    """`Facts` of a share, as a task."""
    gram = share.gram
    return Facts(gram.name, gram.streams, gram.most_combined, share.rules, share.scales)


def ask(share: Share, method: str, *args: Any) -> tuple[FloatArray, float]:
    """Call a method of the engine with weights as first argument; the answer, and the matrices it read."""
    gram = share.gram
    before = gram.n_passes
    if method == "combine_each":
        found = np.array([lower_of(K) for K in gram.combine_each(*args)])
    elif method == "dot_each":
        found = np.concatenate(gram.dot_each(*args))
    elif method == "inner":
        found = gram.inner(square_of(args[0], gram.n_samples))
    elif method == "rows":
        found = gram.rows(args[1], args[0])
    else:
        found = getattr(gram, method)(*args)
    return found, (gram.n_passes - before) * gram.n_kernels


def add(left: tuple[FloatArray, float], right: tuple[FloatArray, float]) -> tuple[FloatArray, float]:
    """The sum of two answers; neither is changed, since either may be asked for again."""
    return left[0] + right[0], left[1] + right[1]


# -- triangles --------------------------------------------------------------------------------


def lower_of(K: FloatArray) -> FloatArray:
    """Lower triangle of a matrix, row after row: half of the bytes to be sent.

    Examples
    --------
    >>> lower_of(np.array([[1.0, 2.0], [2.0, 3.0]]))
    array([1., 2., 3.])
    """
    from .._matrix_loops import store

    out = np.empty(triangle_size(len(K)))
    store(np.ascontiguousarray(K), out, 0, 0)
    return out


def square_of(lower: FloatArray, n: int) -> FloatArray:
    """The symmetric matrix of a lower triangle.

    Examples
    --------
    >>> square_of(np.array([1.0, 2.0, 3.0]), 2)
    array([[1., 2.],
           [2., 3.]])
    """
    from .._workers import mirror_lower

    out = np.empty((n, n))
    for i in range(n):
        start = i * (i + 1) // 2
        out[i, : i + 1] = lower[start : start + i + 1]
    mirror_lower(out)
    return out


# -- which engine -----------------------------------------------------------------------------


def build(blocks: Blocks, scales: FloatArray, recipe: Recipe) -> Gram:
    """The fastest engine in double precision that the memory of this worker allows."""
    if _as_given(blocks):
        return DenseGram([pairs.stack.matrix(pairs.m) for pairs in _ordered(blocks)], scales)
    engine, task, needs = _promise(blocks, recipe)
    try:
        return engine.of_blocks(blocks, scales, task, needs)
    finally:
        _promised.pop(threading.get_ident(), None)


def _promise(blocks: Blocks, recipe: Recipe) -> tuple[type[Gram], Task, Needs]:
    """An engine that fits beside those that other threads are about to build."""
    n_bases = sum(part.cacheable for part in blocks.parts)
    task = Task(blocks.n_kernels, n_bases, blocks.n_samples, combined=recipe.combined, single=False)
    light = blocks.n_kernels >= LIGHT and all(part.batched for part in blocks.parts)
    with _choosing:
        # where computing is as fast as reading, or nothing else fits, nothing is kept
        for share, idle in ((FILLED, light), (AT_WORK, True)):
            task = replace(task, limit=_room(recipe, share), light=idle)
            # not the dense one: it takes twice as much memory as the packed one and reads as many entries
            asked = [(engine, engine.needs(task)) for engine in (PackedGram, CachedGram, BlockedGram)]
            for engine, needs in asked:
                if needs.bytes is not None and task.fits(needs.bytes):
                    _promised[threading.get_ident()] = needs.bytes
                    return engine, task, needs
    raise MemoryError(
        f"{task} on one worker need more than the {show_bytes(task.limit or 0)} of memory that it has left, "
        "even computed block by block: start workers with more memory, raise memory_limit, or use fewer "
        "samples."
    )


def _room(recipe: Recipe, share: float) -> int | None:
    """Bytes that an engine may take from what is left of a share of its worker's memory."""
    limit, used = worker_memory()
    if limit is None:
        free = free_memory()
        bounds = [] if free is None else [int(SHARE * free) // recipe.crowd]
    else:
        left = int(share * limit) - used
        bounds = [left - sum(_promised.values()), int(share * limit) // recipe.crowd]
    bounds += [] if recipe.limit is None else [recipe.limit]
    return max(0, min(bounds)) if bounds else None


def worker_memory() -> tuple[int | None, int]:
    """Bytes that this worker may take (None: any number), and bytes that its process takes now."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # not a worker
        return None, 0
    return worker.memory_manager.memory_limit or None, int(worker.monitor.get_process_memory())


def _as_given(blocks: Blocks) -> bool:
    """Whether the kernels are whole matrices in double precision that need no change but a factor."""
    plain = blocks.roots is None and blocks.means is None
    return plain and all(
        isinstance(part.pairs, Given) and part.pairs.stack.whole and part.dtype == np.float64
        for part in blocks.parts
    )


def _ordered(blocks: Blocks) -> list[Any]:
    """The matrix of every kernel, in the order of the kernels."""
    found: list[Any] = [None] * blocks.n_kernels
    for part, members in zip(blocks.parts, blocks.members, strict=True):
        for m in members:
            found[m] = part.pairs
    return found
