"""Solvers to compare with: semi-infinite programs by cutting planes, and the conic program."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.losses import EpsInsensitive, Hinge, Logistic, OneClass, Squared
from kernelweave.regularizers import BlockNorm, ElasticNet, LpNorm, Mahalanobis, Wedge
from kernelweave.solvers.multiple import QCQP, CuttingPlanes, choose_solver
from kernelweave.solvers.multiple.cutting_planes import Planes
from kernelweave.solvers.multiple.newton_weights import Coordinates

COSTS = np.geomspace(0.5, 2.0, 6)
SMOOTH = [LpNorm(p) for p in (8 / 7, 4 / 3, 2.0, 4.0, np.inf)]
SMOOTH += [LpNorm(1.5, costs=COSTS), LpNorm(2.0, form="penalty"), BlockNorm(1.5), BlockNorm(2.0)]
LINEAR = [LpNorm(1.0), LpNorm(1.0, costs=COSTS), LpNorm(1.0, form="penalty"), ElasticNet(1.0), Wedge()]
TIED = [LpNorm(1.0), *(ElasticNet(a, form="constraint") for a in (0.2, 0.7, 1.0)), Wedge(form="constraint")]

each_loss = pytest.mark.parametrize(
    "loss", [Hinge(), EpsInsensitive(), OneClass(), Squared(), Logistic()], ids=lambda loss: loss.name
)


def optimum(sample, rule, tol=1e-7):
    found = choose_solver("auto", rule).solve(sample.problem, sample.gram, rule, tol=tol, max_iter=2000)
    return found.state.certificate.primal


# -- cutting planes -----------------------------------------------------------------------------


@pytest.mark.sampled(4)
@each_loss
@pytest.mark.parametrize("rule", SMOOTH, ids=repr)
def test_planes_find_weights_that_are_not_zero(draw, reference, loss, rule):
    sample = draw(loss, n=30, M=6)
    found = CuttingPlanes().solve(sample.problem, sample.gram, rule, tol=1e-6)
    assert found.converged
    assert found.state.certificate.primal == pytest.approx(optimum(sample, rule), rel=2e-6)


@pytest.mark.parametrize("rule", TIED, ids=repr)
def test_planes_find_weights_on_a_simplex(draw, rule):
    sample = draw(Hinge(), n=25, M=4)
    found = choose_solver("silp", rule).solve(sample.problem, sample.gram, rule, tol=1e-4)
    assert found.converged
    assert found.state.certificate.primal == pytest.approx(optimum(sample, rule), rel=2e-4)


@pytest.mark.parametrize("towards", [0.5, 1.0])
@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0])
def test_the_bound_rises_to_the_optimum(draw, p, towards):
    """The value of the program with the planes so far is a lower bound, and the constraints only grow."""
    sample, rule, bounds = draw(Hinge(), n=25, M=4), LpNorm(p), []
    solver = CuttingPlanes(towards=towards)
    told = lambda *_: bounds.append(solver._lowest.value)  # noqa: E731
    solver.solve(sample.problem, sample.gram, rule, tol=1e-4, callback=told)
    best = optimum(sample, rule)
    assert (np.diff(bounds) >= -1e-8 * best).all()
    assert bounds[-1] <= best * (1 + 1e-7)
    assert bounds[-1] == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("rule", SMOOTH, ids=repr)
def test_the_program_of_given_planes(rng, rule):
    """min_d max_k (a_k - g_k'd) + h(d) / 2: no weights do better, and the bound is attained."""
    planes = Planes(Coordinates(np.ones(6)), rule)
    for k in range(8):
        planes.add(
            float(rng.uniform(1.0, 2.0)), rng.gamma(1.0, size=6), np.full((3, 1), float(k)), np.ones(6)
        )
        if k:
            lowest = planes.lowest(1.0, np.ones(6), 1.0)
    a, G = np.array([a for a, _ in planes.values]), np.array([g for _, g in planes.values])

    def value(d):
        return float((a - G @ d).max()) + 0.5 * rule.price(d)

    assert value(lowest.z) == pytest.approx(lowest.value, rel=1e-7)
    for norms in rng.gamma(1.0, size=(20, 6)):
        moved = lowest.z + rng.uniform(0.0, 0.2) * (rule.weights(norms) - lowest.z)
        assert value(moved) >= lowest.value - 1e-9 * abs(lowest.value)
    assert float(lowest.alpha[0, 0]) == pytest.approx(float(planes.shares @ np.arange(8)))


def test_the_first_machine_of_the_linear_program_after_the_start_is_at_a_corner(draw):
    """Sonnenburg et al. (2006): the least value of a linear program on the simplex is at a corner of it."""
    sample, seen = draw(Hinge(), n=30, M=6), []

    class Recorded(CuttingPlanes):
        def next_weights(self, run, state):
            seen.append(super().next_weights(run, state))
            return seen[-1]

    Recorded().solve(sample.problem, sample.gram, LpNorm(1.0), tol=0.1)
    assert np.count_nonzero(seen[0]) == 1


def test_refusals(draw):
    sample = draw(Hinge(), n=10, M=3)
    for rule in (BlockNorm(4.0), Mahalanobis(), Wedge()):
        with pytest.raises(ValueError, match="solver='silp' cannot handle"):
            choose_solver("silp", rule)
    with pytest.raises(ValueError, match=r"towards=0.0 must be above 0 and at most 1"):
        CuttingPlanes(towards=0.0).solve(sample.problem, sample.gram, LpNorm(1.0))


# -- the conic program --------------------------------------------------------------------------


@pytest.mark.sampled(4)
@each_loss
@pytest.mark.parametrize("rule", LINEAR, ids=repr)
def test_the_conic_program_finds_the_optimum(draw, loss, rule):
    pytest.importorskip("cvxpy")
    if loss.name == "logistic" or (rule.homogeneous and loss.alpha_sum):
        pytest.skip("not a quadratic program, or no finite optimum")
    sample = draw(loss, n=20, M=6, costs=True)
    found = QCQP().solve(sample.problem, sample.gram, rule, tol=1e-5)
    assert found.converged
    assert found.state.certificate.primal == pytest.approx(optimum(sample, rule), rel=1e-5)


def test_estimators_agree(rng):
    pytest.importorskip("cvxpy")
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 1.0, 1, -1)
    kernels = [kw.kernels.RBF(gamma=gamma) for gamma in (0.01, 0.1, 1.0)]
    models = [
        kw.MKLClassifier(kernels, regularizer=LpNorm(1.0), solver=solver, tol=1e-5).fit(X, y)
        for solver in ("auto", "silp", "qcqp")
    ]
    for model in models:
        np.testing.assert_allclose(model.weights_, models[0].weights_, atol=1e-3)


def test_without_cvxpy_the_remedy_is_named(draw, monkeypatch):
    sample = draw(Hinge(), n=10, M=3)
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match=r"solver='qcqp' needs cvxpy: .*pip install cvxpy.* solver='auto'"):
        QCQP().solve(sample.problem, sample.gram, LpNorm(1.0))


def test_programs_that_are_not_quadratic_are_refused(draw):
    sample = draw(Logistic(), n=10, M=3)
    with pytest.raises(
        ValueError, match="Logistic has no `linear_dual`, required by QCQP; use solver='auto'"
    ):
        QCQP().solve(sample.problem, sample.gram, LpNorm(1.0))
    for rule in (LpNorm(2.0), ElasticNet(0.5)):
        with pytest.raises(ValueError, match="solver='qcqp' cannot handle"):
            choose_solver("qcqp", rule)
