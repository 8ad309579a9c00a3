"""Gradient descent in the parameters of a kernel: gradients, descent, stationarity, the convex case."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import kernelweave as kw
from kernelweave.kernels import RBF, Linear, ProductRBF
from kernelweave.kernels import parametric as pk
from kernelweave.losses import LOSSES, EpsInsensitive, Hinge, Squared
from kernelweave.solvers import Problem
from kernelweave.solvers.kernel_gradient import (
    L1,
    L2,
    METHODS,
    PENALTIES,
    Box,
    FunctionPenalty,
    KernelGradient,
    LogDet,
    Objective,
    PenaltySum,
    PowerNorm,
    Projection,
    check_gradient,
)

COVARIANCE = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.5]])

PENALTY_CASES = {
    "l1": L1(0.3),
    "l1 vector": L1([0.1, 0.2, 0.3]),
    "l2": L2(0.5, mean=0.2),
    "l2 covariance": L2(mean=[0.1, 0.2, 0.3], covariance=COVARIANCE),
    "l2 variances": L2(covariance=[1.0, 2.0, 3.0]),
    "power": PowerNorm(p=1.5, strength=0.7),
    "sum": L1(0.5) + L2(0.1) + PowerNorm(p=3.0),
    "function": FunctionPenalty(lambda d: float(np.exp(d).sum()), np.exp),
    "log_det": LogDet(noise=0.1),
    "log_det sum": LogDet() + L1(),
}


def data(n=40, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=n)


def problem_of(name, t, C=2.0):
    loss = EpsInsensitive(eps=0.1) if name == "eps_insensitive" else LOSSES[name]()
    y = {"classification": np.sign(t), "one_class": np.ones_like(t)}.get(loss.task, t)
    cost = 0.1 if name == "one_class" else C
    return Problem(y[:, None], loss, np.full((len(t), 1), cost))


def objective_of(problem, X, kernel=None, penalty=None, constraint=None):
    kernel = (kernel or ProductRBF()).fit(X)
    objective = Objective(problem, kernel, X, penalty or L1(0.3), constraint or Box())
    objective.accuracy = 1e-13
    return objective


def finite_differences(value, u, step=1e-4):
    slopes = []
    for k in range(len(u)):
        e = step * (np.arange(len(u)) == k)
        slopes.append((8 * (value(u + e) - value(u - e)) - value(u + 2 * e) + value(u - 2 * e)) / (12 * step))
    return np.array(slopes)


def assert_right_slope(objective, u):
    expected = finite_differences(lambda at: objective.evaluate(at).objective, u)
    slope = objective.slope(objective.evaluate(u))
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.parametrize(
    "kernel",
    [ProductRBF(), pk.PowerSum(), pk.ExpSum(), pk.WeightedSum([Linear(), RBF(0.5)])],
    ids=lambda kernel: kernel.name,
)
def test_slope_equals_finite_differences_for_every_loss(name, kernel):
    X, t = data()
    objective = objective_of(problem_of(name, t), X, kernel)
    u = np.random.default_rng(1).uniform(0.5, 1.5, len(objective.start))
    assert_right_slope(objective, u)


@pytest.mark.parametrize("penalty", PENALTY_CASES.values(), ids=PENALTY_CASES)
def test_slope_equals_finite_differences_for_every_penalty(penalty):
    X, t = data()
    assert_right_slope(objective_of(problem_of("squared", t), X, penalty=penalty), np.array([0.7, 1.2, 0.9]))


def test_slope_of_outputs_that_share_the_kernel():
    X, t = data()
    problem = Problem(np.column_stack([t, t**2]), Squared(), np.ones((len(t), 1)))
    assert_right_slope(objective_of(problem, X), np.array([0.7, 1.2, 0.9]))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "name", ["hinge", "logistic", "squared", "eps_insensitive", "squared_hinge", "huber"]
)
def test_stationary_at_the_end(method, name):
    X, t = data(60)
    problem = problem_of(name, t, C=5.0)
    solution = KernelGradient(method).solve(problem, ProductRBF(), X, L1(0.5), max_iter=2000)
    assert solution.converged
    assert solution.state.residual <= 1e-4
    # from the definition: at d, with a freshly trained machine
    objective = objective_of(problem, X, penalty=L1(0.5))
    point = objective.evaluate(solution.state.d / objective.scale)
    assert point.objective == pytest.approx(solution.state.objective, rel=1e-6)
    assert objective.residual(point) <= 2e-4
    gradient = objective.slope(point) / objective.scale
    assert (gradient * solution.state.d).max() <= 1e-2 * point.objective
    assert (gradient[solution.state.d == 0] >= -1e-2 * point.objective).all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("n", [80, 300])  # machines are solved exactly, or to an accuracy
@pytest.mark.parametrize("name", ["hinge", "squared"])
def test_objective_never_rises(name, n):
    X, t = data(n, 6)
    problem = problem_of(name, t, C=20.0)
    solution = KernelGradient().solve(problem, ProductRBF(), X, tol=1e-3, max_iter=2000)
    values = np.array(solution.history["objective"])
    assert len(values) > 3
    assert (np.diff(values) <= 0).all()


def test_methods_agree_on_a_convex_problem():
    X, t = data(50)
    problem, kernel = problem_of("hinge", t), pk.WeightedSum([Linear(), RBF(0.2), RBF(1.0)])
    values = [
        KernelGradient(m).solve(problem, kernel, X, tol=1e-5, max_iter=3000).state.objective for m in METHODS
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-5)


@pytest.mark.parametrize("name", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize("sigma", [0.5, np.array([0.2, 0.5, 1.0, 2.0])], ids=["equal", "different"])
def test_weighted_sum_with_l1_is_multiple_kernel_learning(name, sigma):
    """r(d) = sigma' d is 1/2 h(d) with h(d) = sum_m 2 sigma_m d_m."""
    X, t = data(70)
    kernels = [Linear(), RBF(0.1), RBF(0.5), RBF(2.0)]
    ours = KernelGradient().solve(
        problem_of(name, t), pk.WeightedSum(kernels), X, L1(sigma), tol=1e-5, max_iter=2000
    )
    costs = 2.0 * np.broadcast_to(sigma, 4)
    other = kw.MKLClassifier if name != "squared" else kw.MKLRegressor
    y = np.sign(t) if name != "squared" else t
    model = other(
        kernels,
        loss=name,
        C=2.0,
        normalize=None,
        tol=1e-6,
        max_iter=2000,
        regularizer=kw.LpNorm(p=1, form="penalty", costs=costs),
    ).fit(X, y)
    assert ours.state.objective == pytest.approx(model.objective_, rel=1e-4)
    np.testing.assert_allclose(ours.state.d, model.weights_, rtol=0.05, atol=0.02 * model.weights_.max())


def test_log_det_is_the_evidence_of_a_gaussian_process():
    X, t = data()
    problem = Problem(t[:, None], Squared(), np.full((len(t), 1), 4.0), fit_intercept=False)
    objective = objective_of(problem, X, penalty=LogDet())
    u = np.array([0.5, 1.0, 2.0])
    A = ProductRBF()(X, d=objective.d(u)) + np.eye(len(t)) / 4.0
    evidence = 0.5 * t @ np.linalg.solve(A, t) + 0.5 * np.linalg.slogdet(A)[1]
    assert objective.evaluate(u).objective == pytest.approx(evidence)
    solution = KernelGradient().solve(problem, ProductRBF(), X, "log_det")
    assert solution.state.objective < evidence


def test_one_class_drives_a_product_to_zero():
    X, t = data()
    solution = KernelGradient().solve(problem_of("one_class", t), ProductRBF(), X, max_iter=500)
    assert solution.state.d.max() < 1e-3


# -- parameters of either sign --------------------------------------------------------------------


def difference_of_features(n=60, p=4, seed=0):
    """Only x_0 - x_1 matters: no d >= 0 of one direction can say so."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.tanh(X[:, 0] - X[:, 1]) + 0.1 * rng.normal(size=n)


SIGNED_PENALTIES = [
    L1(0.3),
    L1([0.1, 0.0, 0.3, 0.2]),
    L2(0.5, mean=-0.2),
    PowerNorm(p=1.5),
    L1(0.2) + L2(0.1),
]


@pytest.mark.parametrize("penalty", SIGNED_PENALTIES, ids=repr)
def test_slope_in_parameters_of_either_sign(penalty):
    X, t = difference_of_features(30)
    objective = objective_of(problem_of("squared", t), X, pk.ProjectedRBF(), penalty, Box(lower=-np.inf))
    rng = np.random.default_rng(1)
    d = objective.scale * rng.uniform(0.5, 1.0, 4) * np.array([1.0, -1.0, 1.0, -1.0])
    u = objective.u(d)
    np.testing.assert_allclose(objective.d(u), d, rtol=1e-12)
    # both parts of what is split: the value is that of the definition, and twice the smaller part
    value = objective.evaluate(u).objective
    both = u.copy()
    both[objective.split] += 0.1
    both[objective.n_parameters :] += 0.1
    extra = 0.2 * penalty.kinks(4)[objective.split] @ objective.scale[objective.split]
    assert objective.evaluate(both).objective == pytest.approx(value + extra, rel=1e-9)
    assert objective.settled(objective.evaluate(both)).objective == pytest.approx(value, rel=1e-9)
    assert_right_slope(objective, both)


@pytest.mark.parametrize(
    ("name", "penalty", "method"),
    [
        ("squared", L1(0.5), "lbfgsb"),
        ("squared", L1(0.5), "spectral"),
        ("squared", L2(0.5), "spectral"),
        ("squared_hinge", L1(0.3) + L2(0.1), "lbfgsb"),
        pytest.param("ranking", L1(0.3), "lbfgsb", marks=pytest.mark.slow),
    ],
)
def test_stationary_in_the_signed_domain(name, penalty, method):
    """From the definition: 0 is a subgradient of T at d, at a freshly trained machine."""
    X, t = difference_of_features(50)
    problem, kernel = problem_of(name, t, C=5.0), pk.ProjectedRBF()
    solution = KernelGradient(method).solve(problem, kernel, X, penalty, max_iter=2000)
    assert solution.converged
    d, kernel = solution.state.d, kernel.fit(X)
    kinks = penalty.kinks(4)
    objective = objective_of(problem, X, kernel, FunctionPenalty(lambda d: 0.0, np.zeros_like), Box(-np.inf))
    point = objective.evaluate(d / objective.scale)
    fit = objective.slope(point) / objective.scale
    smooth = fit + penalty.gradient(d) - kinks * np.where(d < 0, -1.0, 1.0)
    zero = d == 0
    assert (np.abs(smooth[zero]) <= kinks[zero] + 1e-2 * point.objective).all()
    slopes = (smooth + kinks * np.sign(d)) * np.maximum(np.abs(d), 0.05 * objective.scale)
    assert np.abs(slopes[~zero]).max() <= 1e-2 * point.objective
    assert solution.state.objective == pytest.approx(point.objective + penalty.value(d), rel=1e-6)


def test_a_negative_weight_pays():
    X, t = difference_of_features(80)
    problem = problem_of("squared", t, C=5.0)
    free = KernelGradient().solve(problem, pk.ProjectedRBF(), X, L1(0.5))
    held = KernelGradient().solve(problem, pk.ProjectedRBF(), X, L1(0.5), Box())
    assert (held.state.d >= 0).all()
    assert free.state.objective < 0.5 * held.state.objective
    assert free.state.d[0] == pytest.approx(-free.state.d[1], rel=0.1)
    assert np.abs(free.state.d[2:]).max() < 0.1 * np.abs(free.state.d[:2]).min()


def test_bounds_of_either_sign():
    X, t = difference_of_features(50)
    box = Box(lower=[-0.2, -0.1, -np.inf, -0.3], upper=[0.2, np.inf, 0.1, -0.05])
    for method in METHODS:
        d = (
            KernelGradient(method)
            .solve(problem_of("squared", t), pk.ProjectedRBF(), X, constraint=box, tol=1e-3)
            .state.d
        )
        low, high = box.bounds(4)
        assert ((d >= low - 1e-12) & (d <= high + 1e-12)).all()
    with pytest.raises(ValueError, match="lets parameters of ProductRBF be negative"):
        KernelGradient().solve(problem_of("squared", t), ProductRBF(), X, constraint=box)


def test_a_metric_is_stationary_in_the_cone():
    """A >= 0, the slope S in A has no negative eigenvalue, and <A, S> = 0."""
    X, t = difference_of_features(40, 3)
    problem, kernel = problem_of("squared", t, C=5.0), pk.MetricRBF().fit(X)
    solution = KernelGradient("auto").solve(problem, kernel, X, L2(0.1), max_iter=2000)
    assert solution.converged
    A = kernel.matrix(solution.state.d)
    assert np.linalg.eigvalsh(A)[0] >= -1e-10
    assert A[0, 1] < -0.5 * A[0, 0]
    objective = objective_of(problem, X, kernel, L2(0.1), kernel.domain())
    point = objective.evaluate(solution.state.d / objective.scale)
    S = kernel.matrix(objective.slope(point)) / point.objective
    assert np.linalg.eigvalsh(S)[0] >= -1e-3
    assert abs((A * S).sum()) <= 1e-3 * np.linalg.norm(A)
    product = KernelGradient().solve(problem, ProductRBF(), X, L2(0.1))
    assert solution.state.objective < 0.8 * product.state.objective  # the diagonal alone
    with pytest.raises(ValueError, match="lie in a set that is no box"):
        KernelGradient("auto").solve(problem, kernel, X, L2(), Box())
    with pytest.raises(ValueError, match="not differentiable where parameters of either sign are 0"):
        KernelGradient("auto").solve(problem, kernel, X, L1())


@pytest.mark.slow
def test_the_trace_of_a_metric():
    """l1 on the diagonal alone: T falls, and the rank with it."""
    X, t = difference_of_features(50, 3)
    problem, kernel = problem_of("squared", t, C=5.0), pk.MetricRBF().fit(X)
    trace = KernelGradient("auto").solve(
        problem, kernel, X, L1([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]), max_iter=2000
    )
    assert trace.converged
    values = np.linalg.eigvalsh(kernel.matrix(trace.state.d))
    assert values[1] < 0.1 * values[2]
    assert trace.state.objective < min(trace.history["objective"][:2])


def test_random_starts_have_both_signs():
    X, t = difference_of_features(40)
    objective = objective_of(problem_of("squared", t), X, pk.ProjectedRBF(), L1(), Box(lower=-np.inf))
    starts = KernelGradient(n_init=6, random_state=0)._starts(objective)
    ds = np.array([objective.d(u) for u in starts[1:]])
    assert (ds > 0).any(axis=0).all()
    assert (ds < 0).any(axis=0).all()


@pytest.mark.parametrize("method", METHODS)
def test_box(method):
    X, t = data()
    box = Box(lower=0.01, upper=[0.2, 0.02, np.inf])
    d = KernelGradient(method).solve(problem_of("hinge", t, 50.0), ProductRBF(), X, constraint=box).state.d
    assert (d >= 0.01 - 1e-12).all()
    assert d[0] <= 0.2 + 1e-12
    assert d[1] <= 0.02 + 1e-12


def test_projection_onto_a_ball():
    X, t = data()
    radius = 0.3

    def onto_ball(d):
        d = np.maximum(d, 0.0)
        return d * min(1.0, radius / max(np.linalg.norm(d), 1e-300))

    solution = KernelGradient("spectral").solve(
        problem_of("hinge", t, 50.0), ProductRBF(), X, L1(0.01), onto_ball, max_iter=2000
    )
    assert solution.converged
    assert np.linalg.norm(solution.state.d) == pytest.approx(radius)


def test_held_parameters_stay_zero():
    X, t = data()
    free = np.array([True, False, True])
    for method in METHODS:
        solution = KernelGradient(method).solve(problem_of("hinge", t), ProductRBF(), X, free=free, tol=1e-3)
        assert solution.state.d[1] == 0.0
    part = KernelGradient("lbfgsb").solve(problem_of("hinge", t), ProductRBF(columns=[0, 2]), X, tol=1e-6)
    whole = KernelGradient("lbfgsb").solve(problem_of("hinge", t), ProductRBF(), X, tol=1e-6, free=free)
    assert whole.state.objective == pytest.approx(part.state.objective, rel=1e-3)


def test_more_starts_are_no_worse_and_repeatable():
    X, t = data(50, 6)
    problem = problem_of("hinge", t, 100.0)
    one, five, again = (
        KernelGradient(n_init=n, random_state=0).solve(problem, ProductRBF(), X) for n in (1, 5, 5)
    )
    assert five.state.objective <= one.state.objective
    np.testing.assert_array_equal(five.state.d, again.state.d)


def test_units_of_features_do_not_matter():
    X, t = data(60)
    factor = np.array([1e-3, 1.0, 1e4])
    penalty = L1(factor**2)
    plain = KernelGradient().solve(problem_of("hinge", t), ProductRBF(), X)
    scaled = KernelGradient().solve(problem_of("hinge", t), ProductRBF(), X * factor, penalty)
    np.testing.assert_allclose(scaled.state.d * factor**2, plain.state.d, rtol=1e-3, atol=1e-6)


def test_single_precision_gives_nearly_the_same():
    X, t = data(300)
    problem = problem_of("hinge", t)
    double = KernelGradient().solve(problem, ProductRBF(), X)
    single = KernelGradient().solve(problem, ProductRBF(), X.astype(np.float32), tol=1e-3)
    assert single.state.objective == pytest.approx(double.state.objective, rel=1e-2)


def test_no_matrix_of_all_pairs_beside_the_kernel(monkeypatch):
    """The gradient works in row blocks: its largest array stays below BLOCK_ENTRIES."""
    monkeypatch.setattr(pk.base, "BLOCK_ENTRIES", 1000)
    X, t = data(100)
    shapes = []

    class Watched(ProductRBF):
        def _contract_outer(self, X, Z, left, right, d, K):
            shapes.append(K.shape)
            return super()._contract_outer(X, Z, left, right, d, K)

    KernelGradient().solve(problem_of("squared", t), Watched(), X)
    assert max(rows * columns for rows, columns in shapes) <= 1000


class Wrong(ProductRBF):
    """The gradient of its second component lacks a factor."""

    def _gather(self, slopes):
        return super()._gather(slopes) * np.array([1.0, 0.5, 1.0])


def test_a_wrong_gradient_is_named():
    X, _ = data()
    with pytest.raises(
        ValueError, match=r"Wrong.grad_quad is wrong in 1 of 3 components, such as 1 \('x1'\)"
    ):
        check_gradient(Wrong(), X)
    with pytest.raises(ValueError, match=r"FunctionPenalty.gradient is wrong in 3 of 3"):
        check_gradient(ProductRBF(), X, penalty=FunctionPenalty(lambda d: (d**2).sum(), lambda d: d))


@pytest.mark.parametrize("kernel", [ProductRBF(), pk.PowerSum(), pk.ExpSum()], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("penalty", [L1(), L2(mean=0.1), PowerNorm()], ids=lambda penalty: penalty.name)
def test_right_gradients_pass_the_check(kernel, penalty):
    check_gradient(kernel, data()[0], penalty=penalty)


def test_an_unfinished_run_says_so():
    X, t = data()
    with pytest.warns(ConvergenceWarning, match="stationarity residual is .* after 2 steps"):
        KernelGradient().solve(problem_of("hinge", t, 100.0), ProductRBF(), X, tol=1e-9, max_iter=2)


def test_interruption_keeps_the_last_iterate():
    X, t = data()

    def interrupt(iteration, run):
        if iteration == 1:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        solution = KernelGradient("spectral").solve(
            problem_of("hinge", t), ProductRBF(), X, tol=1e-9, callback=interrupt
        )
    assert solution.n_iter == 2
    stopped = KernelGradient().solve(problem_of("hinge", t), ProductRBF(), X, tol=10.0)
    assert stopped.n_iter == 0


def test_an_infinite_kernel_is_stepped_back_from_or_refused():
    X, t = data()
    with pytest.raises(ValueError, match="infinite or constant at its start"):
        KernelGradient().solve(problem_of("hinge", t), _Explosive(), X)


class _Explosive(ProductRBF):
    def _compute(self, X, Z, d):
        return np.full((len(X), len(Z)), np.inf)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": "l3"}, "regularizer='l3' is not a penalty"),
        ({"penalty": L1([1.0, 2.0])}, "each of the 3 parameters"),
        ({"penalty": L1(-1.0)}, "non-negative"),
        ({"penalty": L2(covariance=[1.0])}, "covariance has shape"),
        ({"penalty": L2(covariance=[1.0, -1.0, 1.0])}, "positive definite"),
        ({"penalty": PowerNorm(p=1.0)}, "use L1 for p = 1"),
        ({"penalty": LogDet(noise=0.0)}, "noise=0.0"),
        ({"penalty": PenaltySum([])}, "penalties is empty"),
        ({"penalty": FunctionPenalty(1, 2)}, "function is not callable"),
        ({"penalty": FunctionPenalty(np.sum, np.sum)}, "slope returned shape"),
        ({"constraint": 3}, "expected None, a Box"),
        ({"constraint": Box(upper=[1.0, 2.0])}, "one for each of the 3"),
        ({"constraint": Box(lower=2.0, upper=1.0)}, "0 <= lower <= upper"),
        ({"constraint": Projection(lambda d: d)}, "takes only a Box"),
    ],
)
def test_bad_input(options, message):
    X, t = data()
    with pytest.raises(ValueError, match=message):
        KernelGradient().solve(problem_of("hinge", t), ProductRBF(), X, **options)


@pytest.mark.parametrize(
    ("solver", "message"),
    [(KernelGradient("newton"), "solver='newton'"), (KernelGradient(n_init=0), "n_init=0")],
)
def test_bad_solver(solver, message):
    X, t = data()
    with pytest.raises(ValueError, match=message):
        solver.solve(problem_of("hinge", t), ProductRBF(), X)


def test_no_cost_no_problem():
    X, t = data()
    with pytest.raises(ValueError, match="C = 0"):
        KernelGradient().solve(Problem(t[:, None], Hinge(), np.zeros((len(t), 1))), ProductRBF(), X)


def test_projections_that_do_not_project():
    with pytest.raises(ValueError, match="no negative entries"):
        Projection(lambda d: d - 1.0).project(np.zeros(2))


def test_registered_penalties_have_defaults():
    for name in PENALTIES:
        PENALTIES[name]().check(3)
    with pytest.raises(TypeError):
        L1() + 1.0
