"""Three forms of novelty detection: with an offset, at a fixed level, and the smallest ball."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelweave as kw
from kernelweave.inspection import contributions
from kernelweave.kernels import RBF, Linear, Polynomial, Precomputed, random_subsets
from kernelweave.report import Report

N = 30
#: kernels of any diagonal
KERNELS = [Linear(columns=[0, 1]), Linear(columns=[2]), Polynomial(degree=2, columns=[0, 2]), RBF(gamma=0.3)]
#: and those of a constant one
SMOOTH = [RBF(gamma=0.1), RBF(gamma=1.0, columns=[0]), RBF(gamma=1.0, columns=[1, 2])]


@pytest.fixture(scope="module", name="X")
def samples():
    rng = np.random.default_rng(3)
    return rng.normal(size=(N + 10, 3)) * [1.0, 2.0, 0.5] + [1.0, 0.0, 0.3]


def detector(kernels=KERNELS, **options):
    return kw.MKLOneClass(kernels, **{"tol": 1e-9, "normalize": None, "max_iter": 1000, **options})


def grams(kernels, X):
    return [kernel(X[:N]) for kernel in kernels]


def conic(objective, constraints):
    """Optimum of a problem."""
    problem = cp.Problem(objective, constraints)
    return problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)


def dual_norm(values, p):
    """||s||_{p*} of convex s >= 0."""
    stacked = cp.hstack(values)
    return cp.max(stacked) if p == 1 else cp.norm(cp.pos(stacked), 2)


def quadratic(K, alpha):
    """alpha' K alpha by a root of K."""
    values, vectors = np.linalg.eigh(K)
    return cp.sum_squares((vectors * np.sqrt(np.maximum(values, 0.0))).T @ alpha)


# -- a fixed level --------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2])
def test_the_printed_form_agrees_with_a_conic_solver(X, p):
    C, alpha = 0.2, cp.Variable(N)
    model = detector(form="level", regularizer=kw.LpNorm(p=p), C=C).fit(X[:N])
    squares = [quadratic(K, alpha) for K in grams(KERNELS, X)]
    best = conic(cp.Maximize(cp.sum(alpha) - 0.5 * dual_norm(squares, p)), [alpha >= 0, alpha <= C])
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    assert model.dual_gap_ <= 1e-9
    assert model.offset_ == 1.0
    # the primal of the paper, with the functions of the model
    f = model.score_samples(X[:N])
    norms = model.norms_[model.weights_ > 0] ** 2 / model.weights_[model.weights_ > 0]
    value = C * np.maximum(0.0, 1.0 - f).sum() + 0.5 * norms.sum()
    assert value == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("regularizer", [kw.LpNorm(p=1), kw.LpNorm(p=2), "uniform"], ids=str)
def test_the_level_is_the_offset_at_another_cost(X, regularizer):
    """w / rho solves the printed form at C / rho."""
    offset = detector(regularizer=regularizer, nu=0.3).fit(X[:N])
    rho = offset.offset_
    level = detector(form="level", regularizer=regularizer, C=1.0 / (0.3 * N * rho)).fit(X[:N])
    np.testing.assert_allclose(level.weights_, offset.weights_, atol=1e-5)
    # a gap of 1e-9 leaves functions to its root
    expected = offset.decision_function(X) / rho
    np.testing.assert_allclose(level.decision_function(X), expected, rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize("regularizer", [kw.LpNorm(p=1, form="penalty"), "wedge"], ids=str)
def test_regularisers_that_grow_as_the_offset_have_a_fixed_level(X, regularizer):
    with pytest.raises(ValueError, match="grow alike"):
        detector(regularizer=regularizer, C=0.2).fit(X[:N])
    assert detector(form="level", regularizer=regularizer, C=0.2, tol=1e-5).fit(X[:N]).dual_gap_ <= 1e-5


# -- the smallest ball ----------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", [None, "variance", "spherical"])
@pytest.mark.parametrize("p", [1, 2])
def test_the_ball_is_the_offset_where_the_diagonal_is_constant(X, normalize, p):
    kernels = KERNELS if normalize == "spherical" else SMOOTH
    options = {"kernels": kernels, "normalize": normalize, "regularizer": kw.LpNorm(p=p), "nu": 0.3}
    ball, offset = (detector(form=form, **options).fit(X[:N]) for form in ("svdd", "rho"))
    np.testing.assert_allclose(ball.weights_, offset.weights_, atol=1e-5)
    np.testing.assert_allclose(ball.decision_function(X), offset.decision_function(X), atol=1e-6)
    assert ball.objective_ == pytest.approx(offset.objective_, rel=1e-7)


@pytest.mark.parametrize("nu", [0.05, 0.3])
def test_one_linear_kernel_is_the_ball_of_the_samples(X, nu):
    C = 1.0 / (nu * N)
    model = detector(Linear(), form="svdd", nu=nu).fit(X[:N])
    centre, square = cp.Variable(3), cp.Variable()
    outside = [cp.pos(cp.sum_squares(x - centre) - square) for x in X[:N]]
    best = conic(cp.Minimize(square + C * cp.sum(cp.hstack(outside))), [])
    kappa = (X[:N] ** 2).sum(axis=1).max()
    assert model.objective_ == pytest.approx(0.5 * (best - kappa), rel=1e-6)
    assert model.radius_**2 == pytest.approx(float(square.value), rel=1e-4)
    expected = ((X - centre.value) ** 2).sum(axis=1)
    np.testing.assert_allclose(-2.0 * model.score_samples(X), expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(model.decision_function(X), 0.5 * (model.radius_**2 - expected), atol=2e-3)


@pytest.mark.parametrize("p", [1, 2])
def test_weights_and_ball_agree_with_a_conic_solver(X, p):
    nu, alpha = 0.2, cp.Variable(N)
    model = detector(form="svdd", regularizer=kw.LpNorm(p=p), nu=nu).fit(X[:N])
    Ks = grams(KERNELS, X)
    squares = [K.diagonal().max() - K.diagonal() @ alpha + quadratic(K, alpha) for K in Ks]
    box = [alpha >= 0, alpha <= 1.0 / (nu * N), cp.sum(alpha) == 1]
    best = conic(cp.Maximize(-0.5 * dual_norm(squares, p)), box)
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    assert model.dual_gap_ <= 1e-9
    # the dual value at the solution of the other solver bounds ours, and ours its
    s = np.array([square.value for square in squares])
    np.testing.assert_allclose(model.weights_ @ s, np.linalg.norm(s, np.inf if p == 1 else 2.0), rtol=1e-5)


def test_the_interleaved_solver_finds_the_same_ball(X):
    options = {"form": "svdd", "nu": 0.2, "tol": 1e-5}
    found, best = (detector(solver=name, **options).fit(X[:N]) for name in ("interleaved", "auto"))
    assert found.dual_gap_ <= 1e-5
    assert found.objective_ == pytest.approx(best.objective_, rel=2e-5)


def test_at_its_weights_the_ball_is_the_smallest(X):
    """The objective of the docstring, by distances in the combined space."""
    nu = 0.2
    model = detector(form="svdd", nu=nu).fit(X[:N])
    K = np.tensordot(model.weights_, grams(KERNELS, X), axes=1)
    a = model.dual_coef_
    squares = K.diagonal() - 2.0 * K @ a + a @ K @ a
    np.testing.assert_allclose(-2.0 * model.score_samples(X[:N]), squares, atol=1e-9)
    tops = np.array([G.diagonal().max() for G in grams(KERNELS, X)])
    over = np.maximum(0.0, squares - model.radius_**2).sum() / (nu * N)
    value = 0.5 * (model.radius_**2 - model.weights_ @ tops + over)
    assert value == pytest.approx(model.objective_, rel=1e-6)
    assert (model.predict(X[:N]) < 0).mean() <= nu


def test_moving_all_samples_moves_the_ball_along(X):
    """Distances are all it knows: a linear kernel far from the origin gives the same region."""
    far = X + 100.0
    near, moved = (detector(Linear(), form="svdd", nu=0.2).fit(data[:N]) for data in (X, far))
    assert moved.radius_ == pytest.approx(near.radius_, rel=1e-6)
    np.testing.assert_allclose(moved.decision_function(far), near.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("form", ["level", "svdd"])
def test_a_weight_of_two_is_a_sample_given_twice(X, form):
    weight = 1 + np.arange(N) % 2
    first = detector(form=form, C=0.1).fit(X[:N], sample_weight=weight)
    second = detector(form=form, C=0.1).fit(np.repeat(X[:N], weight, axis=0))
    assert first.objective_ == pytest.approx(second.objective_, rel=1e-6)
    np.testing.assert_allclose(first.decision_function(X), second.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("form", ["level", "svdd"])
@pytest.mark.parametrize(
    "kernels",
    [KERNELS, pytest.param(random_subsets(20, random_state=0), marks=pytest.mark.slow)],  # loops to compile
    ids=["few", "subsets"],
)
def test_files_keep_the_form(X, form, kernels, tmp_path):
    model = detector(kernels, form=form, C=0.2, normalize="variance", tol=1e-3).fit(X[:N])
    kw.save_model(model, tmp_path / "model.kw")
    again = kw.load_model(tmp_path / "model.kw")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert (again.offset_, again.intercept_) == (model.offset_, model.intercept_)


def test_a_checkpoint_of_another_form_is_refused(X, tmp_path):
    path = tmp_path / "fit.ckpt"
    detector(nu=0.2, checkpoint=path).fit(X[:N])
    with pytest.raises(ValueError, match="kernel values"):
        detector(form="svdd", nu=0.2, checkpoint=path).fit(X[:N])


def test_the_radius_belongs_to_the_ball(X):
    model = detector(form="svdd", nu=0.2, tol=1e-3).fit(X[:N])
    assert model.radius_ > 0.0
    assert not hasattr(model, "coef_")
    model.set_params(form="rho").fit(X[:N])
    assert not hasattr(model, "radius_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "ball"}, "form='ball': expected 'rho', 'level' or 'svdd'"),
        ({"form": "level"}, "has no nu: pass C"),
        ({"form": "svdd", "regularizer": kw.SMKL()}, "form='svdd' has no certificate"),
        ({"form": "svdd", "regularizer": kw.BlockNorm(q=3.0)}, "form='svdd' has no certificate"),
        ({"form": "svdd", "approximation": "nystroem"}, "approximation=None and device=None"),
    ],
)
def test_what_a_form_cannot_do_is_refused(X, options, message):
    with pytest.raises(ValueError, match=message):
        detector(**options).fit(X[:N])


def test_precomputed_kernels_by_sample_number(X):
    Ks = [kernel(X) for kernel in KERNELS]
    model = detector([Precomputed(K) for K in Ks], form="svdd", nu=0.2).fit(np.arange(N)[:, None])
    direct = detector(form="svdd", nu=0.2).fit(X[:N])
    np.testing.assert_allclose(
        model.decision_function(np.arange(len(X))[:, None]), direct.decision_function(X), atol=1e-6
    )
    stack = np.stack(Ks, axis=2)
    fitted = detector("precomputed", form="svdd", nu=0.2).fit(stack[:N, :N])
    np.testing.assert_allclose(fitted.weights_, direct.weights_, atol=1e-6)
    with pytest.raises(ValueError, match=r"k\(x, x\) of new samples"):
        fitted.predict(stack[N:, :N])


@pytest.mark.parametrize("form", ["rho", "level", "svdd"])
@pytest.mark.parametrize("kernels", [KERNELS, random_subsets(3, random_state=0)], ids=["few", "together"])
def test_parts_of_the_kernels_add_up_to_the_decision(X, form, kernels):
    model = detector(kernels, form=form, C=1.0).fit(X[:N])
    expected = model.decision_function(X)
    np.testing.assert_allclose(model.model_(X)[:, 0], expected, atol=1e-12)
    np.testing.assert_allclose(contributions(model, X).sum(axis=1) + model.intercept_, expected, atol=1e-12)
    formula = Report.from_model(model, X[:N], None, stability=False).to_dict()["fitted"]["formula"]
    assert ("\N{GREEK SMALL LETTER RHO}" in formula, "R²" in formula) == (form == "rho", form == "svdd")
