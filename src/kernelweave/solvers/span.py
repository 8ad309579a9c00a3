"""The problem within the span of a few dual points: a small problem with nearly the same solution."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray, IntArray
from ..gram import DenseGram, Gram
from ..regularizers import Regularizer
from .base import MKLSolver, State
from .certificate import certificate
from .problem import Problem

#: share of a dual point that has to lie outside the span for the point to widen it
OUTSIDE = 1e-6


class FewSamples(DenseGram):
    """Matrices so small that all of them are multiplied as one array, shape (M, k, k).

    Examples
    --------
    >>> FewSamples(np.ones((3, 2, 2))).quad(np.ones((2, 1)))
    array([4., 4., 4.])
    """

    def __init__(self, matrices: FloatArray) -> None:
        super().__init__(matrices)
        self.stack = matrices

    def combine(self, weights: FloatArray) -> FloatArray:
        return np.asarray(np.tensordot(weights, self.stack, 1))

    def quad(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        chosen = self.stack if kernels is None else self.stack[kernels]
        return np.asarray(((chosen @ alpha) * alpha).sum(axis=(1, 2)))

    def products(
        self, alpha: FloatArray, kernels: IntArray | None = None, rows: IntArray | None = None
    ) -> FloatArray:
        found = (self.stack if kernels is None else self.stack[kernels]) @ alpha
        return np.asarray(found if rows is None else found[:, rows])

    def quad_and_products(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        if alpha.shape[1] > 1:
            return super().quad_and_products(alpha)
        found = self.products(alpha[:, 0])
        return found @ alpha[:, 0], found

    def _diagonals(self) -> FloatArray:
        return np.diagonal(self.stack, axis1=1, axis2=2)


class Span:
    """Dual points alpha = sum_k c_k a_k; the best of them for a problem is found without its kernels.

    For the squared loss, and a_k with sum_i a_ik a_il / C_i = [k = l] at the costs C_i of `problem`,

        D = sum_k c_k z_k - 1/2 sum_k c_k^2 / t - Omega*(r),   z_k = a_k' y,   r_m^2 = c' (A' K_m A) c

    at t times these costs: the dual of a problem with a few samples, of targets z, matrices A' K_m A and no
    intercept. Its solution has weights, alpha = A c, and with K_m A at hand

        f = sum_m d_m K_m A c,   s_m = c' A' K_m A c

    so that the certificate on all samples takes no pass over the kernels. Solutions are smooth in log t, so
    the solutions at a few costs span the others almost exactly (a reduced basis).

    Parameters
    ----------
    problem : Problem
        Of a `quadratic` loss.
    gram : Gram

    Examples
    --------
    >>> from kernelweave.losses import Squared
    >>> from kernelweave.regularizers import LpNorm
    >>> from kernelweave.solvers.multiple import Alternating
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> gram = DenseGram([x @ x.T, np.exp(-((x - x.T) ** 2))])
    >>> problem = Problem(x + x**2, Squared(), np.ones((20, 1)))
    >>> span, solver = Span(problem, gram), Alternating()
    >>> for cost in (0.1, 0.5, 2.0, 10.0):
    ...     span.add(solver.solve(problem.at_cost(cost), gram, LpNorm(p=2)).state.alpha)
    >>> span.best(1.0, LpNorm(p=2), solver).certificate.gap < 1e-3
    True
    """

    def __init__(self, problem: Problem, gram: Gram) -> None:
        self.problem, self.gram, self.size = problem, gram, 0
        self.small: FewSamples
        self._targets = problem.centred(problem.y).ravel()
        self._costs = np.broadcast_to(problem.C, problem.y.shape).ravel()
        self._points = np.empty((0, problem.y.size))
        self._products = np.empty((0, gram.n_kernels, problem.y.size))

    def add(self, alpha: FloatArray) -> None:
        """Widen the span by a dual point; one pass over the kernels."""
        products = np.stack(self.gram.products_each(alpha, None, [None] * alpha.shape[1]), axis=2)
        products, point = products.reshape(len(products), -1), alpha.ravel()
        length = _length(point, self._costs)
        for _ in range(2):  # a second time, for what rounding left
            shares = self._points @ (point / self._costs)
            point = point - shares @ self._points
            products = products - np.tensordot(shares, self._products, 1)
        outside = _length(point, self._costs)
        if outside <= OUTSIDE * length:
            return
        self._points = np.vstack([self._points, point / outside])
        self._products = np.concatenate([self._products, products[None] / outside])
        self.size += 1
        matrices = np.empty((len(products), self.size, self.size))
        matrices[:, :-1, :-1] = self.small.stack if self.size > 1 else 0.0
        matrices[:, -1, :] = matrices[:, :, -1] = self._products[-1] @ self._points.T
        self.small = FewSamples(matrices)

    def best(
        self,
        factor: float,
        regularizer: Regularizer,
        solver: MKLSolver,
        tol: float = 1e-4,
        norms: FloatArray | None = None,
    ) -> State:
        """The solution within the span at `factor` times the costs, certified on all samples.

        If the machine at the weights of `norms` is within `tol`, no other weights are looked for.

        Parameters
        ----------
        factor : float
        regularizer : Regularizer
        solver : MKLSolver
        tol : float, default=1e-4
            Relative duality gap within the span.
        norms : ndarray of shape (M,), optional
            Component norms to start from.
        """
        z = self._points @ self._targets
        if norms is not None:
            weights = regularizer.weights(norms)
            c = np.linalg.solve(self.small.combine(weights) + np.eye(self.size) / factor, z)
            squares = np.maximum(self.small.quad(c[:, None]), 0.0)
            value = 0.5 * (float(z @ c) + regularizer.price(weights))
            if _price_of(regularizer, weights, squares) <= tol * value:
                return self._certified(factor, regularizer, weights, c, squares, tol)
        costs, loss = np.full((self.size, 1), factor), self.problem.loss
        few = Problem(z[:, None], loss, costs, fit_intercept=False)
        found = solver.solve(few, self.small, regularizer, tol, norms=norms).state
        parts = (found.weights, found.alpha[:, 0], found.squares, tol)
        return self._certified(factor, regularizer, *parts)

    def _certified(
        self,
        factor: float,
        regularizer: Regularizer,
        weights: FloatArray,
        c: FloatArray,
        squares: FloatArray,
        tol: float,
    ) -> State:
        """The dual point A c, with its certificate on all samples."""
        problem, shape = self.problem.at_cost(factor), self.problem.y.shape
        alpha, mixed = (c @ self._points).reshape(shape), np.multiply.outer(c, weights).ravel()
        fitted = (mixed @ self._products.reshape(len(mixed), -1)).reshape(shape)
        proof = certificate(problem, self.gram, regularizer, alpha, weights, fitted, squares)
        return State(weights, alpha, fitted, squares, proof, proof.gap, tol)


def _price_of(regularizer: Regularizer, weights: FloatArray, squares: FloatArray) -> float:
    """Omega(n) + Omega*(r) - n'r, n_m = d_m r_m: the part of P - D that is due to the weights."""
    r = np.sqrt(squares)
    share = regularizer.dual_scale(r)
    left = regularizer.penalty(weights * r) + regularizer.conjugate(share * r)
    return float(left - share * (weights @ squares))


def _length(point: FloatArray, costs: FloatArray) -> float:
    return float(np.sqrt((point / costs) @ point))
