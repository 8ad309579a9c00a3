"""Newton's method on the primal problem, for matrices that come as factors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ..certificate import relative
from ..problem import Problem, best_intercept
from ._curvature import curvatures, direction
from ._smoothed import Smoothed
from .base import Machine, SingleSolver, Standstill

#: accuracy of a step of the proximal point method: of that asked for, and of the gap before
STEP_SHARE, STEP_PROGRESS = 0.3, 0.1

#: most steps of the proximal point method, and most that bring the gap down by less than a tenth
MOST_STEPS, MOST_IDLE = 50, 8

#: share of the slope along a direction that a step may leave, and most trials for it
SLOPE_LEFT, MOST_TRIALS = 0.1, 30

#: width over which kinks are smoothed at first, the least, both relative to how far the kinks are apart, and
#: how much narrower the next may be
WIDEST, NARROWEST, NARROWING = 1.0, 1e-9, 0.5

#: share of the samples that are to be near a kink at first, when a solution is known to start from
NEAR = 0.1

#: a gap that a step has not brought down to this share asks for a narrower one
GOOD_STEP = 0.5


class PrimalNewton(SingleSolver):
    """Newton steps on  1/2 ||v||^2 + sum_i C_i V(y_i, (Z v + b)_i),  with K = Z Z'.

    The direction solves (I + Z'WZ) p = -gradient, W = C V'', by conjugate gradients; the same matrix
    over some of the rows is the preconditioner, over all of them when they are few. Kinks of a
    piecewise linear loss are smoothed in steps of the proximal point method on the dual, until the
    duality gap of the loss itself is small enough: only rows near a kink have curvature (Li, Sun & Toh
    2018 for this pair of methods). Everything is linear in the number of samples.

    Parameters
    ----------
    max_iter : int, default=100
        Most Newton steps for one width.

    Examples
    --------
    >>> from kernelweave.gram.lowrank import FactoredMatrix, StoredFactors
    >>> from kernelweave.losses import SquaredHinge
    >>> K = FactoredMatrix(StoredFactors([np.eye(2)]), np.ones(1))
    >>> problem = Problem(np.array([[1.0], [-1.0]]), SquaredHinge(), np.ones((2, 1)))
    >>> PrimalNewton().solve(K, problem, tol=1e-9).alpha.ravel().round(6)
    array([ 0.5, -0.5])
    """

    name = "primal_newton"

    def __init__(self, max_iter: int = 100) -> None:
        self.max_iter = max_iter

    def solve(self, K: Any, problem: Problem, tol: float, alpha: FloatArray | None = None) -> Machine:
        start = problem.start() if alpha is None else problem.feasible(alpha)
        known = K.join(K.start) if K.start and alpha is not None else None
        found = []
        for k in range(problem.shape[1]):
            candidates = [K.adjoint(start[:, k : k + 1])] + ([] if known is None else [known[:, k : k + 1]])
            found.append(self.solve_from(K, problem.column(k), tol, start[:, k : k + 1], candidates))
        points, alphas, counts = zip(*found, strict=True)
        coefficients = K.split(np.hstack([point.v for point in points]))
        fitted = np.hstack([point.f for point in points])
        return Machine(np.hstack(alphas), fitted, sum(counts), coefficients)

    def solve_from(
        self, K: Any, problem: Problem, tol: float, alpha: FloatArray, candidates: list[FloatArray]
    ) -> tuple[Point, FloatArray, int]:
        """The optimum of one output, its dual variables, and the steps it took from the best candidate v."""
        point = best_start(K, problem, candidates)
        steps = _Steps(problem, tol, alpha, point.f)
        while True:
            point, alpha, image = self.minimise(K, steps.problem(), steps.wanted, point)
            gap = primal_gap(problem, point, best_intercept(problem, point.f), alpha, image)
            if gap <= tol or steps.last:
                K.smoothing = steps.width / float(problem.C.mean())
                return point, alpha, steps.count
            steps.next(alpha, gap)

    def minimise(
        self, K: Any, problem: Problem, tol: float, point: Point
    ) -> tuple[Point, FloatArray, FloatArray]:
        """Newton steps from `point` to a relative gap of `tol`; the last point, its alpha and Z'alpha.

        One at least: near the optimum the gap is small long before the norms of alpha are right.
        """
        still = Standstill()
        for n_steps in range(self.max_iter):
            b = best_intercept(problem, point.f)
            alpha = problem.feasible(problem.alpha_of(point.f + b))
            image = K.adjoint(alpha)
            gap = primal_gap(problem, point, b, alpha, image)
            primal = problem.primal_loss(point.f, b) + 0.5 * float((point.v**2).sum())
            if (n_steps and gap <= tol) or still(primal, gap):
                break
            w = curvatures(problem, point.f + b)
            step = direction(K, w, point.v - image, point.v, tol, problem.fit_intercept)
            moved = line_search(problem, point, b, step, K.apply(step), w)
            if moved is None:
                break
            point = moved
        return point, alpha, image


@dataclass(frozen=True)
class Point:
    """Coefficients v of shape (n_features, 1) and f = Z v."""

    v: FloatArray
    f: FloatArray


def best_start(K: Any, problem: Problem, candidates: list[FloatArray]) -> Point:
    """The one of several v of least primal value."""
    points = [Point(v, K.apply(v)) for v in candidates]

    def primal(point: Point) -> float:
        loss = problem.primal_loss(point.f, best_intercept(problem, point.f))
        return loss + 0.5 * float((point.v**2).sum())

    return points[0] if len(points) == 1 else min(points, key=primal)


class _Steps:
    """The smooth problems that lead to a machine: steps of the proximal point method on its dual.

    Parameters
    ----------
    problem : Problem
    tol : float
    alpha : ndarray of shape (n, 1)
        Where to start, and the first dual variables to stay near.
    f : ndarray of shape (n, 1)
        K alpha.
    """

    def __init__(self, problem: Problem, tol: float, alpha: FloatArray, f: FloatArray) -> None:
        self.given, self.tol, self.alpha = problem, tol, alpha
        self.kinked = hasattr(problem.loss, "kinks")
        self.unit = unit_of(problem, f) if self.kinked else 1.0
        self.width = self.unit * first_width(problem, alpha, f, self.unit) if self.kinked else 0.0
        self.wanted = STEP_PROGRESS if self.kinked else tol
        self.gap, self.best, self.count, self.idle = 1.0, np.inf, 1, 0

    def problem(self) -> Problem:
        """The problem of this step."""
        if not self.kinked:
            return self.given
        loss: Any = Smoothed(self.given.loss, self.width, -self.alpha / self.given.C)
        return replace(self.given, loss=loss)

    @property
    def last(self) -> bool:
        """Whether no later step is going to be any better."""
        return not self.kinked or self.count >= MOST_STEPS or self.idle >= MOST_IDLE

    def next(self, alpha: FloatArray, gap: float) -> None:
        """Go on from a gap that is not small enough yet."""
        if gap > GOOD_STEP * self.gap:
            self.width = max(NARROWING * self.width, NARROWEST * self.unit)
        self.wanted = min(max(STEP_PROGRESS * gap, STEP_SHARE * self.tol), self.wanted)
        self.idle = 0 if gap < 0.9 * self.best else self.idle + 1
        self.best = min(gap, self.best)
        self.alpha, self.gap, self.count = alpha, gap, self.count + 1


def unit_of(problem: Problem, f: FloatArray) -> float:
    """How far the kinks are apart, the unit of f; of kinks that are all in one place, what f itself is."""
    kinks = np.concatenate(problem.loss.kinks(problem.y))
    return float(np.abs(problem.centred(kinks)).max()) or float(np.abs(f).max()) or 1.0


def first_width(problem: Problem, alpha: FloatArray, f: FloatArray, unit: float) -> float:
    """A width within which some of the samples are near a kink, in units; wide when nothing is known."""
    if not (alpha - problem.start()).any():
        return WIDEST
    b = best_intercept(problem, f)
    away = np.min([np.abs(f + b - kink) for kink in problem.loss.kinks(problem.y)], axis=0)
    return float(np.clip(np.quantile(away, NEAR) / unit, NARROWEST, WIDEST))


def primal_gap(problem: Problem, point: Point, b: FloatArray, alpha: FloatArray, image: FloatArray) -> float:
    """Relative gap between the primal value at v and the dual value at alpha, with image = Z'alpha.

    The misfit of every sample, and 1/2 ||v||^2 + 1/2 ||Z'alpha||^2 - alpha' Z v = 1/2 ||v - Z'alpha||^2.
    """
    primal = problem.primal_loss(point.f, b) + 0.5 * float((point.v**2).sum())
    apart = float(problem.misfit(alpha, point.f + b).sum()) + 0.5 * float(((point.v - image) ** 2).sum())
    return relative(apart, primal)


def line_search(
    problem: Problem, point: Point, b: FloatArray, step: FloatArray, df: FloatArray, w: FloatArray
) -> Point | None:
    """The point along a direction where the slope of the primal objective has nearly vanished.

    The intercept moves as the curvatures w have it. The objective is convex along the line, so its
    slope rises: a full step that has not passed the minimum by much is taken, else the sign change is
    bracketed. None where nothing descends.
    """
    energy = float((point.v * step).sum()), float((step**2).sum())
    total = float(w.sum()) if problem.fit_intercept else 0.0
    db = -float(w @ df[:, 0]) / total if total > 0 else 0.0
    f, along = point.f + b, df + db

    def slope(t: float) -> float:
        alpha = problem.alpha_of(f + t * along)
        rise = energy[0] + t * energy[1] + problem.loss.alpha_sum * db
        return rise - float(np.vdot(alpha, along))

    start = slope(0.0)
    if not start < 0.0:
        return None
    t, low, high = 1.0, (0.0, start), (np.inf, np.inf)
    for _ in range(MOST_TRIALS):
        here = slope(t)
        if abs(here) <= SLOPE_LEFT * abs(start):
            break
        low, high = ((t, here), high) if here < 0.0 else (low, (t, here))
        t = 2.0 * t if high[0] == np.inf else _between(low, high)
    return Point(point.v + t * step, point.f + t * df)


def _between(low: tuple[float, float], high: tuple[float, float]) -> float:
    """Where the chord through two (place, slope) vanishes, but well inside."""
    width = high[0] - low[0]
    share = -low[1] / (high[1] - low[1])
    return low[0] + width * min(max(share, 0.1), 0.9)
