"""Tables as CSV files and as Markdown, for the pages."""

from __future__ import annotations

import csv
from pathlib import Path

from .summary import Table

GENERATED = "Written by `python experiments` from the results; it is not edited by hand."


def write_csv(path: Path, header: list[str], lines: list[list[str]]) -> None:
    """Header and lines of text."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *lines])


def read_csv(path: Path) -> list[list[str]]:
    """Header and lines of text."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def markdown(table: Table) -> str:
    """A table in Markdown."""
    rule = ["---"] * len(table.header)
    return "\n".join(
        "| " + " | ".join(map(_safe, line)) + " |" for line in [table.header, rule, *table.lines]
    )


def _safe(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
