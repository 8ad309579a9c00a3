"""Estimators of censored times, ordered classes and quantiles."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import d2_pinball_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave._censored import survival_array
from kernelweave.estimators._survival import risk_shares
from kernelweave.kernels import RBF, Linear, per_feature
from kernelweave.losses import CensoredEpsInsensitive, Cox, OrdinalHinge, Pinball, SurvivalRanking
from kernelweave.metrics import concordance_harrell
from kernelweave.testing import check_mkl_estimator


def data(n=60, seed=0, ties=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    time = 4.0 * rng.exponential(size=n) * np.exp(-1.5 * X[:, 0])
    time = np.ceil(time) if ties else time
    y = np.empty(n, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = rng.random(n) < 0.7, time
    return X, y


KERNELS = [Linear(), RBF(gamma=0.3)]


@pytest.mark.parametrize("loss", [Cox(ties="efron"), SurvivalRanking()], ids=repr)
@pytest.mark.slow
def test_contract_of_other_losses(loss):
    X, y = data()
    check_mkl_estimator(kw.MKLSurvival(loss=loss), X[:40], y[:40], X[40:])


@pytest.mark.slow
def test_contracts_with_a_loss_of_their_own():
    check_mkl_estimator(kw.MKLQuantileRegressor(quantile=0.3), loss=Pinball(quantile=0.3))
    check_mkl_estimator(kw.MKLOrdinalClassifier(loss="ordinal_logistic"))


# -- how targets are given ----------------------------------------------------------------------


def test_every_form_of_targets_is_the_same_model():
    pd = pytest.importorskip("pandas")
    X, y = data(30)
    forms = {
        "tuple": (y["event"], y["time"]),
        "lists": (y["event"].tolist(), y["time"].tolist()),
        "frame": pd.DataFrame({"died": y["event"], "months": y["time"]}),
        "frame, time first": pd.DataFrame({"months": y["time"], "died": y["event"].astype(int)}),
        "columns": np.column_stack([y["event"], y["time"]]),
        "fields the other way round": y[["time", "event"]],
    }
    first = kw.MKLSurvival(KERNELS).fit(X, y)
    for name, form in forms.items():
        other = kw.MKLSurvival(KERNELS).fit(X, form)
        assert_array_equal(other.predict(X), first.predict(X), err_msg=name)
        assert other.score(X, form) == first.score(X, y), name


def as_frame(y, **columns):
    return pytest.importorskip("pandas").DataFrame(
        {**columns, "time": y["time"], "event": y["event"].astype(int)}
    )


@pytest.mark.parametrize(
    ("code", "holds"), [({0: 1, 1: 2}, "1 and 2"), ({0: "alive", 1: "dead"}, "'alive' and 'dead'")]
)
def test_events_in_another_code_are_named_with_their_column(code, holds):
    X, y = data(30)
    frame = as_frame(y)
    frame["event"] = frame["event"].map(code)
    for given in (
        frame,
        frame[["event", "time"]],
        as_frame(y, site=["a", "b"] * 15).assign(event=frame["event"]),
    ):
        with pytest.raises(
            ValueError, match=f"column 'event' of y holds {holds}: .* Put y\\['event'\\] == value"
        ):
            kw.MKLSurvival(KERNELS).fit(X, given)
    model = kw.MKLSurvival(KERNELS).fit(
        X, frame.assign(event=frame["event"] == code[1])
    )  # as the message says
    assert_array_equal(model.predict(X), kw.MKLSurvival(KERNELS).fit(X, y).predict(X))


def test_events_that_are_missing_are_located():
    X, y = data(30)
    for gap in (None, np.nan):
        events = y["event"].astype(object)
        events[[3, 7]] = gap
        with pytest.raises(
            ValueError, match=r"column 'event' of y, .* has no value in rows 4, 8: leave those"
        ):
            kw.MKLSurvival(KERNELS).fit(X, as_frame(y).assign(event=events))


def test_a_third_column_is_the_stratum_wherever_it_stands():
    X, y = data(30)
    sex = np.tile([0, 1], 15)  # holds 0 and 1 as the event does: names tell
    one = kw.MKLSurvival(KERNELS).fit(X, (y["event"], y["time"], sex))
    for order in (["sex", "time", "event"], ["time", "sex", "event"], ["event", "time", "sex"]):
        other = kw.MKLSurvival(KERNELS).fit(X, as_frame(y, sex=sex)[order])
        assert_array_equal(other.predict(X), one.predict(X))


def test_a_third_column_that_is_no_stratum_is_refused():
    X, y = data(30)
    frame = as_frame(y).assign(age=np.random.default_rng(0).uniform(40, 90, 30))
    for model in (kw.MKLSurvival(KERNELS), kw.MKLSurvivalCV(KERNELS, Cs=[1.0])):
        with pytest.raises(
            ValueError, match=r"column 'age' of y, .* 30 of its 30 values have one sample: pass y\[\["
        ):
            model.fit(X, frame)
    with pytest.raises(ValueError, match=r"y has 4 columns: pass y\[\['event', 'time'\]\]"):
        kw.MKLSurvival(KERNELS).fit(X, frame.assign(sex=1))
    pairs = frame.drop(columns="age").assign(
        stratum=[*range(16), *range(14)]
    )  # called so, it may be anything
    assert len(kw.MKLSurvival(KERNELS).fit(X, pairs).strata_) == 16
    assert len(kw.MKLSurvival(KERNELS).fit(X, pairs.rename(columns={"stratum": "nurse"})).strata_) == 16


def test_a_frame_and_views_are_joined_by_their_index():
    pd = pytest.importorskip("pandas")
    X, y = data(30)
    ids = [f"p{k}" for k in range(30)]
    views = {"a": pd.DataFrame(X[:, :2], index=ids), "b": pd.DataFrame(X[:, 2:], index=ids)}
    shuffled = np.random.default_rng(0).permutation(30)
    frame = pd.DataFrame({"event": y["event"], "time": y["time"]}, index=ids)
    one = kw.MKLSurvival(tol=1e-8).fit(views, frame)
    two = kw.MKLSurvival(tol=1e-8).fit(views, frame.iloc[shuffled])
    assert_allclose(two.weights_, one.weights_, atol=1e-4)
    assert one.score(views, frame) == pytest.approx(one.score(views, frame.iloc[shuffled]))
    table = pd.DataFrame(X, index=ids)  # one table is not put in order: nothing may go wrong unseen
    with pytest.raises(ValueError, match=r"the same IDs in different orders .*: pass y\.loc\[X\.index\]"):
        kw.MKLSurvival(KERNELS).fit(table, frame.iloc[shuffled])
    model = kw.MKLSurvival(KERNELS).fit(table, frame.iloc[shuffled].loc[table.index])
    assert_allclose(model.predict(table), kw.MKLSurvival(KERNELS).fit(X, y).predict(X))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.arange(4.0), "without events or without times"),
        (([True, True, False, True], [1.0, 2.0, -1.0, 3.0]), "negative times, such as -1"),
        (([True, True, False, True], [1.0, 2.0, np.nan, 3.0]), "NaN or infinite times in rows 2"),
        (([2, 1, 0, 1], [1.0, 2.0, 3.0, 3.0]), "y holds 2 where it says whether there was an event"),
        (([False] * 4, [1.0, 2.0, 3.0, 4.0]), "y has no event: all samples of positive weight are censored"),
        (([True] * 3, [1.0, 2.0, 3.0]), "inconsistent numbers of samples"),
        (([True] * 3, [1.0, 2.0, 3.0, 4.0]), "y has parts of 3 and 4 samples"),
        ((["dead"] * 4, [1.0, 2.0, 3.0, 4.0]), "y holds 'dead' where it says whether there was an event"),
        ((np.array([True, None], dtype=object)[[0, 1, 0, 0]], [1.0, 2.0, 3.0, 3.0]), "y holds None where"),
        (([True] * 4, np.arange(4).astype("m8[D]")), "dates or durations: pass numbers"),
    ],
)
def test_targets_that_cannot_be_are_refused(y, words):
    X = np.random.default_rng(0).normal(size=(4, 2))
    with pytest.raises(ValueError, match=words):
        kw.MKLSurvival(KERNELS).fit(X, y)


def test_one_sample_is_refused():
    with pytest.raises(ValueError, match=r"minimum of 2|two at least|1 sample"):
        kw.MKLSurvival([Linear()]).fit(np.ones((1, 2)), ([True], [1.0]))


def test_times_of_zero():
    X, y = data(20)
    y["time"][:2] = 0.0
    assert np.isfinite(kw.MKLSurvival(KERNELS).fit(X, y).predict(X)).all()
    with pytest.raises(ValueError, match="2 times of 0, which have no logarithm"):
        kw.MKLSurvival(KERNELS, loss="censored_eps_insensitive").fit(X, y)


@pytest.mark.filterwarnings("ignore:every kernel has weight 0")
@pytest.mark.parametrize("which", ["the last event alone", "equal times"])
def test_where_nothing_can_be_learned_the_risk_is_zero(which):
    """Nobody else is at risk, or everybody is at once."""
    X, y = data(20)
    alone = which == "the last event alone"
    y["time"], y["event"] = np.arange(20) if alone else 3.0, np.arange(20) == 19 if alone else True
    model = kw.MKLSurvival(KERNELS).fit(X, y)
    assert_allclose(model.predict(X), 0.0, atol=1e-12)
    hazard = 1.0  # one event of one at risk, or twenty of twenty
    assert model.predict_cumulative_hazard_function(X[:1])[0](1e9) == pytest.approx(hazard)


def test_columns_of_any_name_and_single_precision():
    pd = pytest.importorskip("pandas")
    X, y = data(20)
    model = kw.MKLSurvival(KERNELS).fit(X, y)
    columns = np.column_stack([y["event"], y["time"]])
    for names in ([0, 1], ["a", "a"], pd.MultiIndex.from_tuples([("s", "e"), ("s", "t")]), ["[d<?>]", "é\n"]):
        other = kw.MKLSurvival(KERNELS).fit(X, pd.DataFrame(columns, columns=names))
        assert_array_equal(other.predict(X), model.predict(X))
    flags = pd.DataFrame({"died": pd.array(y["event"], dtype="boolean"), "time": y["time"]})
    assert_array_equal(kw.MKLSurvival(KERNELS).fit(X, flags).predict(X), model.predict(X))
    single = kw.MKLSurvival(KERNELS).fit(X.astype(np.float32), (y["event"], y["time"].astype(np.float32)))
    assert_allclose(single.predict(X.astype(np.float32)), model.predict(X), atol=1e-2)


def test_folds_of_a_search_have_events():
    """Where there are enough; a few censored samples may be anywhere."""
    X, y = data(20)
    y["event"] = np.arange(20) > 0
    assert kw.MKLSurvivalCV(KERNELS, Cs=[0.1, 1.0], cv=3).fit(X, y).best_score_ > 0.5
    y["event"] = np.arange(20) < 2
    with pytest.raises(ValueError, match=r"cv=3 has folds without an event.*y has 2 events"):
        kw.MKLSurvivalCV(KERNELS, Cs=[0.1, 1.0], cv=3).fit(X, y)


def test_one_event_is_enough():
    X, y = data(20, ties=False)
    y["event"] = y["time"] == np.sort(y["time"])[3]
    assert kw.MKLSurvival(KERNELS).fit(X, y).score(X, y) > 0.9


# -- what is learned ----------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [Cox(), Cox(ties="efron"), SurvivalRanking()], ids=repr)
def test_one_linear_kernel_is_a_model_of_its_columns(loss):
    X, y = data(40)
    C, columns = 0.5, np.column_stack([y["time"], y["event"]]).astype(float)

    def objective(b):
        f, w = X @ b, np.ones(40)
        return C * loss.value(columns, f, w) + 0.5 * b @ b, C * X.T @ loss.gradient(columns, f, w) + b

    best = minimize(objective, np.zeros(3), jac=True, options={"gtol": 1e-9}).x
    model = kw.MKLSurvival([Linear()], loss=loss, C=C, normalize=None, regularizer="uniform", tol=1e-11)
    assert_allclose(model.fit(X, y).coef_, best, atol=1e-5)


def test_log_times_without_censoring_are_support_vector_regression():
    X, y = data(40, ties=False)
    y["event"] = True
    one = kw.MKLSurvival(KERNELS, loss=CensoredEpsInsensitive(0.2), tol=1e-8).fit(X, y)
    two = kw.MKLRegressor(KERNELS, loss=kw.losses.EpsInsensitive(0.2), tol=1e-8).fit(X, np.log(y["time"]))
    assert_allclose(one.predict(X), -two.predict(X), atol=1e-6)
    assert_allclose(one.predict_time(X), np.exp(two.predict(X)), rtol=1e-5)
    assert not hasattr(one, "predict_survival_function")
    assert one.score(X, y) > 0.7


@pytest.mark.slow
def test_the_gap_is_closed_for_every_loss_and_rule():
    X, y = data(40)
    for loss in ("cox", "survival_ranking", "censored_eps_insensitive"):
        for rule in ("lp", kw.LpNorm(p=1), "uniform", "elasticnet"):
            model = kw.MKLSurvival(KERNELS, loss=loss, regularizer=rule, tol=1e-6).fit(X, y)
            assert model.dual_gap_ <= 1e-6


# -- curves -------------------------------------------------------------------------------------


def breslow(y, f, weight, at):
    total = 0.0
    for i in np.flatnonzero(y["event"] & (y["time"] <= at)):
        total += weight[i] / (weight * np.exp(f))[y["time"] >= y["time"][i]].sum()
    return total


def test_curves_are_breslows():
    X, y = data(40)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=40)
    weight[3] = 0.0
    model = kw.MKLSurvival(KERNELS).fit(X, y, sample_weight=weight)
    f = model.predict(X)
    hazards, survivals = (
        ask(X[:3]) for ask in (model.predict_cumulative_hazard_function, model.predict_survival_function)
    )
    for at in (0.0, 1.0, 2.5, 10.0, 1e6):
        expected = breslow(y, f, weight, at) * np.exp(f[:3])
        assert_allclose([hazard(at) for hazard in hazards], expected, rtol=1e-10)
        assert_allclose([survival(at) for survival in survivals], np.exp(-expected), rtol=1e-10)
    array = model.predict_survival_function(X[:3], return_array=True)
    assert_array_equal(array, [survival(model.unique_times_) for survival in survivals])
    assert survivals[0].domain == (y["time"].min(), y["time"].max())


def test_strata_have_a_baseline_each():
    X, y = data(60)
    stratum = np.where(np.arange(60) % 2, "b", "a")
    model = kw.MKLSurvival(KERNELS, tol=1e-8).fit(X, (y["event"], y["time"], stratum))
    assert model.strata_.tolist() == ["a", "b"]
    for name in "ab":
        own = stratum == name
        curves = model.predict_cumulative_hazard_function(X[:1], strata=[name])
        f = model.predict(X)
        expected = breslow(y[own], f[own], np.ones(own.sum()), 5.0) * np.exp(f[0])
        assert curves[0](5.0) == pytest.approx(expected, rel=1e-10)
    with pytest.raises(ValueError, match="the fit had strata"):
        model.predict_survival_function(X[:1])
    with pytest.raises(ValueError, match="no stratum 'c'"):
        model.predict_survival_function(X[:1], strata=["c"])
    # times of one stratum may be in another unit
    y["time"][stratum == "b"] *= 1000.0
    moved = kw.MKLSurvival(KERNELS, tol=1e-8).fit(X, (y["event"], y["time"], stratum))
    assert_allclose(moved.predict(X), model.predict(X), atol=1e-5)


# -- with the rest ------------------------------------------------------------------------------


def test_low_rank_and_paths_and_copies():
    X, y = data(60)
    exact = kw.MKLSurvival(KERNELS, tol=1e-6).fit(X, y)
    low = kw.MKLSurvival(KERNELS, tol=1e-6, approximation="nystroem", rank=60, random_state=0).fit(X, y)
    assert np.corrcoef(exact.predict(X), low.predict(X))[0, 1] > 0.999
    path = kw.mkl_path(kw.MKLSurvival(KERNELS, tol=1e-6), X, y, values=[0.1, 1.0])
    assert path.objective[1] == pytest.approx(exact.objective_, rel=1e-6)
    again = pickle.loads(pickle.dumps(exact))
    curves = [m.predict_survival_function(X[:2], return_array=True) for m in (exact, again, low)]
    assert_array_equal(curves[0], curves[1])
    assert_allclose(curves[2], curves[0], atol=0.02)


def test_files_keep_the_baseline(tmp_path):
    X, y = data(30)
    model = kw.MKLSurvival(KERNELS).fit(X, (y["event"], y["time"], np.arange(30) % 2))
    kw.save_model(model, tmp_path / "model.kw")
    loaded = kw.load_model(tmp_path / "model.kw")
    curves = [m.predict_survival_function(X[:2], True, [0, 1]) for m in (model, loaded)]
    assert_array_equal(*curves)


def test_missing_views():
    pd = pytest.importorskip("pandas")
    X, y = data(40)
    ids = np.arange(40)
    views = {"a": pd.DataFrame(X[:, :2], index=ids), "b": pd.DataFrame(X[:, 2:], index=ids).iloc[5:]}
    frame = pd.DataFrame({"event": y["event"], "time": y["time"]}, index=ids)
    for missing in ("mask", "complete"):
        model = kw.MKLSurvival(missing=missing).fit(views, frame)
        assert model.score(views, frame) > 0.6


def test_tools_of_scikit_learn():
    X, y = data(60)
    model = kw.MKLSurvival(KERNELS)
    assert cross_val_score(model, X, y, cv=3).mean() > 0.6
    search = GridSearchCV(make_pipeline(StandardScaler(), model), {"mklsurvival__C": [0.1, 1.0]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.6


def test_a_search_scores_what_its_folds_predict():
    X, y = data(60)
    search = kw.MKLSurvivalCV(KERNELS, regularizers=["uniform"], Cs=[0.1, 1.0], cv=3, tol=1e-8).fit(X, y)
    for column, C in enumerate((0.1, 1.0)):
        splits = StratifiedKFold(3).split(X, y["event"])
        kernels = [kernel.fit(X) for kernel in map(clone, KERNELS)]  # widths of all rows
        for row, (train, test) in enumerate(splits):
            model = clone(search.best_estimator_).set_params(kernels=kernels, C=C).fit(X[train], y[train])
            expected = concordance_harrell(y[test]["event"], y[test]["time"], model.predict(X[test]))
            assert search.cv_results_["split_test_scores"][row, column] == pytest.approx(expected)
    assert search.score(X, y) == search.best_estimator_.score(X, y)
    assert_array_equal(search.predict_survival_function(X[:1], True).shape, (1, len(search.unique_times_)))
    other = kw.MKLSurvivalCV(KERNELS, regularizers=["uniform"], Cs=[0.1, 1.0], cv=3, tol=1e-8)
    assert other.fit(X, (y["event"], y["time"])).best_score_ == search.best_score_


# -- a competition ------------------------------------------------------------------------------


def test_shares_of_a_sum_are_in_proportion_to_likelihoods():
    rng = np.random.default_rng(0)
    n, fold = 60, np.arange(60) % 3
    signal = rng.normal(size=n)
    F = signal + 2.0 * rng.normal(size=(4, n)) * [[0.5], [0.6], [0.7], [9.0]]
    F *= [[1.0], [5.0], [0.1], [2.0]]
    F[3] = -signal  # worse than no risk at all
    Y = np.column_stack([rng.exponential(np.exp(-signal)), rng.random(n) < 0.8])
    shares = risk_shares(F + 10.0 * fold, Y, np.ones(n), fold)  # folds have origins of their own
    strata, ones = np.column_stack([Y, fold]), np.ones(n)
    losses = [minimize_scalar(lambda a, f=f: Cox().value(strata, a * f, ones), (0.0, 1.0)).fun for f in F[:3]]
    inside = np.array([[f[fold == k].var() for k in range(3)] for f in F[:3]]).mean(axis=1) ** 0.5
    likely = np.exp(min(losses) - np.array(losses))
    expected = np.where(likely < 0.02 * likely.sum(), 0.0, likely) / inside
    assert shares[3] == 0.0
    assert_allclose(shares[:3], expected / expected.sum(), rtol=1e-3)
    halves = risk_shares(np.tile(F, 2), np.tile(Y, (2, 1)), np.full(2 * n, 0.5), np.tile(fold, 2))
    assert_allclose(halves, shares)  # two halves of every sample are that sample
    assert_array_equal(risk_shares(-F[:3], Y, ones, fold), [1.0, 0.0, 0.0])  # none is better than none


@pytest.mark.parametrize("loss", ["cox", "censored_eps_insensitive"])
def test_the_model_of_a_competition_is_the_stack_of_its_parts(loss):
    X, y = data(60)
    kernels = [RBF(gamma=0.5, columns=[j]) for j in range(3)]
    auto = kw.MKLAutoSurvival(kernels, loss=loss, Cs=[0.1, 1.0], cv=3, tol=1e-6).fit(X, y)
    assert auto.cv_results_["candidate"][auto.best_index_] in ("stack", *auto.cv_results_["candidate"])
    assert auto.stack_weights_.sum() == pytest.approx(1.0)
    total = np.zeros(60)
    for share, candidate, C in auto._taken:
        own = [kernels[m] for m in candidate.kernels]
        rule = candidate.regularizer.select(candidate.kernels, 3)
        part = kw.MKLSurvival(own, loss=loss, regularizer=rule, C=C, tol=1e-6).fit(X, y)
        total += share * part.predict(X)
    assert_allclose(auto.predict(X), total, atol=1e-2 * np.ptp(total))
    assert "concordance" in auto.reason_
    if loss == "cox":
        f = auto.predict(X)
        order = np.argsort(y["time"])
        event, total = y["event"][order], np.cumsum(np.exp(f[order])[::-1])[::-1]
        first = np.searchsorted(y["time"][order], y["time"][order])
        hazard = np.cumsum(event / total[first])
        last = np.searchsorted(y["time"][order], auto.unique_times_, side="right") - 1
        curves = auto.predict_cumulative_hazard_function(X[:2], return_array=True)
        assert_allclose(curves, np.exp(f[:2])[:, None] * hazard[last])


# -- greedy selection ---------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["cox", "survival_ranking", "censored_eps_insensitive"])
def test_a_greedy_model_is_that_of_its_kernels(loss):
    X, y = data(40)
    weight = np.random.default_rng(0).integers(1, 3, size=40)
    kernels = [RBF(gamma=0.5, columns=[j]) for j in range(3)]
    greedy = kw.GroupOMPSurvival(kernels, loss=loss, n_kernels=2, alpha=0.1).fit(X, y, sample_weight=weight)
    assert 0 in greedy.selected_
    assert greedy.stationarity_ <= 1e-5
    assert (np.diff(greedy.path_.objective) < 0).all()
    chosen = [kernels[m] for m in greedy.selected_]
    C = 1.0 / (0.1 * weight.sum())
    plain = kw.MKLSurvival(chosen, loss=loss, regularizer="uniform", C=C, tol=1e-9)
    plain.fit(X, y, sample_weight=weight)
    assert greedy.objective_ == pytest.approx(0.2 * plain.objective_, rel=1e-5)
    ours, theirs = (m.predict(X) - m.predict(X).mean() for m in (greedy, plain))
    assert_allclose(ours, theirs, atol=1e-2 * np.ptp(theirs))
    if loss == "cox":
        curves = [m.predict_survival_function(X[:3], return_array=True) for m in (greedy, plain)]
        assert_allclose(*curves, atol=1e-2)
        with pytest.raises(ValueError, match="best_subset needs a loss that is a sum over samples"):
            greedy.best_subset(X, y)


def test_held_out_samples_choose_the_number_of_kernels():
    X, y = data(60)
    greedy = kw.GroupOMPSurvival(per_feature(RBF()), validation_fraction=0.3, random_state=0).fit(X, y)
    errors = greedy.path_.validation_error
    assert greedy.path_.n_selected == int(np.argmin(errors)) + 1
    given = kw.GroupOMPSurvival(per_feature(RBF()))
    given.fit(X[:40], y[:40], validation_set=(X[40:], (y["event"][40:], y["time"][40:])))
    at = y[40:]
    error = 1.0 - concordance_harrell(at["event"], at["time"], given.predict(X[40:], n_kernels=1))
    assert given.path_.validation_error[0] == pytest.approx(error)
    assert next(given.staged_predict(X)).shape == (60,)


# -- ordered classes ----------------------------------------------------------------------------


def graded(n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.digitize(X[:, 0] + 0.3 * rng.normal(size=n), [-0.7, 0.0, 0.7])


@pytest.mark.parametrize("loss", ["ordinal_hinge", "ordinal_logistic", OrdinalHinge(delta=0.1)], ids=repr)
def test_ordered_classes(loss):
    X, y = graded()
    model = kw.MKLOrdinalClassifier(KERNELS, loss=loss, tol=1e-6).fit(X, y)
    assert model.dual_gap_ <= 1e-6
    f = model.model_(X)[:, 0]
    assert (np.diff(model.thresholds_) > 0).all()
    assert model.thresholds_.sum() == pytest.approx(0.0, abs=1e-12)
    assert_array_equal(model.predict(X), np.searchsorted(model.thresholds_, f))
    values = model.decision_function(X)
    assert_array_equal(values.argmax(axis=1), model.predict(X))
    assert_array_equal((values > 0).sum(axis=1), 1)
    assert np.abs(model.predict(X) - y).mean() < 0.5
    assert hasattr(model, "predict_proba") == (loss == "ordinal_logistic")
    if loss == "ordinal_logistic":
        p = model.predict_proba(X)
        assert_allclose(p.sum(axis=1), 1.0)
        above = 1.0 / (1.0 + np.exp(model.thresholds_[1] - f))
        assert_allclose(p[:, 2:].sum(axis=1), above)


def test_the_order_of_labels():
    X, y = graded()
    names = np.array(["low", "fair", "good", "top"])
    model = kw.MKLOrdinalClassifier(KERNELS, order=names.tolist()).fit(X, names[y])
    plain = kw.MKLOrdinalClassifier(KERNELS).fit(X, y)
    assert_array_equal(model.predict(X), names[plain.predict(X)])
    for order, words in ((["low", "fair"], "lacks 'good'"), ([*names, "low"], "names a class twice")):
        with pytest.raises(ValueError, match=words):
            kw.MKLOrdinalClassifier(KERNELS, order=order).fit(X, names[y])


@pytest.mark.parametrize("model", [kw.MKLOrdinalClassifier(), kw.MKLQuantileRegressor()], ids=repr)
def test_searches_and_paths_of_ordered_classes_and_quantiles(model):
    """Points of a path and of a grid are the fits at their costs."""
    X, y = graded()
    y = y if isinstance(model, kw.MKLOrdinalClassifier) else y + 0.1 * X[:, 1]
    model.set_params(kernels=KERNELS, tol=1e-6)
    alone = [clone(model).set_params(C=C).fit(X, y) for C in (0.1, 1.0)]
    path = kw.mkl_path(model, X, y, values=[0.1, 1.0])
    assert_allclose(path.objective, [one.objective_ for one in alone], rtol=1e-5)
    splits = [(np.arange(40), np.arange(40, 60))]
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=splits).fit(X, y)
    known = [clone(one).fit(X[:40], y[:40]).score(X[40:], y[40:]) for one in alone]
    assert_allclose(search.cv_results_["mean_test_score"], known, atol=1e-6)


# -- quantiles ----------------------------------------------------------------------------------


def test_one_linear_kernel_is_linear_quantile_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    y = X @ [1.0, -2.0] + rng.normal(size=50) * (1.0 + np.abs(X[:, 0]))
    options = {"normalize": None, "regularizer": "uniform", "C": 1e4, "tol": 1e-8, "max_iter": 1000}
    for q in (0.2, 0.5, 0.9):
        model = kw.MKLQuantileRegressor([Linear()], quantile=q, **options).fit(X, y)
        known = QuantileRegressor(quantile=q, alpha=0.0, solver="highs").fit(X, y)
        loss = [Pinball(q).value(y, m.predict(X)).sum() for m in (model, known)]
        assert loss[0] == pytest.approx(loss[1], rel=1e-3)
        share = d2_pinball_score(y, known.predict(X), alpha=q)
        assert model.score(X, y) == pytest.approx(share, abs=1e-3)
        assert abs((y <= model.predict(X) + 1e-9).mean() - q) <= 3 / 50


def test_a_quantile_beyond_its_range_is_refused():
    with pytest.raises(ValueError, match=r"quantile=1\.5 must be a number between 0 and 1"):
        kw.MKLQuantileRegressor(quantile=1.5).fit(np.ones((4, 1)), np.arange(4.0))


# -- another library ----------------------------------------------------------------------------


def test_scikit_survival():
    """One kernel, the same problem: coefficients, curves, concordance; and its metrics take our models."""
    linear_model = pytest.importorskip("sksurv.linear_model")
    metrics = pytest.importorskip("sksurv.metrics")
    X, y = data(60)
    for ties in ("breslow", "efron"):
        known = linear_model.CoxPHSurvivalAnalysis(alpha=2.0, ties=ties, tol=1e-12).fit(X, y)
        options = {"normalize": None, "regularizer": "uniform", "C": 0.5, "tol": 1e-12}
        model = kw.MKLSurvival([Linear()], loss=Cox(ties=ties), **options).fit(X, y)
        assert_allclose(model.coef_, known.coef_, atol=1e-5)
        assert model.score(X, y) == pytest.approx(known.score(X, y), abs=1e-12)
        assert_array_equal(model.unique_times_, known.unique_times_)
        # its curves at the risk scores of ours
        known.coef_ = model.coef_
        known._baseline_model.fit(X @ model.coef_, y["event"], y["time"])
        ours, theirs = (m.predict_survival_function(X, return_array=True) for m in (model, known))
        assert_allclose(ours, theirs, rtol=1e-10)
    risk = model.predict(X)
    assert 0.5 < metrics.concordance_index_ipcw(y, y, risk)[0] <= 1.0
    assert 0.5 < metrics.cumulative_dynamic_auc(y, y, risk, [2.0, 4.0])[1] <= 1.0
    scored = metrics.as_concordance_index_ipcw_scorer(kw.MKLSurvival(KERNELS))
    assert 0.5 < scored.fit(X, y).score(X, y) <= 1.0


def test_targets_survive_a_copy():
    _, y = data(10)
    assert_array_equal(survival_array(survival_array(y)), y)


def test_a_fit_that_stops_early_says_so():
    X, y = data(30)
    with pytest.warns(ConvergenceWarning):
        kw.MKLSurvival(KERNELS, tol=1e-14, max_iter=1).fit(X, y)
