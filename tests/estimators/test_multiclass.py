"""More than two classes: one-vs-rest, one-vs-one, and weights shared by all classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import kernelweave as kw
from kernelweave.kernels import RBF, Linear, Spectrum

KERNELS = {"linear": Linear(), "wide": RBF(gamma=0.1), "narrow": RBF(gamma=1.0)}

#: models and functions of four classes
COUNTS = {"ovr": (4, 4), "ovo": (6, 6), "shared": (1, 4)}


@pytest.mark.parametrize("scheme", COUNTS)
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_shapes_and_gaps(four, scheme, loss):
    model = kw.MKLClassifier(KERNELS, loss=loss, multiclass=scheme).fit(four.X, four.y)
    n_models, n_functions = COUNTS[scheme]
    n, n_new = len(four.X), len(four.X_new)
    assert model.weights_.shape == ((n_models, 3) if n_models > 1 else (3,))
    assert model.norms_.shape == model.weights_.shape
    assert model.dual_coef_.shape == (n_functions, n)
    assert model.intercept_.shape == (n_functions,)
    for name in ("dual_gap_", "objective_", "n_iter_"):
        assert np.shape(getattr(model, name)) == ((n_models,) if n_models > 1 else ())
    assert np.max(model.dual_gap_) <= model.tol
    assert len(model.history_) == n_models or n_models == 1
    assert model.decision_function(four.X_new).shape == (n_new, 4)
    assert model.predict_proba(four.X_new).shape == (n_new, 4)
    np.testing.assert_array_equal(model.classes_, [10, 11, 12, 13])
    np.testing.assert_array_equal(model.support_, np.flatnonzero(model.dual_coef_.any(axis=0)))


@pytest.mark.parametrize("scheme", COUNTS)
def test_classes_are_learned(four, flowers, scheme):
    assert kw.MKLClassifier(KERNELS, multiclass=scheme).fit(four.X, four.y).score(*four[2:]) > 0.7
    model = kw.MKLClassifier(KERNELS, multiclass=scheme).fit(flowers.X, flowers.y)
    assert model.score(*flowers[2:]) > 0.9


@pytest.mark.parametrize("scheme", COUNTS)
def test_string_labels(flowers, scheme):
    named = kw.MKLClassifier(KERNELS, multiclass=scheme).fit(flowers.X, flowers.y)
    assert list(named.classes_) == ["setosa", "versicolor", "virginica"]
    predicted = named.predict(flowers.X_new)
    assert predicted.dtype == flowers.y.dtype
    numbered = kw.MKLClassifier(KERNELS, multiclass=scheme)
    numbered.fit(flowers.X, np.unique(flowers.y, return_inverse=True)[1])
    np.testing.assert_array_equal(predicted, named.classes_[numbered.predict(flowers.X_new)])


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([-7, 3]),
    ],
    ids=["str", "object", "bool", "int"],
)
def test_two_classes_of_any_type(binary, labels):
    model = kw.MKLClassifier(KERNELS).fit(binary.X, labels[binary.y])
    plain = kw.MKLClassifier(KERNELS).fit(binary.X, binary.y)
    np.testing.assert_array_equal(model.predict(binary.X_new), labels[plain.predict(binary.X_new)])
    assert model.weights_.shape == (3,)
    assert model.dual_coef_.shape == (60,)
    assert isinstance(model.dual_gap_, float)
    assert model.decision_function(binary.X_new).shape == (30,)


def test_categorical_labels_of_a_series(flowers):
    target = pd.Series(flowers.y).astype("category")
    model = kw.MKLClassifier(KERNELS).fit(flowers.X, target)
    assert set(model.predict(flowers.X_new)) <= set(target.cat.categories)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_one_vs_rest_is_one_binary_model_a_class(four, loss):
    together = kw.MKLClassifier(KERNELS, loss=loss).fit(four.X, four.y)
    values = together.decision_function(four.X_new)
    for k, label in enumerate(together.classes_):
        alone = kw.MKLClassifier(KERNELS, loss=loss).fit(four.X, four.y == label)
        np.testing.assert_allclose(together.weights_[k], alone.weights_, atol=1e-10)
        np.testing.assert_allclose(values[:, k], alone.decision_function(four.X_new), atol=1e-10)
        np.testing.assert_allclose(together.objective_[k], alone.objective_)


def test_one_vs_one_is_one_binary_model_a_pair(four):
    """Without normalisation, whose constants come from all samples, each pair is a fit of its own."""
    together = kw.MKLClassifier(KERNELS, multiclass="ovo", normalize=None).fit(four.X, four.y)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    for k, pair in enumerate(pairs):
        rows = np.isin(four.y, together.classes_[list(pair)])
        alone = kw.MKLClassifier(KERNELS, normalize=None).fit(four.X[rows], four.y[rows])
        np.testing.assert_allclose(together.weights_[k], alone.weights_, atol=1e-8)
        np.testing.assert_allclose(together.dual_coef_[k][rows], alone.dual_coef_, atol=1e-8)


def test_one_vs_one_predicts_by_votes(four):
    model = kw.MKLClassifier(KERNELS, multiclass="ovo", normalize=None).fit(four.X, four.y)
    votes = np.zeros((len(four.X_new), 4))
    for i in range(4):
        for j in range(i + 1, 4):
            rows = np.isin(four.y, [10 + i, 10 + j])
            alone = kw.MKLClassifier(KERNELS, normalize=None).fit(four.X[rows], four.y[rows])
            winner = alone.predict(four.X_new) - 10
            votes[np.arange(len(votes)), winner] += 1
    ranked = np.sort(votes, axis=1)
    clear = ranked[:, -1] > ranked[:, -2]
    np.testing.assert_array_equal(model.predict(four.X_new)[clear], 10 + votes.argmax(axis=1)[clear])


def test_shared_weights_are_one_vector_with_the_constraint(four):
    model = kw.MKLClassifier(KERNELS, regularizer=kw.LpNorm(p=2), multiclass="shared").fit(four.X, four.y)
    assert model.weights_.shape == (3,)
    np.testing.assert_allclose(np.linalg.norm(model.weights_), 1.0, atol=1e-9)


def test_shared_weights_cannot_beat_separate_ones(four):
    """Every choice of shared weights is open to one-vs-rest too."""
    shared = kw.MKLClassifier(KERNELS, multiclass="shared", tol=1e-6).fit(four.X, four.y)
    apart = kw.MKLClassifier(KERNELS, tol=1e-6).fit(four.X, four.y)
    assert apart.objective_.sum() <= shared.objective_ * (1.0 + 1e-5)


def test_shared_and_separate_agree_when_weights_are_not_learned(four):
    shared = kw.MKLClassifier(KERNELS, regularizer="uniform", multiclass="shared", tol=1e-8)
    apart = kw.MKLClassifier(KERNELS, regularizer="uniform", tol=1e-8)
    np.testing.assert_allclose(
        shared.fit(four.X, four.y).decision_function(four.X_new),
        apart.fit(four.X, four.y).decision_function(four.X_new),
        atol=1e-3,
    )


@pytest.mark.parametrize("scheme", COUNTS)
def test_gram_matrices_are_computed_once_for_all_classes(four, scheme):
    calls = []

    def counted(A, B):
        calls.append((len(A), len(B)))
        return A @ B.T

    kw.MKLClassifier([counted], multiclass=scheme).fit(four.X, four.y)
    assert calls.count((72, 72)) == 1


@pytest.mark.parametrize("scheme", COUNTS)
def test_threads_change_nothing(four, scheme):
    one = kw.MKLClassifier(KERNELS, multiclass=scheme).fit(four.X, four.y)
    two = kw.MKLClassifier(KERNELS, multiclass=scheme, n_jobs=2).fit(four.X, four.y)
    np.testing.assert_array_equal(one.weights_, two.weights_)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.predict_proba(four.X_new), two.predict_proba(four.X_new))


def test_strings_in_and_strings_out():
    words = np.array([[word] for word in ["aabba", "ababa", "ccdcc", "cdcdc", "eeffe", "efefe"] * 3])
    labels = np.array(["ab", "ab", "cd", "cd", "ef", "ef"] * 3)
    model = kw.MKLClassifier([Spectrum(k=1), Spectrum(k=2)]).fit(words, labels)
    np.testing.assert_array_equal(model.predict(words), labels)
