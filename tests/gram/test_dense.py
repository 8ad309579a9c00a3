"""DenseGram keeps the matrices it is given."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.gram import DenseGram


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
