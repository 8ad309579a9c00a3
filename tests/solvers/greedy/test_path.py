"""The path: it is the paper's algorithm, and every step does what it promises."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelweave.losses import EpsInsensitive, Hinge, Huber, Logistic, SquaredHinge
from kernelweave.solvers.greedy import GroupOMP, best_subset, refit_for


def assert_same_path(run, steps, task):
    assert [stage.fit.kernels[-1] for stage in run.state.stages[1:]] == [m for m, _, _ in steps]
    for stage, (_, gain, exact) in zip(run.state.stages[1:], steps, strict=True):
        assert stage.gain == pytest.approx(gain, rel=1e-8, abs=1e-10)
        assert stage.fit.objective == pytest.approx(exact.objective, rel=1e-8)
        np.testing.assert_allclose(task.root * stage.fit.scaled_alpha, exact.alpha, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(stage.fit.intercept, exact.b, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridge", [1e-4, 1e-2])
def test_the_path_is_that_of_the_direct_implementation(make, reference, outputs, intercept, weighted, ridge):
    problem = make(ridge=ridge, outputs=outputs, intercept=intercept, weighted=weighted)
    task = problem.task
    steps = reference.gomp(problem.Ks, task.y, task.weight, ridge, 7, 1e-5, intercept)
    assert_same_path(GroupOMP(n_kernels=7, tol=1e-5).solve(problem.dictionary, task), steps, task)


@pytest.mark.parametrize("normalize", ["spherical", "trace", "dimension", "center", None])
def test_under_every_normalisation(make, reference, normalize):
    problem = make(normalize=normalize)
    task = problem.task
    steps = reference.gomp(problem.Ks, task.y, task.weight, task.ridge, 5, 0.0, True)
    assert_same_path(GroupOMP(n_kernels=5, tol=0.0).solve(problem.dictionary, task), steps, task)


def test_numerically_thin_kernels_give_the_same_path(from_matrices, reference, rng):
    """At n = 300 Gaussian kernels of one feature have a thin factor."""
    X = rng.normal(size=(300, 5))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2] ** 2]) + 0.1 * rng.normal(size=(300, 2))
    Ks = [np.exp(-0.5 * (x[:, None] - x) ** 2) for x in X.T]
    problem = from_matrices(Ks, Y, np.ones(300), 1e-2)
    assert (problem.dictionary.ranks < 40).all()
    steps = reference.gomp(Ks, Y, np.ones(300), 1e-2, 4, 0.0, True)
    assert_same_path(
        GroupOMP(n_kernels=4, tol=0.0).solve(problem.dictionary, problem.task), steps, problem.task
    )


def test_all_outputs_count_together(make, reference):
    """The gain of both outputs is the sum of the gains of each, and selects another kernel than either."""
    joint = make(outputs=2, intercept=False)
    dictionary, task = joint.dictionary, joint.task
    wanted = np.ones(len(joint.Ks), dtype=bool)
    both = dictionary.captured(task.root * task.y, wanted, task.shift)
    each = [dictionary.captured(task.root * task.y[:, [k]], wanted, task.shift) for k in range(2)]
    np.testing.assert_allclose(both, each[0] + each[1], rtol=1e-10)
    first = GroupOMP(n_kernels=1, tol=0.0).solve(dictionary, task).state.stages[1].fit.kernels[0]
    assert first == int(np.argmax(both))


def test_the_run_ends_where_the_gain_is_too_small(make, reference):
    problem = make(ridge=1e-1)
    everything = GroupOMP(tol=0.0).solve(problem.dictionary, problem.task)
    gains = np.array([stage.gain for stage in everything.state.stages[1:]])
    k = int(np.flatnonzero(gains < 0.05)[0])
    tol = float(gains[k]) / everything.state.stages[0].fit.objective * (1.0 + 1e-12)
    cut = GroupOMP(tol=tol).solve(problem.dictionary, problem.task)
    assert (len(cut.state.stages) - 1, cut.reason) == (k, "tol")
    at_count = GroupOMP(tol=0.0, n_kernels=3).solve(problem.dictionary, problem.task)
    assert (len(at_count.state.stages) - 1, at_count.reason) == (3, "n_kernels")
    assert (len(everything.state.stages) - 1, everything.reason) == (len(problem.Ks), "n_kernels")


def test_the_objective_falls_by_at_least_the_gain(make):
    for ridge in (1e-4, 1e-2, 1.0):
        problem = make(ridge=ridge)
        stages = GroupOMP(tol=0.0).solve(problem.dictionary, problem.task).state.stages
        falls = -np.diff([stage.fit.objective for stage in stages])
        gains = np.array([stage.gain for stage in stages[1:]])
        assert (falls >= gains - 1e-12).all()
        assert (gains > 0).all()


def test_permuting_kernels_permutes_the_path(from_matrices, make):
    problem, order = make(), np.random.default_rng(0).permutation(12)
    base = from_matrices(problem.Ks, problem.task.y, problem.task.weight, 1e-2)
    moved = from_matrices([problem.Ks[m] for m in order], problem.task.y, problem.task.weight, 1e-2)
    first = GroupOMP(n_kernels=5, tol=0.0).solve(base.dictionary, base.task).state.stages[-1].fit
    second = GroupOMP(n_kernels=5, tol=0.0).solve(moved.dictionary, moved.task).state.stages[-1].fit
    assert tuple(order[list(second.kernels)]) == first.kernels


# -- other losses ---------------------------------------------------------------------------------

LOSSES = [Hinge(), SquaredHinge(), Logistic(), EpsInsensitive(eps=0.1), Huber(delta=0.5)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_other_losses_are_scored_by_their_gradient(make, data, reference, loss):
    y = np.sign(data[1]) if loss.task == "classification" else None
    problem = make(loss=loss, y=y)
    run, task = GroupOMP(n_kernels=4, tol=0.0).solve(problem.dictionary, problem.task), problem.task
    for before, after in zip(run.state.stages[:-1], run.state.stages[1:], strict=True):
        # R = -V' at the fit before: lambda l alpha / w, a subgradient where V has a kink
        R = task.shift * before.fit.scaled_alpha / task.root
        gains = np.array([reference.gain(K, R, task.weight, task.ridge, True) for K in problem.Ks])
        gains[list(before.fit.kernels)] = -1.0
        assert after.fit.kernels[-1] == int(np.argmax(gains))
        assert after.gain == pytest.approx(gains.max(), rel=1e-7)
        assert after.fit.objective <= before.fit.objective * (1 + 1e-6)
        if hasattr(loss, "hessian"):
            K = sum((problem.Ks[m] for m in before.fit.kernels), np.zeros((70, 70)))
            f = K @ (task.root * before.fit.scaled_alpha) + before.fit.intercept
            np.testing.assert_allclose(R, -loss.gradient(task.y, f), atol=2e-2)


def test_huber_far_out_is_the_squared_loss(make):
    squared, huber = make(), make(loss=Huber(delta=1e6))
    first = GroupOMP(n_kernels=3, tol=0.0).solve(squared.dictionary, squared.task)
    second = GroupOMP(n_kernels=3, tol=0.0).solve(huber.dictionary, huber.task)
    for a, b in zip(first.state.stages, second.state.stages, strict=True):
        assert a.fit.kernels == b.fit.kernels
        assert a.fit.objective == pytest.approx(b.fit.objective, rel=1e-6)
        np.testing.assert_allclose(a.fit.scaled_alpha, b.fit.scaled_alpha, atol=1e-3)


# -- backward steps, samples of the dictionary, interruption --------------------------------------


@pytest.fixture(params=["squared", "hinge"])
def decoy(request, from_matrices, rng):
    """The target is the sum of features 0 and 1; feature 2 is nearly that sum, and comes in first."""
    X = rng.normal(size=(80, 6))
    X[:, 2] = X[:, 0] + X[:, 1] + 0.7 * X[:, 2]
    y = X[:, [0]] + X[:, [1]] + 0.05 * rng.normal(size=(80, 1))
    loss = None if request.param == "squared" else Hinge()
    Ks = [np.outer(x, x) for x in X.T]
    return from_matrices(Ks, y if loss is None else np.sign(y), np.ones(80), 1e-3, loss=loss)


def test_backward_steps_drop_what_became_useless(decoy):
    forward = GroupOMP(n_kernels=3, tol=1e-3).solve(decoy.dictionary, decoy.task)
    both = GroupOMP(n_kernels=3, tol=1e-3, backward=True).solve(decoy.dictionary, decoy.task)
    assert forward.state.stages[1].fit.kernels == both.state.stages[1].fit.kernels == (2,)
    assert 2 in forward.state.stages[2].fit.kernels
    assert set(both.state.stages[2].fit.kernels) == {0, 1}
    assert both.history["n_kernels"][2] == 2.0  # the third step let one in and one out
    optimum = best_subset(decoy.dictionary, decoy.task, 2, forward.state.stages[2].fit.kernels)
    assert set(optimum.kernels) == {0, 1}
    assert optimum.gap > 0.1


def test_backward_steps_never_worsen_a_model(decoy, make):
    for problem in (decoy, make(ridge=1e-4), make(ridge=1e-1)):
        forward = GroupOMP(n_kernels=5, tol=1e-4).solve(problem.dictionary, problem.task)
        both = GroupOMP(n_kernels=5, tol=1e-4, backward=True).solve(problem.dictionary, problem.task)
        for k, (a, b) in enumerate(zip(forward.state.stages, both.state.stages, strict=False)):
            assert len(b.fit.kernels) == len(set(b.fit.kernels)) == k
            assert b.fit.objective <= a.fit.objective * (1 + 1e-6)


def test_no_kernel_left_is_useless(make):
    problem = make(ridge=1e-3)
    run = GroupOMP(n_kernels=6, tol=1e-3, backward=True).solve(problem.dictionary, problem.task)
    last = run.state.stages[-1].fit
    refit = refit_for(problem.dictionary, problem.task)
    for m in last.kernels[:-1]:
        without = refit.with_kernels([k for k in last.kernels if k != m]).fit()
        rise = without.objective - last.objective
        assert rise >= 1e-3 or without.objective >= run.state.stages[len(last.kernels) - 1].fit.objective * (
            1 - 1e-9
        )


def test_weak_duality_bounds_what_dropping_a_kernel_costs(make):
    problem = make()
    refit = refit_for(problem.dictionary, problem.task).with_kernels([0, 9, 10, 6])
    fit = refit.fit()
    energies = problem.task.ridge * refit.energies(fit)
    for k in range(4):
        rest = [m for m in fit.kernels if m != fit.kernels[k]]
        assert refit.with_kernels(rest).fit().objective >= fit.level - energies.sum() + energies[k] - 1e-12


def test_a_sample_of_the_dictionary_is_scored(make, monkeypatch):
    problem = make()
    scored = []
    captured = problem.dictionary.captured
    monkeypatch.setattr(
        problem.dictionary,
        "captured",
        lambda R, wanted, c: scored.append(wanted.copy()) or captured(R, wanted, c),
    )
    run = GroupOMP(n_kernels=4, tol=0.0, sample=5, random_state=0).solve(problem.dictionary, problem.task)
    assert [int(wanted.sum()) for wanted in scored] == [5, 5, 5, 5]
    assert all(
        wanted[stage.fit.kernels[-1]] for wanted, stage in zip(scored, run.state.stages[1:], strict=True)
    )
    scored.clear()
    GroupOMP(n_kernels=4, tol=0.0, sample=0.25, random_state=0).solve(problem.dictionary, problem.task)
    assert [int(wanted.sum()) for wanted in scored] == [3, 3, 3, 3]  # of 12, 11, 10, 9, rounded up


def test_a_poor_sample_does_not_end_the_run(make):
    """All kernels are scored before the run ends for want of gain."""
    problem = make(ridge=1e-1)
    run = GroupOMP(tol=0.05, sample=1, random_state=0).solve(problem.dictionary, problem.task)
    assert run.reason == "tol"
    dictionary, task = problem.dictionary, problem.task
    left = np.ones(len(problem.Ks), dtype=bool)
    left[list(run.state.stages[-1].fit.kernels)] = False
    residual = task.shift * run.state.stages[-1].fit.scaled_alpha
    least = 0.05 * run.state.stages[0].fit.objective
    assert dictionary.captured(residual, left, task.shift).max() / task.total <= least


def test_the_same_seed_gives_the_same_path(make):
    problem = make()
    runs = [
        GroupOMP(n_kernels=4, tol=0.0, sample=0.3, random_state=seed).solve(problem.dictionary, problem.task)
        for seed in (1, 1, 2)
    ]
    paths = [run.state.stages[-1].fit.kernels for run in runs]
    assert paths[0] == paths[1] != paths[2]


def test_ctrl_c_keeps_the_path_so_far(make):
    problem = make()

    def interrupt(step, run):
        if step == 1:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="the path ends at 2 kernels"):
        run = GroupOMP(n_kernels=5, tol=0.0).solve(problem.dictionary, problem.task, interrupt)
    assert (len(run.state.stages), run.reason) == (3, "interrupted")


def test_a_callback_can_end_the_run(make):
    problem = make()
    run = GroupOMP(tol=0.0).solve(problem.dictionary, problem.task, lambda step, run: step == 2)
    assert (len(run.state.stages) - 1, run.reason) == (3, "interrupted")
    assert [len(values) for values in run.history.values()] == [3] * 5
