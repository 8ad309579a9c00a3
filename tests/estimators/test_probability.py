"""Class probabilities: the loss's own link, or calibrated on leave-one-out margins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.kernels import RBF, Linear

KERNELS = [Linear(), RBF(gamma=0.3)]
LOSSES = ["hinge", "squared_hinge", "logistic", "squared", "eps_insensitive", "huber"]


@pytest.mark.parametrize("scheme", ["ovr", "ovo", "shared"])
@pytest.mark.parametrize("loss", LOSSES)
def test_probabilities_are_a_distribution(flowers, loss, scheme):
    model = kw.MKLClassifier(KERNELS, loss=loss, multiclass=scheme).fit(flowers.X, flowers.y)
    proba = model.predict_proba(flowers.X_new)
    assert (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict_log_proba(flowers.X_new), np.log(proba), atol=1e-9)


@pytest.mark.parametrize("scheme", ["ovr", "shared"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_likeliest_class_is_the_predicted_one(four, loss, scheme):
    model = kw.MKLClassifier(KERNELS, loss=loss, multiclass=scheme).fit(four.X, four.y)
    X = np.vstack([four.X, four.X_new])
    likeliest = model.classes_[model.predict_proba(X).argmax(axis=1)]
    np.testing.assert_array_equal(likeliest, model.predict(X))


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_likelier_of_two_classes_is_the_predicted_one(loss, class_weight):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X[:, 0] + rng.normal(size=300) > 1.0
    model = kw.MKLClassifier(KERNELS, loss=loss, class_weight=class_weight).fit(X[:150], y[:150])
    likelier = model.classes_[model.predict_proba(X).argmax(axis=1)]
    np.testing.assert_array_equal(likelier, model.predict(X))


@pytest.mark.parametrize("loss", LOSSES)
def test_probabilities_rise_with_the_margin(binary, loss):
    model = kw.MKLClassifier(KERNELS, loss=loss).fit(binary.X, binary.y)
    order = np.argsort(model.decision_function(binary.X_new))
    assert (np.diff(model.predict_proba(binary.X_new)[order, 1]) >= 0).all()


def test_logistic_has_its_own_link(binary, four):
    model = kw.MKLClassifier(KERNELS, loss="logistic").fit(binary.X, binary.y)
    positive = expit(model.decision_function(binary.X_new))
    np.testing.assert_allclose(model.predict_proba(binary.X_new), np.column_stack([1 - positive, positive]))
    model = kw.MKLClassifier(KERNELS, loss="logistic").fit(four.X, four.y)
    scores = expit(model.decision_function(four.X_new))
    np.testing.assert_allclose(model.predict_proba(four.X_new), scores / scores.sum(axis=1, keepdims=True))


@pytest.fixture(scope="module")
def tumours():
    X, y = load_breast_cancer(return_X_y=True)
    a, b, y_a, y_b = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    scaler = StandardScaler().fit(a)
    return scaler.transform(a), y_a, scaler.transform(b), y_b


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_calibrated_hinge_is_as_good_as_cross_validated_calibration(tumours, C):
    X, y, X_new, y_new = tumours
    model = kw.MKLClassifier(KERNELS, C=C)
    own = log_loss(y_new, model.fit(X, y).predict_proba(X_new))
    reference = log_loss(y_new, CalibratedClassifierCV(model, cv=5).fit(X, y).predict_proba(X_new))
    assert own <= 1.15 * reference


@pytest.mark.parametrize("scheme", ["ovr", "ovo", "shared"])
def test_calibrated_hinge_on_several_classes(four, scheme):
    """Overlapping classes: raw margins as probabilities would be far off."""
    model = kw.MKLClassifier(KERNELS, multiclass=scheme)
    own = log_loss(four.y_new, model.fit(four.X, four.y).predict_proba(four.X_new))
    calibrated = CalibratedClassifierCV(model, cv=5).fit(four.X, four.y)
    assert own <= 1.15 * log_loss(four.y_new, calibrated.predict_proba(four.X_new))


def test_noise_gets_probabilities_near_the_class_shares():
    """Where nothing can be learned, leave-one-out margins know it; training margins do not."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.permutation(np.arange(200) % 2)
    model = kw.MKLClassifier([RBF(gamma=1.0)], C=10.0).fit(X, y)
    assert model.score(X, y) > 0.95  # it remembers
    proba = model.predict_proba(rng.normal(size=(200, 5)))[:, 1]
    assert np.abs(proba - 0.5).mean() < 0.15
