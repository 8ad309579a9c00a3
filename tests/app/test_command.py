from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from kernelweave import __version__
from kernelweave.app.cli import app


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output.strip() == f"kernelweave {__version__}"


def test_without_a_command_the_help_is_shown() -> None:
    assert "demo" in CliRunner().invoke(app, []).output


@pytest.mark.system
def test_demo_finds_where_learning_the_weights_pays(tmp_path: Path) -> None:
    out = tmp_path / "weights.png"
    result = CliRunner().invoke(app, ["demo", "--out", str(out)])
    assert result.exit_code == 0, result.output
    for text in (
        "worst",
        "duality gap",
        "plain sum",
        "learned weights",
        "weights pays",
        "does not pay",
        "sets of",
    ):
        assert text in result.output
    assert out.read_bytes().startswith(b"\x89PNG")


def test_the_gain_of_the_demo_is_judged_by_its_standard_error() -> None:
    from kernelweave.app.demo import Comparison

    def verdict(*gains: float) -> str:
        accuracies = np.array([[0.9, 0.9 + gain] for gain in gains])
        return Comparison(["a"], accuracies, None, 10).verdict

    assert "weights pays" in verdict(0.02, 0.03, 0.025)
    assert "does not pay" in verdict(0.02, -0.03, 0.025)
    assert "costs accuracy" in verdict(-0.02, -0.03, -0.025)


def test_demo_without_matplotlib_says_how_to_get_the_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernelweave.app import demo

    monkeypatch.setattr(demo, "N_SAMPLES", 2)
    monkeypatch.setattr(demo, "N_OTHERS", 1)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "weights.png")])
    assert result.exit_code == 0, result.output
    assert "kernelweave[plot]" in result.output
    assert not (tmp_path / "weights.png").exists()
