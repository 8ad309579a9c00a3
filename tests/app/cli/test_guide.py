"""The commands of the guide, run as they are written there, on a few rows of the data they speak of."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
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


def write_study(folder: Path) -> None:
    rng = np.random.default_rng(0)
    ids, z = [f"P{k:02d}" for k in range(48)], rng.normal(size=48)
    views = {
        name: pd.DataFrame(z[:, None] + rng.normal(size=(48, 4)), index=ids).rename(columns="f{}".format)
        for name in ("rna", "meth", "protein")
    }
    views["rna"].T.rename_axis("gene").to_csv(folder / "rna.csv")
    views["rna"].iloc[:9].T.rename_axis("gene").to_csv(folder / "new_rna.csv")
    views["meth"].iloc[::-1].rename_axis("sample").reset_index().to_parquet(folder / "meth.parquet")
    views["protein"].iloc[5:].rename_axis("sample").to_csv(folder / "protein.tsv", sep="\t")
    patients = [f"d{k // 2}" for k in range(48)]
    labels = pd.DataFrame({"sample": ids, "subtype": np.where(z > 0, "a", "b"), "patient": patients})
    labels.to_csv(folder / "clinical.csv", index=False)


def write_cohort(folder: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"patient": [f"P{k:02d}" for k in range(48)], "age": rng.normal(size=48)})
    table.to_csv(folder / "new_patients.csv", index=False)
    times = {"months": 60.0 * rng.exponential(np.exp(-2.0 * table["age"])), "died": rng.random(48) < 0.7}
    table.assign(**times).to_csv(folder / "cohort.csv", index=False)


@pytest.mark.system
def test_every_command_of_the_guide_runs(
    kw: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_methods, "COSTS", (0.1, 10.0))
    monkeypatch.setattr(_comparing, "TREES", 20)
    write_tumours(tmp_path)
    write_cohort(tmp_path)
    write_study(tmp_path)
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
