"""Estimators with kernels of low rank: the same models where nothing is lost, bounds where something is."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import kernelweave as kw
from kernelweave.gram.lowrank import Nystroem
from kernelweave.inspection import contributions
from kernelweave.kernels import RBF, Linear, Polynomial

KERNELS = [RBF(0.05), RBF(0.5), Linear(), Polynomial(2), RBF(0.3, columns=[0, 1])]
REGULARIZERS = [kw.LpNorm(p=1), kw.LpNorm(p=2), kw.ElasticNet(0.5), kw.BlockNorm(q=4), kw.SMKL(), "uniform"]


def full_rank(model, data):
    """The model with as many landmarks as samples, which loses nothing."""
    return (
        clone(model)
        .set_params(approximation="nystroem", rank=len(data.X), random_state=0)
        .fit(data.X, data.y)
    )


@pytest.fixture
def factored(monkeypatch):
    """No sum of kernels is formed as a matrix, however few the samples."""
    monkeypatch.setattr("kernelweave.gram.lowrank.engine.MOST_FORMED", 0)


#: a kink, smoothed ever less, at every majorant of a concave penalty
EXPENSIVE = ("hinge", "SMKL()")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("loss", "regularizer"),
    [
        pytest.param(
            loss, rule, marks=pytest.mark.slow if (loss, str(rule)) == EXPENSIVE else (), id=f"{loss}-{rule}"
        )
        for loss in ("hinge", "logistic", "squared_hinge")
        for rule in REGULARIZERS
    ],
)
def test_full_rank_is_the_exact_model(binary, factored, loss, regularizer):
    model = kw.MKLClassifier(KERNELS, loss=loss, regularizer=regularizer, tol=1e-4)
    exact, low = clone(model).fit(binary.X, binary.y), full_rank(model, binary)
    assert low.gram_ == "low_rank"
    assert low.stationarity_ <= 1e-4
    assert low.objective_ == pytest.approx(exact.objective_, rel=1e-3)
    if low.dual_gap_ <= 1e-4:  # concave penalties have other stationary points
        np.testing.assert_allclose(
            low.decision_function(binary.X_new), exact.decision_function(binary.X_new), atol=0.05
        )


@pytest.mark.wide
@pytest.mark.sampled(4)
@pytest.mark.parametrize("normalize", ["variance", "spherical", "trace", "dimension", "center", None])
@pytest.mark.parametrize("loss", ["squared", "eps_insensitive", "huber"])
def test_every_normalisation_and_regression(regression, factored, loss, normalize):
    model = kw.MKLRegressor(KERNELS, loss=loss, normalize=normalize, tol=1e-4)
    exact, low = clone(model).fit(regression.X, regression.y), full_rank(model, regression)
    assert low.objective_ == pytest.approx(exact.objective_, rel=1e-3)
    np.testing.assert_allclose(low.predict(regression.X_new), exact.predict(regression.X_new), atol=0.05)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("multiclass", ["ovr", "ovo", "shared"])
def test_several_classes(four, factored, multiclass):
    model = kw.MKLClassifier(KERNELS, multiclass=multiclass, tol=1e-4)
    exact, low = clone(model).fit(four.X, four.y), full_rank(model, four)
    np.testing.assert_allclose(low.objective_, exact.objective_, rtol=1e-3)
    assert (low.predict(four.X_new) == exact.predict(four.X_new)).mean() > 0.95
    np.testing.assert_allclose(low.predict_proba(four.X_new), exact.predict_proba(four.X_new), atol=0.1)


def test_novelty_detection(binary, factored):
    model = kw.MKLOneClass([RBF(0.1), RBF(1.0)], nu=0.2, tol=1e-4)
    exact, low = clone(model).fit(binary.X), full_rank(model, binary)
    assert low.objective_ == pytest.approx(exact.objective_, rel=1e-3)
    np.testing.assert_allclose(low.score_samples(binary.X_new), exact.score_samples(binary.X_new), atol=0.01)


@pytest.mark.parametrize(
    "approximation", ["nystroem", Nystroem("kmeans"), Nystroem("leverage"), "rff"], ids=str
)
def test_predictions_are_those_of_the_objective(binary, factored, approximation):
    options = {"approximation": approximation, "rank": 20, "random_state": 0}
    model = kw.MKLClassifier(KERNELS, loss="logistic", **options)
    model.fit(binary.X, binary.y)
    assert model.dual_gap_ <= 1e-3
    f = model.decision_function(binary.X)
    sign = np.where(binary.y == model.classes_[1], 1.0, -1.0)
    loss = np.logaddexp(0.0, -sign * f).sum()
    penalty = 0.5 * np.linalg.norm(model.norms_, 4.0 / 3.0) ** 2
    assert loss + penalty == pytest.approx(model.objective_, rel=1e-6)
    parts = contributions(model, binary.X_new)
    np.testing.assert_allclose(
        parts.sum(axis=1) + model.intercept_, model.decision_function(binary.X_new), rtol=1e-6
    )
    again = clone(model).fit(binary.X, binary.y)
    np.testing.assert_array_equal(again.weights_, model.weights_)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rank", [3, 10, 40])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_the_bound_holds_around_the_exact_optimum(binary, factored, p, rank, monkeypatch):
    options = {"regularizer": kw.LpNorm(p=p), "normalize": None, "tol": 1e-5}
    exact = kw.MKLClassifier(KERNELS, **options).fit(binary.X, binary.y)
    low = kw.MKLClassifier(KERNELS, approximation="nystroem", rank=rank, random_state=0, **options)
    low.fit(binary.X, binary.y)
    worse = (low.objective_ - exact.objective_) / low.objective_
    assert -2e-5 <= worse <= low.full_rank_gap_
    assert (low.approximation_errors_ >= 0).all()
    monkeypatch.setattr("kernelweave.gram.lowrank.dictionary.MOST_PAIRS", 0)
    by_diagonal = clone(low).fit(binary.X, binary.y).full_rank_gap_
    assert by_diagonal >= low.full_rank_gap_ - 1e-12


def test_random_features_have_no_bound(binary):
    low = kw.MKLClassifier([RBF()], approximation="rff", rank=50, random_state=0).fit(binary.X, binary.y)
    assert np.isnan(low.full_rank_gap_)


def test_factors_beyond_memory_are_computed_anew(binary, factored):
    model = kw.MKLClassifier(KERNELS, loss="logistic", approximation="nystroem", rank=20, random_state=0)
    stored = clone(model).fit(binary.X, binary.y)
    computed = clone(model).set_params(memory_limit=1000).fit(binary.X, binary.y)
    assert "computed again" in computed.gram_reason_
    assert computed.objective_ == pytest.approx(stored.objective_, rel=1e-3)


def test_memory_maps_and_weights(binary, factored, tmp_path):
    np.save(tmp_path / "X.npy", binary.X.astype(np.float32))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    weight = np.ones(len(X))
    weight[:5] = 0.0
    model = kw.MKLClassifier(KERNELS, approximation="nystroem", rank=20, random_state=0)
    mapped = clone(model).fit(X, binary.y, weight)
    plain = clone(model).fit(np.asarray(X)[5:], binary.y[5:])
    assert mapped.objective_ == pytest.approx(plain.objective_, rel=1e-3)
    assert mapped.dual_coef_.shape == (len(X),)


def test_a_stored_model_predicts_the_same(binary, tmp_path):
    for approximation, normalize in (
        ("nystroem", "center"),
        ("rff", "spherical"),
        (Nystroem("kmeans"), None),
    ):
        model = kw.MKLClassifier(
            KERNELS, approximation=approximation, normalize=normalize, rank=20, random_state=0
        )
        model.fit(binary.X, binary.y)
        kw.save_model(model, tmp_path / "model.kw")
        loaded = kw.load_model(tmp_path / "model.kw")
        np.testing.assert_array_equal(
            loaded.decision_function(binary.X_new), model.decision_function(binary.X_new)
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"approximation": "svd"}, "approximation='svd'"),
        ({"approximation": "nystroem", "rank": 0}, "rank=0"),
        ({"approximation": "nystroem", "gram": "dense"}, "gram='auto'"),
        ({"approximation": Nystroem("best")}, "landmarks='best'"),
    ],
)
def test_bad_parameters_are_named(binary, options, message):
    with pytest.raises(ValueError, match=message):
        kw.MKLClassifier(KERNELS, **options).fit(binary.X, binary.y)


def test_precomputed_kernels_are_refused(binary):
    with pytest.raises(ValueError, match="have all their entries already"):
        kw.MKLClassifier("precomputed", approximation="nystroem").fit(np.ones((4, 4, 1)), [0, 1, 0, 1])
