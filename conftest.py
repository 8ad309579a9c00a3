"""Marks for docstrings, pages and tests alike, by what they ask for: no list has to be kept."""

from __future__ import annotations

from collections import Counter

import pytest

#: mark -> what an example that needs it says
WORDS = {"torch": "torch", "data": "kernelweave.datasets", "system": "distributed"}

#: mark -> fixtures that give it
FIXTURES = {"data": {"data_folder"}, "system": {"dask_workers", "process"}}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before items are chosen by their marks."""
    seen: Counter[str] = Counter()
    for item in items:
        for mark, fixtures in FIXTURES.items():
            if fixtures & set(getattr(item, "fixturenames", ())):
                item.add_marker(mark)
        if isinstance(item, pytest.DoctestItem):
            source = "".join(example.source for example in item.dtest.examples)
            for mark in (mark for mark, word in WORDS.items() if word in source):
                item.add_marker(mark)
        _sample(item, seen)


def _sample(item: pytest.Item, seen: Counter[str]) -> None:
    """Of the cases of a test marked `sampled(k)` all but every k-th are slow."""
    sampled = item.get_closest_marker("sampled")
    if sampled is None:
        return
    name = item.nodeid.partition("[")[0]
    if seen[name] % sampled.args[0]:
        item.add_marker("slow")
    seen[name] += 1
