"""One machine of all classes: its optimum, intercepts, derivatives and samples left out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from kernelweave.losses import Hinge, MulticlassHinge
from kernelweave.solvers import Problem, best_intercept, leave_one_out
from kernelweave.solvers.multiple import choose_solver
from kernelweave.solvers.multiple.newton_weights import response_to_weights
from kernelweave.solvers.single import SMO, BlockDescent, machine_gap
from kernelweave.solvers.single._simplex_interior import interior_plan
from kernelweave.testing import check_loss
from kernelweave.testing.solvers import draw_problem

from .test_conic import KERNELS, RULES, omega_star, omega_upper, penalty, roots

cp = pytest.importorskip("cvxpy")

FAST = ("l1", "l2", "elastic net 0.5", "block 4")
SETTINGS = [
    pytest.param(rule, tied, marks=() if (rule in FAST and tied) or rule == "l2" else pytest.mark.slow)
    for rule in RULES
    for tied in (True, False)
]


def conic_optimum(sample, rule):
    """min sum_i C_i max_k (f_ik + [k != own] - f_i,own) + Omega(n), f_m = Z_m W_m, n_m = |W_m|."""
    problem, Zs = sample.problem, list(roots(sample.Ks))
    n, c = problem.shape
    ws, b = [cp.Variable(Z.shape[1] * c) for Z in Zs], cp.Variable((1, c))
    parts = [Z @ cp.reshape(w, (Z.shape[1], c), order="F") for Z, w in zip(Zs, ws, strict=True)]
    f = sum(parts) + np.ones((n, 1)) @ b
    own = problem.y > 0
    ahead = cp.max(f + problem.loss.costs(problem.y), axis=1) - cp.sum(cp.multiply(own, f), axis=1)
    omega, constraints = penalty(rule, ws)
    constraints += [] if problem.fit_intercept else [b == 0]
    program = cp.Problem(cp.Minimize(problem.C[:, 0] @ ahead + omega), constraints)
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        return program.solve(solver=cp.CLARABEL, **tight)


def independent_gap(sample, rule, state):
    """(P - D) / P: the primal of the functions found, and the dual <own, alpha> - Omega*(r) of alpha."""
    problem, alpha, own = sample.problem, state.alpha, sample.problem.y > 0
    assert_allclose(alpha.sum(axis=1), 0.0, atol=1e-10)
    assert (problem.C * own - alpha >= -1e-12).all()
    assert not problem.fit_intercept or np.abs(alpha.sum(axis=0)).max() <= 1e-9 * np.abs(alpha).sum()
    r = np.sqrt(np.einsum("ic,mij,jc->m", alpha, sample.Ks, alpha))
    f = np.einsum("m,mij,jc->ic", state.weights, sample.Ks, alpha) + state.certificate.intercept
    loss = problem.C[:, 0] @ ((f + ~own).max(axis=1) - f[own])
    primal = loss + omega_upper(rule, state.weights * r, state.weights)
    scale, low = 1.0, 0.5
    while omega_star(rule, scale * r) == np.inf:  # the largest multiple of alpha that has a dual value
        middle = 0.5 * (low + scale)
        low, scale = (low, middle) if omega_star(rule, middle * r) == np.inf else (middle, scale)
        scale = low if scale - low < 1e-12 else scale
    return (primal - scale * alpha[own].sum() + omega_star(rule, scale * r)) / primal


@pytest.mark.parametrize(("rule", "tied"), SETTINGS)
def test_optimum_is_that_of_the_conic_solver(rule, tied):
    sample = draw_problem(MulticlassHinge(), n=24, M=KERNELS, C=3.0, costs=True, fit_intercept=tied)
    solver = choose_solver("auto", RULES[rule])
    state = solver.solve(sample.problem, sample.gram, RULES[rule], tol=3e-7, max_iter=1000).state
    assert state.certificate.primal == pytest.approx(conic_optimum(sample, RULES[rule]), rel=1e-6)
    assert -1e-9 <= independent_gap(sample, RULES[rule], state) <= 1e-6


class OrderedClasses(MulticlassHinge):
    """Classes further away cost more."""

    def costs(self, y):
        return 0.5 * np.abs(np.arange(y.shape[1]) - y.argmax(axis=1)[:, None])


def test_costs_of_classes_are_those_of_the_conic_solver():
    check_loss(OrderedClasses())
    sample = draw_problem(OrderedClasses(), n=24, M=KERNELS, C=3.0, outputs=4, costs=True)
    solver = choose_solver("auto", RULES["l2"])
    state = solver.solve(sample.problem, sample.gram, RULES["l2"], tol=3e-7, max_iter=1000).state
    assert state.certificate.primal == pytest.approx(conic_optimum(sample, RULES["l2"]), rel=1e-6)


@pytest.mark.parametrize("tied", [True, False])
def test_two_classes_are_a_machine_of_two_at_half_the_cost(tied):
    """w_1 = -w_2 = w / 2 has the norm |w|^2 / 2, so f_2 - f_1 is the machine of two classes at 2 C."""
    sample = draw_problem(Hinge(), n=40, C=2.0, fit_intercept=tied)
    two = SMO().solve(sample.K, sample.problem, 1e-9)
    y = np.hstack([-sample.problem.y, sample.problem.y])
    both = BlockDescent().solve(sample.K, Problem(y, MulticlassHinge(), sample.problem.C / 2.0, tied), 1e-9)
    assert_allclose(both.fitted[:, 1] - both.fitted[:, 0], two.fitted[:, 0], atol=1e-6)


# -- intercepts and feasible points -------------------------------------------------------------


def linear_program(problem, f):
    """min_{b, t} sum_i C_i t_i - sum_k N_k b_k, t_i >= f_ik + [k != own] + b_k - (f_i,own)."""
    n, c = problem.shape
    own = problem.y > 0
    rows = np.hstack([-np.repeat(np.eye(n), c, axis=0), np.tile(np.eye(c), (n, 1))])
    A = f + ~own - f[own][:, None]
    cost = np.concatenate([problem.C[:, 0], -(problem.C * own).sum(axis=0)])
    return linprog(cost, rows, -A.ravel(), bounds=(None, None)).fun


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_intercepts_solve_their_linear_program(scale):
    sample = draw_problem(MulticlassHinge(), n=40, outputs=5, costs=True)
    f = scale * np.random.default_rng(0).normal(size=(40, 5)) + 7.0
    b = best_intercept(sample.problem, f)
    least = linear_program(sample.problem, f)
    assert sample.problem.primal_loss(f, b) == pytest.approx(least, rel=1e-9)
    assert b.sum() == pytest.approx(0.0, abs=1e-9 * max(scale, 1.0))


def test_a_class_without_samples_is_left_alone():
    sample = draw_problem(MulticlassHinge(), n=40, outputs=4)
    rows = np.flatnonzero(sample.problem.y[:, 1] < 0)
    part, f = sample.problem.part(rows), np.random.default_rng(1).normal(size=(len(rows), 4))
    b = best_intercept(part, f)
    without = Problem(part.y[:, [0, 2, 3]], part.loss, part.C)
    b_without = best_intercept(without, f[:, [0, 2, 3]])
    assert part.primal_loss(f, b) == pytest.approx(without.primal_loss(f[:, [0, 2, 3]], b_without), rel=1e-9)
    K = sample.K[np.ix_(rows, rows)]
    ours, theirs = (BlockDescent().solve(K, problem, 1e-8) for problem in (part, without))
    assert_allclose(ours.fitted[:, [0, 2, 3]], theirs.fitted, atol=1e-5)
    assert_allclose(ours.alpha[:, 1], 0.0, atol=1e-12)


@pytest.mark.parametrize("tied", [True, False])
def test_feasible_points_are_feasible_and_stay(tied):
    problem = draw_problem(MulticlassHinge(), n=30, outputs=4, costs=True, fit_intercept=tied).problem
    rng = np.random.default_rng(2)
    start = np.where(rng.random((30, 1)) < 0.5, rng.normal(size=(30, 4)), 0.0)
    alpha = problem.feasible(start)
    assert np.isfinite(problem.dual_loss(alpha))
    assert problem.has_right_sum(alpha)
    assert_allclose(problem.feasible(alpha), alpha, atol=1e-12)
    assert not alpha[~start.any(axis=1)].any()


# -- derivatives and samples left out -----------------------------------------------------------


def test_second_derivatives_of_the_value_of_the_machine():
    """d2J/dd_m dd_l by differences of dJ/dd_m = -s_m / 2."""
    sample = draw_problem(MulticlassHinge(), n=24, M=4, C=2.0)
    weights, step = np.array([0.5, 0.3, 0.8, 0.4]), 1e-5

    def slopes(d):
        alpha = BlockDescent().solve(sample.gram.combine(d), sample.problem, 1e-12).alpha
        return -0.5 * sample.gram.quad(alpha), alpha

    class State:
        alpha, products = slopes(weights)[1], None

    K = sample.gram.combine(weights)
    H = response_to_weights(sample.problem, sample.gram, State, K, np.eye(4)).hessian
    ends = [(slopes(weights + step * e)[0], slopes(weights - step * e)[0]) for e in np.eye(4)]
    quotient = np.array([(up - down) / (2 * step) for up, down in ends])
    assert_allclose(H, quotient, rtol=1e-3, atol=1e-4 * np.abs(H).max())


@pytest.mark.parametrize("tied", [True, False])
def test_left_out_values_are_those_of_machines_without_the_sample(tied):
    """Exact where the classes that share samples stay the same; differences between classes only."""
    sample = draw_problem(MulticlassHinge(), n=24, C=2.0, fit_intercept=tied)
    problem, K = sample.problem, sample.K
    machine = BlockDescent().solve(K, problem, 1e-12)
    found = leave_one_out(K, problem, machine.alpha, machine.fitted + best_intercept(problem, machine.fitted))

    def shares(part, alpha):
        return (part.y > 0) - alpha / part.C > 1e-9

    same = 0
    for i in range(24):
        rest = np.setdiff1d(np.arange(24), i)
        part, inner = problem.part(rest), K[np.ix_(rest, rest)]
        other = BlockDescent().solve(inner, part, 1e-12)
        if (shares(part, other.alpha) != shares(problem, machine.alpha)[rest]).any():
            continue
        f = K[i, rest] @ other.alpha + best_intercept(part, other.fitted)
        assert_allclose(found[i] - found[i].mean(), f - f.mean(), atol=1e-6)
        same += 1
    assert same >= 8


@pytest.mark.parametrize("tied", [True, False])
def test_classes_in_a_line_need_the_interior_point_method(tied):
    """K of rank two at a large cost: sweeps come to a standstill, and the optimum is found nevertheless."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), 12)
    X = np.column_stack([2.0 * labels, np.zeros(60)]) + 0.5 * rng.normal(size=(60, 2))
    problem = Problem(2.0 * np.eye(5)[labels] - 1.0, MulticlassHinge(), np.full((60, 1), 10.0), tied)
    machine = BlockDescent().solve(X @ X.T, problem, 1e-8)
    assert machine_gap(problem, machine.alpha, X @ (X.T @ machine.alpha)) <= 1e-8


@pytest.mark.parametrize("demand", [np.array([3.0, 1.0, 2.0]), None])
def test_interior_plans_are_optimal(demand):
    """U S = 0 with S = K U - P + t - b >= 0; rows sum to the supply, columns to the demand."""
    rng = np.random.default_rng(1)
    Z, P, supply = rng.normal(size=(12, 4)), rng.normal(size=(12, 3)), np.full(12, 0.5)
    U, S = interior_plan(Z @ Z.T, P, supply, demand, 1e-9)
    assert_allclose(U.sum(axis=1), supply, atol=1e-10)
    assert demand is None or np.abs(U.sum(axis=0) - demand).max() <= 1e-10
    assert min(U.min(), S.min()) > 0.0
    assert np.vdot(U, S) <= 1e-9
    slopes = S - (Z @ Z.T @ U - P)  # t_i - b_k
    slopes -= slopes.mean(axis=1, keepdims=True)
    assert_allclose(slopes, np.broadcast_to(slopes.mean(axis=0), (12, 3)), atol=1e-6)
    assert demand is not None or np.abs(slopes).max() <= 1e-6
