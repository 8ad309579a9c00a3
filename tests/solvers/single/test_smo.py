"""SMO: large enough to need decomposition, and inputs on which it could stall."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.losses import LOSSES, EpsInsensitive, Hinge
from kernelweave.solvers import Problem, best_intercept
from kernelweave.solvers.single import SMO
from kernelweave.solvers.single._smo_loops import BLOCK
from kernelweave.solvers.single.smo import EXACT_SAMPLES

BOX_LOSSES = [name for name, cls in LOSSES.items() if not SMO().missing(cls())]


@pytest.fixture(params=BOX_LOSSES)
def box_loss(request):
    return LOSSES[request.param]()


@pytest.fixture(params=[True, False], ids=["tied", "free"])
def tied(request):
    return request.param


def assert_solved(reference, problem, K, tol=1e-8, **options):
    machine = SMO(**options).solve(K, problem, tol)
    assert np.isfinite(machine.alpha).all()
    np.testing.assert_allclose(machine.fitted, K @ machine.alpha, rtol=1e-7, atol=1e-7 * np.abs(K).max())
    b = best_intercept(problem, K @ machine.alpha)
    primal, dual = reference.machine_bounds(problem, K, machine.alpha, b)
    assert primal - dual <= tol * max(abs(primal), 1e-6)
    return machine


def test_pairs_are_found_in_several_blocks(draw, reference, tied):
    """The pair that gains most may be in any block, and the last block is shorter than the others."""
    n = 2 * BLOCK + 37
    for loss in (Hinge(), EpsInsensitive()):
        sample = draw(loss, n=n, C=0.3, fit_intercept=tied)
        machine = assert_solved(reference, sample.problem, sample.K, tol=1e-6)
        blocks = np.flatnonzero(machine.alpha[:, 0]) // BLOCK
        assert set(blocks.tolist()) == {0, 1, 2}


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_too_many_samples_to_finish_exactly(draw, reference, box_loss, tied, C):
    sample = draw(box_loss, n=EXACT_SAMPLES + 44, C=C, costs=True, fit_intercept=tied)
    assert_solved(reference, sample.problem, sample.K)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_samples(draw, reference, box_loss, tied, n):
    sample = draw(box_loss, n=n, fit_intercept=tied)
    assert_solved(reference, sample.problem, sample.K)


@pytest.mark.parametrize("copies", [2, 5])
def test_duplicate_samples(draw, reference, box_loss, tied, copies):
    sample = draw(box_loss, n=20, fit_intercept=tied)
    again = np.tile(np.arange(20), copies)
    problem = Problem(sample.problem.y[again], box_loss, sample.problem.C[again], tied)
    assert_solved(reference, problem, sample.K[np.ix_(again, again)])


def test_contradicting_labels(draw, reference, tied):
    sample = draw(Hinge(), n=20, fit_intercept=tied)
    again = np.tile(np.arange(20), 2)
    y = np.concatenate([sample.problem.y, -sample.problem.y])
    problem = Problem(y, Hinge(), np.ones((40, 1)), tied)
    machine = assert_solved(reference, problem, sample.K[np.ix_(again, again)])
    np.testing.assert_allclose(machine.fitted, 0.0, atol=1e-6)


def test_zero_kernel(draw, reference, box_loss, tied):
    problem = draw(box_loss, n=31, costs=True, fit_intercept=tied).problem
    assert_solved(reference, problem, np.zeros((31, 31)))


@pytest.mark.parametrize("seed", range(4))
def test_samples_at_the_origin(draw, reference, box_loss, tied, seed):
    """Rows of zeros, as a linear kernel gives: such a sample may be the only one that is free."""
    problem = draw(box_loss, seed=seed, n=30, costs=True, fit_intercept=tied).problem
    x = np.random.default_rng(seed).normal(size=30) * (np.arange(30) % 3 == 0)
    assert_solved(reference, problem, np.outer(x, x))


def test_constant_kernel(draw, reference, box_loss, tied):
    problem = draw(box_loss, n=30, fit_intercept=tied).problem
    assert_solved(reference, problem, np.ones((30, 30)))


def test_rank_one_kernel(draw, reference, rng, box_loss, tied):
    problem = draw(box_loss, n=40, fit_intercept=tied).problem
    x = rng.normal(size=40)
    assert_solved(reference, problem, np.outer(x, x))


def test_identity_kernel(draw, reference, box_loss, tied):
    problem = draw(box_loss, n=40, fit_intercept=tied).problem
    assert_solved(reference, problem, np.eye(40))


def test_a_small_cost_puts_every_label_at_its_bound(draw, reference, tied):
    sample = draw(Hinge(), C=1e-4, fit_intercept=tied)
    machine = assert_solved(reference, sample.problem, sample.K)
    np.testing.assert_allclose(machine.alpha, 1e-4 * sample.problem.y)


@pytest.mark.parametrize("C", [1e3, 1e6])
def test_huge_cost(draw, reference, tied, C):
    for loss in (Hinge(), EpsInsensitive()):
        sample = draw(loss, C=C, fit_intercept=tied)
        K = sample.K + 0.1 * np.eye(60)  # separable: the optimum does not grow with C
        # f is known to rounding, and C multiplies it
        machine = assert_solved(reference, sample.problem, K, tol=max(1e-8, 1e-12 * C))
        assert np.abs(machine.alpha).max() < C


@pytest.mark.parametrize("scale", [1e-8, 1e6])
def test_kernel_scale(draw, reference, box_loss, tied, scale):
    sample = draw(box_loss, fit_intercept=tied)
    assert_solved(reference, sample.problem, scale * sample.K, tol=1e-7)


def test_labels_of_one_kind(reference):
    problem = Problem(np.ones((12, 1)), Hinge(), np.ones((12, 1)))
    machine = assert_solved(reference, problem, np.eye(12))
    np.testing.assert_array_equal(machine.alpha, np.zeros((12, 1)))


def test_a_tube_around_all_targets_needs_no_support(draw, reference, tied):
    sample = draw(EpsInsensitive(), fit_intercept=tied)
    wide = EpsInsensitive(eps=2.0 * np.abs(sample.problem.y).max())
    problem = Problem(sample.problem.y, wide, sample.problem.C, tied)
    machine = assert_solved(reference, problem, sample.K)
    np.testing.assert_array_equal(machine.alpha, np.zeros((60, 1)))


@pytest.mark.parametrize("n", [60, EXACT_SAMPLES + 44])
def test_max_iter_stops_at_a_feasible_point(draw, box_loss, tied, n):
    sample = draw(box_loss, n=n, fit_intercept=tied)
    machine = SMO(max_iter=3).solve(sample.K, sample.problem, 1e-8)
    assert machine.n_iter <= 3
    assert np.isfinite(sample.problem.dual_loss(machine.alpha))
    if tied:
        assert machine.alpha.sum() == pytest.approx(box_loss.alpha_sum, abs=1e-9)


def test_a_warm_start_saves_steps(draw):
    sample = draw(Hinge(), n=EXACT_SAMPLES + 44)
    cold = SMO().solve(sample.K, sample.problem, 1e-6)
    warm = SMO().solve(sample.K, sample.problem, 1e-6, cold.alpha)
    assert warm.n_iter < 0.2 * cold.n_iter


def test_support_vectors_only(draw):
    """Samples beyond the margin have alpha exactly 0, so predictions can skip them."""
    sample = draw(Hinge(), n=EXACT_SAMPLES + 44, C=10.0)
    machine = SMO().solve(sample.K, sample.problem, 1e-6)
    f = machine.fitted + best_intercept(sample.problem, machine.fitted)
    beyond = sample.problem.y * f > 1.01
    assert beyond.any()
    assert (machine.alpha[beyond] == 0).all()
