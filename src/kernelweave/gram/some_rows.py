"""A weighted sum of kernels of which only some rows are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray, IntArray
from .base import Gram


class SomeRows:
    """sum_m d_m K_m on all samples, of which the rows of some are known; others join when they are needed.

    Parameters
    ----------
    gram : Gram
    weights : ndarray of shape (M,)
    samples : ndarray of int
        Those whose rows are needed.

    Attributes
    ----------
    samples : ndarray of int
        Those whose rows are known.

    Examples
    --------
    >>> from kernelweave.gram import DenseGram
    >>> K = SomeRows(DenseGram([np.eye(3), np.ones((3, 3))]), np.array([2.0, 1.0]), np.array([0, 2]))
    >>> K[np.ix_([2], [1, 2])]
    array([[1., 3.]])
    >>> K.join(np.array([1]))
    >>> K.samples
    array([0, 2, 1])
    >>> K.dot(np.array([[1.0], [0.0], [-1.0]]))
    array([[ 2.],
           [ 0.],
           [-2.]])
    """

    def __init__(self, gram: Gram, weights: FloatArray, samples: IntArray) -> None:
        self.gram, self.weights, self.samples = gram, weights, np.arange(0)
        self._parts: list[tuple[int, FloatArray]] = []  # place of the first row, and rows that came together
        self._place = np.full(gram.n_samples, -1)  # of a sample among those whose rows are known
        self.join(samples)

    def __len__(self) -> int:
        return self.gram.n_samples

    def diagonal(self) -> FloatArray:
        """The diagonal of the sum."""
        return self.gram.diag(self.weights)

    def lacks(self, samples: IntArray) -> IntArray:
        """Those of some samples whose rows are not known."""
        return np.asarray(samples[self._place[samples] < 0])

    def join(self, samples: IntArray) -> None:
        """Compute the rows of more samples, unless they are known."""
        new, known = self.lacks(samples), len(self.samples)
        if len(new):
            self._place[new] = known + np.arange(len(new))
            self.samples = np.concatenate([self.samples, new])
            self._parts.append((known, self.gram.rows(new, self.weights)))

    def dot(self, alpha: FloatArray) -> FloatArray:
        """The product with alpha (n, c), which is zero where rows are not known."""
        known, out = alpha[self.samples], np.zeros(alpha.shape)
        for first, rows in self._parts:
            out += rows.T @ known[first : first + len(rows)]
        return out

    def __getitem__(self, pairs: tuple[Any, ...]) -> FloatArray:
        """Entries at ``np.ix_(rows, columns)``; rows that are not known are computed."""
        from ._matrix_loops import take_block

        chosen, columns = (np.asarray(part).ravel() for part in pairs)
        self.join(chosen)
        found, places = np.empty((len(chosen), len(columns))), self._place[chosen]
        for first, rows in self._parts:
            own = np.flatnonzero((places >= first) & (places < first + len(rows)))
            if len(own) == len(chosen):
                take_block(rows, places - first, columns.astype(np.uintp), found)
            elif len(own):
                found[own] = rows[np.ix_(places[own] - first, columns)]
        return found
