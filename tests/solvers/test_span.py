"""The problem within the span of a few dual points, against the problem itself."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.gram import DenseGram
from kernelweave.losses import Squared
from kernelweave.regularizers import ElasticNet, LpNorm
from kernelweave.solvers import Problem
from kernelweave.solvers.certificate import certificate
from kernelweave.solvers.multiple import choose_solver
from kernelweave.solvers.span import FewSamples, Span

RULES = {"p=1": LpNorm(p=1), "p=2": LpNorm(p=2), "elastic net": ElasticNet()}


@pytest.fixture
def parts(rng):
    """A problem with two outputs and costs of its own for every sample, and matrices for it."""
    x = rng.normal(size=(20, 2))
    squared = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    gram = DenseGram([x @ x.T, np.exp(-squared), np.exp(-0.1 * squared)])
    y = np.column_stack([x[:, 0] + np.sin(2.0 * x[:, 1]), x[:, 1] ** 2])
    return Problem(y, Squared(), rng.uniform(0.5, 2.0, size=(20, 1))), gram


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", RULES)
def test_in_the_span_of_everything_it_is_the_problem(parts, rng, name, fit_intercept):
    problem, gram = parts
    problem = Problem(problem.y, problem.loss, problem.C, fit_intercept=fit_intercept)
    span, rule = Span(problem, gram), RULES[name]
    for _ in range(40):
        span.add(problem.feasible(rng.normal(size=problem.y.shape)))
    assert span.size == (38 if fit_intercept else 40)
    state = span.best(3.0, rule, choose_solver("auto", rule), 1e-6)
    found = choose_solver("auto", rule).solve(problem.at_cost(3.0), gram, rule, 1e-8).state
    assert state.certificate.gap <= 2e-6
    np.testing.assert_allclose(state.certificate.primal, found.certificate.primal, rtol=4e-6)


def test_its_certificate_is_that_of_the_definition(parts):
    problem, gram = parts
    rule, span = LpNorm(p=2), Span(problem, gram)
    for cost in (0.1, 1.0):
        span.add(choose_solver("auto", rule).solve(problem.at_cost(cost), gram, rule).state.alpha)
    state = span.best(0.3, rule, choose_solver("auto", rule))
    proof = certificate(problem.at_cost(0.3), gram, rule, state.alpha, state.weights)
    np.testing.assert_allclose(state.fitted, gram.dot(state.weights, state.alpha), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(state.certificate.dual, proof.dual, rtol=1e-10)
    np.testing.assert_allclose(state.certificate.gap, proof.gap, rtol=1e-6)


def test_a_point_that_is_in_the_span_does_not_widen_it(parts, rng):
    problem, gram = parts
    span, points = Span(problem, gram), problem.feasible(rng.normal(size=problem.y.shape))
    for alpha in (points, -2.0 * points, np.zeros_like(points)):
        span.add(alpha)
    assert span.size == 1


def test_matrices_of_few_samples_are_those_of_the_engine(rng):
    A = rng.normal(size=(3, 4, 4))
    A += A.transpose(0, 2, 1)
    few, dense, alpha = FewSamples(A), DenseGram(A), rng.normal(size=(4, 1))
    some, weights = np.array([2, 0]), np.array([0.5, 0.0, 2.0])
    np.testing.assert_allclose(few.combine(weights), dense.combine(weights))
    np.testing.assert_allclose(few.quad(alpha, some), dense.quad(alpha, some))
    np.testing.assert_allclose(few.products(alpha[:, 0], some, some), dense.products(alpha[:, 0], some, some))
    np.testing.assert_allclose(few.diagonals(), dense.diagonals())


def test_few_samples_have_squares_of_any_number_of_columns_and_products_of_one(rng):
    A = rng.normal(size=(3, 5, 6))
    Ks, alpha = A @ A.transpose(0, 2, 1), rng.normal(size=(5, 2))
    gram = FewSamples(Ks)
    for some in (alpha, alpha[:, :1]):
        squares, products = gram.quad_and_products(some)
        np.testing.assert_allclose(squares, gram.quad(some))
        assert (products is None) == (some.shape[1] > 1)
    np.testing.assert_allclose(products, Ks @ alpha[:, 0])
