"""Samples with several labels: a model per label, or labels that share the kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags

import kernelweave as kw
from kernelweave.app.cli._columns import target_column
from kernelweave.app.cli._console import CliError
from kernelweave.app.cli._facts import predictions
from kernelweave.kernels import RBF, Linear
from kernelweave.report import Report

KERNELS = {"linear": Linear(), "wide": RBF(gamma=0.1), "narrow": RBF(gamma=1.0)}

#: every classifier whose labels have a model each
APART = [
    kw.MKLClassifier(KERNELS),
    kw.MKLClassifier(KERNELS, loss="logistic", class_weight="balanced"),
    kw.GMKLClassifier(max_iter=5),
    kw.EmpiricalBayesClassifier(KERNELS, max_iter=3),
]
ALL = [
    *APART,
    kw.MKLClassifier(KERNELS, multiclass="shared"),
    kw.GroupOMPClassifier(KERNELS, n_kernels=2),
    kw.MKLClassifierCV(KERNELS, Cs=[0.1, 1.0], cv=2),
    kw.GroupOMPClassifierCV(KERNELS, alphas=[0.01], cv=2),
]


@pytest.fixture(scope="module")
def tagged():
    """Three labels that overlap, each of its own feature."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(70, 4))
    score = np.column_stack([X[:, 0], np.sin(2.0 * X[:, 1]), X[:, 0] + X[:, 2]])
    Y = (score + 0.3 * rng.normal(size=score.shape) > 0.2).astype(int)
    return X[:40], Y[:40], X[40:], Y[40:]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", APART, ids=lambda model: type(model).__name__)
def test_labels_are_separate_fits(tagged, estimator):
    X, Y, X_new, _ = tagged
    model = clone(estimator).fit(X, Y)
    assert model.multilabel_
    assert_array_equal(model.classes_, [0, 1, 2])
    assert model.weights_.shape[0] == 3
    for k in range(3):
        alone = clone(estimator).fit(X, Y[:, k])
        assert not alone.multilabel_
        assert_array_equal(model.weights_[k], alone.weights_)
        assert_allclose(model.decision_function(X_new)[:, k], alone.decision_function(X_new), atol=1e-9)
        assert_array_equal(model.predict(X_new)[:, k], alone.predict(X_new))
        assert_allclose(model.predict_proba(X_new)[:, k], alone.predict_proba(X_new)[:, 1], atol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_answers_are_indicators(tagged, estimator):
    X, Y, X_new, Y_new = tagged
    frame = pd.DataFrame(Y, columns=["red", "round", "small"])
    model = clone(estimator).fit(X, frame)
    assert list(model.classes_) == ["red", "round", "small"]
    predicted = model.predict(X_new)
    assert_array_equal(predicted, (model.decision_function(X_new) > 0).astype(int))
    P = model.predict_proba(X_new)
    assert P.shape == (30, 3)
    assert ((P > 0.5) == (predicted > 0)).all()
    assert model.score(X_new, Y_new) == pytest.approx((predicted == Y_new).all(axis=1).mean())
    assert model.score(X_new, Y_new) > 0.3
    assert get_tags(model).classifier_tags.multi_label


def test_shared_weights_are_those_of_outputs_that_share_them(tagged):
    """With the squared loss, labels of +-1 with shared weights are a regression of several outputs."""
    X, Y, X_new, _ = tagged
    labels = kw.MKLClassifier(KERNELS, loss="squared", multiclass="shared", tol=1e-8).fit(X, Y)
    numbers = kw.MKLRegressor(KERNELS, tol=1e-8).fit(X, 2.0 * Y - 1.0)
    assert_allclose(labels.weights_, numbers.weights_, atol=1e-6)
    assert_allclose(labels.decision_function(X_new), numbers.predict(X_new), atol=1e-6)
    assert set(labels.weights_frame()["model"]) == {"all labels"}


def test_names_weights_and_files(tagged, tmp_path):
    X, Y, X_new, _ = tagged
    weight = np.arange(40) % 3
    model = kw.MKLClassifier(KERNELS).fit(X, pd.DataFrame(Y, columns=["a", "b", "c"]), sample_weight=weight)
    assert list(model.weights_frame()["model"].unique()) == ["a", "b", "c"]
    kw.save_model(model, tmp_path / "model.kw")
    loaded = kw.load_model(tmp_path / "model.kw")
    for method in ("predict", "decision_function", "predict_proba"):
        assert_array_equal(getattr(loaded, method)(X_new), getattr(model, method)(X_new))
    alone = kw.MKLClassifier(KERNELS).fit(X, Y[:, 1], sample_weight=weight)
    assert_array_equal(model.weights_[1], alone.weights_)


def test_lists_and_sparse_matrices_are_indicators_too(tagged):
    X, Y, X_new, _ = tagged
    expected = kw.MKLClassifier(KERNELS).fit(X, Y).predict(X_new)
    for given in (Y.tolist(), sparse.csr_matrix(Y), Y.astype(bool), Y.astype(float)):
        assert_array_equal(kw.MKLClassifier(KERNELS).fit(X, given).predict(X_new), expected)


def test_greedy_selection_holds_samples_out(tagged):
    X, Y, X_new, Y_new = tagged
    model = kw.GroupOMPClassifier(KERNELS, validation_fraction=0.3, random_state=0).fit(X, Y)
    given = kw.GroupOMPClassifier(KERNELS).fit(X, Y, validation_set=(X_new, Y_new))
    for fitted in (model, given):
        assert len(fitted.path_.validation_error) == len(fitted.path_)
    predicted = next(given.staged_predict(X_new))
    assert given.path_.validation_error[0] == pytest.approx((predicted != Y_new).any(axis=1).mean())


def test_report_and_command_line_say_that_they_show_one_label(tagged):
    X, Y, X_new, _ = tagged
    model = kw.MKLClassifier(KERNELS).fit(X, pd.DataFrame(Y, columns=["a", "b", "c"]))
    with pytest.raises(ValueError, match="several labels per sample, and a report shows one"):
        Report.from_model(model, X, Y)
    with pytest.raises(CliError, match="--target takes one column, and 'a, b' are 2"):
        target_column({"a": [1], "b": [0]}, "a, b", Path("table.csv"))
    columns = predictions(model, X_new)
    assert list(columns) == [f"{kind} {name}" for kind in ("prediction", "probability") for name in "abc"]
    assert_array_equal(columns["prediction b"], model.predict(X_new)[:, 1])


@pytest.mark.parametrize(
    ("change", "params", "words"),
    [
        (lambda Y: Y * [1, 0, 1], {}, r"the label 1 in none of the samples of positive weight"),
        (lambda Y: 2 * Y - 1, {}, r"y has 3 columns and holds -1: several labels per sample are a matrix"),
        (lambda Y: Y, {"multiclass": "ovo"}, r"multiclass='ovo' is for classes that exclude one another"),
        (lambda Y: Y, {"multiclass": "joint"}, r"multiclass='joint' is for classes that exclude one another"),
        (lambda Y: Y, {"multiclass": "shared", "class_weight": "balanced"}, r"class_weight gives the labels"),
        (lambda Y: Y, {"class_weight": {"a": 2}}, r"class_weight=\{'a': 2\}.* its keys are 0 and 1"),
    ],
)
def test_what_is_no_set_of_labels(tagged, change, params, words):
    X, Y, *_ = tagged
    with pytest.raises(ValueError, match=words):
        kw.MKLClassifier(KERNELS, **params).fit(X, change(Y))


@pytest.mark.parametrize("model", [kw.MKLClassifier(KERNELS), kw.MKLRegressor(KERNELS)])
def test_scores_refuse_columns_in_another_order(model) -> None:
    rng = np.random.RandomState(0)
    X = rng.randn(20, 2)
    y = pd.DataFrame({"a": X[:, 0] > 0, "b": X[:, 1] > 0}).astype(int)
    fitted = clone(model).fit(X, y)
    assert fitted.score(X, y) == fitted.score(X, y.to_numpy())
    with pytest.raises(ValueError, match="in that order"):
        fitted.score(X, y[["b", "a"]])
