"""Leave-one-out predictions without retraining."""

from __future__ import annotations

import sys

import numpy as np
from scipy.linalg import lapack

from .._typing import FloatArray, IntArray
from ..gram import Gram
from .problem import Problem
from .single._face import Face
from .single.base import product

#: samples allowed to adapt by default: the cost is the cube of their number
MOST_FREE = 1000

#: entries of their rows of K
MOST_ENTRIES = 3e7


class WeightedRows:
    """sum_m d_m K_m of a Gram engine, of which only some rows are ever computed.

    Parameters
    ----------
    gram : Gram
    weights : ndarray of shape (M,)
    """

    def __init__(self, gram: Gram, weights: FloatArray) -> None:
        self.gram, self.weights = gram, weights

    def __len__(self) -> int:
        return self.gram.n_samples

    def diagonal(self) -> FloatArray:
        """The diagonal of K."""
        return self.gram.diag(self.weights)

    def rows(self, indices: IntArray) -> FloatArray:
        """Some rows of K."""
        return self.gram.rows(indices, self.weights)


def leave_one_out(
    K: FloatArray | WeightedRows,
    problem: Problem,
    alpha: FloatArray,
    f: FloatArray,
    most: int | None = MOST_FREE,
) -> FloatArray:
    """Predictions on each training sample by the machine trained without it, to first order.

    Equal samples (same kernel values, same target) are left out together: a copy left in
    would vouch for the other. So a sample of weight 2 and a sample given twice agree.

    With A the samples free to move (inside their box), lambda_i = V*''(y_i, -alpha_i / C_i) / C_i
    and M the matrix K_AA + diag(lambda), bordered by ones when there is an intercept,

        i in A             f_i + lambda_i alpha_i - alpha_i / (M^-1)_ii
        i at a bound       f_i - alpha_i (K_ii - v' M^-1 v),  v = (K_iA, 1)
        alpha_i = 0        f_i

    exact as long as no sample enters or leaves its bound, and for the squared loss always: the
    span rule of Vapnik & Chapelle (2000), for every loss.

    Parameters
    ----------
    K : ndarray of shape (n, n), or WeightedRows
    problem : Problem of one output, or of coupled ones
    alpha, f : ndarray of shape (n,)
        Solution and its predictions, intercept included; of shape (n, c) for a loss that couples outputs.
    most : int or None, default=1000
        Samples allowed to adapt, fewer where their rows of K take too much room; those beyond are treated
        like samples at a bound. None for all of them, in time of the cube of their number.
    """
    if not problem.loss.separable:
        raise ValueError(
            f"{type(problem.loss).__name__} couples samples: no formula leaves one of them out. Give it "
            "`probability`, or choose a loss that is a sum over samples."
        )
    leave_out = _leave_out_of_face if problem.loss.coupled else _leave_one_out
    everything = np.arange(len(K))
    if isinstance(K, WeightedRows):  # to look for equal samples takes all of K
        return leave_out(K, everything, problem, alpha, f, most)
    first, group = _equal_samples(K, problem.y)
    if len(first) < len(alpha):
        C, total = np.zeros((len(first), 1)), np.zeros_like(alpha[first])
        np.add.at(C, group, problem.C)
        np.add.at(total, group, alpha)
        merged = Problem(problem.y[first], problem.loss, C, problem.fit_intercept)
        return leave_out(K, first, merged, total, f[first], most)[group]
    return leave_out(K, everything, problem, alpha, f, most)


def _equal_samples(K: FloatArray, y: FloatArray) -> tuple[IntArray, IntArray]:
    """First member of every group of equal samples, and the group of each sample.

    Equal rows of K have equal products with one random vector; unequal ones almost surely not.
    """
    mark = product(K, np.random.RandomState(0).standard_normal(len(K)))
    digits = np.round(mark / max(float(np.abs(mark).max()), 1e-300), 10)
    _, first, group = np.unique(np.column_stack([digits, y]), axis=0, return_index=True, return_inverse=True)
    return first, group.ravel()


def _allowed(K: FloatArray | WeightedRows, most: int | None) -> int:
    """How many variables may adapt: `most`, and no more than their rows of K have room for."""
    return sys.maxsize if most is None else min(most, max(100, int(MOST_ENTRIES / len(K))))


def _leave_one_out(
    K: FloatArray | WeightedRows,
    rows: IntArray,
    problem: Problem,
    alpha: FloatArray,
    f: FloatArray,
    most: int | None,
) -> FloatArray:
    """The formulas on the samples `rows` of K, all different."""
    y, C = problem.y[:, 0], problem.C[:, 0]
    curvature = problem.loss.dual_curvature(y, alpha / C) / C
    diagonal = K.diagonal()[rows].astype(np.float64)
    free = np.flatnonzero(np.isfinite(curvature) & ((curvature > 0.0) | diagonal.any()))
    free = free[np.linspace(0, len(free) - 1, min(len(free), _allowed(K, most))).astype(int)]
    bound = np.setdiff1d(np.flatnonzero(alpha), free)
    out = f.copy()
    if len(free) == 0:
        out[bound] -= alpha[bound] * diagonal[bound]
        return out
    R = K.rows(rows[free]) if isinstance(K, WeightedRows) else K[rows[free]].astype(np.float64)
    inverse = _bordered_inverse(R[:, rows[free]], curvature[free], problem.fit_intercept)
    v = np.hstack([R[:, rows[bound]].T, np.ones((len(bound), inverse.shape[0] - len(free)))])
    span = diagonal[bound] - np.einsum("ij,jk,ik->i", v, inverse, v, optimize=True)
    out[bound] -= alpha[bound] * np.maximum(span, 0.0)
    own = inverse.diagonal()[: len(free)]
    # a sample that no other can stand in for (the only free one, with an intercept) falls back on its own
    whole = diagonal[free] + curvature[free]
    alone = own * whole <= 1e-12
    drop = np.where(alone, whole, 1.0 / np.where(alone, 1.0, own))
    out[free] += curvature[free] * alpha[free] - alpha[free] * drop
    return out


def _bordered_inverse(K: FloatArray, curvature: FloatArray, tied: bool) -> FloatArray:
    """Inverse of K + diag(curvature), or of the same matrix bordered by ones.

    Without curvature K may be singular: 1e-10 of its diagonal is the least there is.
    """
    A = K.astype(np.float64)
    A.flat[:: len(A) + 1] += np.maximum(curvature, 1e-10 * float(K.diagonal().max()))
    lower = lapack.dpotri(lapack.dpotrf(A, lower=True)[0], lower=True)[0]
    inverse = np.tril(lower) + np.tril(lower, -1).T
    if not tied:
        return inverse
    ones = inverse.sum(axis=1)
    total = ones.sum()
    top = inverse - np.outer(ones, ones) / total
    return np.block([[top, ones[:, None] / total], [ones[None, :] / total, -1.0 / total]])


def _leave_out_of_face(
    K: FloatArray | WeightedRows,
    rows: IntArray,
    problem: Problem,
    alpha: FloatArray,
    f: FloatArray,
    most: int | None,
) -> FloatArray:
    """The same of coupled outputs, up to a number per sample that all of them have in common.

    With N the inverse of the Hessian H of the free directions, bordered by what moves the sums, V_i what the
    directions and the intercepts do to the values of sample i, and W_i = V_i N,

        f_i - (K_ii - V_i N V_i' + W_ii N_ii^-1 W_ii') alpha_i

    where the index ii takes the directions of sample i itself, if it has any.
    """
    diagonal = K.diagonal()[rows].astype(np.float64)
    out = f - diagonal[:, None] * alpha
    face = Face.of(problem, alpha, _allowed(K, most)) if diagonal.any() else None
    if face is None or len(face.rows) == 0:
        return out
    chosen, p = rows[face.rows], len(face.rows)
    R = np.asarray(K.rows(chosen) if isinstance(K, WeightedRows) else K[chosen], dtype=np.float64)[:, rows]
    H = face.hessian(R[:, face.rows])
    inverse, of_e, border = face.solve(H, np.eye(p))
    N = np.block([[inverse - of_e @ border @ of_e.T, of_e @ border], [border @ of_e.T, -border]])
    moves = np.eye(alpha.shape[1])[:, : of_e.shape[1]]
    for i in np.flatnonzero(alpha.any(axis=1)):
        V = np.hstack([(R[:, i, None] * face.B).T, moves])
        W, own = V @ N, np.flatnonzero(face.rows == i)
        span = V @ (W.T @ alpha[i])
        if len(own):
            span -= W[:, own] @ np.linalg.pinv(N[np.ix_(own, own)]) @ (W[:, own].T @ alpha[i])
        out[i] += span
    return out
