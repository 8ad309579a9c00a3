"""Ctrl-C in a real process: what is kept, what is said, and how it goes on."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernelweave
from kernelweave.app.cli._facts import file_digest
from kernelweave.app.cli._folder import OutFolder
from kernelweave.app.cli._methods import Options
from kernelweave.app.cli._monitor import Brake
from kernelweave.app.cli._options import KernelChoice, Reading, Source
from kernelweave.app.cli._run_fit import Job

pytestmark = pytest.mark.system  # whole commands

Kw = Callable[..., Any]
Start = Callable[..., subprocess.Popen[bytes]]

#: every machine takes so many seconds longer
SLOW = """
import time
from kernelweave.app.cli import _monitor
told = _monitor.Brake.__call__
def slowly(self, *arguments):
    answer = told(self, *arguments)
    time.sleep({seconds})
    return answer or self.asked
_monitor.Brake.__call__ = slowly
"""

#: the Gram matrices take a minute
STUCK = """
import time
from kernelweave.estimators import _mkl
_mkl.BaseMKL._dictionary = lambda *arguments: time.sleep(60)
"""

#: writes the most processor time between two updates of the display, whatever else the machine is doing
WATCHED = """
import atexit, pathlib, time
from kernelweave.app.cli import _monitor
marks = []
for name in ("_print", "_row"):
    def marked(self, inner=getattr(_monitor.Monitor, name)):
        marks.append(time.process_time())
        return inner(self)
    setattr(_monitor.Monitor, name, marked)
atexit.register(lambda: pathlib.Path({path!r}).write_text(str(max(b - a for a, b in zip(marks, marks[1:])))))
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
    until((out / ".kernelweave" / "checkpoint").exists, running)
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
    assert "Resuming" in resumed.err
    before, after = settings(whole), settings(out)
    assert after["certificate"]["value"] <= 1e-9
    assert after["objective"] == pytest.approx(before["objective"], rel=1e-8)
    assert after["n_machines_now"] < before["n_machines_now"]
    assert after["interrupted"] is False
    assert not list(out.rglob("checkpoint*"))
    weights = [kernelweave.load_model(folder / "model.kw")[-1].weights_ for folder in (whole, out)]
    np.testing.assert_allclose(*weights, atol=1e-4)


def test_a_second_ctrl_c_quits_at_once(process: Start, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    running = process("fit", data, *OPTIONS, "--out", out, prelude=SLOW.format(seconds=30))
    until((out / ".kernelweave" / "checkpoint").exists, running)
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
    assert (out / ".kernelweave" / "checkpoint").exists()
    assert not (out / "model.kw").exists()


def test_before_the_first_machine_there_is_nothing_to_keep(
    process: Start, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    running = process("fit", data, *OPTIONS, "--out", out, prelude=STUCK)
    until((out / ".kernelweave" / "request.json").exists, running)
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "nothing was saved" in err.decode()
    assert "Traceback" not in err.decode()
    assert not (out / "model.kw").exists()


@pytest.mark.parametrize(
    ("method", "n_jobs", "tune"),
    [
        ("lp", 2, "--no-tune"),
        ("lp", 1, "--tune"),
        ("smkl", 1, "--no-tune"),
        ("gomp", 1, "--no-tune"),
        ("gmkl", 2, "--no-tune"),
        ("empirical-bayes", 1, "--no-tune"),
    ],
)
def test_every_method_stops_with_a_model_of_all_classes_and_goes_on(
    method: str, n_jobs: int, tune: str, kw: Kw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C heard after the first machine of the first class, without the process around it."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 4))
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1] ** 2, [-0.3, 0.6])
    np.savez(tmp_path / "d.npz", a=X[:, :2], b=X[:, 2:], y=y)
    options = ["--method", method, tune, "--no-report", "-q", "--n-jobs", n_jobs]
    out = tmp_path / "out"

    def heard(self: Brake, title: str, iteration: int, state: Any) -> bool:
        self.asked, self.n_machines = True, self.n_machines + 1
        return True

    with monkeypatch.context() as patch:
        patch.setattr(Brake, "__call__", heard)
        stopped = kw("fit", tmp_path / "d.npz", *options, "--out", out)
    assert stopped.code == 130, stopped.err
    assert "Stopped by Ctrl-C" in stopped.err
    first = settings(out)
    predicted = json.loads(kw("predict", out, tmp_path / "d.npz", "--json").out)["prediction"]
    assert set(predicted) <= {0, 1, 2}
    resumed = kw("fit", tmp_path / "d.npz", *options, "--out", out, "--resume")
    assert resumed.code == 0, resumed.err
    assert kw("fit", tmp_path / "d.npz", *options, "--out", tmp_path / "whole").code == 0
    last, whole = settings(out), settings(tmp_path / "whole")
    assert last["n_machines_now"] <= whole["n_machines_now"]
    assert last["n_machines_now"] + first["n_machines_now"] > 0
    if method == "lp":
        np.testing.assert_allclose(last["objective"], whole["objective"], rtol=2e-3)


def swallowing(*arguments: Any, **options: Any) -> None:
    """Ctrl-C, and a solver that takes it for a request to finish early."""
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("where", "command", "said"),
    [
        ("_run_fit.make_report", ["fit", "--method", "uniform", "--no-tune"], "the model is in"),
        ("_methods.search_of", ["fit"], "nothing was saved"),
        ("_methods.choose", ["fit", "--no-tune"], "nothing was saved"),
        ("_comparing.run_fold", ["compare"], "no comparison yet"),
    ],
)
def test_ctrl_c_elsewhere_stops_at_once(
    where: str,
    command: list[str],
    said: str,
    kw: Kw,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(f"kernelweave.app.cli.{where}", swallowing)
    out = ["--out", tmp_path / "out"] if command[0] == "fit" else []
    result = kw(command[0], data, *command[1:], *out, "-q")
    assert result.code == 130, result.err
    assert said in result.err
    assert (tmp_path / "out" / "model.kw").exists() == ("the model is in" in said)
    assert signal.getsignal(signal.SIGINT) is before


def leave_checkpoint(kw: Kw, data: Path, out: Path) -> None:
    """The files of a fit that was killed, its checkpoint cut short."""
    reading, choice, options = Reading("y"), KernelChoice(kinds=["rbf"]), Options(p=1.2, method="lp")
    job = Job(Source(data), out, reading, choice, options, 0.25, False, False, [])
    OutFolder(out).start({**job.request, "sha256": file_digest(data)}, None)
    (out / ".kernelweave" / "checkpoint").write_bytes(b"cut")


def test_another_fit_does_not_go_on_from_a_checkpoint(kw: Kw, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    leave_checkpoint(kw, data, out)
    refused = kw("fit", data, *OPTIONS, "--C", "3", "--out", out, "--resume", "-q")
    assert refused.code == 2
    assert "C: 1.0, now 3.0" in refused.err
    afresh = kw("fit", data, *OPTIONS, "--C", "3", "--out", out, "-q")
    assert afresh.code == 0
    assert "Resuming" not in afresh.err


def test_what_is_no_checkpoint_is_named_and_can_be_left_behind(kw: Kw, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    leave_checkpoint(kw, data, out)
    refused = kw("fit", data, *OPTIONS, "--out", out, "-q")
    assert refused.code == 2
    assert str(out / ".kernelweave" / "checkpoint") in refused.err
    assert "--no-resume" in refused.err
    anew = kw("fit", data, *OPTIONS, "--out", out, "-q", "--no-resume")
    assert anew.code == 0, anew.err
    assert settings(out)["certificate"]["certified"] is True


def read_until_end(fd: int, process: subprocess.Popen[bytes], stop_at: bytes) -> bytes:
    """All output; SIGINT as soon as `stop_at` is seen."""
    text, sent = b"", not stop_at
    while True:
        try:
            chunk = os.read(fd, 1 << 16)
        except OSError:  # the other end of a terminal is closed
            chunk = b""
        if not chunk:
            return text
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

    def run(out: str, stop_at: bytes = b"") -> tuple[int, bytes]:
        often = "from kernelweave.app.cli import _monitor\n_monitor.EVERY = 0.5\n"  # a log has ten seconds
        prelude = often + WATCHED.format(path=str(tmp_path / "silence"))
        how = {"prelude": prelude, "stdout": subprocess.DEVNULL}
        ours, theirs = pty.openpty() if terminal else os.pipe()
        running = process(*options, "--out", tmp_path / out, stderr=theirs, **how)
        os.close(theirs)
        text = read_until_end(ours, running, stop_at)
        os.close(ours)
        return running.wait(timeout=600), text

    assert run("whole")[0] == 0
    assert float((tmp_path / "silence").read_text()) < 1.0, (tmp_path / "silence").read_text()
    code, text = run("out", stop_at=b"step 1,")
    assert code == 130
    assert b"Stopped by Ctrl-C" in text
    assert kw("predict", tmp_path / "out", data, "--out", tmp_path / "p.csv").code == 0
    code, text = run("out")
    assert code == 0
    assert b"Resuming" in text
    before, after = settings(tmp_path / "whole"), settings(tmp_path / "out")
    assert after["objective"] == pytest.approx(before["objective"], rel=1e-5)
    assert after["n_machines_now"] < before["n_machines_now"]
