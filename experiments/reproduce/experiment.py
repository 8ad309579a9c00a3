"""What an experiment is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .summary import Summary

Cell = dict[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Mode:
    """How much of an experiment to run.

    Parameters
    ----------
    name : {"quick", "full"}
        A small version that takes about a minute, or the paper's sizes.
    repetitions : int, optional
        In place of the number the mode stands for.

    Examples
    --------
    >>> Mode("quick").count(quick=2, full=20), Mode("full", 7).count(quick=2, full=20)
    (2, 7)
    """

    name: str = "quick"
    repetitions: int | None = None

    def __post_init__(self) -> None:
        if self.name not in ("quick", "full"):
            raise ValueError(f"mode={self.name!r}: use 'quick' or 'full'.")
        if self.repetitions is not None and self.repetitions < 1:
            raise ValueError(f"repetitions={self.repetitions}: at least 1.")

    @property
    def full(self) -> bool:
        """Whether the paper's sizes are asked for."""
        return self.name == "full"

    def pick(self, quick: Any, full: Any) -> Any:
        """The one of two values that belongs to the mode."""
        return full if self.full else quick

    def count(self, quick: int, full: int) -> int:
        """Number of repetitions: what was asked for, or what the mode stands for."""
        return self.repetitions or self.pick(quick, full)


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper, as independent cells.

    Parameters
    ----------
    title : str
        One line for lists and pages.
    paper : str
        The paper, and which of its tables or figures.
    cells : callable
        ``cells(mode)`` -> list of dicts of plain values (str, int, float, bool): the settings of each cell.
        They are the cell's identity; seeds belong to them.
    run : callable
        ``run(**cell)`` -> one row (a dict of plain values) or several. The settings are added to each row.
    summarise : callable
        ``summarise(rows)`` -> `Summary`, from the rows of the cells that are done.
    draw : callable, optional
        ``draw(rows)`` -> a matplotlib figure.
    data : sequence of str
        Names of the data sets it needs, see `kernelweave.datasets`.
    version : str
        Part of every cell's identity: change it when results would change.
    about : str
        Paragraphs for the page; by default the docstring of the file.

    Examples
    --------
    >>> one = Experiment(
    ...     "t", "p", lambda mode: [{"seed": 0}], lambda seed: {"x": 1.0}, lambda rows: Summary()
    ... )
    >>> one.key({"seed": 0}) == one.key({"seed": 1})
    False
    """

    title: str
    paper: str
    cells: Callable[[Mode], list[Cell]]
    run: Callable[..., Row | list[Row]]
    summarise: Callable[[list[Row]], Summary]
    draw: Callable[[list[Row]], Any] | None = None
    data: Sequence[str] = ()
    version: str = "1"
    about: str = ""

    def key(self, cell: Cell) -> str:
        """What identifies a cell's results: a hash of its settings and the version of the experiment."""
        text = json.dumps([self.version, cell], sort_keys=True, allow_nan=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
