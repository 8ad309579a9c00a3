"""Two small things about pages: lists of what is there, and code blocks without a last empty line.

The pages of some folders come and go. In their index a line of a toctree that names no page is left out, and
a line ``*`` stands for the pages that no other line of the index names.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes

TOCTREE = re.compile(r"(```\{toctree\}\n(?::.*\n)*\n)((?:\S.*\n)+)(```)")


def with_present_pages(text: str, folder: Path) -> str:
    """The text of an index, its toctrees naming the pages of the folder that there are."""
    pages = {path.stem for path in folder.glob("*.md")} - {"index"}
    named = {line for match in TOCTREE.finditer(text) for line in match[2].split()}
    rest = sorted(pages - named)

    def filled(match: re.Match[str]) -> str:
        lines = [
            page for line in match[2].split() for page in (rest if line == "*" else [line]) if page in pages
        ]
        return match[1] + "".join(f"{page}\n" for page in lines) + match[3]

    return TOCTREE.sub(filled, text)


def _on_read(app: Any, docname: str, source: list[str]) -> None:
    if docname in {"guide/index", "results/index"}:
        source[0] = with_present_pages(source[0], Path(app.srcdir) / Path(docname).parent)


def _trim(app: Any, doctree: nodes.document) -> None:
    """Doctests need an empty line before the closing fence; readers do not."""
    for block in doctree.findall(nodes.literal_block):
        if len(block.children) == 1 and isinstance(block.children[0], nodes.Text):
            text = block.astext().rstrip()
            block.children = []
            block += nodes.Text(text)
            block.rawsource = text


def setup(app: Any) -> dict[str, bool]:
    """Connect both."""
    app.connect("source-read", _on_read)
    app.connect("doctree-read", _trim)
    return {"parallel_read_safe": True}
