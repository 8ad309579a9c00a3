"""Paths: every point is the model a cold fit finds, with a gap of its own, for less work."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

import kernelweave as kw
from kernelweave.estimators._base import Spec
from kernelweave.estimators.path import prepare
from kernelweave.kernels import RBF, Constant, FunctionKernel, Linear
from kernelweave.regularizers import PatternNorm

# small costs buy nothing: the paths start there
pytestmark = pytest.mark.filterwarnings("ignore:every kernel has weight 0")

TOL = 1e-6
KERNELS = [Linear(), RBF(gamma=0.3), RBF(gamma=3.0)]
MODELS = {"classifier": kw.MKLClassifier, "regressor": kw.MKLRegressor}
COSTS = [0.03, 0.3, 3.0, 30.0]

#: regulariser, parameter, values
CONVEX = {
    "C of p=1": (kw.LpNorm(p=1), "C", COSTS),
    "C of p=2": (kw.LpNorm(p=2), "C", COSTS),
    "C of the penalty": (kw.LpNorm(p=2, form="penalty"), "C", COSTS),
    "C of the elastic net": (kw.ElasticNet(), "C", COSTS),
    "C of the group lasso": (kw.ElasticNet(l1_ratio=1.0), "C", COSTS),
    "C of Mahalanobis": (kw.Mahalanobis(), "C", COSTS),
    "C of the wedge": (kw.Wedge(), "C", COSTS),
    "C of the uniform sum": (kw.Uniform(), "C", COSTS),
    "C of a norm of patterns": (PatternNorm([[1, 1, 0], [0, 1, 1]]), "C", COSTS),
    "p": (kw.LpNorm(), "p", [1, 1.1, 4 / 3, 2, 4, np.inf]),
    "regularizer__p": (kw.LpNorm(), "regularizer__p", [4.0, 2.0, 1.0]),
    "l1_ratio": (kw.ElasticNet(), "l1_ratio", [0.0, 0.1, 0.5, 0.9, 1.0]),
    "q": (kw.BlockNorm(), "q", [1.0, 1.5, 2.0, 3.0, 8.0]),
    "q up to infinity": (kw.BlockNorm(), "q", [4.0, np.inf]),
    "regularizer": (
        kw.LpNorm(),
        "regularizer",
        ["uniform", kw.LpNorm(p=1), kw.ElasticNet(), kw.Wedge(), kw.BlockNorm(q=3.0)],
    ),
}


@pytest.fixture(params=MODELS)
def data(request, binary, regression):
    """An estimator class and data for it."""
    source = binary if request.param == "classifier" else regression
    return MODELS[request.param], source.X, source.y


def cold_fits(estimator, path, X, y, sample_weight=None):
    """The estimator fitted from scratch at every value."""
    return [
        clone(estimator).set_params(**{path.param: value}).fit(X, y, sample_weight) for value in path.values
    ]


def assert_same_models(path, fits, tol=TOL):
    """Objectives within the two gaps, norms within their square root (strong convexity)."""
    assert len(path) == len(fits)
    for k, fit in enumerate(fits):
        np.testing.assert_allclose(path.objective[k], fit.objective_, rtol=2.0 * tol)
        scale = max(float(np.max(fit.norms_)), 1e-6)
        np.testing.assert_allclose(path.norms[k], fit.norms_, atol=20.0 * tol**0.5 * scale)


# -- every point is certified, and is what a cold fit finds ---------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CONVEX)
def test_every_point_is_certified_and_equals_a_cold_fit(data, case):
    Model, X, y = data
    regularizer, param, values = CONVEX[case]
    estimator = Model(KERNELS, regularizer=regularizer, tol=TOL)
    path = kw.mkl_path(estimator, X, y, param, values)
    assert path.values == values
    assert path.weights.shape == path.norms.shape == (len(values), 3)
    assert path.dual_gap.shape == path.objective.shape == path.n_iter.shape == (len(values),)
    assert (path.dual_gap <= TOL).all()
    assert (path.dual_gap >= -1e-9).all()
    assert_same_models(path, cold_fits(estimator, path, X, y))


#: weights of these are unique; a scale is free in homogeneous ones, vanishing dual norms in q = inf
UNIQUE = ["C of p=1", "C of p=2", "C of the penalty", "C of Mahalanobis", "p", "q"]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", UNIQUE)
def test_weights_equal_those_of_cold_fits(data, case):
    Model, X, y = data
    regularizer, param, values = CONVEX[case]
    estimator = Model(KERNELS, regularizer=regularizer, tol=TOL)
    path = kw.mkl_path(estimator, X, y, param, values)
    for weights, fit in zip(path.weights, cold_fits(estimator, path, X, y), strict=True):
        np.testing.assert_allclose(weights, fit.weights_, atol=0.02 * fit.weights_.max())


#: rules under which weights of known points may be outside of the bound, and parameters that move the bound
ALLOWED = {
    **{f"p={p:.3g}": (kw.LpNorm(p=p), "C") for p in (1.0, 4 / 3, 2.0, 4.0, np.inf)},
    "penalty": (kw.LpNorm(p=2.0, form="penalty"), "C"),
    "elastic net": (kw.ElasticNet(l1_ratio=0.5), "C"),
    "bounded elastic net": (kw.ElasticNet(l1_ratio=0.5, form="constraint"), "C"),
    "q=1.5": (kw.BlockNorm(q=1.5), "C"),
    "q=4": (kw.BlockNorm(q=4.0), "C"),
    "Mahalanobis": (kw.Mahalanobis([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]]), "C"),
    "wedge": (kw.Wedge(), "C"),
    "p": (kw.LpNorm(), "p"),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", ALLOWED)
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge", "huber", "squared"])
def test_weights_are_within_the_bound_of_the_regulariser(binary, regression, loss, case):
    """At points whose solution follows from that of others, too: it is interpolated, or carried over."""
    Model, source = (
        (kw.MKLRegressor, regression) if loss in ("huber", "squared") else (kw.MKLClassifier, binary)
    )
    rule, param = ALLOWED[case]
    values = np.geomspace(1e-2, 1e3, 25) if param == "C" else np.geomspace(1.1, 8.0, 25)
    path = kw.mkl_path(
        Model(KERNELS, loss=loss, regularizer=rule), source.X, source.y, param, values.tolist()
    )
    assert (path.dual_gap <= 1e-3).all()
    for value, weights in zip(values, path.weights, strict=True):
        own = rule if param == "C" else clone(rule).set_params(p=value)
        assert np.isfinite(own.price(weights))
        factor = own.multiple(weights)
        assert factor is None or not weights.any() or factor == pytest.approx(1.0, abs=1e-9)


def variance_normalised(X):
    Ks = [linear_kernel(X), rbf_kernel(X, gamma=0.3), rbf_kernel(X, gamma=3.0)]
    return np.array([K / (K.diagonal().mean() - K.mean()) for K in Ks])


def hinge(y, f, alpha, C):
    return C * np.maximum(0.0, 1.0 - y * f).sum(), -(y * alpha).sum()


def squared(y, f, alpha, C):
    return C * 0.5 * ((y - f) ** 2).sum(), (alpha**2 / (2.0 * C) - y * alpha).sum()


def lp(p):
    """Omega(n) and Omega*(r) of the lp constraint."""
    q, dual = 2.0 * p / (p + 1.0), np.inf if p == 1 else p / (p - 1.0)
    return (
        lambda n: 0.5 * np.linalg.norm(n, q) ** 2,
        lambda r: 0.5 * np.linalg.norm(r**2, dual),
    )


def elastic_net(a):
    return (
        lambda n: a * n.sum() + 0.5 * (1.0 - a) * (n**2).sum(),
        lambda r: (np.maximum(r - a, 0.0) ** 2).sum() / (2.0 * (1.0 - a)),
    )


def block(q):
    return (
        lambda n: 0.5 * np.linalg.norm(n, q) ** 2,
        lambda r: 0.5 * np.linalg.norm(r, q / (q - 1.0)) ** 2,
    )


#: parameter, values, and the two block norms as functions of the value
DEFINED = {
    "p": (kw.LpNorm(), [1.0, 4 / 3, 2.0], lp),
    "l1_ratio": (kw.ElasticNet(), [0.2, 0.5, 0.8], elastic_net),
    "q": (kw.BlockNorm(), [1.5, 3.0, 8.0], block),
}


@pytest.mark.parametrize("param", DEFINED)
def test_gaps_recomputed_from_the_definition(data, param):
    """At the weights and dual variables of every point, from Gram matrices of scikit-learn."""
    Model, X, y = data
    regularizer, values, norms = DEFINED[param]
    estimator = Model(KERNELS, regularizer=regularizer, C=2.0, tol=TOL)
    points = [Spec.of(clone(estimator).set_params(**{f"regularizer__{param}": value})) for value in values]
    [solutions] = prepare(estimator, X, y, None).solve(points)
    path = kw.mkl_path(Model(KERNELS, regularizer=regularizer, C=2.0, tol=TOL), X, y, param, values)

    Ks, is_class = variance_normalised(X), Model is kw.MKLClassifier
    target, loss = (np.where(y == 1, 1.0, -1.0), hinge) if is_class else (y, squared)
    for k, (value, solution) in enumerate(zip(values, solutions, strict=True)):
        alpha, weights = solution.state.alpha[:, 0], solution.state.weights
        np.testing.assert_array_equal(path.weights[k], weights)
        assert abs(alpha.sum()) <= 1e-9 * np.abs(alpha).sum()
        if is_class:
            assert (-1e-12 <= target * alpha).all()
            assert (target * alpha <= 2.0 * (1.0 + 1e-12)).all()
        r = np.sqrt(np.einsum("i,mij,j->m", alpha, Ks, alpha))
        f = np.einsum("m,mij,j->i", weights, Ks, alpha) + solution.state.certificate.intercept
        cost, conjugate = loss(target, f, alpha, 2.0)
        omega, omega_conjugate = norms(value)
        primal, dual = cost + omega(weights * r), -conjugate - omega_conjugate(r)
        np.testing.assert_allclose(path.objective[k], primal, rtol=1e-9)
        np.testing.assert_allclose(path.dual_gap[k], (primal - dual) / primal, atol=1e-9)
        assert (primal - dual) / primal <= TOL


# -- SMKL: not convex, so no gap, but the same stationary point -----------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("param", "values"), [("eta", [0.3, 1.0, 3.0]), ("C", [0.3, 1.0, 3.0])])
def test_smkl(data, param, values):
    Model, X, y = data
    estimator = Model(KERNELS, regularizer=kw.SMKL(), tol=1e-4)
    path = kw.mkl_path(estimator, X, y, param, values)
    assert np.isinf(path.dual_gap).all()
    for k, fit in enumerate(cold_fits(estimator, path, X, y)):
        np.testing.assert_array_equal(path.weights[k] > 0, fit.weights_ > 0)
        np.testing.assert_allclose(path.objective[k], fit.objective_, rtol=1e-3)
    # stronger selection keeps no more kernels
    kept = (path.weights > 0).sum(axis=1)
    assert (np.diff(kept if param == "C" else -kept) >= 0).all()


# -- several models -------------------------------------------------------------------------------


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("scheme", "n_models"), [("ovr", 4), ("ovo", 6), ("shared", 1)])
@pytest.mark.parametrize(("param", "values"), [("C", [0.1, 1.0, 10.0]), ("p", [1.0, 2.0])])
def test_multiclass(four, scheme, n_models, param, values):
    estimator = kw.MKLClassifier(KERNELS, regularizer=kw.LpNorm(), multiclass=scheme, tol=TOL)
    path = kw.mkl_path(estimator, four.X, four.y, param, values)
    models = () if n_models == 1 else (n_models,)
    assert path.weights.shape == path.norms.shape == (len(values), *models, 3)
    assert path.dual_gap.shape == path.objective.shape == path.n_iter.shape == (len(values), *models)
    assert (path.dual_gap <= TOL).all()
    assert_same_models(path, cold_fits(estimator, path, four.X, four.y))


@pytest.mark.parametrize(("multioutput", "models"), [("shared", ()), ("independent", (3,))])
def test_several_outputs(regression, multioutput, models):
    Y = np.column_stack([regression.y, regression.y**2, -regression.y])
    estimator = kw.MKLRegressor(KERNELS, regularizer=kw.ElasticNet(), multioutput=multioutput, tol=TOL)
    path = kw.mkl_path(estimator, regression.X, Y, "l1_ratio", [0.1, 0.5, 0.9])
    assert path.weights.shape == (3, *models, 3)
    assert_same_models(path, cold_fits(estimator, path, regression.X, Y))


# -- what is started from does not matter ---------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("regularizer", [kw.LpNorm(p=1), kw.LpNorm(p=2), kw.ElasticNet()], ids=str)
def test_the_order_of_values_does_not_matter(data, regularizer):
    Model, X, y = data
    estimator = Model(KERNELS, regularizer=regularizer, tol=TOL)
    order = [2, 0, 3, 1]
    up = kw.mkl_path(estimator, X, y, values=COSTS)
    for other in (order, [3, 2, 1, 0]):
        path = kw.mkl_path(estimator, X, y, values=[COSTS[k] for k in other])
        np.testing.assert_allclose(path.objective, up.objective[other], rtol=2.0 * TOL)


def test_precomputed_kernels_give_the_same_path(binary, grams):
    features = kw.mkl_path(kw.MKLClassifier([Linear(), RBF(gamma=0.3)]), binary.X, binary.y, values=COSTS)
    stack = kw.KernelStack([grams[0][:, :, 0], grams[0][:, :, 1]])
    for X in (grams[0], stack):
        path = kw.mkl_path(kw.MKLClassifier("precomputed"), X, binary.y, values=COSTS)
        np.testing.assert_allclose(path.weights, features.weights, rtol=1e-6)


def test_kernels_are_evaluated_once(binary):
    calls = []

    def counted(X, Z):
        calls.append(X.shape)
        return rbf_kernel(X, Z, gamma=0.3)

    estimator = kw.MKLClassifier([FunctionKernel(counted), FunctionKernel(linear_kernel)])
    path = kw.mkl_path(estimator, binary.X, binary.y, values=np.geomspace(0.01, 10.0, 8))
    assert len(path) == 8
    assert calls == [binary.X.shape]


def test_fifty_costs_by_default(binary):
    path = kw.mkl_path(kw.MKLClassifier([RBF(gamma=0.3)], regularizer="uniform"), binary.X, binary.y)
    assert path.param == "C"
    np.testing.assert_allclose(path.values, np.geomspace(1e-3, 1e3, 50))


# -- warm starts pay ------------------------------------------------------------------------------

WARM = {
    "p=1": (kw.LpNorm(p=1), "C", np.geomspace(0.01, 100.0, 25)),
    "p=4/3": (kw.LpNorm(p=4 / 3), "C", np.geomspace(0.01, 100.0, 25)),
    "p=2": (kw.LpNorm(p=2), "C", np.geomspace(0.01, 100.0, 25)),
    "elastic net": (kw.ElasticNet(), "C", np.geomspace(0.01, 100.0, 25)),
    "orders": (kw.LpNorm(), "p", np.geomspace(1.0, 8.0, 15)),
    "ratios": (kw.ElasticNet(), "l1_ratio", np.linspace(0.1, 0.9, 15)),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", WARM)
def test_warm_starts_need_fewer_machines(data, case):
    Model, X, y = data
    regularizer, param, values = WARM[case]
    kernels = [RBF(gamma=gamma) for gamma in np.geomspace(0.01, 10.0, 8)]
    estimator = Model(kernels, regularizer=regularizer)
    path = kw.mkl_path(estimator, X, y, param, values)
    cold = sum(fit.n_iter_ for fit in cold_fits(estimator, path, X, y))
    assert path.n_iter.sum() < cold


# -- what is passed in, and what comes out --------------------------------------------------------


def test_the_estimator_is_left_as_it_is(binary):
    regularizer = kw.LpNorm(p=2)
    estimator = kw.MKLClassifier(KERNELS, regularizer=regularizer, C=0.7)
    before = dict(vars(estimator))
    kw.mkl_path(estimator, binary.X, binary.y, values=COSTS)
    kw.mkl_path(estimator, binary.X, binary.y, "p", [1.0, 4.0])
    kw.mkl_path(estimator, binary.X, binary.y, "regularizer", ["uniform", kw.ElasticNet()])
    assert vars(estimator) == before
    assert estimator.regularizer is regularizer
    assert (regularizer.p, estimator.C) == (2, 0.7)


def test_a_fitted_estimator_stays_fitted(binary):
    estimator = kw.MKLClassifier(KERNELS).fit(binary.X, binary.y)
    weights = estimator.weights_.copy()
    kw.mkl_path(estimator, binary.X, binary.y, values=COSTS)
    np.testing.assert_array_equal(estimator.weights_, weights)


def test_the_estimators_own_cost_does_not_matter(binary):
    one, other = (
        kw.mkl_path(kw.MKLClassifier(KERNELS, C=C), binary.X, binary.y, values=COSTS) for C in (1.0, 17.0)
    )
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-3)


def test_frame(binary):
    kernels = {"line": Linear(), "bump": RBF(gamma=0.3)}
    path = kw.mkl_path(kw.MKLClassifier(kernels), binary.X, binary.y, values=COSTS)
    frame = path.frame()
    assert list(frame.columns) == ["line", "bump"] == path.kernel_names
    assert frame.index.name == path.param == "C"
    assert list(frame.index) == COSTS
    np.testing.assert_array_equal(frame.to_numpy(), path.weights)


def test_frame_of_several_models(four):
    kernels = {"line": Linear(), "bump": RBF(gamma=0.3)}
    estimator = kw.MKLClassifier(kernels, regularizer=kw.LpNorm())
    path = kw.mkl_path(estimator, four.X, four.y, "p", [1.0, 2.0, 4.0])
    frame = path.frame()
    assert frame.index.name == "regularizer__p"
    assert list(frame.columns) == ["line", "bump"] * 4
    np.testing.assert_array_equal(frame.to_numpy(), path.weights.reshape(3, 8))


@pytest.mark.parametrize("param", ["p", "regularizer__p"])
def test_parameters_of_a_regulariser_given_by_name(binary, param):
    named, given = (kw.MKLClassifier(KERNELS, regularizer=rule) for rule in ("lp", kw.LpNorm()))
    paths = [kw.mkl_path(one, binary.X, binary.y, param, [1.0, 2.0]) for one in (named, given)]
    np.testing.assert_array_equal(paths[0].weights, paths[1].weights)


@pytest.mark.parametrize(
    ("regularizer", "param"),
    [(kw.LpNorm(), "nothing"), (kw.LpNorm(), "l1_ratio"), (kw.Uniform(), "p"), ("lp", "l1_ratio")],
    ids=str,
)
def test_an_unknown_parameter_is_named(binary, regularizer, param):
    estimator = kw.MKLClassifier(KERNELS, regularizer=regularizer)
    with pytest.raises(ValueError, match=f"param='{param}' is a parameter of neither"):
        kw.mkl_path(estimator, binary.X, binary.y, param, [1.0])


@pytest.mark.parametrize(
    ("regularizer", "param", "values", "message"),
    [
        (kw.LpNorm(), "C", [1.0, -1.0], "C=-1.0 must be a positive number"),
        (kw.LpNorm(), "p", [2.0, 0.5], "p=0.5 must be at least 1"),
        (kw.ElasticNet(), "l1_ratio", [0.5, 2.0], "l1_ratio=2.0 must be between 0 and 1"),
        (kw.BlockNorm(), "q", [0.5], "q=0.5 must be at least 1"),
        (kw.LpNorm(), "regularizer", ["uniform", "nothing"], "nothing"),
        (kw.LpNorm(), "C", [], "values is empty"),
    ],
)
def test_bad_values_are_named(binary, regularizer, param, values, message):
    estimator = kw.MKLClassifier(KERNELS, regularizer=regularizer)
    with pytest.raises(ValueError, match=message):
        kw.mkl_path(estimator, binary.X, binary.y, param, values)


def test_other_estimators_are_refused(binary):
    for estimator in (kw.MKLOneClass(), kw.GroupOMPClassifier()):
        with pytest.raises(TypeError, match=f"^estimator is a {type(estimator).__name__}: mkl_path takes"):
            kw.mkl_path(estimator, binary.X, binary.y)


# -- sample weights, and kernels that carry nothing -----------------------------------------------


def test_weight_two_equals_a_duplicated_row(data):
    Model, X, y = data
    estimator = Model(KERNELS, regularizer=kw.ElasticNet(), tol=TOL)
    weight = np.ones(len(y))
    weight[:20] = 2.0
    weighted = kw.mkl_path(estimator, X, y, values=COSTS, sample_weight=weight)
    doubled = kw.mkl_path(estimator, np.vstack([X, X[:20]]), np.concatenate([y, y[:20]]), values=COSTS)
    np.testing.assert_allclose(weighted.objective, doubled.objective, rtol=2.0 * TOL)
    np.testing.assert_allclose(weighted.norms, doubled.norms, atol=0.02 * doubled.norms.max())


def test_weight_zero_equals_a_dropped_row(data, rng):
    Model, X, y = data
    estimator = Model(KERNELS, regularizer=kw.LpNorm(p=1))
    weight = rng.uniform(0.5, 2.0, size=len(y))
    weight[::5] = 0.0
    kept = weight > 0
    weighted = kw.mkl_path(estimator, X, y, values=COSTS, sample_weight=weight)
    dropped = kw.mkl_path(estimator, X[kept], y[kept], values=COSTS, sample_weight=weight[kept])
    np.testing.assert_allclose(weighted.weights, dropped.weights, rtol=1e-9)
    assert_same_models(weighted, cold_fits(estimator, weighted, X, y, weight), tol=1e-3)


@pytest.mark.parametrize(
    ("regularizer", "param", "values"),
    [
        (kw.LpNorm(p=2, costs=[1.0, 5.0, 2.0, 0.5]), "p", [1.0, 2.0]),
        (kw.LpNorm(p=1), "C", COSTS),
        (kw.SMKL(eta=[1.0, 5.0, 2.0, 0.5]), "C", COSTS),
        (kw.Mahalanobis(np.eye(4) + 0.5), "C", COSTS),
    ],
    ids=lambda value: str(value)[:20],
)
def test_dead_kernels_get_weight_zero(binary, regularizer, param, values):
    kernels = [KERNELS[0], Constant(), *KERNELS[1:]]
    estimator = kw.MKLClassifier(kernels, regularizer=regularizer)
    with pytest.warns(UserWarning, match="without variance"):
        path = kw.mkl_path(estimator, binary.X, binary.y, param, values)
    assert path.weights.shape == (len(values), 4)
    assert not path.weights[:, 1].any()
    assert not path.norms[:, 1].any()
    # the same as without it, its own parameter dropped
    live = clone(estimator).set_params(
        kernels=KERNELS, regularizer=regularizer.select(np.array([0, 2, 3]), 4)
    )
    alone = kw.mkl_path(live, binary.X, binary.y, param, values)
    np.testing.assert_allclose(path.weights[:, [0, 2, 3]], alone.weights, rtol=1e-9)


def test_a_path_that_starts_at_zero(data):
    """At a small cost the group lasso is zero; the path leaves zero as soon as it should."""
    Model, X, y = data
    estimator = Model(KERNELS, regularizer=kw.ElasticNet(l1_ratio=1.0), tol=TOL)
    path = kw.mkl_path(estimator, X, y, values=[1e-4, 1e-3, 1.0])
    assert (path.norms[:2] <= 1e-9).all()
    assert path.norms[2].max() > 0.1
    assert_same_models(path, cold_fits(estimator, path, X, y))


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    "regularizer",
    [kw.ElasticNet(l1_ratio=0.9), kw.ElasticNet(l1_ratio=1.0), kw.LpNorm(p=1, form="penalty"), kw.Wedge()],
    ids=str,
)
def test_a_path_through_the_cost_where_the_first_kernel_enters(data, regularizer):
    """Around that cost the second-order model is poor; a first step to all zeros must not be the last."""
    Model, X, y = data
    kernels = [RBF(gamma=gamma) for gamma in np.geomspace(0.01, 10.0, 8)]
    estimator = Model(kernels, regularizer=regularizer)
    path = kw.mkl_path(estimator, X, y, values=np.geomspace(0.01, 100.0, 25))
    assert (path.dual_gap <= 1e-3).all()
    fits = cold_fits(estimator, path, X, y)
    assert_same_models(path, fits, tol=1e-3)
    assert path.n_iter.sum() <= sum(fit.n_iter_ for fit in fits)
