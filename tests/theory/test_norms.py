"""Bounds for norms other than lp: classes, conversions (Kloft et al. 2011, Remark 7), what they imply."""

from __future__ import annotations

from math import ceil, e, log, sqrt

import numpy as np
import pytest
from scipy.optimize import minimize

from kernelweave.kernels import Linear, per_feature
from kernelweave.regularizers import BlockNorm, ElasticNet, FromPrice, LpNorm, Mahalanobis, Uniform, Wedge
from kernelweave.theory import (
    conversion_factor,
    empirical_complexity,
    lp_complexity,
    lp_risk_bound,
    norm_complexity,
    radius_margin_bound,
)

M = 6
COSTS = np.array([0.5, 1.0, 2.0, 4.0, 0.7, 1.5])


def matrix(signs):
    A = np.random.default_rng(2).normal(size=(M, M))
    A = A if signs else np.abs(A)
    return A @ A.T / M + 0.2 * np.eye(M)


RULES = {
    "l1 with costs": LpNorm(1, costs=COSTS),
    "l2 with costs": LpNorm(2, costs=COSTS),
    "block 1.3": BlockNorm(1.3),
    "block 3": BlockNorm(3),
    "block inf": BlockNorm(np.inf),
    "mahalanobis": Mahalanobis(matrix(signs=False)),
    "mahalanobis, negative entries": Mahalanobis(matrix(signs=True)),
    "alignment": Mahalanobis(),
    "wedge": Wedge(form="constraint"),
    "elastic net": ElasticNet(0.3, form="constraint"),
    "uniform": Uniform(),
}
each_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def table(rng, n=30):
    return rng.standard_normal((n, M)) * np.linspace(0.5, 2.0, M)


def boundary(rule, rng, count=200):
    """Random weights on the edge of a constraint, a third of them in decreasing order, and units."""
    points = np.vstack([rng.gamma(0.3, size=(count, M)) + 1e-6, np.eye(M) + 1e-9])
    points[::3] = -np.sort(-points[::3], axis=1)
    return [point / rule.size(point) for point in points if np.isfinite(rule.size(point))]


@pytest.mark.parametrize("name", ["block 3", "mahalanobis", "elastic net"])
def test_the_supremum_over_the_class_is_its_closed_form(name, rng):
    """sup of n'r over 2 Omega(n) <= 1 is (2 Omega*(r))^(1/2): no n exceeds it, and one reaches it."""
    rule, r = RULES[name], rng.gamma(1.0, size=M) + 0.1
    supremum = sqrt(2.0 * rule.conjugate(r))
    for n in rng.gamma(0.3, size=(50, M)):
        assert n @ r / sqrt(2.0 * rule.penalty(n)) <= supremum * (1 + 1e-9)
    found = minimize(lambda u: -np.exp(u) @ r / sqrt(2.0 * rule.penalty(np.exp(u))), np.zeros(M), tol=1e-10)
    assert -found.fun == pytest.approx(supremum, rel=1e-3)


@each_rule
def test_the_bound_bounds_the_complexity(rule, rng):
    X = table(rng)
    drawn = empirical_complexity(per_feature(Linear()), X, regularizer=rule, radius=3.0, n_draws=50)
    bound = norm_complexity(per_feature(Linear()), X, rule, radius=3.0)
    assert drawn.value + 3 * drawn.parts["standard_error"] <= bound.value


@pytest.mark.parametrize(
    ("rule", "p"),
    [
        *((LpNorm(p), p) for p in (1.0, 4 / 3, 3.0)),
        (LpNorm(2, costs=np.ones(M)), 2.0),
        (BlockNorm(1.5), 3.0),
        (Mahalanobis(np.eye(M)), 2.0),
        (ElasticNet(1.0, form="constraint"), 1.0),
        (ElasticNet(0.0, form="constraint"), np.inf),
        (Uniform(), np.inf),
    ],
    ids=str,
)
def test_lp_norms_are_a_special_case(rule, p, rng):
    kernels, X = per_feature(Linear()), table(rng)
    drawn, known = (
        empirical_complexity(kernels, X, **option) for option in ({"regularizer": rule}, {"p": p})
    )
    assert drawn.value == pytest.approx(known.value, rel=1e-9)
    bound, lp = norm_complexity(kernels, X, rule), lp_complexity(kernels, X, p)
    # that of a larger lp norm is sometimes less: Corollary 9 takes those from 1 to p
    larger = [23 / 22 * M ** (1 / q) * q for q in range(1, 40) if q == 1 or q / (q - 1) >= p]
    expected = min(lp.value, sqrt(min(larger) * lp.parts["R2"] / len(X)))
    assert bound.value == pytest.approx(expected, rel=1e-9)


def test_the_bound_through_the_dual_norm(rng):
    """At q = 1: radius sqrt(c e ceil(log M) R^2 2 Omega*(1) / n) is never less."""
    X = table(rng)
    R2 = (X**2).max()
    for name in RULES:
        rule = RULES[name] if name != "alignment" else LpNorm(1.2)
        by_dual = sqrt(23 / 22 * e * ceil(log(M)) * R2 * 2.0 * rule.conjugate(np.ones(M)) / len(X))
        bound = norm_complexity(per_feature(Linear()), X, rule, normalize=None)
        assert bound.value <= by_dual * (1 + 1e-9)
        if bound.parts["through"] == 1.0:
            assert bound.value == pytest.approx(by_dual)


@pytest.mark.parametrize("name", ["l1 with costs", "l2 with costs", "block 1.3", "mahalanobis", "wedge"])
@pytest.mark.parametrize("q", [1.0, 1.5, 2.0, np.inf])
def test_no_weights_exceed_the_conversion_from_lp(name, q, rng):
    rule = RULES[name]
    largest = max(np.linalg.norm(d, q) for d in boundary(rule, rng))
    factor = conversion_factor(M, q, rule)
    assert largest <= factor**2 * (1 + 1e-6)
    if name != "mahalanobis" and q in (1.0, np.inf):  # exact
        assert factor**2 <= 1.5 * largest


def test_conversions_that_are_exact():
    assert conversion_factor(M, 1.0, LpNorm(2, costs=COSTS)) ** 2 == pytest.approx(np.linalg.norm(1 / COSTS))
    assert conversion_factor(M, 2.0, LpNorm(2, costs=COSTS)) ** 2 == pytest.approx(2.0)
    assert conversion_factor(M, LpNorm(1, costs=COSTS), 2.0) ** 2 == pytest.approx(np.linalg.norm(COSTS))
    E = matrix(signs=False)
    values, vectors = np.linalg.eigh(E)
    top = np.abs(vectors[:, -1]) * sqrt(values[-1])  # on the edge, d' E^-1 d = 1
    assert top @ np.linalg.solve(E, top) == pytest.approx(1.0)
    assert conversion_factor(M, 2.0, Mahalanobis(E)) ** 2 == pytest.approx(np.linalg.norm(top))
    assert conversion_factor(M, LpNorm(1), LpNorm(2)) == conversion_factor(M, 1.0, 2.0)


@pytest.mark.parametrize(
    ("q", "p"),
    [
        ("mahalanobis", 1.5),
        (2.0, "elastic net"),
        ("wedge", "mahalanobis"),
        (1.5, "block 3"),
        (np.inf, "block inf"),
        ("l2 with costs", "wedge"),
        (3.0, "mahalanobis, negative entries"),
    ],
)
def test_remark_seven(q, p, rng):
    """R(H_N') <= sqrt(c) R(H_N), on the same signs."""
    kernels, X = per_feature(Linear()), table(rng)

    def drawn(norm):
        option = {"regularizer": RULES[norm]} if isinstance(norm, str) else {"p": norm}
        return empirical_complexity(kernels, X, **option, n_draws=50).value

    factor = conversion_factor(M, RULES.get(q, q), RULES.get(p, p))
    assert drawn(p) <= factor * drawn(q) * (1 + 1e-9)


def test_risk_bounds_take_any_norm(rng):
    kernels, X, losses = per_feature(Linear()), table(rng), rng.random(30)
    rule = RULES["l2 with costs"]
    risk = lp_risk_bound(losses, kernels, X, lipschitz=2.0, radius=1.5, delta=0.1, regularizer=rule)
    complexity = norm_complexity(kernels, X, rule, radius=1.5).value
    assert risk.value == pytest.approx(losses.mean() + 8.0 * complexity + sqrt(log(20.0) / 60.0))
    margins = rng.normal(1.0, 1.0, size=30)
    by_margin = radius_margin_bound(margins, kernels, X, margin=0.5, regularizer=rule)
    margin_losses = np.clip(1.0 - margins / 0.5, 0.0, 1.0)
    assert by_margin.value == lp_risk_bound(margin_losses, kernels, X, lipschitz=2.0, regularizer=rule).value


def ball(d):
    return 0.0 if (d**2).sum() <= 1.0 else np.inf


def test_one_kernel(rng):
    X = rng.normal(size=(30, 1))
    for rule in (LpNorm(2), BlockNorm(4), Wedge(form="constraint"), ElasticNet(0.3, form="constraint")):
        drawn = empirical_complexity(Linear(), X, regularizer=rule)
        assert drawn.value == pytest.approx(empirical_complexity(Linear(), X, p=1).value)
        assert (
            drawn.value <= norm_complexity(Linear(), X, rule).value <= lp_complexity(Linear(), X, p=1).value
        )


@pytest.mark.slow
def test_a_norm_of_ones_own(rng):
    X = table(rng)[:, :2]
    own, known = (
        norm_complexity(per_feature(Linear()), X, rule).value for rule in (FromPrice(ball), LpNorm(2))
    )
    assert known * (1 - 1e-6) <= own <= 1.5 * known  # from p = 1 and inf only


def test_costs_are_those_of_the_kernels(rng):
    """Weights c d with kernels K / c are the same class, of an lp norm."""
    X = table(rng)
    R2, dual_norm = (X**2).max(), np.linalg.norm(1 / COSTS, 2)
    found = norm_complexity(per_feature(Linear()), X, RULES["l2 with costs"], normalize=None)
    assert found.value == pytest.approx(sqrt(23 / 22 * 2 * dual_norm * R2 / len(X)))


def test_a_kernel_without_variance_takes_its_parameters_with_it(rng):
    X = table(rng)
    X[:, 2] = 1.0
    with pytest.warns(UserWarning, match="x2"):
        found = norm_complexity(per_feature(Linear()), X, RULES["l2 with costs"])
    rest = np.delete(np.arange(M), 2)
    expected = norm_complexity(per_feature(Linear()), X[:, rest], LpNorm(2, costs=COSTS[rest]))
    assert found.value == pytest.approx(expected.value)
