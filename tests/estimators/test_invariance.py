"""What must not matter: order, scale and seeds; and what a prediction may touch."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.gram import Predictor
from kernelweave.kernels import RBF, FunctionKernel, Kernel, Linear, Polynomial

KERNELS = [Linear(), RBF(gamma=0.05), RBF(gamma=0.3), Polynomial(degree=2)]
REGULARIZERS = [kw.LpNorm(p=1), kw.LpNorm(p=2), "uniform"]


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)
@pytest.mark.parametrize("normalize", ["variance", "spherical", "trace", "dimension", "center"])
def test_the_scale_of_a_kernel_does_not_matter(binary, normalize, regularizer):
    options = {"normalize": normalize, "regularizer": regularizer, "tol": 1e-8}
    one = kw.MKLClassifier([Linear(), RBF(gamma=0.3)], **options).fit(binary.X, binary.y)
    ten = kw.MKLClassifier([10.0 * Linear(), RBF(gamma=0.3)], **options).fit(binary.X, binary.y)
    np.testing.assert_allclose(one.weights_, ten.weights_, atol=1e-4)
    np.testing.assert_allclose(
        one.decision_function(binary.X_new), ten.decision_function(binary.X_new), atol=1e-4
    )


def test_the_scale_matters_without_normalisation(binary):
    one = kw.MKLClassifier([Linear(), RBF(gamma=0.3)], normalize=None).fit(binary.X, binary.y)
    ten = kw.MKLClassifier([10.0 * Linear(), RBF(gamma=0.3)], normalize=None).fit(binary.X, binary.y)
    assert np.abs(ten.weights_ - one.weights_).max() > 0.1


def test_a_fit_can_be_repeated(binary):
    models = [kw.MKLClassifier(random_state=0).fit(binary.X, binary.y) for _ in range(2)]
    np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)
    np.testing.assert_array_equal(
        models[0].predict_proba(binary.X_new), models[1].predict_proba(binary.X_new)
    )


def test_exchanging_the_labels_flips_the_decision(binary):
    one = kw.MKLClassifier(KERNELS, tol=1e-8).fit(binary.X, binary.y)
    two = kw.MKLClassifier(KERNELS, tol=1e-8).fit(binary.X, 1 - binary.y)
    np.testing.assert_allclose(
        one.decision_function(binary.X_new), -two.decision_function(binary.X_new), atol=2e-3
    )


def test_a_kernel_twice_shares_its_weight(binary):
    """p = inf: the sum of a kernel and itself is twice the kernel."""
    twice = kw.MKLClassifier([RBF(gamma=0.3)] * 2, regularizer="uniform", tol=1e-8).fit(binary.X, binary.y)
    double = kw.MKLClassifier([2.0 * RBF(gamma=0.3)], normalize=None, regularizer="uniform", tol=1e-8)
    scale = 1.0 / (1.0 - RBF(gamma=0.3)(binary.X).mean())
    double.set_params(kernels=[2.0 * scale * RBF(gamma=0.3)]).fit(binary.X, binary.y)
    np.testing.assert_allclose(
        twice.decision_function(binary.X_new), double.decision_function(binary.X_new), atol=1e-4
    )
    assert len(set(twice.kernel_names_)) == 2


def test_a_sum_of_kernels_is_one_kernel(binary):
    model = kw.MKLClassifier([Linear() + RBF(gamma=0.3), Linear() * RBF(gamma=0.3)]).fit(binary.X, binary.y)
    assert model.weights_.shape == (2,)


def test_the_solver_does_not_matter(binary):
    ours = kw.MKLClassifier(KERNELS, tol=1e-6).fit(binary.X, binary.y)
    other = kw.MKLClassifier(KERNELS, solver="interleaved", tol=1e-6).fit(binary.X, binary.y)
    np.testing.assert_allclose(ours.objective_, other.objective_, rtol=2e-6)
    np.testing.assert_allclose(ours.weights_, other.weights_, atol=1e-2)


# -- what a prediction touches ------------------------------------------------------------------


class Spy(Kernel):
    """A Gaussian kernel that writes down its name and the sizes of every block it computes."""

    calls: ClassVar[list[tuple[str, int, int]]] = []

    def __init__(self, gamma=1.0, title="", columns=None):
        self.gamma = gamma
        self.title = title
        self.columns = columns

    def _compute(self, X, Z):
        self.calls.append((self.title, X.shape[0], Z.shape[0]))
        return np.exp(-self.gamma * ((X[:, None] - Z[None]) ** 2).sum(axis=2))


@pytest.fixture
def spies():
    Spy.calls.clear()
    return {f"g{g}": Spy(gamma=g, title=f"g{g}") for g in (1e-3, 0.1, 0.3, 1.0, 100.0)}


def test_predictions_use_live_kernels_and_support_vectors_only(binary, spies):
    model = kw.MKLClassifier(spies, regularizer=kw.LpNorm(p=1)).fit(binary.X, binary.y)
    live = {name for name, weight in zip(model.kernel_names_, model.weights_, strict=True) if weight > 0}
    assert 0 < len(live) < 5
    assert 0 < len(model.support_) < 60
    # one square block a kernel in the fit, one thin block a live kernel in the prediction
    assert sorted(Spy.calls) == sorted((name, 60, 60) for name in spies)
    Spy.calls.clear()
    model.predict(binary.X_new)
    assert sorted(Spy.calls) == sorted((name, 30, len(model.support_)) for name in live)


@pytest.mark.parametrize("normalize", ["variance", "center", "trace", "dimension", None], ids=str)
def test_support_vectors_are_enough_under_every_normalisation(binary, spies, normalize):
    model = kw.MKLClassifier(spies, normalize=normalize).fit(binary.X, binary.y)
    Spy.calls.clear()
    model.decision_function(binary.X_new)
    assert {columns for _, _, columns in Spy.calls} == {len(model.support_)}


def test_all_classes_share_one_evaluation(four, spies):
    model = kw.MKLClassifier(spies).fit(four.X, four.y)
    assert sorted(Spy.calls) == sorted((name, 72, 72) for name in spies)
    Spy.calls.clear()
    model.predict_proba(four.X_new)
    assert len(Spy.calls) == 5


def test_precomputed_predictions_read_support_columns_only(binary, grams):
    """What stands in the columns of other training samples does not matter."""
    K, K_new = grams
    model = kw.MKLClassifier("precomputed").fit(K, binary.y)
    junk = K_new.copy()
    others = np.setdiff1d(np.arange(60), model.support_)
    assert len(others) > 0
    junk[:, others] = 1e9
    np.testing.assert_array_equal(model.decision_function(junk), model.decision_function(K_new))


def test_predictions_go_block_by_block(binary, spies, monkeypatch):
    model = kw.MKLClassifier(spies).fit(binary.X, binary.y)
    whole = model.decision_function(binary.X_new)
    Spy.calls.clear()
    monkeypatch.setattr(Predictor, "block_bytes", 7 * 8 * len(model.support_))
    np.testing.assert_allclose(model.decision_function(binary.X_new), whole, atol=1e-12)
    assert max(rows for _, rows, _ in Spy.calls) <= 7
    assert sum(rows for _, rows, _ in Spy.calls) == 30 * (model.weights_ > 0).sum()


def test_functions_gp_kernels_and_names_are_kernels_too(binary):
    from sklearn.gaussian_process import kernels as gp
    from sklearn.metrics.pairwise import cosine_similarity

    model = kw.MKLClassifier([cosine_similarity, gp.RBF(2.0), "linear", FunctionKernel(np.inner)])
    model.fit(binary.X, binary.y)
    assert model.weights_.shape == (4,)
    assert len(set(model.kernel_names_)) == 4
    assert model.score(binary.X, binary.y) > 0.8
