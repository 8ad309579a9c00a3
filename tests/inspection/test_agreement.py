"""Attributions over refits: on noise they agree with nothing, where there is something they find it."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import kernelweave as kw
from kernelweave.inspection import attribution_stability
from kernelweave.inspection.agreement import AttributionStability, _targets, _variances
from kernelweave.kernels import RBF, Linear, bands

NOISE = {
    "values": (lambda r, n: r.normal(size=n), lambda: kw.MKLRegressor([RBF(), Linear()])),
    "classes": (lambda r, n: r.integers(0, 2, n), lambda: kw.MKLClassifier([RBF(), Linear()])),
    "times": (
        lambda r, n: np.rec.fromarrays([r.random(n) < 0.7, r.exponential(size=n)], names="event,time"),
        lambda: kw.MKLSurvival([RBF(), Linear()]),
    ),
}


def covered(kind: str, seeds: range, n_subsamples: int) -> tuple[int, int]:
    """Of six features of tables of 60 samples, how many intervals at the level of 95 % cover 0."""
    draw, make = NOISE[kind]
    inside = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 6)), draw(rng, 60)
        found = attribution_stability(make(), X, y, n_subsamples=n_subsamples, level=0.95, random_state=0)
        inside += int(((found.low <= 0) & (found.high >= 0)).sum())
        assert (found.sizes > 0).all()
    return inside, 6 * len(seeds)


def least(level: float, count: int) -> float:
    """The level less two standard errors of a share of so many."""
    return level - 2.0 * np.sqrt(level * (1.0 - level) / count)


def test_on_noise_intervals_cover_zero_and_sizes_do_not() -> None:
    inside, _ = covered("values", range(2), 12)
    assert inside >= 11


@pytest.mark.slow
@pytest.mark.parametrize("n_subsamples", [4, 20])
@pytest.mark.parametrize("kind", list(NOISE))
def test_on_noise_intervals_cover_zero_as_often_as_they_say(kind: str, n_subsamples: int) -> None:
    inside, count = covered(kind, range(100, 140), n_subsamples)
    assert inside >= count * least(0.95, count)


@pytest.mark.parametrize("fraction", [0.5, 0.3])
@pytest.mark.parametrize("directions", [1, 3, 30])
@pytest.mark.parametrize("pairs", [1, 10])
def test_the_law_that_intervals_are_derived_from(pairs: int, directions: int, fraction: float) -> None:
    """Agreements c_A c_B of estimates of nothing in two parts of the samples, and their variances."""
    tables, f, rng = 2000, fraction, np.random.default_rng(0)
    c = rng.normal(size=(tables, directions))
    agreements, variances = [], []
    for _ in range(pairs):
        delta = rng.normal(size=c.shape) / np.sqrt(f * (1 - f))
        for sign in (1.0, -1.0):  # f = 1/2: the other half
            a, b = c + sign * (1 - f) * delta, c - sign * f * delta
            agreements.append((a * b).sum(axis=1))
            variances.append((a**2).sum(axis=1) / (1 - f))
    found = AttributionStability(
        [""] * tables, np.array(agreements), np.array(agreements), np.array(variances), 2 * f * (1 - f), 0.95
    )
    inside = np.mean((found.low <= 0) & (found.high >= 0))
    assert inside >= least(0.95, tables)
    if directions == 30 and fraction == 0.5:
        assert inside <= 0.99  # and not by being far too wide


@pytest.mark.parametrize("functions", [1, 2])
def test_variances_are_those_over_all_orders_of_the_targets(functions: int) -> None:
    rng = np.random.default_rng(0)
    targets, values = rng.normal(size=(functions, 6)), rng.normal(size=(functions, 6, 3))
    targets -= targets.mean(axis=1, keepdims=True)
    every = [
        np.einsum("jn,jnf->f", targets[:, list(order)], values) / (6 * functions)
        for order in permutations(range(6))
    ]
    np.testing.assert_allclose(_variances(targets, values), np.var(every, axis=0), rtol=1e-10)


def test_samples_of_a_group_count_as_one() -> None:
    """Samples that are there twice are no more evidence than once."""
    rng = np.random.default_rng(0)
    targets, values = rng.normal(size=(1, 40)), rng.normal(size=(1, 40, 3))
    targets -= targets.mean()
    twice = _variances(np.tile(targets, 2), np.tile(values, (1, 2, 1)), np.tile(np.arange(40), 2))
    np.testing.assert_allclose(twice, _variances(targets, values, np.arange(40)), rtol=1e-10)
    X, patients = rng.normal(size=(40, 2)), np.repeat(np.arange(20), 2)
    found = attribution_stability(
        kw.MKLRegressor(Linear()), X, X[:, 0], n_subsamples=4, groups=patients, random_state=0
    )
    assert found.low[0] > 0


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
    with pytest.raises(ValueError, match="y has 5 entries for 8 samples"):
        attribution_stability(kw.MKLRegressor(RBF()), np.eye(8), np.ones(5))
    with pytest.raises(ValueError, match="y: agreement needs a target"):
        attribution_stability(kw.MKLOneClass(RBF()), np.eye(8), None)
