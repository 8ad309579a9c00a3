"""Convex fits that used to go round or on: they converge, or end after bounded work and say so."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning

import kernelweave as kw
from kernelweave.gram import DenseGram
from kernelweave.kernels import RBF, Linear, Polynomial
from kernelweave.losses import EpsInsensitive, Hinge, Squared, SquaredHinge
from kernelweave.regularizers import (
    REGULARIZERS,
    BlockNorm,
    ElasticNet,
    FromBlockNorm,
    GroupLassoTerm,
    LpNorm,
    Uniform,
    Wedge,
)
from kernelweave.solvers import Problem
from kernelweave.solvers.certificate import certificate
from kernelweave.solvers.multiple import Interleaved, choose_solver
from kernelweave.solvers.multiple.cutting_planes import HALF_WAY, CuttingPlanes
from kernelweave.solvers.run import SLOW, STILL, Bracket, Run, Watch
from kernelweave.solvers.single import Machine, SingleSolver

from ...targets import SEPARABLE

VARIANTS = {
    "l1": LpNorm(p=1),
    "l1 penalty": LpNorm(p=1, form="penalty"),
    "l1.1": LpNorm(p=1.1),
    "group lasso": ElasticNet(l1_ratio=1.0),
    "nearly group lasso": ElasticNet(l1_ratio=0.95),
    "block 1": BlockNorm(q=1),
    "block 8": BlockNorm(q=8),
    "block inf": BlockNorm(q=np.inf),
}
CONVEX = {name: cls() for name, cls in REGULARIZERS.items() if cls().convex} | VARIANTS
SPARSE = {name: rule for name, rule in CONVEX.items() if rule.sparse}


def ties(loss, seed=0, C=0.05, n=60, n_features=6):
    """Features that are small whole numbers, kernels of rank one and two, some of them twice, small C."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n, n_features)).astype(float)
    Ks = [np.outer(x, x) for x in X.T] + [(x[:, None] == x).astype(float) for x in X.T]
    Ks = [*Ks, X @ X.T, *Ks[:3]]
    score = X @ rng.normal(size=n_features) + rng.normal(size=n)
    labels = np.where(score > np.median(score), 1.0, -1.0)
    times = labels * (1.0 + np.abs(score.round()))  # negative where they are censored
    known = {"classification": labels, "one_class": np.ones(n), "survival": times}
    y = known.get(loss.task, score.round())
    cost = C if loss.task != "one_class" else 1.0 / (0.3 * n)
    gram = DenseGram(np.array([K / (K.diagonal().mean() - K.mean()) for K in Ks]))
    return Problem(y[:, None], loss, np.full((n, 1), cost)), gram


def graded(seed, n=60, C=0.03):
    """Grades that tell the classes about equally well, each as a kernel of rank one and as two smooth ones.

    At a small cost every alpha is at its bound, where the value of the machine has no curvature.
    """
    rng = np.random.default_rng(seed)
    core = rng.integers(0, 10, size=n)
    X = np.clip(core[:, None] + rng.integers(-3, 4, size=(n, 5)), 0, 9).astype(float)
    y = np.where(core + rng.normal(size=n) > np.median(core), 1.0, -1.0)
    per_grade = [[np.outer(x, x), *(np.exp(-g * (x[:, None] - x) ** 2) for g in (0.1, 1.0))] for x in X.T]
    Ks = np.array([K / (K.diagonal().mean() - K.mean()) for Ks in per_grade for K in Ks])
    return Problem(y[:, None], Hinge(), np.full((n, 1), C)), DenseGram(Ks)


def gap_by_definition(problem, gram, regularizer, state):
    """(P - D) / |P| from kernels, weights and alpha alone."""
    proof = certificate(problem, gram, regularizer, state.alpha, state.weights)
    return (proof.primal - proof.dual) / abs(proof.primal) if proof.primal else 0.0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", [cls() for cls in SEPARABLE.values()], ids=list(SEPARABLE))
@pytest.mark.parametrize("regularizer", CONVEX.values(), ids=list(CONVEX))
def test_ties_do_not_keep_a_fit_from_its_optimum(regularizer, loss):
    if regularizer.homogeneous and loss.task == "one_class":
        pytest.skip("no finite optimum")
    for seed, C in ((0, 0.01), (1, 0.3)):
        problem, gram = ties(loss, seed, C)
        solution = choose_solver("auto", regularizer).solve(problem, gram, regularizer, tol=1e-3)
        assert solution.converged
        assert gap_by_definition(problem, gram, regularizer.bound_to(gram), solution.state) <= 1e-3


@pytest.mark.parametrize(("seed", "n", "C"), [(6, 60, 0.03), (7, 60, 0.03), (3, 120, 0.003), (5, 120, 0.01)])
def test_newton_steps_that_go_round_are_left(seed, n, C):
    problem, gram = graded(seed, n, C)
    solution = choose_solver("auto", LpNorm(p=1)).solve(problem, gram, LpNorm(p=1), tol=1e-4)
    assert solution.converged
    assert solution.n_iter <= 60
    assert gap_by_definition(problem, gram, LpNorm(p=1), solution.state) <= 1e-4


@pytest.mark.parametrize("solver", ["auto", "newton", "interleaved"])
@pytest.mark.parametrize(("tol", "most"), [(1e-3, 60), (1e-6, 90)])
def test_the_case_that_went_round_converges(data_folder, solver, tol, most):
    path = data_folder / "cases" / "stall_p1.npz"
    if not path.exists():
        pytest.skip(f"no {path}")
    with np.load(path) as data:
        K, y = data["K"], data["y"]
    model = kw.MKLClassifier("precomputed", regularizer=LpNorm(p=1), C=0.01, solver=solver, tol=tol).fit(K, y)
    assert model.dual_gap_ <= tol
    assert model.n_iter_ <= most


@pytest.mark.wide
@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", [Hinge(), EpsInsensitive(), SquaredHinge(), Squared()], ids=lambda x: x.name)
@pytest.mark.parametrize("regularizer", SPARSE.values(), ids=list(SPARSE))
def test_cutting_planes_find_the_optimum_alone(draw, regularizer, loss):
    sample = draw(loss, n=40, M=6, C=0.3)
    found = CuttingPlanes(towards=HALF_WAY).solve(sample.problem, sample.gram, regularizer, tol=1e-4)
    other = choose_solver("auto", regularizer).solve(sample.problem, sample.gram, regularizer, tol=1e-6)
    assert found.converged
    assert found.state.certificate.primal == pytest.approx(other.state.certificate.primal, rel=2e-4)
    np.testing.assert_allclose(
        found.matrix, np.einsum("m,mij->ij", found.state.weights, sample.Ks), rtol=1e-9, atol=1e-12
    )


def test_planes_stay_below_and_meet_the_optimum():
    problem, gram = graded(6)
    solver, bounds = CuttingPlanes(towards=HALF_WAY), []
    best = choose_solver("auto", LpNorm(p=1)).solve(problem, gram, LpNorm(p=1), tol=1e-7)
    solver.solve(
        problem, gram, LpNorm(p=1), tol=1e-6, callback=lambda *_: bounds.append(solver._lowest.value)
    )
    optimum = best.state.certificate.primal
    assert (np.diff(bounds) >= -1e-9 * optimum).all()  # more planes are never lower
    assert max(bounds) <= optimum * (1 + 1e-7)
    assert bounds[-1] == pytest.approx(optimum, rel=1e-5)


class Lazy(SingleSolver):
    """Returns where it started from, whatever it is asked for."""

    name = "lazy"

    def solve_column(self, K, problem, tol, alpha):
        return Machine(alpha, K @ alpha, 0)


@pytest.mark.parametrize(
    "regularizer", [LpNorm(p=1), LpNorm(p=2), BlockNorm(q=8), ElasticNet(), Wedge(), GroupLassoTerm()]
)
def test_a_run_whose_machines_do_not_improve_ends(draw, regularizer):
    sample = draw(Hinge(), n=30)
    solver = type(choose_solver("auto", regularizer))(single=Lazy())
    with pytest.warns(ConvergenceWarning, match="More of them do not improve it"):
        solution = solver.solve(sample.problem, sample.gram, regularizer, max_iter=5000)
    assert not solution.converged
    assert solution.n_iter <= 2 * (SLOW[0] + STILL[0])


def test_interleaved_steps_hand_over_where_weights_become_zero(draw):
    sample = draw(Hinge(), n=30)
    solver = Interleaved()
    for regularizer, expected in ((LpNorm(p=1), CuttingPlanes), (LpNorm(p=2), type(None))):
        run = Run(solver, sample.problem, sample.gram, regularizer)
        assert isinstance(solver.successor(run), expected)


def test_a_run_stands_still_when_neither_bounds_nor_residual_move():
    watch = Watch()
    watch.seen = [Bracket(2.0, 1.0, 0.5)] * 9
    assert watch.stands_still(0, 8, 0.9)
    assert not watch.stands_still(0, 9, 0.9)  # too few iterates
    assert not watch.stands_still(1, 8, 0.9)
    for better in (Bracket(1.8, 1.0, 0.5), Bracket(2.0, 1.2, 0.5), Bracket(2.0, 1.0, 0.4)):
        watch.seen = [Bracket(2.0, 1.0, 0.5)] * 8 + [better]
        assert not watch.stands_still(0, 8, 0.9)
    watch.seen = [Bracket(1e6, 0.1 * 1.5**k, 1.0) for k in range(9)]  # far from the optimum
    assert not watch.stands_still(0, 8, 0.9)


def test_a_run_without_dual_values_stands_still_when_its_objective_does():
    watch = Watch()
    watch.seen = [Bracket(2.0, -np.inf, 0.5)] * 9
    assert watch.stands_still(0, 8, 0.9)
    watch.seen = [Bracket(2.0 - 1e-6 * k, -np.inf, 0.5) for k in range(9)]
    assert not watch.stands_still(0, 8, 0.9)


def bounded(model, X, y, seconds):
    """Fit, and whether the warnings agree with what is reported."""
    start = time.process_time()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert time.process_time() - start <= seconds
    return [warning for warning in seen if issubclass(warning.category, ConvergenceWarning)]


@pytest.mark.wide
@pytest.mark.parametrize("regularizer", [LpNorm(p=1), LpNorm(p=2)])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", pytest.param("logistic", marks=pytest.mark.slow)])
def test_columns_of_many_scales_end(loss, regularizer):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8)) * np.logspace(-3, 4, 8)
    y = np.where(rng.normal(size=60) + X[:, 3] / X[:, 3].std() > 0, 1, -1)
    kernels = [Linear(), Polynomial(2), RBF()]
    model = kw.MKLClassifier(kernels, loss=loss, regularizer=regularizer, normalize=None)
    told = bounded(model, X, y, 20.0)
    assert (model.dual_gap_ <= model.tol) == (not told)


@pytest.mark.slow
@pytest.mark.parametrize("centers", [2, 3])
def test_a_logarithm_whose_weights_grow_without_end_ends(centers):
    X, y = make_blobs(300, centers=centers, random_state=0)
    model = kw.MKLClassifier([Linear(), RBF()], regularizer=kw.LogTerm())
    told = bounded(model, X, y, 60.0)
    assert all(
        "do not improve" in str(warning.message) or "Rounding" in str(warning.message) for warning in told
    )


@pytest.mark.parametrize("q", [8, np.inf])
def test_block_norms_of_large_q_end(q):
    X, y = make_classification(120, 20, random_state=0)
    kernels = [RBF(gamma=g, columns=[j]) for j in range(20) for g in (0.01, 0.1, 1.0)]
    model = kw.MKLClassifier(kernels, regularizer=BlockNorm(q=q), C=1e3, normalize="trace")
    assert not bounded(model, X, y, 30.0)
    assert model.dual_gap_ <= model.tol


def test_a_block_norm_of_ones_own_of_large_q_ends():
    X, y = make_classification(80, 8, random_state=0)
    rule = FromBlockNorm(lambda x: 0.5 * float((x**4).sum()) ** 0.25)
    model = kw.MKLClassifier([RBF(gamma=g) for g in (0.01, 0.1, 1.0)], regularizer=rule)
    assert not bounded(model, X, y, 30.0)


@pytest.mark.parametrize("regularizer", [LpNorm(p=1.5), BlockNorm(q=4)])
def test_plain_steps_follow_those_that_led_astray(draw, regularizer):
    sample = draw(Hinge(), n=40)
    solver = choose_solver("auto", regularizer)
    plain = solver.successor(None)
    assert type(plain) is type(solver)
    assert plain.memory == 0
    assert plain.successor(None) is None
    assert plain.solve(sample.problem, sample.gram, regularizer, tol=1e-3).converged


def test_one_kernel_needs_one_machine(draw):
    sample = draw(Squared(), M=1)
    solution = choose_solver("auto", Uniform()).solve(sample.problem, sample.gram, Uniform(), tol=1e-8)
    assert solution.n_iter == 1
