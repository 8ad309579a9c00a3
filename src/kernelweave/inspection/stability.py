"""Which kernels a method chooses again on other samples, and how much their weights vary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import delayed
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing, check_random_state

from .._typing import BoolArray, FloatArray, IntArray
from .._warnings import in_turn
from ..estimators._input import check_weights, per_sample, take
from ..estimators.auto import BaseMKLAuto
from ..gram.stack import as_stack
from ..kernels import as_views
from ._models import mean_shares
from ._refits import Refits, refits_for, weights_of

#: draws of groups before giving up on every class being in both halves
ATTEMPTS = 100


def draw_subsamples(
    n: int,
    n_subsamples: int,
    fraction: float,
    pairs: bool,
    strata: Any,
    groups: Any,
    random: np.random.RandomState,
) -> list[IntArray]:
    """Sorted row numbers of every sub-sample.

    Parameters
    ----------
    n : int
        Samples.
    n_subsamples : int
    fraction : float
        Share of the samples in each.
    pairs : bool
        Whether sub-samples 2k and 2k + 1 have no sample in common.
    strata : array-like of shape (n,) or None
        Classes, each of which is in every sub-sample in proportion.
    groups : array-like of shape (n,) or None
        Samples of one group are in the same sub-sample.
    random : RandomState

    Examples
    --------
    >>> from sklearn.utils import check_random_state
    >>> one, other = draw_subsamples(6, 2, 0.5, True, None, None, check_random_state(0))
    >>> sorted([*one.tolist(), *other.tolist()])
    [0, 1, 2, 3, 4, 5]
    """
    labels = np.zeros(n, dtype=int) if strata is None else np.unique(strata, return_inverse=True)[1]
    _check_counts(labels, fraction, pairs)
    parts: list[IntArray] = []
    while len(parts) < n_subsamples:
        halves = (
            _by_class(labels, fraction, random)
            if groups is None
            else _by_group(labels, groups, fraction, random)
        )
        parts.extend(halves if pairs else halves[:1])
    return parts[:n_subsamples]


def _check_counts(labels: IntArray, fraction: float, pairs: bool) -> None:
    """Refuse samples too few to be divided."""
    fewest = int(np.bincount(labels).min())
    if fewest < (2 if pairs else 1) or len(labels) * fraction < 2:
        raise ValueError(
            f"y: the smallest class has {fewest} of {len(labels)} samples, too few for sub-samples of "
            f"fraction={fraction}; join it with another class, or leave it out."
        )


def _by_class(labels: IntArray, fraction: float, random: np.random.RandomState) -> list[IntArray]:
    """Two parts with the same number of samples of each class; disjoint for fractions up to a half."""
    first, second = [], []
    for label in range(int(labels.max()) + 1):
        rows = random.permutation(np.flatnonzero(labels == label))
        size = max(1, int(fraction * len(rows)))
        first.append(rows[:size])
        second.append(rows[-size:])
    return [np.sort(np.concatenate(first)), np.sort(np.concatenate(second))]


def _by_group(
    labels: IntArray, groups: Any, fraction: float, random: np.random.RandomState
) -> list[IntArray]:
    """Two parts of whole groups, drawn until both have every class."""
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    n_groups, n_classes = int(codes.max()) + 1, int(labels.max()) + 1
    size = int(fraction * n_groups)
    for _ in range(ATTEMPTS if size else 0):
        order = random.permutation(n_groups)
        halves: list[IntArray] = [
            np.flatnonzero(np.isin(codes, part)) for part in (order[:size], order[-size:])
        ]
        if all(len(np.unique(labels[rows])) == n_classes for rows in halves):
            return halves
    raise ValueError(
        f"groups: {n_groups} groups cannot be divided so that both parts have every class; give finer groups."
    )


# -- stability selection ------------------------------------------------------------------------------


METHODS = ("pairs", "subsamples")

#: parameters of the estimator that are not for fits on sub-samples
QUIET = {"verbose": 0, "checkpoint": None}


@dataclass(frozen=True, eq=False, repr=False)
class StabilityResult:
    """Kernel weights over sub-samples.

    Attributes
    ----------
    kernel_names : list of str
    weights : ndarray of shape (n_subsamples, M)
        Share of every kernel in the sum of the weights, in the fit on each sub-sample. For models with
        several rows of weights (classes, outputs), the mean of the shares.
    full_weights : ndarray of shape (M,)
        The same in the fit on all samples.
    level : float
        Level of the intervals.
    threshold : float
        The smallest share at which a kernel counts as used.
    """

    kernel_names: list[str]
    weights: FloatArray
    full_weights: FloatArray
    level: float
    threshold: float

    def __repr__(self) -> str:
        count = f"{len(self.selected())} of {len(self.kernel_names)} kernels used in 60 %"
        return f"StabilityResult({count} of {len(self.weights)} sub-samples)"

    @property
    def used(self) -> BoolArray:
        """Whether each fit uses each kernel: its share is positive and not below `threshold`."""
        # kernels that share equally are used, whatever the rounding
        return (self.weights > 0) & (self.weights >= self.threshold * (1.0 - 1e-6))

    @property
    def frequency(self) -> FloatArray:
        """Share of the sub-samples in which each kernel is used, shape (M,)."""
        return np.asarray(self.used.mean(axis=0))

    @property
    def median(self) -> FloatArray:
        """Median weight share, shape (M,)."""
        return np.asarray(np.median(self.weights, axis=0))

    @property
    def low(self) -> FloatArray:
        """Lower ends of the central intervals that hold `level` of the sub-samples."""
        return np.asarray(np.quantile(self.weights, (1.0 - self.level) / 2.0, axis=0))

    @property
    def high(self) -> FloatArray:
        """Upper ends of the intervals."""
        return np.asarray(np.quantile(self.weights, (1.0 + self.level) / 2.0, axis=0))

    def selected(self, frequency: float = 0.6) -> list[str]:
        """Names of the kernels used in at least this share of the sub-samples, the most frequent first."""
        order = np.lexsort((-self.median, -self.frequency))
        return [self.kernel_names[m] for m in order if self.frequency[m] >= frequency]

    def expected_false(self, frequency: float = 0.6) -> float:
        """A bound on how many kernels are `selected` by chance.

            E V <= q^2 / ((2 frequency - 1) M),   q = mean number of kernels used in a fit

        V counts selected kernels whose chance of being used in a fit on half of the samples is below average.
        Meinshausen & Buehlmann (2010), theorem 1; Shah & Samworth (2013), theorem 1, without
        assumptions for complementary pairs.
        """
        if not 0.5 < frequency <= 1.0:
            raise ValueError(f"frequency={frequency!r} must be over 0.5 and at most 1 for a bound.")
        q = float(self.used.sum(axis=1).mean())
        return q**2 / ((2.0 * frequency - 1.0) * len(self.kernel_names))

    def frame(self) -> Any:
        """One row per kernel, the most frequently used first, as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        columns = {
            "kernel": self.kernel_names,
            "frequency": self.frequency,
            "weight": self.full_weights,
            "median": self.median,
            "low": self.low,
            "high": self.high,
        }
        order = ["frequency", "median"]
        return pd.DataFrame(columns).sort_values(order, ascending=False, kind="stable", ignore_index=True)


def stability_selection(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    n_subsamples: int = 50,
    fraction: float = 0.5,
    method: str = "pairs",
    level: float = 0.9,
    threshold: float | None = None,
    groups: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    progress: Callable[[int, int], Any] | None = None,
) -> StabilityResult:
    """Fit on many sub-samples: how often each kernel is used, and how much its weight varies.

    Kernels are evaluated once, on all samples, and each fit sees a part of their matrices; convex
    fits start from the fit on all samples. Kernel parameters and normalisation constants are those
    of all samples. Meinshausen & Buehlmann (2010); complementary pairs: Shah & Samworth (2013).

    A kernel is used in a fit when it has at least `threshold` of the sum of the weights, by default
    1 / M, an equal share: that tells kernels apart for dense methods too, whose weights are all
    positive. It compares the kernels with one another, so among kernels that all matter equally none stands
    out; then, and with two or three kernels, read the intervals instead. ``threshold=0`` counts every weight
    that is not zero, the rule of the papers, for sparse methods.

    Parameters
    ----------
    estimator : estimator that learns kernel weights, Pipeline ending in one, or search
        Cloned. Transformers of a pipeline are fitted once; a search is run once on all samples (a
        fitted one keeps its choice) and its best estimator is fitted on the sub-samples; for
        `MKLAutoClassifier` and `MKLAutoRegressor`, the chosen candidates are fitted, each on its own kernels.
    X, y
        As in its ``fit``.
    n_subsamples : int, default=50
    fraction : float, default=0.5
        Share of the samples in each sub-sample. Halves vary about as much around their centre as
        whole samples would around the truth.
    method : {"pairs", "subsamples"}, default="pairs"
        Sub-samples in pairs without a common sample, or drawn independently.
    level : float, default=0.9
        Share of the sub-samples within the weight intervals.
    threshold : float, optional
        Smallest share of the weights at which a kernel counts as used; 1 / M by default.
    groups : array-like of shape (n,), optional
        Samples of one group (patient, batch) stay together. Without groups, classes are in every sub-sample
        in proportion.
    sample_weight : array-like of shape (n,), optional
    n_jobs : int, optional
        Threads over the sub-samples.
    random_state : int, RandomState or None, default=None
        The same seed gives the same result, whatever `n_jobs`.
    progress : callable, optional
        Called as progress(done, n_subsamples) after every fit.

    Returns
    -------
    result : StabilityResult
        `frequency`, `weights`, `median`, `low`, `high`, `selected()`, `expected_false()`, `frame()`.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X = np.random.default_rng(0).normal(size=(120, 6))
    >>> y = X[:, 1] + np.sin(2 * X[:, 4])
    >>> result = kw.stability_selection(kw.MKLRegressor(per_feature(RBF())), X, y, random_state=0)
    >>> sorted(result.selected())
    ['x1', 'x4']
    >>> result.frame().columns.tolist()
    ['kernel', 'frequency', 'weight', 'median', 'low', 'high']
    """
    _check(n_subsamples, fraction, method, level, threshold)
    estimator, X = _bare(estimator, X, y)
    X, y, weight, groups = _positive(estimator, X, y, sample_weight, groups)
    strata = y if is_classifier(estimator) and np.ndim(y) == 1 else None
    seed = check_random_state(random_state)
    parts = draw_subsamples(len(weight), n_subsamples, fraction, method == "pairs", strata, groups, seed)
    refits = refits_for(estimator, X, y, weight)
    full = mean_shares(refits.weights(None))
    rows = _fit_all(refits, parts, n_jobs, progress)
    limit = 1.0 / len(full) if threshold is None else float(threshold)
    return StabilityResult(list(refits.names), np.array(rows), full, float(level), limit)


def _fit_all(refits: Refits, parts: list[Any], n_jobs: int | None, progress: Any) -> list[FloatArray]:
    """Weight shares of the fit on every part."""
    fits = in_turn(n_jobs, (delayed(weights_of)(refits, rows) for rows in parts), refits.require)
    shares = []
    for weights in fits:
        shares.append(mean_shares(weights))
        if progress is not None:
            progress(len(shares), len(parts))
    return shares


def _bare(estimator: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """The estimator inside pipelines and searches, unfitted but for MKLAuto..., and the data it sees."""
    if hasattr(estimator, "steps"):
        if len(estimator.steps) > 1:
            X = clone(estimator[:-1]).fit_transform(X, y)
        return _bare(estimator.steps[-1][1], X, y)
    if hasattr(estimator, "cv"):
        chosen = estimator if hasattr(estimator, "best_estimator_") else clone(estimator).fit(X, y)
        return (chosen, X) if isinstance(chosen, BaseMKLAuto) else _bare(chosen.best_estimator_, X, y)
    if not hasattr(estimator, "fit"):
        raise ValueError(f"estimator={estimator!r} must be an estimator that learns kernel weights.")
    # fits on sub-samples must not write over one another
    quiet = {name: value for name, value in QUIET.items() if name in estimator.get_params(deep=False)}
    return clone(estimator).set_params(**quiet), X


def _positive(estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> tuple[Any, Any, Any, Any]:
    """Samples of positive weight, targets and groups as arrays."""
    inside = getattr(estimator, "best_estimator_", estimator)
    X = as_stack(X) if getattr(inside, "_precomputed", False) else as_views(X, y)
    X = X if hasattr(X, "shape") else np.asarray(X)
    given = per_sample(X, {"y": y, "sample_weight": sample_weight, "groups": groups})[1]
    sample_weight, groups = given["sample_weight"], given["groups"]
    weight = check_weights(sample_weight, X)
    used = np.flatnonzero(weight)
    targets = [None if values is None else np.asarray(values) for values in (y, groups)]
    for name, values in zip(("y", "groups"), targets, strict=True):
        if values is not None and len(values) != len(weight):
            raise ValueError(f"{name} has {len(values)} entries for {len(weight)} samples.")
    y, groups = (None if values is None else _safe_indexing(values, used) for values in targets)
    return take(X, used), y, weight[used], groups


def _check(n_subsamples: Any, fraction: Any, method: Any, level: Any, threshold: Any) -> None:
    if not (isinstance(n_subsamples, Integral) and int(n_subsamples) >= 2):
        raise ValueError(f"n_subsamples={n_subsamples!r} must be an integer of at least 2.")
    if method not in METHODS:
        raise ValueError(f"method={method!r}: expected 'pairs' or 'subsamples'.")
    most = 0.5 if method == "pairs" else 1.0
    if not (isinstance(fraction, Real) and 0 < float(fraction) <= most):
        hint = "; for more use method='subsamples'" if method == "pairs" else ""
        raise ValueError(f"fraction={fraction!r} must be over 0 and at most {most:g}{hint}.")
    for name, value in (("level", level), ("threshold", 0.5 if threshold is None else threshold)):
        if not (isinstance(value, Real) and 0 <= float(value) < 1):
            raise ValueError(f"{name}={value!r} must be a number from 0 to below 1.")
