"""Refitting: updated solutions are those of the whole system."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.losses import Hinge, Logistic
from kernelweave.solvers.greedy import MachineRefit, RidgeRefit, left_out_margins

# thin, thin, full, thin (on a base), full, thin
ORDER = [0, 10, 9, 4, 5, 1]


def agrees(fit, problem, kernels, reference):
    task = problem.task
    exact = reference.ridge(
        sum(problem.Ks[m] for m in kernels), task.y, task.weight, task.ridge, task.fit_intercept
    )
    np.testing.assert_allclose(task.root * fit.scaled_alpha, exact.alpha, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(fit.intercept, exact.b, rtol=1e-8, atol=1e-8)
    assert fit.objective == pytest.approx(exact.objective, rel=1e-9)
    error = float((task.weight[:, None] * exact.residual**2).sum() / task.total)
    assert fit.error == pytest.approx(error, rel=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ridge", [1e-6, 1e-2, 1.0])
def test_every_update_solves_the_whole_system(make, reference, intercept, ridge):
    problem = make(ridge=ridge, intercept=intercept)
    refit = RidgeRefit(problem.dictionary, problem.task)
    for k, m in enumerate(ORDER):
        refit.add(m)
        agrees(refit.fit(), problem, ORDER[: k + 1], reference)


def test_many_thin_factors_become_one_matrix(make, reference):
    problem = make()
    kernels = [0, 1, 2, 3, 4, 10, 0, 10, 10]  # 30 columns of 70 samples
    refit = RidgeRefit(problem.dictionary, problem.task).with_kernels(kernels)
    assert refit.base is not None
    agrees(refit.fit(), problem, kernels, reference)


def test_weights_of_kernels(make, reference):
    problem = make()
    refit = RidgeRefit(problem.dictionary, problem.task)
    for m, weight in ((0, 0.5), (9, 0.2), (10, 3.0)):
        refit.add(m, weight)
    K = 0.5 * problem.Ks[0] + 0.2 * problem.Ks[9] + 3.0 * problem.Ks[10]
    task = problem.task
    exact = reference.ridge(K, task.y, task.weight, task.ridge, True)
    assert refit.fit().objective == pytest.approx(exact.objective, rel=1e-9)


@pytest.mark.parametrize("kernels", [[0, 4, 10], [0, 9, 4]])
def test_the_diagonal_of_the_inverse(make, kernels):
    problem = make()
    refit = RidgeRefit(problem.dictionary, problem.task).with_kernels(kernels)
    inverse = np.linalg.inv(refit.apply(np.eye(70)))
    np.testing.assert_allclose(refit.inverse_diagonal(), np.diag(inverse), rtol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kernels", [[0, 4, 10], [0, 9, 4]])
def test_leave_one_out_is_training_without_the_sample(make, reference, kernels, intercept):
    problem = make(intercept=intercept)
    task, K = problem.task, sum(problem.Ks[m] for m in kernels)
    refit = RidgeRefit(problem.dictionary, task).with_kernels(kernels)
    margins = left_out_margins(refit, refit.fit())
    for i in (0, 17, 69):
        rest = np.delete(np.arange(70), i)
        # the ridge lambda l stays: l counts the sample left out
        ridge = task.ridge * task.total / task.weight[rest].sum()
        fit = reference.ridge(K[np.ix_(rest, rest)], task.y[rest], task.weight[rest], ridge, intercept)
        np.testing.assert_allclose(margins[i], K[i, rest] @ fit.alpha + fit.b, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("loss", [None, Hinge()], ids=["squared", "hinge"])
def test_leave_one_out_of_weighted_and_repeated_samples_agree(from_matrices, data, loss):
    X, Y, _ = data
    y = np.sign(Y[:, :1])
    weight = np.where(np.arange(70) % 3 == 0, 3.0, 1.0)
    twice = np.repeat(np.arange(70), weight.astype(int))
    margins = []
    for rows, w in ((np.arange(70), weight), (twice, np.ones(len(twice)))):
        K = X[rows] @ X[rows].T + 1e-3
        problem = from_matrices([K], y[rows], w, 0.1, loss=loss)
        refit = (RidgeRefit if loss is None else MachineRefit)(problem.dictionary, problem.task).with_kernels(
            [0]
        )
        margins.append(left_out_margins(refit, refit.fit()))
    np.testing.assert_allclose(margins[0][twice], margins[1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("loss", [Hinge(), Logistic()])
def test_machines_solve_the_same_objective(make, data, loss):
    """P of `Problem` times 2 lambda, on the plain sum of the kernels."""
    problem = make(loss=loss, y=np.sign(data[1]))
    refit = MachineRefit(problem.dictionary, problem.task).with_kernels([0, 9])
    fit, task, K = refit.fit(), problem.task, problem.Ks[0] + problem.Ks[9]
    alpha = task.root * fit.scaled_alpha
    f = K @ alpha + fit.intercept
    losses = 2.0 / task.total * float((task.weight[:, None] * loss.value(task.y, f)).sum())
    assert fit.objective == pytest.approx(losses + task.ridge * float(np.sum(alpha * (K @ alpha))), rel=1e-6)
    assert fit.error == pytest.approx(losses, rel=1e-6)
    # weak duality, nearly tight
    bound = fit.level - task.ridge * refit.energies(fit).sum()
    assert fit.objective * (1 - 1e-5) <= bound <= fit.objective * (1 + 1e-12)
