"""Models are explained on torch's CPU device as by the compiled loops; test_games.py has every kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.gram.games import Expansion
from kernelweave.inspection import interactions
from kernelweave.kernels import RBF, Laplacian, Linear, Polynomial

torch = pytest.importorskip("torch", reason="needs torch")
pytestmark = pytest.mark.torch

CPU = torch.device("cpu")


def agree(game: Expansion, X: Any, background: Any, weight: Any) -> None:
    here, there = (game.attribution(X, background, weight, device) for device in (None, CPU))
    np.testing.assert_array_equal(here.players, there.players)
    np.testing.assert_allclose(
        there.values, here.values, rtol=0, atol=1e-10 * max(1.0, np.abs(here.values).max())
    )


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
