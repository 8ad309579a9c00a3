"""What the user says of a data file, and what a model is given of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Reading:
    """How to read a file, and what its columns are."""

    target: str = "y"
    task: str = "auto"
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    ident: str | None = None
    categorical: tuple[str, ...] = ()
    impute: str | None = None
    drop_rows: bool = False
    scale: str = "standard"
    sep: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."


@dataclass(frozen=True)
class KernelChoice:
    """How kernels are made of the columns."""

    spec: Path | None = None
    groups: str | None = None
    bands: int | None = None
    kinds: tuple[str, ...] = ()

    @property
    def given(self) -> bool:
        return any((self.spec, self.groups, self.bands, self.kinds))


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
