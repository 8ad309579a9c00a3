"""Several outputs, sample weights and class weights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.svm import SVC, SVR

import kernelweave as kw
from kernelweave.kernels import RBF, Linear
from kernelweave.kernels.parametric import WeightedSum
from kernelweave.losses import EpsInsensitive

#: bandwidths from the data, so that weights must reach the kernels too
KERNELS = [Linear(), RBF("weighted"), RBF("median")]
NORMALIZATIONS = ["variance", "spherical", "trace", "dimension", "center", None]


# -- several outputs ----------------------------------------------------------------------------


@pytest.fixture
def targets(regression):
    """Three outputs that need different kernels."""
    X, y = regression.X, regression.y
    return np.column_stack([y, X[:, 2], np.sin(3.0 * X[:, 1])])


@pytest.mark.parametrize("loss", ["squared", "eps_insensitive", "huber"])
def test_independent_outputs_are_separate_fits(regression, targets, loss):
    together = kw.MKLRegressor(KERNELS, loss=loss, multioutput="independent").fit(regression.X, targets)
    predicted = together.predict(regression.X_new)
    assert predicted.shape == (30, 3)
    assert together.weights_.shape == (3, 3)
    assert np.shape(together.dual_gap_) == (3,)
    for k in range(3):
        alone = kw.MKLRegressor(KERNELS, loss=loss).fit(regression.X, targets[:, k])
        np.testing.assert_allclose(together.weights_[k], alone.weights_, atol=1e-10)
        np.testing.assert_allclose(predicted[:, k], alone.predict(regression.X_new), atol=1e-10)


@pytest.mark.parametrize("loss", ["squared", "eps_insensitive", "huber"])
def test_shared_outputs_have_one_set_of_weights(regression, targets, loss):
    model = kw.MKLRegressor(KERNELS, loss=loss, tol=1e-6).fit(regression.X, targets)
    assert model.weights_.shape == (3,)
    assert model.dual_coef_.shape == (3, 60)
    assert model.predict(regression.X_new).shape == (30, 3)
    assert model.dual_gap_ <= model.tol
    apart = kw.MKLRegressor(KERNELS, loss=loss, multioutput="independent", tol=1e-6)
    assert apart.fit(regression.X, targets).objective_.sum() <= model.objective_ * (1.0 + 1e-5)


@pytest.mark.parametrize("multioutput", ["shared", "independent"])
def test_predictions_have_the_shape_of_the_targets(regression, multioutput):
    flat = kw.MKLRegressor(KERNELS, multioutput=multioutput).fit(regression.X, regression.y)
    column = kw.MKLRegressor(KERNELS, multioutput=multioutput).fit(regression.X, regression.y[:, None])
    assert flat.predict(regression.X_new).shape == (30,)
    assert column.predict(regression.X_new).shape == (30, 1)
    np.testing.assert_array_equal(flat.predict(regression.X_new), column.predict(regression.X_new)[:, 0])


def test_score_of_several_outputs(regression, targets):
    model = kw.MKLRegressor(KERNELS, C=10.0).fit(regression.X, targets)
    assert model.score(regression.X, targets) > 0.5


# -- sample weights -----------------------------------------------------------------------------

ESTIMATORS = {
    "classifier": kw.MKLClassifier(KERNELS),
    "logistic": kw.MKLClassifier(KERNELS, loss="logistic", regularizer=kw.LpNorm(p=1)),
    "balanced": kw.MKLClassifier(KERNELS, class_weight="balanced"),
    "regressor": kw.MKLRegressor(KERNELS),
    "SVR": kw.MKLRegressor(KERNELS, loss="eps_insensitive", regularizer="uniform"),
    "detector": kw.MKLOneClass(KERNELS, nu=0.3),
}


def outcome(model, X):
    method = "decision_function" if hasattr(model, "decision_function") else "predict"
    return getattr(model, method)(X)


def exact(name, normalize="variance"):
    return clone(ESTIMATORS[name]).set_params(tol=1e-9, max_iter=500, normalize=normalize)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("normalize", NORMALIZATIONS, ids=str)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_weight_two_is_a_row_given_twice(binary, name, normalize):
    if name == "detector" and normalize == "center":
        pytest.skip("centred kernels leave novelty detection nothing to learn")
    X, y, X_new, _ = binary
    weight = np.ones(60)
    weight[::3] = 2.0
    twice = np.repeat(np.arange(60), weight.astype(int))
    weighted = exact(name, normalize).fit(X, y, sample_weight=weight)
    repeated = exact(name, normalize).fit(X[twice], y[twice])
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-3)
    np.testing.assert_allclose(outcome(weighted, X_new), outcome(repeated, X_new), atol=1e-3)
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-7)
    if hasattr(weighted, "predict_proba"):
        np.testing.assert_allclose(weighted.predict_proba(X_new), repeated.predict_proba(X_new), atol=5e-3)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("normalize", NORMALIZATIONS, ids=str)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_weight_zero_is_a_row_left_out(binary, name, normalize):
    if name == "detector" and normalize == "center":
        pytest.skip("centred kernels leave novelty detection nothing to learn")
    X, y, X_new, _ = binary
    weight = np.ones(60)
    weight[::4] = 0.0
    wild = X.copy()
    wild[::4] = 1e6  # what has no weight may hold anything
    weighted = exact(name, normalize).fit(wild, y, sample_weight=weight)
    kept = exact(name, normalize).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(outcome(weighted, X_new), outcome(kept, X_new), atol=1e-8)
    assert weighted.dual_coef_.shape == (60,)
    assert not weighted.dual_coef_[::4].any()
    np.testing.assert_allclose(weighted.dual_coef_[weight > 0], kept.dual_coef_, atol=1e-8)


@pytest.mark.parametrize("container", ["array", "stack"])
def test_weights_with_precomputed_kernels(binary, grams, container):
    K, K_new = grams
    wrap = (lambda A: A) if container == "array" else (lambda A: kw.KernelStack([A[:, :, 0], A[:, :, 1]]))
    weight = np.where(np.arange(60) % 4 == 0, 0.0, 2.0)
    keep = np.flatnonzero(weight)
    weighted = kw.MKLClassifier("precomputed", tol=1e-8).fit(wrap(K), binary.y, sample_weight=weight)
    kept = kw.MKLClassifier("precomputed", C=2.0, tol=1e-8).fit(K[np.ix_(keep, keep)], binary.y[keep])
    np.testing.assert_allclose(
        weighted.decision_function(wrap(K_new)), kept.decision_function(K_new[:, keep]), atol=1e-4
    )


@pytest.mark.parametrize("scheme", ["ovr", "ovo", "shared"])
def test_weights_with_several_classes(four, scheme):
    weight = np.where(np.arange(72) % 5 == 0, 0.0, 1.0)
    weighted = kw.MKLClassifier(KERNELS, multiclass=scheme).fit(four.X, four.y, sample_weight=weight)
    kept = kw.MKLClassifier(KERNELS, multiclass=scheme).fit(four.X[weight > 0], four.y[weight > 0])
    np.testing.assert_allclose(weighted.predict_proba(four.X_new), kept.predict_proba(four.X_new), atol=1e-8)


def test_a_weight_for_all_is_a_factor_of_the_cost(binary):
    weighted = kw.MKLClassifier(KERNELS, C=1.0, tol=1e-8).fit(
        binary.X, binary.y, sample_weight=np.full(60, 3.0)
    )
    costly = kw.MKLClassifier(KERNELS, C=3.0, tol=1e-8).fit(binary.X, binary.y)
    np.testing.assert_allclose(weighted.dual_coef_, costly.dual_coef_, atol=1e-3)
    np.testing.assert_allclose(weighted.objective_, costly.objective_, rtol=1e-7)


def test_a_weight_for_all_does_not_matter_to_one_class(regression):
    """nu is a share: doubling every sample leaves the region alone."""
    once = kw.MKLOneClass(KERNELS, tol=1e-8).fit(regression.X)
    twice = kw.MKLOneClass(KERNELS, tol=1e-8).fit(regression.X, sample_weight=np.full(60, 2.0))
    np.testing.assert_allclose(
        once.decision_function(regression.X_new), twice.decision_function(regression.X_new), atol=1e-6
    )


@pytest.mark.parametrize("sparse_rows", [False, True])
def test_scale_under_weights_is_that_of_scikit_learn(binary, sparse_rows):
    """One kernel, no normalisation: SVC and SVR, whose gamma="scale" counts every row once."""
    X, X_new = (sparse.csr_matrix(A) if sparse_rows else A for A in (binary.X, binary.X_new))
    weight = np.array([0.0, 0.5, 1.0, 3.0])[np.arange(60) % 4]
    options = {"normalize": None, "regularizer": "uniform", "tol": 1e-9}
    ours = kw.MKLClassifier([RBF("scale")], **options).fit(X, binary.y, sample_weight=weight)
    theirs = SVC(gamma="scale", tol=1e-9).fit(X, binary.y, sample_weight=weight)
    np.testing.assert_allclose(ours.decision_function(X_new), theirs.decision_function(X_new), atol=1e-5)
    ours = kw.MKLRegressor([RBF()], loss=EpsInsensitive(0.1), **options)
    ours.fit(X, binary.X[:, 1], sample_weight=weight)
    theirs = SVR(gamma="scale", tol=1e-9).fit(X, binary.X[:, 1], sample_weight=weight)
    np.testing.assert_allclose(ours.predict(X_new), theirs.predict(X_new), atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        kw.GroupOMPClassifier([RBF()]),
        kw.EmpiricalBayesRegressor([RBF()]),
        kw.MKLClassifierCV([RBF()], Cs=2, cv=3),
        kw.GMKLClassifier(WeightedSum([RBF(), Linear()])),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scale_counts_every_row_once_in_every_estimator(binary, model):
    weight = (np.arange(60) % 4).astype(float)
    ours = clone(model).fit(binary.X, binary.y, sample_weight=weight)
    gamma = SVC(gamma="scale").fit(binary.X, binary.y)._gamma
    if hasattr(model, "kernel"):
        given = clone(model).set_params(kernel__kernels__0__gamma=gamma)
    else:
        given = clone(model).set_params(kernels__0__gamma=gamma)
    given.fit(binary.X, binary.y, sample_weight=weight)
    np.testing.assert_allclose(outcome(ours, binary.X_new), outcome(given, binary.X_new), atol=1e-9)


@pytest.mark.parametrize("kernel", [2.0 * RBF() + Linear(), RBF() * RBF(columns=[0])], ids=["sum", "product"])
def test_scale_counts_every_row_once_inside_other_kernels(binary, kernel):
    weight = (np.arange(60) % 4).astype(float)
    ours = kw.MKLClassifier([kernel]).fit(binary.X, binary.y, sample_weight=weight)
    fitted = clone(kernel).fit(binary.X)
    np.testing.assert_allclose(ours.model_.source.kernels[0](binary.X_new), fitted(binary.X_new))


def test_rows_without_weight_are_not_read_without_need(binary):
    """Numbers, "weighted" and "median" leave them alone; "scale" needs them, as in scikit-learn."""
    weight = (np.arange(60) % 4).astype(float)
    missing = np.where(weight[:, None] > 0, binary.X, np.nan)
    kernels = [Linear() + RBF(0.3), RBF("weighted"), RBF("median", columns=[0])]
    model = kw.MKLClassifier(kernels).fit(missing, binary.y, sample_weight=weight)
    full = kw.MKLClassifier(kernels).fit(binary.X, binary.y, sample_weight=weight)
    np.testing.assert_array_equal(model.dual_coef_, full.dual_coef_)
    with pytest.raises(ValueError, match="NaN"):
        kw.MKLClassifier([RBF("scale")]).fit(missing, binary.y, sample_weight=weight)


def test_samples_held_out_do_not_set_widths(binary):
    """Unlike samples without weight, those that choose the number of kernels are no part of the fit."""
    held = kw.GroupOMPClassifier([RBF()], validation_fraction=0.25, random_state=0)
    wild = held.fit(binary.X, binary.y)
    train = np.setdiff1d(np.arange(60), np.flatnonzero(wild.dual_coef_ == 0))
    gamma = SVC(gamma="scale").fit(binary.X[train], binary.y[train])._gamma
    assert wild.model_.source.kernels[0].gamma_ == pytest.approx(gamma, rel=1e-12)


def test_a_class_without_weight_disappears(four):
    weight = (four.y != 13).astype(float)
    model = kw.MKLClassifier(KERNELS).fit(four.X, four.y, sample_weight=weight)
    np.testing.assert_array_equal(model.classes_, [10, 11, 12])


# -- class weights ------------------------------------------------------------------------------


def test_class_weight_is_a_sample_weight_of_the_class(binary):
    """Up to the constants of normalisation, which class weights leave alone."""
    by_class = kw.MKLClassifier([Linear(), RBF(gamma=0.3)], normalize=None, class_weight={0: 1.0, 1: 4.0})
    by_sample = kw.MKLClassifier([Linear(), RBF(gamma=0.3)], normalize=None)
    by_class.fit(binary.X, binary.y)
    by_sample.fit(binary.X, binary.y, sample_weight=np.where(binary.y == 1, 4.0, 1.0))
    np.testing.assert_allclose(by_class.dual_coef_, by_sample.dual_coef_, atol=1e-10)


def test_balanced_gives_every_class_the_same_cost():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=120) > 1.2).astype(int)
    shares = np.bincount(y)
    balanced = kw.MKLClassifier(KERNELS, class_weight="balanced").fit(X, y)
    factors = dict(enumerate(120 / (2 * shares)))
    np.testing.assert_array_equal(
        balanced.dual_coef_, kw.MKLClassifier(KERNELS, class_weight=factors).fit(X, y).dual_coef_
    )
    plain = kw.MKLClassifier(KERNELS).fit(X, y)
    assert (balanced.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()


def test_class_weights_by_string_label(flowers):
    heavy = kw.MKLClassifier([Linear()], C=0.01, class_weight={"virginica": 50.0})
    plain = kw.MKLClassifier([Linear()], C=0.01)
    count = [
        (model.fit(flowers.X, flowers.y).predict(flowers.X) == "virginica").sum() for model in (heavy, plain)
    ]
    assert count[0] > count[1]
