"""Products with one Gram matrix that need no second copy of it."""

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
