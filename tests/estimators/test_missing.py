"""Views that samples lack, in fits, searches, predictions and model files."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import kernelweave as kw
from kernelweave.kernels import RBF, Linear

HOW = {
    "mask": {},
    "margin": {"regularizer": kw.LpNorm(p=1)},
    "complete": {},
}


def views(n=60, share=0.3, seed=0, ids=None):
    """Three views of the same hidden factors; some samples lack some of them."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 3))
    y = np.where(Z[:, 0] + Z[:, 1] > 0, "yes", "no")
    tables = {name: Z @ rng.normal(size=(3, 4)) + 0.5 * rng.normal(size=(n, 4)) for name in "abc"}
    there = rng.random((n, 3)) > share
    there[~there.any(axis=1), 0] = True
    for v, table in enumerate(tables.values()):
        table[~there[:, v]] = np.nan
    return kw.Views(tables, ids=ids), y


@pytest.mark.parametrize("missing", HOW)
def test_a_fit_is_certified_and_predicts_any_pattern(missing):
    X, y = views()
    model = kw.MKLClassifier(RBF(), missing=missing, tol=1e-4, **HOW[missing]).fit(X[:40], y[:40])
    assert model.dual_gap_ <= 1e-4
    assert model.score(X[:40], y[:40]) > 0.8
    whole = model.decision_function(X[40:])
    each = np.concatenate([model.decision_function(X[[i]]) for i in range(40, 60)])
    np.testing.assert_allclose(whole, each, atol=1e-12)
    has = np.flatnonzero(X.observed[:, 1])
    alone = model.decision_function({"b": X["b"][has]})  # the other views are not even named
    assert np.isfinite(alone).all()
    assert np.ptp(alone) > 0
    assert model.observed_ == dict(zip("abc", X[:40].observed.mean(axis=0), strict=True))
    assert sum(count for _, count in model.patterns_) == 40
    assert model.patterns_[0][0] == ("a", "b", "c")


@pytest.mark.parametrize("missing", HOW)
def test_nothing_missing_is_the_fit_without(missing):
    X, y = views(share=0.0)
    plain = kw.MKLClassifier(RBF(), **HOW[missing]).fit(X, y)
    model = clone(plain).set_params(missing=missing).fit(X, y)
    np.testing.assert_array_equal(model.weights_, plain.weights_)
    np.testing.assert_array_equal(model.dual_coef_, plain.dual_coef_)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-12)
    some = views(seed=0)[0]
    assert np.isfinite(model.decision_function(some)).all()


@pytest.mark.parametrize("missing", ["mask", "complete"])
def test_searches_and_greedy_selection_take_them(missing):
    X, y = views()
    for model in (
        kw.MKLClassifierCV(RBF(), Cs=[0.1, 10.0], cv=3, missing=missing),
        kw.GroupOMPClassifier({"a": RBF(), "b": RBF(), "c": [RBF(), Linear()]}, missing=missing),
        kw.GroupOMPClassifierCV(RBF(), alphas=2, cv=3, missing=missing),
    ):
        assert model.fit(X, y).score(X, y) > 0.8
        assert set(model.observed_) <= set("abc")
        assert len(model.kernel_names_) == len(np.atleast_2d(model.weights_)[0])
    target = (y == "yes") * 1.0
    assert kw.MKLRegressorCV(RBF(), Cs=[1.0], cv=3, missing=missing).fit(X, target).score(X, target) > 0.3
    assert kw.GroupOMPRegressor(RBF(), missing=missing, validation_fraction=0.3, random_state=0).fit(
        X, target
    )


def test_completion_of_a_fold_knows_its_training_samples_alone():
    """Held-out values of a search are those of a model fitted on the training samples of the fold."""
    X, y = views()
    train, test = np.arange(40), np.arange(40, 60)
    search = kw.MKLClassifierCV(
        RBF(gamma=0.1), Cs=[1.0], cv=[(train, test)], missing="complete", tol=1e-6
    ).fit(X, y)
    alone = kw.MKLClassifier(RBF(gamma=0.1), C=1.0, missing="complete", tol=1e-6).fit(X[train], y[train])
    assert search.best_score_ == pytest.approx(alone.score(X[test], y[test]))


def test_margins_of_samples_that_all_lack_something():
    X, y = views()
    some = ~X.observed.all(axis=1)
    X, y = X[np.flatnonzero(some)], y[some]
    model = kw.MKLClassifier(RBF(), regularizer=kw.LpNorm(p=1), missing="margin", tol=1e-4).fit(X, y)
    assert model.dual_gap_ <= 1e-4
    plain = kw.MKLClassifier(RBF(), regularizer=kw.LpNorm(p=1), missing="mask", tol=1e-4).fit(X, y)
    assert model.weights_.sum() > plain.weights_[:3].sum()  # norms that no sample sees together
    train, test = np.arange(len(y) - 10), np.arange(len(y) - 10, len(y))
    Cs, rule = [0.1, 1.0, 10.0], kw.LpNorm(p=1)
    search = kw.MKLClassifierCV(
        RBF(gamma=0.1), regularizers=rule, Cs=Cs, cv=[(train, test)], missing="margin", tol=1e-6
    ).fit(X, y)
    each = [kw.MKLClassifier(RBF(gamma=0.1), regularizer=rule, C=C, missing="margin", tol=1e-6) for C in Cs]
    scores = [one.fit(X[train], y[train]).score(X[test], y[test]) for one in each]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], scores)


def test_errors_name_views_samples_and_counts():
    names = [f"s{i}" for i in range(60)]
    X, y = views(ids=names)
    count = int((~X.observed[:, 1]).sum())
    with pytest.raises(ValueError, match=rf"b is missing in {count} of 60 samples.*missing='complete'"):
        kw.MKLClassifier(RBF()).fit(X, y)
    empty = X.observed.copy()
    X.observed[7] = False
    with pytest.raises(ValueError, match="none of the views: leave out 's7'"):
        kw.MKLClassifier(RBF(), missing="complete").fit(X, y)
    X.observed[:] = empty
    X.observed[:, 0], X.observed[:, 1] = True, False
    with pytest.raises(ValueError, match="no sample has the view 'b'"):
        kw.MKLClassifier(RBF(), missing="complete").fit(X, y)
    X.observed[:] = empty
    with pytest.raises(ValueError, match=r"missing='margin'.*LpNorm\(p=1\)"):
        kw.MKLClassifier(RBF(), missing="margin").fit(X, y)
    with pytest.raises(ValueError, match="missing='impute'"):
        kw.MKLClassifier(RBF(), missing="impute").fit(X, y)
    with pytest.raises(ValueError, match="missing='margin'"):
        kw.GroupOMPClassifier(RBF(), missing="margin").fit(X, y)


def stacks(X):
    """Linear kernels of the views as matrices, training and test, NaN where a sample lacks a view."""
    K = np.stack([X[name] @ X[name].T for name in "abc"], axis=2)  # NaN like the rows of the tables
    return K[:40, :40], K[40:, :40]


@pytest.mark.parametrize("missing", HOW)
def test_matrices_with_rows_of_nan_are_views_that_samples_lack(missing, tmp_path):
    """A stack of matrices has the model of the views they are computed from."""
    X, y = views()
    train, test = stacks(X)
    options = {"missing": missing, "tol": 1e-6, **HOW[missing]}
    expected = kw.MKLClassifier(Linear(), **options).fit(X[:40], y[:40])
    model = kw.MKLClassifier("precomputed", **options).fit(train, y[:40])
    np.testing.assert_allclose(model.weights_, expected.weights_, rtol=1e-6)
    values = model.decision_function(test)
    np.testing.assert_allclose(values, expected.decision_function(X[40:]), atol=1e-8)
    names = [f"kernel {m}" for m in range(3)]
    assert model.observed_ == dict(zip(names, expected.observed_.values(), strict=True))
    assert [count for _, count in model.patterns_] == [count for _, count in expected.patterns_]
    kw.save_model(model, tmp_path / "model.kw")
    np.testing.assert_allclose(kw.load_model(tmp_path / "model.kw").decision_function(test), values)
    assert getattr(model.model_.source.source, "_stack", None) is None  # no training matrices are kept


@pytest.mark.parametrize("missing", ["mask", "complete"])
def test_matrices_with_gaps_in_searches_and_new_gaps(missing):
    X, y = views()
    train, test = stacks(X)
    stack = kw.KernelStack(list(np.moveaxis(train, 2, 0)), ["a", "b", "c"])
    folds = [(np.arange(25), np.arange(25, 40))]
    options = {"Cs": [1.0], "cv": folds, "missing": missing, "tol": 1e-6}
    search = kw.MKLClassifierCV("precomputed", **options).fit(stack, y[:40])
    same = kw.MKLClassifierCV(Linear(), **options).fit(X[:40], y[:40])
    assert search.best_score_ == same.best_score_
    np.testing.assert_allclose(search.decision_function(test), same.decision_function(X[40:]), atol=1e-8)
    assert kw.GroupOMPClassifier("precomputed", missing=missing).fit(stack, y[:40]).score(test, y[40:]) > 0.6
    whole, y = views(share=0.0)
    train, _ = stacks(whole)
    model = kw.MKLClassifier("precomputed", missing=missing, tol=1e-6).fit(train, y[:40])
    plain = kw.MKLClassifier("precomputed", tol=1e-6).fit(train, y[:40])
    np.testing.assert_array_equal(model.weights_, plain.weights_)
    lacking = train[:5].copy()
    lacking[:, :, 1] = np.nan
    expected = kw.MKLClassifier(Linear(), missing=missing, tol=1e-6).fit(whole[:40], y[:40])
    new = {name: whole[name][:5] for name in "ac"}
    np.testing.assert_allclose(model.decision_function(lacking), expected.decision_function(new), atol=1e-8)


def test_errors_of_matrices_with_gaps():
    X, y = views()
    train, test = stacks(X)
    count = int((~X.observed[:40, 1]).sum())
    with pytest.raises(ValueError, match=rf"kernel 1 is missing in {count} of 40 samples.*'complete'"):
        kw.MKLClassifier("precomputed").fit(train, y[:40])
    plain = kw.MKLClassifier("precomputed").fit([np.eye(40)] * 3, y[:40])
    with pytest.raises(ValueError, match=r"NaN or infinite entries.*missing='complete'"):
        plain.predict(test)
    model = kw.MKLClassifier("precomputed", missing="complete").fit(train, y[:40])
    nothing = test.copy()
    nothing[3] = np.nan
    with pytest.raises(ValueError, match="1 of 20 samples have none of the kernels: leave out 3"):
        model.predict(nothing)
    cell = test.copy()
    row, column = np.argwhere(np.isfinite(cell[:, :, 0]))[0]
    cell[row, column, 0] = np.nan
    with pytest.raises(ValueError, match="'kernel 0' has NaN"):
        model.predict(cell)
    broken = train.copy()
    broken[int(np.flatnonzero(X.observed[:40, 0])[0]), :, 0] = np.nan  # its column is not
    with pytest.raises(ValueError, match=r"'kernel 0' has NaN.*row and column"):
        kw.MKLClassifier("precomputed", missing="complete").fit(broken, y[:40])


def test_none_of_the_views_is_no_advice_to_complete_them():
    X, y = views()
    model = kw.MKLClassifier(RBF(), missing="complete").fit(X, y)
    with pytest.raises(ValueError, match=r"none of the views.*it has 'd'.*of 'a', 'b' and 'c'") as told:
        model.predict({"d": X["a"]})
    assert "missing=" not in str(told.value)


def test_linear_kernels_have_no_coefficients_where_views_may_be_missing():
    X, y = views()
    model = kw.MKLClassifier(Linear(), missing="mask").fit(X, y)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("missing", HOW)
@pytest.mark.parametrize("share", [0.3, 0.0])
def test_model_files_keep_what_predictions_need(missing, share, tmp_path):
    X, y = views(share=share)
    model = kw.MKLClassifier({"a": RBF(), "b": [RBF(), Linear()]}, missing=missing, **HOW[missing])
    has = np.flatnonzero(X.observed[:, :2].any(axis=1))
    model.fit(X[has], y[has])
    kw.save_model(model, tmp_path / "model.kw")
    again = kw.load_model(tmp_path / "model.kw")
    new = views(seed=0)[0]
    new = new[np.flatnonzero(new.observed[:, :2].any(axis=1))]
    np.testing.assert_allclose(again.decision_function(new), model.decision_function(new), atol=1e-12)
    assert again.patterns_ == model.patterns_


@pytest.mark.parametrize("normalize", ["variance", "dimension"])
@pytest.mark.parametrize(("missing", "share"), [("complete", 0.3), ("complete", 0.0), ("mask", 0.0)])
def test_low_rank_is_the_same_where_features_are_exact(missing, share, normalize, tmp_path):
    """Completion by a regression of features is that by kernels, whose ridge it also chooses."""
    X, y = views(share=share)
    options = {"missing": missing, "tol": 1e-8, "loss": "squared", "normalize": normalize}
    low = kw.MKLClassifier(Linear(), approximation="nystroem", rank=10, **options).fit(X, y)
    exact = kw.MKLClassifier(Linear(), **options).fit(X, y)
    new = views()[0]
    np.testing.assert_allclose(low.decision_function(new), exact.decision_function(new), atol=1e-4)
    kw.save_model(low, tmp_path / "model.kw")
    again = kw.load_model(tmp_path / "model.kw")
    np.testing.assert_allclose(again.decision_function(new), low.decision_function(new), atol=1e-12)
    assert low.model_.source.X.shape[0] == 1  # no training samples but one to stand in


def test_margins_where_parameters_are_chosen():
    X, y = views(n=36)
    with pytest.raises(ValueError, match=r"regularizers=LpNorm\(p=1\)\.$"):
        kw.MKLClassifierCV(RBF(), regularizers=["uniform"], missing="margin").fit(X, y)
    auto = kw.MKLAutoClassifier(RBF(), Cs=[1.0], cv=2, missing="margin").fit(X, y)
    alone = kw.MKLClassifier(RBF(), regularizer=kw.LpNorm(p=1), missing="margin").fit(X, y)
    np.testing.assert_allclose(auto.decision_function(X), alone.decision_function(X), atol=1e-2)
