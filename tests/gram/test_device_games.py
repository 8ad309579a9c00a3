"""Games of features on torch's CPU device have the values of the compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.gram.games import Expansion
from kernelweave.inspection import interactions
from kernelweave.kernels import (
    RBF,
    Chi2,
    HistogramIntersection,
    Laplacian,
    Linear,
    Polynomial,
    Spectrum,
    WeightedDegree,
)

torch = pytest.importorskip("torch", reason="needs torch")
pytestmark = pytest.mark.torch

CPU = torch.device("cpu")

KERNELS = [
    RBF(0.5),
    RBF(30.0),
    RBF(0.3, standardize=True),
    Laplacian(0.4),
    Chi2(1.0),
    Linear(),
    HistogramIntersection(),
    Polynomial(2, gamma=0.3),
    Polynomial(5, gamma=0.1, coef0=0.0),
    2.0 * RBF(0.1) + 1.0,
    RBF(0.1) * Linear(),
    RBF(0.5, columns=[0, 1, 2]) * Laplacian(0.3, columns=[2, 3]) + Linear(columns=[5]),
    (RBF(0.1) + 2.0) * Polynomial(2, gamma=0.2) * Linear(columns=[1, 5]) + 3.0 * Chi2(0.5),
    Linear(columns=[1, 1, 3]) * HistogramIntersection(),
    RBF(0.2, columns=[4, 0, 0]),
]


@pytest.fixture(params=[1 << 27, 1 << 12], ids=["one block", "many blocks"])
def _blocks(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelweave.gram.torch.games.BLOCK_BYTES", request.param)


def agree(game: Expansion, X: Any, background: Any, weight: Any) -> None:
    here, there = (game.attribution(X, background, weight, device) for device in (None, CPU))
    np.testing.assert_array_equal(here.players, there.players)
    np.testing.assert_allclose(
        there.values, here.values, rtol=0, atol=1e-10 * max(1.0, np.abs(here.values).max())
    )


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.label)
def test_a_device_gives_the_values_of_the_compiled_loops(kernel: Any) -> None:
    rng = np.random.default_rng(0)
    X, Z, background = (rng.gamma(1.0, size=(n, 8)) for n in (5, 7, 3))
    background[1, :3] = X[2, :3]
    background[2] = X[0]  # a game without players
    agree(Expansion(kernel.fit(Z), Z, rng.normal(size=(7, 2))), X, background, np.array([0.3, 0.5, 0.2]))


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize(
    "kernel",
    [WeightedDegree(3), WeightedDegree(4, shift=2), Spectrum(2), 2.0 * Spectrum(1) + WeightedDegree(2)],
    ids=lambda kernel: kernel.label,
)
def test_places_of_strings_too(kernel: Any) -> None:
    rng = np.random.default_rng(1)
    texts = ["".join(rng.choice(list("AC"), size=9)) for _ in range(10)]
    X, Z, background = (np.array(part, dtype=object)[:, None] for part in (texts[:3], texts[3:7], texts[7:]))
    background[0, 0] = background[0, 0][:5]
    agree(Expansion(kernel.fit(Z), Z, rng.normal(size=(4, 2))), X, background, np.array([0.5, 0.3, 0.2]))


def test_a_factor_that_is_nothing_in_both_rows_is_no_error() -> None:
    Z, X, background = np.zeros((1, 2)), np.array([[100.0, 1.0]]), np.array([[90.0, 0.0], [0.5, 0.5]])
    agree(Expansion(RBF(1.0).fit(Z), Z, np.ones((1, 1))), X, background, np.array([0.5, 0.5]))


@pytest.mark.parametrize("width", [0.01, 1.0, 100.0])
def test_a_thousand_features_add_up(width: float) -> None:
    rng = np.random.default_rng(0)
    X, Z, background = (rng.normal(size=(n, 1000)) for n in (2, 4, 2))
    background[1, 500:] = X[0, 500:]
    kernel = (RBF("scale", factor=width) + Laplacian("scale", factor=width)).fit(Z)
    game, weight = Expansion(kernel, Z, rng.normal(size=(4, 1))), np.array([0.5, 0.5])
    found = game.attribution(X, background, weight, CPU)
    values, others = (kernel(A, Z) @ game.coef for A in (X, background))
    np.testing.assert_allclose(found.values[0].sum(axis=1), values[:, 0] - weight @ others[:, 0], atol=1e-8)
    agree(game, X, background, weight)


@pytest.fixture(scope="module")
def fitted() -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    kernels = {"rbf": RBF(), "line": Linear(), "mix": RBF() * Polynomial(2, 0.2), "part": RBF(columns=[1, 2])}
    y = np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3])
    return kw.MKLClassifier(kernels, device="torch:cpu").fit(X, y), X


def test_models_are_explained_where_they_were_fitted(fitted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = fitted
    used = []
    original = Expansion.attribution

    def spy(self: Expansion, *args: Any) -> Any:
        used.append(args[3])
        return original(self, *args)

    monkeypatch.setattr(Expansion, "attribution", spy)
    own = kw.explain(model, X[:4], X[4:9])
    assert set(used) == {CPU}
    used.clear()
    host = kw.explain(model, X[:4], X[4:9], device="cpu")
    assert set(used) == {None}
    np.testing.assert_allclose(own.values, host.values, atol=1e-10)
    np.testing.assert_allclose(own.kernel_values, host.kernel_values, atol=1e-10)
    total = own.values.sum(axis=2) + own.base_value[:, None]
    np.testing.assert_allclose(total.T, model.decision_function(X[:4]), atol=1e-8)
    pairs = [interactions(model, X[:2], [0], X[4:7], device=device).values for device in (None, "cpu")]
    np.testing.assert_allclose(*pairs, atol=1e-10)


def test_tensors_are_explained_as_arrays_are(fitted: Any) -> None:
    model, X = fitted
    tensor = torch.from_numpy(X)
    found = kw.explain(model, tensor[:4], tensor[4:9])
    np.testing.assert_allclose(found.values, kw.explain(model, X[:4], X[4:9]).values, atol=1e-12)


def test_a_device_that_is_missing_is_refused_when_it_was_asked_for(fitted: Any) -> None:
    model, X = fitted
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="sees no CUDA device"):
            kw.explain(model, X[:2], device="cuda")
        moved = kw.MKLRegressor(RBF()).fit(X, X[:, 0])
        moved.model_.device = "cuda"  # fitted on another machine
        assert kw.explain(moved, X[:2]).values.shape == (2, 5)
