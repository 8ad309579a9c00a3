from __future__ import annotations

import sys
from pathlib import Path

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
def test_demo_prints_its_tables_and_writes_the_plot(tmp_path: Path) -> None:
    out = tmp_path / "weights.png"
    result = CliRunner().invoke(app, ["demo", "--out", str(out)])
    assert result.exit_code == 0, result.output
    for text in ("worst, linear", "duality gap", "best single", "uniform sum", "learned weights"):
        assert text in result.output
    assert out.read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib_says_how_to_get_the_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernelweave.app import demo

    monkeypatch.setattr(demo, "GAMMAS", ())
    monkeypatch.setattr(demo, "COSTS", (1.0,))
    monkeypatch.setattr(demo, "NORMS", (2.0,))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "weights.png")])
    assert result.exit_code == 0, result.output
    assert "kernelweave[plot]" in result.output
    assert not (tmp_path / "weights.png").exists()
    assert all(result.accuracy > 0.9 for result in demo.compare()[1:])
