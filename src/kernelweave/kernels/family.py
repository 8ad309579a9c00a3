"""Families of kernels: dictionaries that are written down once and expanded on the data's columns."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from .base import Kernel
from .columns import Columns, as_table, column_names, numeric_positions, resolve_columns
from .compose import common_accepts
from .convert import as_kernel
from .nested import NestedKernels

Named = list[tuple[str, Kernel]]


class Family(NestedKernels):
    """Base class of families: parameters, and ``expand(X)``, which names and builds the kernels.

    Estimators expand families at ``fit``. A family reads the columns of `X` (and task labels), never
    its values: bandwidths come from fitting the kernels, where sample weights count.
    A family may stand alone, be an element of a list of kernels, or be the `kernel` of another family.
    """

    _nested = ("kernel",)

    @abstractmethod
    def expand(self, X: Any) -> Named:
        """The names and kernels of the family on the columns of `X`."""


def members(kernel: Any, X: Any, default: Kernel) -> Named:
    """The kernels of `kernel`: None (`default`), one kernel, a list of them or a family."""
    if kernel is None:
        return [(default.label, default)]
    if isinstance(kernel, Family):
        return kernel.expand(X)
    if isinstance(kernel, list | tuple):
        if len(kernel) == 0:
            raise ValueError("kernel is an empty list: give at least one kernel.")
        return [pair for element in kernel for pair in members(element, X, default)]
    resolved = as_kernel(kernel, "kernel")
    return [(resolved.label, resolved)]


def on_columns(name: str, kernels: Named, columns: Columns) -> Named:
    """Every kernel on `columns`: under `name` if there is one, under "name: label" if several."""
    moved = [(label, kernel.with_columns(columns)) for label, kernel in kernels]
    return [(name if len(moved) == 1 else f"{name}: {label}", kernel) for label, kernel in moved]


def positions(columns: Columns, X: Any, kernels: Named) -> np.ndarray:
    """The columns a family spreads over: `columns`, or by default those its kernels can take."""
    X = as_table(X)
    chosen = resolve_columns(columns, X)
    if chosen is not None:
        return chosen
    if common_accepts([kernel for _, kernel in kernels]) == "numeric":
        return require_columns(numeric_positions(X))
    return np.arange(X.shape[1])


def require_columns(chosen: np.ndarray) -> np.ndarray:
    """`chosen`, or an error when it is empty."""
    if chosen.size == 0:
        raise ValueError(
            "X has no numeric columns: encode them, or give kernels for them, such as Spectrum()."
        )
    return chosen


def feature_name(X: Any, position: int) -> str:
    """Name of a column: its own in a data frame, ``x3`` in an array."""
    names = column_names(X)
    return f"x{position}" if names is None else names[position]
