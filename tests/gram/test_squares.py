"""Gaussian kernels on many subsets of columns equal the same kernels one by one."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.gram import PackedGram
from kernelweave.gram.blocks import Blocks, normalised
from kernelweave.gram.shared import Shared, pairs_of
from kernelweave.gram.sharing import BATCH, GROUP_SIZES, SharedSquares, code_lines, pack_subsets
from kernelweave.kernels import RBF

ACCURACY = {np.float64: 1e-10, np.float32: 1e-5}

# columns and kernels: one group of columns, several lines of groups, and every size of a group
SIZES = [(1, 1), (7, 5), (9, 40), (60, 3), (60, 30), (61, 600), (150, 520), (300, 20)]


def draw(rng, n, n_columns, n_kernels, dtype=np.float64):
    """Kernels, and the matrices they stand for, from differences in double precision."""
    X = rng.normal(size=(n, n_columns)).astype(dtype)
    masks = rng.uniform(size=(n_kernels, n_columns)) < rng.uniform(0.05, 0.95, size=(n_kernels, 1))
    masks[np.arange(n_kernels), rng.integers(n_columns, size=n_kernels)] = True
    gammas = rng.uniform(0.1, 3.0, size=n_kernels) / masks.sum(axis=1)
    squares = np.square(np.subtract(X[:, None], X[None], dtype=np.float64)).reshape(n * n, -1)
    Ks = np.exp(-gammas[:, None] * (masks.astype(float) @ squares.T)).reshape(-1, n, n)
    return SharedSquares(X, pack_subsets(masks), gammas), Ks


@pytest.fixture(params=SIZES, ids=str)
def sizes(request):
    return request.param


def near(found, expected, dtype, scale=1.0):
    np.testing.assert_allclose(found, expected, rtol=ACCURACY[dtype], atol=ACCURACY[dtype] * scale)


@pytest.mark.wide
@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ACCURACY)
def test_sums_forms_and_values_of_a_tile(rng, sizes, dtype):
    shared, Ks = draw(rng, 40, *sizes, dtype)
    rows, columns = np.array([3, 39, 0, 3]), slice(2, 37)
    base, parts = shared.base(rows, columns), Ks[:, rows, columns]
    factors, W = rng.normal(size=shared.n_kernels), rng.normal(size=parts.shape[1:])
    factors[1::3] = 0.0
    out = np.ones(parts.shape[1:])
    shared.add(base, factors, out, lower=False)
    near(out, 1.0 + np.einsum("k,kij->ij", factors, parts), dtype, np.abs(factors).sum())
    near(shared.inner(base, W, lower=False), np.einsum("ij,kij->k", W, parts), dtype, np.abs(W).sum())
    for k in {0, shared.n_kernels // 2, shared.n_kernels - 1}:
        assert shared.values(base, k).dtype == dtype
        near(shared.values(base, k), parts[k], dtype)


@pytest.mark.parametrize("dtype", ACCURACY)
@pytest.mark.parametrize("n", [1, 15, 16, 129, 200])
def test_only_the_lower_part_of_a_tile_on_the_diagonal(rng, n, dtype):
    shared, Ks = draw(rng, n, 20, 30, dtype)
    base = shared.base(slice(0, n), slice(0, n))
    factors, W = rng.normal(size=30), np.tril(rng.normal(size=(n, n)))
    out = np.zeros((n, n))
    shared.add(base, factors, out, lower=True)
    near(np.tril(out), np.tril(np.einsum("k,kij->ij", factors, Ks)), dtype, np.abs(factors).sum())
    assert not np.triu(out, 1).any()
    near(shared.inner(base, W, lower=True), np.einsum("ij,kij->k", W, Ks), dtype, np.abs(W).sum())


@pytest.mark.wide
@pytest.mark.parametrize("dtype", ACCURACY)
def test_products_of_all_kernels_at_once(rng, sizes, dtype):
    shared, Ks = draw(rng, 33, *sizes, dtype)
    vectors = rng.normal(size=(shared.n_kernels, 33))
    near(shared.products(vectors), np.einsum("kij,kj->ki", Ks, vectors), dtype, 33.0)


def test_products_of_more_samples_than_a_segment_and_more_kernels_than_a_batch(rng):
    shared, Ks = draw(rng, 260, 5, 12)
    vectors = rng.normal(size=(12, 260))
    near(shared.products(vectors), np.einsum("kij,kj->ki", Ks, vectors), np.float64, 260.0)
    shared, Ks = draw(rng, 6, 9, BATCH + 70)
    vectors = rng.normal(size=(BATCH + 70, 6))
    near(shared.products(vectors), np.einsum("kij,kj->ki", Ks, vectors), np.float64, 6.0)


@pytest.mark.parametrize("count", [None, 1, 17, 550])
def test_some_samples_and_some_kernels(rng, count):
    shared, Ks = draw(rng, 30, 24, 600)
    samples, kernels = rng.permutation(30)[:11], None if count is None else rng.permutation(600)[:count]
    chosen = np.arange(600) if kernels is None else kernels
    W = rng.normal(size=(11, 11))
    for some, expected in ((samples, Ks[chosen][:, samples][:, :, samples]), (None, Ks[chosen])):
        part = shared.take(some, kernels)
        n = 30 if some is None else 11
        assert (part.n_samples, part.n_kernels) == (n, len(chosen))
        base = part.base(slice(0, 11), slice(0, 11))
        near(part.inner(base, W, False), np.einsum("ij,kij->k", W, expected[:, :11, :11]), np.float64, 100.0)
        vectors = np.resize(W, (len(chosen), 11))
        products = np.einsum("ki,kij->kj", vectors, expected[:, :11, :11])
        near(part.multiplied(base, vectors), products, np.float64, 100.0)


def test_the_diagonal_is_one_to_the_last_bit(rng):
    shared, _ = draw(rng, 20, 30, 50)
    every = shared.base(slice(0, 20), slice(0, 20))
    np.testing.assert_array_equal([shared.values(every, k).diagonal() for k in range(50)], 1.0)
    np.testing.assert_array_equal(shared.diag(3), np.ones(20))
    factors = rng.normal(size=50)
    np.testing.assert_allclose(shared.diagonal(factors), np.full(20, factors.sum()))


def test_samples_far_apart_have_no_similarity(rng):
    X = rng.normal(size=(5, 8)) * 10.0 ** rng.integers(0, 160, size=(5, 1))
    shared = SharedSquares(X, pack_subsets(np.ones((2, 8), dtype=bool)), np.array([1.0, 1e3]))
    K = shared.values(shared.base(slice(0, 5), slice(0, 5)), 1)
    assert np.isfinite(K).all()
    np.testing.assert_allclose(K, np.eye(5), atol=1e-300)


@pytest.mark.parametrize(("n_columns", "n_kernels"), SIZES)
def test_lines_name_every_column_once(rng, n_columns, n_kernels):
    masks = rng.uniform(size=(n_kernels, n_columns)) < 0.4
    bits, codes, starts = code_lines(pack_subsets(masks), n_columns)
    assert bits in [size for size, _ in GROUP_SIZES]
    for k, mask in enumerate(masks):
        groups, subsets = np.divmod(codes[starts[k] : starts[k + 1]].astype(int), 1 << bits)
        columns = [
            bits * group + c
            for group, subset in zip(groups.flat, subsets.flat, strict=True)
            for c in range(bits)
            if subset >> c & 1
        ]
        assert columns == np.flatnonzero(mask).tolist()


def blocks_of(rng):
    """Kernels computed together, among them two that are not."""
    shared, Ks = draw(rng, 150, 20, 40)
    X = rng.normal(size=(150, 2))
    others = Shared(pairs_of(RBF.base, X), [RBF(gamma).fit(X) for gamma in (0.3, 2.0)])
    every = others.base(slice(0, 150), slice(0, 150))
    blocks = Blocks([shared, others], [np.r_[0:7, 9:42], np.array([8, 7])])
    Ks = np.array([*Ks[:7], others.values(every, 1), others.values(every, 0), *Ks[7:]])
    return blocks, Ks


def test_blocks_of_kernels_computed_together_and_alone(rng):
    blocks, Ks = blocks_of(rng)
    vectors, factors = rng.normal(size=(42, 150)), rng.normal(size=42)
    near(blocks.products(vectors), np.einsum("kij,kj->ki", Ks, vectors), np.float64, 150.0)
    near(blocks.diagonal(factors), np.einsum("k,kii->i", factors, Ks), np.float64)
    near(blocks.diags, np.einsum("kii->ki", Ks), np.float64)
    few = np.array([41, 8, 0])
    expected = np.einsum("kij,kj->ki", Ks[few], vectors[few])
    near(blocks.take(kernels=few).products(vectors[few]), expected, np.float64, 150.0)


@pytest.mark.parametrize("rule", ["variance", "spherical", "center", "trace", None])
def test_normalised_a_few_kernels_at_a_time(rng, rule, monkeypatch):
    blocks, _ = blocks_of(rng)
    weight, factors = rng.uniform(0.5, 2.0, size=150), rng.normal(size=42)
    whole, rules = normalised(blocks, rule, weight)
    monkeypatch.setattr("kernelweave.gram.blocks.PRODUCT_BYTES", 8 * 150 * 5)
    pieces, again = normalised(blocks, rule, weight)
    np.testing.assert_allclose([r.scale_ for r in again], [r.scale_ for r in rules], rtol=1e-12)
    rows, columns = slice(0, 60), np.arange(150)
    near(pieces.sum(rows, columns, factors), whole.sum(rows, columns, factors), np.float64, 10.0)
    near(pieces.diagonal(factors), factors @ whole.diags, np.float64, 10.0)
    if rule != "center":
        assert pieces.means is None
    assert pieces.roots is None  # all on the unit sphere as they are


@pytest.mark.wide
@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_triangles_of_all_kernels_at_once(rng, dtype):
    X = rng.normal(size=(300, 20)).astype(dtype)
    subsets = [RBF(0.1 + m / 20, columns=[m, (m + 3) % 20]).fit(X) for m in range(20)]
    kernels = [RBF(0.1).fit(X), *subsets[:10], RBF(0.3).fit(X), *subsets[10:]]
    for normalize in ("variance", "center"):
        blocks, _ = normalised(Blocks.of_kernels(kernels, X), normalize, None)
        assert any(part.batched for part in blocks.parts)
        triangles = PackedGram(blocks).triangles
        lower = np.tril_indices(300)
        for m, K in blocks.each(slice(0, 300), slice(0, 300)):
            tolerance = 1e-12 if dtype == np.float64 else 1e-5
            np.testing.assert_allclose(triangles[m], K[lower], rtol=tolerance, atol=tolerance)
