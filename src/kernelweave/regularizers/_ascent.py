"""The largest value of a concave function of positive variables, for the correspondence of h and g."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray

Function = Callable[[FloatArray], float]
Gradient = Callable[[FloatArray], FloatArray]
#: log of the largest t at which t z is in the domain, and its derivative in log z
Edge = Callable[[FloatArray], tuple[float, FloatArray]]

LOW, HIGH = -40.0, 70.0  # scales exp(t) of the start that are looked at; beyond them are 0 and infinity
SHIFT = 2e-5  # of a logarithm, for differences
GOLDEN = 0.5 * (3.0 - 5.0**0.5)


@dataclass(frozen=True)
class Peak:
    """sup F and a point where it is reached, or nearly so when it lies at the boundary."""

    value: float
    point: FloatArray


@dataclass(frozen=True)
class Concave:
    """F(z), z > 0, concave, -inf outside a convex domain; all arguments below are u = log z.

    Parameters
    ----------
    value : callable
        F.
    gradient : callable, optional
        dF/dz inside the domain; else by differences.
    edge : callable, optional
        Where rays leave the domain; else found by bisection.
    scale_free : bool
        F(t z) = F(z); F need not be concave, then, but its maxima have to be one.
    """

    value: Function
    gradient: Gradient | None = None
    edge: Edge | None = None
    scale_free: bool = False

    def at(self, u: FloatArray) -> float:
        """F; -inf for what is not a number."""
        value = float(self.value(np.exp(np.clip(u, -300.0, 300.0))))
        return -np.inf if np.isnan(value) else value

    def slope(self, u: FloatArray) -> FloatArray:
        """dF/du where F is finite around u."""
        if self.gradient is not None:
            z = np.exp(np.clip(u, -300.0, 300.0))
            return np.asarray(z * self.gradient(z))
        return differences(self.at, u)

    def slope_inside(self, u: FloatArray, inward: float) -> FloatArray:
        """dF/du at the end u of a ray, from two points on it."""
        return 2.0 * self.slope(u + inward) - self.slope(u + 2.0 * inward)


def peak(F: Concave, start: FloatArray) -> Peak:
    """sup_{z>0} F(z), from the direction `start` > 0.

    Quasi-Newton steps on  psi(u) = max_t F(t exp(u)),  which is finite for every direction u when
    the domain holds a part of every ray; and searches along single coordinates, which get past
    kinks that belong to one (bounds d_m <= 1).
    """
    u = np.log(start)
    scales = log_sum(u) + np.array([LOW, HIGH])
    u, value, _ = _psi(F, u, scales)
    for attempt in range(10):
        swept, gained = sweep(F, u, value)
        if attempt > 0 and not gained > 1e-11 * abs(value):
            break
        u, value = climb(F, swept, scales)
    return Peak(value, np.exp(u))


def search(f: Callable[[float], float], low: float, high: float) -> tuple[float, int]:
    """argmax of a unimodal f(t), low <= t <= high.

    Also where it is: 0 inside, -1 or +1 at an end, of the interval or of where f > -inf.
    """
    left, middle, right = _bracket(f, low, high)
    best = f(middle)
    while right - left > 1e-8:
        upper = right - middle > middle - left
        t = middle + GOLDEN * ((right if upper else left) - middle)
        value = f(t)
        if value > best:
            left, middle, right, best = (middle, t, right, value) if upper else (left, t, middle, value)
        else:
            left, right = (left, t) if upper else (t, right)
    for end, limit, side in ((left, low, -1), (right, high, 1)):
        if end == limit and f(end) >= best:
            return end, side
        if f(end) == -np.inf:
            return _last_finite(f, middle, end), side
    return middle, 0


def search_ray(F: Concave, u: FloatArray, low: float, high: float) -> tuple[float, int]:
    """argmax_t F(t exp(u)), as `search`; by the root of the derivative when the gradient is known."""
    if F.edge is not None and high < HIGH and F.at(u + high) >= F.at(u + high - 1e-6):
        return high, 1
    found = _root(F, u, low, high) if F.gradient is not None else None
    return search(lambda t: F.at(u + t), low, high) if found is None else (found, 0)


def _root(F: Concave, u: FloatArray, low: float, high: float) -> float | None:
    """The zero of dF/dt near 0 by secant steps; None when they do not find it."""

    def rate(t: float) -> float:
        return float(F.slope(u + t).sum()) if F.at(u + t) > -np.inf else np.nan

    last, t = 0.0, 0.01
    before, now = rate(last), rate(t)
    size = abs(F.at(u))
    for _ in range(12):
        if abs(now) <= 1e-10 * size:
            return t
        falls = (now - before) * (t - last) < 0.0  # as the derivative of a concave function does
        step = -now * (t - last) / (now - before) if falls else np.nan
        if not (abs(step) <= 3.0 and low < t + step < high):
            return None
        last, before, t = t, now, t + step
        now = rate(t)
    return None


def _bracket(f: Callable[[float], float], low: float, high: float) -> tuple[float, float, float]:
    """left <= middle <= right around the argmax, by steps that double."""
    middle = min(max(0.0, low), high)
    best = f(middle)
    if best == -np.inf:
        tries = [sign * 2.0**k for k in range(-3, 7) for sign in (-1.0, 1.0)]
        middle = next((t for t in tries if low <= t <= high and f(t) > -np.inf), middle)
        best = f(middle)
    step = 0.125
    sign = 1.0 if f(min(middle + step, high)) > best else -1.0
    behind = min(max(middle - sign * step, low), high)
    while True:
        ahead = min(max(middle + sign * step, low), high)
        value = f(ahead)
        if value <= best:
            break
        behind, middle, best, step = middle, ahead, value, 2.0 * step
    return min(behind, ahead), middle, max(behind, ahead)


def _last_finite(f: Callable[[float], float], inside: float, outside: float) -> float:
    for _ in range(60):
        middle = 0.5 * (inside + outside)
        if middle in (inside, outside):
            break
        inside, outside = (middle, outside) if f(middle) > -np.inf else (inside, middle)
    return inside


def sweep(F: Concave, u: FloatArray, value: float) -> tuple[FloatArray, float]:
    """One search along every coordinate, and what it gained; a function with a gradient has no kinks."""
    before = value
    if not np.isfinite(value) or F.gradient is not None or F.edge is not None or F.scale_free:
        return u, 0.0
    for unit in np.eye(len(u)):
        t, _ = search(lambda t, unit=unit, u=u: F.at(u + t * unit), LOW, HIGH)  # type: ignore[misc]
        moved = F.at(u + t * unit)
        if moved > value:
            u, value = u + t * unit, moved
    return u, value - before


def climb(F: Concave, u: FloatArray, scales: FloatArray) -> tuple[FloatArray, float]:
    """BFGS on psi with a weak Wolfe search, which kinks do not stop (Lewis & Overton 2013)."""
    u, value, slope = _psi(F, u, scales)
    H: FloatArray = np.eye(len(u)) / max(abs(value), 1e-300)
    for _ in range(100 + 10 * len(u)):
        if not np.isfinite([value, *slope]).all() or float(np.abs(slope).max()) <= 1e-8 * abs(value):
            break
        step: FloatArray = H @ slope
        if not float(step @ slope) > 0.0:
            step = slope / float(np.abs(slope).max())
        step = step * min(1.0, 5.0 / float(np.abs(step).max()))
        moved = _wolfe(F, u, value, slope, step, scales)
        if moved is None:
            break
        H = _updated(H, moved[0] - u, slope - moved[2])
        gain = moved[1] - value
        u, value, slope = moved
        if gain <= 1e-13 * abs(value):
            break
    return u, value


def _wolfe(
    F: Concave, u: FloatArray, value: float, slope: FloatArray, step: FloatArray, scales: FloatArray
) -> tuple[FloatArray, float, FloatArray] | None:
    low, high, t, rise = 0.0, np.inf, 1.0, float(step @ slope)
    found = None
    for _ in range(20):
        new = _psi(F, u + t * step, scales)
        if new[1] == np.inf:
            return new
        if not new[1] > value + 1e-4 * t * rise:
            high = t
        elif float(new[2] @ step) > 0.9 * rise:
            found, low = new, t
        else:
            return new
        t = 0.5 * (low + high) if high < np.inf else 2.0 * t
    return found


def _updated(H: FloatArray, s: FloatArray, y: FloatArray) -> FloatArray:
    """The BFGS update of the inverse Hessian; none without curvature."""
    sy = float(s @ y)
    if sy <= 1e-12 * float(np.linalg.norm(s) * np.linalg.norm(y)):
        return H
    V = np.eye(len(s)) - np.outer(s, y) / sy
    return np.asarray(V @ H @ V.T + np.outer(s, s) / sy)


def _psi(F: Concave, u: FloatArray, scales: FloatArray) -> tuple[FloatArray, float, FloatArray]:
    """The best point on the ray of exp(u), its value, and the slope of psi there.

    `scales` bounds log(sum(z)); the upper bound reached with F > 0 means that sup F = +inf.
    """
    total = log_sum(u)
    low, high = scales - total
    if F.scale_free:
        u = u - total
        slope = F.slope(u)
        return u, F.at(u), slope - np.exp(u) * float(slope.sum())
    edge, turn = (np.inf, None) if F.edge is None else F.edge(np.exp(u))
    t, side = search_ray(F, u, low, min(high, edge))
    best, value = u + t, F.at(u + t)
    if t == high:
        return best, np.inf if value > 0 else value, np.zeros_like(u)
    if side == 0:
        return best, value, F.slope(best)
    if t == low:
        turn = -np.exp(u - total)  # of the bound on the sum
    slope = F.slope_inside(best, -side * 1.5 * SHIFT)
    turn = differences(lambda v: _end_of_ray(F, v, side), best) if turn is None else turn
    return best, value, slope + float(slope.sum()) * turn


def _end_of_ray(F: Concave, u: FloatArray, side: int) -> float:
    """log of the largest (side > 0) or smallest t near 1 at which t exp(u) is in the domain."""
    reach = 4.0 * SHIFT * side
    return _last_finite(lambda t: F.at(u + t), -reach, reach)


def log_sum(u: FloatArray) -> float:
    """log sum exp(u)."""
    top = float(u.max())
    return top + float(np.log(np.exp(u - top).sum()))


def differences(f: Callable[[FloatArray], float], u: FloatArray) -> FloatArray:
    """df/du by central differences."""
    shifts = SHIFT * np.eye(len(u))
    return np.array([f(u + e) - f(u - e) for e in shifts]) / (2.0 * SHIFT)
