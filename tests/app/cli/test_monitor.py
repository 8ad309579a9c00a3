"""What is shown while a command works."""

from __future__ import annotations

import time
from io import StringIO
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from kernelweave.app.cli import _monitor
from kernelweave.app.cli._monitor import Monitor, closed, progress_of


def machine(gap: float) -> SimpleNamespace:
    return SimpleNamespace(certificate=SimpleNamespace(gap=gap), residual=gap)


def plain_lines(seconds: float) -> list[str]:
    file = StringIO()
    with Monitor(console=Console(file=file, width=200)) as monitor:
        monitor.stage("fitting lp")
        monitor.step("setosa vs rest", 4, machine(0.02), 1e-3)
        time.sleep(seconds)
    return file.getvalue().splitlines()


@pytest.mark.system
def test_plain_lines_come_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off a terminal a log is written: one line a stage at once, then one per interval."""
    assert _monitor.EVERY == 10.0
    assert plain_lines(1.2) == ["fitting lp · 0 s"]
    monkeypatch.setattr(_monitor, "EVERY", 0.25)
    lines = plain_lines(0.9)
    assert 2 <= len(lines) <= 4
    assert lines[1].startswith("fitting lp · setosa vs rest, step 5, gap 2.0e-02 (tol 1e-03) · ")


def test_a_terminal_is_drawn_again_without_news() -> None:
    file = StringIO()
    console = Console(file=file, force_terminal=True, width=120)
    with Monitor(console=console) as monitor:
        monitor.stage("Gram matrices [20]")
        before = len(file.getvalue())
        time.sleep(0.7)
        assert len(file.getvalue()) > before
    assert "Gram matrices [20]" in file.getvalue()


def test_quiet_shows_nothing() -> None:
    file = StringIO()
    with Monitor(quiet=True, console=Console(file=file)) as monitor:
        monitor.stage("fitting")
        monitor.warn("stopping")
    assert file.getvalue() == ""


def test_share_is_counted_in_orders_of_magnitude() -> None:
    assert closed(1.0, 1.0, 1e-4) == 0.0
    assert closed(1.0, 1e-2, 1e-4) == pytest.approx(0.5)
    assert closed(1.0, 1e-9, 1e-4) == 1.0
    assert closed(1e-5, 1e-6, 1e-4) is None
    assert closed(np.inf, 1.0, 1e-4) is None


def test_states_of_every_solver_have_something_to_fall() -> None:
    assert progress_of(machine(0.5)) == ("gap", 0.5)
    concave = SimpleNamespace(certificate=SimpleNamespace(gap=np.inf), residual=0.25)
    assert progress_of(concave) == ("residual", 0.25)
    assert progress_of(SimpleNamespace(stationarity=0.1)) == ("residual", 0.1)
    assert progress_of(SimpleNamespace(history={"stationarity": [1.0, 0.5]})) == ("residual", 0.5)
    assert progress_of(SimpleNamespace(history={"gain": [1.0]})) == ("residual", None)
