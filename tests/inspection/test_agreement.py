"""Attributions over refits: on noise they agree with nothing, where there is something they find it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import kernelweave as kw
from kernelweave.inspection import attribution_stability
from kernelweave.inspection.agreement import _targets
from kernelweave.kernels import RBF, Linear, bands

NOISE = {
    "values": (lambda r, n: r.normal(size=n), lambda: kw.MKLRegressor([RBF(), Linear()])),
    "classes": (lambda r, n: r.integers(0, 2, n), lambda: kw.MKLClassifier([RBF(), Linear()])),
    "times": (
        lambda r, n: np.rec.fromarrays([r.random(n) < 0.7, r.exponential(size=n)], names="event,time"),
        lambda: kw.MKLSurvival([RBF(), Linear()]),
    ),
}


@pytest.mark.parametrize(
    "kind", ["values", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("classes", "times"))]
)
def test_on_noise_intervals_cover_zero_and_sizes_do_not(kind: str) -> None:
    """Of six features of two tables eleven in twelve at least, at the level of 95 %."""
    draw, make = NOISE[kind]
    inside = 0
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 6)), draw(rng, 60)
        found = attribution_stability(make(), X, y, n_subsamples=12, level=0.95, random_state=0)
        inside += int(((found.low <= 0) & (found.high >= 0)).sum())
        assert (found.sizes > 0).all()
    assert inside >= 11


def test_the_two_columns_of_a_product_agree_with_it_and_come_first() -> None:
    X = np.random.default_rng(0).normal(size=(160, 6))
    found = attribution_stability(
        kw.MKLRegressor(RBF(), C=10.0), X, X[:, 1] * X[:, 4], n_subsamples=10, random_state=0
    )
    for order in (found.mean, found.agreement):
        assert set(np.argsort(-order)[:2]) == {1, 4}
    assert (found.low[[1, 4]] > 0).all()
    assert "2 of 6" in repr(found)


def test_the_channels_of_a_peak_come_first_in_simulated_spectra() -> None:
    rng = np.random.default_rng(0)
    wave, amount = np.arange(30), rng.normal(size=80)
    peak = np.exp(-0.5 * ((wave - 12) / 1.5) ** 2)
    other = np.exp(-0.5 * ((wave - 24) / 3.0) ** 2)
    X = np.outer(amount, peak) + np.outer(rng.normal(size=80), other) + 0.05 * rng.normal(size=(80, 30))
    names = [f"{1100 + 10 * k} nm" for k in wave]
    model = kw.MKLRegressor(bands(6), C=10.0)
    found = attribution_stability(model, X, amount, n_subsamples=8, random_state=0, feature_names=names)
    best = found.frame().feature[:3].tolist()
    assert set(best) <= {names[k] for k in range(10, 15)}
    assert (found.low[11:14] > 0).all()


def test_agreements_take_the_prediction_of_new_samples_apart() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    y = rng.choice(["a", "b", "c"], size=50)
    steps = (StandardScaler(), PolynomialFeatures(2, include_bias=False), kw.MKLClassifier([RBF(), Linear()]))
    found = attribution_stability(make_pipeline(*steps), X, y, n_subsamples=2, random_state=0)
    assert found.feature_names[-1] == "x3^2"
    rows = kw.inspection.stability.draw_subsamples(
        50, 2, 0.5, True, y, None, np.random.RandomState(0)
    )  # those of the same seed
    for part, own in zip(rows, found.agreements, strict=True):
        model = make_pipeline(*steps).fit(X[part], y[part])
        unseen = np.setdiff1d(np.arange(50), part)
        f, total = model.decision_function(X[unseen]), 0.0
        for j, label in enumerate(model[-1].classes_):
            t = (y[unseen] == label).astype(float)
            total += np.mean(f[:, j] * (t - t.mean())) / t.std()
        assert own.sum() == pytest.approx(total / 3, abs=1e-8)


def test_targets_of_pairs_and_of_several_outputs() -> None:
    class Model:
        classes_ = np.array([0, 1, 2])

    y = np.array([0, 1, 2])
    np.testing.assert_array_equal(_targets(Model(), y, 3), np.eye(3))
    np.testing.assert_array_equal(_targets(Model(), y, 1), [[0, 1, 2]])
    Model.classes_ = np.arange(4)
    assert _targets(Model(), y, 6).tolist()[0] == [-1, 1, 0]
    values: Any = _targets(object(), np.eye(3)[:, :2], 2)
    np.testing.assert_array_equal(values, np.eye(3)[:, :2].T)
    with pytest.raises(ValueError, match="y: agreement with a target needs one"):
        attribution_stability(kw.MKLOneClass(RBF()), np.eye(8), None)
