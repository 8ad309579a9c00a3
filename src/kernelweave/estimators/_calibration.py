"""Probabilities from margins."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_softmax, softmax

from .._typing import FloatArray, IntArray


def fit_sigmoid(margins: FloatArray, y: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Slope and shift of P(y = +1) = 1 / (1 + exp(-(slope * margin + shift))).

    Maximum likelihood with Platt's targets, (N+ + 1) / (N+ + 2) and 1 / (N- + 2), which keep the
    slope finite on separable margins (Platt 2000).

    Parameters
    ----------
    margins : ndarray of shape (n,)
        Held-out decision values.
    y : ndarray of shape (n,)
        -1 or +1.
    weight : ndarray of shape (n,)
        A sample of weight w counts as w equal samples.
    """
    positive, negative = float(weight[y > 0].sum()), float(weight[y < 0].sum())
    target = np.where(y > 0, (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0))
    scale = float(np.abs(margins).max()) or 1.0
    design = np.column_stack([margins / scale, np.ones_like(margins)])

    def derivatives(link: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        z = design @ link
        p = expit(z)
        loss = float(weight @ (np.logaddexp(0.0, z) - target * z))
        return loss, design.T @ (weight * (p - target)), (design.T * (weight * p * (1.0 - p))) @ design

    start = np.array([0.0, np.log((positive + 1.0) / (negative + 1.0))])
    slope, shift = _newton(derivatives, start)
    return float(slope / scale), float(shift)


def fit_temperature(margins: FloatArray, labels: IntArray, weight: FloatArray) -> float:
    """Factor t of the class probabilities softmax(t * margins), by maximum likelihood.

    The largest margin keeps the largest probability. Targets are smoothed as Platt's, so that
    t stays finite (Guo et al. 2017).

    Parameters
    ----------
    margins : ndarray of shape (n, n_classes)
        Held-out decision values.
    labels : ndarray of shape (n,)
        Class indices.
    weight : ndarray of shape (n,)
    """
    n_classes = margins.shape[1]
    scale = float(np.abs(margins).max()) or 1.0
    x = margins / scale
    share = 1.0 / (float(weight.sum()) + n_classes)
    target = np.where(labels[:, None] == np.arange(n_classes), 1.0 - (n_classes - 1) * share, share)

    def derivatives(link: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        p = softmax(link[0] * x, axis=1)
        mean = (p * x).sum(axis=1)
        slope = mean - (target * x).sum(axis=1)
        curvature = (p * x**2).sum(axis=1) - mean**2
        loss = -float(weight @ (target * log_softmax(link[0] * x, axis=1)).sum(axis=1))
        return loss, np.array([weight @ slope]), np.array([[weight @ curvature]])

    return float(max(_newton(derivatives, np.zeros(1))[0], 1e-6) / scale)


def _newton(derivatives, x: FloatArray) -> FloatArray:
    """Minimise a smooth convex function of few variables, to rounding."""
    for _ in range(100):
        value, gradient, hessian = derivatives(x)
        hessian = hessian + 1e-12 * max(float(np.trace(hessian)), 1e-300) * np.eye(len(x))
        step, t = np.linalg.solve(hessian, gradient), 1.0
        while t > 1e-6 and derivatives(x - t * step)[0] > value:
            t *= 0.5
        x = x - t * step
        if t * float(np.abs(step).max()) <= 1e-12 * max(1.0, float(np.abs(x).max())):
            break
    return x
