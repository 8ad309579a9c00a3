"""Kernels of texts and sequences: shared substrings, and matches position by position."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from scipy import sparse

from .base import Kernel, positive_integer
from .columns import Columns, as_table, take_columns


class StringKernel(Kernel):
    """Base class of kernels on one column of strings, given to ``_compute`` as an object array."""

    accepts = "string"

    def _view(self, X: Any) -> np.ndarray:
        return as_strings(take_columns(X, self.columns_))


def text_column(X: Any) -> Any:
    """A list, array or series of text as a table of one column; everything else as it is.

    Examples
    --------
    >>> text_column(["ACGT", "AC"]).shape
    (2, 1)
    """
    listed = isinstance(X, list | tuple)
    numbers = getattr(getattr(X, "dtype", None), "kind", "O") not in "OUT"
    if not listed and (numbers or len(getattr(X, "shape", ())) != 1):
        return X
    if not any(isinstance(value, str) for value in X):
        return X
    return as_table(np.array(X, dtype=object) if listed else X)


def as_strings(X: Any) -> np.ndarray:
    """One-dimensional object array of the strings in the only column of `X`."""
    values = np.asarray([[0.0]], dtype=object) if sparse.issparse(X) else np.asarray(X, dtype=object)
    if values.ndim == 2 and values.shape[1] != 1:
        raise ValueError(
            f"a string kernel was given {values.shape[1]} columns: select one with `columns=`, "
            "and use one kernel for each column of strings."
        )
    values = values.ravel()
    wrong = [value for value in values if not isinstance(value, str)]
    if wrong:
        raise ValueError(
            f"a string kernel was given {wrong[0]!r}, not a string: select a column of strings with "
            "`columns=`, and fill missing values first."
        )
    return values


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
        result: np.ndarray = (A @ B.T).toarray()
        return result

    def _diag(self, X: Any) -> np.ndarray:
        return np.array([sum(c * c for c in self._count(string).values()) for string in X], dtype=np.float64)

    def windows(self) -> tuple[np.ndarray, np.ndarray | None]:
        return np.eye(int(self.k) + 1)[-1], None

    def _count(self, string: str) -> Counter[str]:
        return Counter(string[start : start + self.k] for start in range(len(string) - self.k + 1))

    def _counts(self, strings: np.ndarray, vocabulary: dict[str, int]) -> sparse.csr_matrix:
        """Matrix of k-mer counts; `vocabulary`, k-mer to column, grows with the k-mers met."""
        counts = [self._count(string) for string in strings]
        indptr = np.cumsum([0, *map(len, counts)])
        indices = [vocabulary.setdefault(kmer, len(vocabulary)) for count in counts for kmer in count]
        data = np.array([c for count in counts for c in count.values()], dtype=np.float64)
        return sparse.csr_matrix((data, indices, indptr), shape=(len(strings), max(1, len(vocabulary))))


class WeightedDegree(StringKernel):
    """Weighted degree kernel: substrings of length 1 to `degree` that match in place, or nearly.

    With m(d, i, j) = 1 where the substring of length d of x at i equals that of z at j, else 0,

        k(x, z) = sum_{d=1}^D b_d sum_l [ m(d, l, l) + sum_{s=1}^S c_s (m(d, l+s, l) + m(d, l, l+s)) ]

    where D = degree, S = shift, b_d = 2 (D - d + 1) / (D (D + 1)) and c_s = 1 / (2 (s + 1)). Every
    substring lies inside both strings, so strings of unequal length need no padding. It is positive
    semidefinite because 1 + sum_{s=1}^S cos(s t) / (s + 1) > 0 for all t (Rogosinski and Szego, 1928).

    Parameters
    ----------
    degree : int, default=3
        The longest substring.
    shift : int, default=0
        How far apart matching substrings may lie.
    columns : int, str, slice, list, mask or callable, optional
        The one column of strings the kernel sees; needed when the data have several columns.

    Notes
    -----
    The character with code 0 never matches. The cost of a pair is (2 S + 1) times its length,
    whatever the degree: a run of r matches ends sum_{d <= min(r, D)} b_d worth of substrings.

    References
    ----------
    Raetsch and Sonnenburg, Accurate splice site detection for Caenorhabditis elegans, 2004.
    Raetsch, Sonnenburg and Schoelkopf, RASE: recognition of alternatively spliced exons in
    C. elegans, Bioinformatics 2005 (shifts).

    Examples
    --------
    >>> WeightedDegree(degree=2)(["ACGT", "ACCT"]).round(4)
    array([[3.6667, 2.3333],
           [2.3333, 3.6667]])
    """

    name = "weighted_degree"

    def __init__(self, degree: int = 3, shift: int = 0, columns: Columns = None) -> None:
        self.degree = degree
        self.shift = shift
        self.columns = columns

    def _fit(self, X: Any, sample_weight: np.ndarray | None) -> None:
        positive_integer(self.degree, "degree")
        positive_integer(self.shift, "shift", zero=True)

    def _compute(self, X: Any, Z: Any) -> np.ndarray:
        from ._loops import gram

        A = symbols(X)
        result: np.ndarray = gram(A, A if Z is X else symbols(Z), *self._tables(), Z is X)
        return result

    def _diag(self, X: Any) -> np.ndarray:
        from ._loops import diagonal

        result: np.ndarray = diagonal(symbols(X), *self._tables())
        return result

    def windows(self) -> tuple[np.ndarray, np.ndarray | None]:
        cumulated, shifts = self._tables()
        return np.diff(cumulated, prepend=0.0), shifts

    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        """sum_{d <= r} b_d for r = 0..D, and (1, c_1, ..., c_S)."""
        D = int(self.degree)
        b = 2.0 * np.arange(D, 0, -1) / (D * (D + 1))
        c = 0.5 / np.arange(1.0, self.shift + 2)
        c[0] = 1.0
        return np.concatenate([[0.0], np.cumsum(b)]), c


def symbols(strings: np.ndarray) -> np.ndarray:
    """Character codes, one string per row, padded with 0."""
    if len(strings) == 0:
        return np.zeros((0, 1), dtype=np.uint32)
    return np.ascontiguousarray(strings.astype(np.str_))[:, None].view(np.uint32)
