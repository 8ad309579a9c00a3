"""Every registered Gram engine equals explicit sums of dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave.gram import GRAMS
from kernelweave.gram.packed import PackedGram

# one sample; fewer and more kernels than are added at once; more rows than fit in one block
SIZES = [(1, 1), (2, 3), (7, 8), (30, 9), (33, 17), (230, 10)]


@pytest.fixture(params=SIZES, ids=str)
def case(request, engine, matrices, rng):
    """An engine, the matrices it stands for (scales included) and weights, one of them zero."""
    n, M = request.param
    raw, scales = matrices(n, M), rng.uniform(0.1, 3.0, size=M)
    weights = rng.gamma(1.0, size=M)
    weights[1:2] = 0.0
    return engine(list(raw), scales), scales[:, None, None] * raw, weights


def total(Ks, weights):
    return np.einsum("m,mij->ij", weights, Ks)


def test_sizes(case):
    gram, Ks, _ = case
    assert (gram.n_kernels, gram.n_samples) == Ks.shape[:2]
    assert gram.n_passes == 0
    assert GRAMS[gram.name] is type(gram)


def test_combine(case):
    gram, Ks, weights = case
    K = gram.combine(weights)
    np.testing.assert_allclose(K, total(Ks, weights), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(K, K.T)
    assert K is not gram.combine(weights)  # the caller's to change


def test_combine_no_kernel(case):
    gram, Ks, weights = case
    np.testing.assert_array_equal(gram.combine(0.0 * weights), np.zeros(Ks.shape[1:]))
    np.testing.assert_array_equal(gram.diag(0.0 * weights), np.zeros(Ks.shape[1]))


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_dot(case, shape, rng):
    gram, Ks, weights = case
    alpha = rng.normal(size=(gram.n_samples, *shape))
    expected = total(Ks, weights) @ alpha
    np.testing.assert_allclose(gram.dot(weights, alpha), expected, rtol=1e-10, atol=1e-10)
    for rows in ([0], [], rng.integers(gram.n_samples, size=5), np.arange(gram.n_samples)[::-1]):
        rows = np.asarray(rows, dtype=int)
        got = gram.dot(weights, alpha, rows)
        assert got.shape == (len(rows), *shape)
        np.testing.assert_allclose(got, expected[rows], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.3, 0.7, 1.0])
def test_quad_of_any_support(case, share, rng):
    gram, Ks, _ = case
    alpha = rng.normal(size=gram.n_samples) * (rng.uniform(size=gram.n_samples) < share)
    expected = np.einsum("i,mij,j->m", alpha, Ks, alpha)
    assert gram.quad(alpha).shape == (gram.n_kernels,)
    np.testing.assert_allclose(gram.quad(alpha), expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(gram.quad(alpha[:, None]), expected, rtol=1e-10, atol=1e-10)


def test_quad_sums_over_columns(case, rng):
    gram, Ks, _ = case
    alpha = rng.normal(size=(gram.n_samples, 3))
    expected = np.einsum("ic,mij,jc->m", alpha, Ks, alpha, optimize=True)
    np.testing.assert_allclose(gram.quad(alpha), expected, rtol=1e-10)
    np.testing.assert_allclose(gram.quad(np.asfortranarray(alpha)), expected, rtol=1e-10)
    each = sum(gram.quad(column) for column in alpha.T)
    np.testing.assert_allclose(each, expected, rtol=1e-10)


def test_rows_and_diag(case, rng):
    gram, Ks, weights = case
    K = total(Ks, weights)
    indices = rng.integers(gram.n_samples, size=4)
    np.testing.assert_allclose(gram.rows(indices, weights), K[indices], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(gram.diag(weights), K.diagonal(), rtol=1e-10, atol=1e-12)
    assert gram.rows(np.empty(0, dtype=int), weights).shape == (0, gram.n_samples)


def test_subset_of_samples_and_kernels(case, rng):
    gram, Ks, weights = case
    samples, kernels = rng.permutation(gram.n_samples)[:20], rng.permutation(gram.n_kernels)[:5]
    parts = [
        (gram.subset(), Ks, weights),
        (gram.subset(samples), Ks[:, samples][:, :, samples], weights),
        (gram.subset(kernels=kernels), Ks[kernels], weights[kernels]),
        (gram.subset(samples, kernels), Ks[kernels][:, samples][:, :, samples], weights[kernels]),
    ]
    for part, expected, d in parts:
        assert isinstance(gram, type(part))  # parts of a store are in memory
        assert (part.n_kernels, part.n_samples) == expected.shape[:2]
        np.testing.assert_allclose(part.combine(d), total(expected, d), rtol=1e-10, atol=1e-12)
        alpha = rng.normal(size=part.n_samples)
        quad = np.einsum("i,mij,j->m", alpha, expected, alpha)
        np.testing.assert_allclose(part.quad(alpha), quad, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("layout", ["F", "strided", "float32", "memory-mapped"])
def test_other_layouts(engine, matrices, rng, layout, tmp_path):
    raw = matrices(40, 9)
    if layout == "memory-mapped":
        np.save(tmp_path / "raw.npy", raw)
    stored = {
        "F": lambda: [np.asfortranarray(K) for K in raw],
        "strided": lambda: list(np.repeat(np.repeat(raw, 2, axis=1), 2, axis=2)[:, ::2, ::2]),
        "float32": lambda: list(raw.astype(np.float32)),
        "memory-mapped": lambda: list(np.load(tmp_path / "raw.npy", mmap_mode="r")),
    }[layout]()
    Ks = np.array([np.asarray(K, dtype=np.float64) for K in stored])
    gram, weights, alpha = engine(stored), rng.gamma(1.0, size=9), rng.normal(size=40)
    exact = {"rtol": 1e-10, "atol": 1e-10}  # accumulated in double precision whatever is stored
    np.testing.assert_allclose(gram.combine(weights), total(Ks, weights), **exact)
    np.testing.assert_allclose(gram.dot(weights, alpha), total(Ks, weights) @ alpha, **exact)
    np.testing.assert_allclose(gram.quad(alpha), np.einsum("i,mij,j->m", alpha, Ks, alpha), **exact)
    two = np.column_stack([alpha, -alpha])
    np.testing.assert_allclose(gram.quad(two), 2 * np.einsum("i,mij,j->m", alpha, Ks, alpha), **exact)
    np.testing.assert_allclose(gram.rows(np.array([3, 1]), weights), total(Ks, weights)[[3, 1]], **exact)
    np.testing.assert_allclose(gram.diag(weights), total(Ks, weights).diagonal(), **exact)
    part = gram.subset(np.array([5, 2, 9]))
    np.testing.assert_allclose(
        part.combine(weights), total(Ks, weights)[np.ix_([5, 2, 9], [5, 2, 9])], **exact
    )


@given(seed=st.integers(0, 10_000), n=st.integers(1, 40), zeros=st.floats(0.0, 1.0))
def test_quad_equals_dot_whatever_the_support(seed, n, zeros):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(2, n, 3))
    Ks = root @ root.transpose(0, 2, 1)
    alpha = rng.normal(size=n) * (rng.uniform(size=n) >= zeros)
    for name in ("dense", "packed", "cached", "blocked"):
        gram = GRAMS[name](list(Ks))
        dots = [alpha @ gram.dot(unit, alpha) for unit in np.eye(2)]
        np.testing.assert_allclose(gram.quad(alpha), dots, rtol=1e-9, atol=1e-9)


def test_passes_count_what_is_read(engine, matrices):
    gram = engine(list(matrices(50, 4)))
    if gram.name == "low_rank":
        pytest.skip("counts factors, which are read whole")
    alpha, one, every = np.ones(50), np.array([1.0, 0, 0, 0]), np.ones(4)
    few = np.where(np.arange(50) < 3, 1.0, 0.0)

    def cost(read, *args):
        before = gram.n_passes
        read(*args)
        return gram.n_passes - before

    assert 0 < cost(gram.combine, every) <= 1
    assert cost(gram.combine, one) == pytest.approx(cost(gram.combine, every) / 4)
    assert 0 < cost(gram.dot, every, alpha) <= 1
    assert 0 < cost(gram.dot, every, alpha, np.arange(10)) <= 0.5
    assert cost(gram.dot, one, alpha) == pytest.approx(cost(gram.dot, every, alpha) / 4)
    assert 0 < cost(gram.quad, few) < cost(gram.quad, alpha) <= 1
    assert 0 < cost(gram.rows, np.arange(2), every) <= 0.2
    assert cost(gram.quad, np.zeros(50)) == 0
    assert 0 <= cost(gram.subset, np.arange(25)) <= 1  # engines that compute on demand read nothing
    assert gram.subset(np.arange(25)).n_passes == 0


def test_engines_that_round_know_the_kernels(matrices, rng):
    """In double precision, on some samples and kernels too; the others have nothing to tell."""
    raw, scales = matrices(30, 9), rng.uniform(0.1, 3.0, size=9)
    gram = PackedGram(list(raw), scales, np.float32)
    samples, kernels = rng.permutation(30)[:12], np.array([7, 0, 3])
    part = gram.subset(samples).subset(kernels=kernels).subset(np.arange(5))
    for engine, chosen, those in ((gram, np.arange(30), np.arange(9)), (part, samples[:5], kernels)):
        alpha = rng.normal(size=len(chosen))
        Ks = (scales[:, None, None] * raw)[np.ix_(those, chosen, chosen)]
        assert engine.rounds
        found = engine.in_double().quad(alpha)
        np.testing.assert_allclose(found, np.einsum("i,mij,j->m", alpha, Ks, alpha), rtol=1e-12)


def test_engines_that_do_not_round(engine, matrices):
    for raw in (matrices(9, 3), matrices(9, 3).astype(np.float32)):
        gram = engine(list(raw))
        assert not gram.rounds
        assert gram.in_double() is None
