"""Every registered loss, some at more than one parameter, with targets it accepts."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.losses import LOSSES, EpsInsensitive, Huber, Loss

EXTRA = [EpsInsensitive(eps=0.0), EpsInsensitive(eps=0.6), Huber(delta=0.3)]


@pytest.fixture(params=[cls() for cls in LOSSES.values()] + EXTRA, ids=repr)
def loss(request: pytest.FixtureRequest) -> Loss:
    return request.param


@pytest.fixture
def y(loss: Loss, rng: np.random.Generator) -> np.ndarray:
    """Both labels, or real targets; 400 of them, so that random points are many."""
    labels = np.where(np.arange(400) % 2 == 0, 1.0, -1.0)
    return {"classification": labels, "one_class": np.ones(400)}.get(loss.task, rng.normal(size=400))


@pytest.fixture
def inside(loss: Loss, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Random points strictly inside the dual box, cut off at 3 where it is infinite."""
    lower, upper = (np.clip(bound, -3.0, 3.0) for bound in loss.dual_box(y))
    return lower + rng.uniform(0.02, 0.98, size=y.shape) * (upper - lower)


@pytest.fixture
def away_from_kinks(loss: Loss, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Random f at least 1e-3 away from every point where the slope jumps."""
    f = rng.normal(scale=2.0, size=y.shape)
    kinks = loss.kinks(y) if hasattr(loss, "kinks") else []
    for kink in kinks:
        f = np.where(np.abs(f - kink) < 1e-3, f + 3e-3, f)
    return f
