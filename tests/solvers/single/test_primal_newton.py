"""Machines of the primal problem reach the optimum of every loss, and prove it."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.gram.lowrank import FactoredMatrix, LowRankGram, StoredFactors
from kernelweave.losses import LOSSES, EpsInsensitive, Hinge, OneClass
from kernelweave.solvers import Problem, best_intercept
from kernelweave.solvers.single import PrimalNewton, choose_single
from kernelweave.solvers.single.primal_newton import Curvature, Smoothed, conjugate_gradients

from ...targets import SEPARABLE


def problem_of(loss, Z, rng, tied=True, C=1.0):
    y = Z[:, :1] + 0.5 * rng.normal(size=(len(Z), 1))
    y = np.sign(y) if loss.task == "classification" else np.ones_like(y) if loss.task == "one_class" else y
    cost = 1.0 / (0.2 * len(Z)) if loss.task == "one_class" else C
    return Problem(y, loss, np.full((len(Z), 1), cost) * rng.uniform(0.5, 2.0, size=(len(Z), 1)), tied)


@pytest.fixture(name="Z")
def features(rng):
    # features of one sign, so that a one-class machine has something to separate from the origin
    return np.abs(rng.normal(size=(200, 6)))


def gap_of(problem, Z, machine):
    v = np.vstack(list(machine.coefficients.values()))
    np.testing.assert_allclose(machine.fitted, Z @ v, rtol=1e-8, atol=1e-8)
    alpha = machine.alpha
    assert problem.has_right_sum(alpha)
    primal = problem.primal_loss(Z @ v, best_intercept(problem, Z @ v)) + 0.5 * (v**2).sum()
    return (primal - problem.dual_loss(alpha) + 0.5 * ((Z.T @ alpha) ** 2).sum()) / abs(primal)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("loss", sorted(SEPARABLE))
def test_every_loss_is_solved_to_its_certificate(Z, rng, loss, tied):
    if loss == "one_class" and not tied:
        pytest.skip("one-class machines have an offset")
    problem = problem_of(LOSSES[loss](), Z, rng, tied)
    K = LowRankGram(StoredFactors([Z])).combine(np.ones(1))
    machine = PrimalNewton().solve(K, problem, 1e-7)
    assert -1e-12 <= gap_of(problem, Z, machine) <= 1e-7
    dense = choose_single("auto", problem.loss).solve(Z @ Z.T, problem, 1e-8)
    np.testing.assert_allclose(machine.fitted, dense.fitted, rtol=1e-3, atol=2e-3)


def test_outputs_are_solved_each_and_known_functions_are_a_start(Z, rng):
    y = np.sign(rng.normal(size=(200, 2)))
    problem = Problem(y, Hinge(), np.ones((200, 1)))
    K = LowRankGram(StoredFactors([Z, 2.0 * Z[:, :2]])).combine(np.array([0.5, 1.0]))
    machine = PrimalNewton().solve(K, problem, 1e-6)
    alone = PrimalNewton().solve(K, problem.column(1), 1e-6)
    np.testing.assert_allclose(machine.fitted[:, 1:], alone.fitted, atol=1e-3)
    K.start = machine.coefficients
    again = PrimalNewton().solve(K, problem, 1e-4, machine.alpha)
    assert again.n_iter < machine.n_iter


def test_a_part_of_the_rows_is_a_preconditioner(Z, rng, monkeypatch):
    monkeypatch.setattr("kernelweave.solvers.single.primal_newton.MOST_ROWS", 2)
    monkeypatch.setattr("kernelweave.solvers.single.primal_newton.SOME_ROWS", 4)
    K = LowRankGram(StoredFactors([Z])).combine(np.ones(1))
    w = rng.uniform(size=200)
    curvature = Curvature(K, np.arange(200), w, tied=True)
    assert not curvature.exact
    centred = Z - w @ Z / w.sum()
    A, right = np.eye(6) + (centred * w[:, None]).T @ centred, rng.normal(size=6)
    found = conjugate_gradients(curvature.product, curvature.precondition, right, 1e-12)
    np.testing.assert_allclose(found, np.linalg.solve(A, right), rtol=1e-8)
    for loss in ("logistic", "hinge"):
        problem = problem_of(LOSSES[loss](), Z, rng)
        assert gap_of(problem, Z, PrimalNewton().solve(K, problem, 1e-6)) <= 1e-6


@pytest.mark.parametrize("loss", [Hinge(), EpsInsensitive(0.2), OneClass()], ids=lambda loss: loss.name)
def test_a_smoothed_loss_and_its_conjugate(loss, rng):
    y = np.sign(rng.normal(size=300))
    f = 2.0 * rng.normal(size=300)
    lower, upper = loss.dual_box(y)
    center = -rng.uniform(lower, upper)
    smooth = Smoothed(loss, 0.3, center)
    slope = smooth.gradient(y, f)
    # Fenchel's equality proves value, gradient and conjugate at once
    np.testing.assert_allclose(smooth.value(y, f) + smooth.conjugate(y, slope), slope * f, atol=1e-12)
    assert (smooth.value(y, f) <= loss.value(y, f) + 1e-12).all()
    numeric = (smooth.value(y, f + 1e-6) - smooth.value(y, f - 1e-6)) / 2e-6
    np.testing.assert_allclose(numeric, slope, atol=1e-5)
    near = smooth.gradient(y, f + 1e-7) - slope
    np.testing.assert_allclose(near / 1e-7, smooth.hessian(y, f), atol=1e-5)


def test_centred_at_the_optimum_smoothing_changes_nothing(Z, rng):
    problem = problem_of(Hinge(), Z, rng)
    K = LowRankGram(StoredFactors([Z])).combine(np.ones(1))
    exact = PrimalNewton().solve(K, problem, 1e-10)
    loss = Smoothed(Hinge(), 5.0, -exact.alpha / problem.C)
    f = exact.fitted + best_intercept(problem, exact.fitted)
    np.testing.assert_allclose(-problem.C * loss.gradient(problem.y, f), exact.alpha, atol=1e-4)


def test_no_kernel_with_weight_is_the_intercept_alone(Z, rng):
    problem = problem_of(LOSSES["logistic"](), Z, rng)
    machine = PrimalNewton().solve(FactoredMatrix(StoredFactors([Z]), np.zeros(1)), problem, 1e-9)
    assert not machine.fitted.any()
