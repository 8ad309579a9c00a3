"""Which kernels share what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._typing import IntArray
from ..kernels import Kernel, Linear
from ..kernels.base import as_numeric
from ..kernels.columns import as_table, take_columns
from .batch import batch_of, grouped
from .shared import Shared, SharedDistances, SharedProducts
from .single import SingleKernel


def share(kernels: Sequence[Kernel], X: Any) -> tuple[list[Shared], list[IntArray]]:
    """Fitted kernels on data, those with the same base together.

    Returns
    -------
    parts : list of Shared
    members : list of ndarray of int
        Positions in `kernels` of those of each part.

    Examples
    --------
    >>> from kernelweave.kernels import RBF
    >>> X = np.array([[0.0], [1.0]])
    >>> parts, members = share([kernel.fit(X) for kernel in (RBF(1.0), Linear(), RBF(2.0))], X)
    >>> [type(part).__name__ for part in parts], members
    (['SharedDistances', 'SharedProducts'], [array([0, 2]), array([1])])
    """
    table, batch = as_table(X), batch_of(kernels, X)
    together = np.zeros(len(kernels), dtype=bool)
    if batch is not None:
        together[batch.members] = True
    if together.all() and batch is not None:
        return [batch.part], [batch.members]
    groups = grouped(kernels, np.flatnonzero(~together))
    parts = [_build(key[0], [kernels[m] for m in group], table) for key, group in groups.items()]
    members = [np.array(group) for group in groups.values()]
    return (parts, members) if batch is None else ([*parts, batch.part], [*members, batch.members])


def _build(base: str, kernels: list[Any], X: Any) -> Shared:
    if base == "none":
        return SingleKernel(kernels[0], X)
    values = as_numeric(take_columns(X, kernels[0].columns_), kernels[0].columns_)
    if base == "distances":
        return SharedDistances(values, np.array([kernel.gamma_ for kernel in kernels]))
    return SharedProducts(values, [_term(kernel) for kernel in kernels])


def _term(kernel: Any) -> tuple[float, float, int]:
    """(gamma, coef0, degree) of a kernel of inner products."""
    if isinstance(kernel, Linear):
        return (1.0, 0.0, 1)
    return (float(kernel.gamma), float(kernel.coef0), int(kernel.degree))
