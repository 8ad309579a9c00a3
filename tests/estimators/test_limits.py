"""Data at the limits of floating-point numbers: what cannot be learned from them is said, with the remedy."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import kernelweave as kw
from kernelweave.kernels import RBF, Linear

REGRESSORS = [kw.MKLRegressor([RBF()]), kw.GroupOMPRegressor([RBF()]), kw.GMKLRegressor()]


@pytest.fixture
def sample(rng):
    X = rng.normal(size=(60, 4))
    return X, X[:, 0] + np.sin(2.0 * X[:, 3]) + 0.3 * rng.normal(size=60)


@pytest.mark.parametrize("size", [1e-200, 1e200])
@pytest.mark.parametrize("model", [*REGRESSORS, kw.EmpiricalBayesRegressor([RBF()])], ids=repr)
def test_targets_whose_squares_are_no_numbers_are_refused(model, size, sample):
    X, y = sample
    with pytest.raises(ValueError, match="rescale y"):
        model.fit(X, y * size)


def test_costs_and_weights_that_overflow_are_refused(sample):
    X, y = sample
    with pytest.raises(ValueError, match=r"C=1e.300 must lie between"):
        kw.MKLRegressor([RBF()], C=1e300).fit(X, y)
    with pytest.raises(ValueError, match="rescale the weights"):
        kw.MKLRegressor([RBF()]).fit(X, y, sample_weight=np.full(60, 1e300))


@pytest.mark.parametrize(
    "model", [kw.EmpiricalBayesRegressor([Linear()]), kw.EmpiricalBayesClassifier([Linear()])]
)
def test_a_linear_kernel_far_from_zero_is_told(model, sample):
    X, y = sample
    y = np.sign(y) if isinstance(model, kw.EmpiricalBayesClassifier) else y
    with pytest.warns(UserWarning, match="rounding hides how: Linear. Centre and scale X"):
        model.fit(X + 1e6, y)


def test_the_evidence_does_not_see_a_moderate_offset(sample):
    X, y = sample
    model = kw.EmpiricalBayesRegressor([Linear()], tol=1e-6)
    here, there = (clone(model).fit(X + offset, y) for offset in (0.0, 1e4))
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=1e-4)


def test_columns_so_far_away_that_they_seem_constant(sample):
    X, y = sample
    with pytest.raises(ValueError, match="centre and scale X"):
        kw.MKLRegressor([Linear()]).fit(X + 1e8, y)
    with pytest.warns(UserWarning, match="weight 0: Linear. If the columns do vary, centre and scale X"):
        kw.MKLRegressor([Linear(), RBF()]).fit(X + 1e8, y)


@pytest.mark.parametrize("regularizer", ["elasticnet", kw.Wedge(), kw.LpNorm(1, form="penalty")], ids=str)
def test_a_constant_model_is_told(regularizer, sample):
    X, y = sample
    with pytest.warns(UserWarning, match="every kernel has weight 0, so the model is constant"):
        model = kw.MKLRegressor([Linear(), RBF()], regularizer=regularizer).fit(X, y * 1e-9)
    assert np.ptp(model.predict(X)) == 0.0
    assert model.dual_gap_ <= model.tol


def test_parts_given_by_name_have_parameters_too(sample):
    X, y = sample
    model = kw.MKLRegressor([Linear(), RBF()], loss="eps_insensitive").set_params(
        regularizer__p=1.5, loss__eps=0.2
    )
    same = kw.MKLRegressor(
        [Linear(), RBF()], loss=kw.losses.EpsInsensitive(eps=0.2), regularizer=kw.LpNorm(p=1.5)
    )
    np.testing.assert_array_equal(model.fit(X, y).weights_, same.fit(X, y).weights_)
