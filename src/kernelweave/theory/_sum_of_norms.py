"""sup over unit vectors v of sum_i ||B_i v||: a lower and an upper bound that usually meet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._typing import FloatArray

#: steps of the ascent, and the relative gain at which it ends
ASCENT_STEPS, ASCENT_TOL = 200, 1e-12


def sum_of_norms(blocks: Sequence[FloatArray]) -> tuple[float, float]:
    """Lower and upper bound on sup_{||v||=1} sum_i ||B_i v||.

    The lower bound is the value reached by ascent from the leading singular vectors. The upper bound
    is the smaller of sum_i ||B_i||_2 and, for t_i = ||B_i v|| at the v found,

        ( (sum_i t_i) lambda_max( sum_i B_i' B_i / t_i ) )^(1/2)

    which holds for every t > 0 (Cauchy-Schwarz), and meets the lower one if v is the maximum and
    leads the matrix in brackets.

    Parameters
    ----------
    blocks : sequence of ndarray of shape (r_i, r)

    Examples
    --------
    >>> import numpy as np
    >>> low, high = sum_of_norms([np.eye(2), np.diag([1.0, 0.0])])
    >>> round(low, 6), round(high, 6)
    (2.0, 2.0)
    """
    tops = [np.linalg.svd(B, full_matrices=False)[1:] for B in (*blocks, np.vstack(blocks))]
    starts = [vectors[0] for _, vectors in tops if len(vectors)]
    if not starts:
        return 0.0, 0.0
    best = max((_ascend(blocks, v) for v in starts), key=lambda v: _norms(blocks, v).sum())
    norms = _norms(blocks, best)
    simple = sum(float(sizes.max(initial=0.0)) for sizes, _ in tops[:-1])
    return float(norms.sum()), min(simple, _weighted_bound(blocks, norms))


def _ascend(blocks: Sequence[FloatArray], v: FloatArray) -> FloatArray:
    """The gradient of the convex sum, normalised, is a point where the sum is no smaller."""
    value = float(_norms(blocks, v).sum())
    for _ in range(ASCENT_STEPS):
        norms = np.maximum(_norms(blocks, v), 1e-300)
        slope = np.sum([B.T @ (B @ v) / size for B, size in zip(blocks, norms, strict=True)], axis=0)
        length = float(np.linalg.norm(slope))
        if length == 0.0:
            return v
        v, before = slope / length, value
        value = float(_norms(blocks, v).sum())
        if value <= before * (1.0 + ASCENT_TOL):
            return v
    return v


def _norms(blocks: Sequence[FloatArray], v: FloatArray) -> FloatArray:
    return np.array([np.linalg.norm(B @ v) for B in blocks])


def _weighted_bound(blocks: Sequence[FloatArray], norms: FloatArray) -> float:
    t = norms + 1e-6 * norms.max(initial=0.0)  # any t > 0 will do
    if not t.any():
        return np.inf
    stacked = np.vstack([B / np.sqrt(size) for B, size in zip(blocks, t, strict=True)])
    return float(np.sqrt(t.sum()) * np.linalg.norm(stacked, 2))
