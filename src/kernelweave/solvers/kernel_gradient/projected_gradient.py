"""Projected gradient with the Armijo rule: the paper's method."""

from __future__ import annotations

from collections.abc import Callable

from .objective import Objective, Point

#: share of the predicted decrease a step must reach, and the shortest step tried
SUFFICIENT, SHORTEST = 1e-4, 1e-12


def projected_gradient(objective: Objective, point: Point, record: Callable[[Point], bool]) -> None:
    """u <- P(u - t T'(u)), t halved until T falls enough; tries twice the last t first.

    Accepts when T(new) <= T(u) - 1e-4 T'(u)'(u - new), so T never rises. Ends when `record` says
    so, or when no step is short enough. Varma & Babu (2009), Algorithm 1; Bertsekas (1976).
    """
    slope = objective.slope(point)
    t = 1.0 / max(float(abs(slope).max(initial=0.0)), 1e-300)
    while True:
        slope, shortest = objective.slope(point), SHORTEST * t
        while True:
            trial = objective.project(point.u - t * slope)
            candidate = objective.evaluate(trial)
            if candidate.value <= point.value - SUFFICIENT * float(slope @ (point.u - trial)):
                break
            t *= 0.5
            if t < shortest:
                return
        if not candidate.value < point.value:
            return
        point, t = candidate, 2.0 * t
        if record(point):
            return
