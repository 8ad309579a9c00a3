"""Kernels of low rank equal the matrices they stand for, and say how far they are from the kernels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from kernelweave.gram import Dictionary, FeatureSource
from kernelweave.gram.lowrank import (
    ComputedFactors,
    FactoredMatrix,
    LowRankGram,
    Nystroem,
    RandomFourier,
    StoredFactors,
    resolve_approximation,
)
from kernelweave.gram.lowrank import dictionary as lowrank_dictionary
from kernelweave.gram.lowrank.approximations import ridge_leverage
from kernelweave.gram.lowrank.dictionary import LowRankDictionary, missing_energy
from kernelweave.kernels import RBF, Laplacian, Linear, Polynomial, Spectrum
from kernelweave.solvers.multiple.newton_weights import projected_inverse

KERNELS = [RBF(0.3), Linear(), Polynomial(2), RBF(2.0, columns=[0, 1])]


@pytest.fixture(name="X")
def samples(rng):
    return rng.normal(size=(60, 4))


def dictionary(X, approximation="nystroem", rank=30, normalize="variance", kernels=KERNELS, **options):
    source = FeatureSource([(f"k{m}", clone(kernel)) for m, kernel in enumerate(kernels)], X)
    return LowRankDictionary(source, approximation, rank, normalize, random_state=0, **options)


def factors_of(found):
    return [
        found.gram.factors.rows(np.arange(found.gram.n_samples), [m]) for m in range(found.gram.n_kernels)
    ]


@pytest.fixture
def case(rng):
    """Factors in memory, the matrices they stand for and weights, one of them zero."""
    factors = [rng.normal(size=(50, rank)) for rank in (3, 1, 7)]
    scales, weights = rng.uniform(0.5, 2.0, size=3), np.array([0.7, 0.0, 1.3])
    Ks = np.array([s * Z @ Z.T for s, Z in zip(scales, factors, strict=True)])
    return LowRankGram(StoredFactors(factors), scales), Ks, weights


def test_the_engine_equals_explicit_sums(case, rng):
    gram, Ks, weights = case
    total, alpha, rows = np.einsum("m,mij->ij", weights, Ks), rng.normal(size=(50, 2)), np.array([4, 0, 9])
    np.testing.assert_allclose(gram.dot(weights, alpha), total @ alpha)
    np.testing.assert_allclose(gram.dot(weights, alpha[:, 0], rows), (total @ alpha[:, 0])[rows])
    np.testing.assert_allclose(gram.products(alpha[:, 0], None, rows), (Ks @ alpha[:, 0])[:, rows])
    each = gram.quad_each(alpha)
    np.testing.assert_allclose(each, np.einsum("ic,mij,jc->cm", alpha, Ks, alpha))
    np.testing.assert_allclose(gram.quad(alpha), np.einsum("ic,mij,jc->m", alpha, Ks, alpha))
    np.testing.assert_allclose(gram.quad(alpha, np.array([2])), gram.quad(alpha)[2:])
    np.testing.assert_allclose(gram.inner(total), np.einsum("ij,mij->m", total, Ks))
    np.testing.assert_allclose(gram.rows(rows, weights), total[rows])
    np.testing.assert_allclose(gram.diag(weights), total.diagonal())
    part = gram.subset(rows, np.array([0, 2]))
    np.testing.assert_allclose(
        part.dot(np.ones(2), alpha[rows]), Ks[[0, 2]].sum(0)[np.ix_(rows, rows)] @ alpha[rows]
    )


def test_the_sum_is_formed_only_where_samples_are_few(case, rng):
    gram, Ks, weights = case
    assert isinstance(gram.combine(weights), FactoredMatrix)
    few = gram.subset(np.arange(10))
    np.testing.assert_allclose(few.combine(weights), np.einsum("m,mij->ij", weights, Ks)[:10, :10])


@pytest.mark.parametrize("tied", [True, False])
def test_the_inverse_form_is_that_of_the_matrix(case, rng, tied):
    gram, Ks, weights = case
    extra, G, rows = rng.uniform(0.5, 2.0, size=30), rng.normal(size=(30, 2)), np.arange(0, 50)[:30]
    K = np.einsum("m,mij->ij", weights, Ks)[np.ix_(rows, rows)]
    found = gram.combine(weights).inverse_form(rows, extra, G, tied)
    np.testing.assert_allclose(found, projected_inverse(K, extra, [G], tied)[0], rtol=1e-6)


@pytest.mark.parametrize("centred", [True, False])
def test_weighted_products_of_rows(case, rng, centred, monkeypatch):
    monkeypatch.setattr("kernelweave.gram.lowrank.factors.GATHER_BYTES", 1)
    gram, _, weights = case
    K, rows, w = gram.combine(weights), np.arange(0, 50, 3), rng.uniform(size=17)
    Z = K.rows(rows)
    Z = Z - w @ Z / w.sum() if centred else Z
    np.testing.assert_allclose(K.weighted_gram(rows, w, centred), (Z * w[:, None]).T @ Z, atol=1e-12)


@pytest.mark.parametrize("normalize", ["variance", "spherical", "trace", "dimension", "center", None])
def test_full_rank_is_the_kernel_itself(X, normalize):
    kernels = [RBF(0.3), Linear(), Polynomial(2)]
    low = dictionary(X, rank=60, normalize=normalize, kernels=kernels)
    source = FeatureSource([(f"k{m}", clone(kernel)) for m, kernel in enumerate(kernels)], X)
    full = Dictionary(source, normalize)
    for weights in np.eye(3):
        np.testing.assert_allclose(
            low.gram.rows(np.arange(60), weights), full.gram.combine(weights), atol=1e-6
        )
    assert low.errors() == pytest.approx(0.0, abs=1e-7)


def test_computed_factors_equal_stored_ones(X, rng, monkeypatch):
    monkeypatch.setattr("kernelweave.gram.lowrank.factors.BLOCK_BYTES", 8 * 100 * 7)
    stored = dictionary(X, normalize="center")
    computed = dictionary(X, normalize="center", memory_limit=1)
    assert isinstance(computed.gram.factors, ComputedFactors)
    assert "computed again" in computed.gram_reason
    weights, alpha = np.array([0.5, 1.0, 0.0, 2.0]), rng.normal(size=(60, 2))
    for one in (lambda g: g.dot(weights, alpha), lambda g: g.quad(alpha), lambda g: g.diag(weights)):
        np.testing.assert_allclose(one(computed.gram), one(stored.gram), rtol=1e-5, atol=1e-5)
    some = np.array([5, 3])
    np.testing.assert_allclose(
        computed.gram.subset(some).diag(weights), stored.gram.diag(weights)[some], rtol=1e-5
    )


def test_single_precision_sums_in_double(rng):
    Z = rng.normal(size=(200_000, 2)).astype(np.float32) + 1.0
    alpha = rng.uniform(size=(200_000, 1))
    found = StoredFactors([Z]).adjoint(alpha, [0])[0]
    exact = Z.T.astype(np.float64) @ alpha.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(found, exact, rtol=1e-6)


@pytest.mark.parametrize("landmarks", ["uniform", "kmeans", "leverage"])
def test_nystroem_stays_below_the_kernel(X, landmarks):
    kernel = RBF(0.5).fit(X)
    (phi,) = Nystroem(landmarks).maps([kernel], X, 15, np.random.default_rng(0))
    Z, K = phi(X), kernel(X)
    values = np.linalg.eigvalsh(K - Z @ Z.T)
    assert values.min() > -1e-10
    assert phi.rank <= 15
    assert values.max() <= np.trace(K - Z @ Z.T)


@pytest.mark.parametrize("landmarks", ["kmeans", "leverage"])
def test_chosen_landmarks_are_better_than_random_ones(landmarks):
    rng = np.random.default_rng(0)
    centers = rng.normal(scale=5.0, size=(12, 2))
    # most samples lie in one cluster: random landmarks miss the small ones
    sizes = [900, *[10] * 11]
    X = np.vstack([c + 0.1 * rng.normal(size=(n, 2)) for c, n in zip(centers, sizes, strict=True)])
    kernel = RBF(1.0).fit(X)

    def missing(how):
        draws = (Nystroem(how).maps([kernel], X, 15, np.random.default_rng(s))[0](X) for s in range(10))
        return np.mean([len(X) - (Z**2).sum() for Z in draws])

    assert missing(landmarks) < 0.75 * missing("uniform")


def test_leverage_scores_are_those_of_the_matrix(rng):
    B = rng.normal(size=(40, 8))
    K = B @ B.T
    scores = ridge_leverage(B, K.diagonal(), 4.0)
    values = np.linalg.eigvalsh(K)

    def total(lam):
        return (values / (values + lam)).sum() - 4.0

    low, high = 1e-6, 1e6
    for _ in range(200):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if total(middle) > 0 else (low, middle)
    np.testing.assert_allclose(scores, np.diag(K @ np.linalg.inv(K + low * np.eye(40))), rtol=1e-5)


@pytest.mark.parametrize("kernel", [RBF(0.4), Laplacian(0.2)])
def test_random_frequencies_give_the_kernel_on_average(X, kernel):
    (phi,) = RandomFourier().maps([kernel.fit(X)], X, 40_000, np.random.default_rng(0))
    Z = phi(X)
    assert abs(Z @ Z.T - kernel(X)).max() < 5.0 / 20_000**0.5
    (other,) = RandomFourier().maps([Polynomial(5).fit(X)], X, 10, np.random.default_rng(0))
    assert other.below


def test_exact_factors_wherever_they_are_small(X):
    found = dictionary(X, rank=20)
    assert [one.map.exact for one in found.features] == [False, True, True, False]
    assert [one.map.rank for one in found.features][1:3] == [4, 15]


def test_strings_and_sparse_data_have_landmarks(rng):
    words = np.array([["".join(rng.choice(list("ab"), 6))] for _ in range(30)], dtype=object)
    kernel = Spectrum(2).fit(words)
    (phi,) = Nystroem().maps([kernel], words, 20, np.random.default_rng(0))
    assert abs(phi(words) @ phi(words).T - kernel(words)).max() < 1e-8
    with pytest.raises(ValueError, match="not a kernel of numbers"):
        Nystroem("kmeans").maps([kernel], words, 5, np.random.default_rng(0))
    X = sparse.random(50, 8, density=0.4, random_state=0, format="csr")
    found = dictionary(X, kernels=[RBF(0.3), Linear()], rank=50)
    np.testing.assert_allclose(
        found.gram.diag(np.array([1.0, 0.0])) / found.features[0].scale, 1.0, rtol=1e-8
    )


@pytest.mark.parametrize("normalize", ["variance", "spherical", "center", None])
def test_the_bound_on_what_is_missing_holds(X, rng, normalize, monkeypatch):
    found = dictionary(X, rank=8, normalize=normalize)
    source = FeatureSource([(f"k{m}", clone(kernel)) for m, kernel in enumerate(KERNELS)], X)
    rules = {"center": "center", "spherical": "spherical"}
    full = Dictionary(source, rules.get(normalize))
    scales = np.array([one.scale for one in found.features])
    alpha = rng.normal(size=(60, 2))
    alpha -= alpha.mean(axis=0)
    exact = scales * (full.gram.quad(alpha) / full.gram.scales)
    truth = exact - found.gram.quad(alpha)
    from_pairs = missing_energy(found.features, X, alpha)
    np.testing.assert_allclose(from_pairs, truth, atol=1e-7 * exact.max())
    monkeypatch.setattr(lowrank_dictionary, "MOST_PAIRS", 0)
    from_diagonal = missing_energy(found.features, X, alpha)
    approximate = [not one.map.exact for one in found.features]
    assert (from_diagonal >= from_pairs).all()
    assert (truth[approximate] > 0).all()


def test_what_cannot_be_bounded_is_infinite(X, rng):
    random = dictionary(X, "rff", kernels=[RBF(0.3)])
    assert missing_energy(random.features, X, np.ones((60, 1)))[0] == np.inf
    assert 0 < random.errors()[0] < 1
    centred = dictionary(X, rank=8, normalize="center", kernels=[RBF(0.3)])
    assert missing_energy(centred.features, X, np.ones((60, 1)))[0] == np.inf


def test_errors_name_the_remedy(X):
    with pytest.raises(ValueError, match="landmarks='best'"):
        dictionary(X, Nystroem("best"))
    with pytest.raises(ValueError, match="approximation="):
        resolve_approximation("svd")
