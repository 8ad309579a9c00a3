"""Censored times: how they may be given."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._typing import BoolArray, FloatArray
from ._words import listed

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
        what they hold: the event is of type bool, or holds 0 and 1 only.

    Examples
    --------
    >>> survival_array(([True, False], [3.0, 2.0]))
    array([( True, 3.), (False, 2.)], dtype=[('event', '?'), ('time', '<f8')])
    """
    parts = _parts(y)
    if len(parts) not in (2, 3):
        raise ValueError(f"y has {len(parts)} columns: pass {FORMS}.")
    event, time = _event_first(parts[0], parts[1], isinstance(y, tuple) or not hasattr(y, "columns"))
    if len({len(part) for part in parts}) > 1:
        sizes = listed([str(len(part)) for part in parts])
        raise ValueError(f"y has parts of {sizes} samples: pass event and time of the same samples.")
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
    if hasattr(y, "columns"):
        return [np.asarray(y.iloc[:, k] if hasattr(y, "iloc") else y[c]) for k, c in enumerate(y.columns)]
    values = np.asarray(y)
    if values.dtype.names:
        return [values[name] for name in values.dtype.names]
    if values.ndim != 2:
        raise ValueError(f"y has shape {values.shape}, without events or without times: pass {FORMS}.")
    return list(values.T)


def _event_first(one: Any, two: Any, ordered: bool) -> tuple[Any, Any]:
    """Event and time, whichever comes first; among numbers without names the first is the event."""
    flags = [part.dtype.kind == "b" for part in (one, two)]
    if flags[0] == flags[1]:
        flags = [bool(_zeros_and_ones(part).all()) for part in (one, two)]
    return (two, one) if flags[1] and not flags[0] and not (ordered and one.dtype.kind == "b") else (one, two)


def _events(event: Any) -> Any:
    values = np.asarray(event)
    known = _zeros_and_ones(values)
    if values.ndim != 1 or not known.all():
        odd = next(iter(values[~known].tolist()), None)
        raise ValueError(
            f"y holds {odd!r} where it says whether there was an event: True or 1 for an event, False or 0 "
            f"for a sample that was censored. Pass {FORMS}."
        )
    return values.astype(bool)


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
