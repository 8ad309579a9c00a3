"""Predictions of all models of a greedy path, which share kernels and training samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..gram import Dictionary


class StagedExpansion:
    """The functions f_k(x) = sum_{m in G_k} k_m(x, .) alpha_k of several sets G_k of kernels.

    Each kernel is evaluated once for all stages asked for, in blocks of rows, and after
    `forget_unused` by training samples with a non-zero coefficient only.

    Parameters
    ----------
    dictionary : Dictionary
    sets : sequence of tuple of int
        G_k.
    alphas : ndarray of shape (n_stages, n, c)

    Examples
    --------
    >>> from kernelweave.gram import Dictionary, FeatureSource
    >>> from kernelweave.kernels import Linear
    >>> X = np.array([[1.0], [2.0]])
    >>> dictionary = Dictionary(FeatureSource([("linear", Linear())], X), None)
    >>> StagedExpansion(dictionary, [(), (0,)], np.ones((2, 2, 1)))(X, [0, 1])[:, :, 0]
    array([[0., 3.],
           [0., 6.]])
    """

    block_bytes = 1 << 26

    def __init__(self, dictionary: Dictionary, sets: Sequence[tuple[int, ...]], alphas: FloatArray) -> None:
        self.sets, self.alphas, self.source = list(sets), alphas, dictionary.source
        self.rules = {m: dictionary.normalizations[m] for kernels in sets for m in kernels}
        self.support = np.arange(alphas.shape[1])

    def forget_unused(self) -> None:
        """Drop the training samples that no model needs; the source cannot train again."""
        used = np.zeros(self.alphas.shape[1], dtype=bool)
        for m in self.rules:
            used |= self._terms(m, range(len(self.sets)))[1].any(axis=1)
        self.support = np.flatnonzero(used) if used.any() else np.arange(1)
        self.source.restrict(self.support)

    def __call__(self, X: Any, stages: Sequence[int]) -> FloatArray:
        """Values on new data, shape (n_new, len(stages), c)."""
        out = np.zeros((X.shape[0], len(stages), self.alphas.shape[2]))
        kernels = {m for k in stages for m in self.sets[k]}
        terms = {m: self._terms(m, stages) for m in sorted(kernels)}
        step = max(1, self.block_bytes // (8 * len(self.support)))
        for start in range(0, len(out), step):
            part = slice(start, min(start + step, len(out)))
            block = self.source.rows(X, part)
            for m, (columns, coef, offset) in terms.items():
                values = self.source.cross(m, block) @ coef[self.support] + offset
                if self.rules[m].needs_diag:
                    values *= np.reshape(self.rules[m].row_scale(self.source.diag(m, block)), (-1, 1))
                out[part, columns] += values.reshape(len(values), len(columns), -1)
        return out

    def _terms(self, m: int, stages: Sequence[int]) -> tuple[list[int], FloatArray, FloatArray]:
        """Where kernel m occurs among `stages`, and its coefficients and offsets there."""
        columns = [i for i, k in enumerate(stages) if m in self.sets[k]]
        alpha = self.alphas[[stages[i] for i in columns]]
        flat = np.moveaxis(alpha, 1, 0).reshape(self.alphas.shape[1], -1)
        coef, offset = self.rules[m].expand(flat)
        scale = self.rules[m].scale_
        return columns, scale * coef, scale * np.asarray(offset)
