"""Sindhwani & Lozano (2011): the value of the ridge, and the gain that follows from it."""

from __future__ import annotations

import numpy as np
import pytest

import kernelweave as kw


def test_section_3_the_gain_is_what_the_best_function_of_a_kernel_takes_off(rng):
    """min_g R_lambda(g, r) = lambda r' (K + lambda l I)^-1 r, and I = ||r||^2 / l less that, never negative.

    Both are printed without the 1/l of the loss; ||Q_j r||^2 / l with Q_j^2 = K_j (K_j + lambda l I)^-1.
    """
    n, ridge = 12, 0.05
    Ks, y = [F @ F.T for F in rng.normal(size=(4, n, 3))], rng.normal(size=n)
    model = kw.GroupOMPRegressor(
        "precomputed", alpha=ridge, n_kernels=2, tol=0.0, normalize=None, fit_intercept=False
    ).fit(Ks, y)

    def least(K, r):
        return ridge * float(r @ np.linalg.solve(K + ridge * n * np.eye(n), r))

    residual, chosen, total = y, [], np.zeros((n, n))
    for step in range(2):
        gains = np.array([residual @ residual / n - least(K, residual) for K in Ks])
        assert (gains >= 0).all()
        squares = [residual @ K @ np.linalg.solve(K + ridge * n * np.eye(n), residual) / n for K in Ks]
        np.testing.assert_allclose(gains, squares)
        gains[chosen] = -np.inf
        chosen.append(int(np.argmax(gains)))
        assert model.path_.gains[step] == pytest.approx(gains.max())
        total = total + Ks[chosen[-1]]
        residual = y - total @ np.linalg.solve(total + ridge * n * np.eye(n), y)
        assert model.path_.objective[step] == pytest.approx(least(total, y))
    assert list(model.selected_) == chosen
