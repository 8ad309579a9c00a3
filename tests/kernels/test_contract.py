"""What every registered kernel promises."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from kernelweave.kernels import KERNELS, NORMALIZATIONS, Kernel

SPARSE = ["linear", "polynomial", "rbf", "tanimoto", "laplacian", "matern", "histogram_intersection"]
DENSE_ONLY = ["chi2", "gp"]


def test_symmetric_positive_semidefinite(case):
    K = case.kernel(case.X)
    assert K.shape == (len(case.X), len(case.X))
    np.testing.assert_allclose(K, K.T, rtol=1e-12)
    assert np.linalg.eigvalsh(K).min() >= -1e-10 * np.abs(K).max()


def test_diag_is_the_gram_diagonal(case):
    fitted = clone(case.kernel).fit(case.X)
    np.testing.assert_allclose(fitted.diag(case.X), np.diagonal(fitted(case.X)), rtol=1e-12)
    np.testing.assert_allclose(fitted.diag(case.Z), np.diagonal(fitted(case.Z)), rtol=1e-12)


def test_blocks_agree(case):
    fitted = clone(case.kernel).fit(case.X)
    np.testing.assert_allclose(fitted(case.X, case.Z), fitted(case.Z, case.X).T, rtol=1e-10)
    np.testing.assert_allclose(fitted(case.X[3:6], case.X), fitted(case.X)[3:6], rtol=1e-10)
    np.testing.assert_allclose(fitted(case.X, case.X.copy()), fitted(case.X), rtol=1e-10)


def test_joint_gram_of_training_and_new_rows_is_positive_semidefinite(case):
    fitted = clone(case.kernel).fit(case.X)
    K = fitted(np.concatenate([case.X, case.Z]))
    assert np.linalg.eigvalsh(K).min() >= -1e-10 * np.abs(K).max()


def test_fitted_parameters_do_not_change_on_new_rows(case):
    fitted = clone(case.kernel).fit(case.X)
    before = fitted(case.X)
    fitted(case.Z)
    fitted.diag(case.Z)
    np.testing.assert_array_equal(fitted(case.X), before)


def test_unfitted_call_leaves_the_kernel_unfitted(case):
    state = set(vars(case.kernel))
    case.kernel(case.X)
    assert {key for key in vars(case.kernel) if not key.startswith("_")} == state


def test_clone_and_get_params_round_trip(case):
    copied = clone(case.kernel)
    assert type(copied) is type(case.kernel)
    params = case.kernel.get_params(deep=False)
    rebuilt = type(case.kernel)(**params)
    assert rebuilt.get_params(deep=False).keys() == params.keys()
    np.testing.assert_array_equal(rebuilt(case.X), copied(case.X))


def test_repr_and_label_are_short(case):
    assert repr(case.kernel).startswith(type(case.kernel).__name__)
    assert len(repr(case.kernel)) < 200
    assert 0 < len(case.kernel.label) < 60


def test_input_is_not_modified(case):
    X, Z = copy.deepcopy(case.X), copy.deepcopy(case.Z)
    fitted = clone(case.kernel).fit(case.X, sample_weight=np.ones(len(X)))
    fitted(case.X)
    fitted(case.X, case.Z)
    fitted.diag(case.X)
    np.testing.assert_array_equal(case.X, X)
    np.testing.assert_array_equal(case.Z, Z)


def test_named_columns_equal_positions(case):
    chosen = list(range(case.X.shape[1]))
    padded = np.concatenate([np.full((len(case.X), 1), -7.0, dtype=object), case.X.astype(object)], axis=1)
    frame = pd.DataFrame(padded, columns=["other", *(f"c{j}" for j in chosen)]).infer_objects()
    expected = case.kernel(case.X)
    by_name = case.kernel.with_columns([f"c{j}" for j in chosen])
    by_position = case.kernel.with_columns([j + 1 for j in chosen])
    np.testing.assert_allclose(by_name(frame), expected, rtol=1e-12)
    np.testing.assert_allclose(by_position(padded), expected, rtol=1e-12)


def test_pickles(case):
    fitted = clone(case.kernel).fit(case.X)
    restored = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(restored(case.X, case.Z), fitted(case.X, case.Z))


def test_lists_are_accepted(case):
    np.testing.assert_allclose(case.kernel(case.X.tolist()), case.kernel(case.X), rtol=1e-12)


def test_weights_equal_repeats(case):
    """With every rule but scikit-learn's "scale", which counts rows of any weight once."""
    weight, kernel = np.arange(len(case.X)) % 3, clone(case.kernel)
    scales = [
        key for key, value in kernel.get_params().items() if isinstance(value, str) and value == "scale"
    ]
    kernel.set_params(**dict.fromkeys(scales, "weighted"))
    weighted = clone(kernel).fit(case.X, sample_weight=weight)(case.X, case.Z)
    repeated = clone(kernel).fit(np.repeat(case.X, weight, axis=0))(case.X, case.Z)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-10)


def test_registry_names_and_documentation(case):
    cls = type(case.kernel)
    assert KERNELS[cls.name] is cls
    assert cls.__module__.endswith(cls.name)
    assert "Examples" in cls.__doc__
    assert cls.accepts in {"numeric", "string", "index", "any"}
    assert isinstance(case.kernel, Kernel)


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_equals_dense(name, container):
    rng = np.random.RandomState(0)
    X, Z = (rng.poisson(0.5, size=(n, 6)).astype(float) for n in (8, 5))
    dense = KERNELS[name]().fit(X)
    thin = KERNELS[name]().fit(container(X))
    for kernel, A, B in [(thin, container(X), container(Z)), (thin, container(X), Z)]:
        np.testing.assert_allclose(kernel(A, B), dense(X, Z), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(thin.diag(container(X)), dense.diag(X), rtol=1e-12)
    part = KERNELS[name](columns=[4, 1])
    np.testing.assert_allclose(part(container(X)), part(X), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", DENSE_ONLY)
def test_dense_only_kernels_say_so(name):
    from sklearn.gaussian_process.kernels import DotProduct

    kernel = KERNELS[name](*([DotProduct()] if name == "gp" else []))
    with pytest.raises(ValueError, match="densify"):
        kernel(sparse.csr_matrix(np.eye(3)))


def test_sparse_input_keeps_its_structure():
    X = sparse.csr_matrix((np.ones(4), [2, 0, 1, 1], [0, 2, 4]), shape=(2, 3))
    before = X.indices.copy(), X.data.copy()
    for name in ["laplacian", "histogram_intersection", "rbf"]:
        KERNELS[name]().fit(X)(X)
    np.testing.assert_array_equal(X.indices, before[0])
    np.testing.assert_array_equal(X.data, before[1])


@pytest.mark.parametrize("name", [*SPARSE, "chi2"])
def test_single_precision_stays_single(name):
    X = np.random.RandomState(0).gamma(2.0, size=(7, 3))
    single = KERNELS[name]().fit(X.astype(np.float32))
    K = single(X.astype(np.float32))
    assert K.dtype == np.float32
    assert single.diag(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(K, KERNELS[name]()(X), rtol=2e-4)


@pytest.mark.parametrize("name", SPARSE)
def test_integers_do_not_overflow(name):
    X = np.random.RandomState(0).randint(0, 120, size=(6, 3))
    np.testing.assert_array_equal(KERNELS[name]()(X.astype(np.int8)), KERNELS[name]()(X.astype(float)))


def test_not_numbers():
    with pytest.raises(ValueError, match="select numeric columns"):
        KERNELS["rbf"]()(np.array([["a", "b"]], dtype=object))


def test_more_than_two_axes():
    with pytest.raises(ValueError, match="samples in rows"):
        KERNELS["rbf"]()(np.zeros((2, 2, 2)))


def test_every_normalization_is_registered():
    assert set(NORMALIZATIONS) == {"variance", "spherical", "trace", "center", "none"}
