"""Groups of outputs that select kernels together: between one set for all of them and one for each."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import kernelweave as kw
from kernelweave.inspection import PathDisplay
from kernelweave.kernels import RBF, Linear

KERNELS = {
    **{f"linear {j}": Linear(columns=[j]) for j in range(4)},
    **{f"rbf {j}": RBF(gamma=1.0, columns=[j]) for j in range(4)},
}


@pytest.fixture(scope="module")
def outputs():
    """30 samples to fit, 10 new ones; four outputs of which the first and the last are alike."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    first, other = np.sin(2.0 * X[:, 1]), X[:, 2] + X[:, 3] ** 2
    Y = np.column_stack([first, X[:, 0], other, -2.0 * first]) + 0.1 * rng.normal(size=(40, 4))
    return X[:30], Y[:30], X[30:], Y[30:]


def regressor(**parameters):
    return kw.GroupOMPRegressor(KERNELS, **{"tol": 0.02, "n_kernels": 4, **parameters})


@pytest.mark.parametrize("loss", ["squared", "eps_insensitive"])
def test_one_group_is_one_set_for_all(outputs, loss):
    X, Y, X_new, _ = outputs
    shared, grouped = (regressor(loss=loss, output_groups=g).fit(X, Y) for g in (None, ["all"] * 4))
    np.testing.assert_array_equal(grouped.predict(X_new), shared.predict(X_new))
    assert grouped.selected_.tolist() == shared.selected_.tolist()
    np.testing.assert_array_equal(grouped.weights_, shared.weights_)
    np.testing.assert_array_equal(grouped.path_.gains, shared.path_.gains)
    assert grouped.path_.sets == shared.path_.sets
    assert grouped.objective_ == shared.objective_


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": "huber"},
        pytest.param({"backward": True}, marks=pytest.mark.wide),
        pytest.param({"dictionary_sample": 3, "random_state": 0}, marks=pytest.mark.wide),
    ],
    ids=str,
)
def test_singletons_are_independent_fits(outputs, options):
    X, Y, X_new, _ = outputs
    reg = regressor(output_groups=range(4), **options).fit(X, Y)
    alone = [regressor(**options).fit(X, Y[:, k]) for k in range(4)]
    assert len({len(one.path_) for one in alone}) > 1  # paths of different lengths
    assert [found.tolist() for found in reg.selected_] == [one.selected_.tolist() for one in alone]
    for k, one in enumerate(alone):
        np.testing.assert_allclose(reg.predict(X_new)[:, k], one.predict(X_new), atol=1e-9)
        for size in range(1, len(reg.path_) + 1):
            expected = one.predict(X_new, n_kernels=min(size, len(one.path_)))
            np.testing.assert_allclose(reg.predict(X_new, n_kernels=size)[:, k], expected, atol=1e-9)
        own = reg.path_.groups[k]
        assert (own.sets, own.stopped, own.n_selected) == (one.path_.sets, one.path_.stopped, len(one.path_))
        np.testing.assert_allclose(own.dual_coef[..., 0], one.path_.dual_coef[..., 0], atol=1e-9)
        np.testing.assert_allclose(reg.dual_coef_[k], one.dual_coef_, atol=1e-9)
        np.testing.assert_allclose(reg.norms_[k], one.norms_, atol=1e-9)
    np.testing.assert_allclose(reg.objective_, [one.objective_ for one in alone])
    np.testing.assert_allclose(reg.intercept_, [one.intercept_ for one in alone], atol=1e-9)
    assert reg.n_iter_.tolist() == [one.n_iter_ for one in alone]


def test_groups_are_fits_of_their_outputs(outputs):
    X, Y, X_new, _ = outputs
    labels = ["a", "b", "b", "a"]
    reg = regressor(output_groups=labels).fit(X, Y)
    for g, columns in enumerate(([0, 3], [1, 2])):
        part = regressor().fit(X, Y[:, columns])
        assert reg.selected_[g].tolist() == part.selected_.tolist()
        np.testing.assert_allclose(reg.predict(X_new)[:, columns], part.predict(X_new), atol=1e-9)
        np.testing.assert_allclose(reg.weights_[g], part.weights_)
    np.testing.assert_allclose(reg.path_.objective[-1], reg.objective_.sum())
    assert (reg.stationarity_ < 1e-10).all()
    # the components of the kernels add up, output by output
    parts = reg.model_.components(X_new).sum(axis=2).T + reg.intercept_
    np.testing.assert_allclose(parts, reg.predict(X_new), atol=1e-9)


def test_a_constant_output_needs_no_kernel(outputs):
    X, Y, X_new, _ = outputs
    reg = regressor(output_groups=[0, 1]).fit(X, np.column_stack([Y[:, 0], np.full(30, 3.0)]))
    assert reg.selected_[1].size == 0
    np.testing.assert_allclose(reg.predict(X_new)[:, 1], 3.0)
    assert not reg.dual_coef_[1].any()
    assert len(reg.path_.groups[1]) == 0


def test_what_users_read(outputs):
    pytest.importorskip("pandas")
    X, Y, _, _ = outputs
    reg = regressor(output_groups=["a", "b", "b", "a"], n_kernels=2, tol=0.0).fit(X, Y)
    frame = reg.weights_frame()
    assert frame["model"].tolist() == ["a"] * 8 + ["b"] * 8
    assert frame["weight"].sum() == 4
    path = reg.path_.frame()
    first = [reg.kernel_names_[found[0]] for found in reg.selected_]
    assert path["kernel"].iloc[0] == ", ".join(first)
    assert "for each of 2 groups" in repr(reg.path_)
    assert len(PathDisplay.from_estimator(reg).values) == 2
    assert "Kernel weights" in reg._repr_html_()


def test_classes_in_groups(four):
    labels = ["left", "right", "left", "right"]
    kernels = {"x": RBF(gamma=0.5, columns=[0]), "y": RBF(gamma=0.5, columns=[1]), "both": RBF(gamma=0.5)}
    clf = kw.GroupOMPClassifier(kernels, tol=0.0, n_kernels=2, output_groups=labels).fit(four.X, four.y)
    Y = np.where(four.y[:, None] == clf.classes_, 1.0, -1.0)
    reg = kw.GroupOMPRegressor(kernels, tol=0.0, n_kernels=2, output_groups=labels).fit(four.X, Y)
    np.testing.assert_allclose(clf.decision_function(four.X_new), reg.predict(four.X_new))
    assert clf.predict_proba(four.X_new).shape == (48, 4)
    assert clf.score(four.X_new, four.y_new) > 0.5


def test_cross_validated(outputs):
    X, Y, X_new, _ = outputs
    options = {"alphas": [0.01, 0.1], "n_kernels": 3, "cv": 3, "scoring": "neg_mean_squared_error"}
    search = kw.GroupOMPRegressorCV(KERNELS, output_groups=range(4), **options).fit(X, Y)
    alone = [kw.GroupOMPRegressorCV(KERNELS, **options).fit(X, Y[:, k]) for k in range(4)]
    scores = [one.cv_results_["split_test_scores"] for one in alone]
    np.testing.assert_allclose(search.cv_results_["split_test_scores"], np.mean(scores, axis=0), atol=1e-9)
    assert search.best_estimator_.output_groups == range(4)
    assert search.predict(X_new).shape == (10, 4)


def test_held_out_samples_choose_one_size(outputs):
    X, Y, X_new, Y_new = outputs
    reg = regressor(output_groups=range(4), tol=0.0, n_kernels=6).fit(X, Y, validation_set=(X_new, Y_new))
    errors = [np.mean((f - Y_new) ** 2) * 4 for f in reg.staged_predict(X_new)]
    np.testing.assert_allclose(reg.path_.validation_error, errors)
    assert reg.path_.n_selected == 1 + int(np.argmin(errors))
    assert [len(found) for found in reg.selected_] == [reg.path_.n_selected] * 4


def test_a_checkpoint_keeps_every_group(outputs, tmp_path):
    X, Y, X_new, _ = outputs
    path = tmp_path / "path.ckpt"
    short = regressor(output_groups=[0, 0, 1, 1], n_kernels=1, tol=0.0, checkpoint=path).fit(X, Y)
    longer = clone(short).set_params(n_kernels=3).fit(X, Y)
    assert longer.n_resumed_.tolist() == [1, 1]
    fresh = clone(longer).set_params(checkpoint=None).fit(X, Y)
    np.testing.assert_allclose(longer.predict(X_new), fresh.predict(X_new), atol=1e-9)
    with pytest.raises(ValueError, match="output_groups"):
        clone(short).set_params(output_groups=[0, 1, 1, 0]).fit(X, Y)


def test_files_keep_the_groups(outputs, tmp_path):
    X, Y, X_new, _ = outputs
    reg = regressor(output_groups=["a", "b", "b", "a"]).fit(X, Y)
    kw.save_model(reg, tmp_path / "model.kw")
    again = kw.load_model(tmp_path / "model.kw")
    np.testing.assert_array_equal(again.predict(X_new, n_kernels=1), reg.predict(X_new, n_kernels=1))
    assert [path.sets for path in again.path_.groups] == [path.sets for path in reg.path_.groups]
    assert [found.tolist() for found in again.selected_] == [found.tolist() for found in reg.selected_]


@pytest.mark.parametrize("labels", [["a"], "ab", 3])
def test_labels_that_do_not_fit_are_refused(outputs, labels):
    X, Y, _, _ = outputs
    with pytest.raises(ValueError, match=r"output_groups.*one label for each of the 4 outputs"):
        regressor(output_groups=labels).fit(X, Y)


@pytest.mark.parametrize(
    "labels",
    [[0, np.nan, np.nan, 1], ["a", np.nan, "b", "b"], pd.Series(["a", pd.NA, "b", "b"]), [pd.NaT, 0, 1, 1]],
    ids=["number", "text", "pandas.NA", "NaT"],
)
def test_missing_labels_are_refused(outputs, labels):
    X, Y, _, _ = outputs
    with pytest.raises(ValueError, match=r"(?s)output_groups=.*has missing labels \(NaN, NaT or pandas.NA\)"):
        regressor(output_groups=labels).fit(X, Y)


def test_the_best_subset_is_that_of_one_set(outputs):
    X, Y, _, _ = outputs
    reg = regressor(output_groups=[0, 0, 1, 1], n_kernels=1).fit(X, Y)
    with pytest.raises(ValueError, match="Fit the groups apart"):
        reg.best_subset(X, Y)
