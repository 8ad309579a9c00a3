"""Checks the links of the built pages without a network.

Every link to a file of the site has to lead to a file, and to an anchor that the file has, and no page may
fetch a script, a style or a picture from elsewhere. Other addresses are listed in ``external_links.txt``
beside the pages, for whoever wants to try them.
"""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sphinx.errors import SphinxError


class Page(HTMLParser):
    """What a page links to, what it loads by itself, and the anchors it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in {"href", "src"}:
                self.links.add(value)
                self.loaded |= {value} if name == "src" or tag == "link" else set()
            elif value and name in {"id", "name"}:
                self.anchors.add(value)


def broken_links(root: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """Links within the site that lead nowhere."""
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    yield f"{path.relative_to(root)}: {link} would be fetched"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.exists():
                yield f"{path.relative_to(root)}: {link} does not exist"
            elif target in pages and anchor not in pages[target].anchors:
                yield f"{path.relative_to(root)}: {link} has no such anchor"


def _check(app: Any, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    root = Path(app.outdir).resolve()
    found = [path for path in root.rglob("*.html") if "_static" not in path.parts]
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in found}
    broken = list(broken_links(root, pages))
    if broken:
        raise SphinxError("links that lead nowhere:\n" + "\n".join(broken))
    external = {link for page in pages.values() for link in page.links if urlsplit(link).scheme}
    (root / "external_links.txt").write_text("\n".join(sorted(external)) + "\n", encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Run when everything is written."""
    app.connect("build-finished", _check, priority=900)
    return {"parallel_read_safe": True}
