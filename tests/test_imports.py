"""What an import loads, and which layer may import which."""

from __future__ import annotations

import ast
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
    {"losses", "regularizers", "kernels", "datasets"},
    {"gram"},
    {"solvers"},
    {"estimators", "theory"},
    {"api"},  # the package itself, whose lazy names reach everything so far
    {"inspection", "persistence", "dask"},
    {"report"},
    {"demo"},
    {"cli"},
]
RANK = {layer: rank for rank, row in enumerate(ORDER) for layer in row}


def layer_of(module: str) -> str:
    """Layer of a dotted module name: ``kernelweave.gram.dense`` is in ``gram``."""
    parts = module.split(".")
    if len(parts) == 1:
        return "api"
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


def loaded_by(statement: str) -> set[str]:
    """Top-level modules in `sys.modules` after a statement in a fresh process."""
    code = f"{statement}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


HEAVY = {"numba", "torch", "matplotlib", "dask"}


def test_the_package_imports_next_to_nothing() -> None:
    assert not loaded_by("import kernelweave") & (HEAVY | {"numpy", "scipy", "sklearn", "typer", "rich"})


@pytest.mark.parametrize(
    "name",
    [
        "dask",
        "datasets",
        "estimators",
        "gram",
        "inspection",
        "kernels",
        "losses",
        "persistence",
        "regularizers",
        "report",
        "solvers",
        "theory",
        "cli",
    ],
)
def test_submodules_import_nothing_heavy(name: str) -> None:
    assert not loaded_by(f"import kernelweave.{name}") & HEAVY
