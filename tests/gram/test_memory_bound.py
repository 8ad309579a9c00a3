"""Memory stays within the limit: every array is counted while a fit runs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernelweave import MKLClassifier
from kernelweave.gram import GRAMS, Dictionary, FeatureSource
from kernelweave.gram.choice import Task
from kernelweave.kernels import RBF

pytestmark = pytest.mark.system


def data(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    return X, (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n) > 1).astype(int)


def kernels(M: int) -> list[RBF]:
    return [RBF(0.3 * 1.1**-m) for m in range(M)]


def peak_of(run: Callable[[], Any]) -> tuple[int, Any]:
    """Most bytes held at one time, and the result."""
    tracemalloc.start()
    try:
        result = run()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "bound"), [("dense", None), ("packed", None), ("packed", 1), ("cached", None)]
)
def test_a_fit_stays_within_the_least_limit_of_its_engine(name, bound):
    limit = GRAMS[name].needs(Task(n_kernels=60, n_bases=1, n_samples=1000, limit=bound)).bytes
    X, y = data(1000)
    fit = MKLClassifier(kernels(60), memory_limit=limit, tol=0.02).fit
    fit(X, y)  # compiles, which takes memory too
    peak, model = peak_of(lambda: fit(X, y))
    assert model.gram_ == name
    assert peak < limit


def test_a_fit_in_blocks_takes_little_more_than_its_sums():
    limit = 5 * 8 * 1000**2
    X, y = data(1000)
    fit = MKLClassifier(kernels(60), gram="blocked", memory_limit=limit, tol=0.02).fit
    assert peak_of(lambda: fit(X, y))[0] < limit


def test_rows_and_forms_of_many_samples_take_a_few_tiles():
    n, limit = 30_000, 200 * 10**6  # one matrix alone would take 7.2 GB
    source = FeatureSource([(str(m), kernel) for m, kernel in enumerate(kernels(10))], data(n)[0])
    alpha, weights = np.where(np.arange(n) < 600, 1.0, 0.0), np.ones(10)

    def work() -> str:
        gram = Dictionary(source, None, None, limit, gram="auto", combined=False).gram
        gram.quad(alpha), gram.rows(np.arange(40), weights), gram.dot(weights, alpha, np.arange(50))
        return gram.name

    peak, name = peak_of(work)
    assert name == "blocked"
    assert peak < limit


def test_cached_rows_of_many_samples_stay_within_the_limit():
    n, limit = 10_000, 150 * 10**6
    source = FeatureSource([(str(m), kernel) for m, kernel in enumerate(kernels(10))], data(n)[0])

    def work() -> str:
        gram = Dictionary(source, None, None, limit, gram="auto", combined=False).gram
        for start in range(0, n, 500):
            gram.rows(np.arange(start, start + 100), np.ones(10))
        return gram.name

    peak, name = peak_of(work)
    assert name == "cached"
    assert peak < limit
