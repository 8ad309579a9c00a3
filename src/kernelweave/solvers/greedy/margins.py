"""Leave-one-out predictions of a greedy fit."""

from __future__ import annotations

import numpy as np

from ..._typing import FloatArray
from ..leave_one_out import leave_one_out
from .losses import MachineRefit
from .refit import Refit, RidgeRefit
from .task import Fit


def left_out_margins(refit: Refit, fit: Fit) -> FloatArray:
    """Predictions on each training sample by the fit without it, the kernels kept; shape (n, c).

    Equal samples are left out together, so that a sample of weight 2 and a sample given twice agree.
    """
    if isinstance(refit, RidgeRefit):
        return _exact(refit, fit)
    assert isinstance(refit, MachineRefit)
    problem, alpha = refit.task.problem, refit.task.root * fit.scaled_alpha
    K = refit.matrix()
    f = K @ alpha + fit.intercept + refit.offset(alpha)
    columns = range(problem.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.column_stack([leave_one_out(K, problem.column(k), alpha[:, k], f[:, k]) for k in columns])
    # a lone free sample decides the intercept: what it would be without is not known to first order
    return np.where(np.isfinite(out), out, f)


def _exact(refit: RidgeRefit, fit: Fit) -> FloatArray:
    """y_i - a_i / (sqrt(w_i) N_ii), with a = N sqrt(w) y the fit as a linear map.

    N = (K_G + lambda l I)^-1, less its part in the direction of the intercept. For equal samples, u
    the unit vector of their sqrt(w), N is b uu' + (I - uu') / (lambda l) on them, and b takes the
    place of N_ii.
    """
    task = refit.task
    diagonal = refit.inverse_diagonal() - task.fit_intercept * task.weight / (task.shift * task.total)
    share = task.weight / _weight_of_equals(refit)
    b = (diagonal - (1.0 - share) / task.shift) / share
    b = np.maximum(b, 1e-12 / task.shift)
    return task.y - fit.scaled_alpha / (task.root * b[:, None])


def _weight_of_equals(refit: RidgeRefit) -> FloatArray:
    """Total weight of the samples equal to each: same kernel values, same targets."""
    task = refit.task
    probe = np.random.RandomState(0).standard_normal((len(task.y), 1))
    mark = (refit.apply(probe) - task.shift * probe) / task.root
    digits = np.round(mark / max(float(np.abs(mark).max()), 1e-300), 10)
    _, group = np.unique(np.column_stack([digits, task.y]), axis=0, return_inverse=True)
    group = group.ravel()
    return np.asarray(np.bincount(group, task.weight)[group], dtype=np.float64)
