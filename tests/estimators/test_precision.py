"""Certificates hold for the model that predicts, whatever the precision of its data and of its engine."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import kernelweave as kw
from kernelweave.gram.store import GramStore
from kernelweave.kernels import RBF, Laplacian, Linear, Matern, Polynomial

GAMMAS = (0.01, 0.1, 1.0)
KERNELS = [RBF(gamma=gamma) for gamma in GAMMAS]
TOL = 1e-3
DEVICE = pytest.param("torch:cpu", marks=pytest.mark.torch)
WHERE = ["auto", "dense", "packed", "single", "cached", "blocked", DEVICE]


def tight(n_kernels, n=90):
    """Bytes that leave the triangles single precision."""
    return int((2 + 0.375 * n_kernels) * 8 * n**2)


def options_of(where, n_kernels=3):
    """Parameters for a Gram engine, or a device."""
    if where == "single":
        return {"gram": "packed", "memory_limit": tight(n_kernels)}
    if not where.startswith("torch"):
        return {"gram": where}
    pytest.importorskip("torch", reason="needs torch")
    return {"device": where}


def data(n=90):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return X, np.sign(X[:, 0] + 0.3 * rng.normal(size=n)), np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=n)


X, LABELS, TARGETS = data()


def model_of(loss, C, **options):
    cls = kw.MKLClassifier if loss == "hinge" else kw.MKLRegressor
    options = {"normalize": None, "regularizer": kw.LpNorm(p=2), "tol": TOL, **options}
    return cls(KERNELS, loss=loss, C=C, **options), LABELS if loss == "hinge" else TARGETS


def losses_of(loss, y, f):
    return np.maximum(0, 1 - y * f) if loss == "hinge" else np.maximum(0, np.abs(y - f) - 0.1)


def penalty(norms):
    """Omega(n) of the l2 constraint: 1/2 ||n||^2 with q = 2p / (p + 1) = 4/3."""
    return 0.5 * (norms ** (4 / 3)).sum() ** (3 / 2)


def objective_of_predictions(model, loss, X, y, C):
    f = model.decision_function(X) if loss == "hinge" else model.predict(X)
    return C * losses_of(loss, y, f).sum() + penalty(model.norms_)


def true_gap(model, loss, X, y, C):
    """(P - D) / P in long double, from the definitions and from the samples."""
    X, alpha, d, y = (np.asarray(v, np.longdouble) for v in (X, model.dual_coef_, model.weights_, y))
    alpha = alpha.ravel()
    squares = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    Ks = [np.exp(-np.longdouble(gamma) * squares) for gamma in GAMMAS]
    s = np.array([alpha @ K @ alpha for K in Ks])
    f = sum(weight * (K @ alpha) for weight, K in zip(d, Ks, strict=True)) + np.longdouble(model.intercept_)
    P = C * losses_of(loss, y, f).sum() + penalty(d * np.sqrt(s))
    kink = 0.0 if loss == "hinge" else 0.1
    D = (y * alpha).sum() - np.longdouble(kink) * np.abs(alpha).sum() - np.sqrt((s**2).sum()) / 2
    return float((P - D) / P)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", ["hinge", "eps_insensitive"])
@pytest.mark.parametrize("C", [1.0, 1e4, 1e6])
def test_certificate_and_objective_are_those_of_the_model_that_predicts(where, dtype, loss, C):
    model, y = model_of(loss, C, **options_of(where))
    points = X.astype(dtype)
    model.fit(points, y)
    assert model.dual_gap_ <= TOL
    assert true_gap(model, loss, points, y, C) <= 2 * TOL
    assert objective_of_predictions(model, loss, points, y, C) == pytest.approx(model.objective_, rel=1e-6)
    assert model.dual_gap_ in model.history_["gap"]


@pytest.mark.parametrize("normalize", ["variance", "spherical", "trace", "center"])
@pytest.mark.parametrize("where", ["dense", "single", DEVICE])
def test_every_normalisation(where, normalize):
    model, y = model_of("hinge", 1e5, normalize=normalize, **options_of(where))
    model.fit(X.astype(np.float32), y)
    assert objective_of_predictions(model, "hinge", X.astype(np.float32), y, 1e5) == pytest.approx(
        model.objective_, rel=1e-6
    )


@pytest.mark.parametrize("normalize", ["variance", "spherical", "center", None])
@pytest.mark.parametrize("where", ["dense", "blocked", "single"])
def test_matrices_of_single_precision(where, normalize):
    matrices = np.stack([kernel(X) for kernel in KERNELS], axis=2)
    matrices += 1e-3 * np.eye(len(X))[:, :, None]  # positive definite whatever the rounding
    matrices = matrices.astype(np.float32)
    model = kw.MKLClassifier("precomputed", C=1e5, normalize=normalize, regularizer=kw.LpNorm(p=2))
    model.set_params(**options_of(where)).fit(matrices, LABELS)
    if normalize == "spherical":  # test matrices do not hold k(x, x)
        return
    found = 1e5 * losses_of("hinge", LABELS, model.decision_function(matrices)).sum() + penalty(model.norms_)
    assert found == pytest.approx(model.objective_, rel=1e-6)


def test_stored_matrices_are_what_is_predicted_with(tmp_path):
    store = GramStore.build(tmp_path / "kernels.gram", [Laplacian(gamma=g) for g in (0.1, 0.5)], X)
    model = kw.MKLClassifier("precomputed", C=1e5, normalize=None, gram="store", regularizer=kw.LpNorm(p=2))
    model.fit(store, LABELS)
    found = 1e5 * losses_of("hinge", LABELS, model.decision_function(store)).sum() + penalty(model.norms_)
    assert found == pytest.approx(model.objective_, rel=1e-6)


@pytest.mark.wide
def test_factors_of_single_precision(monkeypatch):
    monkeypatch.setattr("kernelweave.gram.lowrank.dictionary.SINGLE_FROM", 0)
    monkeypatch.setattr("kernelweave.gram.lowrank.engine.MOST_FORMED", 0)
    model, y = model_of("hinge", 1e4, approximation="nystroem", rank=30, random_state=0)
    model.fit(X.astype(np.float32), y)
    assert "as float32" in model.gram_reason_
    found = objective_of_predictions(model, "hinge", X.astype(np.float32), y, 1e4)
    assert found == pytest.approx(model.objective_, rel=1e-6)


def test_no_machines_left_for_double_precision():
    """What is told is the gap on the kernels, not that on the rounded ones."""
    model, y = model_of("hinge", 1e6, max_iter=3, **options_of("single"))
    with pytest.warns(ConvergenceWarning, match="the relative duality gap is"):
        model.fit(X, y)
    assert model.dual_gap_ > TOL
    assert true_gap(model, "hinge", X, y, 1e6) == pytest.approx(model.dual_gap_, rel=1e-3)


def test_told_to_stop_is_certified_and_not_continued():
    from kernelweave.gram import Dictionary, FeatureSource
    from kernelweave.losses import Hinge
    from kernelweave.solvers import Problem
    from kernelweave.solvers.multiple import choose_solver

    gram = Dictionary(
        FeatureSource([(str(k), k) for k in KERNELS], X), None, memory_limit=tight(3), gram="packed"
    ).gram
    problem = Problem(LABELS[:, None], Hinge(), np.full((len(X), 1), 1e6))
    solver = choose_solver("auto", kw.LpNorm(p=2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = solver.solve(problem, gram, kw.LpNorm(p=2), TOL, callback=lambda iteration, _: iteration == 1)
    assert found.n_iter == 2
    np.testing.assert_allclose(found.state.squares, gram.in_double().quad(found.state.alpha), rtol=1e-12)


# -- far from the origin ----------------------------------------------------------------------

FAR = 1e5
SHORT = np.round(64 * X) / 64  # of so few digits that SHORT + FAR is exact


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("container", ["array", "float32"])
def test_gaussian_kernels_do_not_see_an_offset(where, container):
    near, far = SHORT, SHORT + (FAR if container == "array" else 1024.0)
    if container == "float32":
        near, far = near.astype(np.float32), far.astype(np.float32)
    kernels = [RBF("scale"), RBF("median"), Laplacian(), Matern(), *(RBF(columns=[f]) for f in range(4))]
    first, second = (
        kw.MKLClassifier(kernels, C=10.0, tol=1e-6, **options_of(where, 8)).fit(points, LABELS)
        for points in (near, far)
    )
    np.testing.assert_allclose(second.weights_, first.weights_, atol=2e-4)
    np.testing.assert_allclose(second.decision_function(far), first.decision_function(near), atol=2e-4)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huber", "squared"])
@pytest.mark.parametrize("offset", [1e4, 1e5])
@pytest.mark.parametrize("where", ["dense", DEVICE])
def test_intercept_takes_the_offset_of_a_linear_kernel(loss, offset, where):
    """With an intercept, x'z and (x + c)'(z + c) have the same machines."""
    cls, y = (kw.MKLRegressor, TARGETS) if loss in ("huber", "squared") else (kw.MKLClassifier, LABELS)
    model = cls([Linear(), RBF(0.5)], loss=loss, normalize=None, **options_of(where))
    near = model.fit(SHORT, y).objective_
    assert model.fit(SHORT + offset, y).objective_ == pytest.approx(near, rel=2e-3)
    assert model.dual_gap_ <= TOL


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huber", "squared"])
@pytest.mark.parametrize("degree", [2, 3])
def test_rounding_beyond_the_ridge_is_no_error(loss, degree):
    """Powers of 1e8 leave nothing of the ridge: no machine may be worse than f = 0, nor claim more."""
    cls, y = (kw.MKLRegressor, TARGETS) if loss in ("huber", "squared") else (kw.MKLClassifier, LABELS)
    model = cls([Polynomial(degree=degree), Linear()], loss=loss, normalize=None, max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(SHORT[:40] + 1e4, y[:40])
    nothing = {"logistic": 40 * np.log(2.0), "squared_hinge": 20.0}.get(loss, 0.5 * (y[:40] ** 2).sum())
    assert model.objective_ <= nothing


# -- out of range -----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [RBF(), RBF("median"), RBF(0.1), Laplacian(), Matern(), Linear()], ids=str)
@pytest.mark.parametrize("gram", ["dense", "blocked"])
def test_values_that_cannot_be_squared(kernel, gram):
    model = kw.MKLClassifier([kernel], gram=gram)
    with pytest.raises(ValueError, match=r"X has values up to 3\.\de\+200 .* overflow: rescale the columns"):
        model.fit(1e200 * X, LABELS)
    fitted = kw.MKLClassifier([kernel], gram=gram).fit(X, LABELS)
    with pytest.raises(ValueError, match="X has values up to"):
        fitted.predict(1e200 * X)


@pytest.mark.parametrize(
    "kernel", [RBF(), RBF("median"), RBF(0.1), Matern(), Matern(nu=np.inf), Linear()], ids=str
)
@pytest.mark.parametrize("size", [1e-160, 1e-200])
def test_values_whose_squares_vanish(kernel, size):
    with pytest.raises(ValueError, match=r"none of them varies .*centre and scale X"):
        kw.MKLClassifier([kernel]).fit(size * X, LABELS)


@pytest.mark.parametrize("gram", ["dense", "blocked"])
def test_a_kernel_that_overflows_on_finite_data(gram):
    with pytest.raises(ValueError, match=r"kernel 'Polynomial\(degree=3\)' overflows on X: rescale"):
        kw.MKLClassifier([Polynomial(degree=3)], gram=gram).fit(1e110 * X, LABELS)


@pytest.mark.parametrize("size", [1e-100, 1e100])
def test_rules_for_the_width_follow_the_scale(size):
    plain, scaled = (
        kw.MKLClassifier([RBF(), RBF("median"), Laplacian()]).fit(s * X, LABELS) for s in (1, size)
    )
    np.testing.assert_allclose(scaled.weights_, plain.weights_, atol=1e-4)
