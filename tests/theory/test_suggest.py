"""Suggestions: statistics without bias, the rule they feed, and what the user sees."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import ortho_group

import kernelweave as kw
from kernelweave.gram import DenseGram
from kernelweave.kernels import RBF, Linear, per_feature
from kernelweave.theory import suggest
from kernelweave.theory.suggest import (
    NORMS,
    _squared_mean,
    chance_spread,
    informative_number,
    measure,
    norm_costs,
)


def centred_kernels(rng, n, count, rank=2):
    H = np.eye(n) - 1.0 / n
    Ks = [H @ F @ F.T @ H for F in rng.standard_normal((count, n, rank))]
    return [n * K / np.trace(K) for K in Ks]


def toy(rng, n, informative, d=50, size=1.75):
    """Two Gaussian classes that differ in the first features."""
    y = np.repeat([1.0, -1.0], n // 2)
    X = rng.standard_normal((n, d))
    X[:, :informative] += size / np.sqrt(informative) * y[:, None]
    return X, y.astype(int)


def test_squares_are_means_over_different_samples(rng):
    n = 6
    h = rng.standard_normal((n, n))
    h = h + h.T
    brute = np.mean([h[i, j] * h[k, m] for i, j, k, m in permutations(range(n), 4)])
    assert _squared_mean(h.copy()) == pytest.approx(brute * (1 - 1 / n) ** 2)


@pytest.mark.slow
def test_strengths_and_squares_have_no_bias_by_chance(rng):
    n = 12
    gram = DenseGram(centred_kernels(rng, n, 3))
    y = rng.standard_normal(n)
    draws = [measure(gram, (rng.permutation(y) - y.mean())[:, None]) for _ in range(2000)]
    for name in ("strength", "square"):
        values = np.array([getattr(draw, name) for draw in draws])
        error = values.std(axis=0) / np.sqrt(len(draws))
        # centring leaves a bias of order n^-3 in the squares
        assert (np.abs(values.mean(axis=0)) <= 4 * error + 3 / n**3).all(), name


def test_chance_spread_is_that_of_random_rotations(rng):
    n = 8
    K, L = centred_kernels(rng, n, 2)
    basis = np.linalg.svd(np.eye(n) - 1.0 / n)[0][:, :-1]
    A, B = basis.T @ K @ basis, basis.T @ L @ basis
    spread = chance_spread(np.linalg.norm(K, keepdims=True).ravel(), float(np.linalg.norm(L)), n)[0]
    drawn = [np.vdot(A, turn @ B @ turn.T) for turn in ortho_group.rvs(n - 1, size=4000, random_state=0)]
    assert np.std(drawn) == pytest.approx(spread, rel=0.06)


def test_the_signal_of_all_kernels_is_that_of_their_sum(rng):
    n = 15
    Ks = centred_kernels(rng, n, 4)
    y = rng.standard_normal(n)
    T = np.outer(y - y.mean(), y - y.mean())
    T *= n / np.trace(T)
    total, N = sum(Ks), n - 1.0
    left, right = (np.vdot(A, A) - np.trace(A) ** 2 / N for A in (total, T))
    z = (np.vdot(total, T) - np.trace(total) * n / N) / np.sqrt(2 * left * right / ((N - 1) * (N + 2)))
    assert measure(DenseGram(Ks), (y - y.mean())[:, None]).z == pytest.approx(z)


@pytest.mark.slow
def test_random_targets_rarely_pass_for_a_peak(rng):
    Ks = centred_kernels(rng, 30, 20)
    found = [measure(DenseGram(Ks), rng.choice([-1.0, 1.0], size=(30, 1))) for _ in range(200)]
    assert np.mean([signal.peak > signal.chance_peak for signal in found]) <= 0.1


def test_one_weak_kernel_among_many_is_not_lost():
    """Fifty kernels, one of which carries the target: the sum hardly shows it, the peak does."""
    methods = []
    for seed in range(10):
        X, y = toy(np.random.default_rng(seed), 50, 1, size=1.25)
        methods.append(suggest(per_feature(Linear()), X, y).p)
    assert np.isinf(methods).sum() == 0


def test_alignment_and_cosines_are_those_of_the_matrices(rng):
    Ks = centred_kernels(rng, 20, 3)
    y = rng.standard_normal(20)
    y -= y.mean()
    found = measure(DenseGram(Ks), y[:, None])
    T = np.outer(y, y)
    np.testing.assert_allclose(
        found.alignment, [np.vdot(K, T) / (np.linalg.norm(K) * np.linalg.norm(T)) for K in Ks]
    )
    H = np.eye(20) - 1.0 / 20
    left = [K - np.trace(K) / 19 * H for K in Ks]
    expected = [[np.vdot(K, L) / (np.linalg.norm(K) * np.linalg.norm(L)) for L in left] for K in left]
    np.testing.assert_allclose(found.cosines, expected, atol=1e-12)


@pytest.mark.wide
@pytest.mark.sampled(3)
@pytest.mark.parametrize("informative", [1, 4, 9, 18, 50])
def test_the_number_of_informative_kernels_is_found(informative):
    found = []
    for seed in range(4):
        X, y = toy(np.random.default_rng(seed), 200, informative)
        found.append(suggest(per_feature(Linear()), X, y).evidence["informative"])
    assert np.mean(found) == pytest.approx(informative, rel=0.25)


def test_more_informative_kernels_never_lower_the_norm(rng):
    X, y = toy(rng, 60, 5)
    gram = DenseGram([np.outer(x, x) / x.var() for x in (X - X.mean(axis=0)).T])
    signal = measure(gram, (y - y.mean())[:, None])
    best = [NORMS[int(norm_costs(signal, k).argmin())] for k in np.linspace(1, 50, 99)]
    assert best == sorted(best)
    assert (best[0], best[-1]) == (1.0, np.inf)
    assert 1.0 <= informative_number(signal) <= 50.0


def test_each_method_is_suggested_where_it_belongs():
    cases = {1: "sparse", 4: "greedy", 12: "non-sparse", 50: "uniform"}
    for informative, method in cases.items():
        X, y = toy(np.random.default_rng(0), 200, informative)
        found = suggest(per_feature(Linear()), X, y)
        assert found.method == method, informative
        assert found.estimator == ("GroupOMPClassifier" if method == "greedy" else "MKLClassifier")
        assert (found.n_kernels is not None) == (method == "greedy")
        assert repr(found).startswith(f"try first: {method}, {found.estimator}(kernels")
        assert len(found.reasons) == 4


def test_noise_one_kernel_and_copies_are_left_alone(rng):
    X = rng.standard_normal((100, 10))
    noise = suggest(per_feature(Linear()), X, rng.standard_normal(100))
    assert noise.method == "uniform"
    assert "too little" in noise.reasons[0]
    assert suggest(Linear(), X, X[:, 0]).reasons == [
        "there is one kernel that varies, so there is nothing to weigh"
    ]
    copies = suggest([Linear(columns=0)] * 6, X, X[:, 0] + 0.5 * rng.standard_normal(100))
    assert copies.method == "uniform"
    assert copies.evidence["different"] == pytest.approx(1.0)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_suggested_regularizer_fits(rng, task):
    X, y = toy(rng, 80, 3, d=12)
    found = suggest(per_feature(Linear()), X, y, task=task)
    assert found.estimator.endswith("Classifier" if task == "classification" else "Regressor")
    model = kw.MKLClassifier if task == "classification" else kw.MKLRegressor
    fitted = model(per_feature(Linear()), regularizer=found.regularizer).fit(X, y)
    assert fitted.dual_gap_ <= fitted.tol


def test_order_scale_and_form_of_the_kernels_do_not_matter(rng):
    X, y = toy(rng, 60, 3, d=8)
    kernels = {f"f{m}": Linear(columns=m) for m in range(8)}
    plain = suggest(kernels, X, y)
    turned = suggest(dict(reversed(kernels.items())), X, y)
    given = suggest("precomputed", [5.0 * kernel(X) + 2.0 for kernel in kernels.values()], y)
    for other in (turned, given):
        assert (other.method, other.p) == (plain.method, plain.p)
        assert other.evidence["informative"] == pytest.approx(plain.evidence["informative"], rel=1e-6)
    assert turned.evidence["alignment"] == pytest.approx(plain.evidence["alignment"])


def test_classes_and_several_outputs(rng):
    X = rng.standard_normal((90, 6))
    labels = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    assert suggest(per_feature(Linear()), X, labels).estimator == "MKLClassifier"
    outputs = suggest(per_feature(RBF("median")), X, np.column_stack([X[:, 0], X[:, 1]]))
    assert outputs.estimator == "MKLRegressor"
    assert outputs.evidence["informative"] == pytest.approx(2.0, rel=0.3)


@pytest.mark.parametrize("given", [True, False])
def test_large_samples_are_thinned(rng, given):
    X, y = toy(rng, 300, 2, d=6)
    if given:
        found = suggest("precomputed", [np.outer(x, x) for x in X.T], y, max_samples=100)
    else:
        found = suggest(per_feature(Linear()), X, y, max_samples=100)
    assert found.evidence["n_samples"] == 100
    assert found.evidence["informative"] == pytest.approx(2.0, rel=0.3)
