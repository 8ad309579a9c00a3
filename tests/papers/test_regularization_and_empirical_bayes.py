"""Tomioka & Suzuki (2011): identities behind the two formulations and behind the evidence."""

from __future__ import annotations

import numpy as np
import pytest

import kernelweave as kw


def gaussians(rng, n=12, M=3):
    X = rng.normal(size=(n, M))
    return np.array([np.exp(-0.5 * (x[:, None] - x) ** 2) + 1e-3 * np.eye(n) for x in X.T]), X


def inverse_square(K, f):
    """||f||^2 = f' K^-1 f."""
    return float(f @ np.linalg.solve(K, f))


def test_equation_1_the_norm_of_a_sum_of_spaces(rng):
    """||f||^2 of K_d is the least sum ||f_m||^2 / d_m, at f_m = d_m K_m K_d^-1 f (Appendix A)."""
    Ks, X = gaussians(rng)
    y = np.sin(X[:, 0]) + X[:, 1]
    model = kw.MKLRegressor("precomputed", normalize=None, fit_intercept=False).fit(list(Ks), y)
    d, K_d = model.weights_, np.einsum("m,mij->ij", model.weights_, Ks)
    parts = kw.inspection.contributions(model, np.moveaxis(Ks, 0, -1)).T
    f = parts.sum(axis=0)
    np.testing.assert_allclose(parts, [w * K @ np.linalg.solve(K_d, f) for w, K in zip(d, Ks, strict=True)])
    least = sum(inverse_square(K, part) / w for w, K, part in zip(d, Ks, parts, strict=True))
    assert least == pytest.approx(inverse_square(K_d, f))
    assert least == pytest.approx(float((model.norms_**2 / d).sum()))
    for shift in 0.1 * rng.normal(size=(5, 12)):
        other = parts + np.array([shift, -shift, 0.0 * shift])
        assert sum(inverse_square(K, p) / w for w, K, p in zip(d, Ks, other, strict=True)) > least


def test_corollary_6_the_dual_of_the_wedge(rng):
    """g(x) = sup_eta sum sqrt((1 + eta_{m-1} - eta_m) x_m), at 1 + eta_{m-1} - eta_m = x_m / d_m^2 (16)."""
    for x in rng.gamma(1.0, size=(20, 5)):
        d = kw.Wedge().weights(np.sqrt(x))
        eta = np.concatenate([[0.0], np.cumsum(1.0 - x / d**2)])
        assert eta.min() >= -1e-12
        assert eta[-1] == pytest.approx(0.0, abs=1e-12)
        g = kw.Wedge().penalty(np.sqrt(x))
        assert np.sqrt((1.0 - np.diff(eta)) * x).sum() == pytest.approx(g)
        for inner in rng.gamma(0.3, size=(20, 4)):
            share = 1.0 - np.diff(np.concatenate([[0.0], inner, [0.0]]))
            if (share >= 0).all():
                assert np.sqrt(share * x).sum() <= g * (1 + 1e-12)


def test_corollary_5_one_weight_for_all_tasks(rng):
    """min over lambda of mean ||f_m||^2 / lambda + ||f_M||^2 / (1 - lambda): the l1 norm of two kernels.

    One is n times the sum of the kernels within the tasks, in which ||f||^2 = 1/n sum ||f_m||^2; the
    other is shared by all tasks.
    """
    n = rng.gamma(1.0, size=4)
    spread, shared = np.sqrt((n[:3] ** 2).mean()), n[3]
    rule = kw.LpNorm(p=1)
    share = rule.weights(np.array([spread, shared]))[0]
    shares = np.linspace(1e-4, 1.0 - 1e-4, 20001)
    values = spread**2 / shares + shared**2 / (1.0 - shares)
    assert 2.0 * rule.penalty(np.array([spread, shared])) == pytest.approx((spread + shared) ** 2)
    assert values.min() == pytest.approx((spread + shared) ** 2, rel=1e-6)
    assert shares[np.argmin(values)] == pytest.approx(share, abs=1e-3)
    assert (1.0 - share) / share == pytest.approx(shared / spread)


@pytest.fixture
def evidence(rng):
    """A fitted model without intercept and normalisation, its matrices and targets."""
    Ks, X = gaussians(rng)
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=len(X))
    options = {"normalize": None, "fit_intercept": False, "noise": 0.05, "tol": 1e-9, "max_iter": 2000}
    return kw.EmpiricalBayesRegressor("precomputed", **options).fit(list(Ks), y), Ks, y


def test_equations_19_and_20_the_evidence_as_a_minimum_over_components(evidence, rng):
    """-log p(y|d) = min_f ||y - sum f_m||^2 / (2 sigma^2) + 1/2 sum ||f_m||^2 / d_m + 1/2 log|2 pi Kbar|."""
    model, Ks, y = evidence
    live = np.flatnonzero(model.weights_)
    d, sigma2 = model.weights_[live], model.noise_
    Kbar = sigma2 * np.eye(len(y)) + np.einsum("m,mij->ij", d, Ks[live])
    half_log = 0.5 * np.linalg.slogdet(Kbar)[1] + 0.5 * len(y) * np.log(2.0 * np.pi)
    parts = kw.inspection.contributions(model, np.moveaxis(Ks, 0, -1)).T[live]

    def value(parts):
        prior = sum(inverse_square(K, f) / w for K, f, w in zip(Ks[live], parts, d, strict=True))
        return float(np.sum((y - parts.sum(axis=0)) ** 2)) / (2.0 * sigma2) + 0.5 * prior + half_log

    assert 0.5 * inverse_square(Kbar, y) + half_log == pytest.approx(-model.log_marginal_likelihood_)
    assert value(parts) == pytest.approx(-model.log_marginal_likelihood_)
    assert all(value(parts + h) > value(parts) for h in 0.1 * rng.normal(size=(5, *parts.shape)))


def test_equations_21_to_23_the_fixed_point_of_mackay(evidence, rng):
    """d_m = ||f_m||^2 / tr(Kbar^-1 d_m K_m) at the end, and (21) is convex in eta = log d."""
    model, Ks, y = evidence
    live = np.flatnonzero(model.weights_)
    d = model.weights_
    Kbar = model.noise_ * np.eye(len(y)) + np.einsum("m,mij->ij", d, Ks)
    traces = np.array([np.trace(np.linalg.solve(Kbar, K)) for K in Ks])
    np.testing.assert_allclose(d[live], (model.norms_**2 / (d * traces + (d == 0)))[live], rtol=1e-6)

    def block_norm(eta, x):
        logdet = np.linalg.slogdet(0.05 * np.eye(len(y)) + np.einsum("m,mij->ij", np.exp(eta), Ks))[1]
        return 0.5 * (float(x @ np.exp(-eta)) + logdet)

    x = rng.gamma(1.0, size=3)
    for a, b in rng.normal(size=(20, 2, 3)):
        assert block_norm(0.5 * (a + b), x) <= 0.5 * (block_norm(a, x) + block_norm(b, x))
