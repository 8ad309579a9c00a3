"""The names of the package: all there, all documented."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import kernelweave as kw


@pytest.mark.parametrize("name", kw.__all__)
def test_every_public_name_resolves_and_is_listed(name: str) -> None:
    assert getattr(kw, name) is not None
    assert name in dir(kw)


SUBMODULES = sorted(set(kw.__all__) - set(kw._EXPORTS) - {"__version__"})


def test_the_lazy_table_and_all_agree() -> None:
    assert set(kw._EXPORTS) <= set(kw.__all__)
    assert all(inspect.ismodule(getattr(kw, name)) for name in SUBMODULES)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'MKLTransformer'"):
        kw.MKLTransformer  # noqa: B018


def undocumented(obj: Any, path: str) -> Iterator[str]:
    """Paths of what has no docstring, inherited ones counting."""
    if not inspect.getdoc(obj):
        yield path
    if inspect.isclass(obj):
        for name, _ in inspect.getmembers(obj, callable):
            if not name.startswith("_") and not inspect.getdoc(getattr(obj, name)):
                yield f"{path}.{name}"


@pytest.mark.parametrize("name", SUBMODULES)
def test_every_public_object_has_a_docstring(name: str) -> None:
    module = getattr(kw, name)
    objects = {key: getattr(module, key) for key in module.__all__}
    described = {key: obj for key, obj in objects.items() if inspect.isclass(obj) or inspect.isroutine(obj)}
    assert not [miss for key, obj in described.items() for miss in undocumented(obj, f"{name}.{key}")]
