"""BLAS threads: none where matrices are too small to share."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

SMALL_MATRIX = 1000  # below, starting and joining threads costs more than they save


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def blas_threads_for(n_samples: int) -> AbstractContextManager[Any]:
    """One BLAS thread for matrices of a small fit; for large ones whatever the user has set.

    Examples
    --------
    >>> with blas_threads_for(100):
    ...     pass
    """
    return _controller().limit(limits=1, user_api="blas") if n_samples <= SMALL_MATRIX else nullcontext()
