"""The command ``python experiments``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[2]


def command(*arguments: Any) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(ROOT / "experiments"), *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


EXPERIMENT = """'Table 1.'
from reproduce import Experiment, Summary, compare

EXPERIMENT = Experiment(
    "Table", "Nobody (1999)", lambda mode: [{"seed": s} for s in range(mode.count(2, 3))],
    lambda seed: {"x": 0.5}, lambda rows: Summary([compare("half", [row["x"] for row in rows], 0.5)]),
)
"""


def test_the_command_lists_without_running(tmp_path: Path) -> None:
    (tmp_path / "table_one.py").write_text(EXPERIMENT + "raise SystemExit('executed')\n")
    (tmp_path / "_help.py").write_text("")
    result = command("--folder", tmp_path, "--json")
    assert json.loads(result.stdout) == {"table-one": "Table 1."}
    assert "Table 1." in command("--folder", tmp_path).stdout


@pytest.mark.slow  # `make reproduce` runs the command too
def test_the_command_runs_one_and_prints_the_comparison(tmp_path: Path) -> None:
    (tmp_path / "table_one.py").write_text(EXPERIMENT)
    places = ("--folder", tmp_path, "--out", tmp_path / "out")
    assert "reproduced" in command("table-one", *places).stdout
    assert (tmp_path / "out" / "table-one-quick.csv").is_file()
    (line,) = json.loads(command("--all", "--full", "--json", *places).stdout)["table-one"]
    assert (line["verdict"], line["n"]) == ("reproduced", 3)
    unknown = command("two", *places)
    assert unknown.returncode == 2
    assert "'two'" in unknown.stderr


def test_the_command_without_experiments_says_what_to_do(tmp_path: Path) -> None:
    result = command("--folder", tmp_path)
    assert result.returncode == 2
    assert "there are no experiments" in result.stderr
