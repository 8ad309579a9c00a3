"""Censored times: how they may be given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._gaps import is_missing
from ._typing import BoolArray, FloatArray
from ._words import listed, quoted, row_list

#: what the columns of a survival study are called
EVENT_NAME = re.compile(r"event|status|death|dead|died|deceased|censor|relapse|vital", re.I)
TIME_NAME = re.compile(r"time|days|months|years|survival|(^|[^a-z])(os|pfs|dfs|rfs)([^a-z]|$)", re.I)
STRATUM_NAME = re.compile(
    r"strat|group|batch|block|site|hospital|clinic|ward|cent(er|re)|inst|stud(y|ies)|trial|cohort|pair|match"
    r"|set|cluster|family|region|country",
    re.I,
)

#: what a column of events holds
EVENTS = "1 or True where the event was seen, 0 or False where the time is censored"

#: what y may be
FORMS = (
    "a structured array of event (bool) and time, a data frame with these two columns, or a tuple "
    "(event, time); a third one is the stratum"
)


def survival_array(y: Any) -> Any:
    """Targets as a structured array of event (bool), time and perhaps stratum.

    Parameters
    ----------
    y : structured array, data frame, tuple of arrays, or array of shape (n, 2) or (n, 3)
        Event, time and perhaps a stratum: fields, columns or parts. Two fields or columns are told apart by
        what they hold: the event is of type bool, or holds 0 and 1 only. Where that does not tell, and
        among three, their names do, such as "status" and "months".

    Examples
    --------
    >>> survival_array(([True, False], [3.0, 2.0]))
    array([( True, 3.), (False, 2.)], dtype=[('event', '?'), ('time', '<f8')])
    """
    parts, names = _parts(y)
    named = _by_name(names)
    if len(parts) not in (2, 3):
        own = f"y[[{names[named[0]]!r}, {names[named[1]]!r}]]; in general " if named else ""
        raise ValueError(f"y has {len(parts)} columns: pass {own}{FORMS}.")
    places = _places(parts, named, isinstance(y, tuple) or not hasattr(y, "columns"))
    event, time, *stratum = (parts[k] for k in places)
    if len({len(part) for part in parts}) > 1:
        sizes = listed([str(len(part)) for part in parts])
        raise ValueError(f"y has parts of {sizes} samples: pass event and time of the same samples.")
    fields: list[Any] = [("event", bool), ("time", float)]
    if stratum:
        fields.append(("stratum", stratum[0].dtype))
    found = np.empty(len(time), dtype=fields)
    found["event"] = _events(event, names[places[0]] if names else None)
    found["time"] = _times(time)
    if stratum:
        if hasattr(y, "columns"):
            _refuse_no_stratum(stratum[0], *(names[k] for k in places))
        found["stratum"] = stratum[0]
    return found


def _parts(y: Any) -> tuple[list[Any], list[Any]]:
    """The columns of y, and their names where they have some."""
    if isinstance(y, tuple):
        return [np.asarray(part) for part in y], []
    if hasattr(y, "columns"):
        names = list(y.columns)
        return [np.asarray(y.iloc[:, k] if hasattr(y, "iloc") else y[c]) for k, c in enumerate(names)], names
    values = np.asarray(y)
    if values.dtype.names:
        return [values[name] for name in values.dtype.names], list(values.dtype.names)
    if values.ndim != 2:
        raise ValueError(f"y has shape {values.shape}, without events or without times: pass {FORMS}.")
    return list(values.T), []


def _by_name(names: Sequence[Any]) -> tuple[int, int] | None:
    """Places of event and time, where names of columns say it.

    Examples
    --------
    >>> _by_name(["age", "days_to_death", "vital_status"]), _by_name(["a", "b"])
    ((2, 1), None)
    """
    events = {k for k, name in enumerate(names) if EVENT_NAME.search(str(name))}
    times = {k for k, name in enumerate(names) if TIME_NAME.search(str(name))}
    both = events & times
    events, times = events - both or both, times - both or both
    if len(names) == 2:
        events, times = events or {0, 1} - times, times or {0, 1} - events
    if len(events) != 1 or len(times) != 1 or events == times:
        return None
    return events.pop(), times.pop()


def _places(parts: list[Any], named: tuple[int, int] | None, ordered: bool) -> list[int]:
    """Places of event, time and perhaps stratum; among numbers without names the first is the event."""
    if len(parts) == 3 and named:
        return [*named, 3 - sum(named)]
    flags = [part.dtype.kind == "b" for part in parts[:2]]
    if flags[0] == flags[1]:
        flags = [bool(_zeros_and_ones(part).all()) for part in parts[:2]]
    if flags[0] == flags[1] and named:
        return [*named]
    turned = flags[1] and not flags[0] and not (ordered and parts[0].dtype.kind == "b")
    return [1, 0, 2][: len(parts)] if turned else [0, 1, 2][: len(parts)]


def _events(event: Any, name: Any = None) -> Any:
    values = np.asarray(event)
    known = _zeros_and_ones(values)
    if values.ndim == 1 and known.all():
        return values.astype(bool)
    gaps = is_missing(values)
    if name is not None and gaps.any():
        raise ValueError(
            f"column {name!r} of y, which says whether there was an event, has no value in {row_list(gaps)}: "
            "leave those samples out."
        )
    if name is not None and values.ndim == 1:
        found = quoted(sorted(set(values.tolist()), key=str), 4)
        raise ValueError(
            f"column {name!r} of y holds {found}: as the column of events it takes {EVENTS}. Put y[{name!r}] "
            "== value in its place, with the value that stands for an event."
        )
    odd = next(iter(values[~known].tolist()), None)
    raise ValueError(
        f"y holds {odd!r} where it says whether there was an event: True or 1 for an event, False or 0 "
        f"for a sample that was censored. Pass {FORMS}."
    )


def _refuse_no_stratum(values: Any, event: Any, time: Any, name: Any) -> None:
    """Raise where most strata of a column that is not called one have one sample, compared with none."""
    count = np.unique(values.astype(str), return_counts=True)[1]
    alone = np.count_nonzero(count == 1)
    if 2 * alone > len(count) and not STRATUM_NAME.search(str(name)):
        raise ValueError(
            f"column {name!r} of y, beside {event!r} and {time!r}, would be the stratum, within which "
            f"samples are compared, and {alone} of its {len(count)} values have one sample: pass "
            f"y[[{event!r}, {time!r}]]; or, where it is the stratum, call it 'stratum'."
        )


def _zeros_and_ones(values: Any) -> BoolArray:
    """Where values are 0, 1, True or False; objects may hold values that cannot be compared."""
    if values.dtype.kind != "O":
        return np.isin(values, (0, 1))
    known = [isinstance(value, bool | int | float | np.generic) and value in (0, 1) for value in values.flat]
    return np.array(known).reshape(values.shape)


def _times(time: Any) -> FloatArray:
    if np.asarray(time).dtype.kind in "mM":
        raise ValueError("y holds dates or durations: pass numbers, such as days since a start.")
    try:
        values = np.asarray(time, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y holds times that are not numbers ({error}): pass days since a start.") from error
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
