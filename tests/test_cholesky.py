"""Cholesky factors of matrices that rounding made indefinite."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import LinAlgError, cho_solve

from kernelweave._linalg import positive_factor


def test_positive_matrices_are_factored_as_they_are():
    A = np.random.default_rng(0).normal(size=(9, 9))
    A = A @ A.T + np.eye(9)
    np.testing.assert_allclose(cho_solve(positive_factor(A), A), np.eye(9), atol=1e-12)


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_what_is_added_is_of_the_size_of_rounding(size):
    A = np.random.default_rng(1).normal(size=(20, 3))
    A = size * (A @ A.T)  # of rank 3
    A[0, 0] -= 1e-12 * size  # and indefinite
    with pytest.raises(LinAlgError):
        np.linalg.cholesky(A)
    L = np.tril(positive_factor(A)[0])
    assert np.abs(L @ L.T - A).max() <= 1e-10 * size


def test_no_factor_of_what_is_not_finite():
    with pytest.raises(LinAlgError):
        positive_factor(np.array([[-np.inf, 0.0], [0.0, 1.0]]))
