"""Where the command line writes: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console


def out() -> Console:
    """The console of results."""
    return Console(soft_wrap=False)


def err() -> Console:
    """The console of progress, notes and errors."""
    return Console(stderr=True)


def say(message: str, style: str = "") -> None:
    """One message on stderr, not wrapped, no markup in it."""
    err().print(message, style=style, markup=False, highlight=False, soft_wrap=True)


def note(message: str) -> None:
    """Something the user should know, though nothing is wrong."""
    say(message, style="yellow")


def print_json(document: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def plain(value: Any) -> Any:
    """`value` in the types of JSON; numbers that are not finite become None.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"a": np.float64(1.5), "b": (np.inf, np.int64(2))})
    {'a': 1.5, 'b': [None, 2]}
    """
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value if isinstance(value, str | int | bool | type(None)) else str(value)
