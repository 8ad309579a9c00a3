"""Censored times: how they are given, the baseline of a proportional hazard, and steps in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from .._censored import survival_array
from .._typing import FloatArray, IntArray
from .._words import listed
from ..kernels import as_views
from ..losses.cox import Cox, Order, RiskSets
from ..losses.cox import strata as strata_of
from ..metrics import concordance_harrell
from ._base import follows_input
from ._input import per_sample
from ._stack import LEAST_SHARE

#: largest multiple of a risk of spread 1; where all pairs are in order its likelihood has no maximum
MOST = 1e3


class StepFunction:
    """A function of time that is constant between the times at which it jumps.

    Parameters
    ----------
    x : ndarray of shape (n_times,)
        The times, ascending.
    y : ndarray of shape (n_times,)
        Its values from each of them on.
    start : float
        Its value before the first.

    Examples
    --------
    >>> step = StepFunction(np.array([1.0, 3.0]), np.array([0.8, 0.5]), 1.0)
    >>> step([0.0, 1.0, 2.0, 3.0])
    array([1. , 0.8, 0.8, 0.5])
    """

    def __init__(self, x: FloatArray, y: FloatArray, start: float) -> None:
        self.x, self.y, self.start = x, y, start

    def __call__(self, time: Any) -> Any:
        """Values at times, of their shape."""
        values = np.append(self.start, self.y)
        found = values[np.searchsorted(self.x, np.asarray(time, dtype=np.float64), side="right")]
        return found if np.ndim(time) else float(found)

    @property
    def domain(self) -> tuple[float, float]:
        """The times of the training samples: what is beyond them nobody has seen."""
        return float(self.x[0]), float(self.x[-1])

    def __repr__(self) -> str:
        return f"StepFunction({len(self.x)} times from {self.x[0]:.4g} to {self.x[-1]:.4g})"


def as_columns(y: Any) -> tuple[FloatArray, Any]:
    """Time, event and perhaps number of stratum of a `survival_array`, shape (n, k); and the strata."""
    columns, names = [y["time"], y["event"].astype(float)], None
    if "stratum" in y.dtype.names:
        names, number = np.unique(y["stratum"], return_inverse=True)
        columns.append(number.ravel().astype(float))
    return np.column_stack(columns), names


def as_events(y: FloatArray) -> FloatArray:
    """Time, event and perhaps stratum from the targets of a problem: of log times, signed times."""
    return y[:, 0] if y.ndim == 3 else np.column_stack([np.abs(y[:, 0]), y[:, 0] > 0.0])


def check_events(Y: FloatArray) -> None:
    """Refuse targets from which nothing can be learned."""
    if len(Y) < 2:
        raise ValueError(f"y has {len(Y)} sample of positive weight: survival takes two at least.")
    if not Y[:, 1].any():
        raise ValueError(
            "y has no event: all samples of positive weight are censored, and nothing tells who is at risk. "
            "Check which values mean an event (True or 1)."
        )


def breslow(Y: FloatArray, f: FloatArray, weight: FloatArray, n_strata: int) -> tuple[FloatArray, FloatArray]:
    """Times of all samples, and the cumulative baseline hazard of every stratum there.

        Lambda_0(t) = sum_{i: event_i, t_i <= t} w_i / sum_{j at risk at t_i} w_j exp(f_j)

    Returns
    -------
    times : ndarray of shape (n_times,)
    hazard : ndarray of shape (n_strata, n_times)

    Examples
    --------
    >>> breslow(np.array([[1.0, 1], [2.0, 0], [3.0, 1]]), np.zeros(3), np.ones(3), 1)[1].round(3)
    array([[0.333, 0.333, 1.333]])
    """
    times = np.unique(Y[:, 0])
    hazard = np.zeros((n_strata, len(times)))
    for rows, time, event in strata_of(Y):
        if event.any():
            order = Order(rows, time, event, weight[rows])
            at = int(Y[rows[0], 2]) if Y.shape[1] > 2 else 0
            total = np.exp(RiskSets(order, f[order.rows]).log_total)
            hazard[at, np.searchsorted(times, order.times)] = order.deaths / total
    return times, np.cumsum(hazard, axis=1)


def _has_baseline(model: Any) -> bool:
    """Whether the loss of a model is a proportional hazard."""
    found = getattr(model, "best_estimator_", model)
    loss = getattr(found, "loss", None)
    return loss == "cox" or getattr(loss, "name", None) == "cox"


def _has_times(model: Any) -> bool:
    """Whether a model predicts times."""
    loss = getattr(model, "loss", None)
    return "censored_eps_insensitive" in (loss, getattr(loss, "name", None))


def risk_shares(risks: FloatArray, Y: FloatArray, weight: FloatArray, fold: IntArray) -> FloatArray:
    """Shares w >= 0 of held-out risks F_j, of sum 1: each by its own likelihood.

        w_j s_j  in proportion to  exp(-L_j),   L_j = min over a >= 0 of L(y, a F_j / s_j)

    with L the partial likelihood of Cox, negative logarithm, and s_j the spread of F_j. Folds are strata, as
    risks of different models have no common origin; strata of the samples stay. A risk that is no better than
    none (a = 0) has no share, nor has one below 2 %; where there is no other the first one has all.

    Parameters
    ----------
    risks : ndarray of shape (n_models, n)
    Y : ndarray of shape (n, 2) or (n, 3)
        Time, event and perhaps stratum.
    weight : ndarray of shape (n,)
    fold : ndarray of int of shape (n,)

    References
    ----------
    Geisser & Eddy, A Predictive Approach to Model Selection, JASA 74, 1979; Yao, Vehtari, Simpson & Gelman,
    Using Stacking to Average Bayesian Predictive Distributions, Bayesian Analysis 13, 2018 (pseudo-BMA).

    Examples
    --------
    >>> Y = np.array([[1.0, 1], [2.0, 1], [3.0, 1], [4.0, 1]])
    >>> risks = np.array([[0.0, 0.0, 1.0, 1.0], [2.0, 3.0, 1.0, 0.0]])
    >>> risk_shares(risks, Y, np.ones(4), np.zeros(4, dtype=int))
    array([0., 1.])
    """
    stratum = fold if Y.shape[1] < 3 else fold * (Y[:, 2].max() + 1.0) + Y[:, 2]
    targets, loss = np.column_stack([Y[:, :2], stratum]), Cox()
    centred = risks.copy()
    for k in np.unique(fold):
        centred[:, fold == k] -= centred[:, fold == k].mean(axis=1, keepdims=True)
    size = np.sqrt((centred**2 @ weight) / weight.sum())
    size = np.where(size > 0.0, size, np.inf)

    def least(F: FloatArray) -> float:
        """L_j; infinite where a = 0 is the best."""

        def objective(a: FloatArray) -> tuple[float, FloatArray]:
            slope = loss.gradient(targets, a[0] * F, weight)
            return loss.value(targets, a[0] * F, weight), np.array([F @ slope])

        if objective(np.zeros(1))[1][0] >= 0.0:
            return np.inf
        return float(minimize(objective, np.zeros(1), jac=True, method="L-BFGS-B", bounds=[(0.0, MOST)]).fun)

    losses = np.array([least(F) for F in centred / size[:, None]])
    if not np.isfinite(losses).any():
        return np.asarray(np.eye(len(risks))[0])
    likely = np.exp(losses.min() - losses)
    shares = np.where(likely >= LEAST_SHARE * likely.sum(), likely, 0.0) / size
    return np.asarray(shares / shares.sum())


class RiskScore:
    """Mixin of what predicts risks, larger for earlier events: `score` is Harrell's concordance."""

    predict: Callable[..., FloatArray]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = True
        return tags

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Harrell's concordance: the share of comparable pairs whose earlier event has the larger risk.

        Parameters
        ----------
        X : array-like
            Samples as `predict` takes them.
        y : structured array, data frame or tuple
            Event and time, as in `fit`.
        sample_weight : array-like of shape (n,), optional
        """
        X, given = per_sample(as_views(X, y), {"y": y, "sample_weight": sample_weight})
        known = survival_array(y)
        return concordance_harrell(known["event"], known["time"], self.predict(X), given["sample_weight"])


class FrozenRisk(RiskScore, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Answers with risks of a fold, for scorers."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> FloatArray:
        result: FloatArray = self.values
        return result


class SurvivalTargets(RiskScore):
    """Mixin of estimators of censored times: their targets, risks, and curves of a proportional hazard."""

    #: values of every function learned, shape (n, n_functions)
    _decision: Callable[..., FloatArray]

    _validate: Callable[..., tuple[Any, Any]]

    _tasks: ClassVar[tuple[str, ...]] = ("survival",)

    #: of `coef_`: there is one output
    _flat = True

    unique_times_: FloatArray
    baseline_hazard_: FloatArray
    strata_: Any  # only where the targets had some

    _fitted: ClassVar[dict[str, type]] = {"unique_times_": np.ndarray, "baseline_hazard_": np.ndarray}

    def _read(self, X: Any, y: Any) -> tuple[Any, FloatArray]:
        """X, and time, event and stratum of all samples; sets `strata_`."""
        X = as_views(X, y)
        columns, names = as_columns(survival_array(y))
        if hasattr(self, "strata_"):
            del self.strata_
        if names is not None:
            self.strata_ = names
        return self._validate(X, columns, multi_output=True, y_numeric=True)

    def _store_baseline(self, Y: FloatArray, f: FloatArray, weight: FloatArray) -> None:
        """Set the times and the cumulative baseline hazard of every stratum."""
        self.unique_times_ = np.unique(Y[:, 0])
        self.baseline_hazard_ = np.zeros((0, len(self.unique_times_)))
        if _has_baseline(self):
            count = len(getattr(self, "strata_", [None]))
            self.unique_times_, self.baseline_hazard_ = breslow(Y, f, weight, count)

    def _risks(self, values: FloatArray) -> FloatArray:
        """Risks from the values of the function learned; for log times, their opposite."""
        return -values[:, 0] if _has_times(self) else values[:, 0]

    @follows_input
    def predict(self, X: Any) -> FloatArray:
        """Risks of new samples, shape (n,): larger for earlier events.

        With Cox's loss they are the logarithm of the hazard relative to the baseline.
        """
        return self._risks(self._decision(X))

    @available_if(_has_times)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    @follows_input
    def predict_time(self, X: Any) -> FloatArray:
        """Times, exp(f), of a loss of log times."""
        return np.exp(self._decision(X)[:, 0])

    @available_if(_has_baseline)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False, strata: Any = None
    ) -> Any:
        """Cumulative hazards Lambda(t | x) = Lambda_0(t) exp(f(x)), with Breslow's estimate of Lambda_0.

        Parameters
        ----------
        X : array-like
            Samples as `predict` takes them.
        return_array : bool, default=False
            Whether to return the values at `unique_times_` in place of functions of time.
        strata : array-like of shape (n,), optional
            Strata of the samples, where the fit had some.

        Returns
        -------
        hazards : ndarray of StepFunction of shape (n,), or ndarray of shape (n, n_times)
        """
        return self._curves(self._hazards(X, strata), return_array, 0.0)

    @available_if(_has_baseline)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_survival_function(self, X: Any, return_array: bool = False, strata: Any = None) -> Any:
        """Probabilities S(t | x) = exp(-Lambda(t | x)) of no event up to t.

        Parameters and return value are those of `predict_cumulative_hazard_function`.
        """
        return self._curves(np.exp(-self._hazards(X, strata)), return_array, 1.0)

    def _hazards(self, X: Any, strata: Any) -> FloatArray:
        """Cumulative hazards at `unique_times_`, shape (n, n_times)."""
        risk = np.exp(self._decision(X)[:, 0])
        return np.asarray(risk[:, None] * self.baseline_hazard_[self._places(strata, len(risk))])

    def _places(self, strata: Any, n: int) -> IntArray:
        """Numbers of the strata of samples."""
        known = getattr(self, "strata_", None)
        if known is None:
            if strata is not None:
                raise ValueError("strata: the fit had none; pass strata=None.")
            return np.zeros(n, dtype=int)
        if strata is None:
            raise ValueError(
                f"the fit had strata ({listed([repr(name) for name in known.tolist()])}), each with a "
                "baseline of its own: pass the stratum of every sample, strata=..."
            )
        given = np.broadcast_to(np.asarray(strata), (n,))
        if not np.isin(given, known).all():
            odd = given[~np.isin(given, known)].tolist()[0]
            raise ValueError(f"strata: the fit had no stratum {odd!r}.")
        return np.searchsorted(known, given)

    def _curves(self, values: FloatArray, return_array: bool, start: float) -> Any:
        if return_array:
            return values
        found = np.empty(len(values), dtype=object)
        found[:] = [StepFunction(self.unique_times_, row, start) for row in values]
        return found
