"""Regularisers with one parameter a kernel (or a pair), and block norms whose weights come from a maximum."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.regularizers import BlockNorm, LpNorm, Mahalanobis, Wedge

KERNELS = 5
COSTS = np.array([0.5, 1.0, 2.0, 4.0, 0.1])


def matrix(seed: int, signs: bool) -> np.ndarray:
    A = np.random.default_rng(seed).normal(size=(KERNELS, KERNELS))
    A = A if signs else np.abs(A)
    return A @ A.T / KERNELS + 0.1 * np.eye(KERNELS)


RULES = [
    *(LpNorm(p=p, costs=COSTS) for p in (1.0, 4 / 3, 2.0, np.inf)),
    *(LpNorm(p=p, form="penalty", costs=COSTS) for p in (1.0, 1.5, 3.0)),
    *(Mahalanobis(matrix(seed, signs=False)) for seed in (0, 1)),
    *(Mahalanobis(matrix(seed, signs=True)) for seed in (2, 3)),
    Wedge(),
]
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: repr(rule)[:40])
ASCENDING = [2.5, 3.0, 4.0, 8.0, 16.0, np.inf]


def joint(rule, n, d):
    return 0.5 * float((n**2 / d).sum()) + 0.5 * rule.price(d)


@pytest.mark.sampled(5)
@each_rule
def test_penalty_is_reached_at_the_weights_and_nowhere_beaten(rule, norms, rng):
    for n in norms[:8]:
        d, best = rule.weights(n), rule.penalty(n)
        assert (d > 0).all()
        assert joint(rule, n, d) == pytest.approx(best, rel=1e-9)
        for size in (1e-1, 1e-3):
            moved = d * np.exp(size * rng.normal(size=(20, KERNELS)))
            # back into the domain along the ray, where it was left
            shrunk = [t * point for point in moved for t in np.geomspace(1.0, 1.0 - 2.0 * size, 30)]
            assert best <= min(joint(rule, n, point) for point in shrunk) * (1 + 1e-8)


@each_rule
def test_fenchel_young(rule, norms, rng):
    for n in norms:
        for r in rng.gamma(1.0, size=(5, KERNELS)):
            assert (rule.penalty(n) + rule.conjugate(r)) * (1 + 1e-8) >= n @ r
        d = rule.weights(n)
        pair = n / d
        assert rule.penalty(n) + rule.conjugate(pair) == pytest.approx(n @ pair, rel=1e-8)


@each_rule
def test_weights_are_norms_over_the_slope_of_the_penalty(rule, norms):
    step = 1e-6
    for n in norms[:5]:
        shifts = step * np.eye(KERNELS)
        slope = [(rule.penalty(n + e) - rule.penalty(n - e)) / (2 * step) for e in shifts]
        np.testing.assert_allclose(rule.weights(n), n / np.array(slope), rtol=1e-4)


@each_rule
def test_a_multiple_of_dual_norms_has_a_finite_conjugate(rule, norms):
    for r in 3.0 * norms[:5]:
        scale = rule.dual_scale(r)
        assert 0 < scale <= 1
        assert np.isfinite(rule.conjugate(scale * r))
        assert scale == 1.0 or rule.conjugate(1.001 * scale * r) == np.inf


def test_costs_scale_the_kernels(norms):
    """Weights d at costs c are weights c d of the kernels K / c at no costs."""
    for p in (1.0, 2.0):
        for n in norms[:5]:
            costly, plain = LpNorm(p=p, costs=COSTS), LpNorm(p=p)
            np.testing.assert_allclose(costly.weights(n) * COSTS, plain.weights(n * np.sqrt(COSTS)))
            assert costly.conjugate(n) == pytest.approx(plain.conjugate(n / np.sqrt(COSTS)))


def test_parameters_of_some_kernels():
    kept = np.array([0, 3])
    np.testing.assert_array_equal(LpNorm(costs=COSTS).select(kept, KERNELS).costs, COSTS[kept])
    E = matrix(2, signs=True)
    np.testing.assert_array_equal(Mahalanobis(E).select(kept, KERNELS).E, E[np.ix_(kept, kept)])


@pytest.mark.parametrize("q", ASCENDING)
def test_ascending_block_norms(q, norms, rng):
    """||r||_{q*}^2 = min over ||theta||_rho <= 1 of sum r^2 / theta, at theta = 1 / weights_from_dual(r)."""
    rule, rho = BlockNorm(q=q), 1.0 if np.isinf(q) else q / (q - 2.0)
    for r in norms:
        theta = 1.0 / rule.weights_from_dual(r)
        assert np.linalg.norm(theta, rho) == pytest.approx(1.0)
        assert 0.5 * float((r**2 / theta).sum()) == pytest.approx(rule.conjugate(r), rel=1e-9)
        others = rng.gamma(1.0, size=(50, KERNELS))
        others /= np.linalg.norm(others, rho, axis=1, keepdims=True)
        assert rule.conjugate(r) <= 0.5 * (r**2 / others).sum(axis=1).min() * (1 + 1e-9)
        n = r / theta
        assert rule.penalty(n) + rule.conjugate(r) == pytest.approx(n @ r, rel=1e-9)
        assert rule.price(1.0 / theta) == 0.0


@pytest.mark.parametrize("q", [1.0, 1.5, 2.0, *ASCENDING])
def test_block_norms_are_dual(q, norms, rng):
    rule = BlockNorm(q=q)
    for n in norms:
        assert rule.penalty(n) == pytest.approx(0.5 * np.linalg.norm(n, q) ** 2)
        for r in rng.gamma(1.0, size=(10, KERNELS)):
            assert (rule.penalty(n) + rule.conjugate(r)) * (1 + 1e-12) >= n @ r


def test_ascending_block_norms_have_no_weights_of_norms():
    with pytest.raises(ValueError, match="q > 2 has no weights of given norms"):
        BlockNorm(q=4.0).weights(np.ones(3))
