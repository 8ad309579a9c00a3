"""Probabilities are calibrated when they are first asked for, to what a fit would have found at once."""

from __future__ import annotations

import copy
import pickle
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone

import kernelweave as kw
from kernelweave.estimators import _labels, _mkl, group_omp
from kernelweave.gram.predictor import Later
from kernelweave.kernels import RBF, Linear
from kernelweave.losses import Hinge, MulticlassHinge
from kernelweave.persistence import load_model, save_model
from kernelweave.solvers import Problem, leave_one_out
from kernelweave.solvers.greedy.refit import Kept
from kernelweave.solvers.leave_one_out import left_out_later

KERNELS = {"rbf": RBF(0.5), "linear": Linear()}


def samples(n_classes=2, n=30):
    rng = np.random.default_rng(3)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, 3)) + 0.8 * np.eye(3)[y % 3], y


def matrices(model, X):
    """The normalised kernels on the training samples, times their weights: a matrix per model."""
    Ks = [kernel.fit(X)(X) for kernel in clone(list(KERNELS.values()), safe=False)]
    Ks = [K / (K.diagonal().mean() - K.mean()) for K in Ks]
    return [np.tensordot(weights, Ks, 1) for weights in np.atleast_2d(model.weights_)]


def margins(model, X, K, Y, function):
    """Leave-one-out predictions of one function, from the definition of the problem."""
    alpha = np.atleast_2d(model.dual_coef_)[function]
    f = model.model_(X)[:, function]
    used = np.flatnonzero(Y)
    problem = Problem(Y[used, None], Hinge(), np.full((len(used), 1), model.C))
    return leave_one_out(K[np.ix_(used, used)], problem, alpha[used], f[used])


@pytest.mark.parametrize("gram", ["dense", "packed", "blocked"])
@pytest.mark.parametrize("scheme", ["ovr", "ovo", "shared", "joint"])
def test_equals_margins_of_the_whole_matrix(gram, scheme):
    X, y = samples(3)
    model = kw.MKLClassifier(KERNELS, multiclass=scheme, gram=gram, tol=1e-6).fit(X, y)
    assert isinstance(model.model_._link, Later)
    values, Ks, ones = model.model_(X), matrices(model, X), np.ones(len(y))
    if scheme == "ovo":
        found = []
        for k, (i, j) in enumerate(combinations(range(3), 2)):
            Y = np.where(y == j, 1.0, np.where(y == i, -1.0, 0.0))
            left = margins(model, X, Ks[k], Y, k)
            slope, shift = _labels.fit_sigmoid(left, Y[Y != 0], ones[Y != 0])
            found.append(expit(slope * values[:, k] + shift))
        expected = _labels.pairwise_scores(np.column_stack(found), 3)
    elif scheme == "joint":
        problem = Problem(_labels.class_targets(y, 3), MulticlassHinge(), np.ones((len(y), 1)))
        left = leave_one_out(Ks[0], problem, model.dual_coef_.T, values)
        expected = softmax(_labels.fit_temperature(left, y, ones) * values, axis=1)
    else:
        own = Ks if scheme == "ovr" else Ks * 3
        left = [margins(model, X, own[k], np.where(y == k, 1.0, -1.0), k) for k in range(3)]
        expected = softmax(_labels.fit_temperature(np.column_stack(left), y, ones) * values, axis=1)
    expected = expected / expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "squared"])
def test_weight_two_is_two_equal_samples(loss):
    X, y = samples()
    weight = np.where(np.arange(len(y)) < 8, 2.0, 1.0)
    twice = np.concatenate([np.arange(len(y)), np.arange(8)])
    model = kw.MKLClassifier(KERNELS, loss=loss, tol=1e-9)
    once = clone(model).fit(X, y, sample_weight=weight).predict_proba(X)
    copies = clone(model).fit(X[twice], y[twice]).predict_proba(X)
    np.testing.assert_allclose(once, copies, rtol=1e-4)


def test_a_fit_leaves_no_sample_out(monkeypatch):
    X, y = samples()

    def refuse(*args, **kwargs):
        raise AssertionError("nobody asked for probabilities")

    monkeypatch.setattr(_labels, "_newton", refuse)
    monkeypatch.setattr(sys.modules["kernelweave.solvers.leave_one_out"], "_bordered_inverse", refuse)
    models = [
        kw.MKLClassifier(KERNELS),
        kw.MKLClassifier(KERNELS, approximation="nystroem", rank=5, random_state=0),
        kw.MKLClassifierCV(KERNELS, Cs=[1.0], cv=2),
        kw.GMKLClassifier(C=10.0, tol=0.1),
        kw.GroupOMPClassifier(KERNELS),
        kw.GroupOMPClassifier(KERNELS, loss="hinge"),
    ]
    for model in models:
        model.fit(X, y).predict(X)
        with pytest.raises(AssertionError, match="nobody asked"):
            model.predict_proba(X)


def test_keeps_no_matrix_of_all_samples():
    X, y = samples()
    K, Y = X @ X.T, np.where(y == 1, 1.0, -1.0)
    problem = Problem(Y[:, None], Hinge(), np.full((len(y), 1), 0.01))
    alpha = 0.01 * Y
    alpha[:4] *= 0.5
    expected, held = leave_one_out(K, problem, alpha, K @ alpha), weakref.ref(K)
    later = left_out_later(K, problem, alpha, K @ alpha)
    del K
    assert held() is None
    assert later.args[0].shape == (4, len(y))
    np.testing.assert_array_equal(later(), expected)


@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_a_greedy_fit_keeps_its_kernels_and_not_the_dictionary(loss, monkeypatch):
    X, y = samples(3)
    later = kw.GroupOMPClassifier(KERNELS, loss=loss).fit(X, y)
    [compute] = later.model_._link._compute.args[0]
    assert all(isinstance(refit.dictionary, Kept) for refit in compute.args[1])
    monkeypatch.setattr(group_omp, "MOST_KEPT_BYTES", 0)
    at_once = kw.GroupOMPClassifier(KERNELS, loss=loss).fit(X, y)
    [compute] = at_once.model_._link._compute.args[0]
    assert compute().shape == (len(y), 3)
    np.testing.assert_array_equal(at_once.predict_proba(X), later.predict_proba(X))


def test_what_takes_much_room_is_computed_at_once(monkeypatch):
    X, y = samples(3)
    later = kw.MKLClassifier(KERNELS).fit(X, y)
    monkeypatch.setattr(_mkl, "MOST_KEPT_BYTES", 0)
    at_once = kw.MKLClassifier(KERNELS).fit(X, y)
    (margins, *_) = at_once.model_._link._compute.args
    assert [one().shape for one in margins] == [(len(y), 1)] * 3
    np.testing.assert_array_equal(at_once.predict_proba(X), later.predict_proba(X))


def test_what_became_of_the_input_does_not_matter():
    X, y = samples()
    greedy = [kw.GroupOMPClassifier(KERNELS, loss=loss) for loss in ("squared", "hinge")]
    for model in (kw.MKLClassifier(KERNELS, gram="blocked"), kw.GMKLClassifier(tol=1e-2), *greedy):
        expected = clone(model).fit(X, y).predict_proba(X)
        theirs = X.copy()
        model.fit(theirs, y)
        theirs[:] = np.nan
        np.testing.assert_array_equal(model.predict_proba(X), expected)


@pytest.mark.parametrize("gram", ["dense", "blocked"])
def test_copies_and_files_have_the_same_probabilities(gram, tmp_path):
    X, y = samples(3)
    fitted = [kw.MKLClassifier(KERNELS, gram=gram).fit(X, y) for _ in range(4)]
    expected = fitted[0].predict_proba(X)
    pickled, copied = pickle.loads(pickle.dumps(fitted[1])), copy.deepcopy(fitted[2])
    save_model(fitted[3], tmp_path / "model.kw")
    for model in (pickled, copied, load_model(tmp_path / "model.kw")):
        assert not isinstance(model.model_._link, Later)
        np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_threads_calibrate_once(monkeypatch):
    X, y = samples()
    calls, fit_link = [], _labels.fit_temperature
    monkeypatch.setattr(_labels, "fit_temperature", lambda *args: calls.append(1) or fit_link(*args))
    model = kw.MKLClassifier(KERNELS).fit(X, y)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: model.predict_proba(X), range(8)))
    assert len(calls) == 1
    assert all(np.array_equal(found[0], one) for one in found)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_probabilities_of_rows_that_repeat(loss):
    """A few binary columns, as of genotypes: probabilities follow how often each class is seen."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(300, 3)).astype(float)
    y = np.where(rng.random(300) < 0.9, X[:, 0], 1.0 - X[:, 0]).astype(int)
    model = kw.MKLClassifier(RBF(gamma=1.0), loss=loss).fit(X, y)
    probability = model.predict_proba(X)[:, 1]
    assert probability[X[:, 0] > 0].min() > 0.75
    assert probability[X[:, 0] == 0].max() < 0.25
    search = kw.MKLClassifierCV(RBF(gamma=1.0), loss=loss, Cs=[0.1, 1.0, 10.0], cv="leave-one-out").fit(X, y)
    assert search.best_score_ > 0.85
