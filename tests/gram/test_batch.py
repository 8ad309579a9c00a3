"""Which Gaussian kernels are computed together, and that this changes nothing."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from kernelweave.gram import BlockedGram, CachedGram, Dictionary, FeatureSource
from kernelweave.gram.choice import Task, choose_engine
from kernelweave.gram.sharing import LEAST_SUBSETS, MOST_ALIKE, SharedSquares, batch_of, share
from kernelweave.kernels import NORMALIZATIONS, RBF, Laplacian, Linear, random_subsets


@pytest.fixture(name="X")
def wide_samples(rng):
    return rng.normal(size=(70, 20)) + 0.2


@pytest.fixture(name="Z")
def new_wide_samples(rng):
    return rng.normal(size=(9, 20)) - 0.1


def kernel_list():
    """Kernels on single columns and pairs, with others between them."""
    kernels = [RBF(gamma=0.1 + 0.05 * f, columns=[f]) for f in range(20)]
    kernels[3:3] = [Linear(), RBF(0.2), Laplacian(columns=[1])]
    kernels += [RBF(columns=[f, f + 1], factor=0.5) for f in range(5)]
    kernels += [RBF(gamma=0.1 * (k + 1), columns=[4, 5]) for k in range(MOST_ALIKE)]
    return [*kernels, RBF(gamma=0.4, columns=[6, 6])]


# kernels of `kernel_list` on few columns, and not more than a few on the same ones
TOGETHER = [*range(3), *range(6, 23), *range(23, 27)]


def named(kernels):
    return [(f"k{m}", kernel) for m, kernel in enumerate(kernels)]


def test_gaussian_kernels_on_different_columns_are_together(X):
    kernels = [kernel.fit(X) for kernel in kernel_list()]
    batch = batch_of(kernels, X)
    np.testing.assert_array_equal(batch.members, TOGETHER)
    parts, members = share(kernels, X)
    assert sorted(np.concatenate(members)) == list(range(len(kernels)))
    [squares] = [part for part in parts if isinstance(part, SharedSquares)]
    assert squares.n_kernels == len(TOGETHER)
    every = slice(0, 70)
    for part, group in zip(parts, members, strict=True):
        base = part.base(every, every)
        for k, m in enumerate(group):
            np.testing.assert_allclose(part.values(base, k), kernels[m](X), rtol=1e-10, atol=1e-12)


def test_few_sets_of_columns_and_sparse_data_keep_their_distances(X):
    few = [RBF(columns=[f]).fit(X) for f in range(LEAST_SUBSETS - 1)]
    assert batch_of(few, X) is None
    assert batch_of([RBF(columns=[f]).fit(X) for f in range(LEAST_SUBSETS)], X) is not None
    table = sparse.csr_matrix(X)
    assert batch_of([RBF(columns=[f]).fit(table) for f in range(20)], table) is None


def test_many_widths_on_each_column_keep_their_distances(X):
    kernels = [RBF(gamma=g, columns=[f]).fit(X) for f in range(20) for g in np.geomspace(0.1, 1, 9)]
    assert batch_of(kernels, X) is None


@pytest.mark.sampled(5)
@pytest.mark.parametrize("normalize", [None, *sorted(NORMALIZATIONS)])
@pytest.mark.parametrize("gram", ["blocked", "cached", "packed"])
def test_engines_and_predictions_equal_the_dense_ones(X, Z, rng, normalize, gram):
    weight = rng.uniform(0.5, 2.0, size=70)
    M = len(kernel_list())
    one, other = (
        Dictionary(FeatureSource(named(kernel_list()), X, weight), normalize, weight, gram=name)
        for name in ("dense", gram)
    )
    weights, alpha = rng.gamma(1.0, size=M), rng.normal(size=70)
    near = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(other.gram.combine(weights), one.gram.combine(weights), **near)
    np.testing.assert_allclose(other.gram.quad(alpha), one.gram.quad(alpha), **near)
    np.testing.assert_allclose(other.gram.diag(weights), one.gram.diag(weights), **near)
    some, few = np.arange(0, 70, 3), np.array([30, 2, 4, 9])
    part, same = other.gram.subset(some, few), one.gram.subset(some, few)
    np.testing.assert_allclose(part.quad(alpha[some]), same.quad(alpha[some]), **near)
    fitted = one.gram.dot(weights, alpha)
    for dictionary in (one, other):
        f = dictionary.predictor(weights[None], alpha[:, None], np.zeros(1))
        np.testing.assert_allclose(f(X)[:, 0], fitted, **near)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("normalize", [None, *sorted(NORMALIZATIONS)])
def test_predictions_equal_those_kernel_by_kernel(X, Z, rng, normalize, monkeypatch):
    weights, alpha = rng.gamma(1.0, size=(3, len(kernel_list()))), rng.normal(size=(70, 3))
    weights[0, ::2], weights[1], alpha[20:] = 0.0, weights[2], 0.0
    together = Dictionary(FeatureSource(named(kernel_list()), X), normalize).predictor(
        weights, alpha, np.zeros(3)
    )
    assert len(together.terms) == len(kernel_list()) - len(TOGETHER) + 1
    monkeypatch.setattr("kernelweave.gram.sharing.LEAST_SUBSETS", 10**6)
    alone = Dictionary(FeatureSource(named(kernel_list()), X), normalize).predictor(
        weights, alpha, np.zeros(3)
    )
    assert len(alone.terms) == len(kernel_list())
    np.testing.assert_allclose(together(Z), alone(Z), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(together))(Z), together(Z))
    frame, new = pd.DataFrame(X), pd.DataFrame(Z)
    of_frame = Dictionary(FeatureSource(named(kernel_list()), frame), normalize).predictor(
        weights, alpha, np.zeros(3)
    )
    np.testing.assert_allclose(of_frame(new), alone(Z), rtol=1e-9, atol=1e-9)


def test_what_is_cheap_to_compute_is_not_kept(X):
    source = FeatureSource(random_subsets(2500).expand(X), X)
    assert source.n_bases == 0
    assert isinstance(Dictionary(source, "variance", gram="auto").gram, BlockedGram)
    few = FeatureSource(random_subsets(50).expand(X), X)
    assert Dictionary(few, "variance", gram="auto").gram.name == "dense"
    assert (
        "as fast as they could be read" in choose_engine("auto", Task(2500, 0, 70, light=True), None).reason
    )
    with pytest.raises(MemoryError):
        choose_engine("auto", Task(2500, 0, 7000, light=True), 10**6)


def test_a_cache_keeps_distances_but_not_columns(X, rng):
    source = FeatureSource(named(kernel_list()), X)
    gram = Dictionary(source, None, gram="cached").gram
    assert isinstance(gram, CachedGram)
    kinds = {type(part.pairs or part).__name__ for part in gram.blocks.parts}
    assert kinds == {"Cached", "SharedSquares"}
    # a base for the linear kernel, one for that of all columns, and one each of those not together
    assert source.n_bases == 5
    assert choose_engine("auto", Task(2500, 0, 7000), 2 * 10**9).name == "blocked"
