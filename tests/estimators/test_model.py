"""`model_`: one predictor of every estimator, which its predictions, components and files come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kernelweave as kw
from kernelweave.gram import KernelStack, Predictor
from kernelweave.kernels import RBF, Linear, WeightedSum, per_feature

rng = np.random.default_rng(0)
X, NEW = rng.normal(size=(50, 20)), rng.normal(size=(13, 20))
Y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=50)
LABELS, CLASSES = Y > 0, np.digitize(Y, [-0.5, 0.5])
KERNELS = [RBF(gamma=0.1, columns=[0, 1]), Linear(), RBF(gamma=0.02)]

MODELS: dict[str, tuple[Any, Any]] = {
    "binary": (kw.MKLClassifier(KERNELS), LABELS),
    "one-vs-rest": (kw.MKLClassifier(KERNELS, normalize="spherical"), CLASSES),
    "one-vs-one": (kw.MKLClassifier(KERNELS, multiclass="ovo"), CLASSES),
    "shared": (kw.MKLClassifier(KERNELS, multiclass="shared", normalize="center"), CLASSES),
    "outputs": (kw.MKLRegressor(KERNELS, multioutput="independent"), np.column_stack([Y, Y**2])),
    "together": (kw.MKLRegressor(per_feature(RBF()), normalize="center", fit_intercept=False), Y),
    "low rank": (kw.MKLClassifier(KERNELS, approximation="nystroem", rank=10, random_state=0), CLASSES),
    "novelty": (kw.MKLOneClass(KERNELS, nu=0.2), None),
    "path": (kw.GroupOMPRegressor(KERNELS, n_kernels=3), np.column_stack([Y, Y**2])),
    "path of classes": (kw.GroupOMPClassifier(KERNELS, n_kernels=2, normalize="center"), CLASSES),
    "parameters": (kw.GMKLClassifier(WeightedSum([RBF(), Linear()]), C=100.0, tol=1e-2), CLASSES),
    "posterior": (kw.EmpiricalBayesRegressor(KERNELS, tol=1e-1), Y),
    "posteriors": (kw.EmpiricalBayesClassifier(KERNELS, normalize="center", tol=1e-1), CLASSES),
    "search": (kw.MKLClassifierCV(KERNELS, Cs=2, cv=2), LABELS),
    "search of paths": (kw.GroupOMPRegressorCV(KERNELS, alphas=[1e-3, 0.1], n_kernels=2, cv=2), Y),
}


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    return {name: model.fit(X) if y is None else model.fit(X, y) for name, (model, y) in MODELS.items()}


def raw(model: Any) -> Any:
    """What the methods of an estimator say of the functions, as far as that is known."""
    method = "decision_function" if hasattr(model, "decision_function") else "predict"
    return getattr(model, method)(NEW).reshape(len(NEW), -1)


@pytest.mark.parametrize("name", MODELS)
def test_it_has_the_values_that_predictions_are_made_of(name: str, fitted: dict[str, Any]) -> None:
    model = fitted[name]
    assert isinstance(model.model_, Predictor)
    if name not in ("one-vs-one", "posteriors"):  # votes of pairs, and moderated values
        assert_allclose(model.model_(NEW), raw(model), atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_components_sum_to_the_value(name: str, fitted: dict[str, Any]) -> None:
    model = fitted[name].model_
    parts = model.components(NEW)
    assert parts.shape == (len(model.intercept), len(NEW), len(model.source.names))
    assert_allclose(parts.sum(axis=2).T + model.intercept, model(NEW), atol=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_a_state_makes_the_same_predictor(name: str, fitted: dict[str, Any]) -> None:
    model = fitted[name].model_
    again = Predictor.from_state(model.state())
    assert_array_equal(again(NEW), model(NEW))
    assert_array_equal(again.components(NEW), model.components(NEW))
    assert_array_equal(again.staged(NEW), model.staged(NEW))
    if model.posterior:
        assert_array_equal(again.variance(NEW), model.variance(NEW))


@pytest.mark.parametrize("name", MODELS)
def test_blocks_of_rows_change_nothing(
    name: str, fitted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = fitted[name].model_
    whole, parts = model(NEW), model.components(NEW)
    spread = model.variance(NEW) if model.posterior else None
    monkeypatch.setattr(Predictor, "block_bytes", 1)
    assert_allclose(model(NEW), whole, atol=1e-11)
    assert_allclose(model.components(NEW), parts, atol=1e-11)
    if spread is not None:
        assert_allclose(model.variance(NEW), spread, atol=1e-9)


def test_stages_are_the_models_of_a_path(fitted: dict[str, Any]) -> None:
    model = fitted["path"]
    stages = model.model_.staged(NEW)
    assert stages.shape == (len(NEW), 1 + len(model.path_), 2)
    assert_allclose(stages[:, 0], np.broadcast_to(model.model_.intercepts[:2], (len(NEW), 2)))
    for size in range(1, len(model.path_) + 1):
        assert_allclose(stages[:, size], model.predict(NEW, n_kernels=size))


def test_variances_are_those_of_predictions(fitted: dict[str, Any]) -> None:
    model = fitted["posterior"]
    mean, std = model.predict(NEW, return_std=True, include_noise=False)
    assert_allclose(model.model_.variance(NEW)[:, 0], std**2)
    assert_allclose(model.model_(NEW)[:, 0], mean)
    with pytest.raises(ValueError, match="no posterior"):
        fitted["binary"].model_.variance(NEW)


def test_a_fit_that_follows_leaves_it_alone(fitted: dict[str, Any]) -> None:
    model = kw.MKLClassifier(KERNELS).fit(X, LABELS)
    first, values = model.model_, model.model_(NEW)
    model.fit(-X, LABELS)
    assert_array_equal(first(NEW), values)


def test_matrices_in_place_of_data() -> None:
    kernels = [kernel.fit(X) for kernel in KERNELS]
    train, new = (KernelStack([k(Z, X) for k in kernels]) for Z in (X, NEW))
    model, same = kw.MKLClassifier("precomputed").fit(train, LABELS), kw.MKLClassifier(KERNELS).fit(X, LABELS)
    assert_allclose(model.model_(new), same.model_(NEW), atol=1e-9)
    assert_array_equal(Predictor.from_state(model.model_.state())(new), model.model_(new))


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("alpha", np.zeros((3, 1)), "coefficients have shape"),
        ("alpha", None, "array of f is missing"),
        ("intercepts", np.zeros(7), "coefficients have shape"),
        ("stages", (2, 5), "no such stage"),
        ("kernels", {}, "which is not there"),
        ("kernels", {9: Linear()}, "not among those of the fit"),
        ("rows", 1.0, "not a table"),
        ("device", "rm -rf", "device"),
        ("link", 3, "not a function"),
        ("terms", [("kernel", {"kernel": 0, "rule": None, "factors": np.ones(1)})], "no normalisation"),
    ],
)
def test_a_state_that_makes_no_sense_is_refused(
    entry: str, value: Any, message: str, fitted: dict[str, Any]
) -> None:
    state = fitted["binary"].model_.state()
    with pytest.raises(ValueError, match=message):
        Predictor.from_state({**state, entry: value})
