"""Spectrum string kernel."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from scipy import sparse

from .base import positive_integer
from .columns import Columns
from .strings import StringKernel


class Spectrum(StringKernel):
    """Spectrum kernel: the k-mers two strings share, counted with multiplicity.

    k(x, z) = sum_u count_u(x) count_u(z) over all strings u of length k. Strings shorter than k
    have no k-mers, and the kernel is 0 on them.

    Parameters
    ----------
    k : int, default=3
        Length of the k-mers.
    columns : int, str, slice, list, mask or callable, optional
        The one column of strings the kernel sees; needed when the data have several columns.

    References
    ----------
    Leslie, Eskin and Noble, The spectrum kernel: a string kernel for SVM protein
    classification, PSB 2002.

    Examples
    --------
    >>> Spectrum(k=2)(["banana", "bandana"])
    array([[9., 7.],
           [7., 8.]])
    """

    name = "spectrum"

    def __init__(self, k: int = 3, columns: Columns = None) -> None:
        self.k = k
        self.columns = columns

    def _fit(self, X: Any, sample_weight: np.ndarray | None) -> None:
        positive_integer(self.k, "k")

    def _compute(self, X: Any, Z: Any) -> np.ndarray:
        vocabulary: dict[str, int] = {}
        A = self._counts(X, vocabulary)
        B = A if Z is X else self._counts(Z, vocabulary)
        A.resize(A.shape[0], B.shape[1])
        return (A @ B.T).toarray()

    def _diag(self, X: Any) -> np.ndarray:
        return np.array([sum(c * c for c in self._count(string).values()) for string in X], dtype=np.float64)

    def _count(self, string: str) -> Counter[str]:
        return Counter(string[start : start + self.k] for start in range(len(string) - self.k + 1))

    def _counts(self, strings: np.ndarray, vocabulary: dict[str, int]) -> sparse.csr_matrix:
        """Matrix of k-mer counts; `vocabulary`, k-mer to column, grows with the k-mers met."""
        counts = [self._count(string) for string in strings]
        indptr = np.cumsum([0, *map(len, counts)])
        indices = [vocabulary.setdefault(kmer, len(vocabulary)) for count in counts for kmer in count]
        data = np.array([c for count in counts for c in count.values()], dtype=np.float64)
        return sparse.csr_matrix((data, indices, indptr), shape=(len(strings), max(1, len(vocabulary))))
