"""Marks for docstrings, pages and tests alike, by what they ask for: no list has to be kept."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict

import pytest

#: mark -> what an example that needs it says
WORDS = {"torch": "torch", "data": "kernelweave.datasets", "system": "distributed"}

#: mark -> fixtures that give it
FIXTURES = {"data": {"data_folder"}, "system": {"dask_workers", "process"}}

#: families of which no case is slow, however many there are: promises to other libraries
WHOLE = {"tests/estimators/test_contract.py::test_check_estimator"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before items are chosen by their marks."""
    seen: Counter[str] = Counter()
    families: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        for mark, fixtures in FIXTURES.items():
            if fixtures & set(getattr(item, "fixturenames", ())):
                item.add_marker(mark)
        if isinstance(item, pytest.DoctestItem):
            source = "".join(example.source for example in item.dtest.examples)
            for mark in (mark for mark, word in WORDS.items() if word in source):
                item.add_marker(mark)
        _sample(item, seen)
        if item.get_closest_marker("slow") is None:
            families[_family(item)].append(item)
    for family in families.values():
        _thin(family)


def _family(item: pytest.Item) -> str:
    """The test that an item is a case of."""
    return item.nodeid.partition("[")[0]


def _sample(item: pytest.Item, seen: Counter[str]) -> None:
    """Of the cases of a test marked `sampled(k)` all but every k-th are slow."""
    sampled = item.get_closest_marker("sampled")
    if sampled is None:
        return
    if seen[_family(item)] % sampled.args[0]:
        item.add_marker("slow")
    seen[_family(item)] += 1


def _thin(family: list[pytest.Item]) -> None:
    """The first and about every fourth of more than ten cases, by their names, stay in the fast set.

    Of more than twenty, three eighths are slow.
    """
    many = len(family) > 20 and _family(family[0]) not in WHOLE
    if len(family) > 10:
        for item in family[1:]:
            place = zlib.crc32(item.nodeid.encode()) % 8
            if place % 4:
                item.add_marker("wide")
            if many and place in (1, 2, 3):
                item.add_marker("slow")
