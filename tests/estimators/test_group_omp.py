"""Greedy estimators: their path, predictions, weights, held-out samples, errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import cross_val_score

import kernelweave as kw
from kernelweave.kernels import RBF, Linear, Precomputed, per_feature
from kernelweave.losses import Huber

KERNELS = {
    **{f"linear {j}": Linear(columns=[j]) for j in range(4)},
    **{f"rbf {j}": RBF(gamma=1.0, columns=[j]) for j in range(4)},
    "rbf": RBF(gamma=0.3),
}


def regressor(**parameters):
    return kw.GroupOMPRegressor(KERNELS, **{"tol": 0.0, "n_kernels": 4, **parameters})


def classifier(**parameters):
    return kw.GroupOMPClassifier(KERNELS, **{"tol": 0.0, "n_kernels": 4, **parameters})


# -- the model ------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", ["variance", "spherical", "trace", "center", None])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_predictions_are_those_of_kernel_ridge_on_the_kernels_selected(regression, normalize, fit_intercept):
    """The refit of the sum of the selected, normalised kernels, evaluated on new data."""
    reg = regressor(normalize=normalize, fit_intercept=fit_intercept).fit(regression.X, regression.y)
    one = kw.MKLRegressor(
        [KERNELS[reg.kernel_names_[m]] for m in reg.selected_],
        regularizer="uniform",
        C=1.0 / (reg.alpha * len(regression.X)),
        normalize=normalize,
        fit_intercept=fit_intercept,
        tol=1e-10,
    ).fit(regression.X, regression.y)
    np.testing.assert_allclose(reg.predict(regression.X_new), one.predict(regression.X_new), atol=1e-7)
    np.testing.assert_allclose(reg.norms_[reg.selected_], one.norms_, rtol=1e-6)
    assert reg.objective_ == pytest.approx(2 * reg.alpha * one.objective_, rel=1e-7)


def test_one_kernel_is_kernel_ridge(regression):
    reg = kw.GroupOMPRegressor(RBF(gamma=0.5), alpha=0.02, normalize=None, fit_intercept=False)
    ridge = KernelRidge(alpha=0.02 * 60, kernel="rbf", gamma=0.5)
    expected = ridge.fit(regression.X, regression.y).predict(regression.X_new)
    np.testing.assert_allclose(reg.fit(regression.X, regression.y).predict(regression.X_new), expected)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_other_losses_are_machines_on_the_kernels_selected(binary, loss):
    clf = classifier(loss=loss, n_kernels=3).fit(binary.X, binary.y)
    one = kw.MKLClassifier(
        [KERNELS[clf.kernel_names_[m]] for m in clf.selected_],
        loss=loss,
        regularizer="uniform",
        C=1.0 / (clf.alpha * len(binary.X)),
        tol=1e-8,
    ).fit(binary.X, binary.y)
    values = clf.decision_function(binary.X_new)
    np.testing.assert_allclose(values, one.decision_function(binary.X_new), atol=2e-3)


@pytest.mark.parametrize("loss", ["eps_insensitive", Huber(delta=0.5)])
def test_other_regression_losses(regression, loss):
    reg = regressor(loss=loss).fit(regression.X, regression.y)
    assert reg.score(regression.X_new, regression.y_new) > 0.5
    assert (np.diff(reg.path_.objective) <= 1e-6).all()


# -- the path -------------------------------------------------------------------------------------


def test_the_path_holds_the_models_of_all_sizes(regression):
    reg = regressor(n_kernels=5).fit(regression.X, regression.y)
    stages = list(reg.staged_predict(regression.X_new))
    assert len(stages) == len(reg.path_) == 5
    for k in range(1, 6):
        short = regressor(n_kernels=k).fit(regression.X, regression.y)
        assert short.selected_.tolist() == list(reg.path_.sets[k - 1]) == reg.path_.order[:k]
        np.testing.assert_allclose(
            reg.predict(regression.X_new, n_kernels=k), short.predict(regression.X_new)
        )
        np.testing.assert_allclose(stages[k - 1], short.predict(regression.X_new))
        np.testing.assert_allclose(reg.path_.dual_coef[k - 1][:, 0], short.dual_coef_)
        assert reg.path_.objective[k - 1] == pytest.approx(short.objective_)
    np.testing.assert_allclose(stages[-1], reg.predict(regression.X_new))


def test_fitted_attributes(regression):
    reg = regressor().fit(regression.X, regression.y)
    assert reg.weights_.tolist() == [float(m in reg.selected_) for m in range(9)]
    assert ((reg.norms_ > 0) == (reg.weights_ > 0)).all()
    assert (reg.n_iter_, reg.gram_, reg.path_.stopped) == (4, "factors", "n_kernels")
    assert [len(values) for values in reg.history_.values()] == [4] * 5
    np.testing.assert_array_equal(reg.path_.weights().sum(axis=1), [1, 2, 3, 4])
    error = np.mean((regression.y - reg.predict(regression.X)) ** 2)
    assert reg.path_.train_error[-1] == pytest.approx(error)
    assert reg.objective_ == pytest.approx(error + reg.alpha * (reg.norms_**2).sum())


def test_the_path_reads_well(regression):
    pytest.importorskip("pandas")
    reg = regressor(validation_fraction=0.3, random_state=0).fit(regression.X, regression.y)
    frame = reg.path_.frame()
    assert list(frame.columns) == ["kernel", "gain", "objective", "train_error", "validation_error"]
    assert frame.index.tolist() == [1, 2, 3, 4]
    assert "GreedyPath(4 of 9 kernels" in repr(reg.path_)
    assert frame["kernel"].iloc[0] in repr(reg.path_)
    assert reg.weights_frame()["weight"].sum() == reg.path_.n_selected
    assert "Kernel weights" in reg._repr_html_()


def test_multi_output_regression_shares_the_kernels(regression):
    Y = np.column_stack([regression.y, regression.X[:, 2] ** 2, -regression.y])
    reg = regressor().fit(regression.X, Y)
    assert reg.predict(regression.X_new).shape == (30, 3)
    assert reg.dual_coef_.shape == (3, 60)
    np.testing.assert_allclose(reg.predict(regression.X_new)[:, 0], -reg.predict(regression.X_new)[:, 2])
    assert {"rbf 2", "linear 0"} & {reg.kernel_names_[m] for m in reg.selected_}


def test_multiclass_is_one_joint_problem(four):
    """The order of selection is that of regression on -1 / +1 indicators of all classes."""
    kernels = per_feature(RBF())
    clf = kw.GroupOMPClassifier(kernels, tol=0.0).fit(four.X, four.y)
    Y = np.where(four.y[:, None] == clf.classes_, 1.0, -1.0)
    reg = kw.GroupOMPRegressor(kernels, tol=0.0).fit(four.X, Y)
    assert clf.selected_.tolist() == reg.selected_.tolist()
    np.testing.assert_allclose(clf.decision_function(four.X_new), reg.predict(four.X_new))
    np.testing.assert_allclose(clf.path_.gains, reg.path_.gains)
    assert clf.score(four.X_new, four.y_new) > 0.6


def test_no_kernel_worth_its_gain_leaves_the_intercept(regression):
    reg = regressor(tol=1e9).fit(regression.X, regression.y)
    assert (len(reg.path_), reg.selected_.size, reg.path_.stopped) == (0, 0, "tol")
    np.testing.assert_allclose(reg.predict(regression.X_new), regression.y.mean())
    assert list(reg.staged_predict(regression.X_new)) == []
    clf = classifier(tol=1e9).fit(regression.X, regression.y > 1.0)
    assert not clf.predict(regression.X_new).any()
    assert clf.predict_proba(regression.X_new).shape == (30, 2)


# -- weights, containers, sampling ----------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "hinge"])
@pytest.mark.parametrize("normalize", ["variance", "spherical", "center"])
def test_a_weight_of_two_is_a_sample_given_twice(binary, loss, normalize):
    weight = np.where(np.arange(60) % 4 == 0, 2, 1)
    weight[7] = 0
    rows = np.repeat(np.arange(60), weight)
    first = classifier(loss=loss, normalize=normalize).fit(binary.X, binary.y, sample_weight=weight)
    second = classifier(loss=loss, normalize=normalize).fit(binary.X[rows], binary.y[rows])
    assert first.selected_.tolist() == second.selected_.tolist()
    tolerance = 1e-8 if loss == "squared" else 1e-2
    values = first.decision_function(binary.X_new)
    np.testing.assert_allclose(values, second.decision_function(binary.X_new), atol=tolerance)
    proba = first.predict_proba(binary.X_new)
    np.testing.assert_allclose(proba, second.predict_proba(binary.X_new), atol=tolerance)
    np.testing.assert_allclose(first.path_.objective, second.path_.objective, rtol=1e-5)
    assert first.dual_coef_[7] == 0.0


def test_class_weights_are_sample_weights(binary):
    factors = {0: 3.0, 1: 1.0}
    first = classifier(class_weight=factors).fit(binary.X, binary.y)
    second = classifier().fit(binary.X, binary.y, sample_weight=np.where(binary.y == 0, 3.0, 1.0))
    np.testing.assert_allclose(first.decision_function(binary.X_new), second.decision_function(binary.X_new))


@pytest.mark.parametrize("normalize", ["variance", "trace", "dimension", "center", None])
def test_precomputed_kernels_give_the_same_model(binary, grams, normalize):
    train, new = grams
    features = kw.GroupOMPClassifier([Linear(), RBF(gamma=0.3)], tol=0.0, normalize=normalize)
    features.fit(binary.X, binary.y)
    expected = features.decision_function(binary.X_new)
    for stack, test in ((train, new), (kw.KernelStack(list(np.moveaxis(train, 2, 0))), new)):
        clf = kw.GroupOMPClassifier("precomputed", tol=0.0, normalize=normalize).fit(stack, binary.y)
        assert clf.selected_.tolist() == features.selected_.tolist()
        np.testing.assert_allclose(clf.decision_function(test), expected, atol=1e-9)
    index = kw.GroupOMPClassifier(
        [Precomputed(train[:, :, m]) for m in range(2)], tol=0.0, normalize=normalize
    )
    index.fit(np.arange(60)[:, None], binary.y)
    np.testing.assert_allclose(index.path_.objective, features.path_.objective)


def test_precomputed_stacks_survive_cross_validation(binary):
    stack = np.dstack([linear_kernel(binary.X), rbf_kernel(binary.X)])
    first = cross_val_score(kw.GroupOMPClassifier("precomputed"), stack, binary.y, cv=3)
    second = cross_val_score(kw.GroupOMPClassifier([Linear(), RBF(gamma=0.25)]), binary.X, binary.y, cv=3)
    np.testing.assert_allclose(first, second)


def test_data_frames_by_column_name(regression):
    pd = pytest.importorskip("pandas")
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(regression.X, columns=names).assign(text="x")
    reg = kw.GroupOMPRegressor({name: RBF(columns=[name]) for name in names}, n_kernels=2).fit(
        frame, regression.y
    )
    new = pd.DataFrame(regression.X_new, columns=names).assign(text="y")
    plain = kw.GroupOMPRegressor([RBF(columns=[j]) for j in range(4)], n_kernels=2)
    plain.fit(regression.X, regression.y)
    assert set(reg.feature_names_in_) == {*names, "text"}
    np.testing.assert_allclose(reg.predict(new), plain.predict(regression.X_new))


def test_less_memory_gives_the_same_model(regression):
    whole = regressor().fit(regression.X, regression.y)
    part = regressor(memory_limit=8 * 60 * 60 * 6).fit(regression.X, regression.y)
    assert (whole.gram_, part.gram_) == ("factors", "recomputed")
    np.testing.assert_allclose(part.predict(regression.X_new), whole.predict(regression.X_new))
    with pytest.raises(MemoryError, match="memory_limit"):
        regressor(memory_limit=10_000).fit(regression.X, regression.y)


def test_a_sampled_dictionary_depends_on_the_seed_alone(regression):
    paths = [
        regressor(dictionary_sample=0.3, random_state=seed).fit(regression.X, regression.y).path_.order
        for seed in (0, 0, 3)
    ]
    assert paths[0] == paths[1] != paths[2]


def test_pickling_and_cloning(binary):
    clf = classifier(loss="hinge").fit(binary.X, binary.y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(binary.X_new), clf.predict_proba(binary.X_new))
    assert repr(clone(clf).get_params()) == repr(clf.get_params())
    assert len(clf.support_) < 60


# -- held-out samples -----------------------------------------------------------------------------


def test_a_validation_set_chooses_the_number_of_kernels(regression):
    held = (regression.X_new, regression.y_new)
    reg = regressor(n_kernels=8, alpha=1e-4).fit(regression.X, regression.y, validation_set=held)
    plain = regressor(n_kernels=8, alpha=1e-4).fit(regression.X, regression.y)
    errors = [np.mean((regression.y_new - part) ** 2) for part in plain.staged_predict(regression.X_new)]
    np.testing.assert_allclose(reg.path_.validation_error, errors)
    assert reg.path_.n_selected == len(reg.selected_) == int(np.argmin(errors)) + 1
    np.testing.assert_allclose(
        reg.predict(regression.X_new), plain.predict(regression.X_new, n_kernels=reg.path_.n_selected)
    )


def test_a_validation_set_of_classes(flowers):
    held = (flowers.X_new, flowers.y_new)
    clf = classifier().fit(flowers.X, flowers.y, validation_set=held)
    errors = [np.mean(flowers.y_new != part) for part in clf.staged_predict(flowers.X_new)]
    np.testing.assert_allclose(clf.path_.validation_error, errors)


def test_a_share_of_the_samples_is_held_out(flowers):
    clf = classifier(validation_fraction=0.2, random_state=0).fit(flowers.X, flowers.y)
    held = np.flatnonzero(~clf.dual_coef_.any(axis=0))
    assert len(held) == 15
    assert np.unique(flowers.y[held], return_counts=True)[1].tolist() == [5, 5, 5]
    rest = np.delete(np.arange(75), held)
    same = classifier().fit(
        flowers.X[rest], flowers.y[rest], validation_set=(flowers.X[held], flowers.y[held])
    )
    np.testing.assert_allclose(clf.path_.validation_error, same.path_.validation_error)
    np.testing.assert_allclose(clf.decision_function(flowers.X_new), same.decision_function(flowers.X_new))


def test_held_out_samples_of_precomputed_kernels(binary, grams):
    train, new = grams
    precomputed = kw.GroupOMPClassifier("precomputed", tol=0.0, validation_fraction=0.3, random_state=1)
    features = kw.GroupOMPClassifier(
        [Linear(), RBF(gamma=0.3)], tol=0.0, validation_fraction=0.3, random_state=1
    )
    precomputed.fit(train, binary.y)
    features.fit(binary.X, binary.y)
    np.testing.assert_allclose(precomputed.path_.validation_error, features.path_.validation_error)
    np.testing.assert_allclose(
        precomputed.decision_function(new), features.decision_function(binary.X_new), atol=1e-9
    )
    stacked = kw.GroupOMPClassifier("precomputed", tol=0.0)
    stacked.fit(train, binary.y, validation_set=(new, binary.y_new))
    assert stacked.path_.validation_error.shape == (2,)


# -- probabilities --------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "hinge", "logistic"])
@pytest.mark.parametrize("kind", ["binary", "four"])
def test_probabilities_agree_with_predictions(request, loss, kind):
    data = request.getfixturevalue(kind)
    clf = kw.GroupOMPClassifier(per_feature(RBF()), loss=loss, n_kernels=2).fit(data.X, data.y)
    proba = clf.predict_proba(data.X_new)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(clf.classes_[proba.argmax(axis=1)], clf.predict(data.X_new))
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(data.X_new)), proba)


# -- certificate ----------------------------------------------------------------------------------


def test_the_gap_to_the_best_subset(regression):
    reg = regressor(n_kernels=3).fit(regression.X, regression.y)
    result = reg.best_subset(regression.X, regression.y)
    assert result.exact
    assert result.start == tuple(reg.selected_)
    assert result.start_objective == pytest.approx(reg.objective_)
    assert 0.0 <= result.gap < 1.0
    assert result.objective <= reg.objective_ * (1 + 1e-12)
    smaller = reg.best_subset(regression.X, regression.y, n_kernels=2)
    assert smaller.start_objective == pytest.approx(reg.path_.objective[1])
    back = regressor(n_kernels=3, backward=True).fit(regression.X, regression.y)
    assert result.objective <= back.objective_ * (1 + 1e-12)


# -- progress and errors --------------------------------------------------------------------------


def test_callbacks_see_every_kernel(regression):
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    watched = regressor().set_callbacks(callback.ProgressBar()).fit(regression.X, regression.y)
    alone = regressor().fit(regression.X, regression.y)
    np.testing.assert_array_equal(watched.dual_coef_, alone.dual_coef_)


def test_a_ridge_below_rounding_is_refused(regression):
    with pytest.raises(ValueError, match="alpha is too small"):
        kw.GroupOMPRegressor([Linear(columns=[0, 0]), RBF()], alpha=1e-30).fit(regression.X, regression.y)
    with pytest.raises(ValueError, match="alpha is too small"):
        kw.GroupOMPRegressor([RBF(gamma=1e-6)], alpha=1e-30).fit(regression.X, regression.y)


def test_progress_lines(regression, capsys):
    regressor(verbose=1).fit(regression.X, regression.y)
    assert "path, 4 steps: 4 kernels, gain" in capsys.readouterr().out
    regressor(verbose=2).fit(regression.X, regression.y)
    assert capsys.readouterr().out.count("path, step") == 4


BAD = [
    ({"n_kernels": 0}, "n_kernels=0 must be a positive integer"),
    ({"n_kernels": 2.0}, "n_kernels=2.0 must be a positive integer"),
    ({"alpha": 0.0}, "alpha=0.0 must be a positive number"),
    ({"alpha": -1.0}, "alpha=-1.0 must be a positive number"),
    ({"alpha": np.inf}, "alpha=inf must be a positive number"),
    ({"tol": -1e-9}, "tol=-1e-09 must be a number that is not negative"),
    ({"tol": None}, "tol=None must be a number"),
    ({"validation_fraction": 0.0}, "validation_fraction=0.0 must be a number between 0 and 1"),
    ({"validation_fraction": 1.0}, "validation_fraction=1.0 must be a number between 0 and 1"),
    ({"validation_fraction": True}, "validation_fraction=True must be a number"),
    ({"dictionary_sample": 0}, "dictionary_sample=0 must be a number of kernels"),
    ({"dictionary_sample": 1.5}, "dictionary_sample=1.5 must be a number of kernels"),
    ({"dictionary_sample": "all"}, "dictionary_sample='all' must be a number of kernels"),
    ({"dictionary_sample": 10}, "dictionary_sample=10 exceeds the 9 kernels given"),
    ({"normalize": "scale"}, "normalize='scale'"),
    ({"memory_limit": "much"}, "memory_limit='much'"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD, ids=lambda part: str(part)[:30])
@pytest.mark.parametrize("make", [regressor, classifier])
def test_bad_parameters_are_refused(binary, make, parameters, message):
    estimator = make(**parameters)
    with pytest.raises(ValueError, match=message):
        estimator.fit(binary.X, binary.y)
    assert not hasattr(estimator, "path_")


def test_losses_of_another_task_are_refused(binary):
    with pytest.raises(ValueError, match="loss='hinge' is not for GroupOMPRegressor: use one of"):
        regressor(loss="hinge").fit(binary.X, binary.y)
    with pytest.raises(ValueError, match="loss='one_class' is not for GroupOMPClassifier"):
        classifier(loss="one_class").fit(binary.X, binary.y)
    with pytest.raises(ValueError, match="loss='cubic'"):
        classifier(loss="cubic").fit(binary.X, binary.y)


def test_both_ways_to_validate_are_refused(binary):
    held = (binary.X_new, binary.y_new)
    with pytest.raises(ValueError, match="validation_set and validation_fraction are both given"):
        classifier(validation_fraction=0.2).fit(binary.X, binary.y, validation_set=held)


@pytest.mark.parametrize("held", ["X", (1, 2, 3), [np.zeros((2, 4))]])
def test_a_validation_set_must_be_a_pair(binary, held):
    with pytest.raises(ValueError, match="validation_set must be a pair"):
        classifier().fit(binary.X, binary.y, validation_set=held)


def test_a_validation_set_must_match(binary):
    with pytest.raises(ValueError, match="X_val has 30 samples, y_val has 29"):
        classifier().fit(binary.X, binary.y, validation_set=(binary.X_new, binary.y_new[1:]))
    with pytest.raises(ValueError, match="3 features"):
        classifier().fit(binary.X, binary.y, validation_set=(binary.X_new[:, :3], binary.y_new))


@pytest.mark.parametrize("size", [0, 5, 1.5, "all"])
def test_sizes_off_the_path_are_refused(regression, size):
    reg = regressor().fit(regression.X, regression.y)
    with pytest.raises(ValueError, match="the path has models of 1 to 4 kernels"):
        reg.predict(regression.X_new, n_kernels=size)
    with pytest.raises(ValueError, match="the path has models of 1 to 4 kernels"):
        reg.best_subset(regression.X, regression.y, n_kernels=size)


def test_one_class_is_refused(binary):
    with pytest.raises(ValueError, match="y has 1 class"):
        classifier().fit(binary.X, np.zeros(60))


def test_class_weights_must_be_positive(binary):
    with pytest.raises(ValueError, match="class_weight="):
        classifier(class_weight={0: 0.0, 1: 1.0}).fit(binary.X, binary.y)


def test_predicting_before_fitting(binary):
    for name in ("predict", "decision_function", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(classifier(), name)(binary.X)
    with pytest.raises(NotFittedError):
        list(regressor().staged_predict(binary.X))


# -- more kernels than there are ------------------------------------------------------------------


@pytest.mark.parametrize("make", [regressor, classifier])
def test_more_kernels_than_there_are_means_all_and_is_said(make, binary):
    with pytest.warns(UserWarning, match="n_kernels=12 is more than the 9 kernels given"):
        more = make(n_kernels=12).fit(binary.X, binary.y)
    every = make(n_kernels=9).fit(binary.X, binary.y)
    np.testing.assert_array_equal(more.selected_, every.selected_)
    assert sorted(more.selected_) == list(range(9))
    np.testing.assert_array_equal(more.predict(binary.X_new), every.predict(binary.X_new))
    assert more.best_subset(binary.X, binary.y, n_kernels=1).exact  # and it is said only once


@pytest.mark.parametrize("search", [kw.GroupOMPRegressorCV, kw.GroupOMPClassifierCV])
def test_a_search_over_more_kernels_than_there_are(search, binary):
    options = {"alphas": [0.01], "cv": 2, "tol": 0.0}
    with pytest.warns(UserWarning, match="n_kernels=12 is more than the 9 kernels given") as told:
        more = search(KERNELS, n_kernels=12, **options).fit(binary.X, binary.y)
    assert len(told) == 1
    every = search(KERNELS, n_kernels=9, **options).fit(binary.X, binary.y)
    np.testing.assert_array_equal(more.cv_results_["mean_test_score"], every.cv_results_["mean_test_score"])
    assert more.best_params_ == every.best_params_


# -- units of the targets -------------------------------------------------------------------------


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("factor", [1e-9, 1e-3, 1e3, 1e9])
def test_units_of_the_target_do_not_matter(regression, factor, backward):
    """The same kernels, predictions times the factor, gains and objective times its square."""
    options = {"n_kernels": None, "tol": 2e-3, "backward": backward}
    reg = regressor(**options).fit(regression.X, regression.y)
    scaled = regressor(**options).fit(regression.X, factor * regression.y)
    assert reg.path_.stopped == scaled.path_.stopped == "tol"
    np.testing.assert_array_equal(scaled.selected_, reg.selected_)
    expected = factor * reg.predict(regression.X_new)
    np.testing.assert_allclose(scaled.predict(regression.X_new), expected, rtol=1e-7, atol=1e-9 * factor)
    np.testing.assert_allclose(scaled.path_.gains, factor**2 * reg.path_.gains, rtol=1e-6)
    np.testing.assert_allclose(scaled.history_["share"], reg.history_["share"], rtol=1e-6)
    assert scaled.objective_ == pytest.approx(factor**2 * reg.objective_, rel=1e-9)


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_units_of_the_target_and_of_the_loss_do_not_matter(regression, factor):
    options = {"n_kernels": None, "tol": 2e-3}
    reg = regressor(loss=Huber(delta=0.5), **options).fit(regression.X, regression.y)
    scaled = regressor(loss=Huber(delta=0.5 * factor), **options).fit(regression.X, factor * regression.y)
    np.testing.assert_array_equal(scaled.selected_, reg.selected_)
    expected = factor * reg.predict(regression.X_new)
    np.testing.assert_allclose(scaled.predict(regression.X_new), expected, rtol=1e-4, atol=1e-4 * factor)


@pytest.mark.parametrize("factor", [1e-9, 1.0, 1e9])
def test_the_scores_of_a_search_have_no_units(regression, factor):
    options = {"alphas": [0.1, 0.001], "n_kernels": 3, "cv": 2}
    first = kw.GroupOMPRegressorCV(KERNELS, **options).fit(regression.X, regression.y)
    second = kw.GroupOMPRegressorCV(KERNELS, **options).fit(regression.X, factor * regression.y)
    np.testing.assert_allclose(
        second.cv_results_["mean_test_score"], first.cv_results_["mean_test_score"], atol=1e-9
    )
    assert second.best_params_ == first.best_params_


@pytest.mark.parametrize("level", [0.0, 0.1, -3e5, 7e-12])
def test_targets_that_are_constant_but_for_rounding_need_no_kernel(regression, level):
    reg = regressor(n_kernels=None, tol=0.0).fit(regression.X, np.full(60, level))
    assert len(reg.selected_) == 0
    np.testing.assert_allclose(reg.predict(regression.X_new), level, rtol=1e-12)
    assert reg.stationarity_ <= 1e-9
