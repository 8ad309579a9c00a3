"""The documentation in a real browser: `make docs` first, then `make test-browser`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import browsers
from .browsers import Opened

pytestmark = pytest.mark.browser
browser = browsers.browser

SITE = Path(__file__).resolve().parents[1] / "build" / "docs" / "html"
PHONE, DESK = {"width": 375, "height": 800}, {"width": 1280, "height": 900}

#: one of every kind: the landing page, code, tables, formulas, pictures, the reference, results, search
MAIN = [
    "index",
    "start",
    "guide/faq",
    "guide/which_method",
    "guide/recipe_omics",
    "guide/report",
    "guide/command_line",
    "gallery/index",
    "coming_from/index",
    "extending/loss",
    "api/index",
    "api/generated/kernelweave.MKLClassifier",
    "math",
    "results/index",
    "results/benchmarks",
    "stability",
    "search",
]


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    """Open a page of the site."""
    if not (SITE / "index.html").exists():
        pytest.skip("the documentation has not been built: make docs")
    opened: list[Opened] = []

    def start(name: str, **options: Any) -> Opened:
        opened.append(Opened(browser, SITE / f"{name}.html", **options))
        return opened[-1]

    yield start
    for one in opened:
        one.context.close()


@pytest.mark.parametrize("name", MAIN)
def test_axe_finds_nothing_wide_and_light_or_narrow_and_dark(name: str, visit: Any) -> None:
    faults = {}
    for screen, scheme in ((DESK, "light"), (PHONE, "dark")):
        opened = visit(name, viewport=screen, color_scheme=scheme)
        opened.open_details()
        faults[screen["width"], scheme] = opened.axe_faults()
    assert not any(faults.values()), faults


@pytest.mark.parametrize("name", MAIN)
def test_no_page_is_wider_than_a_phone_or_asks_for_the_network(name: str, visit: Any) -> None:
    opened = visit(name, viewport=PHONE)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 375
    assert opened.requests
    assert not [url for url in opened.requests if not re.match(r"file:|data:", url)]


def test_search_finds_pages_without_a_server(visit: Any) -> None:
    opened = visit("search")
    opened.page.goto((SITE / "search.html").as_uri() + "?q=omics")
    results = opened.page.locator("#search-results li a")
    results.first.wait_for(timeout=20_000)
    addresses = [results.nth(k).get_attribute("href") or "" for k in range(results.count())]
    assert any("recipe_omics" in address for address in addresses)


def test_the_dark_page_is_dark(visit: Any) -> None:
    shades = {}
    for scheme in ("light", "dark"):
        page = visit("index", viewport=DESK, color_scheme=scheme).page
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        shades[scheme] = sum(map(int, re.findall(r"\d+", colour)[:3]))
    assert shades["dark"] < 3 * 64 < 3 * 192 < shades["light"]
