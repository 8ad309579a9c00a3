"""Losses of ordered classes: one function, and thresholds between the classes."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real

import numpy as np
from scipy.special import expit

from .._typing import FloatArray
from .joint import JointLoss

#: most steps of the search for thresholds
MOST_STEPS = 200

#: share of the terms of a sum that counts as zero
ROUNDING = 1e-13


class OrdinalLoss(JointLoss):
    """L(y, f) = min_b sum_i w_i sum_k v(s_ik (f_i - b_k)),  s_ik = +1 where y_i > class k, else -1.

    A threshold b_k lies between every two classes that follow one another, and every sample takes part in all
    of them (Rennie & Srebro 2005, Chu & Keerthi 2007), so that they come out in order, and a mistake costs
    more the further the prediction is from the class. Thresholds are intercepts, part of L: at the best ones,
    with z_ik = s_ik (f_i - b_k),

        L'_i = w_i sum_k s_ik v'(z_ik),    sum_i w_i s_ik v'(z_ik) = 0 for every k
        H    = diag(h) - sum_k q_k q_k' / sum(q_k)  <=  diag(h),   q_ik = w_i v''(z_ik),  h_i = sum_k q_ik

    and there is no further intercept. A subclass writes v and two derivatives. Targets are numbers in the
    order of the classes; everything takes O(n) per threshold.
    """

    task = "ordinal"
    shift_invariant = True

    #: v(z) = 0 from there on; samples further from a threshold than that do not move it
    margin: float = np.inf

    @abstractmethod
    def margins(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """v, v' and v'' at z."""

    def thresholds(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> FloatArray:
        """The best b for predictions f, in the order of the classes of y, shape (n_classes - 1,).

        Where the samples of both sides keep their distance, the middle between them.

        Examples
        --------
        >>> y, f = np.array([0.0, 0.0, 1.0, 2.0]), np.array([-4.0, -3.0, 1.0, 5.0])
        >>> OrdinalHinge().thresholds(y, f, np.ones(4))
        array([-1.,  3.])
        """
        return self._solved(y, f, weight)[0]

    def value(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> float:  # type: ignore[override]
        return float(weight @ self._solved(y, f, weight)[2].sum(axis=1))

    def gradient(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> FloatArray:  # type: ignore[override]
        _, signs, _, slopes, _ = self._solved(y, f, weight)
        return np.asarray(weight * (signs * slopes).sum(axis=1))

    def curvature(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> FloatArray:
        return np.asarray(weight * self._solved(y, f, weight)[4].sum(axis=1))

    def hessian_product(self, y: FloatArray, f: FloatArray, weight: FloatArray, v: FloatArray) -> FloatArray:
        q = weight[:, None] * self._solved(y, f, weight)[4]
        sums = q.sum(axis=0)
        shares = np.divide(v @ q, sums, out=np.zeros_like(sums), where=sums > 0.0)
        return np.asarray(q.sum(axis=1) * v - q @ shares)

    def _solved(self, y: FloatArray, f: FloatArray, weight: FloatArray) -> tuple[FloatArray, ...]:
        """b, and of every sample and threshold s, v, v' and v''."""
        levels = np.unique(y)[:-1]
        signs = np.where(y[:, None] > levels, 1.0, -1.0)
        sides = signs > 0.0, signs < 0.0
        lowest = np.where(sides[0], f[:, None], np.inf).min(axis=0, initial=np.inf)
        highest = np.where(sides[1], f[:, None], -np.inf).max(axis=0, initial=-np.inf)
        apart = lowest - highest >= 2.0 * self.margin
        # that far beyond all predictions the slope in b has one sign
        reach = 1.0 + np.abs(np.log((weight @ sides[0]) / (weight @ sides[1])))
        low, high = f.min(initial=np.inf) - reach, f.max(initial=-np.inf) + reach
        b = np.where(apart, 0.5 * (highest + lowest), np.clip(0.5 * (highest + lowest), low, high))
        for _ in range(MOST_STEPS):
            values, slopes, curves = self.margins(signs * (f[:, None] - b))
            # the samples above press b down, those below up; Newton steps on the logarithm of the ratio
            down, up = (-(weight @ (slopes * side)) for side in sides)
            low, high = np.where(down < up, b, low), np.where(down > up, b, high)
            known = (down > 0.0) & (up > 0.0)
            down_, up_ = np.where(known, down, 1.0), np.where(known, up, 1.0)
            rate = weight @ (curves * sides[0]) / down_ + weight @ (curves * sides[1]) / up_
            step = np.log(down_ / up_) / np.where(rate > 0.0, rate, 1.0)
            inside = known & (rate > 0.0) & (b - step > low) & (b - step < high)
            moved = np.where(inside, b - step, 0.5 * (low + high))
            still = apart | (np.abs(down - up) <= ROUNDING * (down + up)) | (moved == b)
            if still.all():
                break
            b = np.where(still, b, moved)
        return b, signs, values, slopes, curves


class OrdinalLogistic(OrdinalLoss):
    """L(y, f) = min_b sum_i w_i sum_k log(1 + exp(-s_ik (f_i - b_k))).

    s_ik = +1 where y_i > class k, else -1. Every threshold is a logistic regression of whether a sample is
    above it, all with the same f: P(y > class k) = 1 / (1 + exp(b_k - f)), the proportional odds of McCullagh
    (1980). See `OrdinalLoss`.

    Examples
    --------
    >>> y, f, weight = np.array([0.0, 1.0, 2.0]), np.array([-2.0, 0.0, 2.0]), np.ones(3)
    >>> OrdinalLogistic().thresholds(y, f, weight).round(3)
    array([-1.109,  1.109])
    """

    name = "ordinal_logistic"

    def margins(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        p = expit(-z)
        return np.logaddexp(0.0, -z), -p, p * expit(z)

    def probability(self, f: FloatArray) -> FloatArray:
        """P(y > class k) where f is the prediction less the threshold b_k."""
        return np.asarray(expit(f))


class OrdinalHinge(OrdinalLoss):
    """L(y, f) = min_b sum_i w_i sum_k v(s_ik (f_i - b_k)),  s_ik = +1 where y_i > class k, else -1.

    v is the hinge with a round corner of width delta: with m = 1 - z, what a margin lacks,

        v(z) = 0 for m <= 0,  m^2 / (2 delta) up to delta,  m - delta / 2 beyond

    the smooth hinge of Rennie & Srebro (2005) for delta = 1, and within delta / 2 of max(0, m), with which L
    is the support vector ordinal regression of Chu & Keerthi (2007) with implicit constraints. See
    `OrdinalLoss`.

    Parameters
    ----------
    delta : float, default=1.0
        Positive.

    Examples
    --------
    >>> y, f, weight = np.array([0.0, 1.0, 2.0]), np.array([-2.0, 0.0, 3.0]), np.ones(3)
    >>> OrdinalHinge().value(y, f, weight)
    0.0
    """

    name = "ordinal_hinge"
    margin = 1.0

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def check(self) -> None:
        if not (isinstance(self.delta, Real) and 0.0 < float(self.delta) < np.inf):
            raise ValueError(f"OrdinalHinge: delta={self.delta!r} must be a positive number.")

    def margins(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        lacking = np.maximum(1.0 - z, 0.0)
        slope = np.minimum(lacking / self.delta, 1.0)
        curved = (lacking > 0.0) & (lacking < self.delta)
        return slope * (lacking - 0.5 * self.delta * slope), -slope, curved / self.delta
