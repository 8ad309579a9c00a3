"""Gaussian kernels after a learned linear map: their parameters may have either sign."""

from __future__ import annotations

import numpy as np

from ..._typing import FloatArray
from ..base import positive_integer
from ..columns import Columns
from .base import ParametricKernel, weighted_variances
from .domains import Box, Semidefinite
from .product_rbf import centred, gaussian, inverse_spread

#: share of its usual size at which a direction starts
FIRST = 0.1


class ProjectedRBF(ParametricKernel):
    """Gaussian of learned directions, k(x, z) = exp(-||D (x - z)||^2), any real D of r rows.

    It is the Gaussian kernel of the samples D x, so it is positive semidefinite whatever the signs of D:
    a direction such as x_1 - x_2 needs both. With ``L1`` the directions are sparse, and features that no
    direction reads have no part in the model; with few directions it is nonlinear dimensionality reduction.
    D and its rows times -1 are the same kernel. With W = B o K, P = X D' and Q = Z D',

        sum_ij B_ij dK_ij/dD = -2 [ (diag(W 1) P - W Q)' X + (diag(W' 1) Q - W' P)' Z ]

    Direction j starts as the sum of the features j, j + r, j + 2 r, ..., at a tenth of the size at which
    `ProductRBF` begins: there the kernel is nearly linear, and directions are found as by a linear model. (Of
    36 regressions on a difference of two of four features, 33 end at it from there, 18 from ten times that.)

    K has low rank for few directions. T(d) is differentiable only where its alpha is unique, and for such K
    it is with "squared", "squared_hinge", "logistic" or "huber", not with "hinge" or "eps_insensitive".
    Varma & Babu (2009), section 3: d >= 0 relaxed.

    Parameters
    ----------
    n_directions : int, default=1
        r, at most the number of columns.
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    >>> ProjectedRBF()(X, d=[1.0, -1.0]).round(4)  # sees x_1 - x_2
    array([[1.    , 1.    , 0.3679],
           [1.    , 1.    , 0.3679],
           [0.3679, 0.3679, 1.    ]])
    """

    name = "projected_rbf"

    def __init__(self, n_directions: int = 1, columns: Columns = None) -> None:
        self.n_directions = n_directions
        self.columns = columns

    def domain(self) -> Box:
        """Any real D."""
        return Box(lower=-np.inf)

    def directions(self, d: FloatArray) -> FloatArray:
        """D of d, shape (n_directions, n_columns)."""
        return np.asarray(d, dtype=np.float64).reshape(self.n_directions, -1)

    def _initial(self, X: FloatArray, sample_weight: FloatArray) -> FloatArray:
        r, p = positive_integer(self.n_directions, "n_directions"), X.shape[1]
        if r > p:
            raise ValueError(f"n_directions={r} is more than the {p} columns that the kernel sees.")
        units = np.sqrt(inverse_spread(weighted_variances(X, sample_weight) * p))
        turns = (np.cumsum(units > 0) - 1) % r  # constant columns are left out
        return FIRST * np.where(np.arange(r)[:, None] == turns, units, 0.0).ravel()

    def _sizes(self) -> FloatArray:
        return np.tile(self.directions(self.initial_).max(axis=0) / FIRST, self.n_directions)

    def _names(self, columns: list[str]) -> list[str]:
        if self.n_directions == 1:
            return columns
        return [f"direction {j}: {name}" for j in range(self.n_directions) for name in columns]

    def _feature_map(self, n_columns: int) -> FloatArray:
        return np.tile(np.eye(n_columns), (self.n_directions, 1))

    def _compute(self, X: FloatArray, Z: FloatArray, d: FloatArray) -> FloatArray:
        D = self.directions(d).T.astype(X.dtype)
        return gaussian(X @ D, None if Z is X else Z @ D)

    def _contract(
        self, X: FloatArray, Z: FloatArray, B: FloatArray, d: FloatArray, K: FloatArray | None
    ) -> FloatArray:
        W = B * (self._compute(X, Z, d) if K is None else K)
        (x, z), D = centred(X, Z), self.directions(d).T.astype(X.dtype)
        P, Q = x @ D, z @ D
        left, right = W.sum(axis=1)[:, None] * P - W @ Q, W.sum(axis=0)[:, None] * Q - W.T @ P
        return np.asarray(-2.0 * (left.T @ x + right.T @ z), dtype=np.float64).ravel()


class MetricRBF(ParametricKernel):
    """Gaussian of a learned metric, k(x, z) = exp(-(x - z)' A (x - z)), A positive semidefinite.

    `ProductRBF` with entries off the diagonal, of either sign: it is a kernel exactly when A has no negative
    eigenvalue. (Enough: then it is the Gaussian kernel of the samples A^(1/2) x. Needed: along v with
    v'Av < 0 it grows with the distance, and |k(x, z)| <= sqrt(k(x, x) k(z, z)) = 1 fails.) The parameters
    are d = (A_kk; sqrt(2) A_kl for k < l), in whose norm the projection onto that set sets negative
    eigenvalues to zero. With W = B o K the gradient in A is

        -[ X' diag(W 1) X + Z' diag(W' 1) Z - X' W Z - Z' W' X ]

    The set is no box: the solver is "spectral", and penalties with a kink at zero, such as ``L1()``, are
    refused off the diagonal; take ``L2()``, or ``L1`` with strength 0 there, the trace of A, which makes its
    rank small. A starts as `ProductRBF`. Varma & Babu (2009), section 3: d >= 0 relaxed.

    Parameters
    ----------
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    >>> MetricRBF()(X, d=[1.0, 1.0, -np.sqrt(2.0)]).round(4)  # A = [[1, -1], [-1, 1]] sees x_1 - x_2
    array([[1.    , 1.    , 0.3679],
           [1.    , 1.    , 0.3679],
           [0.3679, 0.3679, 1.    ]])
    """

    name = "metric_rbf"

    def __init__(self, columns: Columns = None) -> None:
        self.columns = columns

    def domain(self) -> Semidefinite:
        """Positive semidefinite A."""
        n = len(self.initial_)
        return Semidefinite((int(np.sqrt(8 * n + 1)) - 1) // 2)

    def matrix(self, d: FloatArray) -> FloatArray:
        """A of d."""
        return self.domain().matrix(np.asarray(d, dtype=np.float64))

    def _initial(self, X: FloatArray, sample_weight: FloatArray) -> FloatArray:
        p = X.shape[1]
        diagonal = inverse_spread(weighted_variances(X, sample_weight) * p)
        return np.concatenate([diagonal, np.zeros(p * (p - 1) // 2)])

    def _sizes(self) -> FloatArray:
        roots = np.sqrt(self.matrix(self.initial_).diagonal())
        return np.abs(self.domain().vector(np.outer(roots, roots)))

    def _names(self, columns: list[str]) -> list[str]:
        pairs = zip(*self.domain().pairs, strict=True)
        return [*columns, *(f"{columns[k]} x {columns[m]}" for k, m in pairs)]

    def _feature_map(self, n_columns: int) -> FloatArray:
        return np.zeros((len(self.initial_), n_columns))  # a metric turns features, it selects none

    def _compute(self, X: FloatArray, Z: FloatArray, d: FloatArray) -> FloatArray:
        values, vectors = np.linalg.eigh(self.matrix(d))
        root = (vectors * np.sqrt(np.maximum(values, 0.0))).astype(X.dtype)
        return gaussian(X @ root, None if Z is X else Z @ root)

    def _contract(
        self, X: FloatArray, Z: FloatArray, B: FloatArray, d: FloatArray, K: FloatArray | None
    ) -> FloatArray:
        W = B * (self._compute(X, Z, d) if K is None else K)
        x, z = centred(X, Z)
        cross = x.T @ (W @ z)
        slope = cross + cross.T - (x.T * W.sum(axis=1)) @ x - (z.T * W.sum(axis=0)) @ z
        return self.domain().vector(np.asarray(slope, dtype=np.float64))
