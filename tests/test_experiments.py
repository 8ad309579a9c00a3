"""The experiments run from end to end, on one split and few options each."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments"


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
