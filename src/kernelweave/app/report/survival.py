"""Predicted survival beside what was seen: groups by risk, calibration, curves of single samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import FloatArray, IntArray
from ...inspection._models import spread
from ...inspection.survival import calibrated, groups_by, risk_names
from ...metrics import concordance_jackknife, integrated_brier, kaplan_meier, log_rank, scored_times
from .data import Curve, RiskGroup, Score, Survival
from .given import Subject, as_words

#: samples of a group by risk, and most groups; the same of groups by predicted survival
PER_GROUP, MOST_GROUPS, CALIBRATED = 10, 3, 5

#: curves of single samples in one figure, most steps of a curve, and most samples in the table
MOST_CURVES, MOST_STEPS, MOST_ROWS = 6, 150, 400

#: shares of the events by which survival is looked at
SHARES = (0.25, 0.5, 0.75)


def survival(given: Subject) -> Survival | None:
    """What a model of censored times predicts for the samples looked at, and what became of them."""
    if given.task != "survival" or given.truth is None:
        return None
    event, time, risk = given.truth["event"], given.truth["time"], given.predicted
    one = concordance_jackknife(event, time, risk)
    error = float(one.std(ddof=1) / np.sqrt(len(one))) if len(one) > 1 else None
    group = groups_by(risk, max(2, min(MOST_GROUPS, len(risk) // PER_GROUP)))
    curves = _curves(given)
    times = np.unique(np.quantile(time[event], SHARES, method="nearest")) if event.any() else np.zeros(0)
    at = np.zeros((len(risk), 0)) if curves is None else curves.at(times)
    rows = spread(len(risk), MOST_ROWS)
    chosen = np.argsort(risk, kind="stable")[spread(len(risk), MOST_CURVES)]
    briers = (None, None) if curves is None else _briers(given, curves)
    return Survival(
        part=given.part,
        n=len(risk),
        n_events=int(event.sum()),
        concordance=Score("this model", float(one.mean()), error),
        groups=_groups(event, time, group),
        p_value=log_rank(event, time, group).p_value if group.any() else None,
        times=tuple(times.tolist()) if curves is not None else (),
        calibration=() if curves is None else _calibration(event, time, at, times),
        brier=briers[0],
        reference=briers[1],
        curves=() if curves is None else tuple(curves.of(row, given.labels[row]) for row in chosen),
        labels=tuple(given.labels[row] for row in rows),
        risk=tuple(risk[rows].tolist()),
        median=() if curves is None else tuple(curves.medians[rows].tolist()),
        survival=at[rows],
        seen=as_words(given.truth, rows),
        baseline=None if curves is None else curves.baseline,
    )


class Curves:
    """Survival curves of samples, values at the times of the training samples."""

    def __init__(self, times: FloatArray, values: FloatArray, hazard: FloatArray) -> None:
        self.times, self.values, self.hazard = times, values, hazard

    def at(self, times: FloatArray) -> FloatArray:
        """Survival at some times, shape (n, n_times)."""
        before = np.hstack([np.ones((len(self.values), 1)), self.values])
        return np.asarray(before[:, np.searchsorted(self.times, times, side="right")])

    def of(self, row: int, name: str) -> Curve:
        """The curve of a sample, with no more steps than can be seen."""
        return _stepped(name, self.times, self.values[row])

    @property
    def medians(self) -> FloatArray:
        """The first time at which survival is at most one half; nan where it stays above."""
        below = self.values <= 0.5
        return np.where(below.any(axis=1), self.times[below.argmax(axis=1)], np.nan)

    @property
    def baseline(self) -> Curve | None:
        """The cumulative baseline hazard, where all samples share one."""
        return _stepped("baseline", self.times, self.hazard[0], 0.0) if len(self.hazard) == 1 else None


def _curves(given: Subject) -> Curves | None:
    """Survival curves of the samples looked at; None where the loss gives no curves."""
    if not hasattr(given.inner, "predict_survival_function"):
        return None
    strata = given.truth["stratum"] if hasattr(given.inner, "strata_") else None
    values = given.model.predict_survival_function(given.seen, return_array=True, strata=strata)
    return Curves(given.inner.unique_times_, values, given.inner.baseline_hazard_)


def _stepped(name: str, times: FloatArray, values: FloatArray, start: float = 1.0) -> Curve:
    """A curve from time 0 on, where it steps."""
    steps = np.flatnonzero(np.diff(values, prepend=start, append=np.nan) != 0.0)
    steps = np.append(steps[steps < len(times)], len(times) - 1)
    kept: IntArray = np.unique(steps)[spread(len(np.unique(steps)), MOST_STEPS)]
    return Curve(name, [0.0, *times[kept].tolist()], [start, *values[kept].tolist()])


def _groups(event: Any, time: Any, group: IntArray) -> tuple[RiskGroup, ...]:
    """Kaplan-Meier curves of groups by risk."""
    found = []
    for place, name in enumerate(risk_names(int(group.max()) + 1)):
        own = group == place
        curve = _stepped(name, *kaplan_meier(event[own], time[own]))
        found.append(RiskGroup(curve, int(own.sum()), int(event[own].sum())))
    return tuple(found)


def _calibration(event: Any, time: Any, at: FloatArray, times: FloatArray) -> tuple[Curve, ...]:
    """Predicted and seen survival of groups at each of the times; groups with nobody left are left out."""
    n_groups = max(2, min(CALIBRATED, len(time) // PER_GROUP))
    found = []
    for k, when in enumerate(times.tolist()):
        predicted, seen = calibrated(event, time, at[:, k], when, n_groups)
        known = np.isfinite(seen)
        found.append(Curve(f"{when:g}", predicted[known].tolist(), seen[known].tolist()))
    return tuple(found)


def _briers(given: Subject, curves: Curves) -> tuple[float | None, float | None]:
    """Integrated Brier scores of the model, and of the Kaplan-Meier curve of the training samples."""
    event, time = given.truth["event"], given.truth["time"]
    times = scored_times(time)
    known, whole = kaplan_meier(given.y["event"], given.y["time"])
    flat = np.append(1.0, whole)[np.searchsorted(known, times, side="right")]
    if len(times) < 2:
        return None, None
    own, other = (
        integrated_brier(event, time, values, times)
        for values in (curves.at(times), np.tile(flat, (len(time), 1)))
    )
    return own, other
