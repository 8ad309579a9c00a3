"""Subrahmanya & Shin (2010): the algorithm in the space of the features, for linear kernels."""

from __future__ import annotations

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.kernels import Linear, per_group

GROUPS = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}

#: C_j of Table 1 for the coefficients of a group, given the squared norms x of all groups; M-FOCUSS with the
#: exponent 1 - p/2 in the place of the printed p - 1
TERMS = {
    "log": (kw.LogTerm(eps=1e-2), lambda x: 1.0 / (1e-2 + x)),
    "group lasso": (kw.GroupLassoTerm(), lambda x: x**-0.5),
    "M-FOCUSS": (kw.MFocussTerm(p=0.5), lambda x: 0.5 * x ** (0.25 - 1.0)),
    "MKL": (kw.MKLTerm(), lambda x: np.sqrt(x).sum() / np.sqrt(x)),
    "log and group lasso": (kw.LogTerm(eps=1e-2) + kw.GroupLassoTerm(), lambda x: 1.0 / (1e-2 + x) + x**-0.5),
}


@pytest.mark.parametrize("name", TERMS)
def test_algorithm_1_is_stationary_in_the_coefficients(name, rng):
    """mu X_g' (y - X w - b) = C_j w_g for every group kept: (1) to (3) at their fixed point.

    Algorithm 2 on the kernels X_g X_g' is Algorithm 1 on the columns: ||w_g|| by (10), d_g = 1/B_g (11).
    """
    term, slopes = TERMS[name]
    X = rng.normal(size=(30, 6))
    y = X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + 0.05 * rng.normal(size=30)
    model = kw.MKLRegressor(
        per_group(GROUPS, Linear()), regularizer=term, C=5.0, normalize=None, tol=1e-8, max_iter=3000
    ).fit(X, y)
    w = np.ravel(model.coef_)
    residual = y - X @ w - model.intercept_
    x = np.array([w[columns] @ w[columns] for columns in GROUPS.values()])
    np.testing.assert_allclose(model.norms_, np.sqrt(x), atol=1e-8)
    live = model.weights_ > 0
    B = slopes(np.maximum(x, 1e-300))
    np.testing.assert_allclose(model.weights_[live], 1.0 / B[live], rtol=1e-6)
    for g, columns in enumerate(GROUPS.values()):
        if live[g]:
            np.testing.assert_allclose(5.0 * X[:, columns].T @ residual, B[g] * w[columns], rtol=1e-5)
    assert live[0]
    assert residual.sum() == pytest.approx(0.0, abs=1e-8)


def test_section_4_weights_of_the_mkl_term_sum_to_one(rng):
    n = rng.gamma(1.0, size=6)
    weights = kw.MKLTerm().weights(n)
    np.testing.assert_allclose(weights, n / n.sum())
    assert weights.sum() == pytest.approx(1.0)
