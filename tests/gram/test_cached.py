"""The cache keeps what was asked for last, and never more than it may."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kernelweave.gram import BlockedGram, CachedGram, _workers
from kernelweave.gram.blocks import Blocks
from kernelweave.gram.cached import RowCache
from kernelweave.gram.shared import Distances, Shared, pairs_of
from kernelweave.kernels import RBF, Linear


class Counted(Distances):
    """Distances that count the pairs computed."""

    pairs = 0

    def between(self, rows, columns):
        D = super().between(rows, columns)
        Counted.pairs += D.size
        return D


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch):
    monkeypatch.setattr(_workers, "loop_threads", lambda: 1)  # counts are not shared well


@pytest.fixture(name="X")
def samples(rng):
    return rng.normal(size=(80, 4))


def gram_of(X, rows):
    """A cached engine for two widths that has room for so many rows."""
    Counted.pairs = 0
    blocks = Blocks([Shared(Counted(RBF.base, X), [RBF(g).fit(X) for g in (0.1, 0.3)])], [np.arange(2)])
    return CachedGram(blocks, cache_bytes=rows * 80 * 8)


def test_the_oldest_rows_give_way(X):
    cache = RowCache(pairs_of(RBF.base, X), size=3 * 80 * 8)
    assert (cache.capacity, cache.store.nbytes) == (3, 3 * 80 * 8)
    for sample in (5, 6, 7, 5, 8):
        cache.fetch(np.array([sample]), evict=True)
    assert list(cache.slots) == [7, 5, 8]
    cache.fetch(np.array([1, 2]), evict=False)
    assert list(cache.slots) == [7, 5, 8]
    cache.fetch(np.array([1, 8, 1]), evict=True)
    assert list(cache.slots) == [5, 8, 1]
    out = np.empty((3, 80))
    np.testing.assert_array_equal(cache.read(np.array([8, 0, 1]), slice(0, 80), out), [1])
    D = pairs_of(RBF.base, X).between(np.array([8, 1]), slice(0, 80))
    np.testing.assert_allclose(out[[0, 2]], D, atol=1e-12)


def test_more_rows_than_fit_are_cut_off(X):
    cache = RowCache(pairs_of(RBF.base, X), size=3 * 80 * 8)
    cache.fetch(np.arange(10), evict=True)
    assert list(cache.slots) == [0, 1, 2]
    assert RowCache(pairs_of(RBF.base, X), size=1).capacity == 1
    assert RowCache(pairs_of(RBF.base, X), size=10**9).capacity == 80


def test_rows_asked_for_again_are_not_computed_again(X):
    gram, weights = gram_of(X, rows=20), np.array([0.5, 2.0])
    rows = gram.rows(np.arange(15), weights)
    assert Counted.pairs == 15 * 80
    np.testing.assert_array_equal(gram.rows(np.arange(15), weights), rows)
    gram.rows(np.arange(15), 3.0 * weights)  # other weights, same distances
    gram.dot(weights, np.ones(80), np.arange(15))
    gram.products((np.arange(80) < 15).astype(float), np.arange(2))  # both kernels from one row
    assert Counted.pairs == 15 * 80


def test_a_pass_fills_a_cache_that_holds_everything(X):
    gram, weights = gram_of(X, rows=80), np.array([0.5, 2.0])
    first = gram.combine(weights)
    computed = Counted.pairs
    assert computed == 80 * 80
    np.testing.assert_array_equal(gram.combine(weights), first)
    alpha = np.where(np.arange(80) % 3 == 0, 1.0, 0.0)
    gram.quad(alpha), gram.inner(first), gram.dot(weights, alpha)
    assert Counted.pairs == computed


def test_a_pass_pushes_nothing_out(X):
    gram, weights = gram_of(X, rows=10), np.array([0.5, 2.0])
    gram.rows(np.arange(70, 80), weights)
    gram.combine(weights)
    Counted.pairs = 0
    gram.rows(np.arange(70, 80), weights)
    assert Counted.pairs == 0


def test_a_subset_shares_the_cache(X):
    gram, weights = gram_of(X, rows=80), np.array([0.5, 2.0])
    first = gram.combine(weights)
    Counted.pairs = 0
    some, kernels = np.arange(79, 20, -3), np.array([1])
    part = gram.subset(some, kernels)
    np.testing.assert_array_equal(gram.subset(some).combine(weights), first[np.ix_(some, some)])
    np.testing.assert_array_equal(part.rows(np.arange(3), np.ones(1)).shape, (3, 20))
    assert Counted.pairs == 0
    assert part.blocks.parts[0].pairs.cache is gram.blocks.parts[0].pairs.cache


@pytest.mark.parametrize("rows", [1, 7, 79, 80])
def test_any_size_gives_the_same_numbers(X, rng, rows):
    kernels = [kernel.fit(X) for kernel in (RBF(0.1), Linear(), RBF(0.3))]
    cached = CachedGram(Blocks.of_kernels(kernels, X), cache_bytes=2 * rows * 80 * 8)
    plain = BlockedGram(Blocks.of_kernels(kernels, X))
    near = {"rtol": 1e-10, "atol": 1e-10}
    for _ in range(6):
        weights, some = rng.uniform(size=3), rng.integers(80, size=9)
        alpha = rng.normal(size=80) * (rng.uniform(size=80) < 0.5)
        np.testing.assert_allclose(cached.rows(some, weights), plain.rows(some, weights), **near)
        np.testing.assert_allclose(cached.quad(alpha), plain.quad(alpha), **near)
        np.testing.assert_allclose(cached.dot(weights, alpha), plain.dot(weights, alpha), **near)
        np.testing.assert_allclose(cached.dot(weights, alpha, some), plain.dot(weights, alpha, some), **near)
    assert all(part.pairs.cache.store.nbytes <= rows * 80 * 8 for part in cached.blocks.parts)


def test_threads_may_share_a_cache(X, rng):
    gram, weights = gram_of(X, rows=5), np.array([0.5, 2.0])
    K = BlockedGram(Blocks.of_kernels([RBF(0.1).fit(X), RBF(0.3).fit(X)], X)).combine(weights)
    asked = [rng.integers(80, size=4) for _ in range(200)]
    with ThreadPoolExecutor(4) as pool:
        for indices, rows in zip(asked, pool.map(lambda some: gram.rows(some, weights), asked), strict=True):
            np.testing.assert_allclose(rows, K[indices], rtol=1e-10)
