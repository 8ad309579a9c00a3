"""What every weight regulariser promises, from the definitions of Omega and Omega*."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.base import clone

from kernelweave.regularizers import REGULARIZERS, LpNorm, Regularizer

SLACK = 1.0 + 1e-8  # prices forgive rounding of this order


def joint(regularizer, n, d):
    """1/2 sum n^2 / d + 1/2 h(d), what Omega(n) minimises; 0 / 0 counts as 0."""
    ratio = np.divide(n**2, d, out=np.zeros_like(n), where=n > 0)
    return 0.5 * ratio.sum() + 0.5 * regularizer.price(d)


def gain(regularizer, r, d):
    """1/2 sum d r^2 - 1/2 h(d), what Omega*(r) maximises."""
    return 0.5 * float(d @ r**2) - 0.5 * regularizer.price(d)


def test_penalty_is_reached_at_the_weights(regularizer, norms):
    for n in norms:
        d = regularizer.weights(n)
        assert d.shape == n.shape
        assert (d >= 0).all()
        assert joint(regularizer, n, d) == pytest.approx(regularizer.penalty(n), rel=1e-9)


def test_no_feasible_weights_do_better(regularizer, norms, feasible, rng):
    candidates = feasible(regularizer, rng, count=100, size=norms.shape[1])
    for n in norms[:8]:
        least = min(joint(regularizer, n, d) for d in candidates)
        assert regularizer.penalty(n) <= least * SLACK


def test_no_small_change_of_the_weights_does_better(regularizer, norms, rng):
    for n in norms[:8]:
        d, best = regularizer.weights(n), regularizer.penalty(n)
        for size in (1e-1, 1e-3):
            moved = d * np.exp(size * rng.normal(size=(20, len(d))))
            assert best <= min(joint(regularizer, n, point) for point in moved) * SLACK


def test_conjugate_bounds_every_feasible_gain(regularizer, norms, feasible, rng):
    candidates = feasible(regularizer, rng, count=100, size=norms.shape[1])
    for r in norms[:8]:
        assert regularizer.conjugate(r) * SLACK + 1e-7 >= max(gain(regularizer, r, d) for d in candidates)


@pytest.mark.sampled(2)
def test_conjugate_is_reached_over_two_kernels(regularizer, rng):
    if regularizer.price(1e-3 * np.ones(2)) != 0:
        pytest.skip("h is more than a constraint: edges are not optimal")
    angles = np.linspace(0.0, np.pi / 2, 361)
    rays = np.column_stack([np.cos(angles), np.sin(angles)]).clip(0.0)

    def outside(t, ray):
        return 1.0 if np.isinf(regularizer.price(t * ray)) else -1.0

    boundary = np.array([brentq(outside, 0.0, 10.0, (ray,), xtol=1e-9) * ray for ray in rays])
    for r in rng.gamma(1.0, size=(10, 2)):
        reached = max(gain(regularizer, r, (1 - 1e-8) * d) for d in boundary)
        assert regularizer.conjugate(r) == pytest.approx(reached, rel=1e-3)


def test_fenchel_young_inequality(regularizer, norms, rng):
    for n in norms:
        for r in rng.gamma(1.0, size=(20, len(n))):
            total = regularizer.penalty(n) + regularizer.conjugate(r)
            assert total * SLACK >= n @ r


def test_fenchel_young_equality_where_d_r_is_n(regularizer, norms):
    for n in norms:
        d = regularizer.weights(n)
        r = n / d
        assert regularizer.penalty(n) + regularizer.conjugate(r) == pytest.approx(n @ r, rel=1e-9)
        assert regularizer.conjugate(r) == pytest.approx(gain(regularizer, r, d), rel=1e-9)


def test_weights_are_norms_over_the_slope_of_the_penalty(regularizer, norms):
    step = 1e-6
    for n in norms[:5]:
        shifts = step * np.eye(len(n))
        slope = [(regularizer.penalty(n + e) - regularizer.penalty(n - e)) / (2 * step) for e in shifts]
        np.testing.assert_allclose(regularizer.weights(n), n / np.array(slope), rtol=1e-5)


def test_no_norms_cost_nothing(regularizer):
    zero = np.zeros(4)
    d = regularizer.weights(zero)
    assert regularizer.penalty(zero) == 0
    assert regularizer.conjugate(zero) == 0
    assert np.isfinite(d).all()
    assert (d >= 0).all()
    assert np.isfinite(regularizer.price(d))


def test_a_component_without_norm_costs_nothing(regularizer, norms):
    for n in norms[:5]:
        padded = np.append(n, 0.0)
        d = regularizer.weights(padded)
        assert np.isfinite(d).all()
        assert regularizer.penalty(padded) == pytest.approx(regularizer.penalty(n), rel=1e-9)
        assert joint(regularizer, padded, d) == pytest.approx(regularizer.penalty(padded), rel=1e-9)


@pytest.mark.parametrize("count", [1, 3, 50])
def test_initial_weights_are_equal_feasible_and_positive(regularizer, count):
    d = regularizer.initial_weights(count)
    assert d.shape == (count,)
    assert (d > 0).all()
    assert np.isfinite(regularizer.price(d))
    np.testing.assert_allclose(d, regularizer.weights(np.ones(count)))


def test_price_does_not_fall_as_weights_grow(regularizer, rng):
    for d in rng.gamma(1.0, size=(10, 4)):
        prices = [regularizer.price(t * d) for t in (1e-3, 1e-1, 1.0, 10.0, 1e3)]
        assert prices == sorted(prices)


def test_clone_params_and_repr(regularizer):
    copy = clone(regularizer)
    assert copy is not regularizer
    assert copy.get_params() == regularizer.get_params()
    assert repr(copy) == repr(regularizer)
    assert repr(regularizer).startswith(type(regularizer).__name__ + "(")


@pytest.mark.parametrize("name", sorted(REGULARIZERS))
def test_registry_gives_the_default_part(name):
    part = REGULARIZERS.resolve(name, Regularizer)
    assert type(part) is REGULARIZERS[name]
    assert part.name == name


def test_registry_names_the_argument_and_the_choices():
    with pytest.raises(ValueError, match=r"reg='l2' is not a regularizer: pass one of .*'lp'.*'uniform'"):
        REGULARIZERS.resolve("l2", Regularizer, "reg")
    with pytest.raises(ValueError, match=r"regularizer=LpNorm is a class: pass an object, LpNorm\("):
        REGULARIZERS.resolve(LpNorm, Regularizer)
    with pytest.raises(ValueError, match="is not a regularizer"):
        REGULARIZERS.resolve(dict, Regularizer)
