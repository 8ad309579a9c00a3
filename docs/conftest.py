"""Pages are run as tests: each in a folder of its own, with the worked examples importable."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kernelweave.datasets import find

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "extending"))  # the worked examples

collect_ignore_glob = ["conf.py", "_ext/*", "api/*", "gallery/*"]


#: page -> the optional package its code needs
NEEDS = {"gpu.md": "torch", "dask.md": "distributed"}


def pytest_itemcollected(item: pytest.Item) -> None:
    """Pages whose code needs an optional package or real data are skipped without them."""
    package = NEEDS.get(item.path.name, "")
    if package == "torch":
        item.add_marker(pytest.mark.torch)
    if package and find_spec(package) is None:
        item.add_marker(pytest.mark.skip(reason=f"needs {package}"))
    for name in data_of(item):
        if find(name) is None:
            item.add_marker(
                pytest.mark.skip(reason=f"no {name}.npz here: set KERNELWEAVE_DATA to its folder")
            )


def data_of(item: pytest.Item) -> list[str]:
    """The real data sets that a page loads."""
    code = "".join(example.source for example in item.dtest.examples) if hasattr(item, "dtest") else ""
    return re.findall(r'\bload\("(\w+)"', code)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a page writes goes to a temporary folder, and parts that it registers are forgotten."""
    from kernelweave.gram import GRAMS
    from kernelweave.kernels.convert import KERNELS
    from kernelweave.losses import LOSSES
    from kernelweave.regularizers import REGULARIZERS
    from kernelweave.solvers.multiple import MKL_SOLVERS
    from kernelweave.solvers.single import SINGLE_SOLVERS

    monkeypatch.chdir(tmp_path)
    for registry in (GRAMS, KERNELS, LOSSES, REGULARIZERS, MKL_SOLVERS, SINGLE_SOLVERS):
        monkeypatch.setattr(registry, "_parts", dict(registry._parts))


@pytest.fixture(autouse=True)
def _forget_worked_examples() -> object:
    """Modules of docs/extending are imported again by every page."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name in {path.stem for path in (DOCS / "extending").glob("*.py")}:
            del sys.modules[name]
