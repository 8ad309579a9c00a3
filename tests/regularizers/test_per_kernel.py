"""Regularisers with one parameter a kernel (or a pair), and block norms whose weights come from a maximum."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.regularizers import BlockNorm, LpNorm, Mahalanobis

KERNELS = 5
COSTS = np.array([0.5, 1.0, 2.0, 4.0, 0.1])


ASCENDING = [2.5, 3.0, 4.0, 8.0, 16.0, np.inf]


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
    E = np.add.outer(COSTS, COSTS)
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
