"""The engine of torch equals explicit sums of dense matrices, on torch's CPU device."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.gram import DenseGram
from kernelweave.gram.blocks import Blocks, normalised
from kernelweave.kernels import RBF, Laplacian, Linear, Polynomial

torch = pytest.importorskip("torch", reason="needs torch")
pytestmark = pytest.mark.torch

NORMALIZATIONS = ["variance", "spherical", "trace", "dimension", "center", None]


def kernels_of(X):
    """Kernels that share distances, that share products, that share nothing, and on many columns."""
    some = [RBF(0.05), RBF(1.0), Linear(), Polynomial(degree=2), Laplacian(gamma=0.5), RBF(0.3)]
    many = [RBF(0.2 + 0.1 * f, columns=[f % 3, 3 + f % 2]) for f in range(20)]
    return [kernel.fit(X) for kernel in some + many]


@pytest.fixture(params=NORMALIZATIONS, ids=str)
def pair(request, rng):
    """The engine, and the dense one with the same matrices."""
    from kernelweave.gram.torch import TorchGram

    X = rng.normal(size=(40, 5)) + 0.2
    blocks, rules = normalised(Blocks.of_kernels(kernels_of(X), X), request.param, None)
    scales = np.array([rule.scale_ for rule in rules])
    matrices = dict(blocks.each(slice(0, 40), slice(0, 40)))
    dense = DenseGram([matrices[m] for m in range(len(scales))], scales)
    return TorchGram(blocks, scales, torch.device("cpu"), torch.float64), dense


def weights_of(gram, rng):
    weights = rng.gamma(1.0, size=gram.n_kernels)
    weights[::4] = 0.0
    return weights


def test_sums_equal_dense_ones(pair, rng):
    gram, dense = pair
    weights, alpha = weights_of(gram, rng), rng.normal(size=(40, 3))
    alpha[::3] = 0.0
    rows = np.array([3, 0, 17])
    np.testing.assert_allclose(gram.combine(weights), dense.combine(weights), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gram.dot(weights, alpha), dense.dot(weights, alpha), rtol=1e-9, atol=1e-9)
    got = gram.dot(weights, alpha[:, 0], rows)
    np.testing.assert_allclose(got, dense.dot(weights, alpha[:, 0], rows), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gram.rows(rows, weights), dense.rows(rows, weights), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gram.diag(weights), dense.diag(weights), rtol=1e-9, atol=1e-9)
    for kernels in (None, np.array([2, 0])):
        got, expected = (engine.products(alpha[:, 1], kernels, rows) for engine in (gram, dense))
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


def test_forms_equal_dense_ones(pair, rng):
    gram, dense = pair
    alpha, A = rng.normal(size=(40, 2)), rng.normal(size=(40, 40))
    alpha[::3] = 0.0
    np.testing.assert_allclose(gram.quad(alpha), dense.quad(alpha), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gram.quad(alpha[:, 0]), dense.quad(alpha[:, 0]), rtol=1e-9, atol=1e-9)
    few = np.array([5, 2, 21])
    np.testing.assert_allclose(gram.quad(alpha, few), dense.quad(alpha, few), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gram.inner(A + A.T), dense.inner(A + A.T), rtol=1e-9, atol=1e-9)
    assert not gram.quad(0.0 * alpha).any()


def test_parts_equal_dense_ones(pair, rng):
    gram, dense = pair
    samples, few, alpha = np.array([30, 2, 11, 5]), np.array([24, 3, 7, 4]), rng.normal(size=4)
    for chosen in ({"samples": samples}, {"samples": samples, "kernels": few}):
        part, expected = gram.subset(**chosen), dense.subset(**chosen)
        assert (part.n_samples, part.n_kernels) == (expected.n_samples, expected.n_kernels)
        np.testing.assert_allclose(part.quad(alpha), expected.quad(alpha), rtol=1e-9, atol=1e-9)


def test_single_precision_is_close(rng):
    from kernelweave.gram.torch import TorchGram

    X = rng.normal(size=(60, 4))
    kernels = [RBF(gamma).fit(X) for gamma in np.geomspace(1e-3, 10.0, 12)]
    blocks, rules = normalised(Blocks.of_kernels(kernels, X), "variance", None)
    scales = np.array([rule.scale_ for rule in rules])
    fine, coarse = (TorchGram(blocks, scales, dtype=kind) for kind in (torch.float64, torch.float32))
    alpha = rng.normal(size=60)
    alpha -= alpha.mean()
    # the widest kernel is 1 - 1e-2 nearly everywhere, and is scaled by 1e2
    np.testing.assert_allclose(coarse.quad(alpha), fine.quad(alpha), rtol=1e-4)
    np.testing.assert_allclose(coarse.dot(scales, alpha), fine.dot(scales, alpha), rtol=1e-4, atol=1e-2)


def test_large_sums_stay_on_the_device_and_look_like_arrays(rng, monkeypatch):
    from kernelweave.gram.torch import Matrix, TorchGram, engine

    monkeypatch.setattr(engine, "HOST_SAMPLES", 10)
    X = rng.normal(size=(40, 3))
    blocks = Blocks.of_kernels([RBF(gamma).fit(X) for gamma in (0.1, 1.0)], X)
    gram, weights, v = TorchGram(blocks, dtype=torch.float64), np.array([1.0, 2.0]), rng.normal(size=(40, 2))
    whole = gram.rows(np.arange(40), weights)
    stored, rows = gram.combine(weights), np.array([4, 30])
    monkeypatch.setattr(gram, "limit", 2 * 40 * 8 * 20)  # less than a matrix of 40 x 40
    computed = gram.combine(weights)
    assert {type(stored).__name__, type(computed).__name__} == {"StoredMatrix", "ComputedMatrix"}
    for K in (stored, computed):
        assert isinstance(K, Matrix)
        assert (len(K), K.shape) == (40, (40, 40))
        np.testing.assert_allclose(K @ v, whole @ v, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(K[rows], whole[rows], rtol=1e-10)
        np.testing.assert_allclose(K[np.ix_(rows, rows)], whole[np.ix_(rows, rows)], rtol=1e-10)
        np.testing.assert_allclose(K.diagonal(), whole.diagonal(), rtol=1e-10)
        np.testing.assert_allclose(np.asarray(K), whole, rtol=1e-10)
        np.testing.assert_allclose(gram.inner(K), gram.inner(whole), rtol=1e-10)


def test_too_little_memory_says_how_much_is_missing(rng):
    from kernelweave.gram.torch import TorchGram

    X = rng.normal(size=(40, 3))
    blocks = Blocks.of_kernels([RBF(1.0).fit(X)], X)
    with pytest.raises(MemoryError, match=r"40 samples need .* on cpu, there are 1 KB: .* are missing"):
        TorchGram(blocks, memory_limit=1000).combine(np.ones(1))


def test_single_precision_knows_double(rng):
    from kernelweave.gram.torch import TorchGram

    X = rng.normal(size=(40, 5)) + 1e3
    blocks = Blocks.of_kernels(kernels_of(X), X)
    gram, alpha = TorchGram(blocks, device=torch.device("cpu")), rng.normal(size=40)
    assert gram.rounds
    fine = gram.in_double()
    assert not fine.rounds
    Ks = np.array([K for _, K in sorted(blocks.each(slice(0, 40), slice(0, 40)), key=lambda pair: pair[0])])
    np.testing.assert_allclose(fine.quad(alpha), np.einsum("i,mij,j->m", alpha, Ks, alpha), rtol=1e-9)
    some, few = np.array([3, 20, 7, 1]), np.array([5, 2, 20])
    part = gram.subset(some).subset(kernels=few).in_double()
    expected = np.einsum("i,mij,j->m", alpha[:4], Ks[np.ix_(few, some, some)], alpha[:4])
    np.testing.assert_allclose(part.quad(alpha[:4]), expected, rtol=1e-9)


def test_few_exponentials_stand_for_many_widths():
    from kernelweave.gram.torch.parts import CHAIN, MOST_OFF, doublings

    gammas = np.geomspace(1e-3, 1.0, 50)
    steps = doublings((-gammas).tobytes())
    assert 2 * len(steps.rates) < len(gammas)
    b = np.append(0.0, np.geomspace(1e-3, 1e4, 500))
    powers = np.exp(np.multiply.outer(b, np.multiply.outer(steps.rates, 2.0 ** np.arange(CHAIN)).ravel()))
    assert np.abs(powers @ steps.mix.T - np.exp(-np.outer(b, gammas))).max() < 1.1 * MOST_OFF
    few = doublings(np.array([-1.0, -3.0]).tobytes())  # nothing to save
    np.testing.assert_array_equal(few.mix, np.eye(2))


def test_products_of_single_precision_are_summed_in_double(rng):
    from kernelweave.gram.torch.parts import times

    S, v = torch.as_tensor(rng.normal(size=(50, 40))).float(), torch.as_tensor(rng.normal(size=(40, 2)))
    np.testing.assert_allclose(times(S, v), S.double() @ v, rtol=1e-13, atol=1e-13)


def test_parts_of_matrices(rng, monkeypatch):
    from kernelweave.gram.torch import TorchGram, engine

    monkeypatch.setattr(engine, "HOST_SAMPLES", 10)
    X, few = rng.normal(size=(40, 3)), np.array([3, 30, 7])
    blocks = Blocks.of_kernels([RBF(gamma).fit(X) for gamma in (0.1, 1.0)], X)
    gram, weights = TorchGram(blocks, dtype=torch.float64), np.array([1.0, 2.0])
    whole, alpha = gram.rows(np.arange(40), weights), np.zeros((40, 1))
    alpha[few] = 1.0
    stored = gram.combine(weights)
    monkeypatch.setattr(gram, "limit", 2 * 40 * 8 * 20)  # less than a matrix of 40 x 40
    for K in (stored, gram.combine(weights)):
        part = K.part(torch.as_tensor(few))
        np.testing.assert_allclose(np.asarray(part), whole[np.ix_(few, few)], rtol=1e-10)
        np.testing.assert_allclose(K @ alpha, whole @ alpha, rtol=1e-10)
