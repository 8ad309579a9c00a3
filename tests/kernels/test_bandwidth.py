"""Bandwidth rules: invariances, and rows of weight w as w equal rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import pairwise
from sklearn.svm import SVC

from kernelweave.kernels import RBF, Chi2, Laplacian, Matern, bandwidth
from kernelweave.kernels.bandwidth import representative_rows, weighted_median

#: rules in which a row of weight w is w equal rows
WEIGHTED = [
    RBF("weighted"),
    RBF("median"),
    Laplacian("weighted"),
    Laplacian("median"),
    Chi2(),
    Matern("weighted"),
    Matern("median"),
]

#: scikit-learn's rule, in which every row counts once
SCALE = [RBF("scale"), Laplacian("scale"), Matern("scale")]

RULES = WEIGHTED + SCALE


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


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kernel", WEIGHTED)
@given(weight=st.lists(st.integers(0, 4), min_size=15, max_size=15).filter(lambda w: sum(map(bool, w)) >= 3))
def test_weights_equal_repeats(kernel, weight):
    X = data()
    weighted = fitted_value(kernel.fit(X, sample_weight=weight))
    repeated = fitted_value(kernel.fit(np.repeat(X, weight, axis=0)))
    assert weighted == pytest.approx(repeated, rel=1e-10)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kernel", SCALE)
@given(weight=st.lists(st.integers(0, 4), min_size=15, max_size=15).filter(any))
def test_scale_counts_every_row_once(kernel, weight):
    X = data()
    assert fitted_value(clone(kernel).fit(X, sample_weight=weight)) == fitted_value(clone(kernel).fit(X))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_scale_is_that_of_scikit_learn(container, weighted):
    rng = np.random.RandomState(3)
    X = rng.gamma(2.0, size=(40, 3)) * (rng.uniform(size=(40, 3)) > 0.4)
    weight = np.arange(40) % 4 if weighted else None  # zeros among them
    X, y = container(X), np.arange(40) % 2
    expected = SVC(gamma="scale").fit(X, y, sample_weight=weight)._gamma
    assert RBF("scale").fit(X, sample_weight=weight).gamma_ == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kernel", [RBF("weighted"), RBF("median"), RBF(0.5), Laplacian("weighted"), Chi2()])
def test_rows_without_weight_may_hold_anything(kernel):
    X, weight = data(), np.arange(15) % 3
    wild = np.where(weight[:, None] > 0, X, np.nan)
    assert clone(kernel).fit(wild, sample_weight=weight).gamma_ == pytest.approx(
        clone(kernel).fit(X, sample_weight=weight).gamma_, rel=1e-12
    )


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
