"""Gram matrices in a file."""

from __future__ import annotations

import tempfile

import numpy as np

from kernelweave.gram import Gram


class MappedGram(Gram):
    """M matrices in one temporary file, of which one is in memory at a time.

    Examples
    --------
    >>> MappedGram([np.eye(2), np.ones((2, 2))]).quad(np.array([1.0, 1.0]))
    array([2., 4.])
    """

    name = "mapped"

    def __init__(self, matrices, scales=None) -> None:
        self.n_kernels, self.n_samples, self.n_passes = len(matrices), len(matrices[0]), 0.0
        self.scales = np.ones(self.n_kernels) if scales is None else np.asarray(scales, dtype=float)
        shape = (self.n_kernels, self.n_samples, self.n_samples)
        with tempfile.TemporaryFile() as file:  # the map outlives the file's name
            self.stored = np.memmap(file, dtype=np.float64, mode="w+", shape=shape)
        for m, K in enumerate(matrices):
            self.stored[m] = K

    def _live(self, weights, share=1.0):
        """Factor and matrix of the kernels with weight; `share` of each is going to be read."""
        for m in np.flatnonzero(weights * self.scales):
            self.n_passes += share / self.n_kernels
            yield weights[m] * self.scales[m], self.stored[m]

    def combine(self, weights):
        return sum((d * K for d, K in self._live(weights)), np.zeros((self.n_samples, self.n_samples)))

    def dot(self, weights, alpha, rows=None):
        rows = np.arange(self.n_samples) if rows is None else np.asarray(rows, dtype=int)
        start = np.zeros((len(rows), *alpha.shape[1:]))
        return sum((d * (K[rows] @ alpha) for d, K in self._live(weights, len(rows) / self.n_samples)), start)

    def quad(self, alpha, kernels=None):
        kernels = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        alpha = alpha.reshape(self.n_samples, -1)
        support = np.flatnonzero(alpha.any(axis=1))
        self.n_passes += len(kernels) / self.n_kernels * (len(support) / self.n_samples) ** 2
        parts = (self.stored[m][np.ix_(support, support)] for m in kernels)
        return self.scales[kernels] * [float((alpha[support] * (K @ alpha[support])).sum()) for K in parts]

    def inner(self, A):
        return np.array([float((d * K * A).sum()) for d, K in self._live(np.ones(self.n_kernels))])

    def rows(self, indices, weights):
        live = self._live(weights, len(indices) / self.n_samples)
        return sum((d * K[indices] for d, K in live), np.zeros((len(indices), self.n_samples)))

    def diag(self, weights):
        return sum((d * K.diagonal() for d, K in self._live(weights, 0.0)), np.zeros(self.n_samples))

    def subset(self, samples=None, kernels=None):
        kernels = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        samples = np.arange(self.n_samples) if samples is None else np.asarray(samples)
        parts = [self.stored[m][np.ix_(samples, samples)] for m in kernels]
        return type(self)(parts, self.scales[kernels])
