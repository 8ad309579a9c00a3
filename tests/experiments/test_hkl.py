"""Hierarchical multiple kernel learning of the experiments, against a conic solver on small grids."""

from __future__ import annotations

import importlib
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.special import comb

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture
def hkl(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    return importlib.import_module("_hkl").HKL


def labelled(p=3, n=40, seed=0):
    """A product of two features decides."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.where(X[:, 0] * X[:, 1] + 0.5 * X[:, 0] + 0.1 * rng.normal(size=n) > 0, "b", "a")


def every_node(p, degree):
    return list(product(range(degree + 1), repeat=p))


def optimum(X, y, C, degree, growth, root, loss):
    """The problem over all nodes, as it is defined."""
    cp = pytest.importorskip("cvxpy")
    nodes = np.array(every_node(X.shape[1], degree))
    depth = nodes.sum(axis=1)
    delta = np.where(depth > 0, growth**depth, root)
    Z = np.sqrt(comb(degree, nodes).prod(axis=1)) * (X[:, None] ** nodes).prod(axis=2)
    w, b = cp.Variable(len(nodes)), cp.Variable()
    margin = cp.multiply(np.where(y == "b", 1.0, -1.0), Z[:, 1:] @ w[1:] + b)
    cost = cp.sum(cp.logistic(-margin) if loss == "logistic" else cp.pos(1 - margin))
    after = [np.flatnonzero((nodes >= node).all(axis=1)) for node in nodes]
    norm = sum(d * cp.norm(w[rows]) for d, rows in zip(delta, after, strict=True))
    return cp.Problem(cp.Minimize(C * cost + 0.5 * cp.square(norm))).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize(("loss", "growth"), [("logistic", 2.0), ("hinge", 1.5)])
def test_the_gap_brackets_the_optimum_over_all_kernels(hkl, loss, growth):
    X, y = labelled(2)
    model = hkl(C=0.5, degree=2, growth=growth, root=0.5, loss=loss, tol=1e-3).fit(X, y)
    best = optimum(X, y, 0.5, 2, growth, 0.5, loss)
    assert model.gap_ <= 1e-3
    assert best * (1.0 - 1e-6) <= model.objective_ <= best / (1.0 - model.gap_) * (1.0 + 1e-6)
    assert np.abs(model.coefficients_).max() > 0


def test_a_hull_that_is_held_small_says_how_far_it_may_be(hkl):
    X, y = labelled(3)
    model = hkl(C=5.0, degree=2, growth=1.5, max_kernels=4).fit(X, y)
    best = optimum(X, y, 5.0, 2, 1.5, 0.1, "logistic")
    assert len(model.hull_) == 4
    assert model.objective_ * (1.0 - model.gap_) <= best * (1.0 + 1e-6)
    assert model.gap_ > 1e-2


def test_without_a_certificate_the_same_optimum_is_found(hkl):
    X, y = labelled(3, 60)
    whole, quick = (hkl(C=5.0, degree=2, growth=2.0, tol=1e-3, certified=c).fit(X, y) for c in (True, False))
    assert len(quick.hull_) <= len(whole.hull_)
    assert quick.objective_ == pytest.approx(whole.objective_, rel=2e-3)


def test_products_come_after_their_factors(hkl):
    X, y = labelled(4, 80)
    model = hkl(C=10.0, degree=2, growth=2.0).fit(X, y)
    chosen = set(model.hull_)
    for node in chosen:
        for k in np.flatnonzero(node):
            assert (*node[:k], node[k] - 1, *node[k + 1 :]) in chosen
    assert (1, 1, 0, 0) in chosen
    assert (model.predict(X) == y).mean() > 0.9
    assert set(np.argsort(-model.feature_importances_)[:2]) == {0, 1}


def test_the_bound_of_what_is_not_formed_is_the_sum_over_it(hkl, monkeypatch):
    X, _ = labelled(3, 12)
    alpha, start = np.random.default_rng(1).normal(size=12), (1, 0, 1)
    module = importlib.import_module("_hkl")
    for growth, safe in (
        (3.0, 1e-3),
        (0.5, 1e-3),
        (3.0, np.inf),
    ):  # products divided by factors, or made anew
        monkeypatch.setattr(module, "SAFE", safe)
        total, model = 0.0, hkl(degree=2)
        for node in every_node(3, 2):
            if all(n >= s for n, s in zip(node, start, strict=True)):
                between = product(*(range(s, n + 1) for s, n in zip(start, node, strict=True)))
                model.hull_ = [node]
                cost = sum(growth ** sum(v) for v in between)
                total += (model._features(X)[:, 0] @ alpha) ** 2 / cost**2
        found = module.Grid(X, 2, growth)
        assert found.roots[1] == (safe < 1)
        assert found.bound(alpha, start) == pytest.approx(total)
