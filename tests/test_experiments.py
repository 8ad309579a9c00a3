"""The experiments run from end to end in quick mode, and their pages are what their CSV files say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from kernelweave.datasets import find
from kernelweave.reproduce import Mode, listing, load_experiment, run
from kernelweave.reproduce.learned import learned
from kernelweave.reproduce.page import overview, page_from

ROOT = Path(__file__).resolve().parents[1]
EXPERIMENTS = ROOT / "experiments"
PAGES = sorted((ROOT / "docs" / "results" / "data").glob("*/about.csv"))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(listing(EXPERIMENTS)))
def test_quick_mode_ends_with_a_comparison(name, tmp_path):
    missing = [data for data in load_experiment(name, EXPERIMENTS).data if find(data) is None]
    if missing:
        pytest.skip(f"no {missing[0]}.npz: set KERNELWEAVE_DATA to the folder that holds it")
    done = run([name], "quick", tmp_path, folder=EXPERIMENTS, docs=tmp_path, console=Console(quiet=True))
    assert done[name].lines
    assert (tmp_path / f"{name}-quick.csv").is_file()
    assert f"# {name}: " in (tmp_path / "results" / f"{name}.md").read_text()


@pytest.mark.parametrize("about", PAGES, ids=lambda path: path.parent.name)
def test_pages_are_generated_from_their_csv_files(about):
    page = ROOT / "docs" / "results" / f"{about.parent.name}.md"
    assert page.read_text(encoding="utf-8") == page_from(about.parent)


def test_the_collecting_page_is_generated_too():
    results = ROOT / "docs" / "results"
    assert not PAGES or (results / "experiments.md").read_text(encoding="utf-8") == overview(results)


def test_what_we_learned_is_generated_from_the_standings():
    results = ROOT / "docs" / "results"
    page = results / "what-we-learned.md"
    assert (page.read_text(encoding="utf-8") if page.exists() else "") == learned(results)
    assert not page.exists() or "## Ranks" not in learned(results) or page.with_suffix(".png").is_file()


@pytest.mark.parametrize("name", sorted(listing(EXPERIMENTS)))
def test_cells_are_plain_distinct_and_more_in_full_mode(name):
    experiment = load_experiment(name, EXPERIMENTS)
    quick, full = (experiment.cells(Mode(mode)) for mode in ("quick", "full"))
    assert len({experiment.key(cell) for cell in full}) == len(full)
    assert 0 < len(quick) <= len(full)


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXPERIMENTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def gmkl_tables(data_folder, monkeypatch):
    module = load("gmkl_tables")
    monkeypatch.setenv("KERNELWEAVE_DATA", str(data_folder))
    monkeypatch.setattr(module, "COSTS", (10.0,))
    monkeypatch.setattr(module, "STRENGTHS", (1.0, 100.0))
    return module


def test_generalized_mkl_learns_more_than_the_majority(gmkl_tables):
    accuracy, kept = gmkl_tables.quietly(gmkl_tables.plain, "sonar", 0)
    _, _, _, y_test = gmkl_tables.split("sonar", 0)
    majority = 100.0 * max(np.mean(y_test == label) for label in np.unique(y_test))
    assert accuracy > majority + 10.0
    assert 1 <= kept <= 60


def test_selected_features_are_counted_for_both_methods(gmkl_tables):
    theirs, ours = gmkl_tables.quietly(gmkl_tables.selected, "sonar", 0)
    assert len(theirs) == len(ours) == len(gmkl_tables.TABLE_2["sonar"])
    assert min(*theirs, *ours) > 55.0
