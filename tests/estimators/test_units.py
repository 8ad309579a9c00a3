"""Units: targets, kernels and costs of any size give the same model and the same relative gap."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import kernelweave as kw
from kernelweave.kernels import RBF, Linear, Polynomial
from kernelweave.losses import EpsInsensitive, Huber
from kernelweave.regularizers import BlockNorm, LpNorm, Mahalanobis, Uniform

CONSTRAINTS = [LpNorm(p=1), LpNorm(p=4 / 3), LpNorm(p=2), Uniform(), BlockNorm(q=4), Mahalanobis()]
SCALES = [1e-9, 1e-3, 1e6, 1e9]
LONG = np.longdouble

each_scale = pytest.mark.parametrize("s", SCALES)


def regression_data(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n)


def matrices(X, gammas=(0.1, 1.0, 10.0)):
    """The linear kernel and Gaussian ones, on differences."""
    D = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    return np.array([X @ X.T, *(np.exp(-gamma * D) for gamma in gammas)])


def fit(Ks, y, **options):
    kind = kw.MKLClassifier if y.dtype.kind == "i" else kw.MKLRegressor
    return kind("precomputed", normalize=None, **options).fit(kw.KernelStack(Ks), y)


def assert_same(model, other, of_weights=1.0, of_values=1.0, of_objective=1.0):
    """`other` is `model` in other units."""
    tol = model.tol
    size = of_weights * model.weights_.max()
    np.testing.assert_allclose(other.weights_ / size, of_weights * model.weights_ / size, atol=1e-5)
    assert other.n_iter_ == model.n_iter_
    assert other.dual_gap_ <= tol
    assert other.dual_gap_ == pytest.approx(model.dual_gap_, abs=1e-3 * tol)
    assert other.objective_ == pytest.approx(of_objective * model.objective_, rel=1e-6)
    assert other.intercept_ == pytest.approx(of_values * model.intercept_, rel=1e-5)


# -- targets ----------------------------------------------------------------------------------


@each_scale
@pytest.mark.parametrize("regularizer", CONSTRAINTS, ids=repr)
def test_squared_loss_in_any_unit_of_y(regularizer, s):
    """C sum (s y - s f)^2 / 2 + Omega(s n) = s^2 times the objective."""
    X, y = regression_data()
    Ks, options = matrices(X), {"regularizer": regularizer, "C": 10.0, "tol": 1e-5}
    model, other = fit(Ks, y, **options), fit(Ks, s * y, **options)
    assert_same(model, other, of_values=s, of_objective=s**2)
    stack = kw.KernelStack(Ks)
    size = np.abs(y).max()
    np.testing.assert_allclose(other.predict(stack) / s, model.predict(stack), atol=1e-6 * size)


@pytest.mark.parametrize("s", [1e-6, 1e-3, 1e3, 1e6])
def test_a_penalty_in_any_unit_of_y(s):
    """Omega(s n) = s^q Omega(n), q = 2p / (p + 1): the same optimum at the cost C s^(q - 2)."""
    X, y = regression_data()
    Ks, rule, q = matrices(X), LpNorm(p=2, form="penalty"), 4.0 / 3.0
    model = fit(Ks, y, regularizer=rule, C=10.0, tol=1e-6)
    other = fit(Ks, s * y, regularizer=rule, C=10.0 * s ** (q - 2.0), tol=1e-6)
    assert other.objective_ == pytest.approx(s**q * model.objective_, rel=2e-6)
    np.testing.assert_allclose(other.weights_ / s ** (2.0 / 3.0), model.weights_, rtol=0.02)


@each_scale
@pytest.mark.parametrize("regularizer", [LpNorm(p=1), LpNorm(p=2), BlockNorm(q=4)], ids=repr)
def test_huber_with_delta_in_the_unit_of_y(regularizer, s):
    X, y = regression_data()
    options = {"regularizer": regularizer, "C": 10.0, "tol": 1e-5}
    model = fit(matrices(X), y, loss=Huber(delta=0.2), **options)
    other = fit(matrices(X), s * y, loss=Huber(delta=0.2 * s), **options)
    assert_same(model, other, of_values=s, of_objective=s**2)


@each_scale
@pytest.mark.parametrize("regularizer", [LpNorm(p=1), LpNorm(p=2), BlockNorm(q=4)], ids=repr)
def test_the_tube_in_the_unit_of_y(regularizer, s):
    """s C sum max(0, |s y - s f| - s eps) + Omega(s n) = s^2 times the objective."""
    X, y = regression_data()
    options = {"regularizer": regularizer, "tol": 1e-5}
    model = fit(matrices(X), y, loss=EpsInsensitive(eps=0.2), C=3.0, **options)
    other = fit(matrices(X), s * y, loss=EpsInsensitive(eps=0.2 * s), C=3.0 * s, **options)
    assert_same(model, other, of_values=s, of_objective=s**2)
    # working sets of equal violations are chosen by rounding, so that only the optimum is the same
    third = fit(
        matrices(X), s * y, loss=EpsInsensitive(eps=0.2 * s), C=3.0 * s, solver="interleaved", **options
    )
    assert third.dual_gap_ <= 1e-5
    assert third.objective_ == pytest.approx(other.objective_, rel=2e-5)


@pytest.mark.parametrize("loss", ["squared", EpsInsensitive(eps=0.1), Huber(delta=0.3)], ids=str)
@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_an_offset_of_y_is_taken_by_the_intercept(loss, offset):
    X, y = regression_data()
    y = np.round(y * 2.0**20) / 2.0**20  # so that y + offset is exact
    options = {"loss": loss, "regularizer": LpNorm(p=1), "C": 10.0, "tol": 1e-6}
    model, other = fit(matrices(X), y, **options), fit(matrices(X), y + offset, **options)
    np.testing.assert_allclose(other.weights_, model.weights_, atol=1e-5)
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-6)
    assert other.intercept_ - offset == pytest.approx(model.intercept_, abs=1e-4)


def test_small_targets_do_not_count_as_converged():
    """One machine at the weights of the start has a relative gap of a third, in any unit."""
    X, y = regression_data(60)
    rule, kernels = LpNorm(p=1), [RBF(gamma=gamma) for gamma in (0.01, 0.1, 1.0, 10.0)]
    for s in (1.0, 1e-9):
        model = kw.MKLRegressor(kernels, regularizer=rule, max_iter=1)
        with pytest.warns(ConvergenceWarning, match="relative duality gap"):
            model.fit(X, s * y)
        assert model.dual_gap_ > 0.1
        assert kw.MKLRegressor(kernels, regularizer=rule).fit(X, s * y).weights_.max() > 0.9


def test_constant_targets_have_no_gap():
    X, _ = regression_data()
    for loss in ("squared", "huber", EpsInsensitive(eps=0.0)):
        model = fit(matrices(X), np.full(len(X), 0.1), loss=loss, tol=1e-8)
        assert model.dual_gap_ == 0.0
        assert model.intercept_ == pytest.approx(0.1)


# -- kernels and costs ------------------------------------------------------------------------


@pytest.mark.parametrize("c", [1e-9, 1e-3, 1e3, 1e9])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_kernels_in_any_unit(loss, c):
    """f = d (c K) (alpha / c), and alpha' K alpha / c: the objective over c, at the cost C / c."""
    X, y = regression_data()
    labels = np.where(y > 0, 1, 0)
    options = {"loss": loss, "regularizer": LpNorm(p=1), "tol": 1e-5}
    model = fit(matrices(X), labels, C=10.0, **options)
    other = fit(c * matrices(X), labels, C=10.0 / c, **options)
    assert_same(model, other, of_objective=1.0 / c)


@pytest.mark.parametrize("c", [1e-9, 1e-3, 1e3, 1e9])
def test_kernels_of_novelty_detection_in_any_unit(c):
    """Of C sum max(0, -f) - rho + Omega everything is in the unit of the kernels."""
    Ks = matrices(regression_data()[0])
    model, other = (
        kw.MKLOneClass("precomputed", normalize=None, nu=0.3, tol=1e-5).fit(kw.KernelStack(unit * Ks))
        for unit in (1.0, c)
    )
    assert_same(model, other, of_values=c, of_objective=c)
    np.testing.assert_allclose(other.dual_coef_, model.dual_coef_, atol=1e-6)


def long_gap(model, Ks, y, C, value, conjugate):
    """(P - D) / |P| of a model with LpNorm(p=2), in long double."""
    Ks, y, alpha = Ks.astype(LONG), y.astype(LONG), model.dual_coef_.astype(LONG)
    weights, cost = model.weights_.astype(LONG), LONG(C)
    s = np.array([alpha @ K @ alpha for K in Ks])
    f = np.einsum("m,mij,j->i", weights, Ks, alpha) + LONG(model.intercept_)
    n = weights * np.sqrt(s)
    penalty = (n ** (LONG(4) / 3)).sum() ** (LONG(3) / 2) / 2
    primal = cost * value(y, f).sum() + penalty
    dual = -cost * conjugate(y, -alpha / cost).sum() - np.sqrt((s**2).sum()) / 2
    return float((primal - dual) / abs(primal))


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "squared"])
def test_gaps_are_true_at_any_cost(loss, C):
    X, y = regression_data()
    labels = np.where(y > 0, 1, 0)
    value, conjugate = {
        "hinge": (lambda y, f: np.maximum(0, 1 - y * f), lambda y, v: y * v),
        "squared_hinge": (lambda y, f: np.maximum(0, 1 - y * f) ** 2 / 2, lambda y, v: y * v + v * v / 2),
        "squared": (lambda y, f: (y - f) ** 2 / 2, lambda y, v: y * v + v * v / 2),
    }[loss]
    model = fit(matrices(X), labels, loss=loss, C=C, tol=1e-7)
    assert model.dual_gap_ <= 1e-7
    gap = long_gap(model, matrices(X), 2.0 * labels - 1.0, C, value, conjugate)
    assert gap <= model.dual_gap_ + 1e-12
    assert model.dual_gap_ == pytest.approx(gap, abs=1e-7)


# -- rounding ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@pytest.mark.parametrize("n", [20, 150])
def test_an_optimum_of_zero(n, tol):
    """Samples around the origin: the mean of some of them is zero, and so is the region's distance."""
    X = np.random.default_rng(0).normal(size=(n, 2))
    model = kw.MKLOneClass([Linear()], nu=0.3, tol=tol, normalize=None).fit(np.vstack([X, -X]))
    assert abs(model.objective_) <= 1e-12
    assert 0.0 <= model.dual_gap_ <= tol


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("seed", range(3))
def test_rounding_is_no_convergence(loss, seed):
    """(x'z)^3 far from the origin leaves few digits: what is claimed holds, or the limit is told."""
    X, y = regression_data(30, seed)
    labels = np.where(y > 0, 1, 0)
    model = kw.MKLClassifier([Polynomial(degree=3), Linear()], loss=loss, normalize=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X + 100.0, labels)
    told = [str(warning.message) for warning in caught if warning.category is ConvergenceWarning]
    assert model.dual_gap_ >= 0.0
    assert (model.dual_gap_ > model.tol) == bool(told)
    assert all("Rounding of the kernel values is the limit" in message for message in told)
