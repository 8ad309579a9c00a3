"""The ranking loss: its contract, its limits, a conic solver, and the estimators that take it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

import kernelweave as kw
from kernelweave.gram import DenseGram
from kernelweave.gram.lowrank import FactoredMatrix, StoredFactors
from kernelweave.inspection import drop_one
from kernelweave.kernels import RBF, Linear
from kernelweave.losses import Ranking
from kernelweave.regularizers import LpNorm, Uniform
from kernelweave.report import Report
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import choose_solver
from kernelweave.solvers.single import JointNewton
from kernelweave.testing.losses import joint_contract


def graded(n=40, seed=0, queries=4):
    """Four grades, with queries whose levels differ."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    query = np.arange(n) % queries
    score = 2.0 * X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.2 * rng.normal(size=n)
    return X, np.column_stack([np.digitize(score, [-1.0, 0.0, 1.0]) + 10.0 * query, query])


POOLS = {"targets": graded()[1][:, 0], "targets and queries": graded()[1]}


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("loss", [Ranking(), Ranking(delta=0.5)], ids=repr)
@pytest.mark.parametrize("promise", joint_contract.promises, ids=lambda promise: promise.__name__)
def test_contract(loss, promise, pool):
    promise(loss, POOLS[pool])


def by_definition(y, f, weight, v):
    total = 0.0
    for i, (target, query) in enumerate(y):
        for j, (other, its) in enumerate(y):
            if query == its and target > other:
                total += weight[i] * weight[j] * v(1.0 - f[i] + f[j])
    return total


def test_pairs_of_a_query_by_definition():
    rng = np.random.default_rng(0)
    y, f, weight = graded(20)[1], rng.normal(size=20), rng.uniform(0.5, 2.0, 20)
    squared = by_definition(y, f, weight, lambda m: 0.5 * max(m, 0.0) ** 2)
    hinge = by_definition(y, f, weight, lambda m: max(m, 0.0))
    pairs = by_definition(y, f, weight, lambda m: 1.0)
    assert Ranking().value(y, f, weight) == pytest.approx(squared)
    delta = 1e-3
    assert -1e-12 <= hinge - Ranking(delta).value(y, f, weight) / delta <= 0.5 * delta * pairs


def conic_optimum(y, K, C, loss, delta=np.inf):
    """C sum of pairs + 1/2 w'w in cvxpy."""
    cp = pytest.importorskip("cvxpy")
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-12 * values[-1]
    w = cp.Variable(int(kept.sum()))
    f = (vectors[:, kept] * np.sqrt(values[kept])) @ w
    pairs = [(i, j) for i, a in enumerate(y) for j, b in enumerate(y) if a[1] == b[1] and a[0] > b[0]]
    first, second = map(list, zip(*pairs, strict=True))
    lack = cp.pos(1.0 - f[first] + f[second])
    cost = {
        "squared": lambda: 0.5 * cp.sum_squares(lack),
        "huber": lambda: 0.5 * cp.sum(cp.huber(lack, delta)),
        "hinge": lambda: cp.sum(lack),
    }[loss]()
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10)
    return cp.Problem(cp.Minimize(C * cost + 0.5 * cp.sum_squares(w))).solve(solver=cp.CLARABEL, **tight)


def machine(y, K, C, loss):
    problem = Problem.weighted(loss.targets(y), loss, C, np.ones(len(y)))
    return choose_solver("auto", Uniform()).solve(problem, DenseGram(K[None]), Uniform(), tol=1e-9)


def test_optimum_of_a_conic_solver():
    X, y = graded(24)
    K = RBF(0.3)(X)
    for loss, name in ((Ranking(), "squared"), (Ranking(delta=0.3), "huber")):
        found = machine(y, K, 2.0, loss).state.certificate
        assert found.primal == pytest.approx(conic_optimum(y, K, 2.0, name, loss.delta), rel=1e-6)


def test_a_narrow_width_is_the_pairwise_hinge():
    """P of the hinge is within C delta / 2 per pair of that of v / delta."""
    X, y = graded(16, queries=2)
    K, delta = RBF(0.3)(X), 1e-4
    found = machine(y, K, 0.5 / delta, Ranking(delta)).state.certificate.primal
    pairs = by_definition(y, np.zeros(16), np.ones(16), lambda m: 1.0)
    hinge = conic_optimum(y, K, 0.5, "hinge")
    assert -1e-6 * hinge <= hinge - found <= 0.25 * delta * pairs + 1e-6 * hinge


@pytest.mark.parametrize("factored", [False, True], ids=["dense", "factored"])
@pytest.mark.parametrize(("C", "delta"), [(100.0, np.inf), (1e4, 1e-4)])
def test_kernels_of_low_rank(C, delta, factored):
    """What K sends to zero does not grow in the coefficients until rounding is all there is."""
    X, _ = graded(40)
    y = X[:, 0] + np.sin(2.0 * X[:, 1])  # every pair has an order
    problem = Problem(y[:, None], Ranking(delta), np.full((40, 1), C))
    K = FactoredMatrix(StoredFactors([X]), np.ones(1)) if factored else X @ X.T
    found = JointNewton().solve(K, problem, 1e-12)
    away = X.T @ (found.alpha - problem.alpha_of(found.fitted))
    primal = problem.primal_loss(found.fitted, np.zeros(1)) + 0.5 * np.vdot(found.alpha, found.fitted)
    assert 0.5 * (away**2).sum() <= 1e-11 * primal


def test_estimators_put_samples_in_order():
    X, y = graded(80)
    model = kw.MKLRegressor([Linear(), RBF(0.5)], loss="ranking", C=0.1).fit(X[:60], y[:60])
    assert model.dual_gap_ <= 1e-3
    assert model.predict(X[60:]).shape == (20,)
    assert Ranking().agreement(y[60:], model.predict(X[60:])) > 0.8
    # levels that differ between queries do not matter
    shifted = y.copy()
    shifted[:, 0] += 100.0 * shifted[:, 1]
    again = kw.MKLRegressor([Linear(), RBF(0.5)], loss="ranking", C=0.1).fit(X[:60], shifted[:60])
    assert_array_equal(again.predict(X), model.predict(X))
    one = kw.MKLRegressor([Linear()], loss=Ranking(), C=0.1).fit(X, y[:, 0])
    assert one.intercept_ == 0.0
    scorer = make_scorer(Ranking().agreement)
    assert (
        cross_val_score(kw.MKLRegressor([Linear()], loss="ranking"), X, y, cv=2, scoring=scorer).min() > 0.7
    )


def test_a_learned_kernel_ranks():
    X, y = graded(60)
    weight = np.random.default_rng(1).uniform(0.5, 1.5, 60)
    model = kw.GMKLRegressor(loss="ranking", C=0.5).fit(X, y, sample_weight=weight)
    assert model.stationarity_ <= model.tol
    assert (np.diff(model.history_["objective"]) <= 0).all()
    assert model.history_["objective"][-1] < 0.9 * model.history_["objective"][0]
    assert set(np.argsort(-model.weights_)[:2]) == {0, 1}
    # the value from its definition: no unit of y, case weights of pairs
    K, a = model.kernel_(X, X, model.weights_), model.dual_coef_
    pairs = by_definition(y, K @ a, weight, lambda m: 0.5 * max(m, 0.0) ** 2)
    assert model.objective_ == pytest.approx(0.5 * a @ K @ a + 0.5 * pairs + model.weights_.sum(), rel=1e-8)
    assert model.predict(X).shape == (60,)


def share_in_order(y, f, weight):
    """By definition, ties of f counting half."""
    pairs = by_definition(y, f, weight, lambda m: 1.0)
    return by_definition(y, f, weight, lambda m: np.heaviside(1.0 - m, 0.5)) / pairs


@pytest.mark.parametrize("queries", [False, True], ids=["targets", "targets and queries"])
@pytest.mark.parametrize("model", [kw.MKLRegressor([Linear(), RBF(0.5)]), kw.GMKLRegressor(tol=0.1)])
def test_the_score_is_the_share_of_pairs_in_order(model, queries):
    X, y = graded(40)
    if not queries:
        y[:, 1] = 0.0
    given = y if queries else y[:, 0]
    weight = np.random.default_rng(1).integers(0, 3, 20)
    model = clone(model).set_params(loss="ranking", C=10.0).fit(X[:20], given[:20])
    f = np.round(model.predict(X[20:]), 12)
    assert model.score(X[20:], given[20:]) == pytest.approx(share_in_order(y[20:], f, np.ones(20)))
    found = model.score(X[20:], given[20:], sample_weight=weight)
    assert found == pytest.approx(share_in_order(y[20:], f, weight))
    # case weights are copies
    assert found == pytest.approx(
        model.score(np.repeat(X[20:], weight, axis=0), np.repeat(given[20:], weight, axis=0))
    )
    if not queries:
        assert model.score(X[20:], y[20:, :1]) == model.score(X[20:], given[20:])


@pytest.mark.parametrize("queries", [False, True], ids=["targets", "targets and queries"])
def test_searches_choose_by_the_share_of_pairs_in_order(queries):
    X, y = graded(40)
    y, groups, Cs = y if queries else y[:, 0], graded(40)[1][:, 1], [1e-3, 0.1]
    model = kw.MKLRegressor([Linear(), RBF(0.5)], loss="ranking", normalize=None, tol=1e-6)
    plain = GridSearchCV(model, {"C": Cs}, cv=GroupKFold(2)).fit(X, y, groups=groups)
    search = kw.MKLRegressorCV(
        [Linear(), RBF(0.5)], loss="ranking", normalize=None, tol=1e-6, Cs=Cs, cv=GroupKFold(2)
    ).fit(X, y, groups=groups)
    assert_allclose(search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])
    assert search.best_params_["C"] == plain.best_params_["C"]
    for found in (plain, search):
        assert found.score(X, y) == Ranking().agreement(y, found.predict(X))
    assert drop_one(search, X, y).full_score == pytest.approx(search.score(X, y))
    scorer = make_scorer(Ranking().agreement)
    assert_allclose(cross_val_score(model, X, y, cv=2), cross_val_score(model, X, y, cv=2, scoring=scorer))


def test_a_report_says_that_it_shows_no_order():
    X, y = graded(20)
    for targets in (y, y[:, 0]):
        model = kw.MKLRegressor([Linear()], loss="ranking").fit(X, targets)
        with pytest.raises(ValueError, match=r"not the order that loss='ranking' learns: use model\.score"):
            Report.from_model(model, X, targets, stability=False)


@pytest.mark.parametrize("model", [kw.MKLRegressor(), kw.GMKLRegressor(), kw.MKLRegressorCV()])
def test_targets_without_a_pair_are_refused(model):
    X, y = graded(20)
    model = clone(model).set_params(loss="ranking")
    own_query = np.column_stack([y[:, 0], np.arange(20)])
    for targets in (own_query, own_query[:, ::-1] * [0, 1], np.ones(20), np.column_stack([y[:, 1], y[:, 1]])):
        with pytest.raises(ValueError, match=r"y has no pair that Ranking could compare.*pass targets"):
            model.fit(X, targets)
    with pytest.raises(ValueError, match="y has no pair"):  # of the samples that count
        model.fit(X, np.arange(20.0), sample_weight=np.eye(20)[3])
    for queries in (np.char.add("q", (y[:, 1]).astype(int).astype(str)), ["a", "b"] * 10):
        for targets in (
            np.column_stack([y[:, 0], queries]),
            np.array(list(zip(y[:, 0], queries, strict=True)), dtype=object),
        ):
            with pytest.raises(ValueError, match=r"^y holds '\w+' .* queries of a ranking: number them"):
                model.fit(X, targets)


def test_bad_targets_and_widths():
    X, y = graded(20)
    with pytest.raises(ValueError, match="y has 3 columns: Ranking takes a target"):
        kw.MKLRegressor(loss="ranking").fit(X, np.column_stack([y, y[:, 0]]))
    with pytest.raises(ValueError, match=r"Ranking: delta=0 must be"):
        kw.GMKLRegressor(loss=Ranking(delta=0)).fit(X, y)
    with pytest.raises(ValueError, match="loss='ranking' is not for MKLClassifier"):
        kw.MKLClassifier(loss="ranking").fit(X, y[:, 1])
    assert np.isnan(Ranking().agreement([1.0, 1.0], [0.0, 1.0]))
    assert_allclose(Ranking().agreement([1.0, 2.0], [0.0, 0.0]), 0.5)


def test_convex_regularisers_are_certified():
    X, y = graded(30)
    Ks = np.array([np.exp(-(np.subtract.outer(x, x) ** 2)) for x in X.T])
    problem = Problem.weighted(Ranking().targets(y), Ranking(), 1.0, np.ones(30))
    found = choose_solver("auto", LpNorm(p=1)).solve(problem, DenseGram(Ks), LpNorm(p=1), tol=1e-6)
    assert found.converged
    assert found.state.weights.argmax() == 0
