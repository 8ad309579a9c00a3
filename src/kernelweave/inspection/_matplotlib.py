"""Matplotlib, imported only when something is drawn, and how much of a large dictionary to draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray, IntArray
from ..estimators import _base

#: kernels that a plot can show legibly, and that a legend can name
MOST_SHOWN, MOST_NAMED = 60, 10


def import_pyplot(caller: str) -> Any:
    """`matplotlib.pyplot`, or an ImportError that names the extra to install.

    Parameters
    ----------
    caller : str
        What needs it, for the error message.

    Returns
    -------
    pyplot : module
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f'{caller} needs matplotlib: pip install "kernelweave[plot]".') from error
    return plt


def axes_for(display: Any, ax: Any, figsize: tuple[float, float]) -> Any:
    """`ax`, or the axes of a new figure; both become attributes of the display."""
    if ax is None:
        plt = import_pyplot(type(display).__name__)
        _, ax = plt.subplots(figsize=figsize, layout="constrained")
    display.ax_, display.figure_ = ax, ax.figure
    return ax


def shown_kernels(strength: FloatArray, max_kernels: int | str | None) -> IntArray:
    """Which kernels to draw.

    Parameters
    ----------
    strength : ndarray of shape (M,)
    max_kernels : int, "auto" or None
        A number: that many, the strongest first. "auto": all in their order, or the 60 strongest if there are
        more. None: all.

    Examples
    --------
    >>> shown_kernels(np.array([0.1, 0.3, 0.2]), 2)
    array([1, 2])
    """
    n = len(strength)
    if max_kernels is None or (max_kernels == "auto" and n <= MOST_SHOWN):
        return np.arange(n)
    most = MOST_SHOWN if max_kernels == "auto" else max_kernels
    if not isinstance(most, int | np.integer) or most < 1:
        raise ValueError(f"max_kernels={max_kernels!r} must be a positive integer, 'auto' or None.")
    return np.argsort(-strength, kind="stable")[:most]


def of_all(n_shown: int, n_kernels: int) -> str:
    """What a label says when kernels are left out."""
    return "" if n_shown == n_kernels else f" ({n_shown} of {n_kernels:,} kernels)"


def check_names(names: list[str], n_kernels: int) -> None:
    """Refuse names whose number is not that of the kernels."""
    if len(names) != n_kernels:
        raise ValueError(f"kernel_names has {len(names)} names for {n_kernels} kernels.")


def model_names(model: Any) -> list[str] | None:
    """Legend for an estimator with one row of weights per model: what each model learns."""
    return None if np.ndim(model.weights_) == 1 else [str(name) for name in _base.model_names(model)]
