"""What an import loads, and which layer may import which."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import kernelweave

PACKAGE = Path(kernelweave.__file__).parent

# Lowest first; a layer imports itself and those above it in this list. Members of one row
# do not import one another.
ORDER = [
    {"private"},  # _registry, _typing, ...: every top-level module whose name starts with _
    {"losses", "regularizers", "kernels", "metrics"},
    {"gram"},
    {"solvers"},
    {"estimators", "theory"},
    {"api"},  # the package itself, whose lazy names reach everything so far
    {"inspection", "persistence", "dask"},
    {"testing"},  # checks of all of these, for whoever adds a part
    {"app.datasets", "app.report", "app.demo"},  # the app stands on the core, which never imports it
    {"app.cli"},
    {"app", "door"},  # kernelweave.report, .datasets and .cli: names of the app under their public addresses
]
DOORS = {"report", "datasets", "cli"}
RANK = {layer: rank for rank, row in enumerate(ORDER) for layer in row}


def layer_of(module: str) -> str:
    """Layer of a dotted module name: ``kernelweave.gram.dense`` is in ``gram``."""
    parts = module.split(".")
    if len(parts) == 1:
        return "api"
    if parts[1] in DOORS or parts[1] == "__main__":
        return "door"
    if parts[1] == "app":
        return ".".join(parts[1:3])
    return "private" if parts[1].startswith("_") else parts[1]


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path: Path) -> Iterator[str]:
    """Modules of the package that a file imports, anywhere in it."""
    module = module_name(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if layer_root(alias.name))
        elif isinstance(node, ast.ImportFrom):
            source = absolute(node, package)
            if layer_root(source):
                yield from targets(source, [alias.name for alias in node.names])


def layer_root(module: str) -> bool:
    return module.split(".")[0] == PACKAGE.name


def absolute(node: ast.ImportFrom, package: str) -> str:
    if node.level == 0:
        return node.module or ""
    base = package.split(".")
    base = base[: len(base) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def targets(source: str, names: list[str]) -> Iterator[str]:
    """``from . import gram`` means the module gram; ``from .gram import X`` means gram too."""
    if source != PACKAGE.name:
        yield source
        return
    for name in names:
        is_module = (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()
        yield f"{source}.{name}" if is_module else source


def allowed(importer: str, imported: str) -> bool:
    return importer == imported or RANK[imported] < RANK[importer]


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_go_one_way(path: Path) -> None:
    importer = layer_of(module_name(path))
    assert importer in RANK, f"{importer} has no place in ORDER: add it"
    upward = [module for module in imported_modules(path) if not allowed(importer, layer_of(module))]
    assert not upward, f"{module_name(path)} ({importer}) may not import {upward}"


def test_the_layer_test_sees_imports_inside_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "kernelweave"
    (package / "gram").mkdir(parents=True)
    path = package / "gram" / "dense.py"
    path.write_text(
        "import numpy\nfrom ..solvers.base import Solver\nfrom .base import Gram\n"
        "def f():\n    import kernelweave.estimators\n    from .. import MKLClassifier\n"
    )
    monkeypatch.setitem(globals(), "PACKAGE", package)
    upward = {module for module in imported_modules(path) if not allowed("gram", layer_of(module))}
    assert upward == {"kernelweave.solvers.base", "kernelweave.estimators", "kernelweave"}


def test_the_page_on_the_architecture_is_true() -> None:
    """Its rows are those of ORDER, and the files it names are there."""
    page = PACKAGE.parents[1] / "docs" / "architecture.md"
    if not page.exists():
        pytest.skip("not a checkout")
    text = page.read_text(encoding="utf-8")
    rows = [set(re.findall(r"`([a-z.]+)`", row)) for row in re.findall(r"^\| \d+ \| (.*) \|$", text, re.M)]
    assert [row & set(RANK) for row in rows] == ORDER
    files = re.findall(r"`(\w+(?:/\w*)+(?:\.py)?)`", text.replace("`src/kernelweave/`", ""))
    assert not [name for name in files if not (PACKAGE / name).exists() and not name.startswith("tests/")]


def printed_by(code: str) -> list[str]:
    """Lines that a fresh process prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


HEAVY = {"numba", "torch", "matplotlib", "dask"}
SUBMODULES = [
    "app",
    "cli",
    "dask",
    "datasets",
    "estimators",
    "gram",
    "inspection",
    "kernels",
    "losses",
    "metrics",
    "persistence",
    "regularizers",
    "report",
    "solvers",
    "testing",
    "theory",
]
LOADED = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    print(name, *sorted({module.split(".")[0] for module in sys.modules}))
"""


def loaded_by(*names: str) -> dict[str, set[str]]:
    """Top-level modules in `sys.modules` of a fresh process after each of these imports, in turn."""
    lines = printed_by(f"import sys; sys.argv[1:] = {names!r}\n{LOADED}")
    return {name: set(modules) for name, *modules in map(str.split, lines)}


def test_the_package_imports_next_to_nothing() -> None:
    loaded = loaded_by("kernelweave")["kernelweave"]
    assert not loaded & (HEAVY | {"numpy", "scipy", "sklearn", "typer", "rich", "jinja2"})


@pytest.mark.system
def test_submodules_import_nothing_heavy() -> None:
    names = [f"kernelweave.{name}" for name in SUBMODULES]
    heavy = {name: loaded & HEAVY for name, loaded in loaded_by(*names).items()}
    assert heavy == {name: set() for name in names}


OPTIONAL = {"torch", "triton", "cupy", "matplotlib", "pyarrow", "dask", "distributed"}
LOOKED_AT = """
import doctest, importlib, pkgutil, sys, types

def find_spec(name, path=None, target=None):
    if name.partition(".")[0] in sys.argv[1:]:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, types.SimpleNamespace(find_spec=find_spec))
import kernelweave
for found in pkgutil.walk_packages(kernelweave.__path__, "kernelweave."):
    if not found.name.endswith("__main__"):
        doctest.DocTestFinder().find(importlib.import_module(found.name))
        print(found.name)
"""


@pytest.mark.system
def test_every_module_can_be_looked_at_without_optional_packages() -> None:
    """As doctest, inspect and the documentation do: import it, and unwrap whatever it holds."""
    names = printed_by(f"import sys; sys.argv[1:] = {sorted(OPTIONAL)!r}\n{LOOKED_AT}")
    assert set(names) == {module_name(path) for path in FILES if path.name != "__main__.py"}
