"""Small things about pages: lists of what is there, tidy code blocks, links to the API, names for buttons.

The pages of some folders come and go. In their index a line of a toctree that names no page is left out, and
a line ``*`` stands for the pages that no other line of the index names. Names of public objects in the text
lead to their API page without being marked up. The theme's buttons that unfold a list of pages get a name,
which readers of screens say aloud.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from api_pages import pages
from docutils import nodes
from sphinx import addnodes

TOCTREE = re.compile(r"(```\{toctree\}\n(?::.*\n)*\n)((?:\S.*\n)+)(```)")

UNNAMED = '<summary><span class="toctree-toggle" role="presentation">'


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


#: a name, perhaps with the module in front and a call behind
LINKS = nodes.reference | nodes.title | addnodes.pending_xref  # no link within a link
NAME = re.compile(r"(?:kw\.|kernelweave\.)?(?:[a-z_]+\.)*(\w+)(?:\(.*\))?")


def _link(app: Any, doctree: nodes.document) -> None:
    """Let names of public objects lead to where they are described."""
    docname = app.env.docname
    if docname.startswith(("api/", "gallery/")):
        return
    full = {
        name.rpartition(".")[2]: name for groups in pages().values() for _, group in groups for name in group
    }
    for literal in list(doctree.findall(nodes.literal)):
        match = NAME.fullmatch(literal.astext())
        inside = any(isinstance(node, LINKS) for node in _above(literal))
        if match and match[1] in full and _is_telling(match) and not inside:
            target = {"reftype": "obj", "refdomain": "py", "reftarget": full[match[1]]}
            link = addnodes.pending_xref("", refdoc=docname, refexplicit=True, refwarn=True, **target)
            literal.replace_self(link)
            link += literal


def _above(node: nodes.Node) -> Iterator[nodes.Node]:
    """What a node is part of."""
    while node.parent is not None:
        node = node.parent
        yield node


def _is_telling(match: re.Match[str]) -> bool:
    """Whether it can be no other word: `info` alone could be a command, `load()` and `LpNorm` are ours."""
    return match[0] != match[1] or "_" in match[1] or match[1] != match[1].lower()


def _name_buttons(app: Any, exception: Exception | None) -> None:
    """Name what unfolds a list of pages; the theme has an arrow there and nothing else."""
    if exception is None and app.builder.format == "html":
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            named = text.replace(UNNAMED, UNNAMED.replace("<summary>", '<summary aria-label="Pages below">'))
            if named != text:
                page.write_text(named, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Connect all of them."""
    app.connect("build-finished", _name_buttons)
    app.connect("source-read", _on_read)
    app.connect("doctree-read", _trim)
    app.connect("doctree-read", _link)
    return {"parallel_read_safe": True}
