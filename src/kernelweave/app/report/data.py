"""What a report says, as plain data: no model in here, and no markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._typing import FloatArray, IntArray
from ...inspection._models import mean_shares


@dataclass(frozen=True)
class Fitted:
    """What was fitted, and on what.

    `task` is "classification", "regression", "survival" or "novelty"; `functions` names the columns of the
    decision values (one for two classes), `classes` holds the labels and their number of training samples,
    `n_events` counts the events among censored times.
    """

    estimator: str
    task: str
    method: str
    formula: str
    n_train: int
    n_test: int
    n_features: int | None
    functions: tuple[str, ...]
    classes: tuple[tuple[str, int], ...] = ()
    source: dict[str, Any] = field(default_factory=dict)
    n_events: int | None = None


@dataclass(frozen=True)
class Entrant:
    """A candidate: its cost, mean score and standard error, shares of the stack and of the model."""

    name: str
    C: float | None
    score: float | None
    error: float | None
    stack_share: float | None
    model_share: float | None


@dataclass(frozen=True)
class Choice:
    """The competition for a model: candidates from the simplest to their stack, and the one taken.

    `metric` is the score that decided, the mean of `n_folds` folds.
    """

    reason: str
    metric: str
    n_folds: int
    taken: int
    entrants: tuple[Entrant, ...]


@dataclass(frozen=True)
class Score:
    """A score and its standard error; `difference` is the model's score minus this one."""

    name: str
    value: float
    error: float | None = None
    difference: float | None = None
    difference_error: float | None = None


@dataclass(frozen=True)
class Curve:
    """One line of a figure."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float] | None = None


@dataclass(frozen=True)
class Roc:
    """ROC curves of classes against the others, and the areas under them."""

    curves: tuple[Curve, ...]
    areas: tuple[float, ...]
    part: str

    @property
    def auc(self) -> float:
        """The mean area over the classes."""
        return float(np.mean(self.areas))


@dataclass(frozen=True)
class Scores:
    """The model's score and those of the baselines.

    `trivial` is the name of the baseline that looks at no kernel; `failed` says which ones could not be
    fitted, and why; `note` how they were made; `more` other figures of the model on the same samples, and
    `roc` its curves there.
    """

    metric: str
    how: str
    n: int
    model: Score
    baselines: tuple[Score, ...]
    trivial: str | None = None
    failed: tuple[str, ...] = ()
    note: str = ""
    more: dict[str, float] = field(default_factory=dict)
    roc: Roc | None = None


@dataclass(frozen=True)
class Stability:
    """Shares of the weights over sub-samples: intervals that hold `level` of them, one per kernel.

    `frequency` is the part of the sub-samples in which a kernel has at least `threshold` of the weights.
    """

    lower: FloatArray
    upper: FloatArray
    frequency: FloatArray
    n_rounds: int
    level: float
    threshold: float
    n_samples: int | None = None


@dataclass(frozen=True)
class KernelFacts:
    """The kernels: weights and norms of every model, and what each adds to the prediction.

    Attributes
    ----------
    names : tuple of str
    models : tuple of str
        One name per row of `weights`.
    weights, norms : ndarray of shape (n_models, M)
        `norms` is None where the model has no RKHS norms.
    stability : Stability or None
    spread : ndarray of shape (M,) or None
        Standard deviation of f_m over the samples, root mean square over functions.
    drop : ndarray of shape (M,) or None
        Fall of the score when the component f_m is left out.
    drop_metric : str
    """

    names: tuple[str, ...]
    models: tuple[str, ...]
    weights: FloatArray
    norms: FloatArray | None = None
    stability: Stability | None = None
    spread: FloatArray | None = None
    drop: FloatArray | None = None
    drop_metric: str = ""

    @property
    def shares(self) -> FloatArray:
        """Share of each kernel in the sum of the weights, the mean over the models."""
        return mean_shares(self.weights)

    @property
    def used(self) -> IntArray:
        """Kernels with a weight in any model."""
        return np.flatnonzero(self.weights.any(axis=0))

    @property
    def level(self) -> bool:
        """Whether all kernels with a weight have the same weight."""
        weights = self.shares[self.used]
        return len(weights) > 1 and bool(np.ptp(weights) <= 1e-9)

    @property
    def norm(self) -> FloatArray:
        """RKHS norm of each kernel's component, root mean square over the models."""
        result: FloatArray = np.sqrt((np.asarray(self.norms) ** 2).mean(axis=0))
        return result

    @property
    def idle(self) -> int:
        """Kernels that can be left out one by one without loss; not counted where some have no weight."""
        if self.drop is None or len(self.used) < len(self.drop):
            return 0
        return int((self.drop <= 0).sum())

    def heaviest(self, most: int) -> IntArray:
        """The kernels of largest weight, in decreasing order, then of largest spread."""
        tie = np.zeros(len(self.names)) if self.spread is None else -self.spread
        return np.lexsort((tie, -self.shares))[:most]


@dataclass(frozen=True)
class Samples:
    """The decomposition f = b + sum_m f_m of chosen samples.

    Attributes
    ----------
    part : str
        "held-out" or "training".
    labels, truth, predicted : tuple of str
        Of the samples.
    wrong : tuple of bool
        Empty in regression.
    intercept : ndarray of shape (K,)
    parts : ndarray of shape (K, S, M)
    n_all : int
        Samples there were to choose from.
    """

    part: str
    labels: tuple[str, ...]
    truth: tuple[str, ...]
    predicted: tuple[str, ...]
    wrong: tuple[bool, ...]
    intercept: FloatArray
    parts: FloatArray
    n_all: int

    @property
    def values(self) -> FloatArray:
        """f of every sample, shape (K, S)."""
        result: FloatArray = self.parts.sum(axis=2) + self.intercept[:, None]
        return result


@dataclass(frozen=True)
class Sizes:
    """Means over samples (and functions) of |attribution|, and the ends of their intervals."""

    names: tuple[str, ...]
    mean: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class Attributions:
    """What features and kernels add to the values of samples, against background samples.

    Attributes
    ----------
    samples : Samples
        `intercept` has the means over the background, `parts` what the `features` add, and the last of
        them what all others add together.
    features : tuple of str
        The features of largest size.
    data : ndarray of shape (S, n_features)
        Their values.
    by_feature, by_kernel : Sizes
        Of all features, and of all kernels.
    positions : ndarray or None
        Wavelengths, or the like, of features whose names are numbers, in the order of `channels`.
    channels : ndarray of int
        Which features those are.
    n_background : int
    whole : dict of str to str
        Kernels that are not taken apart by features, and why.
    """

    samples: Samples
    features: tuple[str, ...]
    data: FloatArray
    by_feature: Sizes
    by_kernel: Sizes
    positions: FloatArray | None
    channels: IntArray
    n_background: int
    whole: dict[str, str]


@dataclass(frozen=True)
class Redundancy:
    """Alignment (cosine) of the kernels with one another."""

    names: tuple[str, ...]
    matrix: FloatArray
    effective_number: float
    n_left_out: int = 0


@dataclass(frozen=True)
class PathCurves:
    """Models of growing size or cost, and the one chosen.

    `marks` names the points along x, such as the kernel that came in.
    """

    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    chosen: float
    log_x: bool
    words: str
    marks: tuple[str, ...] = ()

    @property
    def places(self) -> list[float]:
        """All places on the x axis."""
        return sorted({x for curve in self.curves for x in curve.x})


@dataclass(frozen=True)
class Convergence:
    """How the fit ended.

    `kind` is "gap" (certified when it is within `tol`), "stationarity" (of a problem that is not convex)
    or "greedy"; `final` is the value of the worst model, `n_stacked` how many models are joined into one.
    """

    kind: str
    final: float | None
    tol: float
    converged: bool
    n_iter: int
    y_label: str
    curves: tuple[Curve, ...]
    n_stacked: int = 1


@dataclass(frozen=True)
class Confusion:
    """Counts of true (rows) and predicted (columns) classes."""

    kind = "confusion"
    labels: tuple[str, ...]
    counts: IntArray
    part: str

    @property
    def shares(self) -> FloatArray:
        """Shares of the true classes."""
        result: FloatArray = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        return result


@dataclass(frozen=True)
class ViewsUsed:
    """The views that samples have.

    Attributes
    ----------
    names : tuple of str
        The views of the fit.
    patterns : tuple of (str, int, float or None)
        Views that samples have together, such as "rna+protein", how many samples, and their score.
    labels, used, truth, predicted : tuple of str
        Of every sample; `used` is its pattern.
    part : str
    metric : str
    missing : str
        What the model does with views that samples lack.
    training : tuple of (str, int)
        Patterns of the training samples, and how many have them.
    """

    names: tuple[str, ...]
    patterns: tuple[tuple[str, int, float | None], ...]
    labels: tuple[str, ...]
    used: tuple[str, ...]
    truth: tuple[str, ...]
    predicted: tuple[str, ...]
    part: str
    metric: str
    missing: str
    training: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Residuals:
    """Observed and predicted values, one row per output; at most a few hundred samples are kept."""

    kind = "residuals"
    outputs: tuple[str, ...]
    observed: FloatArray
    predicted: FloatArray
    labels: tuple[str, ...]
    part: str
    n_all: int


@dataclass(frozen=True)
class RiskGroup:
    """Samples of similar predicted risk: how many, with how many events, and their Kaplan-Meier curve."""

    curve: Curve
    n: int
    n_events: int


@dataclass(frozen=True)
class Survival:
    """Predicted survival beside what was seen.

    Attributes
    ----------
    part : str
    n, n_events : int
        Samples looked at, and events among them.
    concordance : Score
        Harrell's, with its standard error.
    groups : tuple of RiskGroup
        From the smallest risk to the largest.
    p_value : float or None
        Of the log-rank test that the groups do not differ; None where there is one group.
    times : tuple of float
        Times at which survival is looked at.
    calibration : tuple of Curve
        For each time predicted survival of groups (x) and their Kaplan-Meier value (y).
    brier, reference : float or None
        Integrated Brier score, and the score of one curve for everybody, the Kaplan-Meier curve of the
        training samples.
    curves : tuple of Curve
        Predicted curves of single samples, from the smallest risk to the largest.
    labels : tuple of str
        Samples.
    risk, median : tuple of float
        Their risks, and the times by which half of such samples have the event (nan: later than all times).
    survival : ndarray of shape (n_samples, n_times)
        Predicted survival at `times`.
    seen : tuple of str
        Time, and whether there was an event.
    baseline : Curve or None
        Cumulative baseline hazard; None where there are several.
    """

    kind = "survival"
    part: str
    n: int
    n_events: int
    concordance: Score
    groups: tuple[RiskGroup, ...]
    p_value: float | None
    times: tuple[float, ...]
    calibration: tuple[Curve, ...]
    brier: float | None
    reference: float | None
    curves: tuple[Curve, ...]
    labels: tuple[str, ...]
    risk: tuple[float, ...]
    median: tuple[float, ...]
    survival: FloatArray
    seen: tuple[str, ...]
    baseline: Curve | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of the concordance, at 95 %."""
        value, error = self.concordance.value, 1.96 * (self.concordance.error or 0.0)
        return max(value - error, 0.0), min(value + error, 1.0)


@dataclass(frozen=True)
class Novelty:
    """Decision values of a novelty detector."""

    kind = "novelty"
    values: FloatArray
    part: str


@dataclass(frozen=True)
class Settings:
    """What it takes to fit the model again."""

    parameters: dict[str, Any]
    versions: dict[str, str]
    code: str
    created: str
    random_state: int | None
    preprocessing: str | None = None
