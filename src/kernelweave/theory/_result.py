"""What every function here returns: a value, and the assumptions it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: how an assumption that holds, fails, or cannot be checked is marked
MARKS = {True: "holds", False: "FAILS", None: "unchecked"}


@dataclass(frozen=True)
class Assumption:
    """Something a statement needs.

    Attributes
    ----------
    name : str
    holds : bool or None
        Whether the data satisfy it; None if the data cannot tell.
    measured : str
        What was looked at, with numbers.

    Examples
    --------
    >>> Assumption("noiseless targets", True, "residual 1e-12")
    [holds] noiseless targets: residual 1e-12
    """

    name: str
    holds: bool | None
    measured: str

    def __repr__(self) -> str:
        return f"[{MARKS[self.holds]}] {self.name}: {self.measured}"


@dataclass(frozen=True, repr=False)
class Result:
    """A value with what it means, what it was computed from, and what it assumes.

    Attributes
    ----------
    value : float or ndarray
    statement : str
        What the value is, in words.
    assumptions : tuple of Assumption
    parts : dict
        Quantities the value was computed from.

    Examples
    --------
    >>> Result(0.25, "an upper bound", (Assumption("bounded kernel", True, "k(x, x) <= 1"),))
    0.25: an upper bound
      [holds] bounded kernel: k(x, x) <= 1
    """

    value: Any
    statement: str
    assumptions: tuple[Assumption, ...] = ()
    parts: dict[str, Any] = field(default_factory=dict)

    @property
    def holds(self) -> bool | None:
        """Whether every assumption holds; None if none fails and some cannot be checked."""
        return all_hold(self.assumptions)

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        value = f"array of shape {self.value.shape}" if np.ndim(self.value) else f"{self.value:.4g}"
        return with_assumptions(f"{value}: {self.statement}", self.assumptions)


def all_hold(assumptions: Iterable[Assumption]) -> bool | None:
    """True if all hold, False if one fails, None otherwise."""
    found = {assumption.holds for assumption in assumptions}
    return False if False in found else None if None in found else True


def with_assumptions(head: str, assumptions: Iterable[Assumption]) -> str:
    """A headline and one indented line per assumption."""
    return "\n".join([head, *(f"  {assumption!r}" for assumption in assumptions)])
