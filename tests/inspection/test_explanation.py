"""Explanations of fitted models: they add up, follow the definition, and say what is not taken apart."""

from __future__ import annotations

from itertools import product
from math import factorial
from typing import Any

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.inspection import Explanation
from kernelweave.kernels import RBF, Laplacian, Linear, Matern, Polynomial, Spectrum, per_feature

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 5))
Y = X[:, 0] * X[:, 1] + X[:, 2]


def by_definition(function: Any, x: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Shapley values over all subsets of the features, of a function of tables."""
    F = len(x)
    masks = np.array(list(product([False, True], repeat=F)))[:, ::-1]
    v = np.mean([function(np.where(masks, x, other)) for other in background], axis=0)
    phi, sizes = np.zeros(F), masks.sum(axis=1)
    for f in range(F):
        without = np.flatnonzero(~masks[:, f])
        orders = np.array([factorial(s) * factorial(F - s - 1) / factorial(F) for s in sizes[without]])
        phi[f] = orders @ (v[without + (1 << f)] - v[without])
    return phi


def values_of(model: Any, A: Any) -> np.ndarray:
    """f of every sample, with an axis for functions in front."""
    found = model.decision_function(A) if hasattr(model, "classes_") else model.predict(A)
    return np.atleast_2d(found.T)


def adds_up(found: Explanation, model: Any, A: Any) -> None:
    """By feature, by kernel, and by feature within each kernel."""
    expected, base = values_of(model, A), np.reshape(found.base_value, (-1, 1))
    for parts in (found.values, found.kernel_values):
        np.testing.assert_allclose(np.atleast_2d(parts.sum(axis=-1)) + base, expected, atol=1e-8)
    assert found.values.shape[-1] == len(found.feature_names)
    within = [found.within(name) for name in found.kernel_names]
    np.testing.assert_allclose(sum(within), found.values, atol=1e-10)
    for m, part in enumerate(within):
        np.testing.assert_allclose(part.sum(axis=-1), found.kernel_values[..., m], atol=1e-8)


KERNELS = {"rbf": RBF(), "l1": Laplacian(columns=[1, 2]), "poly": Polynomial(2, 0.2), "mix": RBF() * Linear()}


@pytest.mark.parametrize("normalize", ["variance", "center", None])
def test_a_regression_is_explained_as_defined(normalize: str | None) -> None:
    model = kw.MKLRegressor(KERNELS, normalize=normalize).fit(X, Y)
    found = kw.explain(model, X[:3], background=X[3:7])
    assert not found.whole
    adds_up(found, model, X[:3])
    assert found.base_value == pytest.approx(model.predict(X[3:7]).mean())
    for x, phi in zip(X[:3], found.values, strict=True):
        np.testing.assert_allclose(phi, by_definition(model.predict, x, X[3:7]), atol=1e-10)


def test_weights_of_the_background_count_rows() -> None:
    model = kw.MKLRegressor(KERNELS).fit(X, Y)
    weighted = kw.explain(model, X[:2], X[2:4], background_weight=[2, 1])
    np.testing.assert_allclose(weighted.values, kw.explain(model, X[:2], X[[2, 2, 3]]).values, atol=1e-12)
    with pytest.raises(ValueError, match="background_weight: expected 2 numbers"):
        kw.explain(model, X[:2], X[2:4], background_weight=[1, -1])


def test_several_classes_have_an_axis_of_their_own() -> None:
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = kw.MKLClassifier([RBF(), Linear(standardize=True)]).fit(X, y)
    found = kw.explain(model, X[:4])
    assert found.values.shape == (3, 4, 5)
    adds_up(found, model, X[:4])


def test_on_the_sphere_what_is_exact_is_taken_apart_and_the_rest_says_why() -> None:
    model = kw.MKLRegressor({"rbf": RBF(), "line": Linear()}, normalize="spherical").fit(X, Y)
    found = kw.explain(model, X[:3], X[3:6])
    assert list(found.whole) == ["line"]
    assert "spherical" in found.whole["line"]
    assert found.feature_names[-1] == "kernel line"
    adds_up(found, model, X[:3])


def test_kernels_that_are_no_products_are_wholes() -> None:
    model = kw.MKLRegressor({"rbf": RBF(), "matern": Matern()}).fit(X, Y)
    found = kw.explain(model, X[:3], X[3:6])
    assert "no product over columns" in found.whole["matern"]
    np.testing.assert_allclose(found.values[:, -1], found.kernel_values[:, 1])
    adds_up(found, model, X[:3])


def test_given_matrices_stay_wholes() -> None:
    K = np.stack([A @ A.T for A in (X, X[:, :2])], axis=2)
    model = kw.MKLRegressor("precomputed").fit(K, Y)
    found = kw.explain(model, K[:3], K[3:6])
    assert len(found.whole) == 2
    assert found.values.shape == (3, 2)
    adds_up(found, model, K[:3])


def test_many_kernels_of_single_columns() -> None:
    wide = RNG.normal(size=(30, 20))
    model = kw.MKLRegressor(per_feature(RBF())).fit(wide, wide[:, 3])
    found = kw.explain(model, wide[:3], wide[3:6])
    adds_up(found, model, wide[:3])
    np.testing.assert_allclose(found.values, found.kernel_values, atol=1e-12)


def test_strings_are_explained_place_by_place() -> None:
    texts = np.array(["".join(RNG.choice(list("ACGT"), size=8)) for _ in range(30)], dtype=object)
    y = np.array([text.count("A") for text in texts], dtype=float)
    model = kw.MKLRegressor([Spectrum(1), Spectrum(2)]).fit(texts, y)
    found = kw.explain(model, texts[:4], texts[4:9])
    assert found.feature_names[:2] == ["x0[0]", "x0[1]"]
    assert not found.whole
    adds_up(found, model, texts[:4])


def test_without_attributions_within_kernels_only_sums_are_kept() -> None:
    model = kw.MKLRegressor(KERNELS).fit(X, Y)
    found = kw.explain(model, X[:2], X[2:4], within=False)
    np.testing.assert_allclose(found.values, kw.explain(model, X[:2], X[2:4]).values)
    with pytest.raises(ValueError, match="within=True"):
        found.within("rbf")
    with pytest.raises(ValueError, match="is none of"):
        found.within("unknown")
    with pytest.raises(ValueError, match="more than memory_limit: pass within=False"):
        kw.explain(model, X, memory_limit=1000)
