"""Logistic loss: kernel logistic regression."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, xlogy

from .._typing import FloatArray
from .base import Loss, restrict


class Logistic(Loss):
    """V(y, f) = log(1 + exp(-y f)),  y in {-1, +1}.

    Conjugate: V*(y, v) = u log u + (1 - u) log(1 - u), u = -y v in [0, 1]. It is the negative
    log-likelihood of P(y = +1 | f) = 1 / (1 + exp(-f)).

    Examples
    --------
    >>> import numpy as np
    >>> Logistic().probability(np.array([0.0]))
    array([0.5])
    """

    name = "logistic"
    task = "classification"

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return np.logaddexp(0.0, -y * f)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return np.asarray(-y * expit(-y * f))

    def hessian(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """p (1 - p) with p = P(y = +1 | f)."""
        p = expit(f)
        return np.asarray(p * (1.0 - p))

    def conjugate(self, y: FloatArray, v: FloatArray) -> FloatArray:
        u = -y * v
        inside = np.clip(u, 0.0, 1.0)
        entropy = xlogy(inside, inside) + xlogy(1.0 - inside, 1.0 - inside)
        return restrict(entropy, np.maximum(-u, u - 1.0))

    def dual_box(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.minimum(y, 0.0), np.maximum(y, 0.0)

    def dual_curvature(self, y: FloatArray, a: FloatArray) -> FloatArray:
        u = np.clip(y * a, 0.0, 1.0)
        spread = u * (1.0 - u)
        inside = spread > 1e-300
        return np.where(inside, 1.0 / np.where(inside, spread, 1.0), np.inf)

    def probability(self, f: FloatArray) -> FloatArray:
        """P(y = +1 | f)."""
        return np.asarray(expit(f))
