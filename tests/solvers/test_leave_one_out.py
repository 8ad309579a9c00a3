"""Leave-one-out predictions against retraining without each sample."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.losses import Hinge, Logistic, Squared
from kernelweave.solvers import Problem, best_intercept, leave_one_out
from kernelweave.solvers.single import choose_single


def train(K, problem):
    machine = choose_single("auto", problem.loss).solve(K, problem, 1e-10)
    return machine.alpha[:, 0], best_intercept(problem, K @ machine.alpha)[0]


def approximate(K, problem):
    alpha, b = train(K, problem)
    return leave_one_out(K, problem, alpha, K @ alpha + b)


def retrained(K, problem, groups=None):
    """The prediction on each sample of the machine trained without its group (itself by default)."""
    groups = np.arange(len(K)) if groups is None else groups
    out = np.empty(len(K))
    for group in np.unique(groups):
        inside, rest = np.flatnonzero(groups == group), np.flatnonzero(groups != group)
        part = Problem(problem.y[rest], problem.loss, problem.C[rest], problem.fit_intercept)
        alpha, b = train(K[np.ix_(rest, rest)], part)
        out[inside] = K[np.ix_(inside, rest)] @ alpha + b
    return out


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_exact_for_the_squared_loss(draw, fit_intercept, C):
    sample = draw(Squared(), n=40, C=C, costs=True, fit_intercept=fit_intercept)
    expected = retrained(sample.K, sample.problem)
    np.testing.assert_allclose(approximate(sample.K, sample.problem), expected, atol=1e-6)


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("loss", [Squared(), Hinge()])
def test_several_outputs_are_left_out_as_each_alone(draw, loss, copies):
    """Also where they share the inverse, and where samples are equal in one output and not in another."""
    sample = draw(loss, n=30, C=1.0)
    groups = np.r_[np.arange(30), np.arange(4)] if copies else np.arange(30)
    rng, K = np.random.default_rng(0), sample.K[np.ix_(groups, groups)]
    Y = np.where(rng.random((len(groups), 3)) < 0.5, 1.0, -1.0)
    problem = Problem(Y, loss, np.ones((len(groups), 1)))
    solved = [train(K, problem.column(k)) for k in range(3)]
    alpha = np.column_stack([alpha for alpha, _ in solved])
    f = K @ alpha + [b for _, b in solved]
    each = [leave_one_out(K, problem.column(k), alpha[:, k], f[:, k]) for k in range(3)]
    np.testing.assert_allclose(leave_one_out(K, problem, alpha, f), np.column_stack(each), atol=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.3, 3.0])
def test_close_for_every_loss(draw, loss, fit_intercept, C):
    if loss.task == "one_class" and not fit_intercept:
        pytest.skip("without offset the one-class machine is zero")
    sample = draw(loss, n=50, C=C, fit_intercept=fit_intercept)
    exact, found = retrained(sample.K, sample.problem), approximate(sample.K, sample.problem)
    assert np.corrcoef(exact, found)[0, 1] > 0.98
    assert np.abs(found - exact).mean() < 0.1 * exact.std()


def test_samples_that_do_not_matter_keep_their_prediction(draw):
    sample = draw(Hinge(), n=50, C=3.0)
    alpha, b = train(sample.K, sample.problem)
    f = sample.K @ alpha + b
    found = leave_one_out(sample.K, sample.problem, alpha, f)
    idle = alpha == 0
    assert idle.any()
    np.testing.assert_array_equal(found[idle], f[idle])
    assert (sample.problem.y[:, 0] * (found - f) <= 1e-9).all()  # a sample can only speak for itself


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_equal_samples_are_left_out_together(draw, fit_intercept):
    sample = draw(Squared(), n=30, costs=True, fit_intercept=fit_intercept)
    groups = np.r_[np.arange(30), np.arange(10), np.arange(5)]
    problem = Problem(sample.problem.y[groups], Squared(), sample.problem.C[groups], fit_intercept)
    K = sample.K[np.ix_(groups, groups)]
    found = approximate(K, problem)
    np.testing.assert_allclose(found, retrained(K, problem, groups), atol=1e-6)
    np.testing.assert_allclose(found[30:40], found[:10], rtol=1e-12)


def test_equal_samples_with_other_targets_are_different(draw):
    sample = draw(Squared(), n=30)
    again = np.r_[np.arange(30), np.arange(10)]
    y = sample.problem.y[again].copy()
    y[30:] += 1.0
    problem = Problem(y, Squared(), np.ones((40, 1)))
    K = sample.K[np.ix_(again, again)]
    np.testing.assert_allclose(approximate(K, problem), retrained(K, problem), atol=1e-6)


def test_samples_with_equal_predictions_are_not_equal_samples(rng):
    """Samples opposite each other have the same prediction by symmetry, copies have the same rows too."""
    half, flip = rng.normal(size=(20, 2)), np.array([-1.0, 1.0])
    x, y = np.vstack([half, half * flip]), np.tile(rng.normal(size=20), 2)
    groups = np.r_[np.arange(40), 0, 0]
    C = np.r_[1.0 / 3.0, np.ones(39)][groups][:, None]  # the copies weigh as much as one sample
    problem = Problem(y[groups][:, None], Squared(), C)
    K = (1.0 + x @ x.T)[np.ix_(groups, groups)]
    alpha, b = train(K, problem)
    f = K @ alpha + b
    np.testing.assert_allclose(f[:20], f[20:40], rtol=1e-9)
    np.testing.assert_allclose(approximate(K, problem), retrained(K, problem, groups), atol=1e-7)


def test_samples_of_few_patterns_are_no_copies(rng):
    """Binary columns: rows repeat, and without those of one target the rest would speak for its opposite."""
    x = rng.integers(0, 2, size=(60, 2)).astype(float)
    y = np.where(x[:, :1] > 0.5, 1.0, -1.0)
    y[rng.random(60) < 0.2] *= -1.0
    problem = Problem(y, Squared(), np.ones((60, 1)))
    K = np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(approximate(K, problem), retrained(K, problem), atol=1e-7)


@pytest.mark.parametrize("other", [Hinge(), Logistic(), Squared()], ids=repr)
def test_a_cost_of_two_is_a_sample_given_twice(draw, other):
    sample = draw(other, n=40)
    again = np.r_[np.arange(40), np.arange(15)]
    C = sample.problem.C.copy()
    C[:15] *= 2.0
    weighted = approximate(sample.K, Problem(sample.problem.y, other, C))
    repeated = Problem(sample.problem.y[again], other, sample.problem.C[again])
    twice = approximate(sample.K[np.ix_(again, again)], repeated)
    np.testing.assert_allclose(twice[:40], weighted, atol=1e-4)


def test_all_at_bound(draw):
    sample = draw(Hinge(), n=30, C=1e-4, fit_intercept=False)
    exact, found = retrained(sample.K, sample.problem), approximate(sample.K, sample.problem)
    np.testing.assert_allclose(found, exact, atol=1e-9)


def test_all_samples_may_adapt_where_that_is_asked_for(draw):
    sample = draw(Squared(), n=40, C=3.0)
    alpha, b = train(sample.K, sample.problem)
    exact, f = retrained(sample.K, sample.problem), sample.K @ alpha + b
    found = [leave_one_out(sample.K, sample.problem, alpha, f, most) for most in (None, 10)]
    np.testing.assert_allclose(found[0], exact, atol=1e-8)
    assert np.abs(found[1] - exact).max() > 1e-3  # some of them stand for all


def test_without_kernels_the_intercept_is_that_of_the_others(rng):
    y = rng.normal(size=(12, 1))
    problem = Problem(y, Squared(), np.full((12, 1), 2.0))
    alpha = 2.0 * (y[:, 0] - y.mean())
    found = leave_one_out(np.zeros((12, 12)), problem, alpha, np.full(12, y.mean()))
    np.testing.assert_allclose(found, (y.sum() - y[:, 0]) / 11, rtol=1e-12)


def test_the_input_is_left_alone(draw):
    sample = draw(Logistic(), n=20)
    K, (alpha, b) = sample.K, train(sample.K, sample.problem)
    f = K @ alpha + b
    copies = K.copy(), alpha.copy(), f.copy()
    leave_one_out(K, sample.problem, alpha, f)
    for now, before in zip((K, alpha, f), copies, strict=True):
        np.testing.assert_array_equal(now, before)


def test_the_only_free_sample_is_left_out_to_a_finite_margin():
    # two at their bound and one between: with an intercept nothing else can move
    y, alpha = np.array([[1.0], [-1.0], [-1.0]]), np.array([1.0, -0.5, -0.5])
    problem = Problem(y, Hinge(), np.array([[1.0], [0.5], [1.0]]))
    K = np.eye(3)
    f = K @ alpha
    left_out = leave_one_out(K, problem, alpha, f)
    assert np.isfinite(left_out).all()
    assert left_out[2] == pytest.approx(f[2] - alpha[2] * K[2, 2])
