"""One kernel: what it captures of residuals, in either form."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave.solvers.greedy.dictionary import Full, LowRank, thin_factor


@pytest.fixture
def parts(rng):
    n = 40
    Phi = rng.normal(size=(n, 5))
    return Phi, rbf_kernel(rng.normal(size=(n, 3))), rng.normal(size=(n, 2)), np.zeros(n)


def captured(K, R, shift):
    return np.trace(R.T @ K @ np.linalg.solve(K + shift * np.eye(len(K)), R))


def test_a_thin_factor_captures_what_its_matrix_does(parts):
    Phi, _, R, mean = parts
    assert LowRank(Phi, mean).captured(R, 0.3) == pytest.approx(captured(Phi @ Phi.T, R, 0.3), rel=1e-12)


def test_a_full_kernel_captures_the_same_at_several_ridges(parts):
    _, K, R, mean = parts
    block = Full(K.copy(), mean, "K")
    for shift in (0.3, 2.0, 0.01, 0.3):
        assert block.captured(np.asfortranarray(R), shift) == pytest.approx(captured(K, R, shift), rel=1e-10)


@pytest.mark.parametrize("factored", [False, True])
def test_the_matrix_survives_its_factor(parts, factored):
    _, K, R, mean = parts
    block = Full(K.copy(), mean, "K")
    if factored:
        block.factor(0.5)
    total = np.asfortranarray(np.eye(len(K)))
    block.add_to(total, 2.0)
    np.testing.assert_allclose(np.tril(total), np.tril(np.eye(len(K)) + 2.0 * K), atol=1e-14)
    assert block.quad(np.asfortranarray(R)) == pytest.approx(np.trace(R.T @ K @ R))


def test_a_thin_block_adds_and_measures(parts):
    Phi, _, R, mean = parts
    total = np.zeros((len(Phi), len(Phi)))
    LowRank(Phi, mean).add_to(total, 0.5)
    np.testing.assert_allclose(total, 0.5 * Phi @ Phi.T)
    assert LowRank(Phi, mean).quad(R) == pytest.approx(np.trace(R.T @ Phi @ Phi.T @ R))


def test_an_indefinite_matrix_is_refused(parts):
    _, K, R, mean = parts
    with pytest.raises(ValueError, match="kernel 'K' is not positive semidefinite"):
        Full(K - 2.0 * np.eye(len(K)), mean, "kernel 'K'").captured(np.asfortranarray(R), 0.1)


def test_a_fast_decaying_kernel_gets_a_thin_factor(rng):
    K, shift = rbf_kernel(rng.normal(size=(400, 1)), gamma=0.3), 0.4
    Phi = thin_factor(K, shift, max_rank=50)
    assert Phi.shape[1] < 50
    left = K - Phi @ Phi.T
    assert np.trace(left) <= 1e-10 * shift
    assert np.linalg.eigvalsh(left).min() > -1e-12
    R = rng.normal(size=(400, 2))
    assert LowRank(Phi, np.zeros(400)).captured(R, shift) == pytest.approx(captured(K, R, shift), rel=1e-9)


def test_a_slowly_decaying_kernel_gets_none(rng):
    assert thin_factor(rbf_kernel(rng.normal(size=(200, 8))), 0.2, max_rank=50) is None
    assert thin_factor(np.eye(100), 1.0, max_rank=50) is None


def test_none_where_rounding_would_hide_what_is_left(rng):
    assert thin_factor(rbf_kernel(rng.normal(size=(200, 1))), 1e-9, max_rank=200) is None
