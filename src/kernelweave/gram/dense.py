"""All Gram matrices in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from .._typing import FloatArray, IntArray
from ..kernels import Normalization
from ._workers import map_tiles, mirror_lower
from .base import Gram
from .blocked import Unrounded
from .blocks import with_rules
from .choice import EngineChoice, Needs, Task

if TYPE_CHECKING:
    from .dictionary import Kernels

ROW_BLOCK_BYTES = 1 << 20  # rows of the sum that stay in the cache while M matrices are added
SMALL_SUPPORT = 0.12  # below this share of non-zero alpha, single entries are read instead of rows


class DenseGram(Gram):
    """M symmetric matrices held in memory, each with a scalar factor.

    Symmetry halves the traffic: sums and quadratic forms read one triangle, and quadratic forms
    only the rows of non-zero alpha.

    Parameters
    ----------
    matrices : sequence of ndarray of shape (n, n), or ndarray of shape (M, n, n)
        Not copied when their rows are contiguous.
    scales : ndarray of shape (M,), optional
        K_m = scales[m] * matrices[m]; normalisation needs no copy of the matrices.
    unrounded : Unrounded, optional
        The kernels, where the matrices are rounded from them.

    Examples
    --------
    >>> import numpy as np
    >>> gram = DenseGram([np.eye(2), np.ones((2, 2))])
    >>> gram.quad(np.array([1.0, 1.0]))
    array([2., 4.])
    """

    name = "dense"
    bounded = False

    def __init__(
        self,
        matrices: Sequence[FloatArray] | FloatArray,
        scales: FloatArray | None = None,
        unrounded: Unrounded | None = None,
    ) -> None:
        # a symmetric matrix in column order is the same matrix in row order
        self.matrices = [K.T if K.flags.f_contiguous else np.ascontiguousarray(K) for K in matrices]
        self.n_kernels = len(self.matrices)
        self.n_samples = self.matrices[0].shape[0]
        self.scales = np.ones(self.n_kernels) if scales is None else np.asarray(scales, dtype=np.float64)
        self.unrounded, self.n_passes = unrounded, 0.0

    @classmethod
    def needs(cls, task: Task) -> Needs:
        if task.careful and task.light:
            return Needs(None, "kernels are computed as fast as they could be read.")
        return Needs(task.dense, "all matrices are in memory")

    @classmethod
    def build(cls, kernels: Kernels, choice: EngineChoice) -> tuple[Gram, Sequence[Normalization], IntArray]:
        """One matrix after another, normalised where it is."""
        found: dict[int, Normalization] = {}
        matrices: dict[int, FloatArray] = {}
        for m, K in kernels.source.train_all():
            found[m] = kernels.normalised(m, K)
            matrices[m] = found[m].train(K)
        rules = [found[m] for m in range(len(found))]
        scales = np.array([rule.scale_ for rule in rules])
        live = kernels.live(scales)
        kind, unrounded = type(rules[0]), None
        single = any(K.dtype != np.float64 for K in matrices.values())
        if single and kind.train is not Normalization.train and kind.entries is not Normalization.entries:
            # a rule that changes entries wrote them in single precision
            unrounded = Unrounded(with_rules(kernels.source.blocks(), rules), kernels=live)
        gram = cls([matrices[m] for m in live], scales[live], unrounded)
        gram.centred = any(rule.entries()[1] is not None for rule in rules)
        return gram, rules, live

    @property
    def nbytes(self) -> int:
        return sum(K.nbytes for K in self.matrices)

    def combine(self, weights: FloatArray) -> FloatArray:
        from ._matrix_loops import add_lower, add_lower_eight

        n, out = self.n_samples, np.zeros((self.n_samples, self.n_samples))
        factors, matrices = self._live(weights)
        eights = range(0, len(matrices) - 7, 8)
        step = max(1, ROW_BLOCK_BYTES // (8 * max(n, 1)))

        def add(start: int) -> None:
            stop = min(start + step, n)
            for m in eights:
                add_lower_eight(out, *matrices[m : m + 8], factors[m : m + 8], start, stop)
            for m in range(8 * len(eights), len(matrices)):
                add_lower(out, matrices[m], factors[m], start, stop)

        deque(map_tiles(add, range(0, n, step)), maxlen=0)
        mirror_lower(out)
        self._count(0.5 * len(matrices))
        return out

    def square(self, samples: IntArray, weights: FloatArray) -> FloatArray:
        from ._matrix_loops import add_square

        chosen, (factors, matrices) = np.asarray(samples), self._live(weights)
        out = np.zeros((len(chosen), len(chosen)))
        for factor, K in zip(factors, matrices, strict=True):
            add_square(out, K, chosen, factor)
        mirror_lower(out)
        self._count(0.5 * len(matrices) * (len(chosen) / self.n_samples) ** 2)
        return out

    def dot(self, weights: FloatArray, alpha: FloatArray, rows: IntArray | None = None) -> FloatArray:
        from ._matrix_loops import add_product

        chosen = np.arange(self.n_samples) if rows is None else np.asarray(rows)
        columns = np.ascontiguousarray(alpha.reshape(self.n_samples, -1).T, dtype=np.float64)
        out = np.zeros((len(columns), len(chosen)))
        for factor, K in zip(*self._live(weights), strict=True):
            for column, total in zip(columns, out, strict=True):
                add_product(total, K, chosen, factor, column)
            self._count(len(chosen) / self.n_samples)
        return out.T.reshape(len(chosen), *alpha.shape[1:])

    def products(self, alpha: FloatArray, kernels: IntArray) -> FloatArray:
        from ._matrix_loops import add_rows

        support, out = np.flatnonzero(alpha), np.zeros((len(kernels), self.n_samples))
        for m, own in zip(kernels, out, strict=True):
            add_rows(own, self.matrices[m], support, self.scales[m] * alpha[support])
        self._count(len(support) / self.n_samples * len(kernels))
        return out

    def quad(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        matrices, columns = [self.matrices[m] for m in chosen], alpha.reshape(self.n_samples, -1)
        if columns.shape[1] > 1:
            return self.scales[chosen] * self._quad_columns(matrices, columns)
        return self.scales[chosen] * self._quad_vector(matrices, columns[:, 0])

    def inner(self, A: FloatArray) -> FloatArray:
        flat = np.ascontiguousarray(A).ravel()
        self._count(self.n_kernels)
        return np.asarray(self.scales * np.array([float(flat @ K.ravel()) for K in self.matrices]))

    def rows(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        out = np.zeros((len(indices), self.n_samples))
        for factor, K in zip(*self._live(weights), strict=True):
            out += factor * K[indices]
            self._count(len(indices) / self.n_samples)
        return out

    def diag(self, weights: FloatArray) -> FloatArray:
        out = np.zeros(self.n_samples)
        for factor, K in zip(*self._live(weights), strict=True):
            out += factor * K.diagonal()
        return out

    def subset(self, samples: IntArray | None = None, kernels: IntArray | None = None) -> Self:
        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        matrices = [self.matrices[m] for m in chosen]
        if samples is not None:
            matrices = self._square_parts(matrices, np.asarray(samples))
        unrounded = None if self.unrounded is None else self.unrounded.take(samples, chosen)
        return type(self)(matrices, self.scales[chosen], unrounded)

    def _square_parts(self, matrices: list[FloatArray], samples: IntArray) -> list[FloatArray]:
        from ._matrix_loops import take_square

        self._count(len(matrices) * (len(samples) / self.n_samples) ** 2)
        return list(map_tiles(lambda K: take_square(K, samples), matrices))

    def _live(self, weights: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Factors and matrices of the kernels whose factor is not zero."""
        factors = weights * self.scales
        live = np.flatnonzero(factors)
        return factors[live], [self.matrices[m] for m in live]

    def _quad_vector(self, matrices: list[FloatArray], alpha: FloatArray) -> FloatArray:
        from ._matrix_loops import quad_gather, quad_rows

        alpha = np.ascontiguousarray(alpha, dtype=np.float64)
        support = np.flatnonzero(alpha)
        share = len(support) / self.n_samples
        quad = quad_gather if share < SMALL_SUPPORT else quad_rows
        self._count(0.5 * share * len(matrices))
        return np.array(list(map_tiles(lambda K: quad(K, support, alpha), matrices)))

    def _quad_columns(self, matrices: list[FloatArray], alpha: FloatArray) -> FloatArray:
        self._count(len(matrices))
        return np.array([np.einsum("ic,ic->", alpha, K @ alpha) for K in matrices])
