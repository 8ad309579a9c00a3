"""Kernels given by their matrix, by functions, and by scikit-learn's Gaussian processes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from kernelweave.kernels import FunctionKernel, GPKernel, Precomputed, Spectrum
from kernelweave.kernels._loops import PERIOD, SUMMED_PERIOD
from kernelweave.kernels.precomputed import (
    NOTHING,
    Along,
    _probes,
    _products,
    check_gram,
    look_at,
    look_at_all,
)

ROOT = np.random.RandomState(0).standard_normal((6, 8))
K = ROOT @ ROOT.T


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.float32, np.uint8, object])
def test_indices_select_entries(dtype):
    rows, columns = np.array([[4], [0], [4]], dtype=dtype), np.array([[1], [5]], dtype=dtype)
    np.testing.assert_array_equal(Precomputed(K)(rows, columns), K[np.ix_([4, 0, 4], [1, 5])])
    np.testing.assert_array_equal(Precomputed(K).diag(rows), K[[4, 0, 4], [4, 0, 4]])


def test_clone_is_the_same_object():
    kernel = Precomputed(K)
    assert clone(kernel) is kernel
    assert clone([kernel])[0].matrix is K


def test_fit_keeps_nothing():
    kernel = Precomputed(K, columns="i")
    before = kernel.fit(pd.DataFrame({"i": [0, 1], "j": [5, 5]}))(pd.DataFrame({"i": [0, 1]}))
    kernel.fit(pd.DataFrame({"j": [5, 5], "i": [2, 3]}))
    np.testing.assert_array_equal(kernel(pd.DataFrame({"i": [0, 1]})), before)
    assert not [name for name in vars(kernel) if name.endswith("_")]


def test_blocks_are_copies():
    kernel = Precomputed(K.copy())
    kernel(np.arange(6))[:] = 0
    np.testing.assert_array_equal(kernel(np.arange(6)), K)


def test_single_precision_and_integers():
    assert Precomputed(K.astype(np.float32))([[0], [1]]).dtype == np.float32
    assert Precomputed(np.eye(2, dtype=np.int8))([[0], [1]]).dtype == np.float64


def test_memory_maps_and_frames(tmp_path):
    np.save(tmp_path / "K.npy", K)
    mapped = np.load(tmp_path / "K.npy", mmap_mode="r")
    np.testing.assert_array_equal(Precomputed(mapped)([[2], [3]]), K[2:4, 2:4])
    np.testing.assert_array_equal(Precomputed(pd.DataFrame(K))([[2], [3]]), K[2:4, 2:4])


def test_replaced_matrix_is_checked_again():
    kernel = Precomputed(K).fit(np.arange(6))
    kernel.set_params(matrix=np.triu(K))
    with pytest.raises(ValueError, match="not symmetric"):
        kernel.fit(np.arange(6))


def perturbed(i, j, value, dtype=np.float64):
    matrix = K.astype(dtype)
    matrix[i, j] = value
    return matrix


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (K[:4], r"shape \(4, 6\): a Gram matrix is square"),
        (K[0], "square"),
        (np.zeros((0, 0)), "square"),
        (perturbed(2, 3, np.nan), "NaN or infinite"),
        (perturbed(0, 5, np.inf), "NaN or infinite"),
        (perturbed(0, 5, K[0, 5] + 1e-3), r"not symmetric.*\(K \+ K.T\) / 2"),
        (perturbed(5, 4, K[5, 4] + 0.1, np.float32), "not symmetric"),
        (np.array([["a"]]), "real numbers"),
        (sparse.csr_matrix(K), "dense"),
    ],
)
def test_bad_matrices(matrix, message):
    with pytest.raises(ValueError, match=message):
        Precomputed(matrix).fit(np.arange(4))


def test_rounding_is_not_asymmetry():
    noise = 1e-13 * np.random.RandomState(1).standard_normal(K.shape)
    Precomputed(K + noise).fit(np.arange(6))
    Precomputed(np.zeros((3, 3))).fit(np.arange(3))


@pytest.mark.parametrize("n", [30, PERIOD + 90, 700])
def test_entries_of_single_precision_may_be_rounded_each_in_its_own_way(n):
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, 3))
    for width in (0.01, 0.5, 10.0):
        K = np.exp(-width * ((x[:, None] - x) ** 2).sum(-1))
        errors = 10.0 * np.finfo(np.float32).eps * rng.normal(size=K.shape)
        check_gram((K * (1.0 + errors)).astype(np.float32))
    z = rng.normal(loc=3.0, size=(n, 500)).astype(np.float32)
    check_gram(z @ z.copy().T)


def test_one_large_sample_does_not_hide_others_that_are_not_symmetric():
    x = np.random.default_rng(0).normal(size=(200, 3))
    K = np.exp(-0.1 * ((x[:, None] - x) ** 2).sum(-1)).astype(np.float32)
    K[7, 7] = 2e3
    check_gram(K)
    K[3, 5] += 2.0
    with pytest.raises(ValueError, match="not symmetric"):
        check_gram(K)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0], [6]], "run from 0 to 6, the matrix has samples 0 to 5"),
        ([[-1]], "from -1"),
        ([[0.5]], "integers"),
        ([[np.nan]], "integers"),
        ([["a"]], "integers"),
        ([[0, 1]], r"one column, X has 2: pass .*np.arange"),
    ],
)
def test_bad_indices(X, message):
    with pytest.raises(ValueError, match=message):
        Precomputed(K).fit(X)
    with pytest.raises(ValueError, match=message):
        Precomputed(K)(X)


def test_labels_do_not_print_the_matrix():
    assert repr(Precomputed(K)) == Precomputed(K).label == "Precomputed(6 x 6)"
    assert Precomputed(K, columns="i").label == "Precomputed(6 x 6)[i]"


def test_function_kernel_receives_the_selected_columns():
    X = np.abs(ROOT)
    kernel = FunctionKernel(pairwise.cosine_similarity, columns=[0, 2])
    np.testing.assert_allclose(kernel(X), pairwise.cosine_similarity(X[:, [0, 2]]))
    thin = sparse.csr_matrix(X)
    np.testing.assert_allclose(kernel(thin), kernel(X))


def test_function_kernel_kinds(frame):
    strings = FunctionKernel(lambda X, Z: Spectrum(2)(X, Z), columns="seq", accepts="string", title="mine")
    np.testing.assert_array_equal(strings(frame), Spectrum(2, columns="seq")(frame))
    assert strings.label == "mine[seq]"
    same = FunctionKernel(lambda X, Z: X.to_numpy() == Z.to_numpy().T, columns="task", accepts="any")
    np.testing.assert_array_equal(same(frame), np.equal.outer(*[frame["task"].to_numpy()] * 2))
    np.testing.assert_array_equal(same.diag(frame), np.ones(9))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (FunctionKernel(lambda X, Z: X), r"<lambda> returned shape \(6, 8\), expected \(6, 6\)"),
        (FunctionKernel(lambda X, Z: np.full((len(X), len(Z)), np.nan)), "returned NaN"),
        (FunctionKernel(3), "not callable"),
        (FunctionKernel(pairwise.linear_kernel, accepts="images"), "accepts='images'"),
        (GPKernel("rbf"), "sklearn.gaussian_process"),
        (GPKernel(gp.RBF() + gp.WhiteKernel()), "leave it out"),
    ],
)
def test_bad_functions(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel(ROOT)


@pytest.mark.parametrize(
    "kernel",
    [gp.RBF(0.7), 2.0 * gp.Matern() + gp.DotProduct(), gp.RationalQuadratic() ** 2, gp.ExpSineSquared()],
)
def test_gp_kernels_as_they_are(kernel):
    wrapped = GPKernel(kernel, columns=[0, 1])
    A = ROOT[:, :2]
    np.testing.assert_allclose(wrapped(ROOT), kernel(A), rtol=1e-12)
    np.testing.assert_allclose(wrapped(ROOT, ROOT[:2]), kernel(A, A[:2]), rtol=1e-12)
    np.testing.assert_allclose(wrapped.diag(ROOT), kernel.diag(A))
    assert clone(wrapped).kernel == kernel
    assert clone(wrapped).kernel is not kernel


def test_gp_parameters_are_reachable():
    wrapped = GPKernel(gp.RBF(0.7)).set_params(kernel__length_scale=2.0)
    assert wrapped.kernel.length_scale == 2.0
    assert wrapped.label == "RBF(length_scale=2)"


@pytest.mark.parametrize("n", [3, PERIOD - 1, PERIOD, PERIOD + 1, 2 * PERIOD + 7])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, int])
def test_one_look_brings_products_diagonal_and_parts(n, order, dtype):
    rng = np.random.default_rng(n)
    K = rng.integers(-9, 9, (n, n))
    K = np.asarray(K + K.T, dtype=dtype, order=order)
    rows = np.unique(rng.integers(0, n, 5))
    for u in (np.full(n, 1.0 / n), rng.normal(size=n)):
        seen = look_at(K, "K", u, rows)
        np.testing.assert_allclose(seen.product, K.astype(float) @ u, rtol=1e-5, atol=1e-4)
        np.testing.assert_array_equal(seen.diagonal, np.diagonal(K))
        np.testing.assert_array_equal(seen.sizes, np.abs(K).max(axis=1))
        np.testing.assert_array_equal(np.tril(seen.part), np.tril(K[np.ix_(rows, rows)]))
    others = np.unique(rng.integers(0, n, 9))
    part = np.zeros((len(others), len(others)))
    alpha = rng.normal(size=n) * rng.integers(0, 2, n)
    seen = look_at(K, "K", u, rows, Along(others, part, alpha))
    np.testing.assert_array_equal(np.tril(part), np.tril(K[np.ix_(others, others)]))
    np.testing.assert_allclose(seen.square, alpha @ K.astype(float) @ alpha, rtol=1e-5, atol=1e-4)
    assert look_at(K, "K", u, rows).square == 0.0


@pytest.mark.parametrize("n", [4, PERIOD + 90])
def test_sums_of_rows_and_columns_that_agree_do_not_hide_a_matrix_that_is_not_symmetric(n):
    shift = np.roll(np.eye(n), 1, axis=1)  # K 1 = K'1
    with pytest.raises(ValueError, match="not symmetric"):
        check_gram(2.0 * np.eye(n) + shift)
    check_gram(2.0 * np.eye(n) + shift + shift.T)


@pytest.mark.parametrize(
    ("row", "column"), [(0, 1), (7, PERIOD + 3), (PERIOD + 30, PERIOD + 29), (0, PERIOD)]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_entry_is_noticed_wherever_it_is(row, column, dtype):
    n = PERIOD + 40
    x = np.random.default_rng(0).normal(size=(n, 3))
    K = np.exp(-0.5 * ((x[:, None] - x) ** 2).sum(-1)).astype(dtype)
    check_gram(K)
    for value, message in ((K[row, column] + 1e-2, "not symmetric"), (np.nan, "NaN"), (-np.inf, "infinite")):
        bad = K.copy()
        bad[row, column] = value
        with pytest.raises(ValueError, match=message):
            check_gram(bad)


@pytest.mark.parametrize("period", [PERIOD, SUMMED_PERIOD])
@pytest.mark.parametrize("n", [1, 2, PERIOD, 9 * PERIOD + 7])
def test_every_pair_of_entries_has_a_part_in_what_tells_that_a_matrix_is_not_symmetric(period, n):
    (x, z), (u, t) = _probes(n, period)
    x, z = (np.tile(values, len(u))[:n] for values in (x, z))
    u, t = (np.repeat(values, period)[:n] for values in (u, t))
    block = np.arange(n) // period
    same = block[:, None] == block
    A = np.where(same, np.outer(z, x) - np.outer(x, z), np.outer(t * x, u * x) - np.outer(u * x, t * x))
    np.testing.assert_array_equal(A, -A.T)
    assert n == 1 or np.abs(A[~np.eye(n, dtype=bool)]).min() > 1e-6
    K = np.random.default_rng(n).normal(size=(n, n))
    chosen = np.arange(0)
    if period == PERIOD:
        plain = _products(K, chosen, np.empty((0, 0)), NOTHING)
        mixed = _products(K.astype(np.longdouble), chosen, np.empty((0, 0)), NOTHING)
        np.testing.assert_allclose(plain[3:5], np.array(mixed[3:5], dtype=float), rtol=1e-9, atol=1e-12)
        assert plain[4] == pytest.approx((A * K).sum(), abs=1e-9 * n)
    else:
        look = look_at_all([K], np.ones(1), chosen, np.empty((n, n)))[0]
        assert look.apart == pytest.approx((A * K).sum(), abs=1e-9 * n)


@pytest.mark.parametrize("n", [1, 2, PERIOD - 1, 2 * PERIOD + 7])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_one_reading_of_all_matrices_is_that_of_each(n, count):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(count, n, n))
    Ks = [np.asarray(K + K.T, order="CF"[m % 2]) for m, K in enumerate(A)]
    rows, factors, u = np.unique(rng.integers(0, n, 9)), rng.gamma(1.0, size=count), np.full(n, 0.5)
    total = np.empty((len(Ks[0]), len(Ks[0])))
    looks = look_at_all(Ks, factors, rows, total)
    np.testing.assert_allclose(np.tril(total), np.tril(np.tensordot(factors, np.array(Ks), 1)), atol=1e-12)
    for K, look in zip(Ks, looks, strict=True):
        alone, known = look_at(K, "K", u, rows), look_at(K, "K", u, rows, look=look)
        np.testing.assert_allclose(known.product, alone.product, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(known.diagonal, alone.diagonal)
        np.testing.assert_array_equal(known.sizes, alone.sizes)
        np.testing.assert_array_equal(np.tril(known.part), np.tril(alone.part))


@pytest.mark.parametrize("bad", [np.nan, -np.inf, 2.0])
@pytest.mark.parametrize(("row", "column"), [(0, 1), (7, PERIOD + 3), (PERIOD + 30, PERIOD + 29)])
def test_one_reading_of_all_finds_one_bad_entry(bad, row, column):
    Ks = [np.eye(PERIOD + 40) for _ in range(3)]
    Ks[1][row, column] = bad
    rows = np.arange(2)
    looks = look_at_all(Ks, np.ones(3), rows, np.empty(Ks[0].shape))
    for m, (K, look) in enumerate(zip(Ks, looks, strict=True)):
        if m == 1:
            with pytest.raises(ValueError, match="not symmetric" if bad == 2.0 else "NaN or infinite"):
                look_at(K, "K", np.ones(len(K)), rows, look=look)
        else:
            look_at(K, "K", np.ones(len(K)), rows, look=look)
