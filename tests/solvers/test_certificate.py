"""The certificate: two bounds around the optimum, for any feasible alpha and any weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.gram import DenseGram
from kernelweave.losses import LOSSES, EpsInsensitive, Huber, OneClass, Squared
from kernelweave.regularizers import REGULARIZERS, LpNorm, Uniform
from kernelweave.solvers import Problem, best_intercept, certificate
from kernelweave.solvers.certificate import check_squares, relative

from ..targets import SEPARABLE

ORDERS = [1.0, 32 / 31, 4 / 3, 2.0, 4.0, np.inf]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("p", ORDERS)
def test_values_are_those_of_the_definition(loss, draw, reference, rng, p, fit_intercept):
    sample = draw(loss, n=25, costs=True, outputs=2, fit_intercept=fit_intercept)
    alpha = sample.problem.feasible(rng.normal(size=(25, 2)))
    weights = rng.gamma(1.0, size=8)
    proof = certificate(sample.problem, sample.gram, LpNorm(p=p), alpha, weights)
    primal, dual = reference.bounds(sample, p, alpha, weights, proof.intercept)
    assert proof.primal == pytest.approx(primal, rel=1e-9)
    assert proof.dual == pytest.approx(dual, rel=1e-9)
    assert proof.gap == pytest.approx(reference.gap((primal, dual)), rel=1e-6)
    np.testing.assert_allclose(proof.norms, weights * proof.dual_norms, rtol=1e-12)
    squares = np.einsum("ic,mij,jc->m", alpha, sample.Ks, alpha, optimize=True)
    np.testing.assert_allclose(proof.dual_norms**2, squares, rtol=1e-9)
    K = np.einsum("m,mij->ij", weights, sample.Ks)
    machine = reference.machine_bounds(sample.problem, K, alpha, proof.intercept)
    np.testing.assert_allclose((proof.machine_primal, proof.machine_dual), machine, rtol=1e-9)


def test_what_the_caller_knows_is_used(loss, draw, rng):
    sample = draw(loss, n=20)
    alpha, weights = sample.problem.feasible(rng.normal(size=(20, 1))), np.full(8, 0.3)
    fitted, squares = sample.gram.dot(weights, alpha), sample.gram.quad(alpha)
    gram = sample.gram
    given_all = certificate(sample.problem, gram, LpNorm(), alpha, weights, fitted, squares)
    assert gram.n_passes == 0
    alone = certificate(sample.problem, gram, LpNorm(), alpha, weights)
    assert given_all.gap == pytest.approx(alone.gap, rel=1e-9)


@pytest.mark.parametrize("name", sorted(SEPARABLE))
@pytest.mark.parametrize("rule", [*(cls() for cls in REGULARIZERS.values()), LpNorm(p=1)], ids=repr)
@settings(max_examples=12)  # of every pair
@given(seed=st.integers(0, 10_000), size=st.sampled_from([0.1, 1.0, 10.0]), tied=st.booleans())
def test_weak_duality(name, rule, seed, size, tied):
    """Every primal value is above every dual value, whichever points they are taken at."""
    rng, loss = np.random.default_rng(seed), LOSSES[name]()
    n = 8
    y = np.where(np.arange(n)[:, None] % 2 == 0, 1.0, -1.0)
    roots = rng.normal(size=(3, n, 4))
    gram = DenseGram(roots @ roots.transpose(0, 2, 1))
    problem = Problem(y, loss, rng.uniform(0.5, 3.0, size=(n, 1)), tied)
    proofs = []
    for _ in range(3):
        alpha = problem.feasible(size * rng.normal(size=(n, 1)))
        proofs.append(certificate(problem, gram, rule, alpha, rng.gamma(0.5, size=3)))
    highest, lowest = max(proof.dual for proof in proofs), min(proof.primal for proof in proofs)
    assert lowest >= highest - 1e-9 * (1.0 + abs(lowest) + abs(highest))
    for proof in proofs:
        assert proof.machine_gap >= -1e-9 * (1.0 + abs(proof.machine_dual))


def few_kernels(count):
    return DenseGram([np.eye(2)] * count), np.array([[1.0], [-1.0]])


def test_negative_squares_name_the_kernel():
    with pytest.raises(ValueError, match=r"kernel 1 is not positive semidefinite: alpha' K alpha = -0\.5"):
        check_squares(np.array([1.0, -0.5, 2.0]), *few_kernels(3))


def test_rounding_below_zero_is_removed():
    np.testing.assert_array_equal(check_squares(np.array([1.0, -1e-9]), *few_kernels(2)), [1.0, 0.0])
    np.testing.assert_array_equal(check_squares(np.zeros(2), *few_kernels(2)), [0.0, 0.0])


def test_rounding_around_zero_is_no_fault_of_the_kernel(rng):
    x = rng.normal(size=(40, 1))
    gram, alpha = DenseGram([x @ x.T]), rng.normal(size=(40, 1))
    alpha -= x * (x.T @ alpha) / (x.T @ x)
    np.testing.assert_array_equal(check_squares(np.array([-3e-14]), gram, alpha), [0.0])
    with pytest.raises(ValueError, match="not positive semidefinite"):
        check_squares(np.array([-1e-6]), gram, alpha)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_overflow_is_reported(value):
    with pytest.raises(FloatingPointError, match="alpha' K alpha is not finite"):
        check_squares(np.array([1.0, value]), *few_kernels(2))


def test_relative_to_the_size_of_the_value():
    assert relative(1.0, -4.0) == 0.25
    assert relative(0.0, 0.0) == 0.0
    assert relative(1e-30, 0.0) == np.inf
    assert relative(1e-30, 4e-30) == 0.25


def test_misfit_is_what_fenchels_inequality_leaves(loss, draw, rng):
    """Not negative, and zero at alpha = -C V'(f); with a spread, the largest on the way."""
    problem = draw(loss, n=20, costs=True).problem
    f, spread = rng.normal(size=(20, 1)), np.full((20, 1), 0.3)
    feasible = problem.feasible(rng.normal(size=(20, 1)))
    assert (problem.misfit(feasible, f) >= 0.0).all()
    np.testing.assert_allclose(problem.misfit(problem.alpha_of(f), f), 0.0, atol=1e-12)
    near = [problem.misfit(feasible, f + t * spread) for t in np.linspace(-1.0, 1.0, 9)]
    np.testing.assert_allclose(problem.misfit(feasible, f, spread), np.max(near, axis=0), atol=1e-12)


@pytest.mark.parametrize("digits", [1e-7, 1e-4])
def test_predictions_of_few_digits_are_no_certificate(draw, digits, rng):
    """The same number in two ways, alpha' f and sum_m d_m s_m, tells how many digits there are."""
    sample = draw(Squared(), n=30)
    weights = np.full(8, 8**-0.5)
    K = sample.gram.combine(weights)
    alpha = np.linalg.solve(K + np.eye(30) / sample.problem.C, sample.problem.y)
    problem = Problem(sample.problem.y, Squared(), sample.problem.C, fit_intercept=False)
    rule, squares = Uniform(), sample.gram.quad(alpha)
    exact = certificate(problem, sample.gram, rule, alpha, np.ones(8), K @ alpha * 8**0.5, squares)
    rounded = K @ alpha * 8**0.5 * (1.0 + digits)
    rough = certificate(problem, sample.gram, rule, alpha, np.ones(8), rounded, squares)
    assert rough.rounding > 100.0 * exact.rounding
    assert rough.gap >= exact.gap


def test_a_gap_below_zero_is_an_error_and_counts_as_one(draw):
    """A conjugate that is a hundredth too small would have D > P at the optimum."""

    class Wrong(LpNorm):
        def conjugate(self, dual_norms):
            return 0.99 * super().conjugate(dual_norms)

    sample = draw(Squared(), n=30)
    gram, weights = DenseGram(sample.Ks[:1]), np.ones(1)
    alpha = np.linalg.solve(sample.Ks[0] + np.eye(30) / sample.problem.C, sample.problem.y)
    problem = Problem(sample.problem.y, Squared(), sample.problem.C, fit_intercept=False)
    right, wrong = (certificate(problem, gram, rule, alpha, weights) for rule in (LpNorm(), Wrong()))
    assert right.gap <= 1e-10
    assert wrong.gap == pytest.approx(0.01 * LpNorm().conjugate(right.dual_norms) / right.primal, rel=1e-6)
    assert wrong.dual <= wrong.primal


@pytest.mark.parametrize("s", [1e-12, 1.0, 1e12])
def test_alpha_has_to_sum_to_zero_in_any_unit(s):
    problem = Problem(s * np.array([[1.0], [-1.0], [0.5]]), Squared(), np.ones((3, 1)))
    alpha = s * np.array([[1.0], [-1.0], [0.0]])
    assert problem.has_right_sum(alpha)
    assert not problem.has_right_sum(alpha + 1e-6 * s)
    proof = certificate(problem, DenseGram([np.eye(3)]), LpNorm(), alpha + 1e-6 * s, np.ones(1))
    assert proof.gap == np.inf


@pytest.mark.parametrize("s", [1e-12, 1e-6, 1e6, 1e12])
@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("name", ["squared", "huber", "eps_insensitive", "median"])
def test_intercepts_in_any_unit(name, offset, s, rng):
    losses = {
        "squared": lambda s: Squared(),
        "huber": lambda s: Huber(delta=0.3 * s),
        "eps_insensitive": lambda s: EpsInsensitive(eps=0.3 * s),
        "median": lambda s: EpsInsensitive(eps=0.0),
    }
    y, f, C = rng.normal(size=(15, 1)) + offset, rng.normal(size=(15, 1)), rng.uniform(1.0, 2.0, size=(15, 1))
    one = best_intercept(Problem(y, losses[name](1.0), C), f)
    other = best_intercept(Problem(s * y, losses[name](s), C), s * f)
    np.testing.assert_allclose(other / s, one, rtol=1e-9)


def test_the_optimum_of_zero_is_relative_to_what_cancels():
    """x and -x with half the weight each: K alpha = 0, P = D = 0 but for rounding, k = x^2."""
    x = np.array([[0.1], [-0.1], [0.3], [-0.3]])
    problem = Problem(np.zeros((4, 1)), OneClass(), np.ones((4, 1)))
    alpha = np.array([[0.5], [0.5], [0.0], [0.0]])
    proof = certificate(problem, DenseGram([x @ x.T]), LpNorm(), alpha, np.ones(1))
    assert abs(proof.primal) <= 1e-15
    assert proof.scale == pytest.approx(0.01)
    assert 0.0 <= proof.gap <= 1e-12
    # a distance to the origin, however small, is not zero
    near = certificate(problem, DenseGram([x @ x.T + 1e-9]), LpNorm(), alpha, np.ones(1))
    assert near.scale == abs(near.primal) == pytest.approx(0.5e-9, rel=1e-3)
