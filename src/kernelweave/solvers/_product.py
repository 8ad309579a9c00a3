"""Products with one Gram matrix: without a second copy of it, or about its means."""

from __future__ import annotations

import numpy as np
from sklearn.utils import gen_batches

from .._typing import FloatArray

#: entries of K converted at a time: 32 MB in double precision
BLOCK_ENTRIES = 2**22


def product(K: FloatArray, a: FloatArray) -> FloatArray:
    """K a in the precision of a; a K of lower precision is converted a block of rows at a time."""
    if K.dtype == a.dtype:
        return K @ a
    step = max(1, BLOCK_ENTRIES // max(K.shape[1], 1))
    parts = [K[rows].astype(a.dtype) @ a for rows in gen_batches(len(K), step)]
    return np.concatenate(parts)


def centred(K: FloatArray) -> tuple[FloatArray, FloatArray]:
    """K - u 1' - 1 u' + m and u, with u the means of the columns of K and m that of u.

    Under sum(a) = 0 both have the same a' K a, and products that differ by a constant, which an intercept
    takes. Far from the origin, entries about their means round by less.

    Examples
    --------
    >>> centred(np.array([[3.0, 1.0], [1.0, 3.0]]))[0]
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    means = np.asarray(K.mean(axis=0, dtype=np.float64))
    about = K - np.add.outer(means, means)
    about += means.mean()
    return about, means


def uncentred(products: FloatArray, means: FloatArray, a: FloatArray) -> FloatArray:
    """K a from the product of the centred K, for a of shape (n, c)."""
    total = a.sum(axis=0)
    return np.asarray(products + np.multiply.outer(means, total) + means @ a - means.mean() * total)
