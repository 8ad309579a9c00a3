"""Losses that couple samples, on the proportional hazards of Cox and on a soft worst case."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp, softmax
from sklearn.base import RegressorMixin

from kernelweave import GroupOMPRegressor, MKLRegressor, mkl_path
from kernelweave.estimators._base import Spec, follows_input
from kernelweave.estimators._input import check_weights
from kernelweave.estimators._mkl import BaseMKL, Setup, SubProblem
from kernelweave.gram import DenseGram
from kernelweave.gram.lowrank import LowRankGram, StoredFactors
from kernelweave.kernels import RBF, Linear
from kernelweave.losses import Hinge, JointLoss
from kernelweave.regularizers import REGULARIZERS, BlockNorm, ElasticNet, LpNorm, Wedge
from kernelweave.solvers import Problem, leave_one_out
from kernelweave.solvers.certificate import certificate
from kernelweave.solvers.multiple import MKL_SOLVERS, choose_solver
from kernelweave.solvers.multiple.cutting_planes import CuttingPlanes
from kernelweave.solvers.single import SINGLE_SOLVERS, JointNewton, choose_single, joint_newton
from kernelweave.testing import check_loss, check_mkl_estimator, check_solver
from kernelweave.testing.losses import joint_contract
from kernelweave.testing.solvers import MachineCase, draw_problem, machines


class Cox(JointLoss):
    """sum_i w_i e_i (log sum_{t_j >= t_i} w_j exp(f_j) - f_i), ties as Breslow's; y has columns t and e."""

    name = "cox"
    task = "survival"
    shift_invariant = True

    def _parts(self, y, f, weight):
        """Number of the time of each sample, the latest first; log w exp(f), and its sums over risk sets."""
        times, place = np.unique(-y[:, 0], return_inverse=True)
        logs, sums = f + np.log(weight), np.full(len(times), -np.inf)
        np.logaddexp.at(sums, place, logs)
        return place, logs, np.logaddexp.accumulate(sums)

    def value(self, y, f, weight):
        place, _, sums = self._parts(y, f, weight)
        return float((weight * y[:, 1]) @ (sums[place] - f))

    def gradient(self, y, f, weight):
        return self.curvature(y, f, weight) - weight * y[:, 1]

    def curvature(self, y, f, weight):
        place, logs, sums = self._parts(y, f, weight)
        deaths = np.bincount(place, weight * y[:, 1], len(sums))
        with np.errstate(divide="ignore"):
            hazard = np.logaddexp.accumulate((np.log(deaths) - sums)[::-1])[::-1]
        return np.exp(logs + hazard[place])

    def least(self, y, weight):
        deaths = (weight * y[:, 1])[y[:, 1] > 0]
        return float(deaths @ np.log(deaths))


class ExactCox(Cox):
    """The same with its Hessian, diag(h) - sum_i p_i p_i'."""

    def hessian_product(self, y, f, weight, v):
        place, logs, sums = self._parts(y, f, weight)
        deaths = np.bincount(place, weight * y[:, 1], len(sums))
        P = np.exp(logs - sums[:, None]) * (place <= np.arange(len(sums))[:, None])
        return P.T @ (deaths * (P @ v)) * -1.0 + self.curvature(y, f, weight) * v


class SoftWorst(JointLoss):
    """log sum_i w_i exp((y_i - f_i)^2 / 2): the largest squared residuals count most. Has an intercept."""

    name = "soft_worst"
    task = "regression"

    def _logs(self, y, f, weight):
        return 0.5 * (y - f) ** 2 + np.log(weight)

    def value(self, y, f, weight):
        return float(logsumexp(self._logs(y, f, weight)))

    def gradient(self, y, f, weight):
        return softmax(self._logs(y, f, weight)) * (f - y)

    def curvature(self, y, f, weight):
        return softmax(self._logs(y, f, weight)) * (1.0 + (f - y) ** 2)

    def least(self, y, weight):
        return float(np.log(weight.sum()))


def survival(n=60, seed=0):
    """Features, and (time, event) with ties; some censored."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    time = np.ceil(4.0 * rng.exponential(size=n) * np.exp(-X[:, 0] - np.sin(2.0 * X[:, 1])))
    return X, np.column_stack([time, rng.random(n) < 0.7]).astype(float)


def cox_problem(n=60, C=1.0, loss=None, weighted=False):
    X, y = survival(n)
    square = (X[:, None] - X[None]) ** 2
    Ks = [np.exp(-square[..., m]) for m in range(4)] + [np.outer(X[:, m], X[:, m]) for m in range(2)]
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=n) if weighted else np.ones(n)
    problem = Problem.weighted(y[:, None], loss or Cox(), C, weight)
    return problem, np.array([K / (K.diagonal().mean() - K.mean()) for K in Ks])


POOLS = {"cox": survival()[1], "soft_worst": None}
LOSSES = [Cox(), ExactCox(), SoftWorst()]


# -- contracts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("promise", joint_contract.promises, ids=lambda promise: promise.__name__)
def test_loss(loss, promise):
    promise(loss, POOLS[loss.name])


@pytest.mark.parametrize("loss", [Cox(), SoftWorst()], ids=repr)
@pytest.mark.parametrize("promise", machines.promises, ids=lambda promise: promise.__name__)
def test_machine(loss, promise):
    promise(MachineCase(JointNewton(), loss, POOLS[loss.name]))


class WrongGradient(Cox):
    """Forgets that samples are at risk at earlier times."""

    def gradient(self, y, f, weight):
        return -weight * y[:, 1]


class WrongCurvature(Cox):
    """Half of it."""

    def curvature(self, y, f, weight):
        return 0.5 * super().curvature(y, f, weight)

    def gradient(self, y, f, weight):
        return super().curvature(y, f, weight) - weight * y[:, 1]


class WrongShift(Cox):
    """Says nothing of shifts."""

    shift_invariant = False


class WrongWeights(Cox):
    """Weights of events only."""

    def _parts(self, y, f, weight):
        return super()._parts(y, f, np.ones_like(weight))


class WrongLeast(Cox):
    """A little more than the loss may come to."""

    def least(self, y, weight):
        _, place = np.unique(y[:, 0], return_inverse=True)
        deaths = np.bincount(place, weight * y[:, 1])
        deaths = deaths[deaths > 0]
        return float(deaths @ np.log(deaths)) + 0.1


@pytest.mark.parametrize(
    ("loss", "title"),
    [
        (WrongGradient(), "convex and above its tangents"),
        (WrongCurvature(), "curvature bounds the hessian"),
        (WrongShift(), "shift invariant means no shift matters"),
        (WrongWeights(), "weights count repeats"),
        (WrongLeast(), "least is no more than the infimum"),
    ],
    ids=repr,
)
def test_a_mistake_is_found_and_named(loss, title):
    with pytest.raises(AssertionError, match=rf"^{type(loss).__name__}\(\) breaks the contract, {title}: "):
        check_loss(loss, survival()[1])


def test_checks_take_losses_that_couple_samples():
    check_loss(SoftWorst())
    check_solver(JointNewton(), SoftWorst())


# -- the problem --------------------------------------------------------------------------------


def test_costs_that_differ_are_refused():
    problem, _ = cox_problem()
    with pytest.raises(ValueError, match="Cox couples samples, so C is one number"):
        replace(problem, C=np.arange(1.0, 61.0)[:, None])
    with pytest.raises(ValueError, match="multiply C by it"):
        Problem(np.ones((2, 1)), Hinge(), np.ones((2, 1)), weight=np.ones((2, 1)))


def test_a_shift_takes_no_intercept():
    problem, _ = cox_problem()
    assert not problem.fit_intercept
    assert Problem(np.ones((3, 1)), SoftWorst(), np.ones((3, 1))).fit_intercept


def test_parts_keep_weights_and_the_sum_of_costs():
    problem, _ = cox_problem(weighted=True)
    rows = problem.spread(20)
    part = problem.subset(rows)
    assert_array_equal(part.weight, problem.weight[rows])
    assert part.C[0, 0] * part.weight.sum() == pytest.approx(problem.C[0, 0] * problem.weight.sum())
    assert part.y[:, 0, 1].mean() == pytest.approx(problem.y[:, 0, 1].mean(), abs=0.1)  # events alike


def test_the_machine_is_chosen_by_what_the_loss_can_do():
    assert choose_single("auto", Cox()).name == "joint_newton"
    for cls in SINGLE_SOLVERS.values():
        assert (cls is JointNewton) == (not cls().missing(Cox()))


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("loss", [Cox(), ExactCox()], ids=repr)
def test_a_few_steps_reach_a_small_gap(loss, C):
    problem, Ks = cox_problem(200, C, loss)
    machine = JointNewton().solve(Ks.mean(axis=0), problem, 1e-8)
    gram = DenseGram(Ks.mean(axis=0)[None])
    proof = certificate(problem, gram, REGULARIZERS["uniform"](), machine.alpha, np.ones(1))
    assert machine.n_iter < 15
    assert 0.0 <= proof.gap <= 1.1e-8


def test_without_events_the_model_is_zero():
    problem, Ks = cox_problem()
    y = problem.y.copy()
    y[:, 0, 1] = 0.0
    found = choose_solver("auto", LpNorm(p=2)).solve(replace(problem, y=y), DenseGram(Ks), LpNorm(p=2))
    assert found.converged
    assert not found.state.alpha.any()


def test_methods_that_cannot_serve_say_so():
    problem, Ks = cox_problem()
    with pytest.raises(
        ValueError, match=r"required by Interleaved \(no loss that couples samples has it\); use"
    ):
        MKL_SOLVERS["interleaved"]().solve(problem, DenseGram(Ks), LpNorm(p=2))
    with pytest.raises(ValueError, match="Cox has no `linear_dual`, required by SMO"):
        SINGLE_SOLVERS["smo"]().solve(Ks[0], problem, 1e-3)
    with pytest.raises(ValueError, match="Cox has no conjugate; use solver='auto'"):
        CuttingPlanes().solve(problem, DenseGram(Ks), LpNorm(p=1))
    with pytest.raises(ValueError, match="SoftWorst couples samples, and greedy selection needs a sum"):
        GroupOMPRegressor(loss=SoftWorst()).fit(*survival())
    with pytest.raises(ValueError, match="Cox couples samples: no formula leaves one of them out"):
        leave_one_out(Ks[0], problem, np.zeros(60), np.zeros(60))


# -- certificates -------------------------------------------------------------------------------

CONVEX = {
    **{name: cls() for name, cls in REGULARIZERS.items() if cls().convex},
    "l1": LpNorm(p=1),
    "l4": LpNorm(p=4),
    "l1 penalty": LpNorm(p=1, form="penalty"),
    "l2 penalty": LpNorm(p=2, form="penalty"),
    "lasso": ElasticNet(l1_ratio=1.0),
    "block 1": BlockNorm(q=1),
    "block 4": BlockNorm(q=4),
    "block inf": BlockNorm(q=np.inf),
}


def by_definition(problem, Ks, rule, state):
    """(P - D) relative to what is left of P, P - C least, or where that is less, to what is gained.

    D at share * -C L'(f), with L* from the inequalities of its convexity.
    """
    f = np.einsum("m,mij,jc->ic", state.weights, Ks, state.alpha)
    norms = state.weights * np.sqrt(np.maximum(np.einsum("ic,mij,jc->m", state.alpha, Ks, state.alpha), 0.0))
    C, y, w = problem.C[0, 0], problem.y[:, 0], problem.weight[:, 0]
    loss = C * problem.loss.value(y, f[:, 0], w)
    alpha = -C * problem.loss.gradient(y, f[:, 0], w)
    r = np.sqrt(np.maximum(np.einsum("i,mij,j->m", alpha, Ks, alpha), 0.0))
    share = rule.dual_scale(r)
    at_alpha, at_zero = -alpha @ f[:, 0] - loss, -C * problem.loss.least(y, w)
    dual = -(share * at_alpha + (1.0 - share) * at_zero) - rule.conjugate(share * r)
    primal = loss + rule.penalty(norms)
    left, gain = primal + at_zero, C * problem.loss.value(y, np.zeros(len(y)), w) - dual
    return (primal - dual) / min(left, max(gain, 1e-4 * left))


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("rule", CONVEX)
def test_every_convex_regulariser_is_certified(rule, weighted):
    problem, Ks = cox_problem(weighted=weighted)
    gram = DenseGram(Ks)
    rule = CONVEX[rule].bound_to(gram)
    found = choose_solver("auto", rule).solve(problem, gram, rule, tol=1e-6)
    assert found.converged
    assert found.state.certificate.gap <= 1e-6
    assert -1e-10 <= by_definition(problem, Ks, rule, found.state) <= 1e-6 * (1 + 1e-6)


@pytest.mark.parametrize("rule", [LpNorm(p=1, form="penalty"), ElasticNet(l1_ratio=1.0), Wedge()], ids=repr)
def test_certificates_are_true_far_from_the_optimum(rule):
    """Models of too few steps: the dual value is below the optimum, scaled dual points among them."""
    problem, Ks = cox_problem(weighted=True)
    gram = DenseGram(Ks)
    optimum = choose_solver("auto", rule).solve(problem, gram, rule, tol=1e-8).state.certificate
    rng, shares = np.random.default_rng(2), []
    for size in (0.0, 0.1, 1.0):
        for _ in range(5):
            a = size * rng.normal(size=(60, 1))
            proof = certificate(problem, gram, rule, a, rng.uniform(size=6))
            shares.append(rule.dual_scale(proof.dual_norms))
            assert proof.dual <= optimum.primal * (1 + 1e-10)
            assert proof.primal >= optimum.dual * (1 - 1e-10)
    assert min(shares) < 1.0


class Raised(Cox):
    """The same and a constant, which no model can avoid."""

    def __init__(self, by=1e4):
        self.by = by

    def value(self, y, f, weight):
        return super().value(y, f, weight) + self.by

    def least(self, y, weight):
        return super().least(y, weight) + self.by


RULES = [LpNorm(p=1), LpNorm(p=2), ElasticNet(l1_ratio=1.0), BlockNorm(q=1), REGULARIZERS["log"]()]


@pytest.mark.wide
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_constant_in_the_loss_changes_nothing(rule):
    """Else every gap is small relative to it, and a fit stops where nothing has been learned."""
    fits = []
    for loss in (Cox(), Raised()):
        problem, Ks = cox_problem(loss=loss)
        fits.append(choose_solver("auto", rule).solve(problem, DenseGram(Ks), rule, tol=1e-4, max_iter=500))
    one, two = (fit.state for fit in fits)
    assert fits[0].n_iter == fits[1].n_iter
    assert_allclose(two.weights, one.weights, rtol=1e-6, atol=1e-9)
    assert_allclose(two.certificate.gap, one.certificate.gap, rtol=1e-4, atol=1e-9)
    assert two.certificate.primal == pytest.approx(one.certificate.primal + 1e4)


def test_a_loss_without_a_floor_is_refused():
    class Bottomless(Cox):
        def least(self, y, weight):
            return -np.inf

    problem, Ks = cox_problem(loss=Bottomless())
    with pytest.raises(ValueError, match=r"Bottomless\.least gives -inf: return a finite number"):
        choose_solver("auto", LpNorm(p=2)).solve(problem, DenseGram(Ks), LpNorm(p=2))


@pytest.mark.parametrize("rule", [cls() for cls in REGULARIZERS.values() if not cls().convex], ids=repr)
def test_concave_penalties_come_to_rest(rule):
    problem, Ks = cox_problem()
    found = choose_solver("auto", rule).solve(problem, DenseGram(Ks), rule, tol=1e-3, max_iter=1000)
    assert found.converged
    assert np.all(np.diff(found.history["primal"]) <= 1e-9 * abs(found.history["primal"][0]))


def test_alternating_and_newton_agree():
    problem, Ks = cox_problem()
    for rule in (LpNorm(p=1), ElasticNet()):
        one, two = (
            MKL_SOLVERS[name]().solve(problem, DenseGram(Ks), rule, tol=1e-6, max_iter=3000)
            for name in ("newton", "alternating")
        )
        assert one.state.certificate.primal == pytest.approx(two.state.certificate.primal, rel=2e-6)


def test_factors_give_the_model_of_their_matrices():
    problem, Ks = cox_problem()
    values, vectors = np.linalg.eigh(Ks)
    factors = [
        V[:, s > 1e-12 * s[-1]] * np.sqrt(s[s > 1e-12 * s[-1]]) for s, V in zip(values, vectors, strict=True)
    ]
    rule = LpNorm(p=4 / 3)
    dense = choose_solver("auto", rule).solve(problem, DenseGram(Ks), rule, tol=1e-7)
    low = choose_solver("auto", rule).solve(problem, LowRankGram(StoredFactors(factors)), rule, tol=1e-7)
    assert low.converged
    assert_allclose(low.state.weights, dense.state.weights, atol=1e-3)
    assert low.state.certificate.primal == pytest.approx(dense.state.certificate.primal, rel=2e-7)


def test_a_worst_case_has_its_intercept():
    sample = draw_problem(SoftWorst(), n=40, C=5.0)
    found = choose_solver("auto", LpNorm(p=2)).solve(sample.problem, sample.gram, LpNorm(p=2), tol=1e-7)
    moved = replace(sample.problem, y=sample.problem.y + 7.0)
    other = choose_solver("auto", LpNorm(p=2)).solve(moved, sample.gram, LpNorm(p=2), tol=1e-7)
    assert found.converged
    assert other.state.certificate.intercept == pytest.approx(
        found.state.certificate.intercept + 7.0, abs=1e-3
    )


# -- an independent solver ----------------------------------------------------------------------


def conic_optimum(problem, Ks, rule):
    """The primal itself, f_m = Z_m w_m, in cvxpy."""
    cp = pytest.importorskip("cvxpy")
    ws, f = [], 0
    for values, vectors in map(np.linalg.eigh, Ks):
        kept = values > 1e-13 * values[-1]
        ws.append(cp.Variable(int(kept.sum())))
        f = f + (vectors[:, kept] * np.sqrt(values[kept])) @ ws[-1]
    (time, event), w = problem.y[:, 0].T, problem.weight[:, 0]
    rows = np.flatnonzero(event)
    at_risk = [np.flatnonzero(time >= time[i]) for i in rows]
    loss = sum(
        w[i] * (cp.log_sum_exp(f[R] + np.log(w[R])) - f[i]) for i, R in zip(rows, at_risk, strict=True)
    )
    n, squares = cp.hstack([cp.norm(v, 2) for v in ws]), sum(cp.sum_squares(v) for v in ws)
    if isinstance(rule, ElasticNet):
        omega = rule.l1_ratio * cp.sum(n) + 0.5 * (1 - rule.l1_ratio) * squares
    else:
        omega = 0.5 * cp.square(cp.norm(n, 2 * rule.p / (rule.p + 1)))
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        return cp.Problem(cp.Minimize(problem.C[0, 0] * loss + omega)).solve(solver=cp.CLARABEL, **tight)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("rule", [LpNorm(p=1), LpNorm(p=2), ElasticNet(), ElasticNet(l1_ratio=1.0)], ids=repr)
def test_cox_against_a_conic_solver(rule, weighted):
    problem, Ks = cox_problem(30, weighted=weighted)
    found = choose_solver("auto", rule).solve(problem, DenseGram(Ks), rule, tol=1e-8)
    assert found.state.certificate.primal == pytest.approx(conic_optimum(problem, Ks, rule), rel=1e-6)


# -- an estimator -------------------------------------------------------------------------------


COX = Cox()


class MKLCox(RegressorMixin, BaseMKL):
    """Log hazard as a weighted sum of kernels; y has columns time and event."""

    _tasks = ("survival",)

    def __init__(
        self,
        kernels="auto",
        *,
        loss=COX,
        regularizer="lp",
        C=1.0,
        normalize="variance",
        solver="auto",
        gram="auto",
        approximation=None,
        rank=100,
        tol=1e-3,
        max_iter=200,
        memory_limit=None,
        device=None,
        n_jobs=None,
        random_state=None,
        checkpoint=None,
        verbose=0,
    ):
        self.__dict__.update({name: value for name, value in locals().items() if name != "self"})

    def _setup(self, X, y, sample_weight):
        spec = Spec.of(self)
        table, y = self._validate(X, y, multi_output=True, y_numeric=True)
        weight = check_weights(sample_weight, table)
        used = weight > 0
        targets = y[used, None].astype(float)
        problem = Problem.weighted(targets, spec.loss, self.C, weight[used])
        return Setup(spec, table, weight, [SubProblem("fit", problem)])

    @follows_input
    def predict(self, X):
        return self._decision(X)[:, 0]


@pytest.mark.wide
def test_regression_takes_a_joint_loss():
    check_mkl_estimator(MKLRegressor(loss=SoftWorst(), C=5.0))


def test_an_estimator_takes_the_losses_of_its_task():
    with pytest.raises(ValueError, match=r"loss=SoftWorst\(\) is not for MKLCox"):
        MKLCox(loss=SoftWorst()).fit(*survival())


def test_an_estimator_of_one_file():
    X, y = survival(60)
    check_mkl_estimator(MKLCox(), X[:40], y[:40], X[40:])


def test_a_path_of_an_estimator_of_one_file():
    X, y = survival(40)
    path = mkl_path(MKLCox([Linear(), RBF(gamma=0.1)], tol=1e-6), X, y, values=[0.1, 1.0])
    plain = [MKLCox([Linear(), RBF(gamma=0.1)], C=C, tol=1e-6).fit(X, y) for C in (0.1, 1.0)]
    assert_allclose(path.objective, [model.objective_ for model in plain], rtol=2e-6)


def test_coefficients_and_constant_models_of_an_estimator_of_one_file():
    X, y = survival(40)
    model = MKLCox([Linear()]).fit(X, y)
    assert_allclose(X @ model.coef_ + model.intercept_, model.predict(X), atol=1e-9)
    with pytest.warns(UserWarning, match=r"the model is constant: raise C\.$"):
        MKLCox([Linear()], regularizer="elasticnet", C=1e-6).fit(X, y)


def test_checks_ask_for_targets_of_the_right_kind():
    with pytest.raises(
        AssertionError, match=r"It raised IndexError: .*\nThe targets were random numbers: pass y"
    ):
        check_loss(Cox())
    with pytest.raises(
        AssertionError, match=r"It raised IndexError: .*\nThe data were drawn: pass X, y and X_new"
    ):
        check_mkl_estimator(MKLCox())


ENGINES = [
    *({"gram": name} for name in ("packed", "cached", "blocked")),
    {"approximation": "nystroem", "rank": 80},
    pytest.param({"device": "torch:cpu"}, marks=pytest.mark.torch),
]


@pytest.mark.parametrize("options", ENGINES, ids=str)
def test_every_engine_gives_the_same_model(options):
    if "device" in options:
        pytest.importorskip("torch")
    X, y = survival(80)
    dense, other = (
        MKLCox([Linear(), RBF(gamma=0.1), RBF(gamma=1.0)], tol=1e-7, **chosen).fit(X, y)
        for chosen in ({"gram": "dense"}, options)
    )
    assert_allclose(other.predict(X), dense.predict(X), atol=2e-3)
    assert_allclose(other.objective_, dense.objective_, rtol=1e-6)
    assert getattr(other, "full_rank_gap_", 0.0) <= 1e-3


def test_a_checkpoint_knows_its_weights(tmp_path):
    X, y = survival(40)
    model = MKLCox(checkpoint=tmp_path / "fit.npz").fit(X, y)
    again = MKLCox(checkpoint=tmp_path / "fit.npz").fit(X, y)
    assert_allclose(again.predict(X), model.predict(X), atol=1e-6)
    with pytest.raises(ValueError, match="C or weights of the samples"):
        MKLCox(checkpoint=tmp_path / "fit.npz").fit(X, y, sample_weight=1.0 + np.arange(40) % 2)


def test_rows_drawn_for_a_preconditioner_change_no_solution(monkeypatch):
    """All sums over them are unbiased, and the systems are solved to the same accuracy."""
    rng = np.random.default_rng(0)
    W = rng.exponential(size=2000)
    found = joint_newton.drawn(W, 100)
    assert np.count_nonzero(found) <= 100
    assert found.sum() == pytest.approx(W.sum())
    assert_array_equal(joint_newton.drawn(W, 1000), W)
    X = rng.normal(size=(300, 3))
    Y = np.column_stack([rng.exponential(np.exp(-X[:, 0])), rng.random(300) < 0.7])
    gram = LowRankGram(StoredFactors([np.hstack([X, X**2]), np.sin(X)]))
    problem = Problem.weighted(Y[:, None], Cox(), 1.0, np.ones(300), True)
    K = gram.combine(np.array([0.5, 2.0]))
    machines = []
    for enough in (16, 2):
        monkeypatch.setattr(joint_newton, "ENOUGH", enough)
        machines.append(JointNewton().solve_column(K, problem, 1e-10, np.zeros((300, 1))))
    assert_allclose(machines[1].fitted, machines[0].fitted, atol=1e-5)  # the root of the gap
