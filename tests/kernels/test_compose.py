"""Sums, products and multiples of kernels."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp

from kernelweave.kernels import (
    RBF,
    Constant,
    Laplacian,
    Linear,
    Precomputed,
    Product,
    Scaled,
    Spectrum,
    Sum,
)

rng = np.random.RandomState(0)
X, Z = rng.standard_normal((7, 3)), rng.standard_normal((4, 3))
a, b, c = RBF(0.2), Linear(columns=[1]), Laplacian(columns=[0, 2])


@pytest.mark.parametrize(
    ("kernel", "values"),
    [
        (a + b + c, lambda a, b, c: a + b + c),
        (a * b * c, lambda a, b, c: a * b * c),
        ((a + b) * c, lambda a, b, c: (a + b) * c),
        (2.0 * a + b * 3 + 1.5, lambda a, b, c: 2 * a + 3 * b + 1.5),
        (np.float64(2.0) * (1 + c), lambda a, b, c: 2 * (1 + c)),
        (Scaled(a, 0.0) + c, lambda a, b, c: c),
        (sum([a, b, c]), lambda a, b, c: a + b + c),
    ],
)
def test_values(kernel, values):
    children = [clone(child).fit(X) for child in (a, b, c)]
    fitted = clone(kernel).fit(X)
    np.testing.assert_allclose(fitted(X, Z), values(*(child(X, Z) for child in children)), rtol=1e-12)
    np.testing.assert_allclose(fitted(X), values(*(child(X) for child in children)), rtol=1e-12)
    np.testing.assert_allclose(fitted.diag(Z), values(*(child.diag(Z) for child in children)), rtol=1e-12)
    assert np.linalg.eigvalsh(fitted(X)).min() > -1e-10
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted))(X, Z), fitted(X, Z))


def test_operators_flatten():
    assert [type(k) for k in (a + b + c).kernels] == [RBF, Linear, Laplacian]
    assert [type(k) for k in ((a + b) + (c + 1.0)).kernels] == [RBF, Linear, Laplacian, Constant]
    assert [type(k) for k in (a * (b * c)).kernels] == [RBF, Linear, Laplacian]
    assert isinstance((a * b) + c, Sum)
    scaled = 2 * (3.0 * a)
    assert (scaled.kernel, scaled.factor) == (a, 6.0)
    assert a + 0 is a


def test_other_operands():
    matrix = np.eye(4)
    assert isinstance((a + matrix).kernels[1], Precomputed)
    assert isinstance((matrix * a).kernels[1], Precomputed)
    np.testing.assert_allclose((a + gp.DotProduct(0.0))(X), a(X) + X @ X.T)
    np.testing.assert_allclose((a + "linear")(X), a(X) + X @ X.T)
    np.testing.assert_allclose((a * (lambda X, Z: X @ Z.T))(X), a(X) * (X @ X.T))


def test_children_stay_unfitted():
    kernel = (a + b) * 2.0
    kernel.fit(X)(X)
    assert not [k for k in (a, b, kernel.kernel) if hasattr(k, "columns_")]


def test_clone_is_deep():
    kernel = 2.0 * (a + b * c)
    copied = clone(kernel)
    assert copied.kernel is not kernel.kernel
    assert copied.kernel.kernels[0] is not a
    assert copied.kernel.kernels[1].kernels[1] is not c
    assert repr(copied) == repr(kernel)


def test_deep_parameters():
    kernel = clone(a + b * c)
    params = kernel.get_params()
    assert params["0__gamma"] == 0.2
    assert params["1__1__columns"] == [0, 2]
    kernel.set_params(**{"0__gamma": 5.0, "1__1__gamma": 0.3, "1__0": RBF(7.0)})
    assert kernel.kernels[0].gamma == 5.0
    assert kernel.kernels[1].kernels[1].gamma == 0.3
    assert kernel.kernels[1].kernels[0].gamma == 7.0
    assert clone(2.0 * a).set_params(kernel__gamma=9.0, factor=1.0).kernel.gamma == 9.0
    assert len(kernel.set_params(kernels=[a]).kernels) == 1
    with pytest.raises(ValueError, match="Invalid parameter"):
        kernel.set_params(**{"4": a})


def test_with_columns_reaches_every_leaf():
    moved = (2.0 * a + b * c).with_columns([1])
    assert moved.kernels[0].kernel.columns == [1]
    assert [k.columns for k in moved.kernels[1].kernels] == [[1], [1]]
    kept = (a + b).with_columns([2], override=False)
    assert [k.columns for k in kept.kernels] == [[2], [1]]


def test_accepts(frame):
    assert (a + b).accepts == "numeric"
    assert (a + 1.0).accepts == (2.0 * a).accepts == "numeric"
    assert (Spectrum() + 1.0).accepts == "string"
    mixed = Spectrum(2, columns="seq") * RBF(columns=["a", "c"])
    assert mixed.accepts == "mixed"
    expected = Spectrum(2)(frame["seq"]) * RBF()(frame[["a", "c"]])
    np.testing.assert_allclose(mixed(frame), expected)


def test_weights_reach_the_children():
    weight = np.array([0, 1, 2, 3, 0, 1, 2])
    kernel = 2.0 * (RBF("weighted") + Laplacian("median"))
    weighted = clone(kernel).fit(X, sample_weight=weight)(X)
    np.testing.assert_allclose(weighted, clone(kernel).fit(np.repeat(X, weight, axis=0))(X), rtol=1e-10)


def test_labels():
    assert (a + b).label == "RBF(gamma=0.2) + Linear[1]"
    assert ((a + b) * 2.0).label == "2 * (RBF(gamma=0.2) + Linear[1])"
    assert ((a + b) * c).label == "(RBF(gamma=0.2) + Linear[1]) * Laplacian(gamma=scale)[0, 2]"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: a + (-1.0), "the number added to a kernel=-1.0"),
        (lambda: -2.0 * a, "the number multiplying a kernel=-2.0"),
        (lambda: a * np.nan, "the number multiplying"),
        (lambda: a + None, "operand: None is not a kernel"),
        (lambda: a + "nothing", "operand: 'nothing' is not a kernel"),
        (lambda: Scaled(a, -1.0).fit(X), "factor=-1.0"),
        (lambda: Sum([]).fit(X), "Sum: kernels is empty"),
        (lambda: Product([a, 3]).fit(X), "3 is not a kernel"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
