"""Weighted sums of models by what they predict for held-out samples, and the choice between them and one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize

from .._typing import FloatArray, IntArray
from ..gram import Dictionary
from ._base import one_or_all
from ._mkl import BaseMKL, Model
from ._search import CLEAR

#: shares of the stack below this are taken for zero
LEAST_SHARE = 0.02

#: samples that speak for the first guess of the stack before there are any
PULL = 100.0


def nonnegative(
    loss: Callable[[FloatArray], tuple[float, FloatArray]],
    F: FloatArray,
    guess: FloatArray,
    pull: float = 0.0,
    tied: bool = False,
) -> FloatArray:
    """The a >= 0 of the least  loss(sum_j a_j F_j) + pull sum_j (a_j - g_j)^2,  g the `guess`.

    Shares below 2 % are zero. Where `tied`, sum_j a_j = 1. A convex problem of few variables if `loss` is
    convex, which gives a value and a gradient.

    Examples
    --------
    >>> t = np.array([1.0, -1.0, 2.0])
    >>> nonnegative(lambda f: (((t - f) ** 2).sum(), 2.0 * (f - t)), np.array([t, -t]), np.zeros(2)).round(3)
    array([1., 0.])
    """
    how: dict[str, Any] = {"method": "L-BFGS-B", "options": {"ftol": 1e-12, "gtol": 1e-7}}
    if tied and len(F) == 1:
        return np.ones(1)
    if tied:
        sum_is_one = {"type": "eq", "fun": lambda a: a.sum() - 1.0, "jac": lambda a: np.ones_like(a)}
        how = {"method": "SLSQP", "constraints": [sum_is_one], "options": {"maxiter": 200, "ftol": 1e-9}}

    def objective(a: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = loss(a @ F)
        return value + pull * float((a - guess) @ (a - guess)), F @ gradient + 2.0 * pull * (a - guess)

    a = minimize(objective, guess, jac=True, bounds=[(0.0, None)] * len(F), **how).x
    a = np.where(a >= LEAST_SHARE * a.sum(), np.maximum(a, 0.0), 0.0)
    return np.asarray(a / a.sum() if tied and a.any() else a)


def multipliers(
    values: Sequence[FloatArray],
    targets: FloatArray,
    squared: bool,
    weight: FloatArray | None = None,
    clusters: Any = None,
    often: float = 1.0,
) -> FloatArray:
    """Multipliers a >= 0 of the stack sum_j a_j F_j that has the least loss on held-out values F_j.

    With e_j = `plausible` of their losses alone, and s_j the size of F_j,

        mean_i V(t_i, sum_j a_j F_ij) + (PULL / n) sum_j (s_j a_j - e_j)^2

    so few samples do not lead far from a mean of all candidates that are hardly behind the best. For
    regression V is the squared error in units of the variance, s_j = 1 and sum_j a_j = 1. For classes,
    targets t of -1 and 1, V = max(0, 1 - t f)^2, s_j is the root mean square and a is free, since only
    signs and proportions count. Samples, the rows of targets (n, c), count by their `weight`; those of one
    cluster belong together. A sample that is there `often` times counts once against the first guess.
    Candidates that are not `informative` alone take no part, if others are.

    Examples
    --------
    >>> t = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    >>> multipliers([t, -t], t, squared=True).round(3)
    array([1., 0.])
    """
    F, t, c = np.array([one.ravel() for one in values]), targets.ravel(), targets[0].size
    mass = np.ones(len(targets)) if weight is None else weight
    total, each = float(mass.sum()), np.repeat(mass, c) / (c * mass.sum())
    if squared:
        sizes, centre = np.ones(len(F)), float(each @ t)
        unit = float(each @ (t - centre) ** 2) or 1.0
    else:
        sizes, unit = np.maximum(np.sqrt(F**2 @ each), 1e-300), 1.0
    F = F / sizes[:, None]

    def loss(f: FloatArray) -> tuple[float, FloatArray]:
        left = t - f if squared else t * np.maximum(1.0 - t * f, 0.0)
        return float(each @ left**2) / unit, -2.0 * each * left / unit

    pull, one = PULL * often / total, np.ones(1)
    alone = [nonnegative(loss, f[None], one, pull, squared)[0] * f for f in F]
    lost = [sample_losses(f.reshape(targets.shape), targets, squared) for f in alone]
    constant = sample_losses(np.average(targets, axis=0, weights=mass)[None], targets, squared)
    kept, found = informative(np.array(lost), constant, mass, clusters), np.zeros(len(F))
    guess = plausible(np.array(lost)[kept], mass, clusters)
    best = nonnegative(loss, F[kept], guess, pull, squared)
    found[kept] = best if best.any() else guess
    return np.asarray(found / sizes)


def sample_losses(values: FloatArray, targets: FloatArray, squared: bool) -> FloatArray:
    """Losses of samples that a stack makes small: squared distances, from the margin for classes."""
    left = targets - values if squared else np.maximum(1.0 - targets * values, 0.0)
    return np.asarray((left**2).mean(axis=1))


def behind(losses: FloatArray, weight: Any = None, clusters: Any = None) -> tuple[FloatArray, FloatArray]:
    """By how much each sum of losses is more than the least one, and the standard error of that.

    A weight of 2 is a sample given twice. Samples of a cluster are one.
    """
    mass = np.ones(losses.shape[1]) if weight is None else weight
    apart = losses - losses[np.argmin(losses @ mass)]
    if clusters is not None:
        own, count = np.unique(clusters, return_inverse=True, return_counts=True)[1:]
        each = np.bincount(own, mass) / count
        apart, mass = np.array([np.bincount(own, mass * row) for row in apart]) / each, each
    more, total = apart @ mass, max(float(mass.sum()), len(mass))
    squares = (apart - (more / mass.sum())[:, None]) ** 2 @ mass
    return more, np.sqrt(squares * total / max(total - 1.0, 1.0))


def plausible(losses: FloatArray, weight: Any = None, clusters: Any = None) -> FloatArray:
    """How likely each candidate is as good as the best: e_j = exp(-z_j^2 / 2), divided by their sum.

    z_j is by how many standard errors of the difference the sum of its losses is more than the least.

    Parameters
    ----------
    losses : ndarray of shape (n_candidates, n_samples)
    weight : ndarray of shape (n_samples,), optional
    clusters : ndarray of shape (n_samples,), optional
        Samples that belong together, such as those of a group, or tested several times.

    Examples
    --------
    >>> plausible(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [9.0, 8.0, 9.0]])).round(3)
    array([0.5, 0.5, 0. ])
    """
    more, error = behind(np.nan_to_num(losses), weight, clusters)
    e = np.exp(-0.5 * np.divide(more, error, out=np.where(more > 0.0, np.inf, 0.0), where=error > 0.0) ** 2)
    return np.asarray(e / e.sum())


def informative(
    losses: FloatArray, constant: FloatArray, weight: Any = None, clusters: Any = None
) -> IntArray:
    """Candidates whose losses are less than those of a constant by two standard errors; all, if none are.

    What predicts no better than a constant, such as kernels of noise, moves a stack by chance. The constant
    of the least loss is the mean of the targets, for classes of -1 and 1 too.

    Examples
    --------
    >>> constant = np.array([1.0, 1.0, 1.0, 1.0])
    >>> informative(np.array([[0.1, 0.3, 0.2, 0.2], [0.1, 1.9, 0.4, 1.6]]), constant)
    array([0])
    """
    clear = []
    for own in losses:
        more, error = behind(np.array([own, constant]), weight, clusters)
        clear.append(more[1] > CLEAR * error[1])
    return np.flatnonzero(clear) if any(clear) else np.arange(len(losses))


def simplest(
    losses: FloatArray,
    folds: IntArray,
    weight: Any = None,
    clusters: Any = None,
    simplicity: float = 1.0,
    clear: float = 0.0,
) -> int:
    """The stack where it is better than a candidate alone; else the simplest that is hardly behind the best.

    The stack learned its multipliers for a fold from the others. The least of many losses is flattered by
    having been chosen, so it is judged in the same way: on each fold, by the candidate that the others
    choose.

    Parameters
    ----------
    losses : ndarray of shape (n_candidates + 1, n_tested)
        Held-out losses of single samples, or of folds, from the simplest candidate to the stack.
    folds : ndarray of int of shape (n_tested,)
        The fold of each.
    weight, clusters : ndarray of shape (n_tested,), optional
        Of samples; which of them belong together.
    simplicity : float, default=1.0
        Standard errors of the difference by which a candidate may be behind the best one.
    clear : float, default=0.0
        Standard errors of the difference by which one alone has to be better than the stack.

    Examples
    --------
    >>> losses = np.array([[0.9, 0.8, 0.7], [0.3, 0.3, 0.2], [0.1, 0.4, 0.2], [0.3, 0.4, 0.3]])
    >>> simplest(losses, np.arange(3)), simplest(losses, np.arange(3), simplicity=0.0)
    (1, 2)
    >>> simplest(losses, np.arange(3), clear=5.0)
    3
    """
    alone, stack = np.nan_to_num(losses[:-1]), np.nan_to_num(losses[-1])
    mass = np.ones(len(stack)) if weight is None else weight

    own = np.arange(len(stack)) if clusters is None else clusters

    def choice(rows: Any) -> int:
        more, error = behind(alone[:, rows], mass[rows], None if clusters is None else clusters[rows])
        return int(np.flatnonzero(more <= simplicity * error + 1e-12)[0])

    chosen = np.empty(len(stack))
    for fold in np.unique(folds):
        here = folds == fold
        others = ~here & ~np.isin(own, own[here])  # samples may be tested several times
        chosen[here] = alone[choice(others if others.any() else ~here), here]
    ahead = float(mass @ stack) - float(mass @ chosen)
    error = float(behind(np.array([chosen, stack]), mass, clusters)[1].max())
    return len(alone) if ahead < 0.0 or ahead < clear * error else choice(slice(None))


def store_stack(
    estimator: BaseMKL,
    dictionary: Dictionary,
    fits: list[tuple[Dictionary, list[Model]]],
    shares: FloatArray,
    weight: FloatArray,
) -> None:
    """Set the fitted attributes of the functions f = sum_j w_j f_j.

    Their components and weights are f_m = K_m sum_j w_j d_jm alpha_j and d_m = sum_j w_j d_jm.
    """
    states = [[model.solution.state for model in models] for _, models in fits]
    weights = np.array(
        [
            own.all_weights(np.array([state.weights for state in line]))
            for (own, _), line in zip(fits, states, strict=True)
        ]
    )  # candidate, model, kernel
    alpha = np.hstack([model.alpha for _, models in fits for model in models])
    by_problem = list(zip(*(models for _, models in fits), strict=True))
    intercepts = np.concatenate([state.certificate.intercept for line in states for state in line])
    columns = [model.alpha.shape[1] for _, models in fits for model in models]
    every = np.repeat(weights.reshape(-1, weights.shape[2]), columns, axis=0)
    estimator.model_ = dictionary.predictor(every, alpha, intercepts)
    estimator.model_.n_stages, estimator.model_.shares = len(fits), shares
    results = [model.solution for _, models in fits for model in models]
    estimator._store_results(dictionary.names, np.tensordot(shares, weights, 1), alpha, weight, results)
    estimator.gram_, estimator.gram_reason_ = dictionary.gram.name, dictionary.gram_reason
    estimator.norms_ = one_or_all(
        np.array(
            [_stack_norms(dictionary, shares, weights[:, k], models) for k, models in enumerate(by_problem)]
        )
    )
    estimator.support_ = np.flatnonzero(alpha.any(axis=1))
    estimator.intercept_ = one_or_all(estimator.model_.intercept + estimator._constants())
    estimator.dual_gap_ = one_or_all(np.array([result.state.certificate.gap for result in results]))
    estimator.objective_ = one_or_all(np.array([result.state.certificate.primal for result in results]))


def stack_margins(shares: FloatArray, models: Sequence[Model]) -> FloatArray:
    """Leave-one-out predictions of the sum of models."""
    parts = [(share, model.margins) for share, model in zip(shares, models, strict=True)]
    return np.asarray(sum(share * margins() for share, margins in parts if margins is not None))


def _stack_norms(
    dictionary: Dictionary, shares: FloatArray, weights: FloatArray, models: Sequence[Model]
) -> FloatArray:
    """Norms of the components f_m of a stack, from the weights (J, M) of its J models."""
    norms = np.zeros(weights.shape[1])
    for place, m in enumerate(dictionary.live):
        beta = sum(w * d * model.alpha for w, d, model in zip(shares, weights[:, m], models, strict=True))
        norms[m] = np.sqrt(max(float(dictionary.gram.quad(np.asarray(beta), np.array([place]))[0]), 0.0))
    return norms
