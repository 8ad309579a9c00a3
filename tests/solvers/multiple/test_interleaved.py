"""The interleaved solver: certified on every pair it takes, and its objective never rises."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import kernelweave as kw
from kernelweave.gram import GRAMS, DenseGram
from kernelweave.gram._matrix_loops import add_rows
from kernelweave.losses import LOSSES, EpsInsensitive, Hinge, Logistic, OneClass
from kernelweave.regularizers import (
    REGULARIZERS,
    SMKL,
    BlockNorm,
    ElasticNet,
    LpNorm,
    Mahalanobis,
    Uniform,
    Wedge,
)
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import Interleaved, choose_solver
from kernelweave.solvers.multiple.interleaved import Fields, working_set
from kernelweave.solvers.single import SMO
from kernelweave.solvers.single._box_qp import BoxQP

ORDERS = [1.0, 32 / 31, 8 / 7, 4 / 3, 2.0, 4.0, np.inf]
RULES = [
    *[LpNorm(p) for p in ORDERS],
    *[LpNorm(p, form="penalty") for p in ORDERS],
    LpNorm(1.0, costs=np.geomspace(0.3, 3.0, 8)),
    *[ElasticNet(ratio) for ratio in (0.0, 0.1, 0.5, 1.0)],
    *[ElasticNet(ratio, form="constraint") for ratio in (0.1, 0.9)],
    *[BlockNorm(q) for q in (1.0, 1.5, 2.0, 2.5, 4.0, 16.0, np.inf)],
    Uniform(),
    Mahalanobis(),
    Wedge(),
]
LINEAR = sorted(name for name in LOSSES if hasattr(LOSSES[name](), "linear_dual"))

each_rule = pytest.mark.parametrize("rule", RULES, ids=repr)
few_rules = pytest.mark.parametrize(
    "rule", [LpNorm(1.0), LpNorm(4 / 3), ElasticNet(0.5), BlockNorm(4.0), Wedge()], ids=repr
)


@pytest.fixture(params=LINEAR)
def loss(request):
    return LOSSES[request.param]()


def solve(sample, rule, **options):
    options = {"tol": 1e-5, **options}
    solver = options.pop("solver", Interleaved())
    return solver.solve(sample.problem, sample.gram, rule, **options)


def skip_unbounded(problem, rule):
    if rule.homogeneous and problem.loss.alpha_sum:
        pytest.skip("no finite optimum")


def assert_certified(reference, sample, rule, solution, tol):
    """P - D <= tol |P|, from products with the matrices themselves."""
    state, problem = solution.state, sample.problem
    rule = rule.bound_to(sample.gram)
    f = np.einsum("m,mij,jc->ic", state.weights, sample.Ks, state.alpha, optimize=True)
    s = np.einsum("ic,mij,jc->m", state.alpha, sample.Ks, state.alpha, optimize=True)
    r = np.sqrt(np.maximum(s, 0.0))
    primal = reference.primal(problem, f, state.certificate.intercept) + rule.penalty(state.weights * r)
    scale = rule.dual_scale(r)
    dual = reference.dual(problem, scale * state.alpha) - rule.conjugate(scale * r)
    assert solution.converged
    assert -1e-10 <= (primal - dual) / max(abs(primal), 1e-12) <= tol * (1 + 1e-6)
    np.testing.assert_allclose(state.fitted, f, atol=1e-8 * max(1.0, np.abs(f).max()))
    np.testing.assert_allclose(state.squares, s, atol=1e-8 * max(1.0, s.max()))


# -- the optimum ------------------------------------------------------------------------------


def test_every_convex_regularizer_is_tried():
    convex = {cls for cls in REGULARIZERS.values() if cls().convex}
    assert convex <= {type(rule) for rule in RULES}
    assert {"hinge", "eps_insensitive", "one_class"} <= set(LINEAR)


@pytest.mark.sampled(4)
@each_rule
def test_every_pair_reaches_the_optimum_of_the_other_solvers(draw, reference, loss, rule):
    sample = draw(loss)
    skip_unbounded(sample.problem, rule)
    solution = solve(sample, rule)
    assert_certified(reference, sample, rule, solution, 1e-5)
    other = choose_solver("auto", rule).solve(sample.problem, sample.gram, rule, tol=1e-4, max_iter=500)
    objective = other.state.certificate.primal
    assert solution.state.certificate.primal == pytest.approx(objective, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("options", [{"C": 0.05, "costs": True}, {"C": 30.0, "costs": True}])
@few_rules
def test_small_and_large_costs(draw, reference, loss, rule, options):
    sample = draw(loss, seed=1, **options)
    skip_unbounded(sample.problem, rule)
    assert_certified(reference, sample, rule, solve(sample, rule), 1e-5)


@few_rules
def test_without_intercept(draw, reference, loss, rule):
    sample = draw(loss, fit_intercept=False)
    skip_unbounded(sample.problem, rule)
    assert_certified(reference, sample, rule, solve(sample, rule), 1e-5)


@few_rules
def test_outputs_that_share_the_weights(draw, reference, loss, rule):
    sample = draw(loss, outputs=3, n=40)
    skip_unbounded(sample.problem, rule)
    assert_certified(reference, sample, rule, solve(sample, rule), 1e-5)


@pytest.mark.parametrize("size", [2, 3, 17, 1000])
def test_working_sets_of_any_size(draw, reference, loss, size):
    sample = draw(loss, n=50)
    found = solve(sample, LpNorm(4 / 3), solver=Interleaved(working_set=size))
    assert_certified(reference, sample, LpNorm(4 / 3), found, 1e-5)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_samples(draw, reference, n):
    sample = draw(Hinge(), n=n, M=3)
    assert_certified(reference, sample, LpNorm(2.0), solve(sample, LpNorm(2.0)), 1e-5)


@pytest.mark.wide
@pytest.mark.parametrize("rule", [LpNorm(1.0), LpNorm(4 / 3), BlockNorm(np.inf)], ids=repr)
def test_a_machine_that_is_hard_to_train(draw, reference, rule):
    """Small working sets undo one another here: they have to grow."""
    sample = draw(EpsInsensitive(), n=280, M=5)
    assert_certified(reference, sample, rule, solve(sample, rule), 1e-5)


@few_rules
def test_one_kernel(draw, reference, loss, rule):
    sample = draw(loss, M=1)
    skip_unbounded(sample.problem, rule)
    assert_certified(reference, sample, rule, solve(sample, rule), 1e-5)


@pytest.mark.parametrize("p", ORDERS)
def test_kernels_of_zeros_and_of_very_different_scale(draw, reference, p):
    sample = draw(Hinge())
    scales = np.geomspace(1e-4, 1e2, 8)
    scales[2] = 0.0
    scaled = sample._replace(Ks=sample.Ks * scales[:, None, None])
    assert_certified(reference, scaled, LpNorm(p), solve(scaled, LpNorm(p)), 1e-5)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", ["constraint", "penalty"])
@pytest.mark.parametrize("p", ORDERS)
def test_kernels_that_see_only_some_of_the_samples(draw, reference, p, form):
    """Their norms are zero until one of their samples is in a working set; weights must come back."""
    sample = draw(Hinge(), n=90, M=4)
    part = np.arange(90) // 30
    masks = [np.outer(part == k, part == k) for k in range(3)]
    blocks = sample._replace(Ks=np.array([K * mask for K in sample.Ks for mask in masks]))
    rule = LpNorm(p, form)
    found = solve(blocks, rule, solver=Interleaved(working_set=6))
    assert_certified(reference, blocks, rule, found, 1e-5)


@pytest.mark.parametrize("rule", [LpNorm(2.0), LpNorm(2.0, "penalty"), LpNorm(1.0), Wedge()], ids=repr)
def test_nothing_to_learn(rule):
    problem = Problem(np.full((20, 1), 3.0), EpsInsensitive(), np.ones((20, 1)))
    roots = np.random.default_rng(0).normal(size=(3, 20, 5))
    found = Interleaved().solve(problem, DenseGram(roots @ roots.transpose(0, 2, 1)), rule, tol=1e-6)
    assert found.converged
    np.testing.assert_allclose(found.state.alpha, 0.0, atol=1e-9)


@pytest.mark.parametrize("rule", [ElasticNet(1.0), LpNorm(1.0, "penalty"), Wedge()], ids=repr)
def test_an_optimum_without_any_kernel(draw, rule):
    found = solve(draw(Hinge(), C=1e-3), rule)
    assert found.converged
    assert not found.state.weights.any()


@pytest.mark.parametrize("rule", [ElasticNet(0.5), Wedge()], ids=repr)
def test_weights_do_not_vanish_with_an_alpha_that_is_still_small(draw, reference, rule):
    sample = draw(Hinge(), seed=877320, n=106, M=6, C=0.012, costs=True)
    found = solve(sample, rule, solver=Interleaved(working_set=2), tol=1e-4)
    assert_certified(reference, sample, rule, found, 1e-4)


def test_a_kernel_of_no_effect_is_not_taken_for_an_indefinite_one(draw, reference):
    """alpha' K alpha is zero, and a little less by the rounding of many changes."""
    sample = draw(Hinge(), seed=112178, n=36, M=1, C=0.6960942548592398, costs=True)
    found = solve(sample, Uniform(), solver=Interleaved(working_set=5))
    assert found.state.squares == pytest.approx(0.0, abs=1e-12)
    assert_certified(reference, sample, Uniform(), found, 1e-5)


def test_an_indefinite_kernel_is_refused(draw):
    sample = draw(Hinge())
    with pytest.raises(ValueError, match="kernel 3 is not positive semidefinite"):
        Interleaved().solve(
            sample.problem, DenseGram([*sample.Ks[:3], -sample.Ks[3], *sample.Ks[4:]]), LpNorm(2.0)
        )


@pytest.mark.parametrize("p", [1.0, 4 / 3, np.inf])
def test_permuted_kernels_give_permuted_weights(draw, p):
    sample, order = draw(Hinge()), np.random.default_rng(0).permutation(8)
    one = solve(sample, LpNorm(p), tol=1e-8)
    other = solve(sample._replace(Ks=sample.Ks[order]), LpNorm(p), tol=1e-8)
    np.testing.assert_allclose(other.state.weights, one.state.weights[order], atol=1e-3)


@pytest.mark.parametrize("q", [2.5, 8.0, np.inf])
@pytest.mark.parametrize("seed", [1, 2])
def test_large_block_norms_from_a_start_far_away(draw, loss, q, seed):
    """Norms over eight decades; a kernel of almost nothing, and one of nothing."""
    sample = draw(loss, n=50, M=4)
    gram = DenseGram([*sample.Ks, 1e-3 * np.eye(50), np.zeros((50, 50))])
    start = np.exp(3.0 * np.random.default_rng(seed).normal(size=6))
    found = Interleaved().solve(sample.problem, gram, BlockNorm(q), tol=1e-5, norms=start)
    assert found.state.certificate.gap <= 1e-5


# -- the guard --------------------------------------------------------------------------------


class Recorded(Interleaved):
    """Remembers machine and weights at every change of the weights, and the weights of every step."""

    def init(self, run, norms):
        self.changes, self.steps = [], []
        return super().init(run, norms)

    def _closed_form(self, weights):
        new = super()._closed_form(weights)
        self.changes.append((weights.copy(), self._fields.alpha.copy(), new))
        return new

    def _bounds(self, weights):
        self.steps.append(weights.copy())
        return super()._bounds(weights)


def joint_objective(reference, sample, rule, weights, alpha):
    """U = sum_i C_i V(y_i, f_i) + 1/2 sum_m d_m s_m + 1/2 h(d), with the best of many intercepts."""
    f = np.einsum("m,mij,jc->ic", weights, sample.Ks, alpha, optimize=True)
    places = [b - f for b in sample.problem.loss.kinks(sample.problem.y)]
    loss = min(reference.primal(sample.problem, f, b) for b in np.unique(places))
    return loss + 0.5 * float((alpha * f).sum()) + 0.5 * rule.price(weights)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("size", [4, 40])
@pytest.mark.parametrize("rule", [rule for rule in RULES if not rule.ascends], ids=repr)
def test_the_objective_never_rises_from_one_change_of_the_weights_to_the_next(draw, reference, rule, size):
    sample, solver = draw(Hinge(), n=40), Recorded(working_set=size)
    rule = rule.bound_to(sample.gram)
    solve(sample, rule, solver=solver)
    values = [joint_objective(reference, sample, rule, d, alpha) for d, alpha, _ in solver.changes]
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(values))


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0])
def test_new_weights_always_admit_a_lower_objective(draw, reference, p):
    """The machine trained at them to the end has a value below U of the machine they came from."""
    sample, solver, rule = draw(Hinge(), n=40), Recorded(working_set=8), LpNorm(p)
    solve(sample, rule, solver=solver)
    assert solver.changes
    for d, alpha, new in solver.changes:
        K = np.einsum("m,mij->ij", new, sample.Ks)
        exact = SMO().solve(K, sample.problem, 1e-10).alpha
        value = reference.dual(sample.problem, exact) - 0.5 * float((exact * (K @ exact)).sum())
        assert value <= joint_objective(reference, sample, rule, d, alpha) * (1 + 1e-6)


def test_weights_change_between_steps_and_are_held_by_the_guard(draw):
    solver = Recorded(working_set=4)
    solution = solve(draw(Hinge()), LpNorm(4 / 3), solver=solver)
    held = [np.array_equal(before, after) for before, after in pairwise(solver.steps)]
    assert 0.1 < np.mean(held) < 0.9
    assert len(solver.changes) > 2 * solution.n_iter  # not only between rounds


@pytest.mark.parametrize("q", [2.5, 3.0])
def test_both_kinds_of_step_raise_the_joint_value_of_large_block_norms(draw, reference, q):
    sample, solver = draw(Hinge(), M=3), Recorded()
    solve(sample, BlockNorm(q), solver=solver)

    def value(weights, alpha):
        energy = 0.5 * np.einsum("m,ic,mij,jc->", weights, alpha, sample.Ks, alpha, optimize=True)
        return reference.dual(sample.problem, alpha) - float(energy)

    values = [value(d, alpha) for old, alpha, new in solver.changes for d in (old, new)]
    assert all(after >= before * (1 - 1e-9) for before, after in pairwise(values))


# -- the loop ---------------------------------------------------------------------------------


def test_too_few_rounds_warn_and_report_the_gap(draw):
    with pytest.warns(ConvergenceWarning, match=r"the relative duality gap is .* after 2 single-kernel fits"):
        solution = solve(draw(Hinge()), LpNorm(4 / 3), tol=1e-9, max_iter=2)
    assert not solution.converged
    assert solution.n_iter == 2


def test_a_callback_sees_every_round_and_can_stop(draw):
    seen = []
    solution = solve(draw(Hinge()), LpNorm(4 / 3), callback=lambda i, state: seen.append((i, state)))
    assert [i for i, _ in seen] == list(range(solution.n_iter))
    assert [state.certificate.gap for _, state in seen] == solution.history["gap"]
    with pytest.warns(ConvergenceWarning, match="after 2 single-kernel fits"):
        stopped = solve(draw(Hinge()), LpNorm(4 / 3), callback=lambda i, state: i == 1)
    assert stopped.n_iter == 2


def test_history_brackets_the_optimum(draw, loss):
    solution = solve(draw(loss), LpNorm(32 / 31))
    history = {key: np.array(values) for key, values in solution.history.items()}
    assert history["dual"].max() <= history["primal"].min() + 1e-9 * np.abs(history["primal"]).max()
    assert (np.diff(history["n_passes"]) > 0).all()
    assert history["gap"][-1] <= 1e-5


def test_interruption_keeps_the_best_round(draw):
    def interrupt(iteration, state):
        if iteration == 2:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted; the relative duality gap is"):
        solution = solve(draw(Hinge()), LpNorm(4 / 3), tol=1e-12, callback=interrupt)
    assert solution.n_iter == 3
    assert solution.state.certificate.gap == min(solution.history["gap"])


def test_interruption_within_a_round(draw, monkeypatch):
    """Before the first certificate there is nothing to keep; after it, alpha of the best round is intact."""
    step, calls = Fields.step, []

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) == limit:
            raise KeyboardInterrupt
        return step(self, *args)

    monkeypatch.setattr(Fields, "step", interrupted)
    sample, limit = draw(Hinge()), 1
    with pytest.raises(KeyboardInterrupt):
        solve(sample, LpNorm(4 / 3))
    calls.clear()
    limit = 12
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        state = solve(sample, LpNorm(4 / 3), solver=Interleaved(working_set=30), tol=1e-12).state
    f = np.einsum("m,mij,jc->ic", state.weights, sample.Ks, state.alpha)
    np.testing.assert_allclose(state.fitted, f, atol=1e-9)


@few_rules
def test_a_start_from_the_solution_is_certified_at_once(draw, loss, rule):
    sample = draw(loss)
    skip_unbounded(sample.problem, rule)
    cold = solve(sample, rule, tol=1e-6).state
    ascends = rule.ascends
    norms = cold.certificate.dual_norms if ascends else cold.certificate.norms
    warm = solve(sample, rule, norms=norms, alpha=cold.alpha, tol=1e-4)
    assert warm.n_iter <= 2
    off = np.full_like(cold.alpha, 1e3)  # far outside the box: moved into it
    assert solve(sample, rule, alpha=off).converged


@few_rules
def test_a_solver_can_be_used_again(draw, rule):
    solver, first, other = Interleaved(), draw(Hinge()), draw(EpsInsensitive(), seed=3, n=40, M=5)
    before = solve(first, rule, solver=solver)
    solve(other, rule, solver=solver)
    after = solve(first, rule, solver=solver)
    np.testing.assert_array_equal(before.state.alpha, after.state.alpha)
    np.testing.assert_array_equal(before.state.weights, after.state.weights)
    assert before.history["gap"] == after.history["gap"]


# -- refusals, and the way in -----------------------------------------------------------------


def test_losses_whose_dual_is_curved_are_refused(draw):
    with pytest.raises(ValueError, match="Logistic has no `linear_dual`, required by Interleaved; use"):
        solve(draw(Logistic()), LpNorm(2.0))


@pytest.mark.parametrize("size", [1, 0, 2.5, "many"])
def test_working_sets_that_are_none(draw, size):
    with pytest.raises(ValueError, match=r"working_set=.* must be 'auto' or a whole number of at least 2"):
        solve(draw(Hinge()), LpNorm(2.0), solver=Interleaved(working_set=size))


def test_it_is_chosen_by_name_only():
    assert isinstance(choose_solver("interleaved", LpNorm(1.0)), Interleaved)
    assert not any(isinstance(choose_solver("auto", rule), Interleaved) for rule in RULES)
    with pytest.raises(ValueError, match="solver='interleaved' cannot handle SMKL"):
        choose_solver("interleaved", SMKL())
    assert clone(Interleaved(working_set=8)).get_params() == {"working_set": 8}


def test_estimators(rng):
    X = rng.normal(size=(80, 4))
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 1.0, 1, -1)
    kernels = [kw.kernels.RBF(gamma=gamma) for gamma in (0.01, 0.1, 1.0)]
    for model in (
        kw.MKLClassifier(kernels, solver="interleaved"),
        kw.MKLRegressor(kernels, loss="eps_insensitive", solver="interleaved"),
        kw.MKLOneClass(kernels, solver="interleaved"),
    ):
        fitted = model.fit(X, y)
        other = clone(model).set_params(solver="auto").fit(X, y)
        assert fitted.dual_gap_ <= 1e-3
        assert fitted.objective_ == pytest.approx(other.objective_, rel=2e-3)


# -- the machine in the making ----------------------------------------------------------------


@pytest.mark.wide
@pytest.mark.parametrize("engine", ["dense", "packed", "cached", "blocked"])
def test_products_stay_those_of_alpha_on_every_engine(draw, engine):
    sample = draw(EpsInsensitive(), n=40, outputs=2)
    gram = GRAMS[engine](list(sample.Ks), np.linspace(0.5, 2.0, 8))
    Ks = sample.Ks * np.linspace(0.5, 2.0, 8)[:, None, None]
    fields, weights = Fields(sample.problem, gram, sample.problem.start()), np.ones(8)
    for count in range(6):
        weights = np.where(np.arange(8) % 3 == count % 3, 0.0, 1.0)  # some go stale, others come back
        fields.step(weights, 10)
        expected = np.einsum("m,mij,jc->ic", weights, Ks, fields.alpha)
        np.testing.assert_allclose(fields.fitted(weights), expected, atol=1e-10)
        squares = np.einsum("ic,mij,jc->m", fields.alpha, Ks, fields.alpha)
        np.testing.assert_allclose(fields.squares(), squares, atol=1e-10)
    assert gram.n_passes > 0


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_step_stays_feasible_and_raises_the_dual_value(draw, reference, loss, fit_intercept):
    sample = draw(loss, fit_intercept=fit_intercept, costs=True)
    problem, weights = sample.problem, np.full(8, 0.3)
    K, values = np.einsum("m,mij->ij", weights, sample.Ks), []
    fields = Fields(problem, sample.gram, problem.start())
    for _ in range(20):
        energy = 0.5 * float((fields.alpha * (K @ fields.alpha)).sum())
        values.append(reference.dual(problem, fields.alpha) - energy)
        before = fields.alpha.copy()
        fields.step(weights, 10)
        assert (fields.alpha != before).sum() <= 10
    assert np.isfinite(values).all()
    assert (np.diff(values) >= -1e-12).all()


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("size", [2, 6, 50])
def test_a_working_set_has_the_worst_violators(rng, tied, size):
    n = 30
    lower, upper = -rng.uniform(0.0, 1.0, size=n), rng.uniform(0.0, 1.0, size=n)
    alpha = np.clip(rng.normal(size=n), lower, upper)
    qp = BoxQP(np.eye(n), rng.normal(size=n), 0.1, lower, upper, tied)
    slopes = alpha - qp.linear
    rise, fall = qp.gains(alpha)
    chosen, violation = working_set(qp, alpha, slopes, size)
    assert len(chosen) == len(set(chosen)) <= size
    if tied:
        assert violation == rise.max() + fall.max()
        assert {rise.argmax(), fall.argmax()} <= set(chosen)
    else:
        gain = np.maximum(rise, fall)
        assert violation == gain.max()
        assert set(chosen) == set(np.argsort(-gain)[: min(size, int((gain > 0).sum()))])


def test_no_working_set_at_the_optimum():
    qp = BoxQP(np.eye(4), np.zeros(4), 0.0, np.zeros(4), np.ones(4), True)
    chosen, violation = working_set(qp, np.full(4, 0.25), np.full(4, 0.25), 4)
    assert len(chosen) == 0
    assert violation == 0.0


@pytest.mark.parametrize("count", range(10))
def test_add_rows(rng, count):
    K, out, rows = rng.normal(size=(12, 12)), rng.normal(size=12), rng.permutation(12)[:count]
    change = rng.normal(size=count)
    expected = out + change @ K[rows]
    add_rows(out, K, rows, change)
    np.testing.assert_allclose(out, expected, atol=1e-13)


def test_one_class_starts_from_a_feasible_point(draw, reference):
    sample = draw(OneClass(), C=0.05)
    found = solve(sample, LpNorm(2.0))
    np.testing.assert_allclose(found.state.alpha.sum(), 1.0)
    assert_certified(reference, sample, LpNorm(2.0), found, 1e-5)
