"""Shapley values of features: against all subsets, for every kernel that is taken apart."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from math import factorial
from typing import Any

import numpy as np
import pytest

from kernelweave.gram import games
from kernelweave.gram.games import (
    Expansion,
    NotByFeatureError,
    _legendre,
    check_by_feature,
    constant_diagonal,
    rules,
)
from kernelweave.kernels import (
    RBF,
    Chi2,
    HistogramIntersection,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Spectrum,
    Tanimoto,
    WeightedDegree,
)


def over_all_subsets(value: Callable[[np.ndarray], np.ndarray], F: int) -> np.ndarray:
    """Shapley values (J, F) by their definition; `value` takes masks (2^F, F) and returns (2^F, J)."""
    masks = np.array(list(product([False, True], repeat=F)))[:, ::-1]  # row S has the bits of S
    v = value(masks)
    sizes = masks.sum(axis=1)
    phi = np.zeros((v.shape[1], F))
    for f in range(F):
        without = np.flatnonzero(~masks[:, f])
        orders = np.array([factorial(s) * factorial(F - s - 1) / factorial(F) for s in sizes[without]])
        phi[:, f] = orders @ (v[without + (1 << f)] - v[without])
    return phi


def of_tables(kernel: Any, Z: Any, coef: Any, X: Any, background: Any, weight: Any) -> np.ndarray:
    def value(x: np.ndarray, masks: np.ndarray) -> np.ndarray:
        mixed = [kernel(np.where(masks, x, other), Z) @ coef for other in background]
        return np.einsum("b,bsj->sj", weight, mixed)

    return np.stack([over_all_subsets(partial(value, x), X.shape[1]) for x in X], axis=1)


KERNELS = [
    RBF(0.5),
    RBF(30.0),
    RBF(0.3, standardize=True),
    Laplacian(0.4),
    Chi2(1.0),
    Linear(),
    Linear(standardize=True),
    HistogramIntersection(),
    Polynomial(2, gamma=0.3),
    Polynomial(3, gamma=0.2, coef0=0.0),
    Polynomial(5, gamma=0.1),
    2.0 * RBF(0.1) + 1.0,
    RBF(0.1) * Linear(),
    RBF(0.5, columns=[0, 1, 2]) * Laplacian(0.3, columns=[2, 3]) + Linear(columns=[5]),
    (RBF(0.1) + 2.0) * Polynomial(2, gamma=0.2) * Linear(columns=[1, 5]) + 3.0 * Chi2(0.5),
    Linear(columns=[1, 1, 3]) * HistogramIntersection(),
    RBF(0.2, columns=[4, 0, 0]),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.label)
def test_attributions_are_the_shapley_values_over_all_subsets(kernel: Any) -> None:
    rng = np.random.default_rng(0)
    X, Z, background = (rng.gamma(1.0, size=(n, 10)) for n in (2, 4, 2))
    coef, weight = rng.normal(size=(4, 2)), np.array([0.3, 0.5])
    fitted = kernel.fit(Z)
    found = Expansion(fitted, Z, coef).attribution(X, background, weight)
    phi = np.zeros((2, 2, 10))
    assert (found.players[:, 1] == -1).all()
    phi[..., found.players[:, 0]] = found.values
    expected = of_tables(fitted, Z, coef, X, background, weight)
    assert np.abs(phi - expected).max() <= 1e-10 * max(1.0, np.abs(expected).max())


STRINGS = [WeightedDegree(3), WeightedDegree(4, shift=2), Spectrum(2), 2.0 * Spectrum(1) + WeightedDegree(2)]


@pytest.mark.parametrize("kernel", STRINGS, ids=lambda kernel: kernel.label)
def test_places_of_strings_have_the_shapley_values_over_all_subsets(kernel: Any) -> None:
    rng = np.random.default_rng(1)
    texts = ["".join(rng.choice(list("AC"), size=7)) for _ in range(7)]
    X, Z, background = (np.array(part, dtype=object)[:, None] for part in (texts[:2], texts[2:5], texts[5:]))
    background[0, 0] = background[0, 0][:5]  # shorter: places beyond the end are equal to none
    coef, weight = rng.normal(size=(3, 1)), np.array([0.5, 0.5])
    fitted = kernel.fit(Z)
    found = Expansion(fitted, Z, coef).attribution(X, background, weight)
    np.testing.assert_array_equal(found.players, np.column_stack([np.zeros(7), np.arange(7)]))
    for row, (x,) in enumerate(X):

        def value(masks: np.ndarray, x: str = x) -> np.ndarray:
            total = np.zeros((len(masks), 1))
            for w, (other,) in zip(weight, background, strict=True):
                padded = other.ljust(7, "-")
                mixed = ["".join(np.where(mask, list(x), list(padded))) for mask in masks]
                total += w * fitted(np.array(mixed, dtype=object)[:, None], Z) @ coef
            return total

        np.testing.assert_allclose(found.values[:, row], over_all_subsets(value, 7), atol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("block", [1 << 27, 1 << 12], ids=["one block", "many blocks"])
@pytest.mark.parametrize("kernel", [*KERNELS, *STRINGS], ids=lambda kernel: kernel.label)
def test_a_device_gives_the_values_of_the_compiled_loops(
    kernel: Any, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    monkeypatch.setattr("kernelweave.gram.torch.games.BLOCK_BYTES", block)
    rng = np.random.default_rng(1)
    if kernel in STRINGS:
        texts = np.array(["".join(rng.choice(list("AC"), size=9)) for _ in range(15)], dtype=object)[:, None]
        X, Z, background = texts[:5], texts[5:12], texts[12:]
        background[0, 0] = background[0, 0][:5]
    else:
        X, Z, background = (rng.gamma(1.0, size=(n, 8)) for n in (5, 7, 3))
        background[1, :3] = X[2, :3]
        background[2] = X[0]  # a game without players
    game, weight = Expansion(kernel.fit(Z), Z, rng.normal(size=(7, 2))), np.array([0.3, 0.5, 0.2])
    here, there = (game.attribution(X, background, weight, on) for on in (None, torch.device("cpu")))
    np.testing.assert_array_equal(here.players, there.players)
    size = max(1.0, np.abs(here.values).max())
    np.testing.assert_allclose(there.values, here.values, rtol=0, atol=1e-10 * size)


@pytest.mark.parametrize("width", [0.01, 1.0, 100.0])
def test_attributions_of_a_thousand_features_add_up(width: float) -> None:
    rng = np.random.default_rng(0)
    X, Z, background = (rng.normal(size=(n, 1000)) for n in (2, 4, 2))
    background[1, 500:] = X[0, 500:]
    kernel = (RBF("scale", factor=width) + Laplacian("scale", factor=width)).fit(Z)
    coef, weight = rng.normal(size=(4, 1)), np.array([0.5, 0.5])
    found = Expansion(kernel, Z, coef).attribution(X, background, weight)
    values, others = (kernel(A, Z) @ coef for A in (X, background))
    np.testing.assert_allclose(found.values[0].sum(axis=1), values[:, 0] - weight @ others[:, 0], atol=1e-8)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(),
        Laplacian(),
        Chi2(),
        Linear(),
        HistogramIntersection(),
        Polynomial(2),
        Polynomial(5, gamma=0.001),
        RBF() * Linear(),
        (2.0 * RBF(columns=list(range(600))) + Laplacian()) * Polynomial(2, columns=list(range(400, 1000))),
    ],
    ids=lambda kernel: kernel.label,
)
def test_every_kernel_adds_up_over_a_thousand_features(kernel: Any) -> None:
    rng = np.random.default_rng(0)
    X, Z, background = (rng.gamma(1.0, size=(n, 1000)) for n in (2, 3, 1))
    coef, fitted = rng.normal(size=(3, 1)), kernel.fit(Z)
    found = Expansion(fitted, Z, coef).attribution(X, background, np.ones(1))
    expected = ((fitted(X, Z) - fitted(background, Z)) @ coef)[:, 0]
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found.values[0].sum(axis=1), expected, rtol=0, atol=1e-8 * scale)


@pytest.mark.parametrize("spread", [0.01, 0.3, 3.0, 30.0])
def test_fewer_nodes_give_what_the_exact_rule_does(spread: float) -> None:
    from kernelweave.gram._game_loops import product_games

    rng = np.random.default_rng(2)
    V, A = (np.exp(-spread * rng.gamma(1.0, size=(3, 1, 60)) / 60) for _ in range(2))
    weight, coef = np.ones(3), np.ones((1, 1))
    few, exact = np.zeros((1, 3, 60)), np.zeros((1, 3, 60))
    product_games(V, A, weight, coef, *rules(60), few)
    product_games(V, A, weight, coef, np.array([np.inf]), np.array([0, 30]), *_legendre(30), exact)
    np.testing.assert_allclose(few, exact, rtol=0, atol=1e-14)


@pytest.mark.parametrize("width", [0.002, 0.05])
def test_products_with_powers_take_fewer_nodes_too(width: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    Z, X, background = rng.normal(size=(3, 90)), rng.normal(size=(2, 90)), rng.normal(size=(2, 90))
    kernel = (RBF(width) * Polynomial(2, 0.3)).fit(Z)
    game, weight = Expansion(kernel, Z, rng.normal(size=(3, 1))), np.full(2, 0.5)
    found = game.attribution(X, background, weight).values
    used = []

    def exact(F: int, most: int) -> Any:
        used.append(np.diff(rules(F, most)[1]))
        nodes, shares = _legendre(most)
        return np.array([np.inf]), np.array([0, most]), nodes, shares

    monkeypatch.setattr(games, "rules", exact)
    expected = game.attribution(X, background, weight).values
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())
    assert used[0][-1] == 45 > used[0][0]


def test_a_factor_that_is_nothing_in_both_rows_is_no_error() -> None:
    Z, X, background = np.zeros((1, 2)), np.array([[100.0, 1.0]]), np.array([[90.0, 0.0]])
    found = Expansion(RBF(1.0).fit(Z), Z, np.ones((1, 1))).attribution(X, background, np.ones(1))
    assert not found.values.any()


def test_kernels_that_are_no_products_say_so() -> None:
    X = np.eye(3)
    for kernel in (Matern(), Tanimoto(), RBF() * Matern()):
        with pytest.raises(NotByFeatureError, match="is no product over columns"):
            check_by_feature(kernel.fit(X))

    class Half(RBF):
        """Computes in a way of its own."""

        def _compute(self, X: Any, Z: Any) -> np.ndarray:
            return 0.5 * super()._compute(X, Z)

    with pytest.raises(NotByFeatureError):
        check_by_feature(Half().fit(X))


def test_a_constant_diagonal_is_known_by_form() -> None:
    X = np.random.default_rng(0).normal(size=(4, 2))
    kernel = (2.0 * RBF(1.0) * Laplacian(1.0) + 1.0).fit(X)
    np.testing.assert_allclose(kernel.diag(X), constant_diagonal(kernel))
    assert constant_diagonal(Linear().fit(X)) is None
