"""From values to places along an axis, and the ticks in between."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


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
    start: float
    stop: float
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
            return cls(
                10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high)), start, stop, True
            ).widened()
        room = pad * (high - low)
        keep_low, keep_high = zero and low == 0, zero and high == 0
        return cls(low - room * (not keep_low), high + room * (not keep_high), start, stop).widened()

    def widened(self) -> Scale:
        """The same scale, or one of positive length around a single value."""
        if self.high > self.low:
            return self
        if self.log:
            return Scale(self.low / 10, self.high * 10, self.start, self.stop, True)
        room = abs(self.low) / 2 or 0.5
        return Scale(self.low - room, self.high + room, self.start, self.stop)

    def __call__(self, value: float) -> float:
        """Place of a value; those outside go to the ends."""
        low, high = self._line(self.low), self._line(self.high)
        share = (self._line(value) - low) / (high - low) if math.isfinite(value) else 0.0
        place = self.start + min(max(share, 0.0), 1.0) * (self.stop - self.start)
        return round(place, 2)

    def _line(self, value: float) -> float:
        return math.log10(max(value, 1e-300)) if self.log else value

    def ticks(self, most: int = 5) -> list[float]:
        """Round values within the scale, `most` at the most."""
        return self._decades(most) if self.log else self._steps(most)

    def _decades(self, most: int) -> list[float]:
        low, high = round(math.log10(self.low)), round(math.log10(self.high))
        every = max(1, math.ceil((high - low + 1) / most))
        return [10.0**k for k in range(low, high + 1, every)]

    def _steps(self, most: int) -> list[float]:
        rough = (self.high - self.low) / max(most - 1, 1)
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(
            factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * (1 - 1e-9)
        )
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(k * step, 12) for k in range(first, last + 1)]
