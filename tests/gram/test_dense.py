"""DenseGram keeps the matrices it is given."""

from __future__ import annotations

import pickle
from copy import copy

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.gram import DenseGram, Dictionary, dense
from kernelweave.gram._matrix_loops import EACH_COLUMNS
from kernelweave.gram.sources import StackSource


@pytest.mark.parametrize("order", ["C", "F"])
def test_contiguous_matrices_are_not_copied(matrices, order):
    given = [np.array(K, order=order) for K in matrices(6, 3)]
    gram = DenseGram(given)
    assert all(np.shares_memory(kept, K) for kept, K in zip(gram.matrices, given, strict=True))
    part = gram.subset(kernels=np.array([2]))
    assert np.shares_memory(part.matrices[0], given[2])


def test_an_array_of_matrices_is_not_copied(matrices):
    Ks = matrices(6, 3)
    assert all(np.shares_memory(kept, Ks) for kept in DenseGram(Ks).matrices)


def test_scales_leave_the_matrices_alone(matrices):
    Ks = matrices(6, 2)
    before = Ks.copy()
    gram = DenseGram(Ks, scales=np.array([0.5, 2.0]))
    np.testing.assert_allclose(gram.combine(np.ones(2)), 0.5 * before[0] + 2.0 * before[1], rtol=1e-12)
    np.testing.assert_array_equal(Ks, before)
    np.testing.assert_array_equal(gram.subset(kernels=np.array([1])).scales, [2.0])


def test_passes_are_the_share_of_rows_read(matrices):
    gram, alpha, every = DenseGram(matrices(50, 4)), np.ones(50), np.ones(4)
    gram.dot(every, alpha)
    assert gram.n_passes == pytest.approx(1.0)
    gram.dot(every, alpha, np.arange(10))
    assert gram.n_passes == pytest.approx(1.2)
    gram.subset(np.arange(25))
    assert gram.n_passes == pytest.approx(1.325)  # one triangle of a quarter


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("n_kernels", [1, 8, 11])
def test_several_sums_at_once_are_those_one_by_one(monkeypatch, rng, count, n_kernels):
    """Odd numbers of sums, numbers of matrices that are no multiple of eight, two precisions, long rows."""
    monkeypatch.setattr(dense, "CACHED_BYTES", 0)
    n = dense.ROWS_EACH + EACH_COLUMNS + 3
    A = rng.normal(size=(n_kernels, n, 4))
    kinds = [np.float32 if m % 3 == 1 else np.float64 for m in range(n_kernels)]
    matrices = [(own @ own.T).astype(kind) for own, kind in zip(A, kinds, strict=True)]
    gram = DenseGram(matrices, rng.gamma(1.0, size=n_kernels))
    weights = rng.gamma(1.0, size=(count, n_kernels))
    weights[0, : n_kernels // 2] = 0.0
    samples = np.sort(rng.permutation(n)[: n // 2])
    for own, total, part in zip(
        weights, gram.combine_each(weights), gram.square_each(samples, weights), strict=True
    ):
        expected = np.tensordot(own * gram.scales, np.array(matrices, dtype=np.float64), 1)
        np.testing.assert_allclose(total, expected, rtol=1e-13, atol=1e-13 * np.abs(expected).max())
        np.testing.assert_array_equal(total, total.T)
        np.testing.assert_allclose(part, total[np.ix_(samples, samples)], rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("other", [copy, lambda gram: pickle.loads(pickle.dumps(gram))])
def test_copies_read_their_own_matrices(rng, other):
    A = rng.normal(size=(5, 30, 4))
    gram = DenseGram(list(A @ A.transpose(0, 2, 1)))
    weights = rng.gamma(1.0, size=5)
    expected = gram.combine(weights)
    found = other(gram)
    if found.matrices is not gram.matrices:
        for K in gram.matrices:
            K[:] = np.nan
    np.testing.assert_array_equal(found.combine(weights), expected)
    np.testing.assert_array_equal(found.rows(np.array([3]), weights)[0], expected[3])


@pytest.mark.parametrize("other", [copy, lambda gram: pickle.loads(pickle.dumps(gram))])
def test_copies_have_memory_of_their_own(matrices, other):
    """Memory that was released, even twice, is used for one sum at a time."""
    gram = DenseGram(matrices(20, 2))
    total, weights = gram.combine(np.ones(2)), np.array([1.0, 0.5])
    gram.release(total)
    gram.release(total)
    found = other(gram)
    sums = [gram.combine(weights), gram.combine(2.0 * weights), found.combine(3.0 * weights)]
    for times, own in enumerate(sums, start=1):
        expected = times * np.tensordot(weights, np.array(gram.matrices), 1)
        np.testing.assert_allclose(own, expected, rtol=1e-12)


def test_both_values_of_a_certificate_are_of_one_matrix(rng):
    """Of a matrix that is symmetric up to rounding, products are read by rows, forms from one triangle."""
    A = rng.normal(size=(3, 40, 6))
    Ks = A @ A.transpose(0, 2, 1)
    gram = DenseGram(Ks * (1.0 + 1e-6 * rng.normal(size=Ks.shape)), np.array([1.0, 2.0, 0.5]))
    weights, alpha = np.array([0.3, 0.0, 0.7]), rng.normal(size=40)
    before = gram.quad(alpha)
    fitted = gram.dot(weights, alpha)
    assert weights @ gram.quad(alpha) == pytest.approx(alpha @ fitted, rel=1e-13)
    assert weights @ gram.quad(alpha, np.arange(3)[::-1])[::-1] == pytest.approx(alpha @ fitted, rel=1e-13)
    squares, products = DenseGram.quad_and_products(gram, alpha)
    assert weights @ squares == pytest.approx(alpha @ fitted, rel=1e-13)
    np.testing.assert_allclose(weights @ products, fitted, rtol=1e-10, atol=1e-10)
    assert weights @ before != pytest.approx(alpha @ fitted, rel=1e-13)
    np.testing.assert_allclose(gram.quad(2.0 * alpha), 4.0 * before, rtol=1e-12)


def test_sums_without_kernels_are_zero(monkeypatch):
    monkeypatch.setattr(dense, "CACHED_BYTES", 0)
    assert not np.any(DenseGram(np.ones((2, 5, 5))).combine_each(np.zeros((3, 2))))


def test_the_checking_pass_brings_the_diagonals(rng):
    A = rng.normal(size=(3, 20, 5))
    stack = kw.KernelStack([own @ own.T for own in A])
    for kind in ("variance", "trace", None, "center", "spherical"):
        dictionary = Dictionary(StackSource(stack), kind)
        expected = [dictionary.gram.diag(unit) for unit in np.eye(3)]
        np.testing.assert_allclose(dictionary.gram.diagonals(), expected, rtol=1e-12, atol=1e-14)
