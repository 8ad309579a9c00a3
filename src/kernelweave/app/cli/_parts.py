"""What a model is given of a data file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Parts:
    """A training part and the rest as a model sees them, and how to do the same with new data."""

    X: Any
    X_rest: Any
    encoder: Any
    kernels: Any
    why: str
    groups: dict[str, list[int]] | None = None
    names: list[str] = field(default_factory=list)
    ident: str = "row"
