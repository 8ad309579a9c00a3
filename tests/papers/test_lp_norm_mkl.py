"""Kloft, Brefeld, Sonnenburg & Zien (2011): steps and remarks that no other test certifies."""

from __future__ import annotations

from math import ceil, e, log

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.kernels import Linear, per_feature, resolve_normalization
from kernelweave.theory import lp_complexity

ORDERS = [4 / 3, 2.0, 4.0]


@pytest.mark.parametrize("p", ORDERS)
def test_equations_7_and_8_the_multiplier_is_the_dual_norm(p, rng):
    """max_beta -||u||^2 / (2 beta) - beta/2 = -||u||_{p*} = -Omega*(r) at beta = ||u||_{p*}, u = s/2.

    (7) is printed without the 2 in front of beta: its maximum would be another.
    """
    r = rng.gamma(1.0, size=4)
    size = np.linalg.norm(r**2 / 2.0, p / (p - 1.0))
    betas = size * np.geomspace(0.1, 10.0, 2001)
    assert size == pytest.approx(kw.LpNorm(p).conjugate(r))
    values = -(size**2) / (2.0 * betas) - betas / 2.0
    assert betas[np.argmax(values)] == pytest.approx(size)
    assert values.max() == pytest.approx(-size)
    printed = -(size**2) / betas - betas / 2.0
    assert printed.max() < -1.4 * size


def test_section_2_3_sums_of_norms(rng):
    """N(d) = ||d||_1 + ||d||_2 <= 1: the least (sum n^2 / u) N(u) / 2 over all directions u."""
    n = rng.gamma(1.0, size=2) + 0.1

    def size(d):
        return np.sum(d, axis=-1) + np.linalg.norm(d, axis=-1)

    rule = kw.regularizers.FromPrice(lambda d: 0.0 if size(d) <= 1.0 else np.inf)
    d = rule.weights(n)
    assert size(d) == pytest.approx(1.0)
    assert rule.penalty(n) == pytest.approx(0.5 * (n**2 / d).sum())
    u = rng.dirichlet(np.ones(2), size=2_000)
    values = 0.5 * (n**2 / u).sum(axis=1) * size(u)
    assert rule.penalty(n) <= values.min()
    assert rule.penalty(n) == pytest.approx(values.min(), rel=1e-4)


@pytest.mark.parametrize("p", ORDERS)
def test_equations_21_and_22_the_weights_are_stationary(p, rng):
    """n_m^2 / (2 theta_m^2) = mu theta_m^(p-1) ||theta||_p^(2-p) with one mu for all m."""
    n = rng.gamma(1.0, size=5) + 0.1
    theta = kw.LpNorm(p).weights(n)
    slope = theta ** (p - 1.0) * np.linalg.norm(theta, p) ** (2.0 - p)
    for m, h in enumerate(1e-6 * np.eye(5)):
        up, down = (0.5 * np.linalg.norm(theta + sign * h, p) ** 2 for sign in (1, -1))
        assert slope[m] == pytest.approx((up - down) / 2e-6, rel=1e-6)
    mu = n**2 / (2.0 * theta**2) / slope
    np.testing.assert_allclose(mu, mu[0])
    np.testing.assert_allclose(theta / n ** (2.0 / (p + 1.0)), theta[0] / n[0] ** (2.0 / (p + 1.0)))


@pytest.mark.parametrize("q", [2.5, 3.0, 4.0, 8.0])
def test_equation_32_block_norms_beyond_two_are_a_supremum(q, rng):
    """||n||_q^2 = max over ||theta||_r <= 1 of sum theta n^2, r = q/(q-2), at theta ~ n^(2/(r-1))."""
    n, r = rng.gamma(1.0, size=5), q / (q - 2.0)
    theta = n ** (2.0 / (r - 1.0))
    theta /= np.linalg.norm(theta, r)
    assert kw.BlockNorm(q).penalty(n) == pytest.approx(0.5 * float(theta @ n**2))
    others = rng.gamma(1.0, size=(200, 5))
    others /= np.linalg.norm(others, r, axis=1, keepdims=True)
    assert (0.5 * others @ n**2 <= kw.BlockNorm(q).penalty(n) * (1 + 1e-12)).all()
    printed = n ** (-2.0 / (r - 1.0))  # (33): its reciprocal, but for a factor, which is another C
    np.testing.assert_allclose(printed * theta, printed[0] * theta[0])


@pytest.mark.parametrize(("q", "settles"), [(2.5, True), (8.0, False)])
def test_equation_33_alternates_a_maximum_with_a_minimum(q, settles, rng):
    """Started beside the optimum, the update returns to it for small q and leaves it for large q."""
    X, r = rng.normal(size=(15, 4)), q / (q - 2.0)
    Ks, y = [np.outer(x, x) for x in X.T], X @ [1.0, 0.8, 0.6, 0.4]
    model = kw.MKLRegressor(
        "precomputed",
        regularizer=kw.BlockNorm(q),
        normalize=None,
        fit_intercept=False,
        tol=1e-9,
        C=0.05,
    ).fit(Ks, y)
    theta = 1.0 / model.weights_
    start = np.linalg.norm(np.log(theta * model.weights_ * [1.01, 0.99, 1.0, 1.0]))
    theta = theta * [1.01, 0.99, 1.0, 1.0]
    for _ in range(4):
        K = sum(K / t for K, t in zip(Ks, theta, strict=True))
        alpha = np.linalg.solve(K + np.eye(15) / 0.05, y)
        n = np.array([np.sqrt(alpha @ K @ alpha) / t for K, t in zip(Ks, theta, strict=True)])
        theta = n ** (2.0 / (r - 1.0)) / np.linalg.norm(n ** (2.0 / (r - 1.0)), r)
    end = np.linalg.norm(np.log(theta * model.weights_))
    assert end < 0.1 * start if settles else end > 10.0 * start


def test_section_4_2_2_spherical_and_centred_kernels_have_unit_variance(rng):
    """Then the variance is the trace over n, and both are one: (27) changes nothing after (28)."""
    half = rng.normal(size=(6, 3))
    X = np.vstack([half, -half])  # the mean is the origin
    K = resolve_normalization("spherical").fit(X @ X.T).train(X @ X.T)
    np.testing.assert_allclose(K.diagonal(), 1.0)
    for name in ("variance", "trace"):
        assert resolve_normalization(name).fit(K).scale_ == pytest.approx(1.0)
    plain = X @ X.T
    scales = [resolve_normalization(name).fit(plain).scale_ for name in ("variance", "trace")]
    assert scales[0] == pytest.approx(scales[1])


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0])
def test_examples_1_and_2_radii_of_a_dense_and_of_a_sparse_truth(p, rng):
    """(1, ..., 1) needs the radius M^((p+1)/(2p)), and the bound grows with M; (1, 0, ..., 0) needs 1.

    Example 2 is printed with the M^2 of Example 1: with radius 1 it is M^(1/p*).
    """
    M, n = 8, 20
    X = rng.uniform(-1.0, 1.0, size=(n, M))
    q = 2.0 * p / (p + 1.0)
    dense, sparse = (np.linalg.norm(w, q) for w in (np.ones(M), np.eye(M)[0]))
    assert dense == pytest.approx(M ** ((p + 1.0) / (2.0 * p)))
    assert sparse == 1.0
    factor = min(e * ceil(log(M)), np.inf if p == 1.0 else ceil(round(p / (p - 1.0), 9)))
    options = {"p": p, "diag_bound": 1.0, "normalize": None}
    kernels = per_feature(Linear())
    assert lp_complexity(kernels, X, radius=dense, **options).value ** 2 == pytest.approx(
        23 / 22 * M**2 * factor / n
    )
    assert lp_complexity(kernels, X, radius=sparse, **options).value ** 2 == pytest.approx(
        23 / 22 * M ** (1.0 - 1.0 / p) * factor / n
    )
