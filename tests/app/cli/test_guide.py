"""The commands of the guide, run as they are written there, on a few rows of the data they speak of."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from kernelweave.app.cli import _comparing, _console, _methods

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "command_line.md"


def fenced(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def write_tumours(folder: Path) -> None:
    data = load_breast_cancer()
    rows = np.random.default_rng(0).permutation(len(data.data))[:80]
    with (folder / "tumours.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*data.feature_names, "diagnosis"])
        writer.writerows([*data.data[i].tolist(), data.target_names[data.target[i]]] for i in rows)
    lines = (folder / "tumours.csv").read_text().splitlines()
    (folder / "new.csv").write_text("\n".join(lines[:5]))


@pytest.mark.system
def test_every_command_of_the_guide_runs(
    kw: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_methods, "COSTS", (0.1, 10.0))
    monkeypatch.setattr(_comparing, "TREES", 20)
    write_tumours(tmp_path)
    (tmp_path / "spec.toml").write_text(fenced("toml")[0])
    commands = [line for block in fenced("bash") for line in block.splitlines() if line.strip()]
    assert len(commands) >= 6
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "kernelweave"
        options = (
            ["--no-stability", "-q"]
            if words[1] == "fit"
            else ["-q"]
            if words[1] in ("compare", "report")
            else []
        )
        result = kw(*words[1:], *options)
        assert result.code == 0, (command, result.err)
    assert {path.name for path in (tmp_path / "tumours").iterdir()} == set(
        re.findall(
            r"^\| `([\w.]+)` \|", PAGE.read_text(encoding="utf-8").split("## Fit")[1].split("###")[0], re.M
        )
    )


def test_the_exit_codes_are_those_of_the_guide() -> None:
    codes = re.findall(r"^\| (\d+) \|", PAGE.read_text(encoding="utf-8").split("## Exit codes")[1], re.M)
    ours = (_console.OK, _console.UNEXPECTED, _console.BAD_INPUT, _console.INTERRUPTED)
    assert tuple(map(int, codes)) == ours
