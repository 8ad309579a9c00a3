"""Empirical Bayes: the evidence, its slopes, and the fixed point that maximises it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from kernelweave.gram import DenseGram
from kernelweave.solvers.multiple.empirical_bayes import (
    EmpiricalBayes,
    Evidence,
    GaussianEvidence,
    LaplaceEvidence,
    Posterior,
)

KINDS = ["gaussian", "laplace"]


def data(n: int, n_kernels: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """One Gaussian kernel a feature, and a target of the first two."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_kernels))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    return np.array([np.exp(-((x[:, None] - x) ** 2)) for x in X.T]), y


def evidence_of(kind: str, Ks: np.ndarray, y: np.ndarray, weight=None, fit_intercept=True) -> Evidence:
    weight = np.ones(len(y)) if weight is None else weight
    if kind == "gaussian":
        return GaussianEvidence(DenseGram(Ks), y[:, None], weight, fit_intercept)
    return LaplaceEvidence(DenseGram(Ks), np.sign(y), weight, fit_intercept)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_slopes_are_those_of_the_objective(kind, fit_intercept, rng):
    Ks, y = data(30, 3)
    evidence = evidence_of(kind, Ks, y, rng.uniform(0.3, 3.0, size=30), fit_intercept)
    values = np.array([0.5, 0.2, 1.1, 0.3])  # the last is the noise

    def objective(theta: np.ndarray) -> float:
        posterior = evidence.evaluate(np.exp(theta[:3]), float(np.exp(theta[3])))
        assert posterior is not None
        return posterior.objective

    up, down = evidence.slopes(evidence.evaluate(values[:3], values[3]))
    assert (up >= 0).all()
    assert (down >= 0).all()
    steps = 1e-5 * np.eye(4)[: len(up)]
    numeric = [(objective(np.log(values) + h) - objective(np.log(values) - h)) / 2e-5 for h in steps]
    np.testing.assert_allclose(values[: len(up)] * (down - up) / 2.0, numeric, atol=1e-7)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("factor", [1e-3, 0.5, 30.0, 1e4])
def test_the_mode_does_not_depend_on_where_it_starts(factor, fit_intercept, rng):
    """alpha = -w V'(K alpha + b) at the mode, reached from that of similar or of other weights."""
    Ks, y = data(30, 3)
    w = rng.uniform(0.3, 3.0, size=30)
    evidence = evidence_of("laplace", Ks, y, w, fit_intercept)
    weights = np.array([0.5, 2.0, 0.1])
    start = evidence.evaluate(factor * weights[::-1], 1.0)
    cold, warm = evidence.evaluate(weights, 1.0), evidence.evaluate(weights, 1.0, start)
    f = np.einsum("m,mij,j->i", weights, Ks, warm.alpha[:, 0]) + warm.intercept
    np.testing.assert_allclose(warm.alpha[:, 0], w * np.sign(y) / (1.0 + np.exp(np.sign(y) * f)), rtol=1e-9)
    np.testing.assert_allclose(warm.alpha, cold.alpha, rtol=1e-9)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-12)
    for ours, theirs in zip(evidence.slopes(warm), evidence.slopes(cold), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)


def test_outputs_add_up(rng):
    Ks, y = data(25, 2)
    Y = np.column_stack([y, y**2, rng.normal(size=25)])
    weights, noise = np.array([0.4, 0.7]), 0.2
    joint = GaussianEvidence(DenseGram(Ks), Y, np.ones(25))
    single = [GaussianEvidence(DenseGram(Ks), Y[:, [k]], np.ones(25)) for k in range(3)]
    parts = [part.evaluate(weights, noise) for part in single]
    whole = joint.evaluate(weights, noise)
    assert whole.objective == pytest.approx(sum(part.objective for part in parts))
    np.testing.assert_allclose(
        joint.slopes(whole),
        np.sum([part.slopes(post) for part, post in zip(single, parts, strict=True)], axis=0),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_counts_equal_samples(kind, rng):
    Ks, y = data(20, 2)
    counts = rng.integers(1, 4, size=20)
    rows = np.repeat(np.arange(20), counts)
    once = evidence_of(kind, Ks, y, counts.astype(float))
    repeated = evidence_of(kind, Ks[:, rows[:, None], rows], y[rows])
    values = []
    for evidence in (once, repeated):
        posterior = evidence.evaluate(np.array([0.4, 0.7]), 0.2)
        values.append(
            [evidence.log_evidence(posterior.objective), *np.concatenate(evidence.slopes(posterior))]
        )
    # the noise slopes share their constant part differently between up and down
    np.testing.assert_allclose(values[0][0], values[1][0], rtol=1e-9)
    slopes = [np.subtract(*np.split(np.array(value[1:]), 2)) for value in values]
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-6)
    np.testing.assert_allclose(once.scales, repeated.scales)


def test_the_intercept_is_a_constant_kernel_of_infinite_weight():
    """Integrating out b ~ N(0, v) with v large differs from the flat prior by log(v) / 2 only."""
    Ks, y = data(30, 2)
    weights, noise, v = np.array([0.4, 0.7]), 0.2, 1e7
    flat = evidence_of("gaussian", Ks, y).evaluate(weights, noise)
    proper = evidence_of("gaussian", np.concatenate([Ks, np.ones((1, 30, 30))]), y, fit_intercept=False)
    wide = proper.evaluate(np.append(weights, v), noise)
    assert flat.objective == pytest.approx(wide.objective - 0.5 * np.log(v), abs=1e-4)
    np.testing.assert_allclose(flat.alpha, wide.alpha, atol=1e-4)
    cross, prior = np.full((1, 30), 0.2), np.array([1.5])
    np.testing.assert_allclose(
        flat.spread.variance(cross, prior), wide.spread.variance(cross + v, prior + v), rtol=1e-4
    )


def test_laplace_evidence_is_that_of_scikit_learn(rng):
    X = rng.normal(size=(40, 2))
    y = X[:, 0] + 0.5 * rng.normal(size=40) > 0
    theirs = GaussianProcessClassifier(ConstantKernel(2.5) * RBF(1.3), optimizer=None).fit(X, y)
    gram = DenseGram([RBF(1.3)(X)])
    ours = LaplaceEvidence(gram, np.where(y, 1.0, -1.0), np.ones(40), fit_intercept=False)
    objective = ours.evaluate(np.array([2.5]), 1.0).objective
    assert ours.log_evidence(objective) == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("memory", [0, 5])
def test_both_updates_reach_the_same_stationary_point(kind, memory):
    Ks, y = data(100, 6)
    evidence = evidence_of(kind, Ks, y)
    solutions = [
        EmpiricalBayes(update, memory).solve(evidence, tol=1e-6, max_iter=1000) for update in ("mackay", "mm")
    ]
    for solution in solutions:
        assert solution.state.residual <= 1e-6
    assert solutions[0].state.log_evidence == pytest.approx(solutions[1].state.log_evidence, rel=1e-8)
    np.testing.assert_allclose(solutions[0].state.weights, solutions[1].state.weights, rtol=1e-2, atol=1e-4)
    assert (solutions[0].state.weights == 0).any()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("update", ["mackay", "mm"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_evidence_never_decreases(kind, update, seed):
    Ks, y = data(60, 10, seed)
    solution = EmpiricalBayes(update).solve(evidence_of(kind, Ks, y), tol=1e-5)
    assert (np.diff(solution.history["log_evidence"]) >= 0).all()
    assert solution.history["log_evidence"][-1] == solution.state.log_evidence
    assert solution.converged


def test_the_residual_is_the_slope_in_the_logarithms():
    Ks, y = data(50, 4)
    evidence = evidence_of("gaussian", Ks, y)
    with pytest.warns(ConvergenceWarning, match=r"relative slope .* after 3 steps"):
        solution = EmpiricalBayes().solve(evidence, tol=1e-12, max_iter=3)
    live = np.flatnonzero(solution.state.weights)
    values = np.append(solution.state.weights[live], solution.state.posterior.noise)
    up, down = evidence.subset(live).slopes(solution.state.posterior)
    expected = np.abs(values * (down - up)).sum() / (values * down).sum()
    assert solution.state.residual == pytest.approx(expected)
    # what kernels and noise explain adds up to the degrees of freedom
    assert (values * down).sum() == pytest.approx(49.0)


class Counting(DenseGram):
    """Counts how often matrices are asked for."""

    sizes: list[int]

    def inner(self, A):
        self.sizes.append(self.n_kernels)
        return super().inner(A)

    def subset(self, samples=None, kernels=None):
        part = super().subset(samples, kernels)
        part.sizes = self.sizes
        return part


def test_pruned_kernels_are_not_evaluated_again():
    Ks, y = data(100, 20)
    gram = Counting(Ks)
    gram.sizes = []
    solution = EmpiricalBayes().solve(GaussianEvidence(gram, y[:, None], np.ones(100)), tol=1e-4)
    assert gram.sizes[-1] == np.count_nonzero(solution.state.weights) < 20
    assert (np.diff(solution.history["n_kernels"]) <= 0).all()


def test_a_pruned_kernel_would_not_come_back():
    """At zero the evidence does not rise with the weight of a kernel left out."""
    Ks, y = data(100, 8)
    evidence = evidence_of("gaussian", Ks, y)
    solution = EmpiricalBayes().solve(evidence, tol=1e-7)
    up, down = evidence.slopes(evidence.evaluate(solution.state.weights, solution.state.posterior.noise))
    dead = np.flatnonzero(solution.state.weights == 0)
    assert len(dead)
    assert (up[dead] <= down[dead]).all()


def test_a_constant_kernel_has_nothing_to_explain_beside_an_intercept():
    Ks, y = data(40, 2)
    Ks = np.concatenate([Ks, np.ones((1, 40, 40))])
    assert EmpiricalBayes().solve(evidence_of("gaussian", Ks, y)).state.weights[2] == 0.0


def test_all_kernels_may_die(rng):
    gram = DenseGram([np.eye(60) + 1.0, 2.0 * np.eye(60) + 1.0])  # no more than noise
    evidence = GaussianEvidence(gram, rng.normal(size=(60, 1)), np.ones(60), noise=2.0)
    solution = EmpiricalBayes().solve(evidence)
    assert not solution.state.weights.any()
    assert solution.state.posterior.alpha.shape == (60, 1)


def test_known_noise_stays():
    Ks, y = data(50, 3)
    evidence = GaussianEvidence(DenseGram(Ks), y[:, None], np.ones(50), noise=0.5)
    assert EmpiricalBayes().solve(evidence).state.posterior.noise == 0.5


def test_constant_targets_leave_no_kernel():
    Ks, _ = data(30, 2)
    solution = EmpiricalBayes().solve(evidence_of("gaussian", Ks, np.full(30, 7.0)))
    assert not solution.state.weights.any()
    np.testing.assert_allclose(solution.state.posterior.intercept, 7.0)


class Prior:
    """h(d) = sum_m b d_m - 2 a log d_m, with its gradient."""

    def price(self, d):
        return float((0.1 * d - 2.0 * np.log(d)).sum())

    def price_gradient(self, d):
        return 0.1 - 2.0 / d


def test_a_hyper_prior_by_function_or_by_object():
    Ks, y = data(80, 6)
    evidence = evidence_of("gaussian", Ks, y)
    by_object = EmpiricalBayes().solve(evidence, Prior(), tol=1e-8)
    by_function = EmpiricalBayes().solve(evidence, Prior().price, tol=1e-8)
    np.testing.assert_allclose(by_object.state.weights, by_function.state.weights, rtol=1e-4)
    for solution in (by_object, by_function):
        assert (np.diff(solution.history["log_evidence"]) >= 0).all()
    # stationary: d (down - up) + d h'(d) = 0
    up, down = evidence.slopes(by_object.state.posterior)
    d = by_object.state.weights
    np.testing.assert_allclose(d * (down[:-1] - up[:-1]) + d * Prior().price_gradient(d), 0.0, atol=1e-5)


def test_a_hyper_prior_keeps_more_kernels():
    """The paper's remedy for extreme sparsity: more kernels, more evenly used."""
    Ks, y = data(100, 12)
    evidence = evidence_of("gaussian", Ks, y)
    plain, kept = (EmpiricalBayes().solve(evidence, h) for h in (None, Prior()))
    entropies = [
        -float((share[share > 0] * np.log(share[share > 0])).sum())
        for share in (
            plain.state.weights / plain.state.weights.sum(),
            kept.state.weights / kept.state.weights.sum(),
        )
    ]
    assert np.count_nonzero(plain.state.weights) < 12
    assert (kept.state.weights > 0).all()
    assert entropies[1] > entropies[0]
    assert kept.state.log_evidence <= plain.state.log_evidence


@pytest.mark.parametrize(
    ("h", "message"),
    [
        (3.0, "expected a function h"),
        (lambda d: np.inf, "finite for all weights"),
        (lambda d: np.inf if d.max() > 1.0000001 * d.min() else 0.0, "not differentiable"),
    ],
)
def test_bad_hyper_priors(h, message):
    Ks, y = data(20, 3)
    evidence = evidence_of("gaussian", Ks / Ks[:, :1, :1], y)
    evidence.scales[:] = 1.0
    with pytest.raises(ValueError, match=message):
        EmpiricalBayes().solve(evidence, h)


def test_bad_parameters():
    Ks, y = data(20, 2)
    with pytest.raises(ValueError, match="'mackay' or 'mm'"):
        EmpiricalBayes("newton").solve(evidence_of("gaussian", Ks, y))
    negative = GaussianEvidence(DenseGram([-np.eye(20)]), y[:, None], np.ones(20), noise=1e-6)
    negative.scales[:] = 1.0
    with pytest.raises(ValueError, match="not positive definite"):
        EmpiricalBayes().solve(negative)


def test_interruption_keeps_the_last_iterate():
    Ks, y = data(50, 4)

    def interrupt(iteration, point):
        if iteration == 1:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        solution = EmpiricalBayes().solve(evidence_of("gaussian", Ks, y), tol=1e-9, callback=interrupt)
    assert solution.n_iter == 2
    assert isinstance(solution.state.posterior, Posterior)
    assert (
        EmpiricalBayes()
        .solve(evidence_of("gaussian", Ks, y), tol=10.0, callback=lambda i, point: True)
        .n_iter
        <= 1
    )


def test_kernel_order_and_scale_do_not_matter():
    Ks, y = data(80, 5)
    scale, order = np.array([1.0, 10.0, 0.1, 1e3, 1e-3]), np.array([3, 0, 4, 2, 1])
    plain = EmpiricalBayes().solve(evidence_of("gaussian", Ks, y), tol=1e-8)
    moved = EmpiricalBayes().solve(evidence_of("gaussian", (scale[:, None, None] * Ks)[order], y), tol=1e-8)
    np.testing.assert_allclose(moved.state.weights, (plain.state.weights / scale)[order], rtol=1e-5)
    assert moved.state.log_evidence == pytest.approx(plain.state.log_evidence)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_units_of_the_target_do_not_matter(factor):
    Ks, y = data(60, 4)
    plain = EmpiricalBayes().solve(evidence_of("gaussian", Ks, y), tol=1e-7)
    scaled = EmpiricalBayes().solve(evidence_of("gaussian", Ks, factor * y), tol=1e-7)
    np.testing.assert_allclose(scaled.state.weights, factor**2 * plain.state.weights, rtol=1e-4)
    assert scaled.state.posterior.noise == pytest.approx(factor**2 * plain.state.posterior.noise, rel=1e-4)


# -- starts ---------------------------------------------------------------------------------------


def trap(n=40, seed=0):
    """Linear kernels whose variance is nearly all that of one factor, which the target does not depend on."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 12))
    X = 20.0 * rng.normal(size=(n, 1)) + Z
    return (
        np.array([X[:, k : k + 4] @ X[:, k : k + 4].T for k in (0, 4, 8)]),
        Z[:, 0] - Z[:, 1] + 0.05 * rng.normal(size=n),
    )


class OneStart(GaussianEvidence):
    levels = (1.0,)


@pytest.mark.parametrize("seed", range(5))
def test_signal_in_directions_of_small_variance_is_found(seed):
    """Much noise at the start ends where all is noise; the maximum of the evidence has 0.05^2 of it."""
    Ks, y = trap(seed=seed)
    arguments = DenseGram(Ks), y[:, None], np.ones(len(y))
    alone = EmpiricalBayes().solve(OneStart(*arguments), tol=1e-4)
    best = EmpiricalBayes().solve(GaussianEvidence(*arguments), tol=1e-4)
    assert alone.converged
    assert alone.state.posterior.noise > 0.5 * y.var()
    assert best.converged
    assert best.state.log_evidence > alone.state.log_evidence + 40.0
    assert best.state.posterior.noise == pytest.approx(0.05**2, rel=1.0)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_starts_are_told(kind):
    Ks, y = data(50, 4)
    evidence = evidence_of(kind, Ks, y)
    solution = EmpiricalBayes().solve(evidence, tol=1e-5)
    starts = solution.starts
    assert set(starts) == {"noise", "variance", "log_evidence", "n_iter", "chosen"}
    assert all(len(column) == len(evidence.levels) == 4 for column in starts.values())
    chosen = starts["chosen"].index(True)
    assert starts["chosen"].count(True) == 1
    assert starts["log_evidence"][chosen] == max(starts["log_evidence"])
    assert starts["log_evidence"][chosen] == pytest.approx(solution.state.log_evidence, rel=1e-12)
    assert starts["n_iter"][chosen] == solution.n_iter
    for level, noise, variance in zip(evidence.levels, starts["noise"], starts["variance"], strict=True):
        assert variance == pytest.approx(level * noise, rel=1e-9)
    if kind == "gaussian":
        sums = np.add(starts["noise"], starts["variance"])
        np.testing.assert_allclose(sums, np.var(y), rtol=1e-9)


def test_the_best_of_all_starts_taken_to_the_end_is_no_better():
    """What a few steps decide is what running every start to the end would."""
    for seed in range(4):
        Ks, y = trap(seed=seed) if seed % 2 else data(50, 4)
        evidence = evidence_of("gaussian", Ks, y)
        found = EmpiricalBayes().solve(evidence, tol=1e-4).state.log_evidence
        ends = []
        for level in evidence.levels:
            alone = evidence_of("gaussian", Ks, y)
            alone.levels = (level,)
            ends.append(EmpiricalBayes().solve(alone, tol=1e-4, max_iter=1000).state.log_evidence)
        assert found >= max(ends) - 0.1


def test_a_start_whose_matrix_cannot_be_factored_is_left_out():
    """An indefinite kernel that much noise covers and little does not."""
    Ks, y = data(40, 2)
    Ks = Ks - 0.2 * np.trace(Ks[0]) / 40 * np.eye(40)
    solution = EmpiricalBayes().solve(evidence_of("gaussian", Ks, y), tol=1e-3)
    assert 1 <= len(solution.starts["noise"]) < 4


@pytest.mark.parametrize("factor", [1e-9, 1e-3, 1e3, 1e9])
def test_nothing_depends_on_the_units_of_the_target(factor):
    """Weights and noise times the square, the evidence less (n - 1) log factor, the residual the same."""
    Ks, y = trap()
    plain = EmpiricalBayes().solve(evidence_of("gaussian", Ks, y), tol=1e-3)
    scaled = EmpiricalBayes().solve(evidence_of("gaussian", Ks, factor * y), tol=1e-3)
    np.testing.assert_allclose(scaled.state.weights, factor**2 * plain.state.weights, rtol=1e-6)
    assert scaled.state.posterior.noise == pytest.approx(factor**2 * plain.state.posterior.noise, rel=1e-6)
    assert scaled.state.residual == pytest.approx(plain.state.residual, rel=1e-3, abs=1e-9)
    assert scaled.state.log_evidence == pytest.approx(
        plain.state.log_evidence - 39 * np.log(factor), abs=1e-6
    )
    assert scaled.starts["chosen"] == plain.starts["chosen"]


def test_targets_far_from_zero_keep_their_variance():
    """1e6 + y, with y of a size that double precision still resolves to four digits."""
    Ks, y = data(60, 4)
    y = np.round(1e-6 * y * 2.0**33) / 2.0**33  # exactly the same after adding and subtracting the offset
    near, far = (
        EmpiricalBayes().solve(evidence_of("gaussian", Ks, y + offset), tol=1e-6) for offset in (0.0, 2.0**19)
    )
    np.testing.assert_allclose(
        far.state.weights, near.state.weights, rtol=1e-2, atol=1e-3 * near.state.weights.max()
    )
    assert far.state.posterior.noise == pytest.approx(near.state.posterior.noise, rel=1e-2)
