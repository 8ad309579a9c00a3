"""Leave-one-out predictions without retraining."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.linalg import lapack

from .._linalg import blas_threads_for, product
from .._typing import FloatArray, IntArray
from ..gram import Gram
from ..gram.some_rows import RowsOfSum
from .problem import Problem
from .single._face import Face

#: samples allowed to adapt by default: the cost grows with the cube of their number
MOST_FREE = 1000

#: most entries in their rows of K
MOST_ENTRIES = 3e7

#: predictions of equal samples differ by at most this share of the size of their terms; and the share of rows
#: of K up to which they are copied
NEARLY_EQUAL, FEW_ROWS = 1e-9, 0.1

#: rows of K that are compared before, and what they are multiplied with
COMPARED = 8
MARKS = np.random.RandomState(0).standard_normal(COMPARED)


class WeightedRows:
    """sum_m d_m K_m of a Gram engine; only some of its rows are ever computed.

    Parameters
    ----------
    gram : Gram
    weights : ndarray of shape (M,)
    later : bool, default=False
        Whether values are computed only when they are asked for, by the engine of the samples they belong to.
    """

    def __init__(self, gram: Gram, weights: FloatArray, later: bool = False) -> None:
        self.gram, self.weights, self.later = gram, weights, later

    def __len__(self) -> int:
        return self.gram.n_samples

    def diagonal(self) -> FloatArray:
        """The diagonal of K."""
        return self.gram.diag(self.weights)

    def block(self, rows: IntArray, columns: IntArray) -> Block:
        """Rows of K at some columns; the first columns are those of the rows themselves."""
        if not (self.later or self.gram.streams):
            return self.gram.rows(rows, self.weights)[:, columns]
        compute = partial(self.gram.subset(columns).rows, np.arange(len(rows)), self.weights)
        return compute if self.later else compute()


#: entries of K, or what computes them
Block = FloatArray | Callable[[], FloatArray]


def leave_one_out(
    K: FloatArray | RowsOfSum | WeightedRows,
    problem: Problem,
    alpha: FloatArray,
    f: FloatArray,
    most: int | None = MOST_FREE,
) -> FloatArray:
    """Predictions on each training sample by the machine trained without it, to first order.

    Equal samples (same kernel values, same target) are left out together: a copy left in
    would vouch for the other. So a sample of weight 2 and a sample given twice agree. Where samples of the
    same kernel values have different targets, as with a few binary columns, they are no copies, and each is
    left out alone.

    With A the samples free to move (inside their box), lambda_i = V*''(y_i, -alpha_i / C_i) / C_i
    and M the matrix K_AA + diag(lambda), bordered by ones when there is an intercept,

        i in A             f_i + lambda_i alpha_i - alpha_i / (M^-1)_ii
        i at a bound       f_i - alpha_i (K_ii - v' M^-1 v),  v = (K_iA, 1)
        alpha_i = 0        f_i

    This is exact as long as no sample reaches or leaves its bound, and always for the squared loss. It is the
    span rule of Vapnik & Chapelle (2000), for every loss.

    Parameters
    ----------
    K : ndarray of shape (n, n), or WeightedRows
    problem : Problem
    alpha, f : ndarray of shape (n,) or (n, c)
        The solution and its predictions, intercept included, for one output or several.
    most : int or None, default=1000
        Samples allowed to adapt, or fewer if their rows of K take too much room; the rest are treated like
        samples at a bound. None lets all of them adapt; the time then grows with the cube of their number.
    """
    return left_out_later(K, problem, alpha, f, most)()


def left_out_later(
    K: FloatArray | RowsOfSum | WeightedRows,
    problem: Problem,
    alpha: FloatArray,
    f: FloatArray,
    most: int | None = MOST_FREE,
    different: bool = False,
) -> Callable[[], FloatArray]:
    """A function that computes `leave_one_out` when it is called, without K.

    Of K, it keeps the diagonal and the rows of the samples free to move, at the samples with a dual variable.
    Outputs that share M, as all outputs of the squared loss do, share these rows and M^-1. Equal samples are
    not looked for where all are known to be `different`.

    Examples
    --------
    >>> from kernelweave.losses import Squared
    >>> y = np.array([[1.0], [-1.0]])
    >>> left_out_later(np.eye(2), Problem(y, Squared(), np.ones((2, 1)), False), y[:, 0] / 2, y[:, 0] / 2)()
    array([0., 0.])
    """
    if not problem.loss.separable:
        raise ValueError(
            f"{type(problem.loss).__name__} couples samples: no formula leaves one of them out. Give it "
            "`probability`, or choose a loss that is a sum over samples."
        )
    keep = _keep_face if problem.loss.coupled else _keep_free
    first: IntArray = np.arange(len(K))
    group = first
    several = alpha.ndim == 2 and not problem.loss.coupled
    if not (different or isinstance(K, WeightedRows)):
        first, group = _equal_samples(K, alpha, f, problem.y[:, :0] if several else problem.y)
    if several and not (len(first) == len(alpha) and _share_curvature(problem, alpha)):
        columns, different = range(alpha.shape[1]), len(first) == len(alpha)
        parts = [left_out_later(K, problem.column(k), alpha[:, k], f[:, k], most, different) for k in columns]
        return lambda: np.column_stack([part() for part in parts])
    if len(first) == len(alpha):
        return keep(K, np.arange(len(K)), problem, alpha, f, most)
    C, total = np.zeros((len(first), 1)), np.zeros_like(alpha[first])
    np.add.at(C, group, problem.C)
    np.add.at(total, group, alpha)
    merged = Problem(problem.y[first], problem.loss, C, problem.fit_intercept)
    found = keep(K, first, merged, total, f[first], most)
    return lambda: found()[group]


def _equal_samples(
    K: FloatArray | RowsOfSum, alpha: FloatArray, f: FloatArray, y: FloatArray
) -> tuple[IntArray, IntArray]:
    """First member of every group of equal samples, and the group of each sample.

    Rows of K that are equal have equal products with a random vector, and others almost surely do not. Only
    rows of samples whose predictions agree, to rounding, are multiplied.
    """
    label = np.arange(len(f))
    near = _near(K, alpha.reshape(len(f), -1)[:, 0], f.reshape(len(f), -1)[:, 0])
    if len(near) == 0:
        return label, label
    v = np.random.RandomState(0).standard_normal(len(K))
    if isinstance(K, RowsOfSum):
        marks = K.gram.dot(K.weights, v, near)
    else:
        some = isinstance(K, np.ndarray) and len(near) < FEW_ROWS * len(K)
        marks = product(K[near], v) if some else product(K, v)[near]
    label[near] = near[copies(marks, y[near])]
    first, group = np.unique(label, return_inverse=True)
    return first, group


def copies(marks: FloatArray, y: FloatArray) -> IntArray:
    """For each sample the first one that it is a copy of, by the `marks` of kernel values and targets (n, c).

    Examples
    --------
    >>> copies(np.array([1.0, 2.0, 1.0, 2.0]), np.array([[1.0], [1.0], [1.0], [-1.0]]))
    array([0, 1, 0, 3])
    """
    digits = np.round(marks / max(float(np.abs(marks).max()), 1e-300), 10)
    _, first, group = np.unique(digits, return_index=True, return_inverse=True)
    other = (y != y[first[group]]).any(axis=1)
    mixed = np.bincount(group, other) > 0
    return np.where(mixed[group], np.arange(len(marks)), first[group])


def _near(K: FloatArray | RowsOfSum, alpha: FloatArray, f: FloatArray) -> IntArray:
    """Samples for which another has the same prediction, up to rounding of its terms.

    The predictions of samples free to move are nearly the same, so a few rows are compared as well: equal
    samples have the same entries in all of them.
    """
    size = float(np.abs(f).max()) + float(np.max(K.diagonal())) * float(np.linalg.norm(alpha))
    near = _alike(f, size)
    if len(near) == 0:
        return near
    known = K.samples if isinstance(K, RowsOfSum) else np.arange(len(K))
    chosen = known[np.linspace(0, len(known) - 1, min(COMPARED, len(known))).astype(int)]
    some = np.asarray(K[np.ix_(chosen, near)], dtype=np.float64)
    marks = MARKS[: len(some)] @ some
    return np.asarray(near[_alike(marks, float(np.abs(some).sum(axis=0).max()))])


def _alike(values: FloatArray, size: float) -> IntArray:
    """Samples for which the value of another is the same, up to rounding of numbers of that size."""
    order = np.argsort(values)
    close = np.diff(values[order]) <= NEARLY_EQUAL * size
    return np.sort(order[np.append(close, False) | np.append(False, close)])


def _curvature(problem: Problem, alpha: FloatArray) -> FloatArray:
    """lambda of every sample and output."""
    values = problem.loss.dual_curvature(problem.y, alpha.reshape(problem.y.shape) / problem.C)
    return np.asarray(values / problem.C)


def _share_curvature(problem: Problem, alpha: FloatArray) -> bool:
    """Whether M is the same for all outputs."""
    curvature = _curvature(problem, alpha)
    return bool((curvature == curvature[:, :1]).all())


def _allowed(n_samples: int, most: int | None) -> int:
    """How many variables may adapt: `most`, and no more than their rows of K have room for."""
    return sys.maxsize if most is None else min(most, max(100, int(MOST_ENTRIES / n_samples)))


def kept_bytes(alpha: FloatArray) -> int:
    """The most that `left_out_later` keeps of a matrix, for dual variables (n, c)."""
    support = np.count_nonzero(alpha, axis=0)
    return int(8 * (np.minimum(support, _allowed(len(alpha), MOST_FREE)) * support).sum())


def _keep_free(
    K: FloatArray | RowsOfSum | WeightedRows,
    rows: IntArray,
    problem: Problem,
    alpha: FloatArray,
    f: FloatArray,
    most: int | None,
) -> Callable[[], FloatArray]:
    """The formulas on the samples `rows` of K, all different, for outputs that share their curvature."""
    curvature = _curvature(problem, alpha)[:, 0]
    diagonal = K.diagonal()[rows].astype(np.float64)
    free = np.flatnonzero(np.isfinite(curvature) & ((curvature > 0.0) | diagonal.any()))
    free = free[np.linspace(0, len(free) - 1, min(len(free), _allowed(len(K), most))).astype(int)]
    support = np.asarray(alpha.reshape(len(rows), -1).any(axis=1))
    support[free] = False
    bound = np.flatnonzero(support)
    R = _block(K, rows[free], rows[np.concatenate([free, bound])]) if len(free) else np.empty((0, len(bound)))
    return partial(_without, R, free, bound, diagonal, curvature[free], alpha, f, problem.fit_intercept)


def _block(K: FloatArray | RowsOfSum | WeightedRows, rows: IntArray, columns: IntArray) -> Block:
    """Rows of K at some columns; the first columns are those of the rows themselves."""
    if isinstance(K, WeightedRows):
        return K.block(rows, columns)
    if not isinstance(K, np.ndarray):  # some rows, or on a device, from which only these entries come
        return np.asarray(K[np.ix_(rows, columns)], dtype=np.float64)
    from ..gram._matrix_loops import take_block

    part = np.empty((len(rows), len(columns)))
    take_block(K, rows, columns.astype(np.uintp), part)
    return part


def _without(
    block: Block,
    free: IntArray,
    bound: IntArray,
    diagonal: FloatArray,
    curvature: FloatArray,
    alpha: FloatArray,
    f: FloatArray,
    tied: bool,
) -> FloatArray:
    """Predictions without each sample, from the rows of K of those free to move."""
    out = f.copy()
    if len(free) == 0:
        out[bound] -= (alpha[bound].T * diagonal[bound]).T
        return out
    with blas_threads_for(len(free)):
        R = block() if callable(block) else block
        inverse = _bordered_inverse(R[:, : len(free)], curvature, tied)
        v = np.hstack([R[:, len(free) :].T, np.ones((len(bound), inverse.shape[0] - len(free)))])
        span = diagonal[bound] - np.einsum("ij,jk,ik->i", v, inverse, v, optimize=True)
    out[bound] -= (alpha[bound].T * np.maximum(span, 0.0)).T
    own = inverse.diagonal()[: len(free)]
    # a sample that no other can replace (the only free one, with an intercept) falls back on itself
    whole = diagonal[free] + curvature
    alone = own * whole <= 1e-12
    drop = np.where(alone, whole, 1.0 / np.where(alone, 1.0, own))
    out[free] += (alpha[free].T * (curvature - drop)).T
    return out


def _bordered_inverse(K: FloatArray, curvature: FloatArray, tied: bool) -> FloatArray:
    """Inverse of K + diag(curvature), or of the same matrix bordered by ones.

    Without curvature K may be singular, so at least 1e-10 of its diagonal is added.
    """
    A = K.astype(np.float64)
    A.flat[:: len(A) + 1] += np.maximum(curvature, 1e-10 * float(K.diagonal().max()))
    lower = lapack.dpotri(lapack.dpotrf(A, lower=True)[0], lower=True)[0]
    inverse: FloatArray = np.tril(lower) + np.tril(lower, -1).T
    if not tied:
        return inverse
    ones = inverse.sum(axis=1)
    total = ones.sum()
    top = inverse - np.outer(ones, ones) / total
    return np.block([[top, ones[:, None] / total], [ones[None, :] / total, -1.0 / total]])


def _keep_face(
    K: FloatArray | RowsOfSum | WeightedRows,
    rows: IntArray,
    problem: Problem,
    alpha: FloatArray,
    f: FloatArray,
    most: int | None,
) -> Callable[[], FloatArray]:
    """The same for coupled outputs."""
    diagonal = K.diagonal()[rows].astype(np.float64)
    out = f - diagonal[:, None] * alpha
    face = Face.of(problem, alpha, _allowed(len(K), most)) if diagonal.any() else None
    if face is None or len(face.rows) == 0:
        return lambda: out
    free, place = np.unique(face.rows, return_inverse=True)
    bound = np.setdiff1d(np.flatnonzero(alpha.any(axis=1)), free)
    R = _block(K, rows[free], rows[np.concatenate([free, bound])])
    return partial(_without_of_face, R, free, bound, place, face, alpha, out)


def _without_of_face(
    block: Block,
    free: IntArray,
    bound: IntArray,
    place: IntArray,
    face: Face,
    alpha: FloatArray,
    start: FloatArray,
) -> FloatArray:
    """Predictions up to a number per sample common to all outputs; `start` is f_i - K_ii alpha_i.

    With N the inverse of the Hessian H of the free directions, bordered by what moves the sums, V_i what the
    directions and the intercepts do to the values of sample i, and W_i = V_i N,

        f_i - (K_ii - V_i N V_i' + W_ii N_ii^-1 W_ii') alpha_i

    where the index ii takes the directions of sample i itself, if it has any.
    """
    out, p = start.copy(), len(face.rows)
    R = (block() if callable(block) else block)[place]
    H = face.hessian(R[:, place])
    inverse, of_e, border = face.solve(H, np.eye(p))
    N = np.block([[inverse - of_e @ border @ of_e.T, of_e @ border], [border @ of_e.T, -border]])
    moves = np.eye(alpha.shape[1])[:, : of_e.shape[1]]
    for column, i in enumerate(np.concatenate([free, bound]).tolist()):
        V = np.hstack([(R[:, column, None] * face.B).T, moves])
        W, own = V @ N, np.flatnonzero(face.rows == i)
        span = V @ (W.T @ alpha[i])
        if len(own):
            span -= W[:, own] @ np.linalg.pinv(N[np.ix_(own, own)]) @ (W[:, own].T @ alpha[i])
        out[i] += span
    return out
