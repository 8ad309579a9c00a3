"""The folder a fit writes to: nothing that others made is removed or written over."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import resource
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kernelweave
from kernelweave.app.cli import _output
from kernelweave.app.cli._folder import HIDDEN, RESULTS, STAGE, OutFolder

pytestmark = pytest.mark.system  # whole commands

Kw = Callable[..., Any]

#: what fits before this one used to remove or write over
ONCE_LOST = ("checkpoint", "checkpoint.previous", "request.json", ".writable")

QUICK = ["--method", "uniform", "--no-tune", "-q"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_files_of_the_user_stay_whatever_they_are_called(kw: Kw, table: Any, tmp_path: Path) -> None:
    path = table()
    for name in ONCE_LOST:
        (tmp_path / name).write_text(f"{name} of mine")
    before = contents(tmp_path)
    result = kw("fit", path, "--out", tmp_path, *QUICK, "--no-report")
    assert result.code == 0, result.err
    after = contents(tmp_path)
    assert {name: after[name] for name in before} == before
    assert (tmp_path / "model.kw").exists()


@pytest.mark.parametrize("name", RESULTS)
def test_results_that_no_fit_wrote_are_refused_and_kept(
    name: str, kw: Kw, table: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("mine")
    refused = kw("fit", table(), "--out", out, *QUICK, "--no-report")
    assert refused.code == 2
    for word in (name, str(out), "--out", "--force"):
        assert word in refused.err
    assert contents(out) == {name: b"mine"}
    assert not (out / HIDDEN).exists()
    forced = kw("fit", table(), "--out", out, *QUICK, "--no-report", "--force")
    assert forced.code == 0, forced.err
    assert f"{name} is kept as {name}.kept1" in forced.err
    assert (out / f"{name}.kept1").read_text() == "mine"
    kernelweave.load_model(out / "model.kw")


def test_a_result_that_was_changed_since_is_not_written_over(kw: Kw, table: Any, tmp_path: Path) -> None:
    out, path = tmp_path / "out", table()
    again = lambda *more: kw("fit", path, "--out", out, *QUICK, "--no-report", *more)  # noqa: E731
    assert again().code == 0
    assert again().code == 0  # what a fit wrote, the next one replaces
    with (out / "weights.csv").open("a") as file:
        file.write("a note of mine\n")
    before = contents(out)
    refused = again()
    assert refused.code == 2
    assert "weights.csv" in refused.err
    assert "model.kw" not in refused.err
    assert contents(out) == before
    (out / "model.kw").unlink()
    (out / "model.kw").symlink_to(tmp_path / "nowhere")
    assert "model.kw, weights.csv" in again().err
    assert again("--force").code == 0
    assert (out / "weights.csv.kept1").read_bytes() == before["weights.csv"]
    assert os.readlink(out / "model.kw.kept1") == str(tmp_path / "nowhere")


def test_a_file_that_appears_during_the_fit_is_kept_too(
    kw: Kw, table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernelweave.app.cli import _run_fit

    out, path = tmp_path / "out", table()
    told = _run_fit.describe

    def meanwhile(*arguments: Any) -> Any:
        (out / "predictions.csv").write_text("mine")
        return told(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(_run_fit, "describe", meanwhile)
        refused = kw("fit", path, "--out", out, *QUICK, "--no-report")
    assert refused.code == 2
    assert contents(out) == {"predictions.csv": b"mine"}
    (out / "predictions.csv").unlink()
    assert "Resuming" in kw("fit", path, "--out", out, *QUICK, "--no-report").err
    assert set(contents(out)) == set(RESULTS) - {"report.html"}


def test_a_folder_of_our_name_that_is_not_ours(kw: Kw, table: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / HIDDEN).mkdir(parents=True)
    (out / HIDDEN / "checkpoint").write_text("mine")
    refused = kw("fit", table(), "--out", out, *QUICK)
    assert refused.code == 2
    assert HIDDEN in refused.err
    assert contents(out / HIDDEN) == {"checkpoint": b"mine"}


def test_the_data_are_not_written_over(kw: Kw, table: Any, tmp_path: Path) -> None:
    path = table(name="predictions.csv")
    before = path.read_bytes()
    for more in ([], ["--force"]):
        refused = kw("fit", path, "--out", tmp_path, *QUICK, *more)
        assert refused.code == 2
        assert "would write over the data" in refused.err
    assert path.read_bytes() == before
    assert kw("fit", path, "--out", tmp_path / "out", *QUICK, "--no-report").code == 0
    for name in (path, tmp_path / "out" / "model.kw"):
        refused = kw("predict", tmp_path / "out", path, "--out", name)
        assert refused.code == 2
        assert "would write over" in refused.err
    assert path.read_bytes() == before


def test_a_report_never_stays_beside_another_model(
    kw: Kw, table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, path = tmp_path / "out", table()
    assert kw("fit", path, "--out", out, *QUICK, "--no-stability").code == 0
    assert (out / "report.html").exists()
    assert kw("fit", path, "--out", out, *QUICK, "--no-report", "--C", "3").code == 0
    assert not (out / "report.html").exists()
    assert kw("report", out, "-q", "--no-stability").code == 0
    assert kw("report", out, "-q", "--no-stability").code == 0
    (out / "report.html").write_text("my words about it")
    refused = kw("report", out, "-q", "--no-stability")
    assert refused.code == 2
    assert "report.html" in refused.err
    assert (out / "report.html").read_text() == "my words about it"
    assert kw("fit", path, "--out", out, *QUICK, "--no-report").code == 2


def full_disk(*arguments: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("fails_after", range(1, 7))
def test_a_full_disk_leaves_the_results_before_and_nothing_else(
    fails_after: int, kw: Kw, table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever file it is that finds no room: the results are those of one fit, and whole."""
    out, path = tmp_path / "out", table()
    assert kw("fit", path, "--out", out, *QUICK, "--no-report").code == 0
    before = contents(out)
    real, room = os.fsync, [fails_after]

    def fsync(descriptor: int) -> None:
        room[0] -= 1
        full_disk() if room[0] <= 0 else real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        failed = kw("fit", path, "--out", out, *QUICK, "--no-report", "--C", "7")
    assert failed.code == 2
    assert "No space left on device" in failed.err
    assert contents(out) == before
    assert not [entry for entry in out.rglob("*") if "part" in entry.name or entry.name == STAGE]
    assert kw("fit", path, "--out", out, *QUICK, "--no-report", "--C", "7").code == 0
    assert json.loads((out / "settings.json").read_text())["request"]["C"] == 7


def test_what_a_killed_fit_left_is_cleaned_at_the_next_start(
    kw: Kw, process: Callable[..., subprocess.Popen[bytes]], table: Any, tmp_path: Path
) -> None:
    out, path = tmp_path / "out", table()
    die = "import os\nfrom kernelweave.app.cli import _run_fit\n_run_fit.csv_text = lambda *a: os._exit(9)"
    assert process("fit", path, "--out", out, *QUICK, "--no-report", prelude=die).wait(timeout=120) == 9
    assert contents(out) == {}
    assert contents(out / HIDDEN / STAGE)
    (out / ".weights.csv.part").write_text("mine")
    OutFolder(out).prepare()
    assert not (out / HIDDEN / STAGE).exists()
    assert contents(out) == {".weights.csv.part": b"mine"}


def cells(text: str) -> list[list[str]]:
    return list(csv.reader(text.splitlines()))


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "'"])
def test_no_text_cell_is_a_formula_and_all_can_be_read_back(start: str) -> None:
    """One apostrophe in front, of names of columns too; taken away again, every cell is what it was."""
    text = f"{start}HYPERLINK(A1)"
    written = _output.csv_text([text, "plain"], [[text, "a=b"], [-1.5, "x"], [-2, "-3"], ["+4e-5", "-"]])
    rows = list(csv.reader(io.StringIO(written, newline="")))
    assert rows[0][0] == rows[1][0] == f"'{text}"
    assert all(cell[:1] not in tuple("=@\t\r") for row in rows for cell in row)
    assert [row[0] for row in rows[2:]] == ["-1.5", "-2", "+4e-5"]  # numbers stay numbers
    assert rows[3][1] == "-3"
    assert [cell.removeprefix("'") for cell in (rows[0][0], rows[1][1], rows[4][1])] == [text, "a=b", "-"]


def test_classes_and_identifiers_that_look_like_formulas(kw: Kw, table: Any, tmp_path: Path) -> None:
    evil = "=cmd|' /C calc'!A0"
    path = table(
        y=[evil, "-no"] * 30, who=[f"@p{k}" for k in range(60)], **{"+a": [k % 7 + k / 60 for k in range(60)]}
    )
    out = tmp_path / "out"
    assert kw("fit", path, "--id", "who", "--out", out, *QUICK, "--no-report", "--kernel", "rbf").code == 0
    for file in ("predictions.csv", "weights.csv"):
        with (out / file).open(newline="") as stream:
            found = list(csv.reader(stream))
        assert all(cell[:1] not in ("=", "@", "\t") for row in found for cell in row)
        assert not any(cell.startswith(("-", "+")) for row in found for cell in row if not _is_number(cell))
    with (out / "predictions.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["truth"].removeprefix("'") for row in rows} == {evil, "-no"}
    assert all(row["who"].removeprefix("'").startswith("@p") for row in rows)
    printed = kw("predict", out, path)
    assert all(cell[:1] not in ("=", "@") for row in cells(printed.out) for cell in row)
    document = json.loads(kw("predict", out, path, "--json").out)
    assert set(document["prediction"]) <= {evil, "-no"}  # JSON is no spreadsheet


def _is_number(cell: str) -> bool:
    try:
        return bool(float(cell)) or True
    except ValueError:
        return False


def test_a_limit_of_the_system_while_predictions_are_written(kw: Kw, table: Any, tmp_path: Path) -> None:
    """A real limit on the size of files, in place of a patched one: the old file stays, alone."""
    out, path = tmp_path / "out", table()
    assert kw("fit", path, "--out", out, *QUICK, "--no-report").code == 0
    place = tmp_path / "here" / "p.csv"
    place.parent.mkdir()
    place.write_text("before")
    old, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, old[1]))
        failed = kw("predict", out, path, "--out", place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert failed.code == 2
    assert "cannot be written" in failed.err
    assert contents(place.parent) == {"p.csv": b"before"}
