"""The first fit of a second process compiles nothing anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kernelweave

pytestmark = pytest.mark.system

SCRIPT = """
import numpy as np
import kernelweave as kw
from kernelweave.kernels import RBF, Linear, Spectrum, WeightedDegree

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
y = np.arange(40) % 3
words = np.array([["".join(rng.choice(list("ACGT"), 10))] for _ in range(40)])

for loss in ("hinge", "logistic"):
    for p in (1, 2):
        model = kw.MKLClassifier([RBF(), Linear()], loss=loss, regularizer=kw.LpNorm(p=p))
        model.fit(X, y).predict_proba(X)
kw.MKLClassifier(multiclass="ovo").fit(X, y).predict(X)
kw.MKLRegressor(loss="eps_insensitive", regularizer=kw.LpNorm(p=1)).fit(X, X[:, 0]).predict(X)
kw.MKLOneClass().fit(X).predict(X)
strings = [Spectrum(k=2), WeightedDegree(degree=3), WeightedDegree(degree=3, shift=2)]
kw.MKLClassifier(strings, normalize="spherical").fit(words, y).predict(words)
"""


def run(cache: Path) -> None:
    source = Path(kernelweave.__file__).resolve().parents[1]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def files(cache: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.suffix in (".nbi", ".nbc")}


def test_a_second_process_compiles_nothing(tmp_path):
    run(tmp_path)
    first = files(tmp_path)
    names = {path.name.split(".")[0] for path in first}
    assert {"_smo_loops", "_matrix_loops", "_loops"} <= names
    run(tmp_path)
    assert files(tmp_path) == first
