"""Propositions, remarks and footnotes of several papers: norms, their two forms, bounds and terms."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.kernels import Linear, per_feature
from kernelweave.regularizers import FromPrice, block_norm_of, equivalent_cost, price_of
from kernelweave.theory.bounds import MOMENTS


def sample(rng, n=30):
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] - 0.6 * X[:, 1] + 0.2 * X[:, 2] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("p", [1.5, 3.0])
def test_proposition_5_of_kloft_et_al_and_its_constant(p, rng):
    """C sum V + 1/2 ||n||_q^2 has the model of C' sum V + 1/2 sum n^q at C' = (q/2) zeta C.

    zeta is that of (22), theta_m = zeta n_m^(2/(p+1)). Printed is C' = zeta C, which holds with 1/q in the
    place of 1/2: zeta depends on n, and (31) takes it as fixed.
    """
    X, y = sample(rng)
    q, C = 2 * p / (p + 1), 0.7
    model = kw.MKLRegressor(per_feature(Linear()), regularizer=kw.LpNorm(p), C=C, tol=1e-10, max_iter=500)
    n, theta = (model.fit(X, y).norms_, model.weights_)
    zeta = theta[0] / n[0] ** (2 / (p + 1))
    np.testing.assert_allclose(theta, zeta * n ** (2 / (p + 1)), rtol=1e-3)
    assert zeta == pytest.approx((n**q).sum() ** (-1 / p), rel=1e-3)
    slopes = n / theta  # of C sum V, downwards: those of 1/2 ||n||_q^2 at the optimum
    np.testing.assert_allclose((q / 2) * zeta * slopes, (q / 2) * n ** (q - 1), rtol=1e-3)
    to_penalty = equivalent_cost(C, n, kw.BlockNorm(q), to="penalty")  # of 1/q sum n^q
    assert to_penalty == pytest.approx(zeta * C, rel=1e-3)


@pytest.mark.slow
def test_proposition_12_of_kloft_et_al(rng):
    """min f + g and min f subject to g <= tau agree at tau = g(x*), here with a price that is no norm."""
    X, y = sample(rng)
    price, options = kw.ElasticNet(0.4).price, {"C": 0.7, "tol": 1e-7, "max_iter": 1000}
    penalised = kw.MKLRegressor(per_feature(Linear()), regularizer=kw.ElasticNet(0.4), **options).fit(X, y)
    tau = price(penalised.weights_)
    bounded = FromPrice(lambda d: 0.0 if price(d) <= tau else np.inf)
    model = kw.MKLRegressor(per_feature(Linear()), regularizer=bounded, **options).fit(X, y)
    assert model.dual_gap_ <= 1e-7
    np.testing.assert_allclose(model.predict(X), penalised.predict(X), atol=1e-3)
    np.testing.assert_allclose(model.weights_, penalised.weights_, atol=2e-3)


def test_the_multiplier_gamma_of_kloft_et_al_is_zero_for_lp_norms_and_not_for_all(rng):
    """(9) has min over gamma >= 0 of ||s/2 + gamma||_*: at 0 where the dual norm grows with its arguments."""
    r, E = np.array([1.0, 0.1]), np.array([[1.0, -0.6], [-0.6, 1.0]])
    for gamma in rng.gamma(0.3, size=(50, 2)):
        for p in (1.0, 1.5, 2.0):
            dual = np.inf if p == 1 else p / (p - 1)
            assert kw.LpNorm(p).conjugate(r) <= np.linalg.norm(r**2 / 2 + gamma, dual)
    values = [
        np.sqrt((r**2 / 2 + g) @ E @ (r**2 / 2 + g)) for g in np.eye(2)[1] * np.linspace(0, 1, 2001)[:, None]
    ]
    assert kw.Mahalanobis(E).conjugate(r) == pytest.approx(min(values), rel=1e-6)
    assert min(values) < 0.9 * values[0]


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_the_moments_behind_theorem_8_of_kloft_et_al(order, rng):
    """E (sigma' K sigma)^r <= (c r tr K)^r over all signs, c = 23/22: Lemma 1 of Cortes et al. (2010)."""
    signs = np.array(list(product([-1.0, 1.0], repeat=9)))
    for rank in (1, 3, 9):
        F = rng.normal(size=(9, rank))
        moment = np.mean(np.sum((signs @ F) ** 2, axis=1) ** order)
        assert moment <= (MOMENTS * order * np.sum(F**2)) ** order


@pytest.mark.parametrize(
    "rule", [kw.LpNorm(1.5, form="penalty"), kw.ElasticNet(0.4), kw.BlockNorm(4, form="penalty")], ids=repr
)
def test_corollary_2_of_tomioka_and_suzuki_separable_prices(rule, rng):
    """h(d) = sum h(d_m) and g(x) = sum g(x_m) belong to one another, for q > 2 as a supremum."""
    n, d = rng.uniform(0.5, 1.0, size=3), rng.uniform(0.5, 1.0, size=3)
    assert rule.penalty(n) == pytest.approx(sum(rule.penalty(n[[m]]) for m in range(3)))
    assert rule.price(d) == pytest.approx(sum(rule.price(d[[m]]) for m in range(3)))
    one = block_norm_of(rule.price, maximum=rule.ascends)
    assert sum(one(n[[m]] ** 2) for m in range(3)) == pytest.approx(rule.penalty(n), rel=1e-6)


def test_theorem_1_of_tomioka_and_suzuki_needs_no_convex_price(rng):
    """As they note, that h(1/y) is convex is enough: log d + 1/d - 1 from d = 1 on is not convex beyond 2."""

    def h(d):
        above = np.maximum(d, 1.0)
        return float((np.log(above) + 1.0 / above - 1.0).sum())

    def g(x):
        return 0.5 * float(np.log1p(x).sum())

    assert 0.5 * (h(np.array([3.0])) + h(np.array([9.0]))) < h(np.array([6.0]))
    for x, d in zip(rng.gamma(2.0, size=(3, 2)), rng.uniform(1.1, 5.0, size=(3, 2)), strict=True):
        assert price_of(g)(d) == pytest.approx(h(d), rel=1e-6)
        assert block_norm_of(h)(x) == pytest.approx(g(x), rel=1e-6)


@pytest.mark.parametrize("p", [1.0, 1.5, 1.9])
def test_equation_3_of_sindhwani_and_lozano(p, rng):
    """||f||_lp(H), p of components, is the least ||f|| over the q-convex hull of kernels, q = p/(2-p)."""
    n, q = rng.gamma(1.0, size=4) + 0.1, p / (2 - p)
    weights = kw.LpNorm(q).weights(n)
    assert (weights**q).sum() == pytest.approx(1.0)
    assert (n**2 / weights).sum() == pytest.approx(np.linalg.norm(n, p) ** 2)
    others = rng.gamma(1.0, size=(200, 4))
    others /= np.linalg.norm(others, q, axis=1, keepdims=True)
    assert ((n**2 / others).sum(axis=1) >= np.linalg.norm(n, p) ** 2 * (1 - 1e-12)).all()


@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_footnote_1_of_sindhwani_and_lozano(loss, rng):
    """A penalty on ||f||^2 and a ball ||f||^2 <= tau have the same solution, tau that of the penalty."""
    cp = pytest.importorskip("cvxpy")
    X, score = sample(rng, n=20)
    y = np.sign(score) if loss == "hinge" else score
    estimator = kw.MKLClassifier if loss == "hinge" else kw.MKLRegressor
    options = {"normalize": None, "fit_intercept": False, "tol": 1e-9, "loss": loss}
    model = estimator(per_feature(Linear()), regularizer="uniform", C=0.3, **options).fit(X, y)
    w = cp.Variable(3)
    each = cp.pos(1 - cp.multiply(y, X @ w)) if loss == "hinge" else 0.5 * cp.square(y - X @ w)
    tau = float(model.norms_ @ model.norms_)
    cp.Problem(cp.Minimize(cp.sum(each)), [cp.sum_squares(w) <= tau]).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(w.value, np.ravel(model.coef_), atol=1e-4)


@pytest.mark.parametrize(
    "term",
    [kw.LogTerm(eps=0.1), kw.GroupLassoTerm(), kw.MFocussTerm(0.3), kw.MKLTerm(), kw.SMKL(eps=0.1)],
    ids=repr,
)
def test_conditions_of_subrahmanya_and_shin(term, rng):
    """G(x) is concave and increasing: also of the MKL term, which they except.

    1/2 (sum sqrt x)^2 = min over the simplex of 1/2 sum x / d is an infimum of linear functions.
    """
    for a, b in rng.gamma(1.0, size=(30, 2, 4)):
        assert term.value(0.5 * (a + b)) >= 0.5 * (term.value(a) + term.value(b)) - 1e-12
        assert term.value(a + b) > term.value(a)
        assert (term.slopes(a) > 0).all()


def test_the_log_term_of_subrahmanya_and_shin_is_m_focuss_at_zero(rng):
    """eta = 1/p: B = x^(p/2 - 1) -> 1/x, and (g - M/p) -> sum log sqrt(x)."""
    x, p = rng.gamma(1.0, size=5) + 0.1, 1e-6
    term = kw.MFocussTerm(p, eta=1 / p)
    np.testing.assert_allclose(term.slopes(x), kw.LogTerm(eps=1e-15).slopes(x), rtol=1e-5)
    assert term.value(x) - 5 / p == pytest.approx(kw.LogTerm(eps=1e-15).value(x), abs=1e-4)
