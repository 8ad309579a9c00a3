"""Norms and lp regularisers shared by the tests of regularisers."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.regularizers import LpNorm

ORDERS = [1.0, 32 / 31, 4 / 3, 2.0, 4.0, np.inf]


@pytest.fixture(params=ORDERS, ids=lambda p: f"p={p:.4g}")
def lp(request: pytest.FixtureRequest) -> LpNorm:
    return LpNorm(p=request.param)


@pytest.fixture
def norms(rng: np.random.Generator) -> np.ndarray:
    """Component norms of 20 draws of 5 kernels."""
    return rng.gamma(1.0, size=(20, 5)) + 0.01
