from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from reproduce import Mode, NoExperimentsError, listing, load_experiment, run
from reproduce.page import committed, page_of, published
from rich.console import Console

from kernelweave.app.datasets import DataNotFoundError

QUIET = Console(quiet=True)
TEXT = '''"""Squares are squares.

What is done.
"""
import warnings
from pathlib import Path
from _shared import square
from sklearn.exceptions import ConvergenceWarning
from reproduce import Experiment, Mode, Summary, compare, table, threshold, untestable

LOG = Path(__file__).with_name("log")

def cells(mode):
    return [{"base": b, "seed": s} for b in (2, 3) for s in range(mode.count(2, 4))]

def one(base, seed):
    with LOG.open("a") as file:
        file.write(f"{base} {seed}\\n")
    if (LOG.parent / "stop").exists() and base == 3:
        raise KeyboardInterrupt
    if seed == 1:
        warnings.warn("not there yet", ConvergenceWarning)
    return [{"method": m, "value": square(base) + seed} for m in ("a", "b")]

def summarise(rows):
    values = [row["value"] for row in rows if row["base"] == 2]
    return Summary(
        [
            compare("four | six", values, 4.5),
            threshold("over six", values, 6.0, paper="yes", why="it is not"),
            untestable("sevens", "yes", "there are none"),
        ],
        [table("Values", rows, "value", "base", "method")], ["A note."],
    )

def draw(rows):
    from matplotlib.figure import Figure
    figure = Figure(figsize=(2, 2))
    figure.subplots().plot([row["value"] for row in rows])
    return figure

EXPERIMENT = Experiment("squares", "Nobody (1999), Table 1", cells, one, summarise, draw)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "experiments"
    place.mkdir()
    (place / "two_squares.py").write_text(TEXT)
    (place / "_shared.py").write_text("def square(x):\n    return x * x\n")
    return place


def calls(folder: Path) -> list[str]:
    log = folder / "log"
    return log.read_text().split("\n")[:-1] if log.exists() else []


def test_done_cells_are_not_run_again(folder: Path, tmp_path: Path) -> None:
    first = run(["two-squares"], "quick", tmp_path, folder=folder, console=QUIET)
    assert calls(folder) == ["2 0", "2 1", "3 0", "3 1"]
    again = run(["two-squares"], Mode("quick", 3), tmp_path, folder=folder, console=QUIET)
    assert calls(folder)[4:] == ["2 2", "3 2"]
    assert [first["two-squares"].lines[0].n, again["two-squares"].lines[0].n] == [4, 6]
    assert run(["two-squares"], "quick", tmp_path, folder=folder, console=QUIET) == first


def test_a_stopped_run_goes_on(folder: Path, tmp_path: Path) -> None:
    (folder / "stop").touch()
    with pytest.raises(KeyboardInterrupt):
        run(["two-squares"], "quick", tmp_path, folder=folder, console=QUIET)
    (folder / "stop").unlink()
    run(["two-squares"], "quick", tmp_path, folder=folder, console=QUIET)
    assert calls(folder) == ["2 0", "2 1", "3 0", "3 0", "3 1"]


def test_cells_of_some_settings_are_run_alone(folder: Path, tmp_path: Path) -> None:
    run(["two-squares"], "quick", tmp_path, folder=folder, only=["base=2", "seed!=0"], console=QUIET)
    assert calls(folder) == ["2 1"]
    with pytest.raises(NoExperimentsError, match="only='size=2': no setting of the cells"):
        run(["two-squares"], "quick", tmp_path, folder=folder, only=["size=2"], console=QUIET)


def test_what_is_done_can_be_summarised_alone(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NoExperimentsError, match="nothing of two-squares is done"):
        run(["two-squares"], "full", tmp_path, folder=folder, go_on=False, console=QUIET)
    run(["two-squares"], Mode("full", 1), tmp_path, folder=folder, console=QUIET)
    docs = tmp_path / "docs"
    run(["two-squares"], "full", tmp_path, folder=folder, docs=docs, go_on=False, console=QUIET)
    assert len(calls(folder)) == 2
    assert "Not all of it has been run: 2 of 8 cells." in (docs / "results" / "two-squares.md").read_text()


def test_committed_rows_are_not_run_again(folder: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"  # beside the folder of experiments
    first = run(["two-squares"], Mode("full", 2), tmp_path / "1", folder=folder, docs=docs, console=QUIET)
    assert run(["two-squares"], Mode("full", 2), tmp_path / "2", folder=folder, console=QUIET) == first
    assert len(calls(folder)) == 4
    run(["two-squares"], Mode("full", 3), tmp_path / "3", folder=folder, docs=docs, console=QUIET)
    assert calls(folder)[4:] == ["2 2", "3 2"]
    assert len(published("two-squares", docs, folder).rows) == 12
    run(["two-squares"], Mode("full", 1), tmp_path / "4", folder=folder, docs=docs, console=QUIET)
    assert len(published("two-squares", docs, folder).rows) == 12  # nothing that was committed is lost
    run(["two-squares"], Mode("full", 1), tmp_path / "5", folder=folder, again=True, console=QUIET)
    assert calls(folder)[6:] == ["2 0", "3 0"]
    assert committed(docs, "two-squares").is_file()


def test_a_new_version_runs_everything_again(folder: Path, tmp_path: Path) -> None:
    experiment = load_experiment("two-squares", folder)
    keys = [experiment.key(cell) for cell in experiment.cells(Mode())]
    newer = replace(experiment, version="2")
    assert not {newer.key(cell) for cell in newer.cells(Mode())} & set(keys)
    assert experiment.key({"a": 1, "b": 2}) == experiment.key({"b": 2, "a": 1})


@pytest.mark.system
def test_cells_side_by_side_give_the_same_rows(folder: Path, tmp_path: Path) -> None:
    found = [
        run(["two-squares"], "quick", tmp_path / str(jobs), folder=folder, jobs=jobs, console=QUIET)
        for jobs in (1, 2)
    ]
    assert found[0] == found[1]


def test_rows_carry_settings_seconds_and_unconverged_fits(folder: Path, tmp_path: Path) -> None:
    run(["two-squares"], "quick", tmp_path, folder=folder, console=QUIET)
    with (tmp_path / "two-squares-quick.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["base"], row["seed"], row["method"]) for row in rows[:3]] == [
        ("2", "0", "a"),
        ("2", "0", "b"),
        ("2", "1", "a"),
    ]
    assert [row["unconverged"] for row in rows[:4]] == ["0", "0", "1", "1"]
    assert all(float(row["seconds"]) >= 0 for row in rows)


def test_pages_say_what_was_found_and_can_be_made_again(folder: Path, tmp_path: Path) -> None:
    run(["two-squares"], Mode("full", 2), tmp_path, folder=folder, docs=tmp_path / "docs", console=QUIET)
    results = tmp_path / "docs" / "results"
    text = (results / "two-squares.md").read_text()
    assert text == page_of(published("two-squares", tmp_path / "docs", folder), results)
    assert (results / "two-squares.png").stat().st_size < 150_000
    collected = (results / "index.md").read_text()
    tally = "1 contradicted, 1 not testable here | 1 reproduced |"
    assert f"| [two-squares](two-squares.md) | Nobody (1999), Table 1 | {tally}" in collected
    assert "| Nobody (1999) | 0 | 0 | 1 | 0 | 1 |" in collected
    assert "| Nobody (1999) | over six | yes | 4.50 ± 0.29 | contradicted | [two-squares]" in collected
    for part in (
        "# two-squares: squares",
        "*Nobody (1999), Table 1.*",
        "What is done.",
        "`python experiments two-squares --full`",
        "Not all of it has been run: 4 of 8 cells.",
        "[rows.csv.gz](data/two-squares/rows.csv.gz)",
        "4 of 8 rows hold a fit that did not converge",
        "1 reproduced, 1 contradicted, 1 not testable here.",
        "| four \\| six | 4.5 | 4.5 ± 0.3 | 4 | reproduced |",
        "| over six | yes | 4.50 ± 0.29 | 4 | contradicted: it is not |",
        "![squares](two-squares.png)",
        "A note.",
        "## Values",
        "| 2 | 4.50 ± 0.50 | 4.50 ± 0.50 |",
    ):
        assert part in text


def test_large_figures_are_made_smaller(folder: Path, tmp_path: Path) -> None:
    noise = "import numpy as np; X = np.random.default_rng(0).random((300, 300))"
    plain = 'figure.subplots().plot([row["value"] for row in rows])'
    large = TEXT.replace(plain, f"{noise}\n    figure.set_size_inches(5, 5); figure.subplots().imshow(X)")
    (folder / "two_squares.py").write_text(large)
    run(["two-squares"], "quick", tmp_path, folder=folder, docs=tmp_path, console=QUIET)
    assert 10_000 < (tmp_path / "results" / "two-squares.png").stat().st_size <= 150_000


def test_the_comparison_is_printed(folder: Path, tmp_path: Path) -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    run(["two-squares"], "quick", tmp_path, folder=folder, console=console)
    text = console.export_text()
    assert "reproduced" in text
    assert "contradicted: it is not" in text
    assert "two-squares-quick.csv" in text


def test_names_of_files_and_of_experiments(folder: Path) -> None:
    assert listing(folder) == {"two-squares": "Squares are squares."}
    with pytest.raises(NoExperimentsError, match="no experiment 'three'; there are two-squares"):
        load_experiment("three", folder)
    with pytest.raises(NoExperimentsError, match="there are no experiments in"):
        listing(folder / "nowhere")


def test_a_broken_file_hurts_no_other_experiment(folder: Path, tmp_path: Path) -> None:
    (folder / "broken.py").write_text("EXPERIMENT = \n\nEXPERIMENT = (")
    assert listing(folder)["broken"] == "cannot be read"
    assert run(["two-squares"], "quick", tmp_path, folder=folder, console=QUIET)


@pytest.mark.parametrize(("name", "count"), [("fast", None), ("quick", 0)])
def test_modes_are_checked(name: str, count: int | None) -> None:
    with pytest.raises(ValueError, match=r"mode='fast'|repetitions=0"):
        Mode(name, count)


def test_missing_data_stop_one_experiment_and_skip_one_of_many(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(record: object) -> None:
        raise DataNotFoundError("sonar.npz is not on this machine")

    monkeypatch.setattr("kernelweave.app.datasets.loading.folders", lambda: [tmp_path])
    monkeypatch.setattr("kernelweave.app.datasets.loading.fetch", nowhere)
    (folder / "needs_data.py").write_text(TEXT.replace("draw)", 'draw, data=("sonar",))'))
    with pytest.raises(DataNotFoundError, match=r"sonar\.npz"):
        run(["needs-data"], "quick", tmp_path, folder=folder, console=QUIET)
    assert list(run(None, "quick", tmp_path, folder=folder, console=QUIET)) == ["two-squares"]
