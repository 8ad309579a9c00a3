"""All solvers end at the optimum that independent methods find."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC, SVR

from kernelweave.losses import EpsInsensitive, Hinge, Logistic, Squared
from kernelweave.regularizers import ElasticNet, LpNorm, Uniform
from kernelweave.solvers import best_intercept
from kernelweave.solvers.multiple import MKL_SOLVERS, Alternating, choose_solver
from kernelweave.solvers.single import Machine, SingleSolver


def solve(sample, regularizer, solver="auto", tol=1e-6, **options):
    chosen = choose_solver(solver, regularizer)
    return chosen.solve(sample.problem, sample.gram, regularizer, tol=tol, max_iter=3000, **options)


def predictions(sample, solution):
    state = solution.state
    return sample.gram.dot(state.weights, state.alpha) + state.certificate.intercept


def least_value(value_and_squares, p, M):
    """min of the machine value J(d) over ||d||_p <= 1, d >= 0, by SLSQP with dJ/dd = -s/2."""

    def value(d):
        J, s = value_and_squares(np.maximum(d, 0.0))
        return J, -0.5 * s

    if p == 1:
        constraint = {"type": "ineq", "fun": lambda d: 1 - d.sum(), "jac": lambda d: -np.ones(M)}
    else:
        constraint = {
            "type": "ineq",
            "fun": lambda d: 1 - (np.abs(d) ** p).sum(),
            "jac": lambda d: -p * np.abs(d) ** (p - 1),
        }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # SLSQP clips its own steps to the bounds
        found = minimize(
            value,
            np.full(M, 0.9 * M ** (-1.0 / p)),
            jac=True,
            bounds=[(0.0, 1.0)] * M,
            constraints=[constraint],
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
    return found.fun, found.x


@pytest.mark.parametrize("p", [1.0, 32 / 31, 4 / 3, 2.0, 4.0])
def test_squared_loss_against_slsqp_on_the_closed_form(draw, p):
    """Without intercept J(d) = 1/2 y' (K_d + I/C)^-1 y."""
    sample = draw(Squared(), n=30, M=6, fit_intercept=False)
    y = sample.problem.y[:, 0]

    def machine(d):
        alpha = np.linalg.solve(np.einsum("m,mij->ij", d, sample.Ks) + np.eye(30), y)
        return 0.5 * float(y @ alpha), np.einsum("i,mij,j->m", alpha, sample.Ks, alpha)

    least, d = least_value(machine, p, 6)
    solution = solve(sample, LpNorm(p=p), tol=1e-8)
    assert solution.state.certificate.primal == pytest.approx(least, rel=1e-6)
    np.testing.assert_allclose(solution.state.weights, d, atol=2e-3)


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0])
def test_hinge_loss_against_slsqp_around_svc(draw, p):
    sample = draw(Hinge(), n=40, M=5)
    y = sample.problem.y[:, 0]

    def machine(d):
        K = np.einsum("m,mij->ij", d, sample.Ks)
        svc = SVC(C=1.0, kernel="precomputed", tol=1e-8).fit(K, y)
        alpha = np.zeros(40)
        alpha[svc.support_] = svc.dual_coef_[0]
        return float(np.abs(alpha).sum() - 0.5 * alpha @ K @ alpha), np.einsum(
            "i,mij,j->m", alpha, sample.Ks, alpha
        )

    least, _ = least_value(machine, p, 5)
    solution = solve(sample, LpNorm(p=p))
    assert solution.state.certificate.primal == pytest.approx(least, rel=1e-4)
    assert solution.state.certificate.dual <= least * (1 + 1e-9)


@pytest.mark.parametrize("p", [4 / 3, 2.0, 4.0])
def test_logistic_loss_against_descent_in_feature_space(draw, p):
    """P over the components themselves, f_m = L_m beta_m with K_m = L_m L_m', n_m = |beta_m|."""
    sample = draw(Logistic(), n=30, M=4)
    y, q = sample.problem.y[:, 0], 2 * p / (p + 1)
    roots = [u * np.sqrt(np.maximum(s, 0.0)) for s, u in map(np.linalg.eigh, sample.Ks)]

    def primal(z):
        beta, b = z[:-1].reshape(4, 30), z[-1]
        f = sum(L @ part for L, part in zip(roots, beta, strict=True)) + b
        n = np.sqrt((beta**2).sum(axis=1) + 1e-16)
        size = (n**q).sum()
        slope = -y / (1 + np.exp(y * f))
        outer = size ** (2 / q - 1) * n ** (q - 2)
        grad = [L.T @ slope + c * part for L, c, part in zip(roots, outer, beta, strict=True)]
        value = np.logaddexp(0, -y * f).sum() + 0.5 * size ** (2 / q)
        return value, np.append(np.concatenate(grad), slope.sum())

    start = 0.1 * np.random.default_rng(0).normal(size=121)
    found = minimize(
        primal, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-9}
    )
    solution = solve(sample, LpNorm(p=p), tol=1e-8)
    assert solution.state.certificate.primal == pytest.approx(found.fun, rel=1e-5)


@pytest.mark.parametrize("memory", [0, 2, 5])
def test_acceleration_does_not_change_the_optimum(draw, loss, memory):
    sample = draw(loss, n=40)
    for p in (4 / 3, 2.0, 4.0):
        plain = solve(sample, LpNorm(p=p), Alternating(memory=memory), tol=1e-5)
        best = solve(sample, LpNorm(p=p), tol=1e-8)
        assert plain.converged
        primal, dual = plain.state.certificate.primal, best.state.certificate.dual
        assert primal == pytest.approx(best.state.certificate.primal, rel=1e-5)
        assert primal >= dual - 1e-9 * abs(dual)


@pytest.mark.parametrize("ratio", [0.05, 0.5, 0.95])
def test_a_bounded_elastic_net_selects(draw, loss, ratio):
    """n_m = (r_m - a S)_+ / (1 - a) with S = sum_m n_m: kernels of small dual norm have no weight at all."""
    sample, rule = draw(loss, n=40, M=8), ElasticNet(ratio, form="constraint")
    found = solve(sample, rule, tol=1e-9)
    assert found.converged
    proof, level = found.state.certificate, ratio * found.state.certificate.norms.sum()
    np.testing.assert_allclose(
        (1 - ratio) * proof.norms,
        np.maximum(proof.dual_norms - level, 0.0),
        atol=1e-3 * proof.dual_norms.max(),
    )
    without = found.state.weights == 0.0
    assert (proof.dual_norms[without] <= level * (1 + 1e-3)).all()
    plain = solve(sample, rule, Alternating(memory=0), tol=1e-3)
    assert plain.state.certificate.primal == pytest.approx(proof.primal, rel=2e-3)


def test_solvers_agree_on_the_simplex(draw, loss):
    sample = draw(loss, n=40, M=5)
    newton = solve(sample, LpNorm(p=1), tol=1e-8)
    plain = solve(sample, LpNorm(p=1), Alternating(memory=0), tol=1e-4)
    for solution in (newton, plain):
        assert solution.converged
    assert plain.state.certificate.primal == pytest.approx(newton.state.certificate.primal, rel=1e-4)


class LIBSVM(SingleSolver):
    """The machine of the hinge loss by scikit-learn, which has no part in SMO."""

    name = "libsvm"
    requires = ("linear_dual",)

    def solve_column(self, K, problem, tol, alpha):
        model = SVC(kernel="precomputed", C=1.0, tol=1e-9)
        model.fit(K, problem.y[:, 0], sample_weight=problem.C[:, 0])
        alpha = np.zeros(problem.shape)
        alpha[model.support_, 0] = model.dual_coef_.ravel()
        alpha = problem.feasible(alpha)
        return Machine(alpha, K @ alpha, int(np.max(model.n_iter_)))


def test_single_solvers_are_interchangeable(draw):
    sample = draw(Hinge())
    by_smo, by_libsvm = (
        solve(sample, LpNorm(p=2), Alternating(single=single), tol=1e-5) for single in ("smo", LIBSVM())
    )
    np.testing.assert_allclose(by_smo.state.weights, by_libsvm.state.weights, atol=1e-2)
    objective = by_smo.state.certificate.primal
    assert objective == pytest.approx(by_libsvm.state.certificate.primal, rel=2e-5)


def test_infinite_p_is_the_uniform_sum(draw, loss):
    sample = draw(loss)
    limit, uniform = solve(sample, LpNorm(p=np.inf)), solve(sample, Uniform())
    np.testing.assert_array_equal(limit.state.weights, np.ones(8))
    np.testing.assert_array_equal(limit.state.weights, uniform.state.weights)
    np.testing.assert_allclose(predictions(sample, limit), predictions(sample, uniform), atol=1e-6)
    assert limit.state.certificate.primal == pytest.approx(uniform.state.certificate.primal, rel=1e-9)


def test_uniform_is_scikit_learn_on_the_sum_of_kernels(draw):
    sample = draw(Hinge(), C=0.5)
    ours = predictions(sample, solve(sample, Uniform(), tol=1e-8))
    K = sample.Ks.sum(axis=0)
    svc = SVC(C=0.5, kernel="precomputed", tol=1e-8).fit(K, sample.problem.y[:, 0])
    np.testing.assert_allclose(ours[:, 0], svc.decision_function(K), atol=1e-4)
    sample = draw(EpsInsensitive(), C=0.5)
    ours = predictions(sample, solve(sample, Uniform(), tol=1e-8))
    svr = SVR(C=0.5, kernel="precomputed", tol=1e-8).fit(K, sample.problem.y[:, 0])
    np.testing.assert_allclose(ours[:, 0], svr.predict(K), atol=1e-4)


def test_permuting_kernels_permutes_weights(draw, rng, loss, p):
    sample, order = draw(loss, n=40), rng.permutation(8)
    first = solve(sample, LpNorm(p=p))
    second = solve(sample._replace(Ks=sample.Ks[order]), LpNorm(p=p))
    np.testing.assert_allclose(second.state.weights, first.state.weights[order], atol=1e-2)
    primal = first.state.certificate.primal
    assert second.state.certificate.primal == pytest.approx(primal, rel=2e-6, abs=1e-9)


def test_permuting_samples_permutes_predictions(draw, rng, loss):
    sample, order = draw(loss, n=40), rng.permutation(40)
    moved = type(sample.problem)(sample.problem.y[order], loss, sample.problem.C[order])
    first = solve(sample, LpNorm(p=2), tol=1e-8)
    second = solve(type(sample)(moved, sample.Ks[:, order][:, :, order]), LpNorm(p=2), tol=1e-8)
    moved_sample = type(sample)(moved, sample.Ks[:, order][:, :, order])
    np.testing.assert_allclose(
        predictions(moved_sample, second), predictions(sample, first)[order], atol=1e-3
    )


def test_optimal_weights_are_those_of_their_norms(draw, loss, p):
    """The fixed point of MATH.md section 2: d = weights(n), n_m = d_m r_m."""
    sample = draw(loss, n=40)
    state = solve(sample, LpNorm(p=p)).state
    np.testing.assert_allclose(LpNorm(p=p).weights(state.certificate.norms), state.weights, atol=1e-2)


def test_the_simplex_gives_exact_zeros(draw):
    sample = draw(Hinge(), C=0.3)
    state = solve(sample, LpNorm(p=1)).state
    assert (state.weights == 0).any()
    s = sample.gram.quad(state.alpha)
    assert s.max() <= s[state.weights > 1e-3].min() * (1 + 1e-2)  # complementary slackness


def test_the_intercept_is_the_best_one(draw, loss):
    sample = draw(loss)
    state = solve(sample, LpNorm(p=2)).state
    f = sample.gram.dot(state.weights, state.alpha)
    np.testing.assert_allclose(state.certificate.intercept, best_intercept(sample.problem, f), atol=1e-6)


def test_auto_takes_the_first_that_is_meant(p):
    chosen = choose_solver("auto", LpNorm(p=p))
    meant = [cls for cls in MKL_SOLVERS.values() if cls().can_handle(LpNorm(p=p))]
    assert type(chosen) is meant[0]
    assert isinstance(chosen, Alternating) == (p > 1)


def test_unknown_solvers_are_named():
    with pytest.raises(ValueError, match="solver='magic' is not a solver: pass one of 'alternating'"):
        choose_solver("magic", LpNorm())
