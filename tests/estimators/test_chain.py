"""Chains: a point begins with what its neighbours know, and is certified like a fit of its own."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score

import kernelweave as kw
from kernelweave.estimators import _spanned
from kernelweave.estimators._base import Spec
from kernelweave.estimators._chain import Chain, Guide, Mixture, _excess
from kernelweave.estimators._search import FrozenClassifier, FrozenRegressor
from kernelweave.estimators.path import prepare, specs_along
from kernelweave.gram import DenseGram, FeatureSource
from kernelweave.kernels import RBF, Linear
from kernelweave.solvers import growing
from kernelweave.solvers.certificate import certificate

KERNELS = [Linear(), RBF(gamma=0.3), RBF(gamma=3.0)]
COSTS = np.geomspace(0.05, 20.0, 12)
REGULARIZERS = {"p=1": kw.LpNorm(p=1), "p=2": kw.LpNorm(p=2), "elastic net": kw.ElasticNet()}


def chain_of(estimator, X, y, costs=COSTS):
    """A chain that is solved, its results, and what it takes to certify them."""
    prepared = prepare(clone(estimator), X, y, None)
    points = [Spec.of(clone(estimator).set_params(C=C)) for C in costs]
    for point in points[1:]:
        object.__setattr__(point, "regularizer", points[0].regularizer)
    chain = Chain(prepared.dictionary, prepared.problems[0], prepared.spec.C)
    return chain, chain.solve(points)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", REGULARIZERS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared"])
def test_every_certificate_is_that_of_its_definition(binary, regression, loss, name):
    Model, data = (kw.MKLRegressor, regression) if loss == "squared" else (kw.MKLClassifier, binary)
    estimator = Model(KERNELS, loss=loss, regularizer=REGULARIZERS[name])
    chain, found = chain_of(estimator, data.X, data.y)
    assert len(found) == len(COSTS)
    for result, C, rule in zip(found, COSTS, chain.rules, strict=True):
        problem = chain.part.problem.at_cost(C / chain.C)
        state = result.state
        proof = certificate(problem, chain.gram, rule, state.alpha, state.weights)
        assert proof.gap <= estimator.tol
        assert result.converged
        np.testing.assert_allclose(state.certificate.primal, proof.primal, rtol=1e-8)
        np.testing.assert_allclose(state.certificate.dual, proof.dual, rtol=1e-8)


def test_what_no_larger_cost_changes_takes_no_machine():
    """Two classes far apart: all margins are met, and the model at C = 10 is that of every larger C."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.repeat([0, 1], 15)
    X[y == 1] += 10.0
    path = kw.mkl_path(kw.MKLClassifier(KERNELS, tol=1e-6), X, y, values=[1.0, 10.0, 20.0, 50.0])
    assert (path.n_iter[2:] == 0).all()
    np.testing.assert_allclose(path.objective[2:], path.objective[1], rtol=2e-6)
    np.testing.assert_array_equal(path.weights[2:], path.weights[[1, 1]])


@pytest.mark.parametrize("order", [1, -1])
def test_points_between_solved_ones_are_interpolated(regression, order):
    costs = COSTS[::order]
    estimator = kw.MKLRegressor(KERNELS)
    path = kw.mkl_path(estimator, regression.X, regression.y, values=costs)
    assert 3 <= np.count_nonzero(path.n_iter == 0) < len(costs) - 2
    assert (path.dual_gap <= 1e-3).all()
    for k in np.flatnonzero(path.n_iter == 0):
        cold = clone(estimator).set_params(C=costs[k]).fit(regression.X, regression.y)
        np.testing.assert_allclose(path.objective[k], cold.objective_, rtol=2e-3)
        np.testing.assert_allclose(
            path.weights[k], cold.weights_, atol=0.1 * cold.weights_.max()
        )  # 2 sqrt(2 tol)


def test_a_span_asks_the_solver_where_machines_close_nothing(regression, monkeypatch):
    monkeypatch.setattr(_spanned, "MOST_MACHINES", 0)
    path = kw.mkl_path(kw.MKLRegressor(KERNELS), regression.X, regression.y, values=COSTS)
    assert (path.dual_gap <= 1e-3).all()
    flat = kw.mkl_path(kw.MKLRegressor(KERNELS), regression.X, np.ones(len(regression.y)), values=COSTS)
    np.testing.assert_allclose(flat.objective, 0.0, atol=1e-12)


def test_a_guided_span_trains_where_its_guide_did(regression):
    prepared = prepare(kw.MKLRegressor(KERNELS), regression.X, regression.y, None)
    points = specs_along(kw.MKLRegressor(KERNELS), "C", COSTS)
    parts = (prepared.dictionary, prepared.problems[0], prepared.spec.C)
    first = Chain(*parts).solve(points)
    again = Chain(*parts, [Guide.of(found, prepared.dictionary) for found in first]).solve(points)
    trained = [[found.n_iter > 0 for found in chain] for chain in (first, again)]
    assert trained[0] == trained[1]
    assert max(found.state.certificate.gap for found in again) <= 1e-3


def test_costs_in_any_order_and_twice(regression):
    costs = [1.0, 30.0, 1.0, 0.1, 0.1, 5.0]
    estimator = kw.MKLRegressor(KERNELS, tol=1e-6)
    path = kw.mkl_path(estimator, regression.X, regression.y, values=costs)
    assert (path.dual_gap <= 1e-6).all()
    assert path.n_iter[2] == path.n_iter[4] == 0
    np.testing.assert_allclose(path.objective[0], path.objective[2], rtol=2e-6)


def test_sums_that_are_known_are_not_computed_again(binary, monkeypatch):
    calls, combine = [], DenseGram.combine
    monkeypatch.setattr(
        DenseGram, "combine", lambda self, weights: (calls.append(1), combine(self, weights))[1]
    )
    path = kw.mkl_path(kw.MKLClassifier(KERNELS), binary.X, binary.y, values=COSTS)
    assert len(calls) < path.n_iter.sum()


def test_a_mixture_has_the_sum_of_its_weights(binary):
    chain, _ = chain_of(kw.MKLClassifier(KERNELS, loss="logistic"), binary.X, binary.y)
    nodes = [node for node in chain.nodes if node.known.matrix is not None]
    assert len(nodes) == 3
    for some in (nodes[:2], nodes):
        mixture = Mixture(some, 0.3 * some[0].t + 0.7 * some[1].t)
        known = mixture.known(chain.rules[0])
        np.testing.assert_allclose(known.matrix, chain.gram.combine(known.weights), rtol=1e-10)
        assert chain.rules[0].multiple(known.weights) == pytest.approx(1.0, abs=1e-12)
        assert mixture.of(lambda node: np.array([2.0, node.t])) == pytest.approx(
            [2.0, 0.3 * some[0].t + 0.7 * some[1].t]
        )


@pytest.mark.parametrize("name", REGULARIZERS)
def test_other_weights_than_those_of_the_norms_cost_more(name, rng):
    rule, norms = REGULARIZERS[name], rng.uniform(0.5, 2.0, size=4)
    assert abs(_excess(rule, norms, rule.weights(norms))) <= 1e-12
    assert _excess(rule, norms, rule.weights(norms * rng.uniform(0.8, 1.2, size=4))) > 1e-4
    assert _excess(rule, norms, np.array([0.0, 0.1, 0.1, 0.1])) == np.inf


def test_one_first_look_for_all_points_of_a_growing_part(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = (X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=90) > 1).astype(int)
    monkeypatch.setattr(growing, "FEWEST", 60)
    monkeypatch.setattr(growing, "PILOT_SAMPLES", 20)
    looks, pilot_of = [], growing.pilot_of
    monkeypatch.setattr(growing, "pilot_of", lambda *args: (looks.append(1), pilot_of(*args))[1])
    estimator, costs = kw.MKLClassifier(KERNELS, gram="blocked"), [0.1, 0.5, 2.0, 10.0]
    path = kw.mkl_path(estimator, X, y, values=costs)
    assert len(looks) == 1
    assert (path.dual_gap <= 1e-3).all()
    dense = kw.mkl_path(clone(estimator).set_params(gram="dense"), X, y, values=costs)
    np.testing.assert_allclose(path.objective, dense.objective, rtol=2e-3)


def test_some_samples_have_the_kernels_of_all(rng):
    X, rows = rng.normal(size=(12, 3)), np.array([1, 4, 5, 9])
    source = FeatureSource([("a", RBF(gamma="scale")), ("b", Linear())], X)
    part = source.part(rows)
    assert part.n_samples == 4
    assert source.n_samples == 12
    for m in range(2):
        np.testing.assert_allclose(part.train(m), source.train(m)[np.ix_(rows, rows)], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("multilabel", [False, True])
def test_the_score_of_a_fold_is_the_accuracy(rng, multilabel):
    values, weight = rng.normal(size=(20, 3)), rng.uniform(size=20)
    classes = np.arange(3) if multilabel else np.array(["a", "b", "c"])
    frozen = FrozenClassifier(classes, values, multilabel)
    y = (rng.normal(size=(20, 3)) > 0).astype(int) if multilabel else rng.choice(classes, size=20)
    y[:8] = frozen.predict(None)[:8]
    for own in (None, weight):
        expected = accuracy_score(y, frozen.predict(None), sample_weight=own)
        assert frozen.score(None, y, own) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("flat", [False, True])
def test_the_score_of_values_is_that_of_sklearn(rng, outputs, flat):
    y, f = rng.normal(size=(2, 12, outputs))
    y = np.ones_like(y) if flat else y
    for weight in (None, rng.uniform(0.5, 2.0, size=12)):
        for values in (f, y):
            own = FrozenRegressor(values, "squared").score(np.zeros((12, 1)), y, weight)
            np.testing.assert_allclose(own, r2_score(y, values, sample_weight=weight), atol=1e-12)
