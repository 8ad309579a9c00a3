"""A constraint and a penalty on the weights have the same models, at the equivalent C."""

from __future__ import annotations

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.kernels import Linear, per_feature
from kernelweave.regularizers import (
    SMKL,
    BlockNorm,
    ElasticNet,
    FromBlockNorm,
    FromPrice,
    LpNorm,
    Mahalanobis,
    MFocussTerm,
    MKLTerm,
    Uniform,
    Wedge,
    equivalent_cost,
)

E = np.array([[1.0, 0.3, -0.2], [0.3, 1.5, 0.1], [-0.2, 0.1, 0.8]])
PAIRS = [
    LpNorm(p=1.5, costs=np.array([0.5, 1.0, 2.0])),
    BlockNorm(q=1),
    BlockNorm(q=1.3),
    BlockNorm(q=4),
    Mahalanobis(E),
    Wedge(),
    Uniform(),
    *(ElasticNet(ratio) for ratio in (0.0, 0.4, 1.0)),
]
each_pair = pytest.mark.parametrize("rule", PAIRS, ids=lambda rule: repr(rule)[:30])


def sample(rng, n=30):
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] - 0.6 * X[:, 1] + 0.2 * X[:, 2] + 0.3 * rng.normal(size=n)


def fitted(rule, C, X, y, estimator=kw.MKLRegressor):
    model = estimator(per_feature(Linear()), regularizer=rule, C=C, tol=1e-9, max_iter=2000).fit(X, y)
    assert model.dual_gap_ <= 1e-9
    return model


@each_pair
@pytest.mark.parametrize("to", ["constraint", "penalty"])
def test_both_forms_have_the_same_model(rule, to, rng):
    X, y = sample(rng)
    back = "penalty" if to == "constraint" else "constraint"
    given = rule.in_form(back, np.array([0.5, 0.3, 0.1]))
    first = fitted(given, 0.7, X, y)
    C = equivalent_cost(0.7, first.norms_, given, to=to)
    second = fitted(given.in_form(to, first.norms_), C, X, y)
    scale = np.abs(first.predict(X)).max()
    np.testing.assert_allclose(second.predict(X), first.predict(X), atol=1e-4 * scale)
    np.testing.assert_allclose(second.weights_ * C, first.weights_ * 0.7, rtol=1e-2, atol=1e-4)
    other = given.in_form(to, first.norms_)
    assert equivalent_cost(C, second.norms_, other, to=back) == pytest.approx(0.7, rel=1e-3)


def test_of_a_classifier_too(rng):
    X, score = sample(rng)
    first = fitted(Wedge(), 0.5, X, np.sign(score), kw.MKLClassifier)
    C = equivalent_cost(0.5, first.norms_, Wedge(), to="constraint")
    second = fitted(Wedge(form="constraint"), C, X, np.sign(score), kw.MKLClassifier)
    np.testing.assert_allclose(second.decision_function(X), first.decision_function(X), atol=1e-3)


@each_pair
def test_penalties_are_those_of_the_constraint_at_the_best_size(rule, rng):
    """Omega(n) of the penalty is min_t Omega_constraint(n) / t + t^k / (2k), a maximum for k < 0."""
    n = rng.gamma(1.0, size=3) + 0.1
    bounded, penalised = (rule.in_form(form, n) for form in ("constraint", "penalty"))
    if isinstance(rule, ElasticNet):  # of no degree: slopes are in the ratio of the costs
        step = 1e-6 * np.eye(3)
        slopes = [
            np.array([one.penalty(n + e) - one.penalty(n - e) for e in step]) for one in (bounded, penalised)
        ]
        np.testing.assert_allclose(
            slopes[0], slopes[1] * equivalent_cost(1.0, n, rule, "constraint"), rtol=1e-6
        )
        return
    k = rule.degree
    if np.isinf(k):
        assert penalised.penalty(n) == bounded.penalty(n)
        return
    t = np.geomspace(0.01, 100.0, 100_001)
    values = bounded.penalty(n) / t + t**k / (2 * k)
    best = values.argmin() if k > 0 else values.argmax()
    assert penalised.penalty(n) == pytest.approx(values[best], rel=1e-6)
    assert equivalent_cost(1.0, n, rule, "constraint") == pytest.approx(t[best], rel=1e-3)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("rule", "norm"), [(LpNorm(p=1), np.sum), (Mahalanobis(E), lambda d: (d @ np.linalg.solve(E, d)) ** 0.5)]
)
def test_the_squared_norm_of_the_theorem(rule, norm, rng):
    """C sum V + 1/2 sum n^2 / d + mu N(d)^2, (3) of Kloft et al. (2011), against N(d) <= 1, (4)."""
    X, y = sample(rng)
    mu = 0.3
    penalised = kw.MKLRegressor(
        per_feature(Linear()),
        regularizer=FromPrice(lambda d: 2 * mu * norm(d) ** 2),
        C=0.7,
        tol=1e-6,
        max_iter=500,
    ).fit(X, y)
    assert penalised.dual_gap_ <= 1e-6
    C = equivalent_cost(0.7, penalised.norms_, rule, to="constraint", mu=4 * mu, degree=2)
    model = fitted(rule, C, X, y)
    np.testing.assert_allclose(model.predict(X), penalised.predict(X), atol=2e-3)
    np.testing.assert_allclose(model.weights_ * C, penalised.weights_ * 0.7, atol=5e-3)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (SMKL(), "SMKL has one form: it is not convex"),
        (MFocussTerm(), "MFocussTerm has one form"),
        (MKLTerm(), "MKLTerm has one form"),
        (FromPrice(np.sum), "FromPrice has one form: no norm of the weights is known"),
        (FromBlockNorm(np.sum), "FromBlockNorm has one form"),
        (BlockNorm(q=np.inf), "q=inf has no penalty form"),
        (Mahalanobis(), "E='alignment' depends on the training samples"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_has_one_form_says_why(rule, message):
    with pytest.raises(ValueError, match=message):
        equivalent_cost(1.0, np.ones(3), rule, to="penalty")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"to": "other"}, "to='other'"),
        ({"mu": 0}, "mu=0 must be positive"),
        ({"degree": 0.5}, "degree=0.5 must be at least 1"),
        ({"norms": np.zeros(3)}, "not all of them 0"),
        ({"norms": np.ones((2, 3))}, "those of one model"),
        ({"regularizer": BlockNorm(q=4), "degree": 2}, "bounds no norm of the weights"),
        ({"regularizer": ElasticNet(), "mu": 2.0}, "mu and degree"),
        ({"regularizer": "lq"}, "regularizer='lq' is not a regularizer: pass one of"),
    ],
    ids=str,
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        equivalent_cost(
            **{"C": 1.0, "norms": np.ones(3), "regularizer": LpNorm(), "to": "penalty", **options}
        )


def test_names_are_those_of_estimators():
    norms, model = np.array([3.0, 1.0]), kw.MKLRegressor()
    assert isinstance(model.regularizer, str)
    by_name, by_object = (
        equivalent_cost(10.0, norms, rule, to="penalty") for rule in (model.regularizer, LpNorm())
    )
    assert by_name == by_object


def test_forms_are_checked():
    for rule in (
        Wedge(form="x"),
        Mahalanobis(E, form="x"),
        BlockNorm(2, form="x"),
        ElasticNet(0.5, form="x"),
    ):
        with pytest.raises(ValueError, match=r"form='x' must be 'constraint' or 'penalty'"):
            rule.penalty(np.ones(3))
    with pytest.raises(ValueError, match="q=inf has no penalty form"):
        BlockNorm(np.inf, form="penalty").penalty(np.ones(3))
    with pytest.raises(ValueError, match="l1_ratio of the other form depends on the model"):
        ElasticNet().in_form("constraint")
