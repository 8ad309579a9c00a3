"""Engines that do not hold all matrices equal the dense one on kernels of data, normalised."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.gram import (
    GRAMS,
    BlockedGram,
    CachedGram,
    DenseGram,
    Dictionary,
    FeatureSource,
    FoldSource,
    KernelStack,
    PackedGram,
    StackSource,
    _workers,
    blocks,
    packed,
)
from kernelweave.gram.blocks import Blocks, lower_tiles, normalised
from kernelweave.kernels import (
    NORMALIZATIONS,
    RBF,
    FunctionKernel,
    Laplacian,
    Linear,
    Normalization,
    Polynomial,
)

ENGINES = ["packed", "cached", "blocked"]
NAMES = sorted(NORMALIZATIONS)
KERNELS = [RBF(0.3), Linear(), Polynomial(2, 0.5, 0.7), RBF(0.6), RBF(0.2, columns=[0, 2]), Laplacian(0.4)]


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    """Tiles so small that every pass has several."""
    for module in (blocks, packed):
        monkeypatch.setattr(module, "TILE_ROWS", 64)
    monkeypatch.setattr(blocks, "TILE_COLUMNS", 50)
    monkeypatch.setattr(_workers, "loop_threads", lambda: 1)  # some of the kernels here count calls


@pytest.fixture(name="X")
def samples(rng):
    return rng.normal(size=(150, 3)) + 0.3


def named_kernels():
    return [(f"k{m}", kernel) for m, kernel in enumerate(KERNELS)]


def dictionary(X, normalize="variance", weight=None, **options):
    return Dictionary(FeatureSource(named_kernels(), X, weight), normalize, weight, **options)


def assert_same(gram, dense, rng, near):
    n, M = dense.n_samples, dense.n_kernels
    assert (gram.n_samples, gram.n_kernels) == (n, M)
    weights, A = rng.gamma(1.0, size=M), rng.normal(size=(n, n))
    weights[1:2] = 0.0
    alpha = rng.normal(size=(n, 2)) * (rng.uniform(size=(n, 1)) < 0.6)
    some, kernels = rng.integers(n, size=min(n, 7)), rng.permutation(M)[: max(1, M - 2)]
    np.testing.assert_allclose(gram.combine(weights), dense.combine(weights), **near)
    np.testing.assert_allclose(gram.rows(some, weights), dense.rows(some, weights), **near)
    np.testing.assert_allclose(gram.diag(weights), dense.diag(weights), **near)
    np.testing.assert_allclose(gram.dot(weights, alpha), dense.dot(weights, alpha), **near)
    np.testing.assert_allclose(
        gram.dot(weights, alpha[:, 0], some), dense.dot(weights, alpha[:, 0], some), **near
    )
    np.testing.assert_allclose(gram.quad(alpha), dense.quad(alpha), **near)
    np.testing.assert_allclose(gram.quad(alpha[:, 0], kernels), dense.quad(alpha[:, 0], kernels), **near)
    np.testing.assert_allclose(gram.inner(A + A.T), dense.inner(A + A.T), **near)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("normalize", NAMES)
def test_every_normalisation(X, rng, engine, normalize):
    weight = rng.uniform(0.5, 2.0, size=len(X))
    dense, other = (dictionary(X, normalize, weight, gram=name) for name in ("dense", engine))
    assert isinstance(other.gram, GRAMS[engine])
    assert_same(other.gram, dense.gram, rng, {"rtol": 1e-8, "atol": 1e-9})
    part, kernels = rng.permutation(150)[:90], np.array([4, 0, 2])
    pair = (other.gram.subset(part, kernels), dense.gram.subset(part, kernels))
    assert_same(*pair, rng, {"rtol": 1e-8, "atol": 1e-9})


@pytest.mark.parametrize("normalize", NAMES)
def test_normalisation_constants(X, rng, normalize):
    weight = rng.uniform(0.5, 2.0, size=len(X))
    dense, other = (dictionary(X, normalize, weight, gram=name) for name in ("dense", "blocked"))
    for one, two in zip(dense.normalizations, other.normalizations, strict=True):
        assert vars(one).keys() == vars(two).keys()
        for name in vars(one):
            np.testing.assert_allclose(getattr(two, name), getattr(one, name), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("engine", ENGINES)
def test_single_precision_data(X, rng, engine):
    few = X[:60].astype(np.float32)
    double, single = dictionary(few.astype(np.float64)), dictionary(few, gram=engine)
    assert_same(single.gram, double.gram, rng, {"rtol": 1e-5, "atol": 1e-4})


@pytest.mark.parametrize("engine", ENGINES)
def test_predictions_are_those_of_the_dense_engine(X, rng, engine):
    weights, alpha, new = rng.uniform(size=(1, 6)), rng.normal(size=(150, 1)), rng.normal(size=(9, 3))
    for normalize in NAMES:
        dense, other = (
            dictionary(X, normalize, gram=name).predictor(weights, alpha, np.zeros(alpha.shape[1]))(new)
            for name in ("dense", engine)
        )
        np.testing.assert_allclose(other, dense, rtol=1e-8)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("normalize", ["center", "spherical", "variance", "dimension"])
def test_matrices_of_a_stack_or_a_fold(matrices, rng, engine, normalize):
    Ks, rows = matrices(130, 3), rng.permutation(130)[:100]
    cut = KernelStack(list(Ks))[np.ix_(rows, rows)]
    for source in (lambda: StackSource(cut), lambda: FoldSource(list(Ks), ["a", "b", "c"], rows)):
        pair = [Dictionary(source(), normalize, gram=name).gram for name in (engine, "dense")]
        assert_same(*pair, rng, {"rtol": 1e-8, "atol": 1e-8})


@pytest.mark.parametrize("engine", ENGINES)
def test_dead_and_bad_kernels_are_found_in_blocks_too(X, engine):
    flat = ("flat", FunctionKernel(lambda X, Z: np.full((X.shape[0], Z.shape[0]), 3.0)))
    with pytest.warns(UserWarning, match="without variance on the training samples get weight 0: flat"):
        found = Dictionary(FeatureSource([flat, *named_kernels()], X), "variance", gram=engine)
    np.testing.assert_array_equal(found.live, np.arange(1, 7))
    wild = ("wild", FunctionKernel(lambda X, Z: -X @ Z.T))
    with pytest.raises(ValueError, match="kernel 'wild' is not positive semidefinite"):
        Dictionary(FeatureSource([*named_kernels(), wild], X), "variance", gram=engine)


def test_tiles_cover_the_lower_triangle_once():
    for n in (1, 50, 64, 65, 300):
        seen = np.zeros((n, n), dtype=int)
        for rows, columns in lower_tiles(n):
            seen[rows, columns] += 1
        assert np.all(np.tril(seen) == np.tril(np.ones((n, n))))


class Counting(Laplacian):
    """A kernel that remembers how many values it was asked for."""

    asked = 0

    def _compute(self, X, Z):
        type(self).asked += X.shape[0] * Z.shape[0]
        return super()._compute(X, Z)


def blocks_of(*kernels, X):
    return Blocks.of_kernels([kernel.fit(X) for kernel in kernels], X)


@pytest.mark.parametrize("size", [8, 150])
def test_quadratic_forms_cost_the_pairs_of_the_support(X, size):
    gram, alpha = BlockedGram(blocks_of(Counting(0.3), X=X)), np.zeros(150)
    alpha[:size] = 1.0
    Counting.asked = 0
    gram.quad(alpha)
    assert Counting.asked <= 0.5 * size * (size + 64)


def test_sums_leave_out_kernels_of_weight_zero(X, rng):
    gram = BlockedGram(blocks_of(Counting(0.3), RBF(0.3), X=X))
    Counting.asked = 0
    weights = np.array([0.0, 1.0])
    gram.combine(weights), gram.rows(np.arange(5), weights), gram.dot(weights, rng.normal(size=150))
    assert Counting.asked == 0


def test_sums_on_the_same_rows_share_their_base(X, rng):
    alpha, rows = rng.normal(size=150), np.arange(0, 150, 3)
    gram = BlockedGram(blocks_of(Counting(0.3), X=X))
    Counting.asked = 0
    gram.products(alpha, None, rows)
    assert Counting.asked == 50 * 150
    gram.products(np.where(np.arange(150) < 7, alpha, 0.0), np.arange(1))
    assert Counting.asked == 50 * 150 + 7 * 150


def test_normalisations_take_one_pass_or_none(X):
    for normalize, passes in (("variance", 1), ("center", 1), ("spherical", 1), ("trace", 0), (None, 0)):
        raw = blocks_of(Counting(0.3), X=X)
        raw.diags  # noqa: B018
        Counting.asked = 0
        normalised(raw, normalize, None)
        assert Counting.asked == passes * sum(
            (r.stop - r.start) * (c.stop - c.start) for r, c in lower_tiles(150)
        )


class Halved(Normalization):
    """A rule that does not say what it does to an entry."""

    def _fit(self, K, share):
        return 1.0

    def train(self, K):
        return 0.5 * K


class Greedy(Normalization):
    """A rule that wants two products."""

    def _fit(self, K, share):
        return float(share @ (K @ share) + share @ (K @ (2.0 * share)))


def test_rules_that_need_the_matrix_are_refused(X):
    with pytest.raises(ValueError, match=r"normalize=Halved\(\) has no `entries`.*use gram='dense'"):
        normalised(blocks_of(RBF(0.3), X=X), Halved(), None)
    with pytest.raises(ValueError, match="normalize asks for products with two vectors: use gram='dense'"):
        normalised(blocks_of(RBF(0.3), X=X), Greedy(), None)


@pytest.mark.parametrize("engine", [BlockedGram, CachedGram])
def test_the_sum_is_refused_when_it_does_not_fit(X, rng, engine):
    gram = engine(blocks_of(RBF(0.3), X=X), memory_limit=8 * 150**2 - 1)
    with pytest.raises(
        MemoryError, match=r"sum of the kernels on 150 samples needs 180 KB, memory_limit allows"
    ):
        gram.combine(np.ones(1))
    assert gram.subset(np.arange(149)).combine(np.ones(1)).shape == (149, 149)
    assert gram.rows(np.arange(3), np.ones(1)).shape == (3, 150)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_packed_stores_triangles(X, rng, dtype):
    raw = blocks_of(RBF(0.3), Linear(), RBF(0.6), X=X)
    gram, dense = (
        PackedGram(raw, dtype=dtype),
        DenseGram([kernel.fit(X)(X) for kernel in (RBF(0.3), Linear(), RBF(0.6))]),
    )
    assert gram.triangles.nbytes == 3 * 150 * 151 // 2 * np.dtype(dtype).itemsize
    near = 1e-5 if dtype == np.float32 else 1e-10
    assert_same(gram, dense, rng, {"rtol": near, "atol": 10 * near})
    assert gram.subset(kernels=np.array([2])).triangles is gram.triangles


@pytest.mark.parametrize("engine", ENGINES)
def test_threads_change_nothing(X, rng, engine, monkeypatch):
    weights, alpha, A = rng.uniform(size=6), rng.normal(size=150), rng.normal(size=(150, 150))
    found = []
    for count in (1, 3):
        monkeypatch.setattr(_workers, "loop_threads", lambda count=count: count)
        gram = dictionary(X, "center", gram=engine).gram
        forms = (gram.quad(alpha), gram.inner(A + A.T), gram.diag(weights))
        found.append(
            (*forms, gram.combine(weights), gram.dot(weights, alpha), gram.rows(np.arange(9), weights))
        )
    for one, three in zip(*found, strict=True):
        np.testing.assert_allclose(three, one, rtol=1e-12, atol=1e-12)
