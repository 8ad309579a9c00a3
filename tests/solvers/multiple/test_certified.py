"""Every pair of loss and p is solved to a gap of 1e-6, recomputed here from its definition."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.gram import DenseGram
from kernelweave.losses import EpsInsensitive, Hinge, Logistic, Squared
from kernelweave.regularizers import LpNorm
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import choose_solver

TOL = 1e-6


def solve(sample, p, **options):
    regularizer = LpNorm(p=p)
    options = {"tol": TOL, "max_iter": 500, **options}
    return choose_solver("auto", regularizer).solve(sample.problem, sample.gram, regularizer, **options)


def assert_certified(reference, sample, p, solution, tol=TOL):
    """Weights feasible, alpha feasible, and P - D <= tol |P| with nothing taken from the solver."""
    state = solution.state
    assert (state.weights >= 0).all()
    assert np.linalg.norm(state.weights, p) <= 1 + 1e-9
    bounds = reference.bounds(sample, p, state.alpha, state.weights, state.certificate.intercept)
    assert -1e-10 <= reference.gap(bounds) <= tol * (1 + 1e-6)
    assert state.certificate.primal == pytest.approx(bounds[0], rel=1e-9)
    assert state.certificate.dual == pytest.approx(bounds[1], rel=1e-9)
    assert solution.converged


@pytest.mark.parametrize("seed", [0, 1])
def test_every_loss_and_p(draw, reference, loss, p, seed):
    sample = draw(loss, seed=seed)
    assert_certified(reference, sample, p, solve(sample, p))


@pytest.mark.parametrize("C", [0.05, 30.0])
def test_small_and_large_costs(draw, reference, loss, p, C):
    sample = draw(loss, C=C, costs=True)
    assert_certified(reference, sample, p, solve(sample, p))


def test_without_intercept(draw, reference, loss, p):
    sample = draw(loss, fit_intercept=False)
    assert_certified(reference, sample, p, solve(sample, p))


def test_outputs_that_share_the_weights(draw, reference, loss, p):
    sample = draw(loss, outputs=3, n=40)
    solution = solve(sample, p)
    assert solution.state.alpha.shape == (40, 3)
    assert solution.state.certificate.intercept.shape == (3,)
    assert_certified(reference, sample, p, solution)


def test_one_kernel_keeps_weight_one(draw, reference, loss, p):
    sample = draw(loss, M=1)
    solution = solve(sample, p)
    np.testing.assert_allclose(solution.state.weights, [1.0], rtol=1e-12)
    assert_certified(reference, sample, p, solution)


def test_equal_kernels(draw, reference, p):
    """The same kernel three times: the objective is that of one, scaled by the norm of ones."""
    sample = draw(Hinge(), M=3)
    tripled = sample._replace(Ks=np.repeat(sample.Ks[:1], 3, axis=0))
    solution = solve(tripled, p)
    assert_certified(reference, tripled, p, solution)
    total = 1.0 if p == 1 else 3.0 ** (1.0 - 1.0 / p)  # largest sum of weights of norm 1
    single = solve(sample._replace(Ks=total * sample.Ks[:1]), p)
    objective = solution.state.certificate.primal
    assert objective == pytest.approx(single.state.certificate.primal, rel=3 * TOL)


def test_a_kernel_of_zeros_is_harmless(draw, reference, p):
    sample = draw(Hinge())
    Ks = sample.Ks.copy()
    Ks[2] = 0.0
    padded = sample._replace(Ks=Ks)
    solution = solve(padded, p)
    assert_certified(reference, padded, p, solution)
    rest = solve(sample._replace(Ks=np.delete(Ks, 2, axis=0)), p)
    assert solution.state.certificate.primal == pytest.approx(rest.state.certificate.primal, rel=3 * TOL)


def test_kernels_of_very_different_scale(draw, reference, p):
    sample = draw(Logistic())
    scaled = sample._replace(Ks=sample.Ks * np.geomspace(1e-6, 1e2, 8)[:, None, None])
    assert_certified(reference, scaled, p, solve(scaled, p))


def test_nothing_to_learn(p):
    """Constant targets need no kernel: P = 0 = D, and the solver says so at once."""
    for loss in (Squared(), EpsInsensitive()):
        problem = Problem(np.full((20, 1), 3.0), loss, np.ones((20, 1)))
        roots = np.random.default_rng(0).normal(size=(3, 20, 5))
        gram = DenseGram(roots @ roots.transpose(0, 2, 1))
        regularizer = LpNorm(p=p)
        solution = choose_solver("auto", regularizer).solve(problem, gram, regularizer, tol=TOL)
        assert solution.converged
        assert solution.state.certificate.primal == pytest.approx(0.0, abs=1e-9)
        np.testing.assert_allclose(solution.state.alpha, 0.0, atol=1e-6)


def test_more_samples_than_the_exact_finish_takes(draw, reference, p):
    sample = draw(Hinge(), n=280, M=5)
    assert_certified(reference, sample, p, solve(sample, p))


@pytest.mark.parametrize("p", [1.0, 4 / 3])
def test_enough_samples_for_a_pilot(draw, reference, p):
    sample = draw(Hinge(), n=610, M=5)
    assert_certified(reference, sample, p, solve(sample, p, tol=1e-5), tol=1e-5)
