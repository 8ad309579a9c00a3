"""Marks for docstrings, pages and tests alike, by what they ask for: no list has to be kept."""

from __future__ import annotations

import pytest

#: mark -> what an example that needs it says
WORDS = {"torch": "torch", "data": "kernelweave.datasets"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before items are chosen by their marks."""
    for item in items:
        if "data_folder" in getattr(item, "fixturenames", ()):
            item.add_marker("data")
        if isinstance(item, pytest.DoctestItem):
            source = "".join(example.source for example in item.dtest.examples)
            for mark in (mark for mark, word in WORDS.items() if word in source):
                item.add_marker(mark)
