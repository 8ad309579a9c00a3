"""Where the dual variables of coupled outputs are free to move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve

from ..._linalg import positive_factor
from ..._typing import FloatArray, IntArray
from ..problem import Problem


@dataclass(frozen=True)
class Face:
    """Directions in which the dual variables of a loss with coupled outputs are free to move.

    A sample moves between the classes that share it: direction p adds B[p], +1 for one class and -1 for
    another, to the alpha of sample rows[p]. In coordinates z of these directions the quadratic term 1/2 sum_k
    alpha_k' K alpha_k has the Hessian  (B B') o K[rows, rows],  and sums over samples do not change if B' z =
    0.

    Attributes
    ----------
    rows : ndarray of int of shape (p,)
    B : ndarray of shape (p, c)
    tied : bool
        Whether sums over samples must not change, as an intercept requires.
    """

    rows: IntArray
    B: FloatArray
    tied: bool

    @classmethod
    def of(cls, problem: Problem, alpha: FloatArray, most: float = np.inf) -> Face:
        """The face of feasible dual variables; at most `most` directions, spread over all of them."""
        free = np.isfinite(problem.loss.dual_curvature(problem.y, alpha / problem.C))
        first = free.argmax(axis=1)  # the class that the others of a sample exchange with
        free[np.arange(len(free)), first] = False
        rows, classes = np.nonzero(free)
        if len(rows) > most:
            kept = np.linspace(0, len(rows) - 1, int(most)).astype(int)
            rows, classes = rows[kept], classes[kept]
        B = np.zeros((len(rows), free.shape[1]))
        B[np.arange(len(rows)), classes] = 1.0
        B[np.arange(len(rows)), first[rows]] = -1.0
        return cls(rows, B, problem.fit_intercept)

    def hessian(self, K: FloatArray, size: float = 0.0) -> FloatArray:
        """Hessian from K on the rows, shape (p, p); a share of its diagonal, or of `size`, is added."""
        H = np.asarray(K, dtype=np.float64) * (self.B @ self.B.T)
        ridge = 1e-10 * max(float(H.diagonal().mean()), size)
        H.flat[:: len(H) + 1] += ridge or 1.0
        return H

    def components(self, values: FloatArray) -> FloatArray:
        """Slopes along the directions, from slopes in alpha of shape (n, c)."""
        result: FloatArray = np.einsum("pk,pk->p", self.B, values[self.rows])
        return result

    def solve(self, H: FloatArray, G: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """H^-1 G, H^-1 E and the inverse of E' H^-1 E, with E what moves the sums, if these are fixed."""
        E = self.B[:, : -1 if self.tied else 0]  # the last sum follows from the others
        solved = cho_solve(positive_factor(H), np.hstack([G, E]), check_finite=False)
        of_g, of_e = solved[:, : G.shape[1]], solved[:, G.shape[1] :]
        return of_g, of_e, np.linalg.pinv(E.T @ of_e, rcond=1e-10, hermitian=True)

    def inverse_form(self, H: FloatArray, G: FloatArray) -> FloatArray:
        """G' P G with P the inverse of H, within {z : E' z = 0} if sums are fixed."""
        of_g, of_e, inverse = self.solve(H, G)
        shift = G.T @ of_e
        form = G.T @ of_g - shift @ inverse @ shift.T
        return 0.5 * (form + form.T)

    def minimum(self, H: FloatArray, slopes: FloatArray, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The z that minimises slopes' z + 1/2 z' H z with B' z = -sums where tied, and the multipliers."""
        of_g, of_e, inverse = self.solve(H, slopes[:, None])
        price = inverse @ (sums[: of_e.shape[1]] - self.B[:, : of_e.shape[1]].T @ of_g[:, 0])
        return -(of_g[:, 0] + of_e @ price), np.append(price, np.zeros(len(sums) - len(price)))

    def spread(self, z: FloatArray, n: int) -> FloatArray:
        """The change of alpha, shape (n, c)."""
        change = np.zeros((n, self.B.shape[1]))
        np.add.at(change, self.rows, z[:, None] * self.B)
        return change
