"""Numeric kernels against scikit-learn and against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from kernelweave.kernels import (
    RBF,
    Chi2,
    Constant,
    GroupProductRBF,
    HistogramIntersection,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    ProductRBF,
    Tanimoto,
)

rng = np.random.RandomState(0)
X, Z = rng.standard_normal((9, 4)), rng.standard_normal((6, 4))
P, Q = np.abs(X), np.abs(Z)
REFERENCES = [
    (Linear(), pairwise.linear_kernel(X, Z), X, Z),
    (Polynomial(2, 0.5, 0.3), pairwise.polynomial_kernel(X, Z, 2, 0.5, 0.3), X, Z),
    (RBF(0.3), pairwise.rbf_kernel(X, Z, 0.3), X, Z),
    (RBF(0.1, factor=3.0), pairwise.rbf_kernel(X, Z, 0.3), X, Z),
    (Laplacian(0.3), pairwise.laplacian_kernel(X, Z, 0.3), X, Z),
    (Chi2(0.3), pairwise.chi2_kernel(P, Q, 0.3), P, Q),
    (HistogramIntersection(), np.minimum(P[:, None], Q[None]).sum(axis=2), P, Q),
    (Constant(3.0), np.full((9, 6), 3.0), X, Z),
    *[(Matern(1.3, nu=nu), gp.Matern(1.3, nu=nu)(X, Z), X, Z) for nu in (0.5, 1.5, 2.5, 0.8, 3.3, np.inf)],
]


@pytest.mark.parametrize(("kernel", "expected", "A", "B"), REFERENCES)
def test_equals_reference(kernel, expected, A, B):
    np.testing.assert_allclose(kernel.fit(A)(A, B), expected, rtol=1e-9)


def test_scale_is_that_of_svc():
    assert RBF("scale").fit(X).gamma_ == pytest.approx(1 / (4 * X.var()))


@pytest.mark.parametrize("rule", ["scale", "median"])
@pytest.mark.parametrize("factor", [1.0, 0.2])
def test_smooth_matern_is_gaussian(rule, factor):
    gaussian = RBF(rule, factor=factor**-2)
    np.testing.assert_allclose(Matern(rule, nu=np.inf, factor=factor)(X), gaussian(X), rtol=1e-10)


@pytest.mark.parametrize("nu", [20.0, 60.0, 100.0])
def test_large_nu_is_near_gaussian_and_smooth_at_zero(nu):
    t = np.concatenate([[0.0], np.geomspace(1e-8, 5.0, 400)])[:, None]
    k = Matern(1.0, nu=nu)(t, np.zeros((1, 1))).ravel()
    assert k[0] == 1.0
    assert np.all(np.diff(k) <= 1e-9)
    np.testing.assert_allclose(k, np.exp(-(t.ravel() ** 2) / 2), atol=2 / nu)


def test_general_nu_agrees_with_the_closed_forms():
    for nu in (0.5, 1.5, 2.5):
        np.testing.assert_allclose(Matern(1.0, nu=nu)(X), Matern(1.0, nu=nu + 1e-9)(X), rtol=1e-7)


def test_tanimoto_on_bits_is_shared_over_either():
    bits = rng.rand(8, 10) < 0.4
    expected = [[(a & b).sum() / (a | b).sum() for b in bits] for a in bits]
    np.testing.assert_allclose(Tanimoto()(bits), expected)


def test_tanimoto_of_zero_vectors():
    np.testing.assert_array_equal(Tanimoto()([[0.0, 0.0], [1.0, 0.0]]), np.eye(2))


@given(arrays(np.float64, (6, 3), elements=st.floats(-100, 100, width=16)))
def test_tanimoto_is_positive_semidefinite_on_real_vectors(A):
    K = Tanimoto()(A)
    assert np.linalg.eigvalsh((K + K.T) / 2).min() >= -1e-9


@given(arrays(np.float64, (6, 3), elements=st.floats(0, 1e6)))
def test_intersection_equals_its_definition(A):
    expected = np.minimum(A[:, None], A[None]).sum(axis=2)
    np.testing.assert_allclose(HistogramIntersection()(A), expected, atol=1e-9 * (1 + A.sum()))


@pytest.mark.parametrize("kernel", [Chi2(), HistogramIntersection()])
def test_negative_histograms(kernel):
    with pytest.raises(ValueError, match=r"non-negative.*MinMaxScaler"):
        kernel(-P)
    with pytest.raises(ValueError, match="non-negative"):
        kernel.fit(P)(P, -P)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (RBF(gamma=-1.0), r"gamma=-1\.0: expected a positive number"),
        (RBF(gamma="wide"), "'scale', 'weighted' or 'median'"),
        (RBF(gamma=np.nan), "gamma=nan"),
        (RBF(factor=0), "factor=0"),
        (Laplacian(gamma=None), "gamma=None"),
        (Chi2(gamma="scale"), "expected a positive number, 'median'"),
        (Matern(length_scale="wide"), "length_scale='wide'"),
        (Matern(length_scale=0.0), "length_scale"),
        (Matern(nu=-1.0), "nu=-1"),
        (Matern(nu=1000.0), "use nu=inf"),
        (Polynomial(degree=0), "degree=0"),
        (Polynomial(degree=2.5), "degree=2.5"),
        (Polynomial(coef0=-1.0), "coef0=-1"),
        (Polynomial(gamma=0.0), "gamma=0"),
        (Constant(-1.0), "value=-1"),
    ],
)
def test_bad_parameters(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel.fit(P)


def test_labels():
    assert RBF(gamma=0.1).label == "RBF(gamma=0.1)"
    assert RBF(factor=0.5, columns=["a", "b"]).label == "RBF(gamma=scale, factor=0.5)[a, b]"
    assert Polynomial(columns=slice(2, 5)).label == "Polynomial(degree=3)[2:5]"
    assert Linear().label == "Linear"
    assert Linear(columns=list(range(9))).label == "Linear[9 columns]"
    assert Linear(columns=lambda X: [0]).label == "Linear[selected]"


FAR = 1e5
SHORT = np.round(64 * X) / 64  # of so few digits that SHORT + FAR is exact
SHIFT_INVARIANT = [
    RBF(0.3),
    RBF("scale"),
    RBF("median"),
    Laplacian(0.3),
    *[Matern(1.3, nu=nu) for nu in (0.5, 1.5, 2.5, 0.8, np.inf)],
    RBF(0.3) * Laplacian(0.1) + Matern(0.7),
    ProductRBF(),
    GroupProductRBF({"a": [0, 1], "b": [2, 3]}),
]


@pytest.mark.parametrize("kernel", SHIFT_INVARIANT, ids=str)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_functions_of_differences_do_not_see_an_offset(kernel, container):
    near, far = clone(kernel).fit(container(SHORT)), clone(kernel).fit(container(SHORT + FAR))
    for rows in (slice(None), slice(2, 5)):
        K, other = near(SHORT[rows], SHORT), far(container(SHORT[rows] + FAR), container(SHORT + FAR))
        np.testing.assert_allclose(other, K, rtol=1e-9)


def test_gradient_of_differences_does_not_see_an_offset():
    alpha, kernel = np.arange(9.0) - 4.0, ProductRBF()
    d = np.array([0.3, 0.0, 1.0, 0.2])
    near, far = (kernel.grad_quad(points, alpha, d) for points in (SHORT, SHORT + FAR))
    np.testing.assert_allclose(far, near, rtol=1e-9)


@pytest.mark.parametrize("gap", [0.0, 1.0])
def test_sparse_columns_with_and_without_zeros(gap):
    """Only columns without a zero can be moved; the others stay where they are."""
    table = np.abs(SHORT) + 1.0
    table[0, 1] *= gap
    table[:, 2] += FAR
    D = ((table[:, None, :] - table[None, :, :]) ** 2).sum(axis=2)
    np.testing.assert_allclose(RBF(0.1)(sparse.csr_matrix(table)), np.exp(-0.1 * D), rtol=1e-9)


def test_distances_a_few_columns_at_a_time(monkeypatch):
    whole = [kernel(SHORT, SHORT[:3]) for kernel in (RBF(0.3), Matern(1.3, nu=np.inf))]
    monkeypatch.setattr("kernelweave.kernels.bases.POINT_BYTES", 1)
    parts = [kernel(SHORT, SHORT[:3]) for kernel in (RBF(0.3), Matern(1.3, nu=np.inf))]
    np.testing.assert_allclose(parts, whole, rtol=1e-13)


def test_a_far_sample_does_not_blur_the_others():
    """Distances of samples near zero are what they are whatever else is in the table."""
    table = np.vstack([SHORT, np.full((1, 4), 1e9)])
    np.testing.assert_allclose(RBF(0.3)(table)[:9, :9], RBF(0.3)(SHORT), rtol=1e-12)


def test_repeated_rows_and_their_order_do_not_change_a_value():
    order = np.array([3, 3, 8, 0, 1, 2, 4, 5, 6, 7, 0])
    K = RBF(0.3)(SHORT + 100.3, SHORT + 100.3)
    np.testing.assert_allclose(RBF(0.3)(SHORT[order] + 100.3), K[np.ix_(order, order)], rtol=0, atol=1e-15)
