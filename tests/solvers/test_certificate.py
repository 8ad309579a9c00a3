"""The certificate: two bounds around the optimum, for any feasible alpha and any weights."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import kernelweave as kw
from kernelweave.gram import DenseGram
from kernelweave.losses import LOSSES, EpsInsensitive, Huber, OneClass, Squared
from kernelweave.regularizers import REGULARIZERS, LpNorm, Uniform
from kernelweave.solvers import Problem, best_intercept, certificate
from kernelweave.solvers.certificate import ZERO, Rounding, check_squares, full_rank_gap, relative, scale_of

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


@pytest.mark.parametrize("gram", ["dense", "packed", "blocked"])
@pytest.mark.parametrize("loss", ["squared", "eps_insensitive"])
def test_single_precision_of_given_matrices_is_no_fault_of_theirs(rng, gram, loss):
    """alpha' K alpha of a matrix of rank one may be below 0 by the rounding of its entries."""
    X = rng.normal(size=(200, 6))
    y = X[:, 1] + 0.5 * rng.normal(size=200)
    Ks = np.array([np.outer(x, x) for x in X.T])
    stack = kw.KernelStack(list(Ks.astype(np.float32)))
    for rule in (kw.Uniform(), kw.LpNorm(p=1), kw.LpNorm(p=2)):
        model = kw.MKLRegressor("precomputed", regularizer=rule, loss=loss, C=100.0, gram=gram)
        assert model.fit(stack, y).dual_gap_ <= 1e-3
        exact = clone(model).fit(kw.KernelStack(list(Ks)), y)
        assert model.objective_ == pytest.approx(exact.objective_, rel=3e-3)
    Ks[2] -= 1e-3 * np.eye(200)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        clone(model).fit(kw.KernelStack(list(Ks.astype(np.float32))), y)


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


# -- what rounding may have done, once more from the definitions ---------------------------------------


def rounding_by_hand(diagonals, weights, alpha, off):
    """u k_i |k a|_1 of K_d, u |k a|_1 |k a|_2 of every kernel, and |k a|_1^2, output by output."""

    def lengths(diagonal, column):
        k = np.sqrt(diagonal)
        return float(k @ np.abs(column)), float(np.sqrt((k * column) @ (k * column)))

    own, columns = weights @ diagonals, alpha.T
    sizes = [lengths(own, column) for column in columns]
    unit = max(np.finfo(float).eps, off / sum(one * two for one, two in sizes))
    squares = [sum(np.prod(lengths(diagonal, column)) for column in columns) for diagonal in diagonals]
    of_fitted = unit * np.outer(np.sqrt(own), [one for one, _ in sizes])
    return of_fitted, unit * np.array(squares), sum(one**2 for one, _ in sizes)


def few_samples(rng, n_kernels=3, outputs=2, n=6):
    roots = rng.normal(size=(n_kernels, n, 4)) * np.array([0.5, 2.0, 1.0])[:n_kernels, None, None]
    gram = DenseGram(roots @ roots.transpose(0, 2, 1))
    return gram, rng.gamma(2.0, size=n_kernels), rng.normal(size=(n, outputs))


@pytest.mark.parametrize("off", [0.0, 1e-4, -1e-4])
@pytest.mark.parametrize("known", ["entries", "largest", "largest of all"])
@pytest.mark.parametrize("n_kernels", [1, 2, 3])
def test_rounding_is_that_of_its_definition(rng, n_kernels, known, off):
    """`off` are digits that sum_m d_m s_m and alpha' (K_d alpha) do not share, to either side."""
    gram, weights, alpha = few_samples(rng, n_kernels)
    fitted, products = gram.dot(weights, alpha), float(weights @ gram.quad(alpha))
    diagonals = np.array([gram.diag(unit) for unit in np.eye(n_kernels)])
    if known != "entries":
        largest = diagonals.max(axis=1, keepdims=True)
        largest = largest if known == "largest" else largest.max(axis=0, keepdims=True)
        gram.cached_diagonals = largest
        diagonals = np.broadcast_to(largest, diagonals.shape)
    noise = Rounding.of(gram, weights, alpha, fitted, products + off)
    apart = abs(float(np.vdot(alpha, fitted)) - (products + off))
    of_fitted, of_squares, size = rounding_by_hand(diagonals, weights, alpha, apart)
    np.testing.assert_allclose(noise.of_fitted * np.ones((6, 1)), of_fitted, rtol=1e-9)
    np.testing.assert_allclose(noise.of_squares, of_squares, rtol=1e-9)
    assert noise.size == pytest.approx(size, rel=1e-9)


class Conditional(DenseGram):
    """Says of itself that its matrices are definite for vectors of sum zero alone."""

    conditional = True


@pytest.mark.parametrize("level", [0.0, 1e12, -1e12])  # an intercept costs the predictions digits
@pytest.mark.parametrize("digits", [1e-5, -1e-5])
@pytest.mark.parametrize("engine", [DenseGram, Conditional])
@pytest.mark.parametrize("rule", [LpNorm(p=2, form="penalty"), LpNorm(p=1)], ids=repr)
def test_what_rounding_may_have_done_is_in_the_gap(rng, rule, engine, digits, level):
    drawn, weights, _ = few_samples(rng)
    gram = engine(drawn.combine(unit) for unit in np.eye(3))
    weights = weights / (2.0 * weights.sum())
    problem = Problem(level + rng.normal(size=(6, 1)), Squared(), rng.uniform(1.0, 2.0, size=(6, 1)))
    alpha = problem.feasible(rng.normal(size=(6, 1)))
    fitted, squares = gram.dot(weights, alpha) * (1.0 + digits), gram.quad(alpha)
    proof = certificate(problem, gram, rule, alpha, weights, fitted, squares)
    products = float(weights @ squares)
    diagonals = np.array([gram.diag(unit) for unit in np.eye(3)])
    off = abs(float(np.vdot(alpha, fitted)) - products)
    of_fitted, of_squares, _ = rounding_by_hand(diagonals, weights, alpha, off)
    # 1/2 sum d s + 1/2 h(d) where functions cannot change their weights, Omega(n) otherwise
    conditional = engine is Conditional
    more = 0.5 * float(weights @ of_squares)
    omega = 0.5 * products + 0.5 * rule.price(weights)
    most = omega + more
    if not conditional:
        omega = rule.penalty(weights * np.sqrt(squares))
        most = rule.penalty(weights * np.sqrt(squares + of_squares))
    f = fitted + proof.intercept
    lost = np.minimum(np.finfo(float).eps * np.abs(f), np.abs(fitted))
    misfits = [problem.misfit(alpha, f, spread).sum() for spread in (None, of_fitted + lost)]
    apart = misfits[1] + abs(most + rule.conjugate(np.sqrt(squares + of_squares)) - products)
    assert proof.primal == pytest.approx(problem.primal_loss(fitted, proof.intercept) + omega, rel=1e-12)
    assert proof.gap * proof.scale == pytest.approx(proof.primal - (proof.primal - apart), rel=1e-9)
    assert proof.rounding * proof.scale == pytest.approx(misfits[1] - misfits[0] + more, rel=1e-9)


def test_a_gap_that_rounding_made_is_told_from_a_gap(draw):
    sample = draw(Squared(), n=20)
    proof = certificate(sample.problem, sample.gram, LpNorm(), np.zeros((20, 1)), np.ones(8))
    fates = {(1.0, 0.95): True, (1.0, 0.85): False, (0.0, 0.0): False, (1.0, 1.0): True}
    assert {key: replace(proof, gap=key[0], rounding=key[1]).is_rounding for key in fates} == fates


def test_what_the_gap_is_relative_to():
    fixed = Problem(np.zeros((2, 1)), OneClass(), np.ones((2, 1)))
    size = 100.0
    for primal, dual in [(ZERO * size, 0.0), (0.0, -ZERO * size), (5e-11, 1e-11)]:
        assert scale_of(fixed, primal, dual, size) == size  # nothing but rounding
    for primal, dual in [(-1.0, 0.0), (0.5, -1.0), (0.0, -1.0), (2.0 * ZERO * size, 0.0)]:
        assert scale_of(fixed, primal, dual, size) == abs(primal)
    free = Problem(np.ones((2, 1)), Squared(), np.ones((2, 1)))
    assert scale_of(free, -1e-30, -1e-30, size) == 1e-30


@pytest.mark.parametrize(
    ("primal", "dual", "scale"),
    [
        (4.0, -10.0, 1.0),  # P - C least
        (4.0, 4.75, 0.25),  # C L(0) - D
        (4.0, 5.0, 1e-4),  # nothing to be gained
        (2.5, -10.0, 0.5),  # rounding took P below C least
    ],
)
def test_what_the_gap_is_relative_to_where_samples_are_coupled(primal, dual, scale):
    problem = SimpleNamespace(loss=SimpleNamespace(alpha_sum=0.0, separable=False), floor=3.0, ceiling=5.0)
    assert scale_of(problem, primal, dual, 1.0) == pytest.approx(scale)


@pytest.mark.parametrize("outputs", [1, 2])
def test_how_far_below_zero_is_rounding(outputs):
    """A share of 1e-12 (1e-6 where matrices are rounded or centred) of sum_ij |a_i a_j| k_i k_j."""
    gram, alpha = DenseGram([0.25 * np.eye(2)]), np.tile([[5.0], [-1.0]], outputs)
    most = 1e-12 * outputs * (0.5 * 5.0 + 0.5 * 1.0) ** 2
    np.testing.assert_array_equal(check_squares(np.array([-most]), gram, alpha), [0.0])
    with pytest.raises(ValueError, match="not positive semidefinite"):
        check_squares(np.array([-1.01 * most]), gram, alpha)
    gram.centred = True
    np.testing.assert_array_equal(check_squares(np.array([-0.99e6 * most]), gram, alpha), [0.0])
    with pytest.raises(ValueError, match="not positive semidefinite"):
        check_squares(np.array([-1.01e6 * most]), gram, alpha)


def test_a_millionth_of_the_largest_square_below_zero_is_rounding():
    np.testing.assert_array_equal(check_squares(np.array([1.0, -1e-6]), *few_kernels(2)), [1.0, 0.0])
    with pytest.raises(ValueError, match="kernel 1 is not positive"):
        check_squares(np.array([1.0, -1.01e-6]), *few_kernels(2))


@pytest.mark.parametrize("scale", [0.01, 1.0])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_gap_of_kernels_that_were_approximated(draw, reference, rng, ridge, scale):
    """Z Z' + ridge I in the place of Z Z': the bound is P of the one and D of the other, by definition."""
    sample = draw(EpsInsensitive(eps=0.1), n=20, costs=True)
    problem, rule = sample.problem, LpNorm(p=2)
    alpha, weights = problem.feasible(scale * rng.normal(size=(20, 1))), rng.gamma(1.0, size=8)
    fitted, squares = sample.gram.dot(weights, alpha), sample.gram.quad(alpha)
    proof = certificate(problem, sample.gram, rule, alpha, weights, fitted, squares)
    assert abs(proof.intercept[0]) > 1e-3
    state = SimpleNamespace(alpha=alpha, squares=squares, certificate=proof, fitted=fitted)
    missing = np.full(8, ridge * float((alpha**2).sum()))
    gap = full_rank_gap(problem, rule, state, missing)
    dual = reference.dual(problem, alpha) - rule.conjugate(np.sqrt(squares + missing))
    assert gap == pytest.approx((proof.primal - dual) / proof.scale, rel=1e-9)
    state.squares = np.append(squares[:-1], -1e-30)  # what rounding leaves of a kernel that alpha avoids
    assert full_rank_gap(problem, rule, state, missing) <= gap
    assert np.isnan(full_rank_gap(problem, rule, state, np.full(8, np.inf)))  # nothing is known
    assert np.isnan(full_rank_gap(problem, rule, state, np.append(missing[1:], np.inf)))  # or not all
