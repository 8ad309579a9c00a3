"""Weighted degree string kernel, with shifts."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import positive_integer
from .columns import Columns
from .strings import StringKernel


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
        from ._weighted_degree_loops import gram

        A = _symbols(X)
        return gram(A, A if Z is X else _symbols(Z), *self._tables(), Z is X)

    def _diag(self, X: Any) -> np.ndarray:
        from ._weighted_degree_loops import diagonal

        return diagonal(_symbols(X), *self._tables())

    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        """sum_{d <= r} b_d for r = 0..D, and (1, c_1, ..., c_S)."""
        D = int(self.degree)
        b = 2.0 * np.arange(D, 0, -1) / (D * (D + 1))
        c = 0.5 / np.arange(1.0, self.shift + 2)
        c[0] = 1.0
        return np.concatenate([[0.0], np.cumsum(b)]), c


def _symbols(strings: np.ndarray) -> np.ndarray:
    """Character codes, one string per row, padded with 0."""
    if len(strings) == 0:
        return np.zeros((0, 1), dtype=np.uint32)
    return np.ascontiguousarray(strings.astype(np.str_))[:, None].view(np.uint32)
