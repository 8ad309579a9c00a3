"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("MPLBACKEND", "Agg")  # before anything imports matplotlib

import numpy as np
import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

# the same examples on every run, and no deadline: the first call may compile
settings.register_profile("kernelweave", derandomize=True, deadline=None)
settings.load_profile("kernelweave")


@pytest.fixture(autouse=True)
def _legacy_seed() -> None:
    """Whatever draws from NumPy's global state (scikit-learn's checks do) draws the same."""
    np.random.seed(0)


@pytest.fixture
def rng() -> np.random.Generator:
    """A freshly seeded generator."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder of real data sets; tests that ask for it are skipped where there is none."""
    folder = Path(os.environ.get("KERNELWEAVE_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}: set KERNELWEAVE_DATA to a folder of .npz data sets")
    return folder


@pytest.fixture(scope="session")
def dask_workers() -> Iterator[Any]:
    """A real Dask cluster, started once: two worker processes of two threads, watched by nannies."""
    distributed = pytest.importorskip("distributed", reason="needs dask and distributed: kernelweave[dask]")
    options = {"processes": True, "dashboard_address": ":0", "memory_limit": "1GB"}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=2, **options) as cluster:
        yield cluster
