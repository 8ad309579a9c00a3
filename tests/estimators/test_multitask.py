"""Multi-task and overlapping groups: weights say how related tasks are; linear kernels are group lasso."""

from __future__ import annotations

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.kernels import Linear, per_task


def tasks(agree: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three linear tasks whose directions share a part `agree`; the task is the last column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(180, 5))
    task = np.repeat(np.arange(3), 60)
    own = rng.normal(size=(3, 5))
    direction = agree * rng.normal(size=5) + (1 - agree) * own
    y = (X * direction[task]).sum(axis=1) + 0.1 * rng.normal(size=180)
    return np.column_stack([X, task]), y


def shared_weight(agree: float) -> float:
    X, y = tasks(agree)
    kernels = per_task(Linear(columns=slice(0, 5)), task=5)
    model = kw.MKLRegressor(kernels, regularizer=kw.LpNorm(p=1), C=10.0).fit(X, y)
    shared = [m for m, name in enumerate(model.kernel_names_) if "shared" in name.lower()]
    assert len(shared) == 1
    return float(model.weights_[shared[0]])


def test_learned_weights_say_how_related_the_tasks_are():
    assert shared_weight(1.0) > 0.9
    assert shared_weight(0.0) < 0.5
    assert shared_weight(0.0) < shared_weight(0.6) < shared_weight(1.0)


def test_overlapping_groups_are_linear_kernels_on_overlapping_columns():
    """Latent group lasso: only the two groups that cover the informative columns are kept."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 12))
    y = X[:, 2:6].sum(axis=1) + 0.1 * rng.normal(size=150)
    groups = {f"{start}-{start + 3}": Linear(columns=slice(start, start + 4)) for start in range(0, 9, 2)}
    model = kw.MKLRegressor(groups, regularizer=kw.ElasticNet(l1_ratio=1.0), C=0.02, normalize=None).fit(X, y)
    assert {name for name, w in zip(model.kernel_names_, model.weights_, strict=True) if w > 1e-3} == {"2-5"}
    assert model.dual_gap_ <= 1e-3


def test_group_lasso_is_the_block_one_norm_of_linear_kernels():
    """The group lasso's own optimality: C ||X_g' residual|| = 1 where w_g != 0, at most 1 elsewhere."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 6))
    y = X[:, 0] - X[:, 1] + 0.2 * rng.normal(size=80)
    groups = {str(g): Linear(columns=[2 * g, 2 * g + 1]) for g in range(3)}
    model = kw.MKLRegressor(
        groups, regularizer=kw.ElasticNet(l1_ratio=1.0), C=0.05, normalize=None, tol=1e-8
    ).fit(X, y)
    residual = 0.05 * (y - model.predict(X))
    slopes = [np.linalg.norm(X[:, [2 * g, 2 * g + 1]].T @ residual) for g in range(3)]
    for slope, weight in zip(slopes, model.weights_, strict=True):
        assert slope == pytest.approx(1.0, abs=1e-3) if weight > 0 else slope <= 1.0 + 1e-3
