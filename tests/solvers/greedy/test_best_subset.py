"""Branch and bound: the optimum of all sets, and bounds that hold."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from kernelweave.losses import Hinge, Logistic
from kernelweave.solvers.greedy import GroupOMP, best_subset, refit_for


@pytest.fixture(params=["squared", "hinge", "logistic"])
def problem(make, data, request):
    loss = {"squared": None, "hinge": Hinge(), "logistic": Logistic()}[request.param]
    return make(loss=loss, y=None if loss is None else np.sign(data[1][:, :1]), ridge=1e-2)


def objective(problem, kernels):
    return refit_for(problem.dictionary, problem.task).with_kernels(list(kernels)).fit().objective


def test_more_kernels_never_raise_the_objective(problem):
    """So the objective with all undecided kernels bounds that of every set below a node."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        kernels = list(rng.permutation(12)[:6])
        values = [objective(problem, kernels[:k]) for k in range(1, 7)]
        assert (np.diff(values) <= 1e-6 * np.abs(values[:-1])).all()


def test_dual_variables_of_any_weights_bound_every_set(problem):
    refit = refit_for(problem.dictionary, problem.task)
    for m, weight in ((0, 0.4), (9, 0.3), (10, 0.3)):
        refit.add(m, weight)
    fit = refit.fit()
    energies = problem.task.ridge * problem.dictionary.quads(fit.scaled_alpha, np.arange(12))
    for kernels in combinations(range(0, 12, 2), 2):
        assert objective(problem, kernels) >= fit.level - energies[list(kernels)].sum() - 1e-9


def test_the_optimum_is_found_and_proved(problem):
    greedy = GroupOMP(n_kernels=2, tol=0.0).solve(problem.dictionary, problem.task).state.stages[2].fit
    values = {kernels: objective(problem, kernels) for kernels in combinations(range(12), 2)}
    best = min(values, key=values.__getitem__)
    result = best_subset(problem.dictionary, problem.task, 2, greedy.kernels)
    assert result.exact
    assert result.objective == pytest.approx(values[best], rel=2e-6)
    assert result.kernels == best
    assert result.start_objective == pytest.approx(greedy.objective, rel=1e-6)
    assert result.gap == pytest.approx((greedy.objective - values[best]) / greedy.objective, abs=1e-5)
    assert result.n_nodes < len(values)


def test_the_gap_is_zero_where_greedy_is_optimal(problem):
    first = GroupOMP(n_kernels=1, tol=0.0).solve(problem.dictionary, problem.task).state.stages[1].fit
    result = best_subset(problem.dictionary, problem.task, 1)
    again = best_subset(problem.dictionary, problem.task, 1, result.kernels)
    assert again.gap <= 1e-6
    assert result.objective <= first.objective * (1 + 1e-9)


def test_an_unfinished_search_still_bounds(make):
    problem = make(ridge=1e-3)
    full = best_subset(problem.dictionary, problem.task, 4)
    cut = best_subset(problem.dictionary, problem.task, 4, start=(0, 1, 2, 3), max_nodes=1)
    assert full.exact
    assert not cut.exact
    assert cut.lower_bound <= full.objective <= cut.objective <= cut.start_objective
    assert cut.gap > 0


def test_all_kernels_are_one_set(make):
    problem = make()
    result = best_subset(problem.dictionary, problem.task, 12)
    assert result.exact
    assert result.kernels == tuple(range(12))


@pytest.mark.parametrize(("size", "start"), [(0, None), (13, None), (2.5, None), (2, (1, 1)), (2, (1,))])
def test_bad_sizes_are_refused(make, size, start):
    problem = make()
    with pytest.raises(ValueError, match=r"n_kernels=|start="):
        best_subset(problem.dictionary, problem.task, size, start)
