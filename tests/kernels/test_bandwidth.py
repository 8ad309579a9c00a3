"""Bandwidth rules: invariances, and rows of weight w as w equal rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import pairwise

from kernelweave.kernels import RBF, Chi2, Laplacian, Matern, bandwidth
from kernelweave.kernels.bandwidth import representative_rows, weighted_median

RULES = [RBF("scale"), RBF("median"), Laplacian("scale"), Laplacian("median"), Chi2(), Matern("median")]


def fitted_value(kernel):
    return kernel.length_scale_ if isinstance(kernel, Matern) else kernel.gamma_


def data(n=15, seed=0):
    return np.random.RandomState(seed).gamma(2.0, size=(n, 3))


@pytest.mark.parametrize(
    ("kernel", "distances"),
    [
        (RBF("median"), pairwise.euclidean_distances(data(), squared=True)),
        (Laplacian("median"), pairwise.manhattan_distances(data())),
        (Chi2("median"), -pairwise.additive_chi2_kernel(data())),
    ],
)
def test_median_rule(kernel, distances):
    pairs = np.sort(distances[np.triu_indices(15, k=1)])
    assert kernel.fit(data()).gamma_ == pytest.approx(1 / pairs[(len(pairs) - 1) // 2])


@pytest.mark.parametrize("kernel", RULES)
@given(weight=st.lists(st.integers(0, 4), min_size=15, max_size=15).filter(lambda w: sum(map(bool, w)) >= 3))
def test_weights_equal_repeats(kernel, weight):
    X = data()
    weighted = fitted_value(kernel.fit(X, sample_weight=weight))
    repeated = fitted_value(kernel.fit(np.repeat(X, weight, axis=0)))
    assert weighted == pytest.approx(repeated, rel=1e-10)


def test_weights_equal_repeats_beyond_the_row_limit(monkeypatch):
    monkeypatch.setattr(bandwidth, "MEDIAN_ROWS", 20)
    X, weight = data(60), np.arange(60) % 4
    weighted = RBF("median").fit(X, sample_weight=weight).gamma_
    assert weighted == pytest.approx(RBF("median").fit(np.repeat(X, weight, axis=0)).gamma_, rel=1e-12)


def test_thinned_median_is_near_the_full_one(monkeypatch):
    X = data(900)
    full = RBF("median").fit(X).gamma_
    monkeypatch.setattr(bandwidth, "MEDIAN_ROWS", 200)
    assert RBF("median").fit(X).gamma_ == pytest.approx(full, rel=0.1)


def test_representative_rows_are_few_and_carry_the_weight(monkeypatch):
    monkeypatch.setattr(bandwidth, "MEDIAN_ROWS", 20)
    rows, weight = representative_rows(data(60), np.ones(60))
    assert len(rows) <= 20
    assert weight.sum() == 20


@pytest.mark.parametrize("kernel", RULES)
def test_order_of_rows_does_not_matter(kernel):
    X = data(40)
    shuffled = X[np.random.RandomState(1).permutation(40)]
    assert fitted_value(kernel.fit(X)) == pytest.approx(fitted_value(kernel.fit(shuffled)), rel=1e-12)


@pytest.mark.parametrize("kernel", RULES)
def test_rules_make_the_kernel_free_of_units(kernel):
    X = data()
    np.testing.assert_allclose(kernel.fit(X)(X), kernel.fit(1000 * X)(1000 * X), rtol=1e-8)


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_scale_survives_a_large_mean(shift):
    X = np.random.RandomState(0).standard_normal((50, 2))
    assert RBF().fit(X + shift).gamma_ == pytest.approx(RBF().fit(X).gamma_, rel=1e-6)


@pytest.mark.parametrize("kernel", RULES)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_constant_data_gives_the_constant_kernel(kernel, value):
    np.testing.assert_allclose(kernel.fit(np.full((7, 3), value))(np.full((7, 3), value)), 1.0)


@pytest.mark.parametrize("kernel", RULES)
def test_one_row(kernel):
    np.testing.assert_allclose(kernel(data(1)), 1.0)


def test_weighted_median():
    assert weighted_median(np.array([3.0, 1.0, 2.0]), np.array([5.0, 1.0, 1.0])) == 3.0
    assert weighted_median(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0])) == 2.0
