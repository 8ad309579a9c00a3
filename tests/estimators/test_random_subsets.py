"""Estimators on thousands of kernels that exist as bits and numbers only."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

import kernelweave as kw
from kernelweave.kernels import Linear, random_subsets
from kernelweave.regularizers import LpNorm


@pytest.fixture(name="X")
def samples(rng):
    return rng.normal(size=(70, 20))


@pytest.fixture(name="y")
def labels(X, rng):
    return np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.2 * rng.normal(size=70) > 0


@pytest.mark.wide
@pytest.mark.sampled(3)
@pytest.mark.parametrize("gram", ["dense", "blocked"])
@pytest.mark.parametrize("p", [1.0, 4 / 3])
def test_equals_the_kernels_written_out(X, y, gram, p):
    family = random_subsets(60, max_columns=4, random_state=1)
    options = {"regularizer": LpNorm(p=p), "C": 5.0, "gram": gram, "tol": 1e-6}
    one = kw.MKLClassifier(family, **options).fit(X[:50], y[:50])
    other = kw.MKLClassifier(list(family.expand(X)), **options).fit(X[:50], y[:50])
    assert one.kernel_names_ == other.kernel_names_
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=1e-6, atol=1e-8)
    expected = other.decision_function(X)
    np.testing.assert_allclose(one.decision_function(X), expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(clone(one).fit(X[:50], y[:50]).decision_function(X), expected, atol=1e-7)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(one)).decision_function(X), expected, atol=1e-7)


@pytest.mark.wide
@pytest.mark.sampled(2)
@pytest.mark.parametrize("p", [1.0, 4 / 3])
def test_thousands_of_kernels_to_a_certified_gap(X, y, p):
    family = random_subsets(3000, 3, 5, random_state=0)
    model = kw.MKLClassifier([Linear(), family] if p == 1 else family, regularizer=LpNorm(p=p)).fit(X, y)
    assert model.gram_ == "blocked"
    assert model.dual_gap_ <= 1e-3
    # the functions of the weights and dual variables that are reported, kernel by kernel
    scores, names = np.full(70, model.intercept_), dict(family.expand(X))
    for m in np.flatnonzero(model.weights_):
        K = names.get(model.kernel_names_[m], Linear()).fit(X)(X)
        scores += model.weights_[m] / (K.diagonal().mean() - K.mean()) * (K @ model.dual_coef_)
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-7, atol=1e-7)


def test_several_classes(X, rng):
    y = rng.integers(3, size=70)
    family = random_subsets(40, max_columns=3)
    for multiclass in ("ovr", "ovo", "shared"):
        one = kw.MKLClassifier(family, multiclass=multiclass, gram="blocked").fit(X, y)
        other = kw.MKLClassifier(list(family.expand(X)), multiclass=multiclass, gram="dense").fit(X, y)
        np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-2)


def test_regression(X):
    y = X[:, 2] ** 2
    model = kw.MKLRegressor(random_subsets(2000, max_columns=2), regularizer=LpNorm(p=1)).fit(X[:50], y[:50])
    assert model.dual_gap_ <= 1e-3
    assert model.score(X[:50], y[:50]) > 0.8


@pytest.mark.system
def test_memory_is_far_from_that_of_the_matrices(X, y):
    n_kernels = 6000
    model = kw.MKLClassifier(random_subsets(n_kernels), regularizer=LpNorm(p=4 / 3))
    model.fit(X, y)  # compiled
    tracemalloc.start()
    model.fit(X, y).predict(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.25 * n_kernels * 70 * 70 * 8
