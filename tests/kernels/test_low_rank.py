"""Exact thin factors of kernels: Phi Phi' is the Gram matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from kernelweave.kernels import RBF, Constant, Linear, Polynomial
from kernelweave.kernels.normalize import NORMALIZATIONS

X = np.random.default_rng(0).normal(size=(40, 3))

THIN = [
    (Linear(), 3),
    (Linear(columns=[1]), 1),
    (Polynomial(degree=2), 10),
    (Polynomial(degree=3, gamma=0.5, coef0=2.0, columns=[0, 2]), 10),
    (Polynomial(degree=3, coef0=0.0, columns=[0, 2]), 4),
    (Constant(2.0), 1),
    (2.5 * Linear(), 3),
    (Linear() + Polynomial(degree=2, columns=[0]) + 1.0, 7),
    (Linear() * Polynomial(degree=2, columns=[0]), 9),
]


@pytest.mark.parametrize(("kernel", "rank"), THIN, ids=lambda part: getattr(part, "label", str(part)))
def test_the_factor_gives_the_gram_matrix(kernel, rank):
    Phi = kernel.fit(X).low_rank(X)
    assert Phi.shape == (40, rank)
    np.testing.assert_allclose(Phi @ Phi.T, kernel(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("kernel", "rank"), THIN, ids=lambda part: getattr(part, "label", str(part)))
def test_no_factor_wider_than_asked_for(kernel, rank):
    assert kernel.fit(X).low_rank(X, max_rank=rank - 1) is None
    assert kernel.low_rank(X, max_rank=rank) is not None


@pytest.mark.parametrize("kernel", [RBF(), RBF() + Linear(), RBF() * Linear(), 2.0 * RBF()])
def test_kernels_of_high_rank_have_none(kernel):
    assert kernel.fit(X).low_rank(X) is None


def test_factors_of_new_and_training_samples_match():
    kernel = (Linear() + Polynomial(degree=2)).fit(X[:30])
    np.testing.assert_allclose(
        kernel.low_rank(X[30:], 20) @ kernel.low_rank(X[:30], 20).T, kernel(X[30:], X[:30])
    )


@pytest.mark.parametrize("kernel", [Linear(columns=[0, 1]), Polynomial(degree=2)])
def test_sparse_input(kernel):
    np.testing.assert_allclose(kernel.low_rank(sparse.csr_matrix(X)), kernel.low_rank(X))


@pytest.mark.parametrize("name", sorted(NORMALIZATIONS))
def test_normalising_the_factor_normalises_the_matrix(name):
    Phi, weight = Polynomial(degree=2).low_rank(X), np.linspace(0.5, 2.0, 40)
    rule = NORMALIZATIONS[name]().fit(Phi @ Phi.T, weight)
    new = rule.train_factor(Phi)
    np.testing.assert_allclose(new @ new.T, rule.train(Phi @ Phi.T), atol=1e-12)
