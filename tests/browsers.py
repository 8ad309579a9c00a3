"""A real browser for pages that are made here: reports, and the documentation."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium of the system; nothing is downloaded."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="no playwright: pip install kernelweave[browser]"
    )
    path = os.environ.get("KERNELWEAVE_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(
            "no Chromium: install one (apt-get install chromium), or set KERNELWEAVE_BROWSER to its path"
        )
    with sync_api.sync_playwright() as playwright:
        # a container's root has no user namespaces to sandbox with
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


class Opened:
    """A page in the browser, and whatever it did that it should not."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.faults.append(message.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.faults.append(dialog.message), dialog.dismiss()))
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def open_details(self) -> None:
        self.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")

    def axe_faults(self, rules: int = 10) -> list[tuple[str, str, str]]:
        """What axe-core objects to: how serious, which rule, where first; more `rules` than that hold."""
        axe = pytest.importorskip(
            "axe_playwright_python.sync_playwright", reason="pip install kernelweave[browser]"
        )
        found = axe.Axe().run(self.page).response
        assert len(found["passes"]) > rules, "axe has looked at nothing"
        return [(fault["impact"], fault["id"], fault["nodes"][0]["html"]) for fault in found["violations"]]
