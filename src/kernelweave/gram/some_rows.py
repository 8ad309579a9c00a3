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
        Those whose rows are known, in the order of `rows`.
    rows : ndarray of shape (n_known, n)

    Examples
    --------
    >>> from kernelweave.gram import DenseGram
    >>> K = SomeRows(DenseGram([np.eye(3), np.ones((3, 3))]), np.array([2.0, 1.0]), np.array([0, 2]))
    >>> K[np.ix_([2], [1, 2])]
    array([[1., 3.]])
    >>> K.join(np.array([1]))
    >>> K.rows[-1]
    array([1., 3., 1.])
    """

    def __init__(self, gram: Gram, weights: FloatArray, samples: IntArray) -> None:
        self.gram, self.weights, self.samples = gram, weights, samples
        self.rows = gram.rows(samples, weights)
        self._place = np.full(gram.n_samples, -1)
        self._place[samples] = np.arange(len(samples))

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
        new = self.lacks(samples)
        if len(new):
            self._place[new] = len(self.samples) + np.arange(len(new))
            self.samples = np.concatenate([self.samples, new])
            self.rows = np.vstack([self.rows, self.gram.rows(new, self.weights)])

    def __getitem__(self, pairs: tuple[Any, ...]) -> FloatArray:
        """Entries at ``np.ix_(rows, columns)``; rows that are not known are computed."""
        from ._matrix_loops import take_block

        rows, columns = (np.asarray(part).ravel() for part in pairs)
        self.join(rows)
        part = np.empty((len(rows), len(columns)))
        take_block(self.rows, self._place[rows], columns, part)
        return part
