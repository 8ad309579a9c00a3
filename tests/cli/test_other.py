"""`info`, `reproduce`, `inspect`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import kernelweave

Kw = Callable[..., Any]


def test_info_says_versions_threads_and_memory(kw: Kw) -> None:
    facts = json.loads(kw("info", "--json").out)
    assert facts["versions"]["kernelweave"] == kernelweave.__version__
    assert facts["versions"]["numpy"] == np.__version__
    assert any(pool["user_api"] == "blas" and pool["num_threads"] >= 1 for pool in facts["thread pools"])
    assert facts["cores"]["usable"] >= 1
    assert facts["free memory"]["bytes"] > 0
    assert "GPU" in facts
    assert kernelweave.__version__ in kw("info").out


EXPERIMENT = """'Table 1.'
from kernelweave.reproduce import Experiment, Summary, compare

EXPERIMENT = Experiment(
    "Table", "Nobody (1999)", lambda mode: [{"seed": s} for s in range(mode.count(1, 3))],
    lambda seed: {"x": 0.5}, lambda rows: Summary([compare("half", [row["x"] for row in rows], 0.5)]),
)
"""


def test_reproduce_lists_without_running(kw: Kw, tmp_path: Path) -> None:
    (tmp_path / "table_one.py").write_text(EXPERIMENT + "raise SystemExit('executed')\n")
    (tmp_path / "_help.py").write_text("")
    for arguments in ((), ("--list",)):
        result = kw("reproduce", "--folder", tmp_path, "--json", *arguments)
        assert json.loads(result.out) == {"table-one": "Table 1."}
    assert "Table 1." in kw("reproduce", "--folder", tmp_path).out


def test_reproduce_runs_one_and_prints_the_comparison(kw: Kw, tmp_path: Path) -> None:
    (tmp_path / "table_one.py").write_text(EXPERIMENT)
    places = ("--folder", tmp_path, "--out", tmp_path / "out")
    assert "reproduced" in kw("reproduce", "table-one", *places).out
    assert (tmp_path / "out" / "table-one-quick.csv").is_file()
    (line,) = json.loads(kw("reproduce", "--all", "--full", "--json", *places).out)["table-one"]
    assert (line["verdict"], line["n"]) == ("reproduced", 3)
    unknown = kw("reproduce", "two", *places)
    assert unknown.code == 2
    assert "'two'" in unknown.err


def test_reproduce_without_experiments_says_where_they_are(kw: Kw, tmp_path: Path) -> None:
    result = kw("reproduce", "--folder", tmp_path)
    assert result.code == 2
    assert "source code" in result.err


def test_inspect_shows_weights_certificate_and_settings(kw: Kw, table: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kw("fit", table(), "--out", out, "--no-report", "-q", "--method", "lp")
    shown = kw("inspect", out).out
    for text in ("MKLClassifier", "Kernel weights", "rbf a", "Certified", "target: y", "accuracy", "numpy"):
        assert text in shown
    document = json.loads(kw("inspect", out / "model.kw", "--json").out)
    model = kernelweave.load_model(out / "model.kw")
    weights = {row["kernel"]: row["weight"] for row in document["weights"]}
    assert weights == dict(zip(model.kernel_names_, model.weights_.tolist(), strict=True))
