"""What a greedy fit minimises, for a given set of kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..._typing import FloatArray
from ...losses import Loss
from ..problem import Problem


@dataclass(frozen=True)
class GreedyTask:
    """Targets, loss and ridge of a greedy fit.

        J(G) = min_f  2/l sum_i w_i V(y_i, f(x_i)) + lambda ||f||^2,     f in the sum of the spaces of G

    with l the sum of the sample weights w; for the squared loss 2 V is (y - f)^2, and
    `Problem` is the same with C_i = w_i / (lambda l), divided by 2 lambda.

    Parameters
    ----------
    y : ndarray of shape (n, c)
    weight : ndarray of shape (n,)
        Positive.
    loss : Loss
    ridge : float
        lambda.
    fit_intercept : bool

    Examples
    --------
    >>> from kernelweave.losses import Squared
    >>> GreedyTask(np.ones((4, 1)), np.ones(4), Squared(), ridge=0.5).shift
    2.0
    """

    y: FloatArray
    weight: FloatArray
    loss: Loss
    ridge: float
    fit_intercept: bool = True

    @property
    def total(self) -> float:
        """The number of samples l, each counted by its weight."""
        return float(self.weight.sum())

    @property
    def shift(self) -> float:
        """What is added to the diagonal of the kernels: lambda l."""
        return self.ridge * self.total

    @property
    def rounding(self) -> float:
        """What rounding the targets can make of their variance."""
        return float((self.weight @ (8.0 * np.finfo(np.float64).eps * self.y) ** 2).sum() / self.total)

    @property
    def root(self) -> FloatArray:
        """sqrt(w), shape (n, 1)."""
        return np.sqrt(self.weight)[:, None]

    @cached_property
    def problem(self) -> Problem:
        """The same with one cost per sample, for single-kernel machines."""
        return Problem(self.y, self.loss, self.weight[:, None] / self.shift, self.fit_intercept)


@dataclass(frozen=True)
class Fit:
    """The best function of a set of kernels.

    Attributes
    ----------
    kernels : tuple of int
        In the order in which they came in.
    scaled_alpha : ndarray of shape (n, c)
        a with alpha = sqrt(w) a; for the squared loss (K_G + lambda l I) a = sqrt(w) y.
    intercept : ndarray of shape (c,)
    objective, error : float
        J, and its first term.
    level : float
        J(G') >= level - lambda sum_{m in G'} a'K_m a for any other set G' (weak duality).
    """

    kernels: tuple[int, ...]
    scaled_alpha: FloatArray = field(repr=False)
    intercept: FloatArray
    objective: float
    error: float
    level: float

    def gap(self, energy: float) -> float:
        """Relative duality gap (J - (level - energy)) / J of the fit among functions of its own kernels.

        Parameters
        ----------
        energy : float
            lambda sum_{m in G} a'K_m a.
        """
        return max(self.objective - self.level + energy, 0.0) / self.objective if self.objective > 0 else 0.0
