"""multiclass="joint": one machine of all classes with shared kernel weights."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import kernelweave as kw
from kernelweave.inspection import ContributionDisplay, KernelWeightsDisplay
from kernelweave.kernels import RBF, Linear
from kernelweave.losses import MulticlassHinge
from kernelweave.solvers import growing
from kernelweave.testing.estimators import contract, estimator_case

KERNELS = {"linear": Linear(), "wide": RBF(gamma=0.1), "narrow": RBF(gamma=1.0)}


@pytest.fixture(scope="module")
def joint(four):
    return kw.MKLClassifier(KERNELS, C=2.0, multiclass="joint", tol=1e-6, normalize=None).fit(four.X, four.y)


def test_the_certificate_is_that_of_public_attributes(joint, four):
    """P and D of docs/math.md, section 11, from weights_, dual_coef_ and intercept_."""
    Ks = np.array([kernel.fit(four.X)(four.X, four.X) for kernel in KERNELS.values()])
    alpha, own = joint.dual_coef_.T, four.y[:, None] == joint.classes_
    f = np.einsum("m,mij,jc->ic", joint.weights_, Ks, alpha) + joint.intercept_
    r = np.sqrt(np.einsum("ic,mij,jc->m", alpha, Ks, alpha))
    loss = 2.0 * ((f + ~own).max(axis=1) - f[own]).sum()
    primal = loss + 0.5 * np.linalg.norm(joint.weights_ * r, 4 / 3) ** 2
    dual = alpha[own].sum() - 0.5 * np.linalg.norm(r**2)
    assert_allclose(alpha.sum(axis=0), 0.0, atol=1e-8)
    assert_allclose(alpha.sum(axis=1), 0.0, atol=1e-8)
    assert joint.objective_ == pytest.approx(primal, rel=1e-8)
    assert -1e-10 <= (primal - dual) / primal <= 1.01e-6
    assert joint.dual_gap_ <= 1e-6
    assert_allclose(joint.norms_, joint.weights_ * r, rtol=1e-6)


def test_predictions_follow_the_values(joint, four):
    values = joint.decision_function(four.X_new)
    assert values.shape == (48, 4)
    assert_array_equal(joint.predict(four.X_new), joint.classes_[values.argmax(axis=1)])
    P = joint.predict_proba(four.X_new)
    assert_allclose(P.sum(axis=1), 1.0)
    assert_array_equal(P.argmax(axis=1), values.argmax(axis=1))
    assert joint.score(four.X, four.y) > 0.7
    assert joint.weights_.shape == (3,)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("promise", contract.promises, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("scheme", ["joint", "shared"])
def test_contract_with_four_classes(four, promise, scheme):
    model = kw.MKLClassifier([Linear(), RBF("weighted")], regularizer=kw.LpNorm(p=1), multiclass=scheme)
    promise(estimator_case(model, four.X[:48], four.y[:48], four.X_new))


def test_two_classes_are_the_usual_machine(binary):
    models = [kw.MKLClassifier(KERNELS, multiclass=scheme) for scheme in ("ovr", "joint")]
    one, other = (model.fit(binary.X, binary.y) for model in models)
    assert_array_equal(one.decision_function(binary.X_new), other.decision_function(binary.X_new))


def test_weights_of_samples_count_repeats(four):
    options = {"C": 2.0, "multiclass": "joint", "tol": 1e-7}
    weight = np.arange(72) % 3
    rows = np.repeat(np.arange(72), weight)
    weighted = kw.MKLClassifier(KERNELS, **options).fit(four.X, four.y, sample_weight=weight)
    repeated = kw.MKLClassifier(KERNELS, **options).fit(four.X[rows], four.y[rows])
    assert_allclose(weighted.weights_, repeated.weights_, atol=1e-3)
    values = [model.decision_function(four.X_new) for model in (weighted, repeated)]
    assert_allclose(*values, atol=2e-3)
    assert_allclose(*(model.predict_proba(four.X_new) for model in (weighted, repeated)), atol=1e-2)


@pytest.mark.slow
def test_class_weight_multiplies_the_cost(four):
    options = {"C": 2.0, "multiclass": "joint", "tol": 1e-6, "normalize": None}
    factor = np.where(four.y == 11, 3.0, 1.0)
    by_class = kw.MKLClassifier(KERNELS, class_weight={11: 3.0}, **options).fit(four.X, four.y)
    by_sample = kw.MKLClassifier(KERNELS, **options).fit(four.X, four.y, sample_weight=factor)
    values = [model.decision_function(four.X_new) for model in (by_class, by_sample)]
    assert_allclose(*values, atol=1e-3)


def test_model_file_and_frame(joint, four, tmp_path):
    kw.save_model(joint, tmp_path / "model.kw")
    loaded = kw.load_model(tmp_path / "model.kw")
    for method in ("predict", "decision_function", "predict_proba"):
        assert_array_equal(getattr(loaded, method)(four.X_new), getattr(joint, method)(four.X_new))
    assert set(joint.weights_frame()["model"]) == {"all classes"}


def test_inspection(joint, four):
    pytest.importorskip("matplotlib").use("Agg")
    assert len(KernelWeightsDisplay.from_estimator(joint).bars_) == 1
    display = ContributionDisplay.from_estimator(joint, four.X_new)
    assert list(display.function_names) == [10, 11, 12, 13]


@pytest.mark.slow
def test_a_growing_part_of_the_samples_leads_to_the_same_model(four, joint, monkeypatch):
    monkeypatch.setattr(growing, "FEWEST", 30)
    monkeypatch.setattr(growing, "PILOT_SAMPLES", 20)
    grown = clone(joint).set_params(gram="blocked", tol=1e-5).fit(four.X, four.y)
    assert grown.dual_gap_ <= 1e-5
    assert grown.objective_ == pytest.approx(joint.objective_, rel=1e-5)


def test_search_and_path(four):
    search = kw.MKLClassifierCV(KERNELS, Cs=[0.1, 1.0], cv=2, multiclass="joint").fit(four.X, four.y)
    assert search.best_score_ > 0.7
    assert search.best_estimator_.weights_.shape == (3,)
    path = kw.mkl_path(kw.MKLClassifier(KERNELS, multiclass="joint"), four.X, four.y, values=[0.1, 1.0])
    assert np.max(path.dual_gap) <= 1e-3


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (
            {"loss": "logistic"},
            "Logistic has no `multiclass`, required by multiclass='joint': use loss='hinge'",
        ),
        ({"approximation": "nystroem"}, "multiclass='joint' .* approximation=None"),
        ({"solver": "interleaved"}, "MulticlassHinge has no `linear_dual`, required by Interleaved"),
        ({"loss": MulticlassHinge()}, "is not for MKLClassifier"),
    ],
)
def test_what_it_is_not_for(four, params, words):
    with pytest.raises(ValueError, match=words):
        kw.MKLClassifier(KERNELS, multiclass="joint", **params).fit(four.X, four.y)
