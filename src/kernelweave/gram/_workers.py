"""Work shared by threads: tiles of a pass, rows of a compiled loop."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from .._linalg import _controller

MIN_ROWS = 32  # with fewer rows, a thread costs more than it saves
MAX_THREADS = 16  # each has tiles of its own in memory

Item = TypeVar("Item")
Result = TypeVar("Result")


#: whether this thread may use others although it is not the first: it runs while nothing else does
_here = threading.local()


def may_use_threads() -> bool:
    """Whether work may be shared out here; not inside a thread, because work is shared out there already."""
    first = threading.current_thread() is threading.main_thread()
    return first or getattr(_here, "threads", False)


@contextmanager
def using_threads(allowed: bool) -> Iterator[None]:
    """Allow this thread to use others, as the thread that waits for it may."""
    _here.threads = allowed
    try:
        yield
    finally:
        _here.threads = False


def loop_threads() -> int:
    """As many threads as BLAS may use; one where work is shared out already.

    Examples
    --------
    >>> loop_threads() >= 1
    True
    """
    if not may_use_threads():
        return 1
    libraries = [library for library in _controller().lib_controllers if library.user_api == "blas"]
    return max(1, min([MAX_THREADS, *(library.num_threads or 1 for library in libraries)]))


def map_tiles(function: Callable[[Item], Result], tiles: Sequence[Item]) -> Iterator[Result]:
    """Results of `function` on tiles, in their order, several at a time.

    BLAS has one thread meanwhile, so threads that have a tile each need not wait for one another.

    Examples
    --------
    >>> list(map_tiles(abs, [-1, 2]))
    [1, 2]
    """
    count = min(loop_threads(), len(tiles))
    if count <= 1:
        yield from map(function, tiles)
        return
    with _controller().limit(limits=1, user_api="blas"), ThreadPoolExecutor(count) as pool:
        yield from pool.map(function, tiles)


def over_rows(loop: Callable[..., None], rows: range, *args: Any) -> None:
    """Call loop(*args, start, stop) on parts of `rows` at once; no two parts may write to the same place."""
    count = max(1, min(loop_threads(), len(rows) // MIN_ROWS))
    cuts = np.linspace(rows.start, rows.stop, count + 1).astype(int).tolist()
    helpers = [threading.Thread(target=loop, args=(*args, start, stop)) for start, stop in pairwise(cuts[1:])]
    for helper in helpers:
        helper.start()
    loop(*args, *cuts[:2])
    for helper in helpers:
        helper.join()


def mirror_lower(A: Any, factor: float = 1.0) -> None:
    """Multiply the lower triangle of a square array, and copy it onto the upper one.

    Examples
    --------
    >>> A = np.array([[1.0, 0.0], [2.0, 3.0]])
    >>> mirror_lower(A, 2.0)
    >>> A
    array([[2., 4.],
           [4., 6.]])
    """
    from ._matrix_loops import MIRROR_ROWS, mirror

    def fill(start: int) -> None:
        mirror(A, start, min(start + MIRROR_ROWS, len(A)), factor)

    deque(map_tiles(fill, range(0, len(A), MIRROR_ROWS)), maxlen=0)
