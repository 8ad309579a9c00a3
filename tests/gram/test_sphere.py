"""Matrices with the distances of others and a constant diagonal, against their explicit form."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.gram import DenseGram
from kernelweave.gram.sphere import SphereGram

N, M = 9, 4


@pytest.fixture
def pair(rng):
    """An engine, and one of the matrices kappa - ||x_i - x_j||^2 / 2."""
    roots = rng.normal(size=(M, N, 3))
    Ks = roots @ roots.transpose(0, 2, 1)
    squares = ((roots[:, :, None] - roots[:, None]) ** 2).sum(axis=3)
    tops = Ks.diagonal(axis1=1, axis2=2).max(axis=1)
    return SphereGram(DenseGram(Ks)), DenseGram(tops[:, None, None] - 0.5 * squares)


def assert_same(found, expected, rng):
    d, n = rng.uniform(size=found.n_kernels), found.n_samples
    A, some = rng.normal(size=(n, n)), np.array([3, 1])
    A = A + A.T
    np.testing.assert_allclose(found.combine(d), expected.combine(d), rtol=1e-12)
    np.testing.assert_allclose(found.diag(d), expected.diag(d), rtol=1e-12)
    np.testing.assert_allclose(found.rows(some, d), expected.rows(some, d), rtol=1e-12)
    np.testing.assert_allclose(found.inner(A), expected.inner(A), rtol=1e-10)
    for alpha in (rng.normal(size=n), rng.normal(size=(n, 2))):
        np.testing.assert_allclose(found.dot(d, alpha), expected.dot(d, alpha), rtol=1e-10)
        np.testing.assert_allclose(found.dot(d, alpha, some), expected.dot(d, alpha, some), rtol=1e-10)
        np.testing.assert_allclose(found.quad(alpha), expected.quad(alpha), rtol=1e-10)
        np.testing.assert_allclose(found.quad(alpha, some[1:]), expected.quad(alpha, some[1:]), rtol=1e-10)


def test_every_method_is_that_of_the_explicit_matrices(pair, rng):
    assert_same(*pair, rng)


def test_parts_keep_their_constants(pair, rng):
    samples, kernels = np.array([7, 0, 2, 5]), np.array([2, 0])
    assert_same(*(gram.subset(samples) for gram in pair), rng)
    assert_same(*(gram.subset(kernels=kernels) for gram in pair), rng)
    assert_same(*(gram.subset(samples, kernels) for gram in pair), rng)


def test_shares_of_samples_have_squares_that_are_not_negative(pair, rng):
    for concentration in (0.05, 1.0):
        shares = rng.dirichlet(np.full(N, concentration), size=200)
        assert min(pair[0].quad(share).min() for share in shares) >= -1e-12


def test_passes_are_those_of_the_matrices(pair):
    gram = pair[0]
    before = gram.n_passes
    gram.combine(np.ones(M))
    assert gram.n_passes == gram.gram.n_passes > before
    assert gram.nbytes > gram.gram.nbytes
    assert gram.in_double() is None
