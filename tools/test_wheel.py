"""What users get: the wheel, no checkout around it, no optional package beside it (`make test-wheel`)."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from typer.testing import CliRunner

import kernelweave as kw
from kernelweave.app.cli import app

OPTIONAL = "torch dask distributed matplotlib pyarrow openpyxl anndata mudata cvxpy polars"
X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 2


def test_the_package_is_the_installed_one() -> None:
    assert Path(kw.__file__).resolve().is_relative_to(Path(sys.prefix).resolve())
    assert version("kernelweave") == kw.__version__


@pytest.mark.parametrize("package", OPTIONAL.split())
def test_no_optional_package_came_along(package: str) -> None:
    assert find_spec(package) is None


def test_every_module_is_there_and_needs_no_more() -> None:
    names = [found.name for found in walk_packages(kw.__path__, "kernelweave.")]
    assert len(names) > 250
    for name in names:
        if not name.endswith("__main__"):
            import_module(name)


@pytest.mark.parametrize(
    ("option", "text"), [("--version", f"kernelweave {kw.__version__}"), ("--help", "fit")]
)
def test_the_command_is_on_the_path(option: str, text: str) -> None:
    command = Path(sys.executable).with_name("kernelweave")
    done = subprocess.run([command, option], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert text in done.stdout
    assert entry_points(group="console_scripts", name="kernelweave")


def test_templates_and_types_are_in_the_wheel(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    model = kw.MKLClassifier(C=1.0).fit(X, y)
    kw.report.write_report(page, model, X, y, stability=False)
    assert "</html>" in page.read_text(encoding="utf-8")
    assert (Path(kw.__file__).parent / "py.typed").exists()


def command(name: str) -> Callable[[Path], None]:
    """`kernelweave fit` of a file; its error is raised."""

    def call(folder: Path) -> None:
        with ZipFile(folder / name, "w") as file:  # what tells an Excel file
            file.writestr("xl/workbook.xml", "")
        result = CliRunner().invoke(app, ["fit", str(folder / name), "--target", "y"])
        assert result.exit_code == 2
        raise ImportError(" ".join(result.output.split()))

    return call


#: extra -> what asks for it first; more than one thing may
MISSING: dict[str, list[Callable[[Path], Any]]] = {
    "plot": [lambda _: kw.inspection.KernelWeightsDisplay([1.0], ["a"]).plot()],
    "torch": [lambda _: kw.MKLClassifier(device="torch:cpu").fit(X, y)],
    "dask": [lambda _: kw.MKLClassifier(gram="dask").fit(X, y)],
    "tables": [command("a.parquet"), lambda folder: kw.ParquetTable(str(folder / "a.parquet"))],
    "excel": [command("a.xlsx")],
    "omics": [command("a.h5ad"), command("a.h5mu")],
}


@pytest.mark.parametrize("extra", MISSING)
def test_an_extra_that_is_missing_is_named(extra: str, tmp_path: Path) -> None:
    for call in MISSING[extra]:
        with pytest.raises(ImportError, match=re.escape(f'pip install "kernelweave[{extra}]"')):
            call(tmp_path)
