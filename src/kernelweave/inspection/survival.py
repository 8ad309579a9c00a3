"""Survival: curves of groups by predicted risk, predicted curves of single samples, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._censored import survival_array
from .._typing import FloatArray, IntArray
from ..metrics import LogRank, kaplan_meier, log_rank
from ._matplotlib import MOST_NAMED, axes_for


def groups_by(values: ArrayLike, n_groups: int) -> IntArray:
    """Groups of about the same size, from 0 for the smallest values; equal values are in the same group.

    Examples
    --------
    >>> groups_by([0.3, 0.1, 0.2, 0.2], 2)
    array([1, 0, 0, 0])
    """
    if isinstance(n_groups, bool) or not isinstance(n_groups, int | np.integer) or n_groups < 2:
        raise ValueError(f"n_groups={n_groups!r} must be an integer of 2 or more.")
    values = np.asarray(values, dtype=np.float64)
    cuts = np.quantile(values, np.arange(1, n_groups) / n_groups, method="inverted_cdf")
    return np.unique(np.searchsorted(cuts, values), return_inverse=True)[1]


def risk_names(n_groups: int) -> list[str]:
    """What groups of growing risk are called."""
    words = {2: ["low risk", "high risk"], 3: ["low risk", "medium risk", "high risk"]}
    return words.get(n_groups, [f"risk group {k + 1}" for k in range(n_groups)])


def calibrated(
    event: ArrayLike, time: ArrayLike, survival: ArrayLike, at: float, n_groups: int
) -> tuple[FloatArray, FloatArray]:
    """Mean predicted survival at a time, of groups by prediction, and the Kaplan-Meier value of each.

    Examples
    --------
    >>> calibrated([1, 1, 1, 1], [1.0, 2.0, 1.0, 4.0], [0.2, 0.2, 0.8, 0.8], 3.0, 2)[1]
    array([0. , 0.5])
    """
    event, time, survival = np.asarray(event), np.asarray(time, float), np.asarray(survival, float)
    if survival.shape != time.shape:
        raise ValueError(f"survival has shape {survival.shape}, and time has shape {time.shape}.")
    if not time.min() <= at <= time.max():
        raise ValueError(f"at={at!r} must be among the times, {time.min():g} to {time.max():g}.")
    group = groups_by(survival, n_groups)
    members = [group == g for g in range(group.max() + 1)]
    predicted = np.array([survival[own].mean() for own in members])
    return predicted, np.array([_survival_at(event[own], time[own], at) for own in members])


class KaplanMeierDisplay:
    """Kaplan-Meier curves of groups, with the log-rank test of whether they differ.

    Parameters
    ----------
    event : array-like of shape (n,)
        Whether the event was seen.
    time : array-like of shape (n,)
    group : array-like of shape (n,)
        Labels, at least two different ones.
    group_names : sequence of str, optional
        For the legend, in the order of ``numpy.unique(group)``; the labels by default.

    Attributes
    ----------
    test_ : LogRank
    lines_ : list of matplotlib Line2D
        A step curve for each group.
    marks_ : list of matplotlib Line2D
        Where samples of each group were censored.
    ax_, figure_

    Examples
    --------
    >>> from kernelweave.inspection import KaplanMeierDisplay
    >>> display = KaplanMeierDisplay([1, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], ["a", "a", "b", "b"]).plot()
    >>> [line.get_label() for line in display.lines_], display.ax_.get_title()
    (['a (n = 2)', 'b (n = 2)'], 'log-rank p = 0.09')
    """

    def __init__(
        self, event: ArrayLike, time: ArrayLike, group: ArrayLike, group_names: Sequence[str] | None = None
    ) -> None:
        self.event = event
        self.time = time
        self.group = group
        self.group_names = group_names

    def plot(self, ax: Any = None, **line_kw: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **line_kw
            Passed on to `matplotlib.axes.Axes.step`.

        Returns
        -------
        display : KaplanMeierDisplay
        """
        self.test_: LogRank = log_rank(self.event, self.time, self.group)
        event, time, group = (np.asarray(part) for part in (self.event, self.time, self.group))
        labels = np.unique(group)
        names = [str(label) for label in labels] if self.group_names is None else list(self.group_names)
        if len(names) != len(labels):
            raise ValueError(f"group_names has {len(names)} names for {len(labels)} groups.")
        ax = axes_for(self, ax, (6.0, 4.0))
        self.lines_, self.marks_ = [], []
        for label, name in zip(labels, names, strict=True):
            own = group == label
            times, survival = _from_start(*kaplan_meier(event[own], time[own]))
            style = {"where": "post", "label": f"{name} (n = {own.sum()})", **line_kw}
            (line,) = ax.step(times, survival, **style)
            censored = np.unique(time[own & ~event.astype(bool)])
            at = survival[np.searchsorted(times, censored, side="right") - 1]
            (marks,) = ax.plot(censored, at, "|", color=line.get_color(), markersize=6)
            self.lines_.append(line)
            self.marks_.append(marks)
        _survival_axes(ax)
        ax.set_title(f"log-rank p = {self.test_.p_value:.2g}")
        ax.legend()
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_groups: int = 2,
        ax: Any = None,
        **plot_kw: Any,
    ) -> Self:
        """Draw groups of samples by their predicted risk, of about the same size.

        The samples should not be those of the fit: on its training samples any model separates groups.

        Parameters
        ----------
        estimator : fitted estimator
            Its ``predict`` gives risks, larger for earlier events.
        X : array-like
        y : structured array, data frame or tuple
            Event and time, as `MKLSurvival` takes them.
        n_groups : int, default=2
        ax : matplotlib Axes, optional
        **plot_kw
            Passed on to `plot`.

        Returns
        -------
        display : KaplanMeierDisplay
        """
        known, group = survival_array(y), groups_by(estimator.predict(X), n_groups)
        names = risk_names(group.max() + 1)
        return cls(known["event"], known["time"], group, names).plot(ax=ax, **plot_kw)


class SurvivalCurvesDisplay:
    """Predicted survival curves of single samples.

    Parameters
    ----------
    curves : sequence of (times, survival)
        Where each curve steps, and its values from there on.
    names : sequence of str, optional
        Names of the samples, for the legend, which shows up to 10 of them.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
    ax_, figure_

    Examples
    --------
    >>> from kernelweave.inspection import SurvivalCurvesDisplay
    >>> display = SurvivalCurvesDisplay([([1.0, 2.0], [0.9, 0.4]), ([1.0, 2.0], [0.7, 0.1])]).plot()
    >>> [float(line.get_ydata()[-1]) for line in display.lines_]
    [0.4, 0.1]
    """

    def __init__(self, curves: Sequence[tuple[Any, Any]], names: Sequence[str] | None = None) -> None:
        self.curves = curves
        self.names = names

    def plot(self, ax: Any = None, **line_kw: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **line_kw
            Passed on to `matplotlib.axes.Axes.step`.

        Returns
        -------
        display : SurvivalCurvesDisplay
        """
        names = [f"sample {i}" for i in range(len(self.curves))] if self.names is None else list(self.names)
        if len(names) != len(self.curves):
            raise ValueError(f"names has {len(names)} names for {len(self.curves)} curves.")
        ax = axes_for(self, ax, (6.0, 4.0))
        self.lines_ = []
        for name, curve in zip(names, self.curves, strict=True):
            times, survival = _from_start(*(np.asarray(part, dtype=np.float64) for part in curve))
            self.lines_ += ax.step(times, survival, **{"where": "post", "label": name, **line_kw})
        _survival_axes(ax)
        if len(names) <= MOST_NAMED:
            ax.legend()
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, names: Sequence[str] | None = None, ax: Any = None, **plot_kw: Any
    ) -> Self:
        """Draw the curves that an estimator predicts.

        Parameters
        ----------
        estimator : fitted estimator
            Its ``predict_survival_function`` gives step functions, with `x` and `y`.
        X : array-like
            The samples, not too many of them.
        names : sequence of str, optional
        ax : matplotlib Axes, optional
        **plot_kw
            Passed on to `plot`.

        Returns
        -------
        display : SurvivalCurvesDisplay
        """
        curves = [(curve.x, curve.y) for curve in estimator.predict_survival_function(X)]
        return cls(curves, names).plot(ax=ax, **plot_kw)


class SurvivalCalibrationDisplay:
    """Predicted against seen survival at one time, for groups by prediction with their Kaplan-Meier values.

    Where predictions are right, the points are on the diagonal.

    Parameters
    ----------
    event, time : array-like of shape (n,)
    survival : array-like of shape (n,)
        Predicted probabilities of no event up to the time `at`.
    at : float
    n_groups : int, default=5
        Groups have about the same number of samples; there are fewer groups where predictions are equal.

    Attributes
    ----------
    predicted_, observed_ : ndarray of shape (n_groups,)
        Mean prediction of every group, and its Kaplan-Meier value.
    line_ : matplotlib Line2D
    ax_, figure_

    Examples
    --------
    >>> from kernelweave.inspection import SurvivalCalibrationDisplay
    >>> S = [0.2, 0.2, 0.8, 0.8]
    >>> display = SurvivalCalibrationDisplay([1, 1, 1, 1], [1.0, 2.0, 1.0, 4.0], S, at=3.0, n_groups=2).plot()
    >>> display.observed_
    array([0. , 0.5])
    """

    def __init__(
        self, event: ArrayLike, time: ArrayLike, survival: ArrayLike, at: float, n_groups: int = 5
    ) -> None:
        self.event = event
        self.time = time
        self.survival = survival
        self.at = at
        self.n_groups = n_groups

    def plot(self, ax: Any = None, **line_kw: Any) -> Self:
        """Draw the groups.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **line_kw
            Passed on to `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : SurvivalCalibrationDisplay
        """
        self.predicted_, self.observed_ = calibrated(
            self.event, self.time, self.survival, self.at, self.n_groups
        )
        ax = axes_for(self, ax, (4.5, 4.5))
        ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--")
        (self.line_,) = ax.plot(self.predicted_, self.observed_, **{"marker": "o", **line_kw})
        ax.set_xlabel(f"predicted survival at {self.at:g}")
        ax.set_ylabel("seen (Kaplan-Meier)")
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        at: float,
        *,
        n_groups: int = 5,
        ax: Any = None,
        **plot_kw: Any,
    ) -> Self:
        """Draw the calibration of an estimator on samples that it was not fitted on.

        Parameters
        ----------
        estimator : fitted estimator
            Its ``predict_survival_function`` gives functions of time.
        X : array-like
        y : structured array, data frame or tuple
            Event and time, as `MKLSurvival` takes them.
        at, n_groups
            As in the class.
        ax : matplotlib Axes, optional
        **plot_kw
            Passed on to `plot`.

        Returns
        -------
        display : SurvivalCalibrationDisplay
        """
        known = survival_array(y)
        survival = np.array([float(curve(at)) for curve in estimator.predict_survival_function(X)])
        return cls(known["event"], known["time"], survival, at, n_groups).plot(ax=ax, **plot_kw)


def _from_start(times: FloatArray, survival: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A curve that begins with 1 at time 0."""
    return np.append(min(0.0, times[0]), times), np.append(1.0, survival)


def _survival_at(event: Any, time: FloatArray, at: float) -> float:
    """The Kaplan-Meier value at a time; nan after the last sample, unless all had an event by then."""
    times, survival = _from_start(*kaplan_meier(event, time))
    if at > times[-1] and survival[-1] > 0.0:
        return float("nan")
    return float(survival[np.searchsorted(times, at, side="right") - 1])


def _survival_axes(ax: Any) -> None:
    ax.set_xlabel("time")
    ax.set_ylabel("survival")
    ax.set_ylim(0.0, 1.02)
