"""Epsilon-insensitive loss of censored log times: support vector regression for survival."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray
from .base import restrict
from .eps_insensitive import EpsInsensitive


class CensoredEpsInsensitive(EpsInsensitive):
    """V = max(0, |z - f| - eps) of an event at log time z, max(0, z - eps - f) of one censored there.

    A censored sample is known to live longer than exp(z): a prediction costs only where it is below. f is a
    log time; eps is a ratio of times. Conjugate: V*(y, v) = v z + eps |v| for -1 <= v <= 1, of a censored
    sample for -1 <= v <= 0. With one kernel it is support vector regression for censored data (Shivaswamy,
    Chu & Jansche 2007).

    A target y is one number: the time of an event, or minus the time of censoring; z = log |y|.

    Parameters
    ----------
    eps : float, default=0.1
        Half-width of the tube inside which errors cost nothing, in logarithms.

    Examples
    --------
    >>> y = np.array([1.0, -1.0])  # an event at time 1, and a sample censored there
    >>> CensoredEpsInsensitive(eps=0.5).value(y, np.array([1.0, 1.0]))
    array([0.5, 0. ])
    """

    name = "censored_eps_insensitive"
    task = "survival"

    def targets(self, Y: FloatArray) -> FloatArray:
        """Times and events, shape (n, 2), as signed times."""
        if Y.shape[1] > 2:
            raise ValueError("y has strata, and log times are not compared within them: leave them out of y.")
        if not Y[:, 0].all():
            raise ValueError(
                f"y has {np.count_nonzero(Y[:, 0] == 0.0)} times of 0, which have no logarithm: give them a "
                "small time, leave those samples out, or use loss='cox'."
            )
        return np.where(Y[:, 1] > 0.0, Y[:, 0], -Y[:, 0])[:, None]

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        lacking = np.log(np.abs(y)) - f
        return np.maximum(0.0, np.where(y > 0.0, np.abs(lacking), lacking) - self.eps)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        lacking = np.log(np.abs(y)) - f
        costs = np.where(y > 0.0, np.abs(lacking), lacking) > self.eps
        return np.where(costs, -np.sign(lacking), 0.0)

    def conjugate(self, y: FloatArray, v: FloatArray) -> FloatArray:
        lower, upper = self.dual_box(y)
        return restrict(v * np.log(np.abs(y)) + self.eps * np.abs(v), np.maximum(lower + v, -v - upper))

    def dual_box(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.where(y > 0.0, -1.0, 0.0), np.full_like(y, 1.0)

    def linear_dual(self, y: FloatArray) -> tuple[FloatArray, float]:
        """-V*(y, -a) = z a - eps |a| on the box."""
        return np.log(np.abs(y)), self.eps

    def kinks(self, y: FloatArray) -> list[FloatArray]:
        """The edges of the tube; of censored samples the upper one is infinite."""
        z = np.log(np.abs(y))
        return [z - self.eps, np.where(y > 0.0, z + self.eps, np.inf)]

    def size(self, y: FloatArray) -> FloatArray:
        return np.abs(np.log(np.abs(y)))
