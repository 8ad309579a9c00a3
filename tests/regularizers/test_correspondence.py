"""From prices of weights to block norms and back: the identity on every row where the theorem applies."""

from __future__ import annotations

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.regularizers import (
    BlockNorm,
    ElasticNet,
    LpNorm,
    Mahalanobis,
    Uniform,
    Wedge,
    equivalent_cost,
)
from kernelweave.regularizers.correspondence import FromBlockNorm, FromPrice, block_norm_of, price_of

ROWS = [
    *[LpNorm(p) for p in (4 / 3, 2.0, 4.0)],
    *[LpNorm(p, form="penalty") for p in (1.0, 4 / 3, 2.0, 4.0)],
    Uniform(),
    LpNorm(1.0),
    BlockNorm(1.5),
    Mahalanobis(np.array([[1.0, 0.3, -0.2], [0.3, 1.5, 0.1], [-0.2, 0.1, 0.8]])),
    *[ElasticNet(ratio) for ratio in (0.2, 0.5, 0.9, 1.0)],
]
each_row = pytest.mark.parametrize("regularizer", ROWS, ids=repr)


def block_norm(regularizer):
    """g(x) in closed form, as a plain function."""
    return lambda x: regularizer.penalty(np.sqrt(x))


def weights_inside(regularizer, rng):
    """Weights of random norms, where the price is finite."""
    return [0.9 * regularizer.weights(n) for n in rng.gamma(1.0, size=(4, 3)) + 0.1]


@pytest.mark.sampled(4)
@each_row
def test_block_norm_of_a_price(regularizer, rng):
    g = block_norm_of(lambda d: regularizer.price(d))
    for x in rng.gamma(1.0, size=(4, 3)) + 0.1:
        assert g(x) == pytest.approx(block_norm(regularizer)(x), rel=1e-6)


@each_row
def test_price_of_a_block_norm(regularizer, rng):
    h = price_of(block_norm(regularizer))
    for d in weights_inside(regularizer, rng):
        assert h(d) == pytest.approx(regularizer.price(d), rel=1e-6, abs=1e-6)


@pytest.mark.slow
@each_row
def test_there_and_back(regularizer, rng):
    """h -> g -> h and g -> h -> g, numerically both ways."""
    h = price_of(block_norm_of(lambda d: regularizer.price(d)))
    g = block_norm_of(price_of(block_norm(regularizer)))
    for d in weights_inside(regularizer, rng)[:2]:
        assert h(d) == pytest.approx(regularizer.price(d), rel=1e-6, abs=1e-6)
    for x in rng.gamma(1.0, size=(2, 3)) + 0.1:
        assert g(x) == pytest.approx(block_norm(regularizer)(x), rel=1e-6)


@pytest.mark.slow
def test_there_and_back_quick(rng):
    regularizer = ElasticNet(0.5)
    h = price_of(block_norm_of(lambda d: regularizer.price(d)))
    d = weights_inside(regularizer, rng)[0][:2]
    assert h(d) == pytest.approx(regularizer.price(d), rel=1e-6)


def test_ordered_weights(rng):
    """The wedge: its block norm from sum d on the cone of ordered weights, its price from the block norm."""
    wedge = Wedge()
    g = block_norm_of(lambda d: float(d.sum()), basis=np.triu(np.ones((3, 3))))
    h = price_of(block_norm(wedge))
    for x in rng.gamma(1.0, size=(3, 3)) + 0.1:
        d = 0.9 * wedge.weights(np.sqrt(x))
        assert g(x) == pytest.approx(wedge.penalty(np.sqrt(x)), rel=1e-6)
        assert h(d) == pytest.approx(wedge.price(d), rel=1e-6)


@pytest.mark.parametrize("make", [FromPrice, FromBlockNorm])
def test_a_regulariser_of_ones_own_is_certified(make, rng):
    reference = LpNorm(2.0, form="penalty")
    function = reference.price if make is FromPrice else block_norm(reference)
    X = rng.normal(size=(40, 4))
    y = X[:, 0] + 0.2 * rng.normal(size=40)
    kernels = kw.kernels.per_feature(kw.kernels.Linear())
    own = kw.MKLRegressor(kernels, regularizer=make(function), tol=1e-5).fit(X, y)
    known = kw.MKLRegressor(kernels, regularizer=reference, tol=1e-5).fit(X, y)
    assert own.dual_gap_ <= 1e-5
    assert own.objective_ == pytest.approx(known.objective_, rel=2e-5)
    np.testing.assert_allclose(own.weights_, known.weights_, rtol=0.05, atol=1e-3)


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0])
def test_tikhonov_and_ivanov_fits_coincide(p, rng):
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=60)
    kernels = kw.kernels.per_feature(kw.kernels.Linear())
    tikhonov = kw.MKLRegressor(kernels, regularizer=LpNorm(p, form="penalty"), C=2.0, tol=1e-9).fit(X, y)
    C = equivalent_cost(2.0, tikhonov.norms_, LpNorm(p), to="constraint")
    ivanov = kw.MKLRegressor(kernels, regularizer=LpNorm(p), C=C, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ivanov.predict(X), tikhonov.predict(X), atol=1e-3)
    np.testing.assert_allclose(ivanov.weights_ * C / 2.0, tikhonov.weights_, atol=1e-3)
    assert equivalent_cost(C, ivanov.norms_, LpNorm(p), to="penalty") == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize("q", [2.5, 4.0, 8.0, np.inf])
def test_block_norms_beyond_two_have_no_price(q, rng):
    """They are a supremum over d: 1/2 inf_d (x'(1/d) + h(d)) is another function, whatever h."""
    rule, x = BlockNorm(q=q), rng.gamma(1.0, size=3)

    def own(x):
        return 0.5 * np.linalg.norm(x, 0.5 * q)

    assert own(x) == pytest.approx(rule.penalty(np.sqrt(x)))
    for refused in (
        lambda: price_of(rule),
        lambda: block_norm_of(rule),
        lambda: price_of(own)(x),
        lambda: price_of(FromBlockNorm(own))(x),
        lambda: block_norm_of(rule.price)(x),
        lambda: block_norm_of(lambda d: -np.linalg.norm(1.0 / d))(x),
    ):
        with pytest.raises(ValueError, match=r"maximum over d, not of a minimum.*BlockNorm\(q\)"):
            refused()


@pytest.mark.parametrize("form", ["constraint", "penalty"])
@pytest.mark.parametrize("q", [2.5, 8.0])
def test_block_norms_beyond_two_are_a_maximum(q, form, rng):
    """Table 1 of Tomioka & Suzuki, q > 2: its h(d), weights and g with sup and inf exchanged, both ways."""
    rule, rho = BlockNorm(q, form), q / (q - 2)
    n = rng.uniform(0.5, 1.5, size=3)
    x, step = n**2, 1e-6 * np.eye(3)

    def h(d):
        if form == "penalty":
            return -(q - 2) / q * (d ** (-q / (q - 2))).sum()  # as printed
        return 0.0 if (d**-rho).sum() <= 1 + 1e-12 else -np.inf

    def g(x):
        return (x ** (q / 2)).sum() / q if form == "penalty" else 0.5 * (x ** (q / 2)).sum() ** (2 / q)

    slopes = np.array([g(x + e) - g(x - e) for e in step]) / 2e-6
    d = 0.5 / slopes  # Theorem 1: d_m = 1 / (2 dg/dx_m)
    if form == "penalty":
        np.testing.assert_allclose(d, n ** (2 - q), rtol=1e-6)  # as printed
    d = 1.000001 * d if form == "constraint" else d  # inside, in spite of rounding
    assert g(x) == pytest.approx(0.5 * ((x / d).sum() + h(d)), rel=1e-5)
    for other in d * np.exp(0.5 * rng.normal(size=(50, 3))):
        assert 0.5 * ((x / other).sum() + h(other)) <= g(x) * (1 + 1e-9)
    assert block_norm_of(h, maximum=True)(x) == pytest.approx(g(x), rel=1e-6)
    assert block_norm_of(rule, maximum=True)(x) == pytest.approx(g(x))
    for weights in (1.1 * d, 0.5 * d):
        assert price_of(g, maximum=True)(weights) == pytest.approx(h(weights), rel=1e-5, abs=1e-8)
        assert price_of(rule, maximum=True)(weights) == pytest.approx(h(weights))
    # the weights of given dual norms, at the optimum of 1/2 inf_d (sum d r^2 - h(d)) = Omega*(r)
    r = n / d
    np.testing.assert_allclose(rule.weights_from_dual(r), d, rtol=1e-5)
    assert rule.conjugate(r) == pytest.approx(0.5 * (d @ r**2 - h(d)), rel=1e-5)


def test_a_maximum_is_not_asked_of_an_infimum(rng):
    for refused in (
        lambda: price_of(LpNorm(2.0), maximum=True),
        lambda: block_norm_of(Wedge(), maximum=True),
        lambda: price_of(lambda x: np.sqrt(x).sum(), maximum=True)(np.ones(2)),
    ):
        with pytest.raises(ValueError, match="leave out maximum=True"):
            refused()
    with pytest.raises(ValueError, match="not above zero"):
        block_norm_of(np.sum, maximum=True)(np.ones(2))


@pytest.mark.parametrize("q", [1.0, 1.5, 2.0])
def test_block_norms_up_to_two_have_a_price(q, rng):
    rule, x, d = BlockNorm(q=q), rng.gamma(1.0, size=3), np.full(3, 0.2)
    assert block_norm_of(rule)(x) == pytest.approx(0.5 * np.linalg.norm(np.sqrt(x), q) ** 2)
    assert price_of(rule)(d) == 0.0
    assert price_of(lambda x: 0.5 * np.linalg.norm(np.sqrt(x), q) ** 2)(d) == pytest.approx(0.0, abs=1e-6)


def test_a_block_norm_that_is_not_concave_is_refused():
    with pytest.raises(ValueError, match="g is not concave in x"):
        price_of(lambda x: float((x**2).sum()))(np.ones(1))
