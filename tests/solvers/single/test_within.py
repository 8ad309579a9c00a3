"""A machine on some rows of a matrix is the machine on all of it."""

import numpy as np
import pytest

from kernelweave.gram import DenseGram
from kernelweave.gram.some_rows import RowsOfSum
from kernelweave.losses import EpsInsensitive, Hinge
from kernelweave.solvers import Problem, best_intercept, leave_one_out
from kernelweave.solvers.leave_one_out import left_out_later
from kernelweave.solvers.single import SMO, machine_for, machine_gap
from kernelweave.solvers.single.within import Within


@pytest.fixture
def kernels(rng):
    X = rng.normal(size=(300, 3))
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    gram = DenseGram([np.exp(-g * distances) for g in (0.1, 1.0)], np.array([1.5, 0.5]))
    return X, gram, np.array([0.4, 1.0])


def problem_of(X, loss, fit_intercept=True):
    target = np.sin(2.0 * X[:, :1]) + 0.3 * X[:, 1:2]
    return Problem(
        np.sign(target) if isinstance(loss, Hinge) else target, loss, np.ones_like(target), fit_intercept
    )


@pytest.mark.parametrize("known", [0, 40, 300])
@pytest.mark.parametrize("loss", [Hinge(), EpsInsensitive(0.2)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_whatever_is_known_the_gap_of_all_samples_is_closed(kernels, known, loss, fit_intercept):
    X, gram, weights = kernels
    problem, K = problem_of(X, loss, fit_intercept), gram.combine(weights)
    rows = RowsOfSum(gram, weights, np.random.default_rng(0).permutation(300)[:known])
    machine = machine_for(rows, SMO())
    assert isinstance(machine, Within)
    for tol in (1e-3, 1e-8):
        found = machine.solve(rows, problem, tol)
        np.testing.assert_allclose(found.fitted, K @ found.alpha, rtol=1e-12, atol=1e-12)
        assert machine_gap(problem, found.alpha, K @ found.alpha) <= 1.01 * tol
    # the optimum of a positive definite matrix is one point
    np.testing.assert_allclose(found.alpha, SMO().solve(K, problem, 1e-10).alpha, atol=1e-3)


def test_only_the_rows_of_support_vectors_are_computed(kernels):
    X, gram, weights = kernels
    problem, K = problem_of(X, Hinge()), gram.combine(weights)
    warm = SMO().solve(K, problem, 1e-3)
    support, before = np.flatnonzero(warm.alpha), gram.n_passes
    rows = RowsOfSum(gram, 1.05 * weights, support)
    found = Within(SMO()).solve(rows, problem, 1e-3, warm.alpha)
    assert gram.n_passes - before < 1.2 * len(support) / 300
    assert set(np.flatnonzero(found.alpha)) <= set(rows.samples)
    assert machine_gap(problem, found.alpha, 1.05 * K @ found.alpha) <= 1e-3


@pytest.mark.parametrize("copied", [False, True])
def test_leaving_one_out_needs_no_other_rows(kernels, copied):
    X, gram, weights = kernels
    y = np.sign(np.sin(2.0 * X[:, :1]) + 0.3 * X[:, 1:2])
    if copied:  # two pairs of equal samples, one of which has two targets
        same = np.arange(300)
        same[[7, 9]] = 3, 4
        gram = DenseGram([K[np.ix_(same, same)] for K in gram.matrices], gram.scales)
        y[[7, 9]] = y[3], -y[4]
    problem, K = Problem(y, Hinge(), np.ones_like(y)), gram.combine(weights)
    support = np.flatnonzero(SMO().solve(K, problem, 1e-6).alpha)
    rows = RowsOfSum(gram, weights, support)
    found = Within(SMO()).solve(rows, problem, 1e-6)
    f, known = found.fitted + best_intercept(problem, found.fitted), len(rows.samples)
    expected = leave_one_out(K, problem, found.alpha, f)
    np.testing.assert_allclose(left_out_later(rows, problem, found.alpha, f)(), expected, atol=1e-8)
    assert len(rows.samples) == known < 250
    assert np.isclose(expected[3], expected[7]) == copied  # left out together
