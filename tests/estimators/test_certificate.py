"""The objective and the gap, recomputed from public attributes and the formulas of MATH.md."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import xlogy
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

import kernelweave as kw
from kernelweave.kernels import RBF, Linear
from kernelweave.losses import EpsInsensitive, Huber

EPS, DELTA = 0.2, 0.7
NORMALIZATIONS = ["variance", "spherical", "trace", "center", None]
REGULARIZERS = [kw.LpNorm(p=1), kw.LpNorm(p=4 / 3), kw.LpNorm(p=2), kw.Uniform()]


# -- MATH.md section 1: V(y, f) and V*(y, v) on its domain ------------------------------------


def logistic_conjugate(y, v):
    u = np.clip(-y * v, 0.0, 1.0)
    return xlogy(u, u) + xlogy(1.0 - u, 1.0 - u)


def huber(y, f):
    t = np.abs(y - f)
    return np.where(t <= DELTA, t**2 / 2.0, DELTA * t - DELTA**2 / 2.0)


LOSSES = {
    "hinge": (lambda y, f: np.maximum(0.0, 1.0 - y * f), lambda y, v: y * v),
    "squared_hinge": (lambda y, f: np.maximum(0.0, 1.0 - y * f) ** 2 / 2.0, lambda y, v: y * v + v**2 / 2.0),
    "logistic": (lambda y, f: np.log1p(np.exp(-y * f)), logistic_conjugate),
    "squared": (lambda y, f: (y - f) ** 2 / 2.0, lambda y, v: v**2 / 2.0 + v * y),
    "eps_insensitive": (
        lambda y, f: np.maximum(0.0, np.abs(y - f) - EPS),
        lambda y, v: v * y + EPS * np.abs(v),
    ),
    "huber": (huber, lambda y, v: v * y + v**2 / 2.0),
    "one_class": (lambda y, f: np.maximum(0.0, -f), lambda y, v: np.zeros_like(v)),
}


# -- section 2: Omega(n) and Omega*(r) --------------------------------------------------------


def omega(regularizer, norms):
    p = getattr(regularizer, "p", np.inf)
    q = 2.0 if np.isinf(p) else 2.0 * p / (p + 1.0)
    return 0.5 * np.linalg.norm(norms, q) ** 2


def omega_conjugate(regularizer, dual_norms):
    p = getattr(regularizer, "p", np.inf)
    dual = 1.0 if np.isinf(p) else np.inf if p == 1 else p / (p - 1.0)
    return 0.5 * np.linalg.norm(dual_norms**2, dual)


# -- section 7: normalised kernels between training samples, and to new ones ------------------


def normalised(name, K, K_new, diag_new):
    """K and K_new normalised with constants of K."""
    if name == "spherical":
        root = np.sqrt(K.diagonal())
        return K / np.outer(root, root), K_new / np.outer(np.sqrt(diag_new), root)
    scale = 1.0
    if name in ("variance", "center"):
        scale = K.diagonal().mean() - K.mean()
    if name == "trace":
        scale = np.trace(K) / len(K)
    if name == "center":
        mean, total = K.mean(axis=0), K.mean()
        K_new = K_new - K_new.mean(axis=1)[:, None] - mean[None, :] + total
        K = K - mean[:, None] - mean[None, :] + total
    return K / scale, K_new / scale


def kernels_of(data, name):
    X, Z = data.X, data.X_new
    raw = [
        (linear_kernel(X), linear_kernel(Z, X), (Z**2).sum(axis=1)),
        (rbf_kernel(X, gamma=0.3), rbf_kernel(Z, X, gamma=0.3), np.ones(len(Z))),
        (rbf_kernel(X, gamma=3.0), rbf_kernel(Z, X, gamma=3.0), np.ones(len(Z))),
    ]
    pairs = [normalised(name, *block) for block in raw]
    return np.array([K for K, _ in pairs]), np.array([K for _, K in pairs])


KERNELS = [Linear(), RBF(gamma=0.3), RBF(gamma=3.0)]


def certify(model, loss, regularizer, Y, cost, Ks, index=None, alpha_sum=0.0):
    """Assert that objective and gap are those of the public attributes; index: which of several models."""
    pick = (lambda value: value) if index is None else (lambda value: np.asarray(value)[index])
    weights = pick(model.weights_)
    alpha = np.atleast_2d(pick(model.dual_coef_)).T
    intercept = np.atleast_1d(pick(model.intercept_))
    value, conjugate = LOSSES[loss]
    r = np.sqrt(np.maximum(np.einsum("ic,mij,jc->m", alpha, Ks, alpha), 0.0))
    f = np.einsum("m,mij,jc->ic", weights, Ks, alpha) + intercept
    primal = float((cost * value(Y, f)).sum() + alpha_sum * intercept.sum() + omega(regularizer, weights * r))
    dual = float(-(cost * conjugate(Y, -alpha / cost)).sum() - omega_conjugate(regularizer, r))
    np.testing.assert_allclose(pick(model.objective_), primal, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pick(model.dual_gap_), (primal - dual) / abs(primal), atol=1e-9)
    np.testing.assert_allclose(pick(model.norms_), weights * r, rtol=1e-6, atol=1e-9)
    assert pick(model.dual_gap_) <= model.tol
    # a feasible dual point: without it the dual value bounds nothing
    if getattr(model, "fit_intercept", True):
        np.testing.assert_allclose(alpha.sum(axis=0), alpha_sum, atol=1e-9 * np.abs(alpha).sum())


@pytest.mark.parametrize("normalize", NORMALIZATIONS, ids=str)
@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)
def test_hinge_certificate_and_decisions(binary, regularizer, normalize):
    model = kw.MKLClassifier(KERNELS, regularizer=regularizer, C=2.0, normalize=normalize, tol=1e-6)
    model.fit(binary.X, binary.y)
    Ks, Ks_new = kernels_of(binary, normalize)
    Y = np.where(binary.y == model.classes_[1], 1.0, -1.0)[:, None]
    certify(model, "hinge", regularizer, Y, 2.0, Ks)
    # the same attributes predict new samples, with the constants of the training samples
    values = np.einsum("m,mij,j->i", model.weights_, Ks_new, model.dual_coef_) + model.intercept_
    np.testing.assert_allclose(model.decision_function(binary.X_new), values, atol=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "squared"])
def test_classifier_certificate(binary, loss, fit_intercept):
    model = kw.MKLClassifier(KERNELS, loss=loss, fit_intercept=fit_intercept, tol=1e-6)
    model.fit(binary.X, binary.y)
    Y = np.where(binary.y == 1, 1.0, -1.0)[:, None]
    certify(model, loss, kw.LpNorm(p=2), Y, 1.0, kernels_of(binary, "variance")[0])


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)
@pytest.mark.parametrize("loss", ["squared", EpsInsensitive(eps=EPS), Huber(delta=DELTA)], ids=str)
def test_regressor_certificate(regression, loss, regularizer):
    model = kw.MKLRegressor(KERNELS, loss=loss, regularizer=regularizer, C=3.0, tol=1e-6)
    model.fit(regression.X, regression.y)
    name = getattr(loss, "name", loss)
    certify(model, name, regularizer, regression.y[:, None], 3.0, kernels_of(regression, "variance")[0])


@pytest.mark.parametrize("normalize", ["variance", "spherical", "trace", None], ids=str)
@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)
def test_one_class_certificate(regression, regularizer, normalize):
    model = kw.MKLOneClass(KERNELS, regularizer=regularizer, normalize=normalize, nu=0.3, tol=1e-6)
    model.fit(regression.X)
    n = len(regression.X)
    Ks = kernels_of(regression, normalize)[0]
    certify(model, "one_class", regularizer, np.zeros((n, 1)), 1.0 / (0.3 * n), Ks, alpha_sum=1.0)
    assert model.offset_ == -model.intercept_
    assert (model.dual_coef_ >= 0).all()
    assert (model.dual_coef_ <= 1.0 / (0.3 * n) * (1.0 + 1e-9)).all()


def test_sample_and_class_weights_enter_the_certificate(binary, rng):
    weight = rng.uniform(0.5, 2.0, size=len(binary.y))
    model = kw.MKLClassifier(KERNELS, normalize=None, class_weight={0: 1.0, 1: 3.0}, C=0.5, tol=1e-6)
    model.fit(binary.X, binary.y, sample_weight=weight)
    cost = (0.5 * weight * np.where(binary.y == 1, 3.0, 1.0))[:, None]
    Y = np.where(binary.y == 1, 1.0, -1.0)[:, None]
    certify(model, "hinge", kw.LpNorm(p=2), Y, cost, kernels_of(binary, None)[0])


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_one_vs_rest_certificates(four, loss):
    model = kw.MKLClassifier(KERNELS, loss=loss, tol=1e-6).fit(four.X, four.y)
    Ks = kernels_of(four, "variance")[0]
    for k, label in enumerate(model.classes_):
        Y = np.where(four.y == label, 1.0, -1.0)[:, None]
        certify(model, loss, kw.LpNorm(p=2), Y, 1.0, Ks, index=k)


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)
def test_shared_weights_certificate_sums_over_classes(four, regularizer):
    model = kw.MKLClassifier(KERNELS, regularizer=regularizer, multiclass="shared", tol=1e-6)
    model.fit(four.X, four.y)
    Y = np.where(four.y[:, None] == model.classes_, 1.0, -1.0)
    certify(model, "hinge", regularizer, Y, 1.0, kernels_of(four, "variance")[0])


def test_one_vs_one_certificates_are_on_the_samples_of_the_pair(four):
    model = kw.MKLClassifier(KERNELS, multiclass="ovo", tol=1e-6).fit(four.X, four.y)
    Ks = kernels_of(four, "variance")[0]  # constants of all training samples, for every pair
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    for k, (i, j) in enumerate(pairs):
        rows = np.isin(four.y, model.classes_[[i, j]])
        assert not model.dual_coef_[k][~rows].any()
        Y = np.where(four.y == model.classes_[j], 1.0, -1.0)[:, None]
        cost = np.where(rows, 1.0, 1e-300)[:, None]  # the others cost nothing
        certify(model, "hinge", kw.LpNorm(p=2), Y, cost, Ks, index=k)


def test_shared_outputs_certificate_sums_over_outputs(regression):
    Y = np.column_stack([regression.y, regression.y**2, -regression.y])
    model = kw.MKLRegressor(KERNELS, tol=1e-6).fit(regression.X, Y)
    certify(model, "squared", kw.LpNorm(p=2), Y, 1.0, kernels_of(regression, "variance")[0])


def test_history_ends_at_the_certificate(binary):
    model = kw.MKLClassifier(KERNELS, tol=1e-6).fit(binary.X, binary.y)
    history = model.history_
    assert len(history["gap"]) == model.n_iter_
    best = int(np.argmin(history["gap"]))
    assert history["primal"][best] == model.objective_
    assert history["gap"][best] == model.dual_gap_
    # every dual value bounds every primal value from below
    assert max(history["dual"]) <= min(history["primal"]) * (1.0 + 1e-9)


def test_a_fit_that_is_cut_short_says_so_and_still_reports_its_gap(binary):
    from sklearn.exceptions import ConvergenceWarning

    model = kw.MKLClassifier(KERNELS, tol=1e-10, max_iter=1)
    with pytest.warns(ConvergenceWarning, match=r"gap is .* after 1 single-kernel fits"):
        model.fit(binary.X, binary.y)
    assert model.dual_gap_ > model.tol
    Y = np.where(binary.y == 1, 1.0, -1.0)[:, None]
    model.tol = 1.0
    certify(model, "hinge", kw.LpNorm(p=2), Y, 1.0, kernels_of(binary, "variance")[0])
