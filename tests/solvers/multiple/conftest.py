"""The range of p, for all solvers over kernel weights."""

from __future__ import annotations

import numpy as np
import pytest

ORDERS = [1.0, 32 / 31, 4 / 3, 2.0, 4.0, np.inf]


@pytest.fixture(params=ORDERS, ids=lambda p: f"p={p:.4g}")
def p(request: pytest.FixtureRequest) -> float:
    return request.param
