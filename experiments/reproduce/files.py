"""Tables as Markdown, for the pages."""

from __future__ import annotations

from .summary import Table

GENERATED = "Written by `python experiments` from the committed rows; it is not edited by hand."


def markdown(table: Table) -> str:
    """A table in Markdown."""
    rule = ["---"] * len(table.header)
    return "\n".join(
        "| " + " | ".join(map(_safe, line)) + " |" for line in [table.header, rule, *table.lines]
    )


def _safe(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
