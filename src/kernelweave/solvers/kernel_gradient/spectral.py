"""Spectral projected gradient with a non-monotone line search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._typing import FloatArray
from .objective import Objective, Point

#: share of the predicted decrease that a step must reach
SUFFICIENT = 1e-4

#: values a new one is compared with, bounds of the spectral step, shortest part of a direction tried
MEMORY, STEPS, SHORTEST = 10, (1e-10, 1e10), 1e-9


def spectral_gradient(objective: Objective, point: Point, record: Callable[[Point], bool]) -> None:
    """u <- u + s (P(u - t T'(u)) - u) with the Barzilai-Borwein step t = s's / s'y.

    s is halved until T falls below the largest of the last 10 values, less 1e-4 of the predicted
    decrease: T may rise for a while. Birgin, Martinez & Raydan (2000), SPG2.
    """
    recent = [point.value]
    slope = objective.slope(point)
    t = 1.0 / max(float(np.abs(slope).max(initial=0.0)), 1e-300)
    while True:
        direction = objective.project(point.u - t * slope) - point.u
        candidate = _search(objective, point, direction, float(slope @ direction), max(recent))
        if candidate is None:
            return
        after = objective.slope(candidate)
        t = _spectral_step(candidate.u - point.u, after - slope, t)
        point, slope = candidate, after
        recent = [*recent[1 - MEMORY :], point.value]
        if record(point):
            return


def _search(
    objective: Objective, point: Point, direction: FloatArray, decrease: float, ceiling: float
) -> Point | None:
    s = 1.0
    while s >= SHORTEST and decrease < 0.0:
        candidate = objective.evaluate(objective.project(point.u + s * direction))
        if candidate.value <= ceiling + SUFFICIENT * s * decrease:
            return candidate
        s *= 0.5
    return None


def _spectral_step(step: FloatArray, change: FloatArray, t: float) -> float:
    curvature = float(step @ change)
    return float(np.clip(step @ step / curvature, *STEPS)) if curvature > 0.0 else min(10.0 * t, STEPS[1])
