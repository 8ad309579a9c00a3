"""Equal arrays, products of two precisions, Cholesky factors despite rounding, threads of BLAS."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor
from sklearn.utils import gen_batches

from ._typing import FloatArray

#: what is added to the diagonal grows by this factor until a factor exists
GROWTH = 10.0

#: entries of K converted at a time: 32 MB in double precision
BLOCK_ENTRIES = 2**22


def distinct(several: Sequence[FloatArray]) -> tuple[list[FloatArray], list[int]]:
    """The distinct arrays among several, to the last bit, and which of them each array equals.

    Examples
    --------
    >>> distinct([np.ones(2), np.zeros(2), np.ones(2)])
    ([array([1., 1.]), array([0., 0.])], [0, 1, 0])
    """
    known: dict[bytes, int] = {}
    which = [known.setdefault(own.tobytes(), len(known)) for own in several]
    return [several[which.index(place)] for place in range(len(known))], which


def product(K: FloatArray, a: FloatArray) -> FloatArray:
    """K a in the precision of a; a K of lower precision is converted a block of rows at a time."""
    if K.dtype == a.dtype:
        return K @ a
    step = max(1, BLOCK_ENTRIES // max(K.shape[1], 1))
    parts = [K[rows].astype(a.dtype) @ a for rows in gen_batches(len(K), step)]
    return np.concatenate(parts)


def positive_factor(A: FloatArray, own: bool = False) -> Any:
    """`cho_factor` (lower) of A, with as much added to its diagonal as rounding has taken away.

    Rounding of the entries moves eigenvalues by up to n eps max|A|; where that makes some negative, A + t I
    is factored, with t growing from this size until that succeeds.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        Symmetric.
    own : bool, default=False
        Whether A, in row order, may become the factor: nothing is copied then.

    Examples
    --------
    >>> positive_factor(np.array([[1.0, 1.0], [1.0, 1.0]]))[0][0]
    array([1., 1.])
    """
    added, diagonal = 0.0, A.diagonal().copy()
    while True:
        try:
            # in column order, which is that of LAPACK, a symmetric matrix is the same
            return cho_factor(A.T if own else A, lower=True, overwrite_a=own, check_finite=False)
        except LinAlgError:
            if own:  # the rows up to the diagonal are as they were
                A = np.tril(A, -1)
                A += A.T
            else:
                A = A.copy()
            first = len(A) * float(np.finfo(A.dtype).eps) * float(np.abs(diagonal).max())
            added = GROWTH * added or max(first, 1e-300)
            if not np.isfinite(added):
                raise
            A.flat[:: len(A) + 1] = diagonal + added


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
