"""Every convex pair of loss and regulariser against an interior-point solver on the primal itself.

The independent side never sees a kernel weight or a conjugate of ours: components are f_m = Z_m w_m
with K_m = Z_m Z_m', so that n_m = |w_m|, and Omega(n) is written in cvxpy atoms.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import nnls

from kernelweave.losses import LOSSES
from kernelweave.regularizers import BlockNorm, ElasticNet, LpNorm, Mahalanobis, Uniform, Wedge
from kernelweave.solvers.multiple import choose_solver

from ...targets import SEPARABLE

cp = pytest.importorskip("cvxpy")

SAMPLES, KERNELS = 30, 5
COSTS = np.array([0.5, 1.0, 2.0, 1.5, 0.7])


def positive_definite(seed, signs):
    """A random matrix, its entries of either sign or all positive."""
    A = np.random.default_rng(seed).normal(size=(KERNELS, KERNELS))
    return (A if signs else np.abs(A)) @ (A if signs else np.abs(A)).T / KERNELS + 0.2 * np.eye(KERNELS)


RULES = {
    "l1": LpNorm(p=1),
    "l4/3": LpNorm(p=4 / 3),
    "l2": LpNorm(p=2),
    "l4": LpNorm(p=4),
    "l2 with costs": LpNorm(p=2, costs=COSTS),
    "l1 penalty": LpNorm(p=1, form="penalty"),
    "l1.5 penalty": LpNorm(p=1.5, form="penalty"),
    "l2 penalty": LpNorm(p=2, form="penalty"),
    "l1 penalty with costs": LpNorm(p=1, form="penalty", costs=COSTS),
    "uniform": Uniform(),
    **{f"elastic net {a}": ElasticNet(l1_ratio=a) for a in (0.0, 0.1, 0.5, 0.9, 1.0)},
    **{f"block {q}": BlockNorm(q=q) for q in (1, 1.5, 2, 2.5, 3, 4, 8, 16, np.inf)},
    "mahalanobis": Mahalanobis(positive_definite(0, signs=False)),
    "mahalanobis, negative entries": Mahalanobis(positive_definite(1, signs=True)),
    "wedge": Wedge(),
}
OTHER_FORMS = {
    **{f"elastic net {a} constraint": ElasticNet(a, form="constraint") for a in (0.1, 0.5, 0.9, 1.0)},
    "block 1 penalty": BlockNorm(q=1, form="penalty"),
    **{f"block {q} penalty": BlockNorm(q=q, form="penalty") for q in (2.5, 4)},
    "mahalanobis penalty": Mahalanobis(positive_definite(1, signs=True), form="penalty"),
    "wedge constraint": Wedge(form="constraint"),
}
RULES |= OTHER_FORMS
PAIRS = [
    pytest.param(loss, rule, id=f"{loss}-{rule}")
    for loss in sorted(SEPARABLE)
    for rule in RULES
    if not (loss == "one_class" and RULES[rule].homogeneous)
    and (rule not in OTHER_FORMS or loss in ("hinge", "squared"))
]


def roots(Ks):
    """Z_m with K_m = Z_m Z_m', without the directions of no extent."""
    for K in Ks:
        values, vectors = np.linalg.eigh(K)
        kept = values > 1e-13 * values[-1]
        yield vectors[:, kept] * np.sqrt(values[kept])


def losses(problem, f):
    """sum_i C_i V(y_i, f_i), V from MATH.md section 1."""
    y, loss, C = problem.y[:, 0], problem.loss, problem.C[:, 0]
    margin = cp.multiply(y, f)
    each = {
        "hinge": lambda: cp.pos(1 - margin),
        "squared_hinge": lambda: 0.5 * cp.square(cp.pos(1 - margin)),
        "logistic": lambda: cp.logistic(-margin),
        "squared": lambda: 0.5 * cp.square(y - f),
        "eps_insensitive": lambda: cp.pos(cp.abs(y - f) - loss.eps),
        "huber": lambda: 0.5 * cp.huber(y - f, loss.delta),
        "one_class": lambda: cp.pos(-f),
        "pinball": lambda: cp.maximum(loss.quantile * (y - f), (loss.quantile - 1) * (y - f)),
        "censored_eps_insensitive": lambda: censored(np.log(np.abs(y)), y > 0, f, loss.eps),
    }[loss.name]()
    return C @ each


def censored(z, event, f, eps):
    """Log times from above and, of events, from below."""
    return cp.pos(z - f - eps) + cp.multiply(event.astype(float), cp.pos(f - z - eps))


def penalty(rule, ws):
    """Omega(n) and what it needs beside: constraints."""
    n = cp.hstack([cp.norm(w, 2) for w in ws])
    if isinstance(rule, Mahalanobis | Wedge):
        return by_weights(rule, ws)
    if isinstance(rule, Uniform):
        return 0.5 * sum(cp.sum_squares(w) for w in ws), []
    if isinstance(rule, ElasticNet):
        a = rule.l1_ratio
        first = cp.sum(n) if rule.form == "penalty" else 0.5 * cp.square(cp.sum(n))
        return a * first + 0.5 * (1 - a) * sum(cp.sum_squares(w) for w in ws), []
    if isinstance(rule, BlockNorm) and rule.form == "penalty":
        return cp.sum(cp.power(n, rule.q)) / rule.q, []
    if isinstance(rule, BlockNorm):
        return 0.5 * cp.square(cp.norm(n, "inf" if np.isinf(rule.q) else rule.q)), []
    q = 2 * rule.p / (rule.p + 1)
    costly = n if rule.costs is None else cp.multiply(np.sqrt(rule.costs), n)
    if rule.form == "penalty":
        return cp.sum(cp.power(costly, q)) / q, []
    return 0.5 * cp.square(cp.norm(costly, q)), []


def by_weights(rule, ws):
    """1/2 sum |w_m|^2 / d_m + 1/2 h(d), minimised over d as well."""
    d = cp.Variable(KERNELS, nonneg=True)
    least = 1e-13 if rule.name == "wedge" and rule.form == "constraint" else 0.0  # its zeros are exact
    ratio = 0.5 * sum(cp.quad_over_lin(w, d[m] + least) for m, w in enumerate(ws))
    if isinstance(rule, Wedge):
        ordered = d[:-1] >= d[1:]
        return (
            (ratio + 0.5 * cp.sum(d), [ordered])
            if rule.form == "penalty"
            else (ratio, [ordered, cp.sum(d) <= 1])
        )
    size = cp.quad_form(d, cp.psd_wrap(np.linalg.inv(rule.E)))
    return (ratio + 0.25 * size, []) if rule.form == "penalty" else (ratio, [size <= 1])


def conic_optimum(sample, rule):
    Zs = list(roots(sample.Ks))
    ws, b = [cp.Variable(Z.shape[1]) for Z in Zs], cp.Variable()
    f = sum(Z @ w for Z, w in zip(Zs, ws, strict=True)) + b
    omega, constraints = penalty(rule, ws)
    objective = losses(sample.problem, f) + sample.problem.loss.alpha_sum * b + omega
    program = cp.Problem(cp.Minimize(objective), constraints)
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10)
    with warnings.catch_warnings():
        # short of 1e-10 it says so; 1e-6 is asked for
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        return program.solve(solver=cp.CLARABEL, **tight)


def norm(x, q):
    return np.linalg.norm(x, q)


def omega_star(rule, r):
    """Omega*(r), from MATH.md section 2."""
    s = r**2
    if isinstance(rule, Mahalanobis):
        # min t'Et over t >= s: t = s + v, v >= 0 by non-negative least squares
        L = np.linalg.cholesky(rule.E).T
        least = nnls(L, -L @ s, maxiter=1000)[1]
        return 0.5 * least if rule.form == "constraint" else 0.25 * least**2
    if isinstance(rule, Wedge) and rule.form == "constraint":
        return 0.5 * (np.cumsum(s) / np.arange(1, len(s) + 1)).max()
    if isinstance(rule, Wedge):
        return 0.0 if (np.cumsum(s) <= np.arange(1, len(s) + 1) * (1 + 1e-12)).all() else np.inf
    if isinstance(rule, Uniform):
        return 0.5 * s.sum()
    if isinstance(rule, ElasticNet):
        a = rule.l1_ratio
        if rule.form == "constraint":  # sup_n r'n - Omega(n), by its optimality conditions
            G = a * np.ones((len(r), len(r))) + (1 - a) * np.eye(len(r))
            factor = np.linalg.cholesky(G + 1e-13 * np.eye(len(r))).T
            n = nnls(factor, np.linalg.solve(factor.T, r), maxiter=1000)[0]
            return r @ n - 0.5 * n @ G @ n
        return bounded(r) if a == 1 else 0.5 * (np.maximum(r - a, 0) ** 2).sum() / (1 - a)
    if isinstance(rule, BlockNorm) and rule.form == "penalty":
        return bounded(r) if rule.q == 1 else (r ** dual(rule.q)).sum() / dual(rule.q)
    if isinstance(rule, BlockNorm):
        return 0.5 * norm(r, dual(rule.q)) ** 2
    s = s if rule.costs is None else s / rule.costs
    if rule.form == "constraint":
        return 0.5 * norm(s, dual(rule.p))
    return bounded(np.sqrt(s)) if rule.p == 1 else 0.5 * (s ** dual(rule.p)).sum() / dual(rule.p)


def bounded(r):
    return 0.0 if r.max() <= 1 + 1e-12 else np.inf


def dual(p):
    return np.inf if p == 1 else 1.0 if np.isinf(p) else p / (p - 1)


def omega_upper(rule, n, d):
    """Omega(n) for the table's closed forms; where there is none, its value at the weights d."""
    if isinstance(rule, Mahalanobis):
        scale = np.sqrt(d @ np.linalg.solve(rule.E, d))
        if rule.form == "penalty":
            return 0.5 * (n[d > 0] ** 2 / d[d > 0]).sum() + 0.25 * scale**2
        return 0.5 * (n[d > 0] ** 2 / d[d > 0]).sum() * max(scale, 1.0)
    if isinstance(rule, Wedge):
        assert (np.diff(d) <= 1e-9).all()
        if rule.form == "constraint":
            return 0.5 * (n[d > 0] ** 2 / d[d > 0]).sum() * max(d.sum(), 1.0)
        return 0.5 * ((n[d > 0] ** 2 / d[d > 0]).sum() + d.sum())
    if isinstance(rule, Uniform):
        return 0.5 * (n**2).sum()
    if isinstance(rule, ElasticNet):
        first = n.sum() if rule.form == "penalty" else 0.5 * n.sum() ** 2
        return rule.l1_ratio * first + 0.5 * (1 - rule.l1_ratio) * (n**2).sum()
    if isinstance(rule, BlockNorm):
        return 0.5 * norm(n, rule.q) ** 2 if rule.form == "constraint" else (n**rule.q).sum() / rule.q
    n, q = n if rule.costs is None else n * np.sqrt(rule.costs), 2 * rule.p / (rule.p + 1)
    return 0.5 * norm(n, q) ** 2 if rule.form == "constraint" else (n**q).sum() / q


def independent_gap(sample, rule, state, reference):
    """(P - D) / |P| at the weights and alpha found; alpha shrunk where Omega* asks for it."""
    alpha = state.alpha
    r = np.sqrt(np.maximum(np.einsum("ic,mij,jc->m", alpha, sample.Ks, alpha), 0.0))
    f = np.einsum("m,mij,jc->ic", state.weights, sample.Ks, alpha)
    b = state.certificate.intercept
    primal = reference.primal(sample.problem, f, b) + omega_upper(rule, state.weights * r, state.weights)
    scale = 1.0
    while omega_star(rule, scale * r) == np.inf and scale > 0.5:
        scale *= 1 - 1e-9 if scale > 1 - 1e-6 else 1 - 1e-4
    gain = reference.dual(sample.problem, scale * alpha) - omega_star(rule, scale * r)
    return (primal - gain) / max(abs(primal), 1e-12)


@pytest.mark.parametrize(("loss", "rule"), PAIRS)
def test_optimum_is_that_of_the_conic_solver(draw, reference, loss, rule):
    sample = draw(LOSSES[loss](), n=SAMPLES, M=KERNELS)
    solver = choose_solver("auto", RULES[rule])
    solution = solver.solve(sample.problem, sample.gram, RULES[rule], tol=3e-7, max_iter=1000)
    state = solution.state
    assert state.certificate.primal == pytest.approx(conic_optimum(sample, RULES[rule]), rel=1e-6)
    assert -1e-9 <= independent_gap(sample, RULES[rule], state, reference) <= 1e-6
