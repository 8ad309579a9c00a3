"""Matplotlib, imported only when something is drawn."""

from __future__ import annotations

from typing import Any


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
