"""Rademacher complexities: drawn suprema are suprema, and the bounds bound them."""

from __future__ import annotations

from itertools import combinations, product
from math import ceil, comb, e, log, sqrt

import numpy as np
import pytest

from kernelweave.kernels import RBF, Linear, bandwidths, per_feature
from kernelweave.theory import (
    conversion_factor,
    empirical_complexity,
    greedy_complexity,
    greedy_risk_bound,
    lp_complexity,
    lp_risk_bound,
    radius_margin_bound,
)

NORMS = [1.0, 1.1, 4 / 3, 1.5, 2.0, 3.0, 4.0, np.inf]


def dictionaries(rng):
    X = rng.standard_normal((40, 8))
    return {"features": (per_feature(Linear()), X), "widths": (bandwidths(6, RBF()), X)}


def random_members(rng, Ks, p, count):
    """Values on the samples of random functions of the lp class."""
    n, M = len(Ks[0]), len(Ks)
    for _ in range(count):
        d = rng.random(M) ** 3
        d /= d.max() if np.isinf(p) else (d**p).sum() ** (1 / p)
        roots = [np.linalg.cholesky(K + 1e-10 * np.eye(n)) for K in Ks]
        w = rng.standard_normal((M, n))
        w /= np.linalg.norm(w)
        yield sum(np.sqrt(d[m]) * roots[m] @ w[m] for m in range(M))


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_the_supremum_over_the_lp_class_is_its_closed_form(rng, p):
    n = 6
    Ks = [F @ F.T for F in rng.standard_normal((3, n, n))]
    signs = rng.choice([-1.0, 1.0], size=n)
    q = np.array([signs @ K @ signs for K in Ks])
    dual = 1.0 if np.isinf(p) else np.inf if p == 1 else p / (p - 1)
    supremum = sqrt(np.linalg.norm(q, dual))
    # attained: d from Hoelder's equality, w_m ~ sqrt(d_m) times the feature sums
    d = np.ones(3) if np.isinf(p) else (q == q.max()) * 1.0 if p == 1 else q ** (dual - 1)
    d /= d.max() if np.isinf(p) else (d**p).sum() ** (1 / p)
    assert sqrt(d @ q) == pytest.approx(supremum)
    assert all(signs @ f <= supremum * (1 + 1e-6) for f in random_members(rng, Ks, p, 300))


def test_drawing_signs_estimates_the_mean_over_all_of_them(rng):
    n = 8
    Ks = [F @ F.T for F in rng.standard_normal((4, n, 2))]
    every = np.array(list(product([-1.0, 1.0], repeat=n)))
    q = np.column_stack([np.einsum("ki,ij,kj->k", every, K, every) for K in Ks])
    exact = {
        "p": np.sqrt(np.linalg.norm(q, 2.0, axis=1)).mean() / n,
        "n_kernels": np.mean([max(sqrt(row[list(S)].sum()) for S in combinations(range(4), 2)) for row in q])
        / n,
    }
    for option, value in exact.items():
        found = empirical_complexity("precomputed", Ks, **{option: 2}, normalize=None, n_draws=4000)
        assert found.value == pytest.approx(value, abs=4 * found.parts["standard_error"])


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("name", ["features", "widths"])
def test_the_lp_bound_bounds_the_complexity(rng, name, p):
    kernels, X = dictionaries(rng)[name]
    drawn = empirical_complexity(kernels, X, p=p, radius=3.0)
    assert drawn.value + 3 * drawn.parts["standard_error"] <= lp_complexity(kernels, X, p=p, radius=3.0).value


@pytest.mark.parametrize("s", [1, 2, 5])
@pytest.mark.parametrize("name", ["features", "widths"])
def test_the_greedy_bound_bounds_the_complexity(rng, name, s):
    kernels, X = dictionaries(rng)[name]
    drawn = empirical_complexity(kernels, X, n_kernels=s, radius=0.5)
    bound = greedy_complexity(kernels, X, n_kernels=s, radius=0.5)
    assert drawn.value + 3 * drawn.parts["standard_error"] <= bound.value


def test_the_greedy_bound_as_printed_is_exceeded_by_many_kernels():
    """One kernel z z' for every sign vector z: the best of them fits any signs exactly."""
    n = 8
    Ks = [np.outer(z, z) for z in np.array(list(product([-1.0, 1.0], repeat=n)))]
    drawn = empirical_complexity("precomputed", Ks, n_kernels=1, normalize=None)
    bound = greedy_complexity("precomputed", Ks, n_kernels=1, normalize=None)
    assert drawn.value == pytest.approx(1.0)
    assert bound.parts["as_printed"] == pytest.approx(sqrt(1 / n))
    assert bound.parts["as_printed"] < drawn.value <= bound.value


def test_all_kernels_leave_no_choice(rng):
    kernels, X = dictionaries(rng)["features"]
    bound = greedy_complexity(kernels, X, n_kernels=8)
    assert bound.value == pytest.approx(bound.parts["as_printed"])


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("M", [2, 8, 30])
def test_bounds_are_their_formulas(rng, p, M):
    X = rng.standard_normal((50, M))
    R2 = (X**2).max()
    dual = np.inf if p == 1 else 1.0 if np.isinf(p) else p / (p - 1)
    factor = min(e * ceil(log(M)), ceil(round(dual, 9)) if np.isfinite(dual) else np.inf)
    expected = 2.0 * sqrt(23 / 22 * M ** (1 / dual) * R2 * factor / 50)
    bound = lp_complexity(per_feature(Linear()), X, p=p, radius=2.0, normalize=None)
    assert bound.value == pytest.approx(expected)
    losses = rng.random(50)
    risk = lp_risk_bound(
        losses, per_feature(Linear()), X, p, lipschitz=3.0, radius=2.0, delta=0.1, normalize=None
    )
    assert risk.value == pytest.approx(losses.mean() + 12.0 * expected + sqrt(log(20.0) / 100.0))


def test_one_kernel_is_bounded_too(rng):
    X = rng.standard_normal((50, 1))
    for p in NORMS:
        drawn = empirical_complexity(Linear(), X, p=p)
        assert drawn.value <= lp_complexity(Linear(), X, p=p).value


def test_the_radius_margin_bound_is_that_of_the_margin_loss(rng):
    kernels, X = dictionaries(rng)["features"]
    margins = rng.normal(1.0, 1.0, size=40)
    losses = np.minimum(1.0, np.maximum(0.0, 1.0 - margins / 0.5))
    found = radius_margin_bound(margins, kernels, X, p=2, margin=0.5)
    assert found.value == lp_risk_bound(losses, kernels, X, p=2, lipschitz=2.0).value
    assert (
        radius_margin_bound(margins, kernels, X, margin=5.0).parts["complexity"] < found.parts["complexity"]
    )


def test_the_greedy_risk_bound_is_its_formula(rng):
    kernels, X = dictionaries(rng)["features"]
    y = rng.uniform(-2, 2, size=40)
    found = greedy_risk_bound(kernels, X, y, n_kernels=3, radius=1.5, delta=0.1)
    kappa = max((X[:, m] ** 2).max() / X[:, m].var() for m in range(8))
    spread = sqrt(3 * kappa) * 1.5
    complexity = spread / sqrt(40) * (1 + sqrt(2 * log(comb(8, 3))))
    L = np.abs(y).max() + spread
    assert found.value == pytest.approx(8 * L * complexity + 4 * L**2 * sqrt(log(30.0) / 80.0))


@pytest.mark.parametrize(("q", "p"), [(1.0, 2.0), (4 / 3, 4.0), (2.0, 2.0), (1.0, np.inf)])
def test_the_conversion_holds_and_is_attained(rng, q, p):
    M = 12
    factor = conversion_factor(M, q, p)
    low, high = (1.0 / q, 0.0 if np.isinf(p) else 1.0 / p)
    assert factor == pytest.approx(sqrt(M ** (low - high)))
    d = rng.random((200, M))
    ratios = np.linalg.norm(d, q, axis=1) / np.linalg.norm(d, p, axis=1)
    assert ratios.max() <= factor**2 * (1 + 1e-9)
    assert np.linalg.norm(np.ones(M), q) / np.linalg.norm(np.ones(M), p) == pytest.approx(factor**2)
    kernels, X = dictionaries(rng)["features"]
    small, large = (empirical_complexity(kernels, X, p=order).value for order in (q, p))
    assert small * (1 - 1e-9) <= large <= conversion_factor(8, q, p) * small * (1 + 1e-9)


def test_a_true_error_stays_below_its_bound(rng):
    n, X_new = 2000, rng.uniform(-1, 1, size=(20_000, 3))
    X = rng.uniform(-1, 1, size=(n, 3))
    y, y_new = np.sign(X[:, 0] + 0.3 * X[:, 1]), np.sign(X_new[:, 0] + 0.3 * X_new[:, 1])
    f, f_new = X[:, 0], X_new[:, 0]  # in the class: weight 1 on one kernel
    bound = radius_margin_bound(
        y * f, per_feature(Linear()), X, p=1, margin=0.5, diag_bound=1.0, normalize=None
    )
    assert np.mean(y_new * f_new <= 0) <= bound.value < 1.0


def test_assumptions_are_measured(rng):
    kernels, X = dictionaries(rng)["features"]
    assert lp_complexity(kernels, X).holds is None
    assert lp_complexity(kernels, X, diag_bound=1e3).holds is True
    low = lp_complexity(kernels, X, diag_bound=0.1)
    assert low.holds is False
    assert "FAILS" in repr(low)
    outside = lp_risk_bound(np.full(40, 1.5), kernels, X)
    assert [a.name for a in outside.assumptions if a.holds is False] == ["loss in [0, 1]"]
    small = greedy_risk_bound(kernels, X, np.linspace(-2, 2, 40), 2, target_bound=1.0)
    assert [a.name for a in small.assumptions if a.holds is False] == ["|y| bounded"]
