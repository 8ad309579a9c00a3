"""Two ways down in the parameters of a kernel: L-BFGS-B, and spectral projected gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize

from ..._typing import FloatArray
from .objective import Objective, Point

#: share of the predicted decrease that a step must reach
SUFFICIENT = 1e-4

#: values a new one is compared with, bounds of the spectral step, shortest part of a direction tried
MEMORY, STEPS, SHORTEST = 10, (1e-10, 1e10), 1e-9


def lbfgsb(objective: Objective, point: Point, record: Callable[[Point], bool]) -> None:
    """L-BFGS-B on T / size of T(start), whose line search makes T fall at every step.

    Byrd, Lu, Nocedal & Zhu (1995). Needs a box.
    """
    if not objective.constraint.separable:
        raise ValueError("solver='lbfgsb' takes only a Box as constraint: use solver='spectral'.")
    size, seen = point.size or 1.0, {point.u.tobytes(): point}

    def value_and_slope(u: FloatArray) -> tuple[float, FloatArray]:
        if u.tobytes() not in seen:
            seen[u.tobytes()] = objective.evaluate(u.copy())
        found = seen[u.tobytes()]
        if not np.isfinite(found.objective):
            return 1e10, np.zeros_like(u)  # the line search steps back
        return found.objective / size, objective.slope(found) / size

    def report(intermediate_result: Any) -> None:
        accepted = seen[intermediate_result.x.tobytes()]
        seen.clear()
        seen[accepted.u.tobytes()] = accepted
        if record(accepted):
            raise StopIteration

    options = {"ftol": 0.0, "gtol": 0.0, "maxiter": 10**6, "maxfun": 10**6, "maxls": 30}
    shared: dict[str, Any] = {"bounds": Bounds(*objective.bounds()), "callback": report, "options": options}
    minimize(value_and_slope, point.u, jac=True, method="L-BFGS-B", **shared)


def spectral_gradient(objective: Objective, point: Point, record: Callable[[Point], bool]) -> None:
    """u <- u + s (P(u - t T'(u)) - u) with the Barzilai-Borwein step t = s's / s'y.

    s is halved until T falls below the largest of the last 10 values, less 1e-4 of the predicted
    decrease: T may rise for a while. Birgin, Martinez & Raydan (2000), SPG2.
    """
    recent = [point.objective]
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
        recent = [*recent[1 - MEMORY :], point.objective]
        if record(point):
            return


def _search(
    objective: Objective, point: Point, direction: FloatArray, decrease: float, ceiling: float
) -> Point | None:
    s = 1.0
    while s >= SHORTEST and decrease < 0.0:
        candidate = objective.evaluate(objective.project(point.u + s * direction))
        if candidate.objective <= ceiling + SUFFICIENT * s * decrease:
            return candidate
        s *= 0.5
    return None


def _spectral_step(step: FloatArray, change: FloatArray, t: float) -> float:
    curvature = float(step @ change)
    return float(np.clip(step @ step / curvature, *STEPS)) if curvature > 0.0 else min(10.0 * t, STEPS[1])
