"""Newton's method for losses that couple samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from ..._linalg import positive_factor, product
from ..._typing import FloatArray
from ...gram.lowrank.engine import FactoredMatrix
from ..certificate import relative, scale_of
from ..problem import Problem, best_intercept
from .base import Machine, SingleSolver, Standstill
from .primal_newton import step_length

#: most products with the Hessian in one linear system, and the coarsest accuracy of one
MOST_PRODUCTS, COARSEST = 100, 0.1

#: eigenvalues below this share of the largest are rounding
NOTHING = 1e-13

#: a function that keeps vectors in a subspace
Projector = Callable[[FloatArray], FloatArray]

#: curvature below this share of the largest counts as that share in the preconditioner
FLAT = 1e-12

#: rows per column of a factor that are enough for a preconditioner
ENOUGH = 16


class JointNewton(SingleSolver):
    """Newton steps on  C L(y, K a + b) + 1/2 a' K a,  with a line search.

    With g and H the gradient and Hessian of L at f = K a + b, the direction solves

        (I + C H K) da + C H 1 db = -(a + C g),   sum(a + da) = 0 where there is an intercept

    by conjugate gradients in the inner product x' K z, in which I + C H K is symmetric: products with H and
    K, preconditioned by the same matrix with the bound diag(h) >= H of the loss. The dual point that belongs
    to f is alpha = -C g, and the machine's gap at it is 1/2 (a - alpha)' K (a - alpha).

    The inner product does not see vectors that K sends to zero. They change nothing, but where K has low rank
    they may grow until their rounding drowns everything else. If that happens, the steps begin again without
    them.

    Parameters
    ----------
    max_iter : int, default=100
    """

    name = "joint_newton"
    requires = ("curvature",)

    def __init__(self, max_iter: int = 100) -> None:
        self.max_iter = max_iter

    def solve_column(self, K: Any, problem: Problem, tol: float, alpha: FloatArray) -> Machine:
        machine, gap = self._descend(K, problem, tol, alpha, np.array)
        if gap <= tol:
            return machine
        inside = Range(K)
        if inside.is_everything:
            return machine
        again, found = self._descend(K, problem, tol, inside(alpha), inside)
        return again if found < gap else machine

    def _descend(
        self, K: Any, problem: Problem, tol: float, alpha: FloatArray, kept: Projector
    ) -> tuple[Machine, float]:
        """The machine and its gap, with all coefficients and steps in the subspace of a projector."""
        a, fitted = _best_multiple(K, problem, alpha)
        best, still = (np.inf, a), Standstill()
        for n_iter in range(self.max_iter + 1):
            b = best_intercept(problem, fitted)
            residual = a - problem.alpha_of(fitted + b)
            energy, apart = (abs(float(np.vdot(v, product(K, v)))) for v in (a, residual))
            primal = problem.primal_loss(fitted, b) + 0.5 * energy
            gap = relative(0.5 * apart, scale_of(problem, primal, primal - 0.5 * apart, 0.0))
            best = min(best, (gap, a), key=lambda pair: pair[0])
            # at least one step: the gap is small long before the norms of a are right
            if (n_iter and gap <= tol) or still(primal, gap):
                break
            system = System(K, problem, fitted + b, kept)
            step, db = system.direction(a, residual, min(COARSEST, gap**0.5))
            moved = product(K, step)
            t = _step_length(problem, a, fitted + b, step, moved, db)
            if t == 0.0:
                break
            a, fitted = a + t * step, fitted + t * moved
        return Machine(best[1], product(K, best[1]), n_iter), best[0]


def _best_multiple(K: Any, problem: Problem, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The multiple of alpha to start from, and K times it: alpha may come from other weights."""
    fitted = product(K, alpha)
    b = best_intercept(problem, fitted) + np.zeros_like(fitted)
    t = _step_length(problem, np.zeros_like(alpha), b, alpha, fitted, 0.0)
    return t * alpha, t * fitted


def _step_length(
    problem: Problem, a: FloatArray, f: FloatArray, step: FloatArray, moved: FloatArray, db: float
) -> float:
    """How far to go along a direction; 0 where nothing descends."""
    linear, square, along = float(np.vdot(a, moved)), float(np.vdot(step, moved)), moved + db

    def slope(t: float) -> float:
        return linear + t * square - float(np.vdot(problem.alpha_of(f + t * along), along))

    return step_length(slope)


class System:
    """I + C H K at predictions f, and its inverse.

    Parameters
    ----------
    K : ndarray of shape (n, n), FactoredMatrix or Matrix
    problem : Problem of one output
    f : ndarray of shape (n, 1)
        Intercept included.
    kept : callable, optional
        The projector onto a subspace that contains the range of K; solutions are looked for in it.
    """

    def __init__(self, K: Any, problem: Problem, f: FloatArray, kept: Projector = np.array) -> None:
        self.K, self.problem, self.f, self.kept = K, problem, f, kept
        self.cost = float(problem.C[0, 0])
        bound = self.cost * problem.joint("curvature", f)[0]
        self._product = problem.joint("hessian_at", f)[0]
        top = float(bound.max(initial=0.0))
        self.precondition = preconditioner(K, np.maximum(bound, FLAT * top)) if top > 0.0 else np.array

    def hessian(self, V: FloatArray) -> FloatArray:
        """C H V, for every column."""
        result: FloatArray = self.cost * self._product(V)
        return result

    def direction(self, a: FloatArray, residual: FloatArray, accuracy: float) -> tuple[FloatArray, float]:
        """(da, db) of the Newton step."""
        if not self.problem.fit_intercept:
            return self.solve(-residual, accuracy), 0.0
        right = np.hstack([-residual, self.hessian(np.ones_like(a))])
        x, ones = self.solve(right, accuracy).T
        db = (float(a.sum()) + float(x.sum())) / (float(ones.sum()) or 1.0)
        return (x - db * ones)[:, None], db

    def inverse_form(self, G: FloatArray, accuracy: float) -> FloatArray:
        """G' P G with P = (I + C H K)^-1 C H, within {x : sum(x) = 0} where there is an intercept.

        P is the inverse of K + (C H)^-1 where H has one.
        """
        right = np.column_stack([G, np.ones(len(G))]) if self.problem.fit_intercept else G
        curved = self.hessian(right)
        # x = curved - C H K x, also in the directions that K sends to zero
        form = right.T @ (curved - self.hessian(product(self.K, self.solve(curved, accuracy))))
        if self.problem.fit_intercept:
            last = form[-1, -1] or 1.0
            form = form[:-1, :-1] - np.outer(form[:-1, -1], form[-1, :-1]) / last
        return 0.5 * (form + form.T)

    def solve(self, right: FloatArray, accuracy: float) -> FloatArray:
        """(I + C H K)^-1 right, all columns at once."""
        x, residual = np.zeros_like(right), self.kept(right)
        p = self.kept(self.precondition(residual))
        Kp = product(self.K, p)
        size = _sums(Kp, residual)
        wanted = accuracy**2 * size
        for _ in range(MOST_PRODUCTS):
            image = self.kept(p + self.hessian(Kp))
            t = _ratios(size, _sums(Kp, image))
            x, residual = x + t * p, residual - t * image
            z = self.kept(self.precondition(residual))
            Kz = product(self.K, z)
            before, size = size, _sums(Kz, residual)
            if (size <= wanted).all():
                break
            share = _ratios(size, before)
            p, Kp = z + share * p, Kz + share * Kp
        return x


class Range:
    """The projector onto the range of K, up to rounding.

    Parameters
    ----------
    K : ndarray of shape (n, n), FactoredMatrix or Matrix
    """

    def __init__(self, K: Any) -> None:
        if isinstance(K, FactoredMatrix):
            vectors, sizes, _ = np.linalg.svd(K.rows(np.arange(len(K))), full_matrices=False)
            values = sizes**2
        else:
            values, vectors = np.linalg.eigh(np.asarray(K, dtype=np.float64))
        self.basis = vectors[:, values > NOTHING * values.max(initial=0.0)]

    @property
    def is_everything(self) -> bool:
        """Whether nothing is projected."""
        return bool(self.basis.shape[0] == self.basis.shape[1])

    def __call__(self, V: FloatArray) -> FloatArray:
        return np.asarray(self.basis @ (self.basis.T @ V))


def _sums(A: FloatArray, B: FloatArray) -> FloatArray:
    """Products of columns that belong together; values below zero by rounding become zero."""
    result: FloatArray = np.maximum(np.einsum("ij,ij->j", A, B), 0.0)
    return result


def _ratios(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0.0)


def preconditioner(K: Any, W: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """The map R -> (I + diag(W) K)^-1 R; with many samples and a K of low rank, W is approximated."""
    if isinstance(K, FactoredMatrix):
        W = drawn(W, ENOUGH * K.n_features)
        rows = np.flatnonzero(W)
        inner = K.weighted_gram(rows, W[rows])
        inner.flat[:: len(inner) + 1] += 1.0
        factor = positive_factor(inner)
        return lambda R: R - W[:, None] * K.apply(cho_solve(factor, K.adjoint(R), check_finite=False))
    S = np.sqrt(W)[:, None]
    A = S * np.asarray(K, dtype=np.float64) * S.T
    A.flat[:: len(A) + 1] += 1.0
    factor = positive_factor(A)
    return lambda R: S * cho_solve(factor, R / S, check_finite=False)


def drawn(W: FloatArray, count: int) -> FloatArray:
    """Weights that are zero for most rows, such that sums over all rows are nearly those by W.

    This is W itself, unless there are more than twice as many rows as the count. Otherwise this many rows are
    drawn, at equal steps along the running sum of W, each with the same weight: a row is drawn as often as
    its W requires.

    Examples
    --------
    >>> drawn(np.array([1.0, 2.0, 1.0]), 2)
    array([1., 2., 1.])
    >>> drawn(np.array([1.0, 1.0, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), 4)
    array([2., 0., 6., 0., 0., 0., 0., 0., 0.])
    """
    if len(W) <= 2 * count:
        return W
    along = np.cumsum(W)
    step = float(along[-1]) / count
    rows = np.searchsorted(along, (np.arange(count) + 0.5) * step)
    return np.bincount(np.minimum(rows, len(W) - 1), minlength=len(W)) * step
