"""Which worker gets which kernels."""

from __future__ import annotations

import gc
from typing import NamedTuple

import numpy as np

from ..._cluster import Cluster, Made, Sent
from ..._typing import IntArray
from ..blocks import Blocks
from ..memory import show_bytes
from ..pairs import Given
from ..shared import Shared
from ..stack import KernelStack
from .share import Plan, make_share


class Piece(NamedTuple):
    """A share on a worker, and which of all kernels it holds."""

    made: Made
    kernels: IntArray


def spread(cluster: Cluster, blocks: Blocks, plan: Plan) -> list[Piece]:
    """Kernels over the threads of all workers; the data of a worker's kernels are sent to it once."""
    gc.collect()  # kernels of an earlier fit that nobody uses any more would still fill the workers
    places = [worker for worker, threads in cluster.threads().items() for _ in range(threads)]
    groups = deal(blocks, min(len(places), blocks.n_kernels))
    own: dict[str, list[IntArray]] = {}
    for worker, group in zip(_evenly(places), groups, strict=False):
        own.setdefault(worker, []).append(group)
    _check_given(cluster, blocks, own)
    return [piece for worker, parts in own.items() for piece in _pieces(cluster, blocks, plan, worker, parts)]


def _evenly(places: list[str]) -> list[str]:
    """A thread of every worker first, then a second one: few kernels are spread over all workers."""
    counts: dict[str, int] = {}
    turns = []
    for worker in places:
        counts[worker] = counts.get(worker, -1) + 1
        turns.append(counts[worker])
    return [places[k] for k in np.argsort(turns, kind="stable")]


def _pieces(cluster: Cluster, blocks: Blocks, plan: Plan, worker: str, groups: list[IntArray]) -> list[Piece]:
    """Shares of one worker, all made of what it is sent."""
    kernels = np.concatenate(groups)
    own = only(blocks.take(kernels=kernels))
    settings = Plan(
        plan.normalize,
        plan.sample_weight,
        None if plan.scales is None else plan.scales[kernels],
        plan.combined,
        None if plan.limit is None else plan.limit // len(groups),
        len(groups),
    )
    sent = Sent(cluster, own, worker, load=float(len(kernels)))
    starts = np.cumsum([0, *map(len, groups)])
    return [
        Piece(Made(sent, make_share, np.arange(start, start + len(group)), settings), group)
        for start, group in zip(starts, groups, strict=False)
    ]


def only(blocks: Blocks) -> Blocks:
    """The same kernels, without what others in the same container would bring along."""
    return blocks.with_parts([_only_part(part) for part in blocks.parts])


def _only_part(part: Shared) -> Shared:
    if not isinstance(part.pairs, Given):
        return part
    return Shared(Given(KernelStack([part.pairs.stack.matrix(part.pairs.m)]), 0), part.kernels)


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
                f"a worker would be sent {show_bytes(needed)} of precomputed matrices and may take "
                f"{show_bytes(limit)} in all: start more workers, or pass kernels instead of matrices."
            )
