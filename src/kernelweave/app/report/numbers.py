"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..._words import listed

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits and a true minus sign.

    Examples
    --------
    >>> number(0.123456), number(-1234.6), number(0.00042), number(float("nan"))
    ('0.123', '−1235', '4.2×10⁻⁴', '–')
    """
    if value is None or not math.isfinite(value):
        return "–" if value is None or math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e6:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        return _trimmed(f"{value:.{decimals}f}")
    factor, exponent = f"{value:.{digits - 1}e}".split("e")
    power = f"10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    return power if _trimmed(factor) == "1" else f"{_trimmed(factor)}×{power}"


def _trimmed(text: str) -> str:
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "−")


def fixed(value: float | None, decimals: int = 3) -> str:
    """A number with so many decimals, for columns that line up.

    Examples
    --------
    >>> fixed(0.12345), fixed(-0.00001)
    ('0.123', '0.000')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{round(value, decimals) + 0.0:.{decimals}f}".replace("-", "−")


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign, plus or minus."""
    return f"{'+' if value > 0 else ''}{number(value, digits)}"


def plus_minus(value: float, error: float | None, decimals: int = 3) -> str:
    """A value and its standard error, where there is one."""
    if error is None or not math.isfinite(error):
        return fixed(value, decimals)
    return f"{fixed(value, decimals)} ± {fixed(error, decimals)}"


def percent(share: float | None) -> str:
    """A share in percent.

    Examples
    --------
    >>> percent(0.934), percent(1.0), percent(0.0004)
    ('93 %', '100 %', 'under 1 %')
    """
    if share is None or not math.isfinite(share):
        return "–"
    if 0 < share < 0.005:
        return "under 1 %"
    return f"{100 * share:.0f} %"


def count(amount: int, noun: str) -> str:
    """A count and its noun, in the singular for one."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}".replace(",", "\u202f")


def named(names: Iterable[str], most: int = 4) -> str:
    """Names in a sentence, in quotation marks where one of them has a comma.

    Examples
    --------
    >>> named(["a", "b", "c"]), named(["a, b", "c"]), named("abcdefg")
    ('a, b and c', '“a, b” and “c”', 'a, b, c, d and 3 more')
    """
    every = list(names)
    return listed([f"“{name}”" for name in every] if "," in "".join(every) else every, most)
