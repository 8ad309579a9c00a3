"""Small data files, and the command line as a function."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import kernelweave
from kernelweave.app.cli import app


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def kw(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command line in this process: exit code, stdout, stderr."""
    monkeypatch.setenv("COLUMNS", "300")

    def run(*arguments: Any) -> Result:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Result(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def table(tmp_path: Path, rng: np.random.Generator) -> Callable[..., Path]:
    """Writes a CSV file of 60 rows: numbers a and b, categories colour, classes y; columns can be changed."""
    a, b = rng.normal(size=(2, 60))
    columns: dict[str, list[Any]] = {
        "a": a.round(4).tolist(),
        "b": b.round(4).tolist(),
        "y": np.where(a + 0.5 * b > 0, "yes", "no").tolist(),
    }

    def write(name: str = "data.csv", rows: int = 60, sep: str = ",", **changed: Any) -> Path:
        merged = {**columns, **changed}
        kept = {key: values for key, values in merged.items() if values is not None}
        lines = [sep.join(kept), *(sep.join(map(str, row)) for row in zip(*kept.values(), strict=True))]
        path = tmp_path / name
        path.write_text("\n".join(lines[: rows + 1]) + "\n", encoding="utf-8")
        return path

    return write


#: a process that listens to signals as a terminal's would, after `prelude` has run in it
LAUNCH = "import sys; sys.argv[0] = 'kernelweave'\nfrom kernelweave.app.cli import main\n{prelude}\nmain()"


@pytest.fixture
def process() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts the command line in a process of its own; none outlives the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: Any, prelude: str = "", **options: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", LAUNCH.format(prelude=prelude), *map(str, arguments)]
        source = str(Path(kernelweave.__file__).parents[1])
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "PYTHONPATH": source}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        started.append(subprocess.Popen(command, env=environment, **pipes))
        return started[-1]

    yield start
    for each in started:
        if each.poll() is None:
            each.kill()
        each.communicate()
