"""Labels and class weights: the same rules, and the same words, in every classifier."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.class_weight import compute_class_weight

import kernelweave as kw
from kernelweave.estimators._labels import class_factors, encode_labels
from kernelweave.kernels import RBF, Linear

KERNELS = {"linear": Linear(), "rbf": RBF(gamma=0.3)}

CLASSIFIERS = {
    "mkl": kw.MKLClassifier(KERNELS),
    "mkl_cv": kw.MKLClassifierCV(KERNELS, Cs=[1.0], cv=2),
    "greedy": kw.GroupOMPClassifier(KERNELS),
    "greedy_cv": kw.GroupOMPClassifierCV(KERNELS, alphas=[0.1], cv=2),
    "gmkl": kw.GMKLClassifier(),
    "bayes": kw.EmpiricalBayesClassifier(KERNELS),
}

WEIGHTED = [name for name, model in CLASSIFIERS.items() if "class_weight" in model.get_params()]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_one_class_is_refused_in_the_same_words(name, binary):
    labels = np.full(len(binary.y), "a")
    with pytest.raises(ValueError, match=r"y has 1 class \('a'\); a classifier needs at least two"):
        CLASSIFIERS[name].fit(binary.X, labels)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_one_class_of_positive_weight_is_refused(name, binary):
    weight = (binary.y == 1).astype(float)
    with pytest.raises(ValueError, match=r"y has 1 class \(1\) among the samples of positive weight"):
        CLASSIFIERS[name].fit(binary.X, binary.y, sample_weight=weight)


@pytest.mark.parametrize("factor", [-1.0, 0.0, np.inf, np.nan])
@pytest.mark.parametrize("name", WEIGHTED)
def test_factors_that_are_not_positive_are_refused_by_name(name, factor, binary):
    model = CLASSIFIERS[name].set_params(class_weight={0: factor})
    try:
        with pytest.raises(ValueError, match=r"class_weight=\{0: .*positive"):
            model.fit(binary.X, binary.y)
    finally:
        model.set_params(class_weight=None)


@pytest.mark.parametrize("name", [name for name in WEIGHTED if not name.endswith("_cv")])
def test_balanced_factors_are_those_of_weighted_counts(name, binary, rng):
    """`class_weight="balanced"` is a dict of what scikit-learn computes from the weights of the samples."""
    weight = rng.integers(0, 4, len(binary.y)) * (1.0 + binary.y)
    factors = compute_class_weight(
        "balanced", classes=np.array([0, 1]), y=binary.y, sample_weight=weight
    ).tolist()
    assert abs(factors[0] - factors[1]) > 0.05
    model = CLASSIFIERS[name]
    fits = [
        np.atleast_2d(
            model.__class__(**{**model.get_params(deep=False), "class_weight": chosen})
            .fit(binary.X, binary.y, sample_weight=weight)
            .dual_coef_
        )
        for chosen in ("balanced", dict(enumerate(factors)))
    ]
    np.testing.assert_allclose(*fits, rtol=1e-12, atol=1e-12)


def _unbalanced(rng):
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=80) > 0.7).astype(int)
    return X, y, rng.uniform(0.2, 3.0, 80)


def test_balanced_is_that_of_logistic_regression(rng):
    X, y, weight = _unbalanced(rng)
    ours = kw.MKLClassifier(
        [Linear()], loss="logistic", regularizer="uniform", normalize=None, class_weight="balanced", tol=1e-9
    ).fit(X, y, sample_weight=weight)
    theirs = LogisticRegression(class_weight="balanced", tol=1e-10).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-4, atol=1e-4)


def test_balanced_is_that_of_linear_svc(rng):
    X, y, weight = _unbalanced(rng)
    # liblinear penalises the intercept, so both do without
    ours = kw.MKLClassifier(
        [Linear()],
        regularizer="uniform",
        normalize=None,
        class_weight="balanced",
        tol=1e-8,
        fit_intercept=False,
    ).fit(X, y, sample_weight=weight)
    theirs = LinearSVC(
        class_weight="balanced", loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6, random_state=0
    ).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-3, atol=1e-3)


def test_balanced_is_that_of_svc_with_weighted_counts(rng):
    """SVC counts samples: with repeated rows it has the factors that weights give here."""
    X, y, _ = _unbalanced(rng)
    times = rng.integers(1, 4, len(y))
    ours = kw.MKLClassifier(
        [RBF(gamma=0.5)], regularizer="uniform", normalize=None, class_weight="balanced", tol=1e-8
    ).fit(X, y, sample_weight=times.astype(float))
    theirs = SVC(gamma=0.5, class_weight="balanced", tol=1e-8).fit(
        np.repeat(X, times, axis=0), np.repeat(y, times)
    )
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-3, atol=1e-3)


def test_labels_are_positions_among_classes_with_weight():
    y = np.array(["c", "b", "a", "b"])
    classes, labels = encode_labels(y, np.array([1.0, 2.0, 0.0, 1.0]))
    assert classes.tolist() == ["b", "c"]
    assert labels.tolist() == [1, 0, 0]
    np.testing.assert_array_equal(class_factors(None, classes, labels, np.ones(3)), [1.0, 1.0])
