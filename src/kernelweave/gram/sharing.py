"""Which kernels share what: those of one base, and Gaussian ones on many sets of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._typing import FloatArray, IntArray
from ..kernels import Kernel
from ..kernels.base import as_numeric, base_of, form_of
from ..kernels.bases import SquaredEuclidean
from ..kernels.columns import as_table, take_columns
from ..kernels.subsets import FittedSubsets
from ._workers import map_tiles
from .pairs import OwnValues, pairs_of
from .shared import Shared
from .squares import SharedSquares, pack_subsets

#: sets of columns from which on Gaussian kernels on different ones are computed together, and columns of
#: all of them up to which they are
LEAST_SUBSETS, MOST_COLUMNS = 16, 1000

#: more kernels than that on the same columns share distances rather; fewer too, when kernels times columns
#: are more than that, unless there are many kernels in all
MOST_ALIKE, MOST_SUMMED, MANY = 8, 64, 500

#: rows of new samples at a time
ROWS = 64


class Batch(NamedTuple):
    """Gaussian kernels on many sets of columns.

    Attributes
    ----------
    part : SharedSquares
    members : ndarray of int
        Which kernels they are.
    columns : ndarray of int
        Columns of the data that any of them sees.
    """

    part: SharedSquares
    members: IntArray
    columns: IntArray

    def cross_sum(self, X: Any, factors: FloatArray) -> FloatArray:
        """sum_k factors[k] K_k between new samples and those of the part."""
        values = as_numeric(take_columns(as_table(X), self.columns), self.columns)
        out = np.zeros((len(values), self.part.n_samples))

        def add(start: int) -> None:
            rows = slice(start, start + ROWS)
            self.part.add(self.part.base_to(values[rows]), factors, out[rows], lower=False)

        for _ in map_tiles(add, range(0, len(values), ROWS)):
            pass
        return out


def batch_of(kernels: Sequence[Kernel], X: Any) -> Batch | None:
    """The kernels to compute together, whatever their columns, if there are enough of them.

    Gaussian kernels on columns of a dense table; not those on columns on which there are so many
    kernels that distances are better shared.

    Examples
    --------
    >>> from kernelweave.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(5, 20))
    >>> batch_of([RBF(columns=[f]).fit(X) for f in range(20)], X).members
    array([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16,
           17, 18, 19])
    """
    table = as_table(X)
    if sparse.issparse(table):
        return None
    if isinstance(kernels, FittedSubsets):
        subsets = kernels.unfitted
        if len(subsets.columns) > MOST_COLUMNS:
            return None
        values = as_numeric(take_columns(table, subsets.columns))
        part = SharedSquares(values, subsets.bits, kernels.gammas)
        return Batch(part, np.arange(len(kernels)), subsets.columns)
    every = grouped(kernels, np.arange(len(kernels)))
    many = len(kernels) >= MANY
    groups = {key: group for key, group in every.items() if _joins(key, [kernels[m] for m in group], many)}
    columns = np.unique([column for _, own in groups for column in own])
    if len(groups) < LEAST_SUBSETS or len(columns) > MOST_COLUMNS:
        return None
    return _batch(kernels, np.sort(np.concatenate(list(groups.values()))), columns, table)


def _joins(key: Any, group: list[Kernel], many: bool) -> bool:
    """Whether kernels of one key are computed together with those on other columns."""
    if key[0] != SquaredEuclidean() or key[1] is None or len(set(key[1])) < len(key[1]):
        return False
    if not all(is_positive(kernel) for kernel in group):
        return False
    return len(group) <= MOST_ALIKE and (many or len(group) * len(key[1]) <= MOST_SUMMED)


def is_positive(kernel: Kernel) -> bool:
    """Whether a fitted kernel is exp(r b) of a distance b, r <= 0: positive semidefinite on any data."""
    base = base_of(kernel)
    form = None if base is None or not base.distance else form_of(kernel)
    return form is not None and form[0] == "exp" and len(form) == 2 and form[1] <= 0


def _batch(kernels: Sequence[Any], members: IntArray, columns: IntArray, table: Any) -> Batch:
    masks = np.zeros((len(members), len(columns)), dtype=bool)
    for mask, m in zip(masks, members, strict=True):
        mask[np.searchsorted(columns, kernels[m].base_columns)] = True
    gammas = np.array([-kernels[m].form()[1] for m in members])
    part = SharedSquares(as_numeric(take_columns(table, columns)), pack_subsets(masks), gammas)
    return Batch(part, members, columns)


def grouped(kernels: Sequence[Kernel], members: IntArray) -> dict[Any, list[int]]:
    """Some of the kernels, by their keys."""
    groups: dict[Any, list[int]] = {}
    keys = share_keys(kernels)
    for m in members.tolist():
        groups.setdefault(keys[m], []).append(m)
    return groups


def share_keys(kernels: Sequence[Kernel]) -> list[Any]:
    """What tells kernels with different bases apart: the base, and the columns it sees."""
    if isinstance(kernels, FittedSubsets):
        return [(SquaredEuclidean(), bits.tobytes()) for bits in kernels.unfitted.bits]
    return [_key(kernel, m) for m, kernel in enumerate(kernels)]


def _key(kernel: Kernel, m: int) -> Any:
    base = base_of(kernel)
    if base is None:
        return (None, m)
    return (base, None if kernel.base_columns is None else tuple(kernel.base_columns))


def share(kernels: Sequence[Kernel], X: Any) -> tuple[list[Shared], list[IntArray]]:
    """Fitted kernels on data, those with the same base together.

    Returns
    -------
    parts : list of Shared
    members : list of ndarray of int
        Positions in `kernels` of those of each part.

    Examples
    --------
    >>> from kernelweave.kernels import RBF, Linear, Polynomial
    >>> X = np.array([[0.0], [1.0]])
    >>> _, members = share([kernel.fit(X) for kernel in (RBF(1.0), Linear(), RBF(2.0), Polynomial())], X)
    >>> members
    [array([0, 2]), array([1, 3])]
    """
    table, batch = as_table(X), batch_of(kernels, X)
    together = np.zeros(len(kernels), dtype=bool)
    if batch is not None:
        together[batch.members] = True
    if together.all() and batch is not None:
        return [batch.part], [batch.members]
    groups = grouped(kernels, np.flatnonzero(~together))
    parts = [_build([kernels[m] for m in group], table) for group in groups.values()]
    members = [np.array(group) for group in groups.values()]
    return (parts, members) if batch is None else ([*parts, batch.part], [*members, batch.members])


def _build(kernels: list[Kernel], X: Any) -> Shared:
    base = base_of(kernels[0])
    if base is None:
        return Shared(OwnValues(kernels[0], X), [None])
    return Shared(pairs_of(base, kernels[0].base_view(X)), kernels)
