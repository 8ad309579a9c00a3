"""Censored times: how they are given, the baseline of a proportional hazard, and steps in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length

from .._typing import FloatArray, IntArray
from .._words import listed
from ..kernels import as_views
from ..kernels.columns import column_names
from ..losses.cox import RiskSets
from ..losses.cox import strata as strata_of
from ..metrics import concordance_harrell
from ._base import follows_input
from ._input import per_sample

#: what y may be
FORMS = (
    "a structured array of event (bool) and time, a data frame with these two columns, or a tuple "
    "(event, time); a third one is the stratum"
)


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


def survival_array(y: Any) -> Any:
    """Targets as a structured array of event (bool), time and perhaps stratum.

    Parameters
    ----------
    y : structured array, data frame, tuple of arrays, or array of shape (n, 2) or (n, 3)
        Event, time and perhaps a stratum: fields, columns or parts. Fields and columns of two are told apart
        by what they hold: the event is of type bool, or holds 0 and 1 only.

    Examples
    --------
    >>> survival_array(([True, False], [3.0, 2.0]))
    array([( True, 3.), (False, 2.)], dtype=[('event', '?'), ('time', '<f8')])
    """
    parts = _parts(y)
    if len(parts) not in (2, 3):
        raise ValueError(f"y has {len(parts)} columns: pass {FORMS}.")
    event, time = _event_first(parts[0], parts[1], isinstance(y, tuple) or column_names(y) is None)
    check_consistent_length(event, time, *parts[2:])
    fields: list[Any] = [("event", bool), ("time", float)]
    if len(parts) > 2:
        fields.append(("stratum", parts[2].dtype))
    found = np.empty(len(time), dtype=fields)
    found["event"], found["time"] = _events(event), _times(time)
    if len(parts) > 2:
        found["stratum"] = parts[2]
    return found


def _parts(y: Any) -> list[Any]:
    """The columns of y."""
    if isinstance(y, tuple):
        return [np.asarray(part) for part in y]
    if column_names(y) is not None:
        return [np.asarray(y[name]) for name in y.columns]
    values = np.asarray(y)
    if values.dtype.names:
        return [values[name] for name in values.dtype.names]
    if values.ndim != 2:
        raise ValueError(f"y has shape {values.shape}, without events or without times: pass {FORMS}.")
    return list(values.T)


def _event_first(one: Any, two: Any, ordered: bool) -> tuple[Any, Any]:
    """Event and time, whichever comes first; of numbers without names the first is the event."""
    flags = [part.dtype.kind == "b" for part in (one, two)]
    if flags[0] == flags[1]:
        flags = [bool(np.isin(part, (0, 1)).all()) for part in (one, two)]
    return (two, one) if flags[1] and not flags[0] and not (ordered and one.dtype.kind == "b") else (one, two)


def _events(event: Any) -> Any:
    values = np.asarray(event)
    if values.ndim != 1 or not np.isin(values, (0, 1)).all():
        odd = next((value for value in values.ravel().tolist() if value not in (0, 1)), None)
        raise ValueError(
            f"y holds {odd!r} where it says whether there was an event: True or 1 for an event, False or 0 "
            f"for a sample that was censored. Pass {FORMS}."
        )
    return values.astype(bool)


def _times(time: Any) -> FloatArray:
    try:
        values = np.asarray(time, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y holds times that are no numbers ({error}): pass days since a start.") from error
    if not np.isfinite(values).all():
        rows = np.flatnonzero(~np.isfinite(values))
        raise ValueError(
            f"y contains NaN or infinite times in rows {listed(map(str, rows))}: leave those samples out."
        )
    if (values < 0.0).any():
        raise ValueError(
            f"y has negative times, such as {values.min():.4g}: pass the times since the observation of each "
            "sample began."
        )
    return values


def as_columns(y: Any) -> tuple[FloatArray, Any]:
    """Time, event and perhaps number of stratum of a `survival_array`, shape (n, k); and the strata."""
    columns, names = [y["time"], y["event"].astype(float)], None
    if "stratum" in y.dtype.names:
        names, number = np.unique(y["stratum"], return_inverse=True)
        columns.append(number.ravel().astype(float))
    return np.column_stack(columns), names


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
            risk = RiskSets(rows, time, event, f[rows], weight[rows])
            at = int(Y[rows[0], 2]) if Y.shape[1] > 2 else 0
            hazard[at, np.searchsorted(times, risk.times)] = risk.deaths / np.exp(risk.log_total)
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


class FrozenRisk(RiskScore, BaseEstimator):
    """Answers with risks of a fold, for scorers."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> FloatArray:
        return self.values


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

    @available_if(_has_times)
    @follows_input
    def predict_time(self, X: Any) -> FloatArray:
        """Times, exp(f), of a loss of log times."""
        return np.exp(self._decision(X)[:, 0])

    @available_if(_has_baseline)
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

    @available_if(_has_baseline)
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
