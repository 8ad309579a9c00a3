"""`stationarity_`: one name on every estimator for what was proved about a fit."""

from __future__ import annotations

from inspect import getdoc

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import kernelweave as kw
from kernelweave.app.cli._facts import certificate as facts
from kernelweave.kernels import RBF, Linear
from kernelweave.persistence.classes import find_class, own_classes
from kernelweave.regularizers import LogTerm

from ..targets import targets_for

KERNELS = {"linear": Linear(), "rbf": RBF(gamma=0.3)}

ESTIMATORS = [find_class(key) for key in own_classes() if key.startswith("model:")]


def example(cls):
    if cls.__name__.startswith("GMKL"):
        return cls()
    options = {"Cs": [1.0], "cv": 2} if "MKL" in cls.__name__ and cls.__name__.endswith("CV") else {}
    options = (
        {"alphas": [0.1], "cv": 2}
        if cls.__name__.startswith("GroupOMP") and "CV" in cls.__name__
        else options
    )
    return cls(KERNELS, **options)


def fitted(cls, data):
    model, numbers = example(cls), data.X[:, 0] + np.sin(2.0 * data.X[:, 1])
    return model.fit(data.X, *targets_for(model, numbers, data.y))


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_every_estimator_has_and_documents_it(cls, binary):
    model = fitted(cls, binary)
    tol = 1e-6 if cls.__name__.startswith("GroupOMP") else getattr(model, "best_estimator_", model).tol
    assert 0.0 <= float(np.max(model.stationarity_)) <= tol
    attributes = getdoc(cls).split("Attributes")[1]
    assert "stationarity_" in attributes
    assert "residual_" not in attributes


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_the_command_line_and_the_report_read_it(cls, binary):
    model = fitted(cls, binary)
    model = getattr(model, "best_estimator_", model)
    proof = facts(model)
    if cls.__name__.startswith("GroupOMP"):
        assert proof["kind"] == "greedy path"
    else:
        assert proof["value"] == float(np.max(model.stationarity_))


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_of_a_convex_fit_it_is_the_duality_gap(loss, binary):
    model = kw.MKLClassifier(KERNELS, loss=loss).fit(binary.X, binary.y)
    assert model.stationarity_ == model.dual_gap_


def test_of_a_concave_penalty_it_is_the_change_of_one_more_update(binary):
    """d_m is where h of the norms puts it: recomputed from the norms of the fitted model."""
    model = kw.MKLClassifier(KERNELS, regularizer=LogTerm(), tol=1e-4).fit(binary.X, binary.y)
    assert np.isinf(model.dual_gap_)
    live = model.weights_ > 0
    asked = LogTerm().weights(model.norms_)[live]
    change = np.abs(asked - model.weights_[live]) / np.maximum(asked, model.weights_[live])
    assert change.max() <= model.stationarity_ * (1 + 1e-6) + 1e-9
    assert model.stationarity_ <= 1e-4


@pytest.mark.parametrize("loss", ["squared", "hinge", "logistic"])
def test_of_a_greedy_fit_it_is_the_gap_among_functions_of_its_kernels(loss, binary):
    """J - D with D = max_alpha of the dual, at the dual variables of the fit, from the definitions."""
    clf = kw.GroupOMPClassifier(RBF(gamma=0.3), loss=loss, normalize=None, fit_intercept=False, alpha=0.05)
    clf.fit(binary.X, binary.y)
    y, a, n = 2.0 * binary.y - 1.0, clf.dual_coef_, len(binary.y)
    K, C = rbf_kernel(binary.X, gamma=0.3), 1.0 / (0.05 * n)
    V = kw.losses.LOSSES[loss]()
    primal = C * V.value(y, K @ a).sum() + 0.5 * a @ K @ a
    dual = -C * V.conjugate(y, -a / C).sum() - 0.5 * a @ K @ a
    assert clf.stationarity_ == pytest.approx((primal - dual) / primal, abs=1e-9)


def test_the_old_name_warns_and_answers(binary):
    model = kw.MKLClassifier(KERNELS).fit(binary.X, binary.y)
    with pytest.warns(FutureWarning, match="`residual_` is deprecated: use `stationarity_`"):
        assert model.residual_ == model.stationarity_
    assert "residual_" not in vars(model)
    with pytest.raises(AttributeError, match="stationarity_"):
        kw.MKLClassifier(KERNELS).residual_  # noqa: B018
