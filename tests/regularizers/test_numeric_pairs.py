"""Prices and block norms of one another by search, on pairs that are known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.regularizers import ElasticNet, FromBlockNorm, LpNorm, equivalent_cost
from kernelweave.regularizers.correspondence import (
    BlockNormOf,
    InfimumOf,
    PriceOf,
    block_norm_of,
    check_concave,
    check_convex,
    growth,
    price_of,
)

X = np.array([[1.0, 4.0, 0.3], [2.0, 0.01, 9.0]])

#: h(d) = sum d^2:  d = (x / 2)^(1/3),  g(x) = 1/2 sum (x / d + d^2)
SQUARES = (lambda d: float(d @ d), lambda d: 2.0 * d)


def best(x):
    return np.cbrt(x / 2.0)


def of_squares(x):
    return 0.5 * float((x / np.maximum(best(x), 1e-300) + best(x) ** 2).sum())


@pytest.mark.parametrize("basis", [None, np.eye(3)], ids=["plain", "basis"])
@pytest.mark.parametrize("known", [True, False])
def test_a_block_norm_by_its_price(known, basis):
    g = BlockNormOf(SQUARES[0], SQUARES[1] if known else None, basis)
    for x in X:
        assert g(x) == pytest.approx(of_squares(x), rel=1e-8)
        np.testing.assert_allclose(g.weights(x), best(x), rtol=1e-3)
        np.testing.assert_allclose(g.gradient(x), 0.5 / best(x), rtol=1e-3)


def test_a_price_that_knows_its_gradient():
    class Price:
        def __call__(self, d):
            return float(d @ d)

        def gradient(self, d):
            calls.append(1)
            return 2.0 * d

    calls = []
    assert BlockNormOf(Price())(X[0]) == pytest.approx(of_squares(X[0]), rel=1e-8)
    assert calls
    calls.clear()
    BlockNormOf(Price(), lambda d: 2.0 * d)(X[0])  # the one that is given is asked
    assert not calls


def test_kernels_without_norm():
    g = BlockNormOf(lambda d: 0.3 + float(d @ d), SQUARES[1])
    assert g(np.zeros(3)) == pytest.approx(0.15)
    some = np.array([2.0, 0.0, 1.0])
    assert g(some) == pytest.approx(0.15 + of_squares(some), rel=1e-6)
    for t in (1e-6, 1e6):
        small = g.weights(t * some)
        np.testing.assert_allclose(small[[0, 2]], best(t * some)[[0, 2]], rtol=1e-3)
        assert small[1] <= 1e-4 * small.max()


@pytest.mark.parametrize("known", [True, False])
def test_a_price_by_its_block_norm(known):
    rate = (lambda x: 0.5 / np.maximum(best(x), 1e-300)) if known else None
    h = PriceOf(of_squares, rate)
    for d in (*np.sqrt(X), np.array([0.3, 0.2, 0.1])):
        assert h(d) == pytest.approx(float(d @ d), rel=1e-7)
        np.testing.assert_allclose(h.gradient(d), 2.0 * d, rtol=1e-3)
    assert h.edge(X[0])[0] == np.inf  # no constraint
    assert h(np.zeros(3)) == 0.0


@pytest.mark.parametrize("known", [True, False])
def test_the_price_of_a_norm_is_a_constraint(known):
    """g = 1/2 (sum sqrt(x))^2: h is 0 for sum(d) <= 1, and infinite beyond."""
    rate = (lambda x: 0.5 * np.sqrt(x).sum() / np.sqrt(x)) if known else None
    h = PriceOf(lambda x: 0.5 * float(np.sqrt(x).sum()) ** 2, rate)
    d = np.array([0.5, 0.2, 0.3])
    assert h(d) == 0.0
    assert h(0.9 * d) == 0.0
    assert h(1.01 * d) == np.inf
    np.testing.assert_array_equal(h.gradient(0.5 * d), 0.0)
    for t in (0.1, 1.0, 7.0):
        edge, slope = h.edge(t * d)
        assert edge == pytest.approx(-np.log(t), abs=1e-7)
        np.testing.assert_allclose(slope, -d, rtol=1e-2)
    assert h(np.array([0.999, 0.0, 0.0])) == 0.0


@pytest.mark.parametrize("rate", [None, lambda x: x], ids=["differences", "gradient"])
def test_the_price_of_a_maximum(rate):
    """g = 1/2 sum x^2: h(d) = inf_x sum x^2 - x / d = -sum 1 / (4 d^2)."""
    h = InfimumOf(lambda x: 0.5 * float(x @ x), rate)
    for d in (X[0], np.array([0.5, 2.0, 1.0])):
        assert h(d) == pytest.approx(-float((0.25 / d**2).sum()), rel=1e-6)
    with pytest.raises(ValueError, match="not convex"):
        InfimumOf(lambda x: float(np.sqrt(x).sum()))(X[0])
    check_convex(lambda x: float(x.sum()), X[0])  # straight lines are


def test_costs_of_the_other_form():
    n = np.array([1.0, 0.0, 3.0])
    assert equivalent_cost(10.0, n, LpNorm(p=1), to="constraint") == pytest.approx(40.0)
    assert np.isfinite(equivalent_cost(10.0, n, LpNorm(p=2), to="constraint", degree=1.5))
    assert equivalent_cost(10.0, n, LpNorm(p=1), to="constraint", degree=1.0) == pytest.approx(40.0)
    for bad in (np.array([1.0, -1.0]), np.zeros(2), np.array([1.0, np.nan]), np.ones((2, 2))):
        with pytest.raises(ValueError, match="norms must be"):
            equivalent_cost(1.0, bad, LpNorm(), to="constraint")
    for options, message in ((dict(mu=0.0), "mu="), (dict(degree=0.5), "degree="), (dict(to="other"), "to=")):
        with pytest.raises(ValueError, match=message):
            equivalent_cost(1.0, n, LpNorm(), **{"to": "constraint", **options})


@pytest.mark.parametrize("convex", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_weights_of_a_sum_of_norms(convex, known):
    """Omega = sum n: weights are the norms; a convex one keeps a kernel of norm 0 within reach."""
    rate = (lambda x: 0.5 / np.sqrt(x)) if known else None
    rule = FromBlockNorm(lambda x: float(np.sqrt(x).sum()), rate, convex)
    np.testing.assert_allclose(rule.weights(np.array([3.0, 0.5])), [3.0, 0.5], rtol=1e-6)
    left = rule.weights(np.array([2.0, 0.0]))[1]
    if convex or not known:  # differences see no smaller ones
        assert left == pytest.approx(2e-8, rel=1e-2)
    else:
        assert left < 1e-50
    np.testing.assert_allclose(rule.weights(np.zeros(2)), rule.weights(np.ones(2)))


@pytest.mark.parametrize("rate", [None, lambda x: np.full(len(x), 0.5)], ids=["differences", "gradient"])
def test_the_conjugate_of_a_square_is_the_square(rate):
    rule = FromBlockNorm(lambda x: 0.5 * float(x.sum()), rate)
    for r in np.sqrt(X):
        assert rule.conjugate(r) == pytest.approx(0.5 * float(r @ r), rel=1e-9)
        assert rule.dual_scale(r) == 1.0


@pytest.mark.parametrize("size", [1e-15, 1.0, 1e3])
def test_how_far_dual_norms_have_to_shrink(size):
    """Omega = size sum n is finite as a conjugate where no r is above size."""
    rule = FromBlockNorm(lambda x: size * float(np.sqrt(x).sum()))
    r = size * np.array([0.5, 4.0, 1.0])
    assert rule.dual_scale(r) == pytest.approx(0.25, rel=1e-9)  # reached by one kernel alone
    assert rule.dual_scale(0.2 * r) == 1.0
    assert rule.dual_scale(r * np.array([0.0, 1.0, 1.0])) == pytest.approx(0.25, rel=1e-9)
    assert growth(lambda n: size * float(n.sum()), np.zeros(3)) == 1.0


# -- other units, kernels without weight, and what is refused ------------------------------------------

PENALTIES = [LpNorm(1.0, form="penalty"), LpNorm(2.0, form="penalty"), ElasticNet(0.5)]


def block_norm(rule):
    return lambda x: rule.penalty(np.sqrt(x))


@pytest.mark.parametrize("t", [1e-40, 1e-20, 1e12])
@pytest.mark.parametrize("rule", PENALTIES, ids=repr)
def test_norms_of_any_size_have_their_block_norm(rule, t):
    for x in t * X:
        assert block_norm_of(rule.price)(x) == pytest.approx(block_norm(rule)(x), rel=1e-6, abs=0.0)


@pytest.mark.parametrize("s", [1e-12, 1.0, 1e12, 1e24])
@pytest.mark.parametrize("rule", PENALTIES, ids=repr)
def test_prices_in_another_unit(rule, s):
    """The price of s g(x / s) is s h(d)."""
    g = block_norm(rule)
    for x in X:
        d = 0.9 * rule.weights(np.sqrt(x))
        assert price_of(lambda y: s * g(y / s))(d) == pytest.approx(s * rule.price(d), rel=1e-6, abs=0.0)


@pytest.mark.parametrize("k", [1.0, 1e12, 1e24])
def test_a_price_of_weights_in_another_unit(k):
    """g = 1/2 k x + sqrt(x): h = d / (1 - k d), at whatever weights k leaves."""
    h = PriceOf(lambda x: 0.5 * k * float(x.sum()) + float(np.sqrt(x).sum()))
    for share in (0.1, 0.5, 0.9):
        known = share / (1.0 - share) / k
        assert h(np.array([share / k])) == pytest.approx(known, rel=1e-6, abs=0.0)


def test_weights_of_zero_cost_nothing():
    rule = LpNorm(2.0, form="penalty")
    for d in (np.array([0.5, 0.0, 0.3]), 1e-6 * np.array([0.0, 0.2, 0.7])):
        assert PriceOf(block_norm(rule))(d) == pytest.approx(rule.price(d), rel=1e-6, abs=0.0)
    costly = LpNorm(1.0, form="penalty", costs=np.array([1.0, 1e7, 1.0]))
    d = np.array([1.0, 0.0, 1e-6])
    assert PriceOf(block_norm(costly))(d) == pytest.approx(costly.price(d), rel=1e-5)


def test_kernels_without_norm_keep_a_share_of_the_largest_weight():
    """For h = sum d weights are norms; a norm of 0 counts as 1e-8 of the largest, so that it can return."""
    d = block_norm_of(lambda d: float(d.sum())).weights(np.array([9.0, 0.0, 4.0]))
    np.testing.assert_allclose(d, [3.0, 3e-8, 2.0], rtol=1e-3)


def test_a_price_that_is_infinite_near_zero_is_refused():
    with pytest.raises(ValueError, match="h is inf near d = 0"):
        block_norm_of(lambda d: 0.0 if d.min() >= 0.1 else np.inf)(X[0])


def test_a_block_norm_that_knows_its_gradient():
    class Norm:
        def __call__(self, x):
            return of_squares(x)

        def gradient(self, x):
            calls.append(1)
            return 0.5 / np.maximum(best(x), 1e-300)

    calls = []
    d = np.array([0.3, 0.2, 0.1])
    for maker in (PriceOf, InfimumOf):
        calls.clear()
        assert maker(Norm()).g_gradient is not None
        given = maker(Norm(), lambda x: 0.5 / np.maximum(best(x), 1e-300))
        given.g_gradient(d)
        assert not calls  # the one that is given is asked
    assert PriceOf(Norm())(d) == pytest.approx(float(d @ d), rel=1e-8)
    assert calls


def test_no_block_norm_at_all_has_no_price():
    for d in X:
        assert PriceOf(lambda x: 0.0)(d) == 0.0
        assert PriceOf(lambda x: -float(x.sum()))(d) == 0.0  # a straight line is concave, below zero too


def test_bends_are_looked_for_where_weights_put_the_norms():
    """At d = 3 the norms of the price sum d are x = 9: what g does at 0, 9 and 18 decides."""
    three = np.array([3.0])

    def jumps(x):
        return float(np.sqrt(x).sum()) + (100.0 if x.sum() > 15.0 else 0.0)

    with pytest.raises(ValueError, match="g is not concave"):
        PriceOf(jumps)(three)

    def ends(x):
        return float(x @ x) if x.sum() < 15.0 else 0.0

    with pytest.raises(ValueError, match="g is not convex"):
        InfimumOf(ends)(three)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e9])
def test_bends_of_any_size_are_seen(size):
    for d in X:
        with pytest.raises(ValueError, match="g is not convex"):
            InfimumOf(lambda x: size * float(np.sqrt(x).sum()))(d)
        with pytest.raises(ValueError, match="g is not concave"):
            PriceOf(lambda x: size * float(x @ x))(d)
        for check in (check_concave, check_convex):
            check(lambda x: size * float(x.sum()) / 3.0, d)  # straight lines are neither
