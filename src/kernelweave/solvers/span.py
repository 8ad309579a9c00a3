"""The problem within the span of a few dual points: as small as they are many, and much the same."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray, IntArray
from ..gram import DenseGram, Gram
from ..regularizers import Regularizer
from .base import MKLSolver, State
from .certificate import certificate
from .problem import Problem

#: share of a dual point that has to be outside of the span for it to be wider
OUTSIDE = 1e-6


class FewSamples(DenseGram):
    """Matrices so small that an array of all of them is multiplied as one, shape (M, k, k).

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

    def _diagonals(self) -> FloatArray:
        return np.diagonal(self.stack, axis1=1, axis2=2)


class Span:
    """Dual points alpha = sum_k c_k a_k, among which the best of a problem is found without its kernels.

    For the squared loss, and a_k with sum_i a_ik a_il / C_i = [k = l] at the costs C_i of `problem`,

        D = sum_k c_k z_k - 1/2 sum_k c_k^2 / t - Omega*(r),   z_k = a_k' y,   r_m^2 = c' (A' K_m A) c

    at t times these costs: the dual of a problem with a few samples, of targets z, matrices A' K_m A and no
    intercept. Its solution has weights, alpha = A c, and with K_m A at hand

        f = sum_m d_m K_m A c,   s_m = c' A' K_m A c

    so that the certificate on all samples takes no pass over the kernels. Solutions at neighbouring costs
    are smooth in log t: those at a few of them span the others all but exactly (a reduced basis).

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
        for _ in range(2):  # once more, for what rounding left
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
        """The solution within the span at so many times the costs, certified on all samples.

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
        costs, loss = np.full((self.size, 1), factor), self.problem.loss
        few = Problem((self._points @ self._targets)[:, None], loss, costs, fit_intercept=False)
        found = solver.solve(few, self.small, regularizer, tol, norms=norms).state
        c, problem, shape = found.alpha[:, 0], self.problem.at_cost(factor), self.problem.y.shape
        alpha = (c @ self._points).reshape(shape)
        mixed = np.multiply.outer(c, found.weights).ravel()
        fitted = (mixed @ self._products.reshape(len(mixed), -1)).reshape(shape)
        proof = certificate(problem, self.gram, regularizer, alpha, found.weights, fitted, found.squares)
        return State(found.weights, alpha, fitted, found.squares, proof, proof.gap, tol)


def _length(point: FloatArray, costs: FloatArray) -> float:
    return float(np.sqrt((point / costs) @ point))
