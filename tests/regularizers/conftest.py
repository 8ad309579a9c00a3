"""Every registered convex regulariser over its parameters; concave terms are in test_concave.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kernelweave.regularizers import REGULARIZERS, BlockNorm, ElasticNet, LpNorm, Regularizer

ORDERS = [1.0, 32 / 31, 4 / 3, 2.0, 4.0, np.inf]
CONVEX = [cls() for cls in REGULARIZERS.values() if cls.convex]
ALL = (
    CONVEX
    + [LpNorm(p=p) for p in ORDERS]
    + [LpNorm(p=p, form="penalty") for p in ORDERS]
    + [ElasticNet(ratio) for ratio in (0.0, 0.1, 0.9, 1.0)]
    + [BlockNorm(q) for q in (1.0, 1.5)]
)


@pytest.fixture(params=ALL, ids=repr)
def regularizer(request: pytest.FixtureRequest) -> Regularizer:
    return request.param


@pytest.fixture(params=ORDERS, ids=lambda p: f"p={p:.4g}")
def lp(request: pytest.FixtureRequest) -> LpNorm:
    return LpNorm(p=request.param)


@pytest.fixture
def norms(rng: np.random.Generator) -> np.ndarray:
    """Component norms of 20 draws of 5 kernels."""
    return rng.gamma(1.0, size=(20, 5)) + 0.01


@pytest.fixture
def feasible() -> Callable[..., np.ndarray]:
    """Random weights of finite price, many of them on the edge of the set where it is finite."""

    def draw(regularizer: Regularizer, rng: np.random.Generator, count: int, size: int) -> np.ndarray:
        points = rng.gamma(0.5, size=(count, size)) + 1e-9
        points[::3] = -np.sort(-points[::3], axis=1)  # some in decreasing order, for ordered weights
        edges = np.array([edge(regularizer, point) for point in points])
        depth = np.where(np.arange(count) % 2 == 0, 1.0, rng.uniform(size=count))
        return points * (edges * depth)[:, None]

    return draw


def edge(regularizer: Regularizer, point: np.ndarray) -> float:
    """The largest t in [0, 1e3] at which t * point has a finite price, from below."""
    low, high = 0.0, 1e3
    if np.isfinite(regularizer.price(high * point)):
        return high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.isfinite(regularizer.price(middle * point)) else (low, middle)
    return low
