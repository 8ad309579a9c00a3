"""What figures are made of: bars, points, squares, and the scales that place them; `figures.html` draws them.

Places across are in percent and places down in pixels, so that text keeps its size on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

#: characters of a label that fit beside a value on a phone
LABEL_LENGTH = 40


@dataclass(frozen=True)
class Scale:
    """Maps low .. high to start .. stop, linearly or in logarithms.

    Examples
    --------
    >>> scale = Scale(0.0, 2.0, 0.0, 100.0)
    >>> scale(0.5), scale.ticks()
    (25.0, [0.0, 0.5, 1.0, 1.5, 2.0])
    """

    low: float
    high: float
    start: float = 0.0
    stop: float = 100.0
    log: bool = False

    @classmethod
    def covering(
        cls,
        values: Iterable[float],
        start: float = 0.0,
        stop: float = 100.0,
        *,
        zero: bool = False,
        log: bool = False,
        pad: float = 0.0,
    ) -> Scale:
        """The scale of all finite `values`; with `zero`, of zero as well."""
        found = [float(v) for v in values if math.isfinite(v) and (v > 0 or not log)]
        found += [0.0] if zero and not log else []
        low, high = (min(found), max(found)) if found else (0.0, 1.0)
        if log:
            low, high = 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))
            return (
                cls(low, high, start, stop, True)
                if high > low
                else cls(low / 10, high * 10, start, stop, True)
            )
        if high == low:
            room = abs(low) / 2 or 0.5
            return cls(low - room, high + room, start, stop)
        room = pad * (high - low)
        return cls(low - room * (not zero or low < 0), high + room * (not zero or high > 0), start, stop)

    def onto(self, start: float, stop: float) -> Scale:
        """The same range, in other places."""
        return replace(self, start=start, stop=stop)

    def __call__(self, value: float) -> float:
        """Place of a value; those outside go to the ends."""
        low, high = self._line(self.low), self._line(self.high)
        share = (self._line(value) - low) / (high - low) if math.isfinite(value) else 0.0
        return round(self.start + min(max(share, 0.0), 1.0) * (self.stop - self.start), 2)

    def _line(self, value: float) -> float:
        return math.log10(max(value, 1e-300)) if self.log else value

    def ticks(self, most: int = 5) -> list[float]:
        """Round values within the scale, about `most` of them; powers of ten on a logarithmic one."""
        if self.log:
            low, high = round(math.log10(self.low)), round(math.log10(self.high))
            return [10.0**k for k in range(low, high + 1, max(1, math.ceil((high - low + 1) / most)))]
        rough = (self.high - self.low) / max(most - 1, 1)
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(k * step, 12) for k in range(first, last + 1)]


@dataclass(frozen=True)
class Bar:
    """One bar, from `start` to `value`.

    Attributes
    ----------
    label, text : str
        What it is, and its value in words.
    value, start : float
    interval : tuple (float, float), optional
    marks : sequence of float
        Small ticks on it, such as the values of single models.
    tip : str
        The text shown when it is pointed at.
    tone : str
        "", "quiet", "minus" or "total".
    """

    label: str
    value: float
    text: str
    start: float = 0.0
    interval: tuple[float, float] | None = None
    marks: Sequence[float] = ()
    tip: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Dot:
    """One point; `key` is what the script of the page knows it by."""

    x: float
    y: float
    tip: str
    tone: str = ""
    key: int | None = None


@dataclass(frozen=True)
class Square:
    """One square of a matrix, `shade` between 0 and 1 dark, with `words` on it."""

    shade: float
    tip: str
    words: str = ""


def scale_of_bars(rows: Sequence[Bar], dots: bool = False) -> Scale:
    """The scale of all bars, from zero; dots need no zero on the axis."""
    ends = [end for bar in rows for end in (bar.value, *(bar.interval or ()), *bar.marks)]
    ends += [] if dots else [bar.start for bar in rows]
    return Scale.covering(ends, zero=not dots, pad=0.06 if dots else 0.02)


def places(points: Sequence[Dot], log: bool) -> list[float] | None:
    """Ticks at the points where all of these are whole numbers, ten at most; None otherwise."""
    found = sorted({point.x for point in points})
    whole = not log and all(float(x).is_integer() for x in found)
    return found[:: max(1, -(-len(found) // 10))] if whole else None


def short(label: str, length: int = LABEL_LENGTH) -> str:
    """A label cut in its middle, so that its end still tells it apart."""
    if len(label) <= length:
        return label
    head = (length - 1) * 2 // 3
    return f"{label[:head]}…{label[head + 1 - length :]}"
