"""Weighted sums of kernels of which only some rows are known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._typing import FloatArray, IntArray
from .base import Gram


class RowsOfSum:
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
    >>> K = RowsOfSum(DenseGram([np.eye(3), np.ones((3, 3))]), np.array([2.0, 1.0]), np.array([0, 2]))
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

    @contextmanager
    def between(self, samples: IntArray) -> Iterator[FloatArray]:
        """The sum between some samples whose rows are known, in memory that is used again afterwards."""
        spare: list[FloatArray] = getattr(self.gram.engine, "spare", [])
        count = len(samples)
        try:
            room = spare.pop()
        except IndexError:  # another model may have taken the last
            room = np.empty(0)
        if len(room) < count**2:
            room = np.empty(max(count**2, len(self) ** 2 // 4))
        try:
            yield self._taken(samples, samples, room[: count**2].reshape(count, count))
        finally:
            spare.append(room)

    def __getitem__(self, pairs: tuple[Any, ...]) -> FloatArray:
        """Entries at ``np.ix_(rows, columns)``; rows that are not known are computed."""
        chosen, columns = (np.asarray(part).ravel() for part in pairs)
        self.join(chosen)
        return self._taken(chosen, columns, np.empty((len(chosen), len(columns))))

    def _taken(self, chosen: IntArray, columns: IntArray, out: FloatArray) -> FloatArray:
        """Entries of known rows, written to `out`."""
        from ._matrix_loops import take_block

        places = self._place[chosen]
        for first, rows in self._parts:
            own = np.flatnonzero((places >= first) & (places < first + len(rows)))
            if len(own) == len(chosen):
                take_block(rows, places - first, columns.astype(np.uintp), out)
            elif len(own):
                out[own] = rows[np.ix_(places[own] - first, columns)]
        return out


class RowsOnDemand(RowsOfSum):
    """sum_m d_m K_m of a few kernels in memory, whose rows are made when a machine first reads them.

    Most machines read the rows of half of the samples or fewer. Products come from the kernels, not from the
    rows. A copy, perhaps in another process, has the same rows as a `RowsOfSum`.

    Parameters
    ----------
    gram : Gram
    weights : ndarray of shape (M,)
    room : ndarray of shape (n, n)
        Where row i of the sum goes to row i.
    places, kind, factors : ndarray
        The matrices with weight, by their addresses, and their factors, as `add_lower` takes them.

    Attributes
    ----------
    maker : tuple
        What compiled functions need to make a row: which rows are made, and the matrices.

    Examples
    --------
    >>> from kernelweave.gram import DenseGram
    >>> K = DenseGram([np.eye(3), np.ones((3, 3))]).rows_on_demand(np.array([2.0, 1.0]))
    >>> K.samples
    array([], dtype=int64)
    >>> K[np.ix_([2], [1, 2])]
    array([[1., 3.]])
    >>> K.samples
    array([2])
    """

    def __init__(
        self,
        gram: Gram,
        weights: FloatArray,
        room: FloatArray,
        places: IntArray,
        kind: FloatArray,
        factors: FloatArray,
    ) -> None:
        self.gram, self.weights, self.room, self._counted = gram, weights, room, 0
        self.maker = (np.zeros(len(room), dtype=bool), places, kind, factors)

    def __reduce__(self) -> tuple[Any, ...]:  # addresses are those of this process
        return RowsOfSum, (self.gram, self.weights, self.samples)

    @property
    def samples(self) -> IntArray:  # type: ignore[override]
        """Those whose rows are made."""
        return np.flatnonzero(self.maker[0])

    def lacks(self, samples: IntArray) -> IntArray:
        return np.asarray(samples[~self.maker[0][samples]])

    def join(self, samples: IntArray) -> None:
        from ._matrix_loops import make_row

        for i in self.lacks(np.unique(samples)).tolist():
            make_row(self.room, i, self.maker)
        self._count()

    def _count(self) -> None:
        """Count the rows made since the last time, some of them perhaps by a machine."""
        made, before = int(self.maker[0].sum()), self._counted
        self._counted = made
        self.gram._count((made - before) / len(self), self.weights)

    def whole(self) -> FloatArray:
        """All rows."""
        self.join(np.arange(len(self.room)))
        return self.room

    def dot(self, alpha: FloatArray) -> FloatArray:
        self._count()
        return self.gram.dot(self.weights, alpha)

    def _taken(self, chosen: IntArray, columns: IntArray, out: FloatArray) -> FloatArray:
        from ._matrix_loops import take_block

        take_block(self.room, chosen, columns.astype(np.uintp), out)
        return out
