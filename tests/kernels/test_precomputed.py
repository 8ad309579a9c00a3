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
