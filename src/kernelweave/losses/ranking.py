"""Ranking loss: pairs of a query in the order of their targets."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from .._typing import FloatArray, IntArray
from .joint import JointLoss


class Ranking(JointLoss):
    """L(y, f) = sum w_i w_j v(1 - f_i + f_j) over the pairs of a query with y_i > y_j.

    Larger targets should have larger predictions, by at least 1. Only the order of the targets and only
    differences of f count: there is no intercept. With m = 1 - f_i + f_j, what a pair lacks,

        v(m) = 0 for m <= 0,  m^2 / 2 up to delta,  delta (m - delta / 2) beyond:

    the squared hinge for delta = inf; and as delta goes to 0, v / delta goes to the hinge max(0, m), with an
    error of delta / 2 at most, so that ``Ranking(delta)`` at C / delta is RankSVM at C. Herbrich, Graepel &
    Obermayer (2000), Joachims (2002); Varma & Babu (2009) name ranking among the losses of generalized MKL.

    Targets have shape (n,), or (n, 2) with the query of each sample (any number) in the second column:
    samples of different queries are not compared. A query of q samples takes q^2 numbers. The score of a
    regressor with this loss is its `agreement`.

    Parameters
    ----------
    delta : float, default=inf
        Positive; where v goes from square to line.

    Examples
    --------
    >>> import numpy as np
    >>> y, weight = np.array([1.0, 2.0, 3.0]), np.ones(3)
    >>> Ranking().value(y, np.array([0.0, 1.0, 0.0]), weight)  # 1 - 0 + 1 = 2 and 1 - 0 + 0 = 1 are missing
    2.5
    >>> queries = np.column_stack([y, [0, 0, 1]])  # the last sample is alone
    >>> Ranking().value(queries, np.array([0.0, 1.0, 0.0]), weight)
    0.0
    """

    name = "ranking"
    task = "ranking"
    shift_invariant = True

    def __init__(self, delta: float = np.inf) -> None:
        self.delta = delta

    def check(self) -> None:
        if not (isinstance(self.delta, Real) and self.delta > 0):
            raise ValueError(f"Ranking: delta={self.delta!r} must be a positive number, or inf.")

    def targets(self, Y: FloatArray) -> FloatArray:
        if Y.shape[1] > 2:
            raise ValueError(f"y has {Y.shape[1]} columns: Ranking takes a target, or a target and a query.")
        if len(np.unique(Y, axis=0)) == len(np.unique(Y[:, 1:], axis=0)):
            raise ValueError(
                "y has no pair that Ranking could compare, two samples of one query with different "
                "targets: pass targets that differ in the first column, and queries of several samples in "
                "the second, or no queries."
            )
        return Y if Y.shape[1] == 1 else Y[:, None]

    def value(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> float:  # type: ignore[override]
        total = 0.0
        for rows, lack in self._queries(y, f):
            slope = np.minimum(lack, self.delta)
            total += float(weight[rows] @ (slope * (lack - 0.5 * slope)) @ weight[rows])
        return total

    def gradient(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> FloatArray:  # type: ignore[override]
        found = np.zeros(len(f))
        for rows, lack in self._queries(y, f):
            slope, w = np.minimum(lack, self.delta), weight[rows]
            found[rows] = w * (slope.T @ w - slope @ w)
        return found

    def curvature(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> FloatArray:
        """H = sum of w_i w_j (e_i - e_j)(e_i - e_j)' over curved pairs, and (a - b)^2 <= 2 a^2 + 2 b^2."""
        found = np.zeros(len(f))
        for rows, curved in self._curved(y, f):
            found[rows] = 2.0 * weight[rows] * (curved @ weight[rows])
        return found

    def hessian_product(self, y: FloatArray, f: FloatArray, weight: FloatArray, v: FloatArray) -> FloatArray:
        found = np.zeros(len(f))
        for rows, curved in self._curved(y, f):
            w = weight[rows]
            found[rows] = w * (curved @ w * v[rows] - curved @ (w * v[rows]))
        return found

    def agreement(self, y: Any, f: Any, sample_weight: Any = None) -> float:
        """Share of the pairs that f has in the order of y, ties of f counting half; nan without pairs.

        What `score` of a regressor with this loss is, and a metric for scorers.

        Parameters
        ----------
        y : array-like of shape (n,) or (n, 2)
            Targets, or targets and queries.
        f : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            The pair of samples i and j counts w_i w_j times.

        Examples
        --------
        >>> Ranking().agreement([1.0, 2.0, 3.0], [0.0, 1.0, 0.5])
        0.6666666666666666
        """
        check_consistent_length(y, f, sample_weight)
        f = np.asarray(f, dtype=np.float64).ravel()
        y = np.asarray(y, dtype=np.float64).reshape(len(f), -1)
        weight = np.ones(len(f)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        right = pairs = 0.0
        for rows, higher in _orders(y if y.shape[1] > 1 else y[:, 0]):
            ahead = np.subtract.outer(f[rows], f[rows])[higher]
            count = np.outer(weight[rows], weight[rows])[higher]
            right, pairs = right + float(count @ np.heaviside(ahead, 0.5)), pairs + float(count.sum())
        return float(right / pairs) if pairs else float("nan")

    def _queries(self, y: FloatArray, f: FloatArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Rows of every query, and what its pairs lack: max(0, 1 - f_i + f_j) where y_i > y_j, else 0."""
        for rows, higher in _orders(y):
            yield rows, np.maximum(1.0 - np.subtract.outer(f[rows], f[rows]), 0.0) * higher

    def _curved(self, y: FloatArray, f: FloatArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Rows of every query, and 1.0 for its pairs (in both orders) at which v is curved."""
        for rows, lack in self._queries(y, f):
            curved = (lack > 0.0) & (lack < self.delta)
            yield rows, (curved | curved.T).astype(np.float64)


def _orders(y: FloatArray) -> Iterator[tuple[IntArray, Any]]:
    """Rows of every query, and whether y_i > y_j for its pairs."""
    query = np.zeros(len(y)) if y.ndim == 1 else y[:, 1]
    target = y if y.ndim == 1 else y[:, 0]
    for one in np.unique(query):
        rows = np.flatnonzero(query == one)
        yield rows, np.greater.outer(target[rows], target[rows])
