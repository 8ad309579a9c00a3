"""Generalized multiple kernel learning: selection, multiclass, bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, OneClassSVM

import kernelweave as kw
from kernelweave.gram import Predictor
from kernelweave.kernels import (
    RBF,
    AutogradKernel,
    GroupProductRBF,
    Linear,
    PowerSum,
    ProductRBF,
    ProjectedRBF,
    WeightedSum,
)
from kernelweave.losses import EpsInsensitive, Huber
from kernelweave.solvers.kernel_gradient import L1, L2, Box, FunctionPenalty, LogDet, Prior


@pytest.fixture(scope="module")
def wave():
    """Two of eight features matter, and not linearly."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 8))
    return X, np.sin(2.0 * X[:, 2]) * 2.0 + X[:, 5] ** 2 - 1.0 + 0.1 * rng.normal(size=160)


@pytest.fixture(scope="module")
def labels(wave):
    return np.where(wave[1] > 0, "yes", "no")


def test_finds_the_features_that_matter(wave, labels):
    X, t = wave
    clf = kw.GMKLClassifier(C=10.0).fit(X, labels)
    assert set(np.argsort(-clf.weights_)[:2]) == {2, 5}
    assert clf.score(X, labels) > 0.95
    reg = kw.GMKLRegressor(C=10.0).fit(X, t)
    assert set(np.argsort(-reg.weights_)[:2]) == {2, 5}
    assert reg.score(X, t) > 0.9


def test_fitted_attributes(wave, labels):
    X, _ = wave
    clf = kw.GMKLClassifier(C=10.0).fit(X, labels)
    assert clf.kernel_names_ == [f"x{k}" for k in range(8)]
    assert clf.stationarity_ <= clf.tol
    assert (np.diff(clf.history_["objective"]) <= 0).all()
    assert clf.history_["objective"][-1] == pytest.approx(clf.objective_)
    assert sorted(clf.ranking_) == list(range(1, 9))
    assert clf.ranking_[clf.weights_.argmax()] == 1
    np.testing.assert_array_equal(clf.feature_importances_, clf.weights_)
    np.testing.assert_array_equal(clf.get_support(), clf.weights_ > 0)
    f = clf.kernel_(X, X, clf.weights_) @ clf.dual_coef_ + clf.intercept_
    np.testing.assert_allclose(clf.decision_function(X), f, atol=1e-10)
    assert "x2" in clf._repr_html_()


def test_equals_the_machine_at_its_parameters(wave, labels):
    X, _ = wave
    clf = kw.GMKLClassifier(C=10.0).fit(X, labels)
    K = clf.kernel_(X, d=clf.weights_)
    svc = SVC(C=10.0, kernel="precomputed", tol=1e-8).fit(K, labels)
    np.testing.assert_allclose(clf.decision_function(X), svc.decision_function(K), atol=1e-4)


def test_paper_protocol_selects_and_learns_again(wave, labels):
    X, _ = wave
    everything = kw.GMKLClassifier(C=10.0).fit(X, labels)
    clf = kw.GMKLClassifier(C=10.0, n_features_to_select=2).fit(X, labels)
    np.testing.assert_array_equal(clf.get_support(indices=True), [2, 5])
    np.testing.assert_array_equal(clf.ranking_, everything.ranking_)
    assert clf.transform(X).shape == (160, 2)
    assert not clf.weights_[[0, 1, 3, 4, 6, 7]].any()
    # the model reads nothing else
    scrambled = X.copy()
    scrambled[:, [0, 1, 3, 4, 6, 7]] = 0.0
    np.testing.assert_allclose(clf.decision_function(scrambled), clf.decision_function(X))


@pytest.mark.slow
def test_pipelines_and_model_selection(wave, labels):
    X, _ = wave
    selector = SelectFromModel(kw.GMKLClassifier(C=10.0), max_features=2, threshold=-np.inf)
    pipe = make_pipeline(StandardScaler(), selector, SVC()).fit(X, labels)
    np.testing.assert_array_equal(pipe[1].get_support(indices=True), [2, 5])
    pipe = make_pipeline(StandardScaler(), kw.GMKLClassifier(n_features_to_select=2, C=10.0), SVC())
    assert cross_val_score(pipe, X, labels, cv=3).mean() > 0.85
    grid = GridSearchCV(
        kw.GMKLClassifier(regularizer=L1()), {"C": [1.0, 10.0], "regularizer__strength": [0.5, 1.0]}, cv=2
    )
    assert grid.fit(X, labels).best_score_ > 0.8


def test_named_columns_and_groups(wave, labels):
    frame = pd.DataFrame(wave[0], columns=list("abcdefgh"))
    groups = GroupProductRBF({"first": ["a", "b"], "second": ["c", "f"]})
    clf = kw.GMKLClassifier(groups, C=10.0, n_features_to_select=2).fit(frame, labels)
    assert clf.kernel_names_ == ["first", "second"]
    assert clf.weights_.argmax() == 1
    assert clf.get_feature_names_out().tolist() == ["c", "f"]
    assert kw.GMKLClassifier().fit(frame, labels).kernel_names_ == list("abcdefgh")
    assert list(clf.set_output(transform="pandas").transform(frame)) == ["c", "f"]


def test_powers_select_features(wave):
    X, _ = wave
    y = (X[:, 1] * X[:, 3] > 0).astype(int)
    clf = kw.GMKLClassifier(PowerSum(degree=2), C=10.0).fit(X, y)
    assert set(np.argsort(-clf.feature_importances_)[:2]) == {1, 3}
    assert clf.kernel_names_[0] == "offset"
    assert clf.score(X, y) > 0.9


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scheme", ["ovr", "shared"])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_multiclass(flowers, scheme, loss):
    clf = kw.GMKLClassifier(C=10.0, multiclass=scheme, loss=loss).fit(flowers.X, flowers.y)
    assert clf.score(flowers.X_new, flowers.y_new) > 0.9
    assert clf.weights_.shape == ((3, 4) if scheme == "ovr" else (4,))
    assert clf.decision_function(flowers.X_new).shape == (len(flowers.X_new), 3)
    probability = clf.predict_proba(flowers.X_new)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    np.testing.assert_array_equal(clf.classes_[probability.argmax(axis=1)], clf.predict(flowers.X_new))
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(flowers.X_new)), probability)
    chosen = clone(clf).set_params(n_features_to_select=2).fit(flowers.X, flowers.y)
    assert chosen.get_support().sum() == 2


def test_probabilities_of_two_classes(binary):
    for loss in ("hinge", "logistic"):
        clf = kw.GMKLClassifier(loss=loss).fit(binary.X, binary.y)
        positive = clf.predict_proba(binary.X_new)[:, 1]
        np.testing.assert_array_equal(positive > 0.5, clf.decision_function(binary.X_new) > 0)
        assert -np.log(np.maximum(np.where(binary.y_new, positive, 1 - positive), 1e-12)).mean() < np.log(2.0)


@pytest.mark.parametrize("loss", ["squared", "huber", EpsInsensitive(eps=0.05)])
def test_regression_losses(regression, loss):
    reg = kw.GMKLRegressor(C=10.0, loss=loss).fit(regression.X, regression.y)
    assert reg.score(regression.X_new, regression.y_new) > 0.5
    assert reg.stationarity_ <= reg.tol


def test_outputs_share_the_parameters(regression):
    Y = np.column_stack([regression.y, -regression.y])
    reg = kw.GMKLRegressor(C=10.0).fit(regression.X, Y)
    assert reg.weights_.shape == (4,)
    prediction = reg.predict(regression.X_new)
    np.testing.assert_allclose(prediction[:, 0], -prediction[:, 1], atol=1e-8)


def test_evidence_of_a_gaussian_process(regression):
    reg = kw.GMKLRegressor(regularizer=LogDet(), C=4.0, fit_intercept=False).fit(regression.X, regression.y)
    assert reg.score(regression.X_new, regression.y_new) > 0.5


def test_sum_of_kernels_is_ordinary_mkl(binary):
    kernels = [Linear(), RBF(0.1), RBF(1.0)]
    ours = kw.GMKLClassifier(WeightedSum(kernels), regularizer=L1(0.5), tol=1e-6).fit(binary.X, binary.y)
    other = kw.MKLClassifier(
        kernels, regularizer=kw.LpNorm(p=1, form="penalty"), normalize=None, tol=1e-6, max_iter=1000
    ).fit(binary.X, binary.y)
    assert ours.objective_ == pytest.approx(other.objective_, rel=1e-4)
    np.testing.assert_allclose(
        ours.decision_function(binary.X_new), other.decision_function(binary.X_new), atol=0.02
    )


def test_options_reach_the_solver(wave, labels):
    X, _ = wave
    clf = kw.GMKLClassifier(constraint=Box(upper=0.05), check_gradient=True).fit(X, labels)
    assert clf.weights_.max() <= 0.05 + 1e-12
    starts = [kw.GMKLClassifier(n_init=n, random_state=0, C=100.0).fit(X, labels) for n in (1, 4)]
    assert starts[1].objective_ <= starts[0].objective_
    projected = kw.GMKLClassifier(solver="spectral", constraint=lambda d: np.clip(d, 0.0, 0.1))
    assert projected.fit(X, labels).weights_.max() <= 0.1 + 1e-12
    heavy = kw.GMKLClassifier(class_weight={"yes": 5.0, "no": 1.0}, C=0.1).fit(X, labels)
    light = kw.GMKLClassifier(C=0.1).fit(X, labels)
    assert (heavy.predict(X) == "yes").sum() >= (light.predict(X) == "yes").sum()


def test_prior_mean_holds_the_parameters(wave, labels):
    X, _ = wave
    clf = kw.GMKLClassifier(regularizer=L2(1e6, mean=0.3)).fit(X, labels)
    np.testing.assert_allclose(clf.weights_, 0.3, rtol=1e-2)


def test_single_precision_stays_single(wave, labels):
    X, _ = wave
    clf = kw.GMKLClassifier(C=10.0).fit(X, labels)
    single = kw.GMKLClassifier(C=10.0, tol=1e-3).fit(X.astype(np.float32), labels)
    assert single.model_.source.X.dtype == np.float32
    assert single.objective_ == pytest.approx(clf.objective_, rel=0.02)


def test_predictions_in_batches(wave, labels, monkeypatch):
    X, _ = wave
    clf = kw.GMKLClassifier().fit(X, labels)
    whole = clf.decision_function(X)
    monkeypatch.setattr(Predictor, "block_bytes", 8 * 500)
    np.testing.assert_allclose(clf.decision_function(X), whole, rtol=1e-10)


def test_pickle_and_repeatability(wave, labels):
    X, _ = wave
    clf, again = (kw.GMKLClassifier(n_init=2, random_state=0).fit(X, labels) for _ in range(2))
    np.testing.assert_array_equal(clf.weights_, again.weights_)
    restored = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(restored.decision_function(X), clf.decision_function(X))


def test_feature_order_permutes_the_weights(wave, labels):
    X, _ = wave
    order = np.random.default_rng(1).permutation(8)
    clf = kw.GMKLClassifier(C=10.0, tol=1e-6).fit(X, labels)
    moved = kw.GMKLClassifier(C=10.0, tol=1e-6).fit(X[:, order], labels)
    np.testing.assert_allclose(moved.weights_, clf.weights_[order], atol=1e-3)


def test_verbose(wave, labels, capsys):
    X, _ = wave
    kw.GMKLClassifier(verbose=1).fit(X, labels)
    assert "steps: objective" in capsys.readouterr().out
    kw.GMKLClassifier(verbose=2).fit(X, labels)
    assert "step 1: objective" in capsys.readouterr().out


# -- weights of either sign ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def contrast():
    """Only x_1 - x_3 matters."""
    X = np.random.default_rng(0).normal(size=(120, 5))
    return X, np.abs(X[:, 1] - X[:, 3]) > 1.0


def test_a_direction_needs_both_signs(contrast):
    X, y = contrast
    clf = kw.GMKLClassifier(ProjectedRBF(), loss="squared_hinge", C=10.0, n_features_to_select=2).fit(
        X[:80], y[:80]
    )
    assert clf.stationarity_ <= clf.tol
    assert clf.weights_[1] * clf.weights_[3] < 0
    np.testing.assert_array_equal(clf.get_support(indices=True), [1, 3])
    np.testing.assert_array_equal(clf.feature_importances_, np.abs(clf.weights_))
    held = kw.GMKLClassifier(ProjectedRBF(), loss="squared_hinge", C=10.0, constraint=Box()).fit(
        X[:80], y[:80]
    )
    assert clf.score(X[80:], y[80:]) > held.score(X[80:], y[80:]) + 0.1
    assert clf.objective_ < held.objective_


@pytest.mark.slow
def test_a_metric_turns_features(contrast):
    X, y = contrast
    clf = kw.GMKLClassifier("metric_rbf", C=10.0, regularizer="l2", tol=1e-3).fit(X[:80, :4], y[:80])
    A = clf.kernel_.matrix(clf.weights_)
    assert np.linalg.eigvalsh(A)[0] > -1e-10
    assert A[1, 3] < 0
    assert not hasattr(clf, "feature_importances_")


def test_a_constant_column_has_no_part_in_a_metric_or_a_direction(contrast):
    X, y = contrast
    X = np.column_stack([X[:80, 1], np.full(80, 3.0), X[:80, 3]])
    for kernel in ("metric_rbf", "projected_rbf"):
        with pytest.warns(UserWarning, match="constant columns get weight 0"):
            clf = kw.GMKLClassifier(kernel, regularizer="prior", loss="squared_hinge", C=10.0, tol=1e-3).fit(
                X, y[:80]
            )
        there = [k for k, name in enumerate(clf.kernel_names_) if "x1" in name]
        assert not clf.weights_[there].any()
        assert clf.score(X, y[:80]) > 0.8


# -- novelty detection --------------------------------------------------------------------------


def test_with_parameters_held_it_is_the_one_class_svm(wave):
    X = wave[0][:60]
    detector = kw.GMKLOneClass(regularizer=Prior(1e8), nu=0.2, tol=1e-6).fit(X)
    d = detector.kernel_.initial_
    np.testing.assert_allclose(detector.weights_, d, rtol=1e-4)
    K = detector.kernel_(X, d=detector.weights_)
    svm = OneClassSVM(kernel="precomputed", nu=0.2, tol=1e-9).fit(K)
    # libsvm has alpha of sum nu n
    np.testing.assert_allclose(12.0 * detector.score_samples(X), svm.score_samples(K), atol=1e-3)
    assert (detector.predict(X) < 0).mean() <= 0.2


def test_learned_parameters_of_a_detector(wave):
    """T from its definition falls from the start to a stationary point; the spread features lose weight."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[:, 1] = np.where(np.arange(60) % 10 == 0, 3.0, 0.2) * X[:, 1]  # most samples agree
    X = StandardScaler().fit_transform(X)
    detector = kw.GMKLOneClass(regularizer=Prior(0.1), nu=0.2, tol=1e-6).fit(X)
    assert detector.stationarity_ <= 1e-6
    start, d = detector.kernel_.initial_, detector.weights_
    assert detector.weights_.argmax() == 1
    assert (d < start).all()
    K, a = detector.kernel_(X, d=d), detector.dual_coef_
    value = -0.5 * a @ K @ a + 0.1 * (((d - start) / start) ** 2).sum()
    assert detector.objective_ == pytest.approx(value, rel=1e-5)
    assert a.sum() == pytest.approx(1.0)
    assert detector.history_["objective"][-1] < detector.history_["objective"][0]
    assert set(detector.fit_predict(X)) == {-1, 1}
    assert detector.decision_function([[9.0, 9.0, 9.0]])[0] < 0
    # a fixed sum of weights holds the width as well
    with pytest.warns(UserWarning, match="driven to 0.*strengthen what holds them"):
        kw.GMKLOneClass(regularizer=L1(), nu=0.2).fit(X)
    onto = kw.GMKLOneClass(regularizer=L1(0.0), nu=0.2, constraint=onto_simplex).fit(X)
    assert onto.weights_.sum() == pytest.approx(1.0)
    assert onto.weights_.argmax() == 1


def onto_simplex(d):
    """The nearest d >= 0 of sum 1."""
    ordered = np.sort(d)[::-1]
    excess = (np.cumsum(ordered) - 1.0) / np.arange(1, len(d) + 1)
    return np.maximum(d - excess[np.flatnonzero(ordered > excess)[-1]], 0.0)


def test_bad_settings_of_a_detector(wave):
    X = wave[0][:30]
    for options, message in (
        ({"nu": 0.0}, "nu=0.0 must be in"),
        ({"C": 1e-3}, "must be at least 1 / n"),
        ({"C": -1.0}, "C=-1.0"),
        ({"loss": "hinge"}, "loss='hinge' is not for GMKLOneClass"),
    ):
        with pytest.raises(ValueError, match=message):
            kw.GMKLOneClass(**options).fit(X)


# -- bad input ----------------------------------------------------------------------------------


def test_constant_columns_get_weight_zero(wave, labels):
    X = wave[0].copy()
    X[:, 3] = 5.0
    with pytest.warns(UserWarning, match="constant columns get weight 0: x3"):
        clf = kw.GMKLClassifier(regularizer=L2(mean=0.3)).fit(X, labels)
    assert clf.weights_[3] == 0.0
    with pytest.raises(ValueError, match="every column it sees is constant"):
        kw.GMKLClassifier().fit(np.ones((10, 3)), np.arange(10) % 2)


def test_parameters_driven_to_zero(wave, labels):
    X, t = wave
    with pytest.warns(UserWarning, match="every parameter of ProductRBF was driven to 0.*increase C"):
        kw.GMKLClassifier(regularizer=L1(1e6)).fit(X, labels)
    with pytest.warns(UserWarning, match="every parameter of ProductRBF was driven to 0"):
        kw.GMKLRegressor(regularizer=L1(1e6)).fit(X, t)


class Wrong(ProductRBF):
    """The gradient of its third component has the wrong sign."""

    def _gather(self, slopes):
        return super()._gather(slopes) * np.where(np.arange(len(slopes)) == 2, -1.0, 1.0)


def test_a_wrong_gradient_is_named_on_request(wave, labels):
    X, _ = wave
    with pytest.raises(ValueError, match=r"wrong in 1 of 8 components, such as 2 \('x2'\)"):
        kw.GMKLClassifier(Wrong(), check_gradient=True).fit(X, labels)
    wrong = FunctionPenalty(np.sum, lambda d: 2.0 * np.ones_like(d))
    with pytest.raises(ValueError, match=r"FunctionPenalty.gradient is wrong"):
        kw.GMKLClassifier(regularizer=wrong, check_gradient=True).fit(X, labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0}, "C=0 must be a positive number"),
        ({"C": -1.0}, "C=-1.0 must be"),
        ({"tol": 0.0}, "tol=0.0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"kernel": "rbf"}, "kernel='rbf' is not a parametric kernel"),
        ({"regularizer": "lp"}, "regularizer='lp' is not a penalty"),
        ({"loss": "one_class"}, "loss='one_class' is not for"),
        ({"solver": "sgd"}, "solver='sgd'"),
        ({"n_features_to_select": 9}, "from 1 to 8"),
        ({"n_features_to_select": 2, "kernel": WeightedSum([RBF(1.0)])}, "not weights of features"),
        ({"multiclass": "ovo"}, "multiclass='ovo'"),
    ],
)
def test_bad_parameters_leave_nothing_behind(wave, labels, options, message):
    clf = kw.GMKLClassifier(**options)
    with pytest.raises(ValueError, match=message):
        clf.fit(wave[0], labels)
    assert not [name for name in vars(clf) if name.endswith("_") and not name.startswith("_")]


def test_kernels_without_features_select_none(binary):
    clf = kw.GMKLClassifier(WeightedSum([Linear(), RBF(1.0)])).fit(binary.X, binary.y)
    with pytest.raises(ValueError, match="not weights of features"):
        clf.transform(binary.X)
    assert not hasattr(clf, "feature_importances_")


def test_memory_limit(wave, labels):
    with pytest.raises(MemoryError, match="memory_limit allows"):
        kw.GMKLClassifier(memory_limit="100KB").fit(wave[0], labels)
    kw.GMKLClassifier(memory_limit="1MB").fit(wave[0], labels)


def test_one_class_only(wave):
    with pytest.raises(ValueError, match="y has 1 class"):
        kw.GMKLClassifier().fit(wave[0], np.ones(len(wave[0])))


@pytest.mark.torch
def test_a_kernel_written_in_torch_learns_what_the_written_kernel_learns(rng):
    pytest.importorskip("torch")

    def product_rbf(X, Z, d):
        return (-((X[:, None] - Z[None]) ** 2) @ d).exp()

    X = rng.normal(size=(60, 4))
    y = np.sign(X[:, 0] + 0.1 * rng.normal(size=len(X)))
    ours = kw.GMKLClassifier(C=10.0).fit(X, y)
    kernel = AutogradKernel(product_rbf, start=ProductRBF().fit(X).initial_)
    theirs = kw.GMKLClassifier(kernel, C=10.0, check_gradient=True).fit(X, y)
    assert theirs.objective_ == pytest.approx(ours.objective_, rel=1e-6)
    np.testing.assert_allclose(theirs.decision_function(X), ours.decision_function(X), atol=1e-3)


# -- units ----------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("regularizer", ["l1", L2(0.1), LogDet(), L1(0.5) + L2(0.5)])
@pytest.mark.parametrize("factor", [1e-9, 1e-3, 1e3, 1e9])
def test_units_of_the_target_do_not_matter(wave, factor, regularizer):
    """The same parameters, predictions times the factor, the objective times its square."""
    X, t = wave[0][:60, :4], wave[1][:60]
    plain = kw.GMKLRegressor(regularizer=regularizer).fit(X, t)
    scaled = kw.GMKLRegressor(regularizer=regularizer).fit(X, factor * t)
    np.testing.assert_allclose(scaled.weights_, plain.weights_, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(scaled.predict(X), factor * plain.predict(X), rtol=1e-5, atol=1e-6 * factor)
    assert scaled.objective_ == pytest.approx(factor**2 * plain.objective_, rel=1e-8)
    assert scaled.stationarity_ == pytest.approx(plain.stationarity_, rel=1e-3, abs=1e-7)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("factor", [1e-3, 1e3])
@pytest.mark.parametrize("make", [lambda s: (Huber(0.5 * s), 1.0), lambda s: (EpsInsensitive(0.1 * s), s)])
def test_units_of_the_target_and_of_the_loss_do_not_matter(wave, factor, make):
    X, t = wave[0][:60, :4], wave[1][:60]
    fits = []
    for s in (1.0, factor):
        loss, C = make(s)
        fits.append(kw.GMKLRegressor(loss=loss, C=C).fit(X, s * t))
    np.testing.assert_allclose(fits[1].weights_, fits[0].weights_, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(fits[1].predict(X), factor * fits[0].predict(X), rtol=1e-3, atol=1e-3 * factor)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_objective_has_the_penalty_in_units_of_the_variance(wave, fit_intercept):
    """1/2 w'w + C sum_i V + v r(d), from the definitions; weights of the samples enter v."""
    X, t = wave[0][:60, :4], 7.0 * wave[1][:60] + 3.0
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    reg = kw.GMKLRegressor(regularizer=L1(0.3), C=2.0, fit_intercept=fit_intercept)
    reg.fit(X, t, sample_weight=weight)
    K, a = reg.kernel_(X, X, reg.weights_), reg.dual_coef_
    v = np.average((t - fit_intercept * np.average(t, weights=weight)) ** 2, weights=weight)
    errors = 0.5 * (t - K @ a - reg.intercept_) ** 2
    value = 0.5 * a @ K @ a + 2.0 * weight @ errors + v * 0.3 * reg.weights_.sum()
    assert reg.objective_ == pytest.approx(value, rel=1e-8)


@pytest.mark.filterwarnings("ignore:every parameter of ProductRBF was driven to 0")
def test_constant_targets_are_predicted(wave):
    reg = kw.GMKLRegressor().fit(wave[0][:40], np.full(40, -2.5e-7))
    np.testing.assert_allclose(reg.predict(wave[0][40:]), -2.5e-7, rtol=1e-9)


def value_of(X, y, d, C, strength):
    """T(d) of the hinge loss and the l2 penalty, by scikit-learn."""
    K = np.exp(-((X[:, None] - X) ** 2 @ d))
    svc = SVC(C=C, kernel="precomputed", tol=1e-6).fit(K, y)
    a = np.zeros(len(y))
    a[svc.support_] = svc.dual_coef_[0]
    signs = np.where(y == svc.classes_[1], 1.0, -1.0)
    losses = np.maximum(1.0 - signs * (K @ a + svc.intercept_), 0.0)
    return 0.5 * a @ K @ a + C * losses.sum() + strength * (d**2).sum()


SCALES = {"small": 1e-3, "large": 1e3, "mixed": np.array([1e-3, 1e3])}


@pytest.mark.parametrize("scale", SCALES)
def test_a_fit_that_has_converged_is_stationary_in_any_units_of_the_features(scale, rng):
    """No parameter alone, near its value or anywhere if it is zero, lowers T by more than a share."""
    X = rng.normal(size=(50, 2))
    y = X[:, 0] + np.sin(2.0 * X[:, 1]) > 0
    X, C = X * SCALES[scale], 1e3
    clf = kw.GMKLClassifier(regularizer="l2", C=C, tol=1e-4).fit(X, y)
    assert clf.stationarity_ <= 1e-4
    assert clf.objective_ == pytest.approx(value_of(X, y, clf.weights_, C, 1.0), rel=1e-2)
    for k in range(2):
        near = clf.weights_[k] * np.array([0.0, 0.5, 0.8, 1.25, 2.0])
        for value in near if clf.weights_[k] > 0 else np.geomspace(1e-10, 1e8, 19):
            d = clf.weights_.copy()
            d[k] = value
            assert value_of(X, y, d, C, 1.0) >= 0.98 * clf.objective_
