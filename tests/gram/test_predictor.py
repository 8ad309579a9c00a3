"""Predictors evaluate sum_m d_m k_m(x, .) alpha, by live kernels and support rows only."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import brentq

from kernelweave.gram import Dictionary, FeatureSource, KernelStack, Predictor, StackSource
from kernelweave.kernels import NORMALIZATIONS, RBF, Linear, Precomputed

WEIGHTS = np.array([[0.2, 0.0, 1.3], [0.7, 0.0, 0.0]])  # two functions; kernel 1 carries no weight
ZERO = np.zeros(2)


def of_dimension(train, share, total):
    """s with sum_j s l_j / (s l_j + 1) = min(10, rank / 2), of the eigenvalues l_j of the centred matrix."""
    means = train @ share
    centred = train - means[:, None] - means + share @ means
    values = np.linalg.eigvalsh(total * np.sqrt(np.outer(share, share)) * centred)
    values = values[values > 1e-9 * values.max()]
    wanted = min(10.0, len(values) / 2)
    return np.exp(brentq(lambda t: (values / (values + np.exp(-t))).sum() - wanted, -50, 50, xtol=1e-13))


def normalised(name, train, cross, own, share, total):
    """k'(x, x_i) of new samples from k on training pairs, new pairs and (x, x): the printed formulas."""
    spread = share @ train.diagonal() - share @ train @ share
    if name == "spherical":
        return cross / np.sqrt(np.outer(own, train.diagonal()))
    if name == "center":
        centred = cross - (cross @ share)[:, None] - train @ share + share @ train @ share
        return centred / spread
    if name == "dimension":
        return cross * of_dimension(train, share, total)
    return cross / {"variance": spread, "trace": share @ train.diagonal(), "none": 1.0}[name]


@pytest.fixture
def alpha(rng):
    """Two functions of six support rows, not summing to zero."""
    values = rng.normal(size=(12, 2))
    values[[1, 3, 4, 7, 8, 11]] = 0.0
    return values


def explicit(named, normalize, X, Z, alpha, weights, share, size=12.0):
    total = np.zeros((len(Z), alpha.shape[1]))
    for m, (_, kernel) in enumerate(named):
        cross = normalised(normalize, kernel(X), kernel(Z, X), kernel(Z).diagonal(), share, size)
        total += (cross @ alpha) * weights[:, m]
    return total


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalize", sorted(NORMALIZATIONS))
def test_equals_the_explicit_sum(named, X, Z, alpha, rng, normalize, weighted):
    weight = rng.uniform(0.5, 2.0, size=12) if weighted else None
    share = np.full(12, 1 / 12) if weight is None else weight / weight.sum()
    dictionary = Dictionary(FeatureSource(named, X), normalize, weight)
    on_train = np.column_stack([dictionary.gram.dot(d, a) for d, a in zip(WEIGHTS, alpha.T, strict=True)])
    f = dictionary.predictor(WEIGHTS, alpha, ZERO)
    np.testing.assert_allclose(f(X), on_train, rtol=1e-9, atol=1e-9)
    for new in (X, Z, Z[:1]):
        expected = explicit(
            named, normalize, X, new, alpha, WEIGHTS, share, 12.0 if weight is None else weight.sum()
        )
        np.testing.assert_allclose(f(new), expected, rtol=1e-9, atol=1e-9)


def test_no_normalisation_is_its_own_name(named, X, Z, alpha):
    none, by_name = (
        Dictionary(FeatureSource(named, X), name).predictor(WEIGHTS, alpha, ZERO) for name in (None, "none")
    )
    np.testing.assert_array_equal(none(Z), by_name(Z))


@pytest.mark.parametrize("normalize", ["variance", "trace", "none", "center"])
def test_precomputed_equals_kernels_on_data(named, X, Z, alpha, normalize):
    train = KernelStack([kernel(X) for _, kernel in named])
    new = KernelStack([kernel(Z, X) for _, kernel in named])
    f = Dictionary(FeatureSource(named, X), normalize).predictor(WEIGHTS, alpha, ZERO)
    g = Dictionary(StackSource(train), normalize).predictor(WEIGHTS, alpha, ZERO)
    np.testing.assert_allclose(g(new), f(Z), rtol=1e-9, atol=1e-9)


def test_precomputed_spherical_says_what_is_missing(named, X, Z, alpha):
    f = Dictionary(StackSource(KernelStack([kernel(X) for _, kernel in named])), "spherical").predictor(
        WEIGHTS, alpha, ZERO
    )
    with pytest.raises(ValueError, match=r"normalize='spherical' needs k\(x, x\) of new samples"):
        f(KernelStack([kernel(Z, X) for _, kernel in named]))


def test_indices_of_precomputed_kernels_can_be_spherical(named, X, alpha):
    kernels = [(name, Precomputed(kernel(X))) for name, kernel in named]
    index = np.arange(12)[:, None]
    f = Dictionary(FeatureSource(kernels, index), "spherical").predictor(WEIGHTS, alpha, ZERO)
    g = Dictionary(FeatureSource(named, X), "spherical").predictor(WEIGHTS, alpha, ZERO)
    np.testing.assert_allclose(f(index[3:6]), g(X[3:6]), rtol=1e-9)


@pytest.mark.parametrize("normalize", ["variance", "trace", "none"])
def test_only_live_kernels_and_support_rows_are_evaluated(named, functions, X, Z, alpha, normalize):
    f = Dictionary(FeatureSource(named, X), normalize).predictor(WEIGHTS, alpha, ZERO)
    np.testing.assert_array_equal(f.source.X, X[[0, 2, 5, 6, 9, 10]])
    for function in functions:
        function.calls.clear()
    f(Z)
    assert [function.calls for function in functions] == [[(5, 6)], [], [(5, 6)]]


def test_spherical_evaluates_the_diagonal_of_live_kernels_only(named, functions, X, Z, alpha):
    f = Dictionary(FeatureSource(named, X), "spherical").predictor(WEIGHTS, alpha, ZERO)
    for function in functions:
        function.calls.clear()
    f(Z)
    assert functions[1].calls == []
    for function in (functions[0], functions[2]):
        assert (5, 6) in function.calls
        assert set(function.calls) == {(5, 6), (1, 1)}


def test_centred_functions_of_sum_zero_need_support_rows_only(named, functions, X, Z, alpha):
    used = alpha.any(axis=1)
    alpha[used] -= alpha[used].mean(axis=0)
    f = Dictionary(FeatureSource(named, X), "center").predictor(WEIGHTS, alpha, ZERO)
    np.testing.assert_array_equal(f.source.X, X[used])
    functions[0].calls.clear()
    f(Z)
    assert functions[0].calls == [(5, 6)]


@pytest.mark.parametrize("normalize", sorted(NORMALIZATIONS))
def test_blocks_of_rows_change_nothing(named, functions, X, Z, alpha, normalize, monkeypatch):
    f = Dictionary(FeatureSource(named, X), normalize).predictor(WEIGHTS, alpha, ZERO)
    whole = f(Z)
    functions[0].calls.clear()
    monkeypatch.setattr(Predictor, "block_bytes", 2 * 8 * len(f.alpha))
    np.testing.assert_allclose(f(Z), whole, rtol=1e-12, atol=1e-12)
    blocks = [shape[0] for shape in functions[0].calls if shape[1] == len(f.alpha)]
    assert blocks == [2, 2, 1]
    monkeypatch.setattr(Predictor, "block_bytes", 1)  # never less than a row at a time
    np.testing.assert_allclose(f(Z), whole, rtol=1e-12, atol=1e-12)


def test_blocks_of_a_stack(named, X, Z, alpha, monkeypatch):
    f = Dictionary(StackSource(KernelStack([kernel(X) for _, kernel in named])), "variance").predictor(
        WEIGHTS, alpha, ZERO
    )
    new = KernelStack([kernel(Z, X) for _, kernel in named])
    whole = f(new)
    monkeypatch.setattr(Predictor, "block_bytes", 2 * 8 * len(f.alpha))
    np.testing.assert_allclose(f(new), whole, rtol=1e-12)


def test_no_function_is_zero(named, X, Z):
    for weights, alpha in ((np.zeros((1, 3)), np.ones((12, 1))), (np.ones((1, 3)), np.zeros((12, 1)))):
        f = Dictionary(FeatureSource(named, X), "variance").predictor(weights, alpha, np.zeros(1))
        np.testing.assert_array_equal(f(Z), np.zeros((5, 1)))


def test_frames_and_sparse_matrices(X, Z, alpha):
    def build(table):
        kernels = [("rbf", RBF(gamma=0.3)), ("linear", Linear())]
        return Dictionary(FeatureSource(kernels, table), "variance").predictor(WEIGHTS[:, :2], alpha, ZERO)

    expected = build(X)(Z)
    frame, new = (pd.DataFrame(table, columns=["a", "b", "c"]) for table in (X, Z))
    np.testing.assert_allclose(build(frame)(new), expected, rtol=1e-9)
    np.testing.assert_allclose(build(sparse.csr_array(X))(sparse.csr_array(Z)), expected, rtol=1e-9)
