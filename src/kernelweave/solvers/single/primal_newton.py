"""Newton's method on the primal problem, for matrices that come as factors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from ..._linalg import positive_factor
from ..._typing import FloatArray
from ...losses import Loss
from ..certificate import relative
from ..problem import Problem, best_intercept
from .base import Machine, SingleSolver, Standstill

#: accuracy of a step of the proximal point method: as a share of the accuracy asked for, and of the last gap
STEP_SHARE, STEP_PROGRESS = 0.3, 0.1

#: most steps of the proximal point method, and most that bring the gap down by less than a tenth
MOST_STEPS, MOST_IDLE = 50, 8

#: share of the slope along a direction that a step may leave, and most trials for it
SLOPE_LEFT, MOST_TRIALS = 0.1, 30

#: first and least width over which kinks are smoothed, both relative to the distance of the kinks, and how
#: much narrower the next width may be
WIDEST, NARROWEST, NARROWING = 1.0, 1e-9, 0.5

#: share of the samples that should be near a kink at first, if there is a solution to start from
NEAR = 0.1

#: if a step does not bring the gap down to this share, the next width is narrower
GOOD_STEP = 0.5


class PrimalNewton(SingleSolver):
    """Newton steps on  1/2 ||v||^2 + sum_i C_i V(y_i, (Z v + b)_i),  with K = Z Z'.

    The direction solves (I + Z'WZ) p = -gradient, W = C V'', by conjugate gradients; the preconditioner is
    the same matrix over some of the rows, or over all rows if they are few. Kinks of a piecewise linear loss
    are smoothed in steps of the proximal point method on the dual, until the duality gap of the loss itself
    is small enough: only rows near a kink have curvature (Li, Sun & Toh 2018 for this pair of methods).
    Everything is linear in the number of samples.

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

        There is at least one step: near the optimum the gap is small long before the norms of alpha are
        right.
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
    """The v with the least primal value among several."""
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
        """Whether no later step will be any better."""
        return not self.kinked or self.count >= MOST_STEPS or self.idle >= MOST_IDLE

    def next(self, alpha: FloatArray, gap: float) -> None:
        """Prepare the next step after a gap that is not small enough yet."""
        if gap > GOOD_STEP * self.gap:
            self.width = max(NARROWING * self.width, NARROWEST * self.unit)
        self.wanted = min(max(STEP_PROGRESS * gap, STEP_SHARE * self.tol), self.wanted)
        self.idle = 0 if gap < 0.9 * self.best else self.idle + 1
        self.best = min(gap, self.best)
        self.alpha, self.gap, self.count = alpha, gap, self.count + 1


def unit_of(problem: Problem, f: FloatArray) -> float:
    """The distance of the kinks, the unit of f; if all kinks are in one place, the size of f itself."""
    kinks = np.concatenate(problem.loss.kinks(problem.y))
    kinks = kinks[np.isfinite(kinks)][:, None]
    return float(np.abs(problem.centred(kinks)).max()) or float(np.abs(f).max()) or 1.0


def first_width(problem: Problem, alpha: FloatArray, f: FloatArray, unit: float) -> float:
    """A width within which some of the samples are near a kink, in units; wide if nothing is known."""
    if not (alpha - problem.start()).any():
        return WIDEST
    b = best_intercept(problem, f)
    away = np.min([np.abs(f + b - kink) for kink in problem.loss.kinks(problem.y)], axis=0)
    return float(np.clip(np.quantile(away, NEAR) / unit, NARROWEST, WIDEST))


def primal_gap(problem: Problem, point: Point, b: FloatArray, alpha: FloatArray, image: FloatArray) -> float:
    """Relative gap between the primal value at v and the dual value at alpha, with image = Z'alpha.

    It is the misfit of every sample plus 1/2 ||v||^2 + 1/2 ||Z'alpha||^2 - alpha' Z v = 1/2 ||v -
    Z'alpha||^2.
    """
    primal = problem.primal_loss(point.f, b) + 0.5 * float((point.v**2).sum())
    apart = float(problem.misfit(alpha, point.f + b).sum()) + 0.5 * float(((point.v - image) ** 2).sum())
    return relative(apart, primal)


def line_search(
    problem: Problem, point: Point, b: FloatArray, step: FloatArray, df: FloatArray, w: FloatArray
) -> Point | None:
    """The point along a direction where the slope of the primal objective has nearly vanished.

    The intercept moves as the curvatures w require. The objective is convex along the line, so its
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

    t = step_length(slope)
    return Point(point.v + t * step, point.f + t * df) if t > 0.0 else None


def step_length(slope: Callable[[float], float]) -> float:
    """Where a slope that rises from below zero has nearly vanished; 0 where it is not below zero."""
    start = slope(0.0)
    if not start < 0.0:
        return 0.0
    t, low, high = 1.0, (0.0, start), (np.inf, np.inf)
    for _ in range(MOST_TRIALS):
        here = slope(t)
        if abs(here) <= SLOPE_LEFT * abs(start):
            break
        low, high = ((t, here), high) if here < 0.0 else (low, (t, here))
        t = 2.0 * t if high[0] == np.inf else _between(low, high)
    return t


def _between(low: tuple[float, float], high: tuple[float, float]) -> float:
    """Where the chord through two pairs (place, slope) vanishes, but well inside the interval."""
    width = high[0] - low[0]
    share = -low[1] / (high[1] - low[1])
    return low[0] + width * min(max(share, 0.1), 0.9)


#: up to this many rows per feature the curvature is computed from all rows, and otherwise from this many
MOST_ROWS, SOME_ROWS = 60, 20

#: most products with the curvature in one Newton step
MOST_PRODUCTS = 30


def curvatures(problem: Problem, f: FloatArray) -> FloatArray:
    """W = C V'' of every sample, shape (n,)."""
    w = (problem.C * problem.loss.hessian(problem.y, f))[:, 0]
    return np.where(w > 1e-12 * w.max(initial=0.0), w, 0.0)


def direction(
    K: Any, w: FloatArray, gradient: FloatArray, v: FloatArray, tol: float, tied: bool
) -> FloatArray:
    """Newton direction in v; the intercept, at its best, follows.

    Parameters
    ----------
    K : FactoredMatrix
    w : ndarray of shape (n,)
        W.
    gradient, v : ndarray of shape (n_features, 1)
    tol : float
        Relative duality gap that is finally asked for.
    tied : bool
        Whether there is an intercept.
    """
    if not gradient.any():
        return np.zeros_like(gradient)
    curvature = Curvature(K, np.flatnonzero(w), w, tied and bool(w.any()))
    wanted = _accuracy(gradient, v, tol)
    return conjugate_gradients(curvature.product, curvature.precondition, -gradient[:, 0], wanted)[:, None]


def _accuracy(gradient: FloatArray, v: FloatArray, tol: float) -> float:
    """Relative accuracy of the linear system: finer near the optimum, where the steps converge fast."""
    size = float(np.linalg.norm(gradient)) / max(float(np.linalg.norm(v)), 1e-300)
    return float(np.clip(size, min(1e-2, tol), 0.1))


class Curvature:
    """I + Z'WZ, and its approximate inverse; with an intercept, Z is about its weighted mean.

    Parameters
    ----------
    K : FactoredMatrix
    curved : ndarray of int
        Rows with W > 0.
    w : ndarray of shape (n,)
    tied : bool
        Whether there is an intercept.
    """

    def __init__(self, K: Any, curved: Any, w: FloatArray, tied: bool) -> None:
        self.K, self.w, self.tied = K, w, tied
        self.exact = len(curved) <= MOST_ROWS * (K.n_features + 1)
        stride = 1 if self.exact else max(1, len(curved) // (SOME_ROWS * (K.n_features + 1)))
        some = curved[::stride]
        self.matrix = K.weighted_gram(some, stride * w[some], tied)
        self.matrix.flat[:: len(self.matrix) + 1] += 1.0
        self.factor = positive_factor(self.matrix)

    def product(self, p: FloatArray) -> FloatArray:
        """The matrix times p."""
        if self.exact:
            return np.asarray(self.matrix @ p)
        values = self.K.apply(p[:, None])[:, 0]
        if self.tied:
            values -= float(self.w @ values) / float(self.w.sum())
        result: FloatArray = p + self.K.adjoint((self.w * values)[:, None])[:, 0]
        return result

    def precondition(self, p: FloatArray) -> FloatArray:
        """The inverse over some of the rows, times p."""
        return np.asarray(cho_solve(self.factor, p, check_finite=False))


def conjugate_gradients(
    product: Callable[[FloatArray], FloatArray],
    precondition: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    accuracy: float,
) -> FloatArray:
    """Solve A x = right, A positive definite, to a relative residual in the norm of the preconditioner."""
    residual, x = right.copy(), np.zeros_like(right)
    z = precondition(residual)
    p, size = z, float(residual @ z)
    wanted = accuracy**2 * size
    for _ in range(MOST_PRODUCTS):
        Ap = product(p)
        t = size / float(p @ Ap)
        x, residual = x + t * p, residual - t * Ap
        z = precondition(residual)
        before, size = size, float(residual @ z)
        if size <= wanted:
            break
        p = z + (size / before) * p
    return x


class Smoothed:
    """The conjugate of V*(y, v) + (h / 2) (v - v0)^2, for a piecewise linear loss V.

    The added term keeps the dual variable near v0: minimising the sum of this loss over the samples is one
    step of the proximal point method on the dual problem (Rockafellar 1976), and if v0 is optimal, its
    solution is the solution for V itself, however large h is. For v0 = 0 it is the Moreau envelope of V. Its
    slope rises from s to s + 1 not at a kink k but between k + h (s - v0) and k + h (s + 1 - v0), and equals
    the slope of V elsewhere.

    Parameters
    ----------
    loss : Loss
        With `kinks`.
    width : float
        h.
    center : ndarray, default=0.0
        v0, one slope per sample.

    Examples
    --------
    >>> from kernelweave.losses import Hinge
    >>> Smoothed(Hinge(), 0.5).gradient(np.ones(3), np.array([0.0, 0.75, 2.0]))
    array([-1. , -0.5,  0. ])
    """

    separable, coupled = True, False

    def __init__(self, loss: Loss, width: float, center: FloatArray | float = 0.0) -> None:
        self.loss = loss
        self.width = width
        self.center = center

    @property
    def alpha_sum(self) -> float:
        """As for the loss."""
        return self.loss.alpha_sum

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        slope = self.gradient(y, f)
        near = f - self.width * (slope - self.center)
        return self.loss.value(y, near) + 0.5 * self.width * (slope**2 - np.square(self.center))

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        slope, rises = self._rises(y, f)
        for rise in rises:
            slope += np.clip(rise, 0.0, 1.0)
        return slope

    def hessian(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """1 / h where the slope rises, else 0."""
        _, rises = self._rises(y, f)
        return sum((rise > 0.0) & (rise < 1.0) for rise in rises) / self.width  # type: ignore[return-value]

    def conjugate(self, y: FloatArray, v: FloatArray) -> FloatArray:
        return self.loss.conjugate(y, v) + 0.5 * self.width * (v - self.center) ** 2

    def dual_box(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.loss.dual_box(y)

    def dual_curvature(self, y: FloatArray, a: FloatArray) -> FloatArray:
        return self.loss.dual_curvature(y, a) + self.width

    def size(self, y: FloatArray) -> FloatArray:
        return self.loss.size(y)

    def _rises(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """The slope left of all kinks, and how far it has risen at each of them: from 0 to 1."""
        kinks = self.loss.kinks(y)
        first = np.array(self.loss.gradient(y, kinks[0] - 1.0), dtype=np.float64)
        before = first - self.center
        return first, [(f - kink) / self.width - before - number for number, kink in enumerate(kinks)]
