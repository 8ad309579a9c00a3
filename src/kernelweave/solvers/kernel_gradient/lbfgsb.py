"""Quasi-Newton steps within bounds, by scipy's L-BFGS-B."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize

from ..._typing import FloatArray
from .objective import Objective, Point


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
        if not np.isfinite(found.value):
            return 1e10, np.zeros_like(u)  # the line search steps back
        return found.value / size, objective.slope(found) / size

    def report(intermediate_result: Any) -> None:
        accepted = seen[intermediate_result.x.tobytes()]
        seen.clear()
        seen[accepted.u.tobytes()] = accepted
        if record(accepted):
            raise StopIteration

    options = {"ftol": 0.0, "gtol": 0.0, "maxiter": 10**6, "maxfun": 10**6, "maxls": 30}
    shared: dict[str, Any] = {"bounds": Bounds(*objective.bounds()), "callback": report, "options": options}
    minimize(value_and_slope, point.u, jac=True, method="L-BFGS-B", **shared)
