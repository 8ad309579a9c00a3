"""Spatial pyramid match: histograms of visual words, compared cell by cell at several resolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import Kernel, positive, positive_integer, require_dense, require_non_negative
from .bases import Intersection
from .columns import Columns


class SpatialPyramid(Kernel):
    """Spatial pyramid match kernel of images given by the words in each cell of a grid.

    At level l = 0 .. L the image is divided into 2^l x 2^l cells. With h^l_{c,w}(x) the count of word w in
    cell c,

        k(x, z) = sum_{l=0}^L a_l sum_c sum_w min(h^l_{c,w}(x), h^l_{c,w}(z))

    with a_0 = 1 / 2^L and a_l = 1 / 2^(L-l+1) for l >= 1: a match found at level l and not yet at the next
    finer one counts 1 / 2^(L-l). A histogram intersection of nonnegative numbers, so positive semidefinite
    for any weights a_l >= 0.

    A row holds the counts of the finest grid, 2^L x 2^L cells row after row, all words of a cell together:
    column (r 2^L + s) W + w for word w of W in the cell of row r and column s. Coarser cells are sums of
    these. To compare images with different numbers of words, divide every row by its sum first, as the
    paper does, or use ``normalize="spherical"``.

    Parameters
    ----------
    levels : int, default=2
        L; the number of columns has to be a multiple of 4^L. With L = 0 it is `HistogramIntersection`.
    weights : sequence of float, optional
        a_0, ..., a_L, none of them negative; those above by default.
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    References
    ----------
    Lazebnik, Schmid and Ponce, Beyond bags of features: spatial pyramid matching for recognizing natural
    scene categories, CVPR 2006.

    Examples
    --------
    One word in the upper left corner, and the same word in the lower right: they match as a whole only.

    >>> import numpy as np
    >>> SpatialPyramid(levels=1)(np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    name = "spatial_pyramid"

    def __init__(
        self, levels: int = 2, weights: Sequence[float] | None = None, columns: Columns = None
    ) -> None:
        self.levels = levels
        self.weights = weights
        self.columns = columns

    def _fit(self, X: Any, sample_weight: np.ndarray | None) -> None:
        positive_integer(self.levels, "levels", zero=True)
        self._weights()

    def _weights(self) -> list[float]:
        """a_0, ..., a_L."""
        L = int(self.levels)
        if self.weights is None:
            return [0.5**L, *(0.5 ** (L - level + 1) for level in range(1, L + 1))]
        if len(self.weights) != L + 1:
            raise ValueError(
                f"weights={self.weights!r} must have levels + 1 = {L + 1} entries, one for each level."
            )
        return [positive(float(a), "weights", zero=True) for a in self.weights]

    def _compute(self, X: Any, Z: Any) -> np.ndarray:
        A = self._histograms(X)
        return np.asarray(Intersection().between(A, A if Z is X else self._histograms(Z)))

    def _diag(self, X: Any) -> np.ndarray:
        return np.asarray(Intersection().diag(self._histograms(X)))

    def _histograms(self, X: Any) -> np.ndarray:
        """The histograms of all levels side by side, each times its weight: min(a s, a t) = a min(s, t)."""
        require_dense(X, self)
        require_non_negative(X, self)
        L, side = int(self.levels), 2 ** int(self.levels)
        if X.shape[1] % side**2:
            raise ValueError(
                f"levels={L} asks for {side} x {side} cells, and {X.shape[1]} columns are no multiple of "
                f"{side**2}: give the counts of all words in every cell, or other `levels`."
            )
        found, grid = [], X.reshape(len(X), side, side, -1)
        for level, a in enumerate(self._weights()):
            n, cells = len(X), 2**level
            sums = grid.reshape(n, cells, side // cells, cells, side // cells, -1).sum(axis=(2, 4))
            found.append(a * sums.reshape(n, -1))
        return np.hstack(found)
