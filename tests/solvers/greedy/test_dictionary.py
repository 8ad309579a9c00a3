"""Kernels prepared for greedy selection: weighted, centred, factored, within a memory limit."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.kernels.normalize import NORMALIZATIONS
from kernelweave.solvers.greedy import GroupOMP


def prepared(problem, m):
    """Kernel m as the dictionary holds it, as a plain matrix."""
    total = np.zeros((problem.dictionary.n_samples,) * 2, order="F")
    problem.dictionary.block(m).add_to(total)
    return np.tril(total) + np.tril(total, -1).T


def projection(weight, intercept):
    root = np.sqrt(weight)
    return np.eye(len(weight)) - (np.outer(root, root) / weight.sum() if intercept else 0.0)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("normalize", [*sorted(NORMALIZATIONS), None])
def test_kernels_are_weighted_and_centred(make, normalize, intercept):
    problem = make(normalize=normalize, intercept=intercept)
    root, H = np.sqrt(problem.task.weight), projection(problem.task.weight, intercept)
    for m, K in enumerate(problem.Ks):
        expected = H @ (root[:, None] * K * root) @ H
        np.testing.assert_allclose(prepared(problem, m), expected, atol=1e-10 * np.trace(K))
        mean = K @ problem.task.weight / problem.task.total
        np.testing.assert_allclose(problem.dictionary.means[m], mean, atol=1e-10 * np.trace(K))


def test_kernels_keep_their_own_rank(make):
    ranks = dict(zip(make().dictionary.names, make().dictionary.ranks, strict=True))
    assert [ranks[f"linear {j}"] for j in range(4)] == [1, 1, 1, 1]
    assert (ranks["plane"], ranks["quadratic"], ranks["rbf"]) == (2, 6, 70)


def test_gains_are_those_of_the_definition(make, reference):
    problem = make()
    dictionary, task = problem.dictionary, problem.task
    R = task.y - task.weight @ task.y / task.total
    captured = dictionary.captured(task.root * R, np.ones(len(problem.Ks), dtype=bool), task.shift)
    gains = [reference.gain(K, R, task.weight, task.ridge, True) for K in problem.Ks]
    np.testing.assert_allclose(captured / task.total, gains, rtol=1e-9, atol=1e-12)


def test_only_wanted_kernels_are_scored(make):
    problem = make()
    wanted = np.zeros(len(problem.Ks), dtype=bool)
    wanted[[1, 9]] = True
    captured = problem.dictionary.captured(problem.task.y, wanted, problem.task.shift)
    everything = problem.dictionary.captured(problem.task.y, np.ones_like(wanted), problem.task.shift)
    assert np.isfinite(captured).tolist() == wanted.tolist()
    np.testing.assert_allclose(captured[wanted], everything[wanted], rtol=1e-12)


def test_kernels_beyond_the_memory_limit_are_computed_again(make):
    whole, part = make(), make(memory_limit=8 * 70 * 70 * 6)
    assert (whole.dictionary.engine, part.dictionary.engine) == ("factors", "recomputed")
    first = GroupOMP(tol=0.0, n_kernels=6).solve(whole.dictionary, whole.task)
    second = GroupOMP(tol=0.0, n_kernels=6).solve(part.dictionary, part.task)
    assert [stage.fit.kernels for stage in first.state.stages] == [
        stage.fit.kernels for stage in second.state.stages
    ]
    np.testing.assert_allclose(
        [stage.fit.objective for stage in first.state.stages],
        [stage.fit.objective for stage in second.state.stages],
    )


def test_too_little_memory_is_refused(make):
    with pytest.raises(MemoryError, match="memory_limit allows"):
        make(memory_limit=8 * 70 * 70 * 3)


def test_threads_change_nothing(make):
    first, second = make().dictionary, make(n_jobs=2).dictionary
    np.testing.assert_array_equal(first.ranks, second.ranks)
    for m in range(len(first.names)):
        np.testing.assert_array_equal(first.means[m], second.means[m])


def test_a_kernel_without_variance_is_left_out(from_matrices, data):
    X, Y, weight = data
    with pytest.warns(UserWarning, match="kernels without variance"):
        problem = from_matrices([X @ X.T, np.zeros((70, 70))], Y, weight, 0.1)
    assert problem.dictionary.live.tolist() == [0]
