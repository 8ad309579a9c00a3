"""Names in messages, values as JSON has them, and the versions of what computes; imports nothing heavy."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from typing import Any

from ._version import __version__

PACKAGES = (
    "numpy", "scipy", "scikit-learn", "pandas", "numba", "joblib", "threadpoolctl", "typer", "rich",
)  # fmt: skip


def listed(items: Iterable[str], most: int = 5) -> str:
    """Parts of a message, the first few of many.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed("abcdefg", most=2)
    ('a, b and c', 'a, b and 5 more')
    """
    shown = list(items)
    if len(shown) > most:
        shown = [*shown[:most], f"{len(shown) - most} more"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def quoted(names: Iterable[Any], most: int = 12) -> str:
    """Names in quotation marks, the first few of many.

    Examples
    --------
    >>> quoted(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    return listed(map(repr, names), most)


def counted(amount: int, noun: str) -> str:
    """A count and its noun.

    Examples
    --------
    >>> counted(1, "cell"), counted(2, "cell")
    ('1 cell', '2 cells')
    """
    return f"{amount} {noun}{'' if amount == 1 else 's'}"


def row_list(mask: Iterable[Any], most: int = 5) -> str:
    """Rows where `mask` holds, counted from 1, for a message.

    Examples
    --------
    >>> row_list([True, False, True])
    'rows 1, 3'
    """
    rows = [k for k, there in enumerate(mask, start=1) if there]
    shown = ", ".join(map(str, rows[:most])) + (", ..." if len(rows) > most else "")
    return f"row{'s' if len(rows) > 1 else ''} {shown}"


def plain(value: Any) -> Any:
    """`value` in the types of JSON; numbers that are not finite become None.

    Examples
    --------
    >>> plain({"a": (float("inf"), 2), "b": range(2)})
    {'a': [None, 2], 'b': [0, 1]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | range):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if isinstance(value, str | int | bool | type(None)) else str(value)


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Versions of kernelweave, of Python and of those packages that are installed, and the system."""
    found = {"kernelweave": __version__, "Python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {**found, "system": f"{platform.system()} {platform.machine()}"}
