"""Regularisers made from the user's own function: constraints, corners, concave ones, strengths."""

from __future__ import annotations

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.kernels import Linear, per_feature
from kernelweave.regularizers import (
    ElasticNet,
    FromBlockNorm,
    FromPrice,
    LogTerm,
    LpNorm,
    Uniform,
    Wedge,
    equivalent_cost,
)


def ball(d):
    return 0.0 if (d**2).sum() <= 1.0 else np.inf


def box(d):
    return 0.0 if d.max() <= 1.0 else np.inf


def ordered(d):
    return float(d.sum()) if (np.diff(d) <= 1e-12).all() else np.inf


def square(d):
    return float((d**2).sum()) / 2


def block_one(x):
    return float(np.sqrt(x).sum())


PAIRS = {
    "ball": (FromPrice(ball), LpNorm(p=2)),
    "box": (FromPrice(box), Uniform()),
    "sum": (FromPrice(np.sum), LpNorm(p=1, form="penalty")),
    "sum with gradient": (FromPrice(np.sum, gradient=np.ones_like), LpNorm(p=1, form="penalty")),
    "square": (FromPrice(square, gradient=np.positive), LpNorm(p=2, form="penalty")),
    "wedge": (FromPrice(ordered, basis=np.triu(np.ones((3, 3)))), Wedge()),
    "roots": (FromBlockNorm(block_one), ElasticNet(l1_ratio=1)),
    "roots with gradient": (FromBlockNorm(block_one, lambda x: 0.5 / np.sqrt(x)), ElasticNet(l1_ratio=1)),
    "norm": (FromBlockNorm(lambda x: 0.5 * np.sqrt(x).sum() ** 2), LpNorm(p=1)),
}
each_pair = pytest.mark.parametrize(("own", "known"), PAIRS.values(), ids=PAIRS)


@pytest.fixture
def norms(rng):
    return rng.gamma(1.0, size=(3, 3)) + 0.05


@each_pair
def test_penalty_and_weights(own, known, norms):
    for n in norms:
        assert own.penalty(n) == pytest.approx(known.penalty(n), rel=1e-8)
        np.testing.assert_allclose(own.weights(n), known.weights(n), rtol=1e-5)


@each_pair
def test_conjugate(own, known, norms):
    for r in (0.3 * norms[0], norms[1], 3.0 * norms[2]):
        assert own.conjugate(r) == pytest.approx(known.conjugate(r), rel=1e-6, abs=1e-8)
        assert own.dual_scale(r) == pytest.approx(known.dual_scale(r), rel=1e-6)


@each_pair
def test_kernels_without_norm(own, known):
    n = np.array([2.0, 0.0, 1.0])
    d = own.weights(n)
    assert np.isfinite(d).all()
    assert (d >= 0).all()
    assert own.penalty(n) == pytest.approx(known.penalty(n), rel=1e-6)
    assert (own.weights(np.zeros(3)) > 0).all()


def data(rng, n=50):
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] - 0.5 * X[:, 1] + 0.3 * rng.normal(size=n)


@pytest.mark.wide
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["ball", "sum with gradient", "roots with gradient", "square"])
def test_fits_are_certified(name, rng):
    own, known = PAIRS[name]
    X, score = data(rng)
    options = {"C": 1.0, "tol": 1e-4, "max_iter": 500}
    kernels = per_feature(Linear())
    for estimator, y in ((kw.MKLClassifier, np.sign(score)), (kw.MKLRegressor, score)):
        model = estimator(kernels, regularizer=own, **options).fit(X, y)
        expected = estimator(kernels, regularizer=known, **options).fit(X, y)
        assert model.dual_gap_ <= 1e-4
        assert model.objective_ == pytest.approx(expected.objective_, rel=2e-4)


def test_a_concave_block_norm_is_fitted_as_the_terms_are(rng):
    X, y = data(rng)
    own = FromBlockNorm(lambda x: 0.5 * np.log(1e-12 + x).sum(), lambda x: 0.5 / (1e-12 + x), convex=False)
    models = [
        kw.MKLRegressor(per_feature(Linear()), regularizer=rule, C=5.0).fit(X, y) for rule in (own, LogTerm())
    ]
    np.testing.assert_allclose(models[0].weights_, models[1].weights_, rtol=1e-6)
    assert (models[0].weights_ == 0).sum() == 1


def mu_square(d, mu=7.0):
    return mu * float((d**2).sum()) / 2


@pytest.mark.parametrize("to", ["constraint", "penalty"])
def test_strength_of_the_penalty(rng, to):
    """C sum V + 1/2 sum n^2/d + mu/2 sum d^2/2 has the model of the constraint at the equivalent C."""
    X, y = data(rng)
    own, known = FromPrice(mu_square, gradient=lambda d: 7.0 * d), LpNorm(p=2)
    rules = (own, known) if to == "constraint" else (known, own)
    options = {"tol": 1e-7, "max_iter": 500}
    first = kw.MKLRegressor(per_feature(Linear()), regularizer=rules[0], C=2.0, **options).fit(X, y)
    C = equivalent_cost(2.0, first.norms_, known, to=to, mu=7.0)
    second = kw.MKLRegressor(per_feature(Linear()), regularizer=rules[1], C=C, **options).fit(X, y)
    np.testing.assert_allclose(second.predict(X), first.predict(X), atol=1e-3)
    np.testing.assert_allclose(second.norms_, first.norms_, atol=1e-3)
    np.testing.assert_allclose(second.weights_ * C, 2.0 * first.weights_, rtol=1e-2, atol=1e-4)
    back = "penalty" if to == "constraint" else "constraint"
    assert equivalent_cost(C, second.norms_, known, to=back, mu=7.0) == pytest.approx(2.0, rel=1e-3)
