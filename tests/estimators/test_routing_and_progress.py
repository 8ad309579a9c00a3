"""Metadata routing, scikit-learn's callbacks, printed progress."""

from __future__ import annotations

import re

import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, UnsetMetadataPassedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, LeaveOneGroupOut, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.kernels import RBF, Linear

KERNELS = [Linear(), RBF(gamma=0.3)]


# -- metadata routing ---------------------------------------------------------------------------


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def half():
    """Weights that leave every other sample out."""
    return (np.arange(60) % 2).astype(float)


@pytest.mark.usefixtures("routing")
def test_sample_weight_goes_through_a_pipeline(binary, half):
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    asks = kw.MKLClassifier(KERNELS).set_fit_request(sample_weight=True)
    model = make_pipeline(scaler, asks).fit(binary.X, binary.y, sample_weight=half)
    assert not model[-1].dual_coef_[half == 0].any()
    declines = kw.MKLClassifier(KERNELS).set_fit_request(sample_weight=False)
    plain = make_pipeline(scaler, declines).fit(binary.X, binary.y)
    assert plain[-1].dual_coef_[half == 0].any()


@pytest.mark.usefixtures("routing")
def test_sample_weight_goes_through_a_search(binary, half):
    asks = kw.MKLClassifier(KERNELS).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), asks)
    search = GridSearchCV(pipeline, {"mklclassifier__C": [0.1, 1.0]}, cv=3)
    search.fit(binary.X, binary.y, sample_weight=half)
    assert not search.best_estimator_[-1].dual_coef_[half == 0].any()
    kept = half > 0
    direct = make_pipeline(
        StandardScaler(), kw.MKLClassifier(KERNELS, **{"C": search.best_params_["mklclassifier__C"]})
    )
    direct.fit(binary.X[kept], binary.y[kept])
    np.testing.assert_allclose(
        search.decision_function(binary.X_new), direct.decision_function(binary.X_new), atol=1e-8
    )


@pytest.mark.usefixtures("routing")
def test_weights_of_folds_are_sliced(regression, half):
    asks = kw.MKLRegressor(KERNELS).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
    fits = cross_validate(
        asks, regression.X, regression.y, cv=3, params={"sample_weight": half}, return_estimator=True
    )
    for model in fits["estimator"]:
        assert model.dual_coef_.shape == (40,)
        assert (model.dual_coef_ == 0).sum() == 20


@pytest.mark.usefixtures("routing")
def test_an_unset_request_is_an_error(binary, half):
    search = GridSearchCV(kw.MKLClassifier(KERNELS), {"C": [1.0]}, cv=2)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        search.fit(binary.X, binary.y, sample_weight=half)


# -- groups, weights and scorers of the cross-validated estimators ---------------------------------

SEARCHES = [
    kw.MKLClassifierCV(KERNELS, Cs=[0.1, 1.0]),
    kw.MKLRegressorCV(KERNELS, Cs=[0.1, 1.0]),
    kw.GroupOMPClassifierCV(KERNELS, alphas=[0.01, 0.1]),
    kw.GroupOMPRegressorCV(KERNELS, alphas=[0.01, 0.1]),
]
each_search = pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)


@pytest.fixture
def groups():
    """Ten groups of unequal size, not in order."""
    return np.random.default_rng(5).integers(10, size=60)


def targets_of(search, binary, regression):
    return binary.y if is_classifier(search) else regression.y


@each_search
@pytest.mark.parametrize("routed", [False, True])
def test_groups_reach_the_splitter(binary, regression, groups, search, routed):
    y, X = targets_of(search, binary, regression), binary.X
    weight = np.where(np.arange(60) % 6 == 0, 0.0, 1.0 + np.arange(60) % 3)
    asks = clone(search).set_params(cv=GroupKFold(3))
    with sklearn.config_context(enable_metadata_routing=routed):
        if routed:
            asks.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        found = asks.fit(X, y, sample_weight=weight, groups=groups)
    splits = list(GroupKFold(3).split(X, y, groups))
    expected = clone(search).set_params(cv=splits).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(
        found.cv_results_["split_test_scores"], expected.cv_results_["split_test_scores"]
    )
    plain = clone(search).set_params(cv=3).fit(X, y, sample_weight=weight)
    assert (found.cv_results_["split_test_scores"] != plain.cv_results_["split_test_scores"]).any()


@each_search
@pytest.mark.parametrize("routed", [False, True])
@pytest.mark.parametrize("cv", [GroupKFold(3), LeaveOneGroupOut()], ids=str)
def test_a_splitter_by_groups_says_that_it_needs_them(binary, regression, search, cv, routed):
    y = targets_of(search, binary, regression)
    with (
        sklearn.config_context(enable_metadata_routing=routed),
        pytest.raises(ValueError, match=r"splits by groups.*fit\(X, y, groups=\.\.\.\)"),
    ):
        clone(search).set_params(cv=cv).fit(binary.X, y)


@each_search
def test_groups_of_another_length_and_unknown_arguments(binary, regression, groups, search):
    y = targets_of(search, binary, regression)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clone(search).set_params(cv=GroupKFold(3)).fit(binary.X, y, groups=groups[:50])
    with pytest.raises(ValueError, match=r"Extra parameters passed are: \{'group'\}"):
        clone(search).fit(binary.X, y, group=groups)


@pytest.mark.usefixtures("routing")
@each_search
def test_groups_are_routed_through_an_outer_cross_validation(binary, regression, groups, search):
    """The inner splitter requests groups, the outer one does too, and both get theirs."""
    y = targets_of(search, binary, regression)
    inner = clone(search).set_params(cv=GroupKFold(3))
    options = {"cv": GroupKFold(2), "params": {"groups": groups}, "return_estimator": True}
    fits = cross_validate(inner, binary.X, y, **options)["estimator"]
    for fit, (train, _) in zip(fits, GroupKFold(2).split(binary.X, y, groups), strict=True):
        alone = clone(inner).fit(binary.X[train], y[train], groups=groups[train])
        np.testing.assert_array_equal(
            fit.cv_results_["split_test_scores"], alone.cv_results_["split_test_scores"]
        )


@pytest.mark.usefixtures("routing")
def test_a_scorer_gets_what_it_requests(binary):
    weight = 1.0 + np.arange(60) % 3
    search = kw.MKLClassifierCV(KERNELS, Cs=[0.1, 1.0], cv=3).set_fit_request(sample_weight=True)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        search.fit(binary.X, binary.y, sample_weight=weight)
    scores = {}
    for asked in (True, False):
        scorer = get_scorer("accuracy").set_score_request(sample_weight=asked)
        by_scorer = clone(search).set_params(scoring=scorer).fit(binary.X, binary.y, sample_weight=weight)
        own = clone(search).set_score_request(sample_weight=asked)
        own.fit(binary.X, binary.y, sample_weight=weight)
        scores[asked] = by_scorer.cv_results_["split_test_scores"]
        np.testing.assert_array_equal(scores[asked], own.cv_results_["split_test_scores"])
    assert (scores[True] != scores[False]).any()


# -- callbacks (scikit-learn 1.9) ---------------------------------------------------------------

callbacks = pytest.mark.skipif(
    not hasattr(kw.MKLClassifier, "set_callbacks"),
    reason=f"scikit-learn {sklearn.__version__} has no callbacks, they come with 1.9",
)


class Recorder:
    """Writes down every hook; asks to stop after `stop` machines."""

    def __init__(self, stop=None):
        self.stop, self.log = stop, []

    def setup(self, estimator, context):
        self.log.append(("setup", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.log.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.log.append(("end", context.task_name))
        return self.stop is not None and self.log.count(("end", "machine")) >= self.stop

    def teardown(self, estimator, context):
        self.log.append(("teardown", context.task_name))


@callbacks
def test_a_callback_sees_every_machine(binary):
    recorder = Recorder()
    model = kw.MKLClassifier(KERNELS, tol=1e-6).set_callbacks(recorder).fit(binary.X, binary.y)
    log = recorder.log
    assert log.count(("begin", "machine")) == log.count(("end", "machine")) == model.n_iter_
    assert log[0] == ("setup", "fit")
    assert log[-1] == ("teardown", "fit")
    assert [what for what, _ in log].count("begin") == [what for what, _ in log].count("end")


@callbacks
@pytest.mark.parametrize("scheme", ["ovr", "ovo", "shared"])
def test_a_callback_sees_every_model_by_name(flowers, scheme):
    recorder = Recorder()
    model = kw.MKLClassifier(KERNELS, multiclass=scheme).set_callbacks(recorder).fit(flowers.X, flowers.y)
    names = {task for _, task in recorder.log} - {"fit", "machine"}
    expected = {
        "ovr": {"setosa vs rest", "versicolor vs rest", "virginica vs rest"},
        "ovo": {"versicolor vs setosa", "virginica vs setosa", "virginica vs versicolor"},
        "shared": {"all classes"},
    }
    assert names == expected[scheme]
    assert recorder.log.count(("end", "machine")) == np.sum(model.n_iter_)


@callbacks
def test_regressors_and_detectors_call_back_too(regression):
    for model in (kw.MKLRegressor(KERNELS), kw.MKLOneClass(KERNELS)):
        recorder = Recorder()
        model.set_callbacks(recorder).fit(regression.X, regression.y)
        assert recorder.log.count(("end", "machine")) == model.n_iter_


@callbacks
def test_callbacks_change_nothing(binary):
    watched = kw.MKLClassifier(KERNELS).set_callbacks(Recorder()).fit(binary.X, binary.y)
    alone = kw.MKLClassifier(KERNELS).fit(binary.X, binary.y)
    np.testing.assert_array_equal(watched.dual_coef_, alone.dual_coef_)


@callbacks
def test_a_callback_may_stop_the_fit(binary):
    model = kw.MKLClassifier(KERNELS, tol=1e-9).set_callbacks(Recorder(stop=2))
    with pytest.warns(ConvergenceWarning, match="gap"):
        model.fit(binary.X, binary.y)
    assert model.n_iter_ == 2
    assert 1e-9 < model.dual_gap_ < 1.0
    assert model.predict(binary.X_new).shape == (30,)


@callbacks
def test_callbacks_in_threads(four):
    recorder = Recorder()
    model = kw.MKLClassifier(KERNELS, n_jobs=2).set_callbacks(recorder).fit(four.X, four.y)
    assert recorder.log.count(("end", "machine")) == model.n_iter_.sum()


@callbacks
def test_a_failed_fit_closes_its_callbacks(binary):
    recorder = Recorder()
    with pytest.raises(ValueError, match="regularizer"):
        kw.MKLClassifier(KERNELS, regularizer="none").set_callbacks(recorder).fit(binary.X, binary.y)
    setups = recorder.log.count(("setup", "fit"))
    assert recorder.log.count(("teardown", "fit")) == setups


@callbacks
def test_the_progress_bar_shows_the_models(flowers, capsys):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    kw.MKLClassifier(KERNELS).set_callbacks(ProgressBar()).fit(flowers.X, flowers.y)
    shown = capsys.readouterr().out
    assert "MKLClassifier" in shown
    assert "100%" in shown
    assert "virginica" in shown


# -- verbose ------------------------------------------------------------------------------------

LINE = re.compile(r"\[MKL\w+\] .+: objective \S+, relative gap \S+")


def test_silent_by_default(flowers, capsys):
    kw.MKLClassifier(KERNELS).fit(flowers.X, flowers.y)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_verbose_one_prints_a_line_a_model(flowers, capsys):
    model = kw.MKLClassifier(KERNELS, verbose=1).fit(flowers.X, flowers.y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(LINE.fullmatch(line) for line in lines)
    assert "virginica vs rest" in lines[2]
    assert f"{model.objective_[2]:.6g}" in lines[2]


def test_verbose_two_prints_a_line_a_machine(regression, capsys):
    model = kw.MKLRegressor(KERNELS, verbose=2).fit(regression.X, regression.y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    assert all(LINE.fullmatch(line) for line in lines)
