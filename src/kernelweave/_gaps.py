"""Where values are missing, in arrays of any type."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_missing(values: np.ndarray) -> np.ndarray:
    """Where an array of any type has None, NaN, NaT or pandas.NA: none of them equals itself.

    Examples
    --------
    >>> is_missing(np.array(["a", None, np.nan], dtype=object))
    array([False,  True,  True])
    """
    if values.dtype.kind in "fcmM":
        return np.asarray(np.isnat(values) if values.dtype.kind in "mM" else np.isnan(values))
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    return np.array([_is_gap(value) for value in values.ravel()], dtype=bool).reshape(values.shape)


def _is_gap(value: Any) -> bool:
    if value is None:
        return True
    try:
        return not bool(value == value)
    except (TypeError, ValueError):  # pandas.NA == pandas.NA has no truth value; an array has several
        return type(value).__name__ == "NAType"
