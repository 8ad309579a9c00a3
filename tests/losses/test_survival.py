"""Losses of censored times, quantiles and ordered classes: contracts, definitions, conic optima."""

from __future__ import annotations

import warnings
from contextlib import suppress

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernelweave.gram import DenseGram
from kernelweave.losses import (
    CensoredEpsInsensitive,
    Cox,
    OrdinalHinge,
    OrdinalLogistic,
    Pinball,
    SurvivalRanking,
)
from kernelweave.regularizers import BlockNorm, ElasticNet, LpNorm, Uniform
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import choose_solver
from kernelweave.testing.losses import joint_contract


def survival(n=30, seed=0):
    """Features, and (time, event, stratum) with ties."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    time = np.ceil(4.0 * rng.exponential(size=n) * np.exp(-X[:, 0] - np.sin(2.0 * X[:, 1])))
    return X, np.column_stack([time, rng.random(n) < 0.7, np.arange(n) % 3]).astype(float)


def graded(n=30, seed=1):
    """Four ordered classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.digitize(2.0 * X[:, 0] + np.sin(2.0 * X[:, 1]) + rng.normal(size=n), [-1.5, 0.0, 1.5]) * 1.0


CASES = {
    "breslow": (Cox(), survival()[1][:, :2]),
    "efron": (Cox(ties="efron"), survival()[1][:, :2]),
    "efron, strata": (Cox(ties="efron"), survival()[1]),
    "times alone": (Cox(), survival()[1][:, 0]),
    "ranking": (SurvivalRanking(), survival()[1][:, :2]),
    "ranking, strata": (SurvivalRanking(), survival()[1]),
    "ordinal logistic": (OrdinalLogistic(), graded()[1]),
    "ordinal hinge": (OrdinalHinge(), graded()[1]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("promise", joint_contract.promises, ids=lambda promise: promise.__name__)
def test_contract(case, promise):
    promise(*CASES[case])


# -- definitions --------------------------------------------------------------------------------


def breslow(y, f, weight):
    total = 0.0
    for i in np.flatnonzero(y[:, 1]):
        at_risk = (y[:, 0] >= y[i, 0]) & (y[:, 2] == y[i, 2])
        total += weight[i] * (np.log((weight * np.exp(f))[at_risk].sum()) - f[i])
    return total


def efron(y, f, weight):
    """Each event of d at a time has a denominator of its own; weights are one."""
    total = -float(y[:, 1] @ f)
    for time, stratum in np.unique(y[y[:, 1] > 0][:, [0, 2]], axis=0):
        own = y[:, 2] == stratum
        at_risk, tied = own & (y[:, 0] >= time), own & (y[:, 0] == time) & (y[:, 1] > 0)
        for k in range(tied.sum()):
            share = k / tied.sum()
            total += np.log(np.exp(f[at_risk]).sum() - share * np.exp(f[tied]).sum())
    return total


def pairs(y, f, weight):
    total = 0.0
    for i in np.flatnonzero(y[:, 1]):
        later = (y[:, 0] > y[i, 0]) | ((y[:, 0] == y[i, 0]) & (y[:, 1] == 0))
        later &= y[:, 2] == y[i, 2]
        total += 0.5 * weight[i] * (weight * np.maximum(0.0, 1.0 - f[i] + f) ** 2)[later].sum()
    return total


@pytest.mark.parametrize(
    ("loss", "definition", "weighted"),
    [(Cox(), breslow, True), (Cox("efron"), efron, False), (SurvivalRanking(), pairs, True)],
    ids=["breslow", "efron", "ranking"],
)
def test_values_are_those_of_the_definition(loss, definition, weighted):
    rng = np.random.default_rng(3)
    for seed in range(4):
        _, y = survival(40, seed)
        f, weight = rng.normal(size=40), rng.uniform(0.3, 2.0, size=40) if weighted else np.ones(40)
        assert loss.value(y, f, weight) == pytest.approx(definition(y, f, weight), rel=1e-12)


def test_rules_for_ties_agree_without_ties():
    rng = np.random.default_rng(0)
    y = np.column_stack([rng.permutation(30), rng.random(30) < 0.5]).astype(float)
    for weight in (np.ones(30), rng.uniform(0.1, 1.0, size=30)):
        f = rng.normal(size=30)
        assert Cox("efron").value(y, f, weight) == pytest.approx(Cox().value(y, f, weight), rel=1e-13)


def test_a_weight_that_is_no_integer_lies_between_its_neighbours():
    """Efron's sum is continuous in the weights."""
    _, y = survival()
    f, weight = np.random.default_rng(0).normal(size=30), np.full(30, 2.0)
    near = [Cox("efron").value(y, f, weight + step) for step in (-1e-7, 0.0, 1e-7)]
    assert_allclose(near, near[1], rtol=1e-5)


def test_derivatives_of_far_predictions_are_right():
    """Nothing overflows, and what is far below does not vanish: the last risk sets still count."""
    y = np.array([[1.0, 1], [2.0, 1], [3.0, 1], [4.0, 0]])
    f = np.array([2000.0, 0.0, -2000.0, -2000.0])
    assert Cox().value(y, f, np.ones(4)) == pytest.approx(np.log(2.0))
    assert_allclose(Cox().gradient(y, f, np.ones(4)), [0.0, 0.0, -0.5, 0.5], atol=1e-12)


def test_thresholds_are_in_order_and_best():
    _, y = graded(60)
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, size=60)
    for loss in (OrdinalLogistic(), OrdinalHinge(), OrdinalHinge(delta=0.1)):
        for scale in (0.1, 1.0, 10.0):
            f = scale * (y + rng.normal(size=60))
            b = loss.thresholds(y, f, weight)
            assert (np.diff(b) >= 0).all()
            for k in range(3):
                sign = np.where(y > k, 1.0, -1.0)

                def cost(at, sign=sign, f=f, loss=loss):
                    return weight @ loss.margins(sign * (f - at))[0]

                beside = [cost(b[k] + step) for step in (-0.1, -1e-4, 1e-4, 0.1)]
                assert cost(b[k]) <= min(beside) * (1 + 1e-12)


def test_a_narrow_corner_is_the_hinge():
    z = np.linspace(-3.0, 3.0, 101)
    assert_allclose(OrdinalHinge(delta=1e-3).margins(z)[0], np.maximum(0.0, 1.0 - z), atol=5e-4)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (Cox(ties="exact"), "ties='exact' must be one of 'breslow', 'efron'"),
        (Pinball(quantile=1.0), "quantile=1.0 must be a number between 0 and 1"),
        (CensoredEpsInsensitive(eps=-1.0), "CensoredEpsInsensitive: eps=-1.0 must be"),
        (OrdinalHinge(delta=0.0), "delta=0.0 must be a positive number"),
    ],
    ids=repr,
)
def test_parameters_that_make_no_loss(loss, words):
    with pytest.raises(ValueError, match=words):
        loss.check()


def test_too_many_terms_are_refused():
    y, weight = np.ones((3, 2)), np.full(3, 1e8)
    with pytest.raises(ValueError, match="pass ties='breslow', or smaller sample weights"):
        Cox("efron").value(y, np.zeros(3), weight)


# -- optima -------------------------------------------------------------------------------------

RULES = [LpNorm(p=1), LpNorm(p=2), LpNorm(p=4 / 3), Uniform(), ElasticNet(), ElasticNet(l1_ratio=1.0)]
RULES += [BlockNorm(q=1), BlockNorm(q=4)]


def conic_loss(cp, loss, y, f, weight):
    """L in cvxpy."""
    if loss.task == "ordinal":
        b = cp.Variable(len(np.unique(y)) - 1)
        signs = np.where(y[:, None] > np.unique(y)[:-1], 1.0, -1.0)
        lacking = [1 - cp.multiply(signs[:, k], f - b[k]) for k in range(signs.shape[1])]
        if loss.name == "ordinal_logistic":
            return sum(weight @ cp.logistic(part - 1) for part in lacking)
        return sum(weight @ cp.huber(cp.pos(part), loss.delta) for part in lacking) / (2 * loss.delta)
    total = 0
    for i in np.flatnonzero(y[:, 1]):
        own = y[:, 2] == y[i, 2]
        at_risk = np.flatnonzero(own & (y[:, 0] >= y[i, 0]))
        if loss.name == "survival_ranking":
            later = np.flatnonzero(own & ((y[:, 0] > y[i, 0]) | ((y[:, 0] == y[i, 0]) & (y[:, 1] == 0))))
            if len(later):
                total += 0.5 * weight[i] * (weight[later] @ cp.square(cp.pos(1 - f[i] + f[later])))
            continue
        tied = np.flatnonzero(own & (y[:, 0] == y[i, 0]) & (y[:, 1] > 0))
        share = np.flatnonzero(tied == i)[0] / len(tied) if loss.ties == "efron" else 0.0
        left = np.where(np.isin(at_risk, tied), 1.0 - share, 1.0) * weight[at_risk]
        total += weight[i] * (cp.log_sum_exp(f[at_risk] + np.log(left)) - f[i])
    return total


def conic_optimum(problem, Ks, rule):
    cp = pytest.importorskip("cvxpy")
    ws, f = [], 0
    for values, vectors in map(np.linalg.eigh, Ks):
        kept = values > 1e-13 * values[-1]
        ws.append(cp.Variable(int(kept.sum())))
        f = f + (vectors[:, kept] * np.sqrt(values[kept])) @ ws[-1]
    n, squares = cp.hstack([cp.norm(w, 2) for w in ws]), sum(cp.sum_squares(w) for w in ws)
    if isinstance(rule, ElasticNet):
        omega = rule.l1_ratio * cp.sum(n) + 0.5 * (1 - rule.l1_ratio) * squares
    elif isinstance(rule, Uniform):
        omega = 0.5 * squares
    else:
        q = rule.q if isinstance(rule, BlockNorm) else 2 * rule.p / (rule.p + 1)
        omega = 0.5 * cp.square(cp.norm(n, q))
    loss = conic_loss(cp, problem.loss, problem.y[:, 0], f, problem.weight[:, 0])
    program = cp.Problem(cp.Minimize(problem.C[0, 0] * loss + omega))
    for tol in (1e-10, 1e-8, 1e-7):  # it may not come to the first
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tol)
        with warnings.catch_warnings(), suppress(cp.SolverError):
            warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
            return program.solve(solver=cp.CLARABEL, **tight)
    raise AssertionError("the conic solver failed")


LOSSES = [Cox(), Cox(ties="efron"), SurvivalRanking(), OrdinalLogistic(), OrdinalHinge(), OrdinalHinge(0.2)]
PAIRS = [
    pytest.param(loss, rule, id=f"{loss!r}-{rule!r}", marks=() if (k + j) % 4 == 0 else pytest.mark.slow)
    for k, loss in enumerate(LOSSES)
    for j, rule in enumerate(RULES)
]


@pytest.mark.parametrize(("loss", "rule"), PAIRS)
def test_optimum_is_that_of_a_conic_solver(loss, rule):
    X, y = graded(24) if loss.task == "ordinal" else survival(24)
    square = (X[:, None] - X[None]) ** 2
    Ks = np.array([np.exp(-square[..., m]) for m in range(3)] + [np.outer(X[:, 0], X[:, 0])])
    weighted = not (loss.name == "cox" and loss.ties == "efron")
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=24) if weighted else np.ones(24)
    targets = y[:, None] if loss.task == "ordinal" else y[:, None, :]
    problem = Problem.weighted(targets, loss, 1.0, weight)
    found = choose_solver("auto", rule).solve(problem, DenseGram(Ks), rule, tol=1e-6, max_iter=1000)
    proof = found.state.certificate
    assert found.converged
    assert proof.gap <= 1e-6
    optimum = conic_optimum(problem, Ks, rule)
    # the bracket of the certificate, where a conic solver has digits left
    assert proof.dual - 1e-7 * abs(optimum) <= optimum <= proof.primal + 1e-7 * abs(optimum)


def test_the_gap_is_relative_to_what_is_gained():
    """A partial likelihood is mostly sizes of risk sets: relative to these a gap says nothing."""
    X, y = survival(60)
    Ks = np.array([np.exp(-((X[:, [m]] - X[:, m]) ** 2)) for m in range(4)])
    problem = Problem.weighted(y[:, None, :2], Cox(), 0.03, np.ones(60))
    rule = LpNorm(p=2)
    rough, exact = (
        choose_solver("auto", rule).solve(problem, DenseGram(Ks), rule, tol=tol).state.certificate
        for tol in (1e-3, 1e-9)
    )
    nothing = 0.03 * Cox().value(y[:, :2], np.zeros(60), np.ones(60))
    gain = nothing - exact.primal
    assert gain < 0.2 * (exact.primal - problem.floor)  # where the two differ
    assert rough.primal - exact.primal <= 1e-3 * gain
    assert rough.gap == pytest.approx((rough.primal - rough.dual) / (nothing - rough.dual), rel=1e-9)
