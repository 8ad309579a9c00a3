"""Which kernels share what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._typing import IntArray
from ..kernels import RBF, Kernel, Linear, Polynomial
from ..kernels.base import as_numeric
from ..kernels.columns import as_table, take_columns
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
    >>> X = np.array([[0.0], [1.0]])
    >>> parts, members = share([kernel.fit(X) for kernel in (RBF(1.0), Linear(), RBF(2.0))], X)
    >>> [type(part).__name__ for part in parts], members
    (['SharedDistances', 'SharedProducts'], [array([0, 2]), array([1])])
    """
    table = as_table(X)
    groups: dict[Any, list[int]] = {}
    for m, key in enumerate(share_keys(kernels)):
        groups.setdefault(key, []).append(m)
    parts = [_build(key[0], [kernels[m] for m in group], table) for key, group in groups.items()]
    return parts, [np.array(group) for group in groups.values()]


def share_keys(kernels: Sequence[Kernel]) -> list[Any]:
    """What tells kernels with different bases apart: the kind of base, and the columns."""
    return [_key(kernel, m) for m, kernel in enumerate(kernels)]


def _key(kernel: Kernel, m: int) -> Any:
    # the class itself: a subclass may compute something else
    base = {RBF: "distances", Linear: "products", Polynomial: "products"}.get(type(kernel))
    if base is None:
        return ("none", m)
    return (base, None if kernel.columns_ is None else tuple(kernel.columns_))


def _build(base: str, kernels: list[Any], X: Any) -> Shared:
    if base == "none":
        return SingleKernel(kernels[0], X)
    values = as_numeric(take_columns(X, kernels[0].columns_))
    if base == "distances":
        return SharedDistances(values, np.array([kernel.gamma_ for kernel in kernels]))
    return SharedProducts(values, [_term(kernel) for kernel in kernels])


def _term(kernel: Linear | Polynomial) -> tuple[float, float, int]:
    """(gamma, coef0, degree) of a kernel of inner products."""
    if isinstance(kernel, Linear):
        return (1.0, 0.0, 1)
    return (float(kernel.gamma), float(kernel.coef0), int(kernel.degree))
