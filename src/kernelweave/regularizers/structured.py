"""Weights that depend on one another: kernels in an order, and kernels that resemble one another."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import lsq_linear
from sklearn.isotonic import isotonic_regression

from .._typing import FloatArray
from .base import TwoForms, indicator


class Wedge(TwoForms):
    """Weights in a decreasing order, d_1 >= d_2 >= ... >= 0; h(d) = +inf elsewhere.

    form="penalty":  h(d) = sum_m d_m

        weights    sqrt of the decreasing isotonic regression of n^2
        penalty    sum_m d_m
        conjugate  0 if s_1 + ... + s_k <= k for every k, else +inf,  s = r^2

    form="constraint":  h(d) = 0 if sum_m d_m <= 1

        weights    those of the penalty over their sum
        penalty    1/2 the square of that of the penalty
        conjugate  1/2 max_k (s_1 + ... + s_k) / k

    For kernels in an order of preference (coarse to fine, short to long): a later kernel never
    outweighs an earlier one. Micchelli, Morales & Pontil (2013); Tomioka & Suzuki (2010).

    Parameters
    ----------
    form : {"constraint", "penalty"}, default="penalty"

    Examples
    --------
    >>> import numpy as np
    >>> Wedge().weights(np.array([1.0, 3.0, 0.5])).round(4)
    array([2.2361, 2.2361, 0.5   ])
    """

    name = "wedge"
    sparse = True
    degree = 1.0

    def __init__(self, form: str = "penalty") -> None:
        self.form = form

    @property
    def tied(self) -> bool:  # type: ignore[override]
        """The constraint is a simplex in the coordinates of `generators`."""
        return not self.penalised

    @property
    def homogeneous(self) -> bool:  # type: ignore[override]
        """The penalty."""
        return self.penalised

    def size(self, weights: FloatArray) -> float:
        return float(weights.sum()) + indicator(float(np.diff(weights).max(initial=0.0)))

    def generators(self, n_kernels: int) -> FloatArray:
        """d = T z, z >= 0: column k raises the first k + 1 weights, each by 1 at the price k + 1.

        Under the constraint it raises them by 1 altogether.
        """
        T = np.triu(np.ones((n_kernels, n_kernels)))
        return T if self.penalised else np.asarray(T / T.sum(axis=0))

    def price_slopes(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes in z."""
        counts = np.arange(1.0, len(weights) + 1.0)
        return counts * self.penalised, np.zeros(len(weights))

    def least(self, norms: FloatArray) -> float:
        return float(_ordered(norms).sum()) ** 2

    def most(self, dual_norms: FloatArray) -> float:
        return float((np.cumsum(dual_norms**2) / np.arange(1, len(dual_norms) + 1)).max(initial=0.0))

    def unit_weights(self, norms: FloatArray) -> FloatArray:
        d = _ordered(norms if norms.any() else np.ones(norms.shape))
        return np.asarray(d / d.sum())

    def weights(self, norms: FloatArray) -> FloatArray:
        return _ordered(norms) if self.penalised else self.unit_weights(norms)


def _ordered(norms: FloatArray) -> FloatArray:
    """argmin_d sum_m n_m^2 / d_m + d_m over the wedge."""
    return np.asarray(np.sqrt(isotonic_regression(norms**2, increasing=False)))


class Mahalanobis(TwoForms):
    """Weights bounded by N(d)^2 = d' E^-1 d,  E positive definite.

    form="constraint":  h(d) = 0 if d' E^-1 d <= 1, else +inf

        penalty    min_d 1/2 sum_m n_m^2 / d_m  subject to  d' E^-1 d <= 1
        conjugate  1/2 min_{t >= s} sqrt(t' E t),  s = r^2

    form="penalty":  h(d) = d' E^-1 d / 2

        penalty    min_d 1/2 sum_m n_m^2 / d_m + 1/4 d' E^-1 d
        conjugate  1/4 min_{t >= s} t' E t

    E = I is the l2 norm. Large E_ml says that kernels m and l may carry weight together. Kloft et
    al. (2011), section 3.5.

    Parameters
    ----------
    E : array-like of shape (M, M) or "alignment", default="alignment"
        "alignment" takes the cosines <K_m, K_l> / (||K_m|| ||K_l||) of the training matrices,
        with a little of the identity so that it can be inverted.
    form : {"constraint", "penalty"}, default="constraint"

    Examples
    --------
    >>> import numpy as np
    >>> Mahalanobis(np.eye(2)).weights(np.array([1.0, 1.0])).round(6)
    array([0.707107, 0.707107])
    """

    name = "mahalanobis"
    per_kernel = ("E",)
    degree = 2.0

    def __init__(self, E: Any = "alignment", form: str = "constraint") -> None:
        self.E = E
        self.form = form

    def bound_to(self, gram: Any) -> Mahalanobis:
        if isinstance(self.E, str):
            if self.E != "alignment":
                raise ValueError(f"Mahalanobis: E={self.E!r} must be a matrix or 'alignment'.")
            return Mahalanobis(alignments(gram) + 1e-3 * np.eye(gram.n_kernels), self.form)
        if np.shape(self.E) != (gram.n_kernels, gram.n_kernels):
            raise ValueError(f"Mahalanobis: E has shape {np.shape(self.E)} for {gram.n_kernels} kernels.")
        return self

    def size(self, weights: FloatArray) -> float:
        return float(np.sqrt(weights @ np.linalg.solve(self._matrix(len(weights)), weights)))

    def least(self, norms: FloatArray) -> float:
        live = norms > 0
        return float((norms[live] ** 2 / self.unit_weights(norms)[live]).sum())

    def unit_weights(self, norms: FloatArray) -> FloatArray:
        Q = np.linalg.inv(self._matrix(len(norms)))
        top = float(norms.max(initial=0.0))
        d = _least_ratio(np.maximum(norms / top, 1e-8) if top > 0.0 else np.ones_like(norms), Q)
        return np.asarray(d / np.sqrt(d @ Q @ d))

    def most(self, dual_norms: FloatArray) -> float:
        # min t' E t = ||L' t||^2 over t >= s
        s = dual_norms**2
        scale = max(float(s.max(initial=0.0)), 1e-300)
        factor = np.linalg.cholesky(self._matrix(len(s))).T
        found = lsq_linear(factor, np.zeros(len(s)), bounds=(s / scale, np.inf), method="bvls", tol=1e-14)
        return scale * float(np.linalg.norm(factor @ found.x))

    def largest_norm(self, scales: FloatArray, order: float) -> float:
        """||a d||_2^2 <= largest eigenvalue of (a_m E_ml a_l); for q < 2 M^(1/q - 1/2) times as much."""
        E = self._matrix(len(scales)) * np.outer(scales, scales)
        return float(np.linalg.eigvalsh(E)[-1] ** 0.5 * len(scales) ** max(1.0 / order - 0.5, 0.0))

    def size_of_weights(self, norms: FloatArray, mu: float = 1.0, degree: float | None = None) -> float:
        if isinstance(self.E, str):
            raise ValueError(f"Mahalanobis: E={self.E!r} depends on the training samples; give the matrix.")
        return super().size_of_weights(norms, mu, degree)

    def _matrix(self, size: int) -> FloatArray:
        E = np.eye(size) if isinstance(self.E, str) else np.asarray(self.E, dtype=np.float64)
        if E.shape != (size, size) or not np.allclose(E, E.T) or np.linalg.eigvalsh(E)[0] <= 0:
            raise ValueError(f"Mahalanobis: E must be a positive definite matrix of shape ({size}, {size}).")
        return E


def _least_ratio(norms: FloatArray, Q: FloatArray) -> FloatArray:
    """argmin_{d>0} 1/2 sum n^2 / d + 1/2 d' Q d, by damped Newton steps that stay positive."""
    d = (norms / np.sqrt(Q.diagonal())) ** (2.0 / 3.0)

    def value(d: FloatArray) -> float:
        return 0.5 * float((norms**2 / d).sum() + d @ Q @ d)

    for _ in range(200):
        gradient = -0.5 * norms**2 / d**2 + Q @ d
        step = np.linalg.solve(Q + np.diag(norms**2 / d**3), -gradient)
        shrinking = step < 0
        t = min(1.0, 0.9 * float((-d[shrinking] / step[shrinking]).min(initial=np.inf)))
        while t > 1e-12 and value(d + t * step) > value(d):
            t *= 0.5
        d = d + t * step
        if float(np.abs(t * step / d).max()) <= 1e-13:
            break
    return d


def alignments(gram: Any) -> FloatArray:
    """Cosines <K_m, K_l> / (||K_m|| ||K_l||) of the matrices of a Gram engine, shape (M, M)."""
    cached = getattr(gram, "cached_alignments", None)
    if cached is not None:
        return np.asarray(cached)  # a path asks again at every point
    units = np.eye(gram.n_kernels)
    products = np.array([gram.inner(gram.combine(unit)) for unit in units])
    size = np.sqrt(products.diagonal())
    gram.cached_alignments = np.asarray(products / np.outer(size, size))
    return np.asarray(gram.cached_alignments)
