"""What the sections are made of: figures with captions, tables that sort and scroll, asides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..html import Html, join, tag

#: columns beyond which a table is not printed: the figure above it is
WIDE = 18

#: a cell: text, or text and the number it is sorted by
Cell = str | Html | tuple[Any, float]


def figure(drawing: Html, caption: Any, *more: Any, scroll: str | None = None) -> Html:
    """A drawing beside its caption.

    Parameters
    ----------
    drawing : Html
    caption : str or Html
        What one sees, in a sentence or two.
    *more : Html
        Below the drawing: a legend, the rest of a long figure.
    scroll : str, optional
        For drawings of fixed width: name of the region they scroll in.
    """
    drawing = drawing if scroll is None else region(drawing, scroll)
    return tag("figure", tag("div", drawing, *more, class_="drawing"), tag("figcaption", caption))


def region(content: Html, name: str) -> Html:
    """Wide content that scrolls by itself, and can be reached by keyboard."""
    return tag("div", content, class_="scroll", role="region", tabindex="0", aria_label=name)


def table(
    key: str, caption: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]], *, text_columns: int = 1
) -> Html:
    """A table whose first column names the rows; the script of the page lets the others sort.

    Parameters
    ----------
    key, caption : str
        Id and name.
    heads : sequence of str
    rows : sequence of sequence of cells
    text_columns : int, default=1
        Columns at the left that hold text; the others hold numbers.
    """
    head = [
        tag("th", name, scope="col", class_=None if k < text_columns else "num")
        for k, name in enumerate(heads)
    ]
    body = [tag("tr", *[_cell(cell, k, text_columns) for k, cell in enumerate(row)]) for row in rows]
    content = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *head)),
        tag("tbody", *body),
        id=key,
        class_="sortable wide" if len(heads) > WIDE else "sortable",
    )
    return region(content, f"{caption}, table")


def _cell(cell: Cell, k: int, text_columns: int) -> Html:
    words, order = cell if isinstance(cell, tuple) else (cell, None)
    kind = None if k < text_columns else "num"
    value = None if order is None or order != order else f"{order:.9g}"
    if k == 0:
        return tag("th", words, scope="row", data_sort=value)
    return tag("td", words, class_=kind, data_sort=value)


def details(summary: str, *content: Any) -> Html:
    """Content that opens on demand, with or without scripts."""
    return tag("details", tag("summary", summary), *content)


def lead(*sentences: Any) -> Html:
    """The first paragraph of a section."""
    return tag("p", join([s for s in sentences if s], " "), class_="lead")


def legend(entries: Sequence[tuple[str, str]]) -> Html:
    """Colours and what they mean: pairs of a class and a name."""
    items = [
        tag("li", tag("span", class_=f"swatch {tone}", aria_hidden="true"), name) for tone, name in entries
    ]
    return tag("ul", *items, class_="legend")


def definitions(pairs: Sequence[tuple[str, Any]], compact: bool = False) -> Html:
    """Terms and what they are; `compact` where both are short."""
    rows = [tag("div", tag("dt", term), tag("dd", words)) for term, words in pairs]
    return tag("dl", *rows, class_="facts compact" if compact else "facts")


def copyable(key: str, text: str, name: str) -> Html:
    """A block of text with a button that copies it; the script shows the button."""
    button = tag(
        "button", "Copy", type="button", class_="copy", data_copy=key, aria_label=f"Copy {name}", hidden=True
    )
    block = tag("pre", tag("code", text, id=key), tabindex="0", role="region", aria_label=name)
    return tag("div", button, block, class_="copyable")
