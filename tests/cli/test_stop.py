"""Ctrl-C in a real process: what is kept, what is said, and how it goes on."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernelweave
from kernelweave.cli import _folder
from kernelweave.cli._facts import file_digest
from kernelweave.cli._methods import Options
from kernelweave.cli._parts import KernelChoice, Reading
from kernelweave.cli._run_fit import Job

Kw = Callable[..., Any]
Start = Callable[..., subprocess.Popen[bytes]]

#: every machine takes so many seconds longer
SLOW = """
import time
from kernelweave.cli import _stop
told = _stop.Brake.__call__
def slowly(self, *arguments):
    answer = told(self, *arguments)
    time.sleep({seconds})
    return answer or self.asked
_stop.Brake.__call__ = slowly
"""

#: the Gram matrices take a minute
STUCK = """
import time
from kernelweave.estimators import _base
_base.BaseMKL._dictionary = lambda *arguments: time.sleep(60)
"""

OPTIONS = ["--method", "lp", "--p", "1.2", "--tol", "1e-9", "--no-report", "--kernel", "rbf"]


def write_views(path: Path, n: int, n_views: int) -> Path:
    rng = np.random.default_rng(0)
    views = {f"v{m}": rng.normal(size=(n, 5)) for m in range(n_views)}
    f = np.sin(1.5 * views["v0"][:, 0]) + views["v1"][:, 0] * views["v1"][:, 1]
    np.savez(path, **views, y=(f + 0.5 * rng.normal(size=n) > 0).astype(int))
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_views(tmp_path / "data.npz", 200, 6)


def until(condition: Callable[[], Any], process: subprocess.Popen[bytes], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


def settings(out: Path) -> dict[str, Any]:
    return json.loads((out / "settings.json").read_text())


def test_stopped_model_predicts_and_resumes_to_the_same_optimum(
    kw: Kw, process: Start, data: Path, tmp_path: Path
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert kw("fit", data, *OPTIONS, "--out", whole, "-q").code == 0
    running = process("fit", data, *OPTIONS, "--out", out, prelude=SLOW.format(seconds=0.3))
    until((out / "checkpoint").exists, running)
    time.sleep(0.7)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    said = err.decode()
    assert running.returncode == 130, said
    assert "Stopped by Ctrl-C after" in said
    assert "Traceback" not in said
    stopped = settings(out)
    assert stopped["interrupted"] is True
    assert stopped["certificate"]["value"] > 1e-9
    assert kw("predict", out, data, "--out", tmp_path / "p.csv").code == 0
    assert not (out / "report.html").exists()

    resumed = kw("fit", data, *OPTIONS, "--out", out, "--resume", "-q")
    assert resumed.code == 0, resumed.err
    assert "Going on" in resumed.err
    before, after = settings(whole), settings(out)
    assert after["certificate"]["value"] <= 1e-9
    assert after["objective"] == pytest.approx(before["objective"], rel=1e-8)
    assert after["n_machines_now"] < before["n_machines_now"]
    assert after["interrupted"] is False
    assert not list(out.glob("checkpoint*"))
    weights = [kernelweave.load_model(folder / "model.kw").weights_ for folder in (whole, out)]
    np.testing.assert_allclose(*weights, atol=1e-4)


def test_a_second_ctrl_c_quits_at_once(process: Start, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    running = process("fit", data, *OPTIONS, "--out", out, prelude=SLOW.format(seconds=30))
    until((out / "checkpoint").exists, running)
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, err = running.communicate(timeout=25)
    assert time.monotonic() - began < 20
    assert running.returncode == 130
    assert "Stopped at once" in err.decode()
    assert "Traceback" not in err.decode()
    assert (out / "checkpoint").exists()
    assert not (out / "model.kw").exists()


def test_before_the_first_machine_there_is_nothing_to_keep(
    process: Start, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    running = process("fit", data, *OPTIONS, "--out", out, prelude=STUCK)
    until((out / "request.json").exists, running)
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "nothing was saved" in err.decode()
    assert "Traceback" not in err.decode()
    assert not (out / "model.kw").exists()


def leave_checkpoint(kw: Kw, data: Path, out: Path) -> None:
    """The files of a fit that was killed, its checkpoint cut short."""
    reading, choice, options = Reading("y"), KernelChoice(kinds=("rbf",)), Options(p=1.2)
    job = Job(data, out, reading, choice, options, "lp", False, 0.25, False, False, [])
    _folder.start(out, {**job.request, "sha256": file_digest(data)}, None)
    (out / "checkpoint").write_bytes(b"cut")


def test_another_fit_does_not_go_on_from_a_checkpoint(kw: Kw, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    leave_checkpoint(kw, data, out)
    refused = kw("fit", data, *OPTIONS, "--C", "3", "--out", out, "--resume", "-q")
    assert refused.code == 2
    assert "C: 1.0, now 3.0" in refused.err
    afresh = kw("fit", data, *OPTIONS, "--C", "3", "--out", out, "-q")
    assert afresh.code == 0
    assert "Going on" not in afresh.err


def test_what_is_no_checkpoint_is_named_and_can_be_left_behind(kw: Kw, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    leave_checkpoint(kw, data, out)
    refused = kw("fit", data, *OPTIONS, "--out", out, "-q")
    assert refused.code == 2
    assert str(out / "checkpoint") in refused.err
    assert "--no-resume" in refused.err
    anew = kw("fit", data, *OPTIONS, "--out", out, "-q", "--no-resume")
    assert anew.code == 0, anew.err
    assert settings(out)["certificate"]["certified"] is True


def read_until_end(fd: int, process: subprocess.Popen[bytes], stop_at: bytes = b"") -> tuple[bytes, float]:
    """All output, and the longest silence in it; SIGINT as soon as `stop_at` is seen."""
    text, last, silence, sent = b"", time.monotonic(), 0.0, not stop_at
    while True:
        if select.select([fd], [], [], 0.05)[0]:
            try:
                chunk = os.read(fd, 1 << 16)
            except OSError:  # the other end of a terminal is closed
                chunk = b""
            if not chunk:
                return text, silence
            now = time.monotonic()
            silence, last = max(silence, now - last if text else 0.0), now
            text += chunk
        if not sent and stop_at in text:
            process.send_signal(signal.SIGINT)
            sent = True


@pytest.mark.slow
@pytest.mark.parametrize("terminal", [True, False])
def test_five_thousand_rows_and_twenty_kernels(
    terminal: bool, kw: Kw, process: Start, tmp_path: Path
) -> None:
    """Progress at least every second, Ctrl-C keeps a model, and the same command ends where it would have."""
    data = write_views(tmp_path / "big.npz", 5000, 20)
    options = ["fit", data, "--method", "lp", "--p", "1.2", "--C", "3", "--tol", "1e-6", "--test-size", "0"]
    options += ["--kernel", "rbf", "--no-report"]

    def run(out: str, stop_at: bytes = b"") -> tuple[int, bytes, float]:
        if not terminal:
            running = process(*options, "--out", tmp_path / out, stdout=subprocess.DEVNULL)
            assert running.stderr is not None
            text, silence = read_until_end(running.stderr.fileno(), running, stop_at)
            return running.wait(timeout=600), text, silence
        ours, theirs = pty.openpty()
        running = process(*options, "--out", tmp_path / out, stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        text, silence = read_until_end(ours, running, stop_at)
        os.close(ours)
        return running.wait(timeout=600), text, silence

    code, _, silence = run("whole")
    assert code == 0
    assert silence < 1.5 if not terminal else silence < 1.0
    code, text, _ = run("out", stop_at=b"machine 1,")
    assert code == 130
    assert b"Stopped by Ctrl-C" in text
    assert kw("predict", tmp_path / "out", data, "--out", tmp_path / "p.csv").code == 0
    code, text, _ = run("out")
    assert code == 0
    assert b"Going on" in text
    before, after = settings(tmp_path / "whole"), settings(tmp_path / "out")
    assert after["objective"] == pytest.approx(before["objective"], rel=1e-5)
    assert after["n_machines_now"] < before["n_machines_now"]
