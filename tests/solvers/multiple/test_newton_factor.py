"""The Newton steps of alternating minimisation: their Jacobian against differences of the map itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from kernelweave.gram import DenseGram
from kernelweave.losses import EpsInsensitive, Hinge, Huber, Logistic, Pinball, Squared, SquaredHinge
from kernelweave.regularizers import BlockNorm, LpNorm
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import Alternating, NewtonWeights, choose_solver
from kernelweave.solvers.multiple.alternating import newton_factor
from kernelweave.solvers.multiple.newton_weights import (
    _solved,
    moved_alpha,
    projected_inverse,
    response_to_weights,
)
from kernelweave.solvers.run import Run
from kernelweave.solvers.single import choose_single


@pytest.fixture
def sample(rng):
    X = rng.normal(size=(60, 4))
    Ks = [np.exp(-gamma * ((X[:, None, :] - X[None]) ** 2).sum(-1)) for gamma in (0.03, 0.1, 0.3, 1.0)]
    return X, DenseGram(Ks)


def image(run, log_norms):
    """log norms of the machine at the weights of `log_norms`."""
    weights = run.regularizer.weights(np.exp(log_norms))
    return np.log(run.method.train(run, weights, None).certificate.norms)


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Hinge()], ids=repr)
@pytest.mark.parametrize("regularizer", [LpNorm(p=4 / 3), LpNorm(p=3), BlockNorm(q=1.6)], ids=repr)
@pytest.mark.parametrize("outputs", [1, 2])
def test_the_factor_inverts_one_minus_the_jacobian_of_the_map(sample, loss, regularizer, outputs):
    X, gram = sample
    problem = Problem(np.sign(X[:, :outputs] + 0.3 * X[:, 2:3]), loss, np.ones((60, 1)))
    solver = Alternating()
    solution = solver.solve(problem, gram, regularizer, tol=1e-10, max_iter=500)
    factor = newton_factor(problem, gram, regularizer, solution.state, solution.matrix)
    solver._first_tol, run = 1e-12, Run(solver, problem, gram, regularizer)
    at, step = np.log(solution.state.certificate.norms), 1e-5
    units = np.eye(gram.n_kernels)
    moved = [image(run, at + step * unit) - image(run, at - step * unit) for unit in units]
    jacobian = np.array(moved).T / (2 * step)
    np.testing.assert_allclose(factor @ (units - jacobian), units, atol=1e-3)


def test_fewer_machines_than_the_plain_iteration(rng):
    X = rng.normal(size=(900, 5))
    y = np.sign(X[:, :1] * X[:, 1:2] + 0.3 * X[:, 2:3] + 0.1 * rng.normal(size=(900, 1)))
    distances = ((X[:, None, :] - X[None]) ** 2).sum(-1)
    gram = DenseGram([np.exp(-distances / 1.5**m) for m in range(8)])
    problem = Problem(y, Hinge(), np.ones((900, 1)))
    plain = Alternating(memory=0)
    plain.pilot_share = 0
    ours, theirs = (solver.solve(problem, gram, LpNorm(p=4 / 3), 1e-5) for solver in (Alternating(), plain))
    assert ours.converged
    assert ours.n_iter <= theirs.n_iter / 2


@pytest.mark.parametrize("loss", [Squared(), Hinge()], ids=repr)
@pytest.mark.parametrize("tied", [True, False])
def test_hessian_of_several_outputs_is_the_sum_of_each(loss, tied):
    """Also where all outputs share one factorisation, as those of the squared loss do."""
    rng, rule = np.random.default_rng(0), LpNorm(p=1)
    factors = rng.normal(size=(3, 30, 4))
    gram = DenseGram([A @ A.T for A in factors])
    problem = Problem(np.sign(rng.normal(size=(30, 4))), loss, np.ones((30, 1)), tied)
    state = choose_solver("auto", rule).solve(problem, gram, rule, 1e-6, 100).state
    K = gram.combine(state.weights)
    parts = [(problem.column(k), replace(state, alpha=state.alpha[:, [k]])) for k in range(4)]
    each = [response_to_weights(own, gram, part, K).hessian for own, part in parts]
    found = response_to_weights(problem, gram, state, K).hessian
    np.testing.assert_allclose(found, sum(each), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Hinge(), EpsInsensitive(0.3)], ids=repr)
def test_hessian_from_the_products_that_came_with_the_squares(sample, loss):
    """K_m alpha is known where alpha is not zero; free samples with alpha = 0 are read again."""
    X, gram = sample
    y = X[:, :1] + 0.3 * X[:, 2:3]
    y, rule = y if loss.task == "regression" else np.sign(y), LpNorm(p=1)
    problem = Problem(y, loss, np.ones((60, 1)))
    found = choose_solver("auto", rule).solve(problem, gram, rule, 1e-6, 100).state
    _, products = gram.quad_and_products(found.alpha)
    assert products is not None
    for alpha in (found.alpha, np.where(np.arange(60)[:, None] == 7, 0.0, found.alpha)):
        own = gram.quad_and_products(alpha)[1]
        state = replace(found, alpha=alpha, products=None)
        for directions in (None, np.eye(4)[[2, 0]]):
            with_products = replace(state, products=own)
            known = response_to_weights(problem, gram, with_products, None, directions).hessian
            read = response_to_weights(problem, gram, state, None, directions).hessian
            np.testing.assert_allclose(known, read, rtol=1e-9, atol=1e-9 * np.abs(read).max())


LOSSES = [Hinge(), EpsInsensitive(0.3), Pinball(0.3), SquaredHinge(), Logistic(), Squared(), Huber(0.5)]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("outputs", [1, 2])
def test_alpha_moves_with_the_weights(sample, loss, tied, outputs):
    """alpha(d + t e) - alpha(d) to first order, while the same samples are free, for every loss."""
    X, gram = sample
    y = X[:, :outputs] + 0.3 * X[:, 2:3]
    problem = Problem(y if loss.task == "regression" else np.sign(y), loss, np.ones((60, 1)), tied)
    weights, directions = (
        np.array([0.5, 0.0, 1.0, 0.3]),
        np.array([[1.0, 0.0, -0.5, 0.0], [0.0, 1.0, 0.0, 0.2]]),
    )

    def machine(weights):
        return choose_single("auto", loss).solve(gram.combine(weights), problem, 1e-13)

    @dataclass
    class At:
        weights: np.ndarray
        alpha: np.ndarray
        products: None = None
        residual: float = 0.0

    here, t = machine(weights), 1e-5 * np.array([1.0, -0.7])
    moves = response_to_weights(problem, gram, At(weights, here.alpha), None, directions).moves
    there = machine(weights + t @ directions).alpha
    found = moved_alpha(problem, here.alpha, moves, t)
    np.testing.assert_allclose(
        found - here.alpha, there - here.alpha, atol=1e-3 * np.abs(there - here.alpha).max()
    )


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("tied", [True, False])
def test_alpha_that_moves_far_stays_in_its_box(sample, rng, loss, tied):
    X, _ = sample
    y = X[:, :1] if loss.task == "regression" else np.sign(X[:, :1])
    problem = Problem(y, loss, rng.gamma(1.0, size=(60, 1)), tied)
    alpha = problem.feasible(0.3 * y * problem.C)
    rows, size = np.flatnonzero(alpha[:, 0])[::2], float(problem.C.max())
    moved = moved_alpha(problem, alpha, [(rows, 10.0 * rng.normal(size=(len(rows), 2)))], size * np.ones(2))
    held = np.setdiff1d(np.arange(60), rows)
    np.testing.assert_array_equal(moved[held], alpha[held])
    np.testing.assert_array_equal(problem.feasible(moved), moved)
    if loss.name == "eps_insensitive":  # V* has a kink at zero
        assert (moved * alpha >= 0.0).all()
    assert (moved[rows] != alpha[rows]).any()


@pytest.mark.parametrize("unit", [1e-50, 1.0, 1e50])
@pytest.mark.parametrize("tied", [True, False])
def test_forms_in_single_precision_agree_with_double_in_any_units(rng, unit, tied):
    """Kernels of units that single precision does not have; one column is zero."""
    X = rng.normal(size=(80, 3))
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    G = np.column_stack([K @ rng.normal(size=80), np.sin(X[:, 0]) * 1e30, np.zeros(80)])
    curvature = rng.gamma(1.0, size=80) * 0.1
    wanted = projected_inverse(K, curvature, [G], tied)[0] / unit
    found = projected_inverse(unit * K, unit * curvature, [G], tied, precision=np.float32)[0]
    sizes = np.sqrt(wanted.diagonal())
    assert (np.abs(found - wanted) <= 1e-4 * np.outer(sizes, sizes)).all()
    np.testing.assert_allclose(found.diagonal(), wanted.diagonal(), rtol=1e-4)


def test_a_form_in_single_precision_is_of_the_right_size_where_the_kernel_is_singular(rng):
    X = rng.normal(size=(80, 1))
    K = np.exp(-0.01 * (X - X.T) ** 2)  # numerically of rank 5
    alpha = rng.normal(size=80)
    G = np.column_stack([K @ alpha, np.exp(-0.02 * (X - X.T) ** 2) @ alpha])
    forms = [projected_inverse(K, np.zeros(80), [G], True, 1.0, kind) for kind in (np.float64, np.float32)]
    double, single = (form.diagonal() for form, _ in forms)
    np.testing.assert_allclose(single, double, rtol=0.02)  # single precision alone is off by up to a half


def test_a_form_in_single_precision_of_samples_of_very_different_size(rng):
    sizes = 10.0 ** rng.uniform(-12.0, 12.0, 80)
    X = rng.normal(size=(80, 3))
    K = sizes[:, None] * np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2)) * sizes
    G = sizes[:, None] * rng.normal(size=(80, 2))
    added = 0.1 * sizes**2
    double, single = (_solved(K, added, G, kind) for kind in (np.float64, np.float32))
    np.testing.assert_allclose(G.T @ single, G.T @ double, rtol=1e-4, atol=1e-4 * (G.T @ double).max())


@pytest.mark.parametrize("C", [1e3, 1e5])
def test_steps_that_went_too_far_are_followed_by_shorter_ones(rng, C):
    """Kernels of very different rank: full steps would be taken back nearly whole, a hundred times."""
    X = rng.normal(size=(300, 12))
    differences = (X.T[:, :, None] - X.T[:, None, :]) ** 2
    matrices = [np.exp(-0.5 * D) / 0.3 if m % 3 == 0 else np.exp(-5.0 * D) for m, D in enumerate(differences)]
    matrices[1::3] = [np.outer(x, x) for x in X.T[1::3]]
    y = np.sin(2.0 * X[:, :1]) + X[:, 1:2] + 0.3 * X[:, 4:5] + 0.5 * rng.normal(size=(300, 1))
    problem = Problem(y, Squared(), np.full((300, 1), C))
    found = NewtonWeights().solve(problem, DenseGram(matrices), LpNorm(p=1), tol=1e-3, max_iter=40)
    assert found.converged
