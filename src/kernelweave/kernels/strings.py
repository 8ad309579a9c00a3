"""What string kernels see: one array of strings."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .base import Kernel
from .columns import as_table, take_columns


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
