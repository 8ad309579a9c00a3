"""A machine that makes the rows of a sum when it reads them is the machine on the sum."""

import pickle

import numpy as np
import pytest

from kernelweave.gram import DenseGram
from kernelweave.gram.dense import FEW_KERNELS
from kernelweave.gram.some_rows import RowsOfSum, RowsOnDemand
from kernelweave.losses import EpsInsensitive, Hinge
from kernelweave.solvers import Problem, best_intercept, leave_one_out
from kernelweave.solvers.leave_one_out import left_out_later
from kernelweave.solvers.single import SMO, machine_for, machine_gap, smo
from kernelweave.solvers.single.within import Within

N = 400


@pytest.fixture
def kernels(rng):
    X = rng.normal(size=(N, 3))
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    matrices = [np.exp(-g * distances) for g in (0.1, 0.3, 1.0)]
    return X, DenseGram(matrices, np.array([1.5, 2.0, 0.5])), np.array([0.4, 0.0, 1.0])


def problem_of(X, loss, fit_intercept=True):
    target = np.sin(2.0 * X[:, :1]) + 0.3 * X[:, 1:2]
    y = np.sign(target) if isinstance(loss, Hinge) else target
    return Problem(y, loss, np.ones_like(target), fit_intercept)


@pytest.mark.parametrize("loss", [Hinge(), EpsInsensitive(0.2)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_same_machine_from_fewer_rows(kernels, loss, fit_intercept, dtype):
    X, gram, weights = kernels
    gram = DenseGram([K.astype(dtype) for K in gram.matrices], gram.scales)
    problem, K = problem_of(X, loss, fit_intercept), gram.combine(weights)
    for tol, share in ((1e-2, 0.9), (1e-8, 1.0)):
        rows, before = gram.rows_on_demand(weights), gram.n_passes
        machine = machine_for(rows, SMO())
        assert isinstance(machine, SMO)
        found, known = machine.solve(rows, problem, tol), SMO().solve(K, problem, tol)
        assert machine_gap(problem, found.alpha, K @ found.alpha) <= 1.01 * tol
        np.testing.assert_allclose(found.alpha, known.alpha, atol=1e-8)
        np.testing.assert_allclose(found.fitted, K @ found.alpha, rtol=1e-10, atol=1e-10)
        made = rows.samples
        assert set(np.flatnonzero(found.alpha)) <= set(made)
        assert len(made) <= share * N
        np.testing.assert_allclose(rows.room[made], K[made], rtol=1e-12)
        # two of three kernels: their rows, and those of support vectors for the product
        read = (len(made) + np.count_nonzero(found.alpha)) / N
        assert 2.0 / 3.0 * read - 1e-9 <= gram.n_passes - before <= 4.0


def test_other_weights_from_the_last_machine(kernels):
    X, gram, weights = kernels
    problem = problem_of(X, Hinge())
    first = SMO().solve(gram.rows_on_demand(weights), problem, 1e-6)
    rows = gram.rows_on_demand(1.1 * weights)
    found = SMO().solve(rows, problem, 1e-6, first.alpha)
    assert machine_gap(problem, found.alpha, 1.1 * gram.combine(weights) @ found.alpha) <= 1e-6
    assert len(rows.samples) < len(np.flatnonzero(found.alpha))  # few of them have to move


def test_the_interior_point_method_takes_over_on_all_rows(kernels, monkeypatch):
    X, gram, weights = kernels
    monkeypatch.setattr(smo, "SAMPLE_STEPS", 0)
    monkeypatch.setattr(smo, "PAIR_STEPS", 1e-4)
    problem, rows = problem_of(X, Hinge()), gram.rows_on_demand(weights)
    found = SMO().solve(rows, problem, 1e-8)
    assert machine_gap(problem, found.alpha, gram.combine(weights) @ found.alpha) <= 1e-8
    assert len(rows.samples) == N


def test_many_kernels_or_several_precisions_are_summed_at_once(kernels, rng):
    _, gram, weights = kernels
    several = DenseGram([gram.matrices[0].astype(np.float32), *gram.matrices[1:]])
    assert several.rows_on_demand(weights) is None
    assert several.rows_on_demand(np.array([0.0, 1.0, 1.0])) is not None
    many = DenseGram([gram.matrices[0]] * (FEW_KERNELS + 1))
    assert many.rows_on_demand(np.ones(FEW_KERNELS + 1)) is None
    assert many.rows_on_demand(np.zeros(FEW_KERNELS + 1)) is None


def test_products_are_those_of_an_alpha_that_was_changed_in_place(kernels, rng):
    _, gram, weights = kernels
    alpha, K = rng.normal(size=N), gram.combine(weights)
    for _ in range(2):
        np.testing.assert_allclose(gram.dot(weights, alpha), K @ alpha, atol=1e-10)
        squares, products = gram.quad_and_products(alpha[:, None])
        forms = [alpha @ (M @ alpha) for M in gram.matrices]
        np.testing.assert_allclose(squares, gram.scales * forms)
        np.testing.assert_allclose(products[2], 0.5 * gram.matrices[2] @ alpha, atol=1e-10)
        alpha[:] = rng.normal(size=N)


def test_a_copy_has_the_same_rows(kernels):
    X, gram, weights = kernels
    problem, rows = problem_of(X, Hinge()), gram.rows_on_demand(weights)
    found = SMO().solve(rows, problem, 1e-3)
    copied = pickle.loads(pickle.dumps(rows))
    assert type(copied) is RowsOfSum
    assert isinstance(rows, RowsOnDemand)
    np.testing.assert_array_equal(copied.samples, rows.samples)
    every = np.arange(N)
    np.testing.assert_allclose(copied[np.ix_(rows.samples, every)], rows.room[rows.samples], rtol=1e-12)
    again = Within().solve(copied, problem, 1e-3, found.alpha)
    assert machine_gap(problem, again.alpha, gram.combine(weights) @ again.alpha) <= 1e-3


def test_leaving_one_out_is_that_of_the_sum(kernels):
    X, gram, weights = kernels
    problem, rows, K = problem_of(X, Hinge()), gram.rows_on_demand(weights), gram.combine(weights)
    found = SMO().solve(rows, problem, 1e-6)
    f = found.fitted + best_intercept(problem, found.fitted)
    later = left_out_later(rows, problem, found.alpha, f)()
    np.testing.assert_allclose(later, leave_one_out(K, problem, found.alpha, f), atol=1e-8)


def test_memory_of_released_sums_is_used_again(kernels):
    _, gram, weights = kernels
    rows = gram.rows_on_demand(weights)
    rows.join(np.arange(3))
    gram.release(rows)
    other = gram.rows_on_demand(2.0 * weights)
    assert np.shares_memory(other.room, rows.room)
    np.testing.assert_allclose(other[np.ix_([1], np.arange(N))][0], 2.0 * gram.combine(weights)[1])
