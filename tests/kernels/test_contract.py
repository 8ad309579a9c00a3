"""Every registered kernel has the properties of `kernelweave.testing`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from kernelweave.kernels import KERNELS, NORMALIZATIONS, RBF, Kernel
from kernelweave.testing import check_kernel
from kernelweave.testing.kernels import contract

SPARSE = ["linear", "polynomial", "rbf", "tanimoto", "laplacian", "matern", "histogram_intersection"]
DENSE_ONLY = ["chi2", "gp", "spatial_pyramid"]


@pytest.mark.parametrize("promise", contract.promises, ids=lambda promise: promise.__name__)
def test_contract(case, promise):
    promise(case)


class Difference(Kernel):
    """Not symmetric."""

    def __init__(self, columns=None):
        self.columns = columns

    def _compute(self, X, Z):
        return X[:, :1] - Z[:, 0]


class Distance(Difference):
    """Symmetric, but not positive semidefinite."""

    def _compute(self, X, Z):
        return np.abs(super()._compute(X, Z))


class WrongDiagonal(RBF):
    """diag() of another function."""

    def _diag(self, X):
        return np.full(X.shape[0], 2.0)


class Forgetful(RBF):
    """Takes its width from whatever rows it sees."""

    def _compute(self, X, Z):
        self.gamma_ = 1.0 / Z.var()
        return super()._compute(X, Z)


@pytest.mark.parametrize(
    ("kernel", "title"),
    [
        (Difference(), "symmetric and positive semidefinite"),
        (Distance(), "symmetric and positive semidefinite"),
        (WrongDiagonal(), "diag is the gram diagonal"),
        (Forgetful(), "blocks agree"),
    ],
    ids=repr,
)
def test_a_mistake_is_found_and_named(kernel, title):
    with pytest.raises(AssertionError, match=f"^{type(kernel).__name__}.* breaks the contract, {title}: "):
        check_kernel(kernel)


def test_registry_names_and_documentation(case):
    cls = type(case.kernel)
    assert KERNELS[cls.name] is cls
    assert "Examples" in cls.__doc__
    assert isinstance(case.kernel, Kernel)


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
    assert set(NORMALIZATIONS) == {"variance", "spherical", "trace", "dimension", "center", "none"}
