"""Interactions of two features: brute force over all sets, and how they go with attributions."""

from __future__ import annotations

from itertools import product
from math import factorial
from typing import Any

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.inspection import interactions
from kernelweave.kernels import RBF, Laplacian, Linear, Polynomial

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 7))
Y = X[:, 0] * X[:, 1] + X[:, 2]
KERNELS = {
    "rbf": RBF(),
    "l1": Laplacian(columns=[1, 2, 5]),
    "poly": Polynomial(3, 0.2),
    "mix": RBF() * Linear(),
}


def by_definition(function: Any, x: np.ndarray, background: np.ndarray, f: int) -> np.ndarray:
    """Interactions of f with all others, over all sets of the rest."""
    F = len(x)
    masks = np.array(list(product([False, True], repeat=F)))[:, ::-1]
    v = np.mean([function(np.where(masks, x, other)) for other in background], axis=0)
    found, sizes = np.zeros(F), masks.sum(axis=1)
    for g in set(range(F)) - {f}:
        rest = np.flatnonzero(~masks[:, f] & ~masks[:, g])
        both, one, two = rest + (1 << f) + (1 << g), rest + (1 << f), rest + (1 << g)
        share = [factorial(s) * factorial(F - s - 2) / factorial(F - 1) for s in sizes[rest]]
        found[g] = np.array(share) @ (v[both] - v[one] - v[two] + v[rest])
    return found


def test_interactions_are_those_over_all_sets() -> None:
    model = kw.MKLRegressor(KERNELS).fit(X, Y)
    found = interactions(model, X[:2], [0, "x5"], background=X[3:6], background_weight=[1, 1, 2])
    rows = X[[3, 4, 5, 5]]
    scale = np.abs(found.values).max()
    for r, (k, f) in product(range(2), enumerate((0, 5))):
        expected = by_definition(model.predict, X[r], rows, f)
        np.testing.assert_allclose(
            np.delete(found.values[r, k], f), np.delete(expected, f), atol=1e-10 * scale
        )
    phi = kw.explain(model, X[:2], X[3:6], background_weight=[1, 1, 2]).values
    for k, f in enumerate((0, 5)):
        halves = found.values[:, k].sum(axis=1) + found.values[:, k, f]
        np.testing.assert_allclose(halves, 2 * phi[:, f], atol=1e-10 * scale)
    assert found.features == ["x0", "x5"]
    assert found.frame(1).loc["x5", "x0"] == pytest.approx(found.frame(1).loc["x0", "x5"])


def test_features_that_are_added_up_do_not_interact() -> None:
    labels = np.digitize(Y, [-0.5, 0.5])
    model = kw.MKLClassifier([Linear(), RBF(columns=[0]), RBF(columns=[3])]).fit(X, labels)
    found = interactions(model, X[:2], [0], background=X[3:6]).values
    assert found.shape == (3, 2, 1, 7)
    np.testing.assert_allclose(found[..., 1:], 0.0, atol=1e-12)
    phi = kw.explain(model, X[:2], X[3:6]).values
    np.testing.assert_allclose(found[:, :, 0, 0], phi[..., 0], atol=1e-12)


def test_what_has_no_interactions_is_named() -> None:
    views = kw.Views({"a": X[:, :3], "b": np.where(np.arange(30)[:, None] == 1, np.nan, X[:, 3:])})
    model = kw.MKLRegressor({"a": RBF(), "b": RBF()}, missing="mask").fit(views, Y)
    with pytest.raises(ValueError, match="lack a view"):
        interactions(model, views[:3], ["a: x0"], background=views[3:5])
    found = interactions(model, views[3:5], ["a: x0"], background=views[5:7])
    assert np.abs(found.values[:, 0, 1]).max() > 0
    np.testing.assert_allclose(found.values[:, 0, 3:], 0.0, atol=1e-12)
    with pytest.raises(ValueError, match=r"'A: X0' is none of (.|\n)* Did you mean 'a: x0'\?"):
        interactions(model, views[3:5], "A: X0")
    with pytest.raises(ValueError, match="'c' is none of"):
        interactions(model, views[3:5], ["c"])
    with pytest.raises(ValueError, match="is no column of 7"):
        interactions(model, views[3:5], [7])
