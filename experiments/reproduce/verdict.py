"""Verdicts on the figures and statements of a paper: one set of rules for all experiments.

The rules were fixed before the results they judge were seen; no experiment has a threshold of its own.
s / sqrt(n) is the standard error of a mean of n repetitions (splits, draws) of deviation s. A verdict needs
two repetitions at least; with fewer it is *undecided*.

* **A figure** (`compare`). *Reproduced*: our mean and the paper's differ by at most 2 standard errors of the
  difference,

      sqrt(s^2 / n + e^2),   e = the paper's deviation / sqrt(its splits) where it gives both, else 0.

  *Not reproduced* otherwise, and the sign is said: higher or lower. There is no "better": a baseline that is
  higher than published, or fewer features than published, is a figure that was not reproduced.
* **An order** (`ordering`: A above B). Judged on differences d of A and B on the same split: *reproduced* if
  the mean of d is over 2 standard errors, *contradicted* if it is under -2, *undecided* otherwise.
* **Several orders at once** (`all_above`: each of these above each of those). *Reproduced* if all of them
  are, *contradicted* if one of them is, *undecided* otherwise; the figure shown is that of the pair which
  decides it.
* **A bound** (`threshold`: more than, less than). As an order, with the bound in place of B.
* **Sameness** (`alike`: A performs as B). A figure, with the difference of the paper, 0, beside the mean of
  d: *reproduced* if it is within 2 standard errors of 0. With `or_better`, where the statement is that A
  loses nothing, a difference in favour of A is no objection.
* **A margin** (`within`: A is not below B by more than so much). On differences d of A and B on the same
  split: *contradicted* if the mean of d is below zero by more than the margin and by more than 2 standard
  errors, *reproduced* otherwise.
* **Not testable here** (`untestable`): data or programs are not available, or it would take too long; the
  reason is given.

Splits of one data set overlap, so that standard errors over splits are on the small side: what is undecided
here would be undecided under any stricter rule as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .experiment import Row
from .stats import mean, standard_error, with_error
from .summary import Line

#: standard errors
WIDTH = 2.0
Values = Mapping[Hashable, float]


def error_of(deviation: float, splits: int) -> float:
    """Standard error of a published mean, from the deviation over its splits.

    Examples
    --------
    >>> error_of(4.0, 16)
    1.0
    """
    return deviation / float(np.sqrt(splits))


def by(rows: Sequence[Row], column: str, unit: str | tuple[str, ...] = "split", **settings: Any) -> Values:
    """Values of a column by split, for comparisons on the same splits.

    Parameters
    ----------
    rows : list of dict
        Results.
    column : str
        What to take; rows without it are left out.
    unit : str or tuple of str, default="split"
        The setting, or settings, that name a repetition.
    **settings
        What the rows have to equal.

    Examples
    --------
    >>> rows = [{"split": s, "method": m, "x": s + len(m)} for s in (0, 1) for m in ("a", "bb")]
    >>> by(rows, "x", method="bb")
    {0: 2.0, 1: 3.0}
    """
    names = (unit,) if isinstance(unit, str) else unit
    return {
        row[unit] if isinstance(unit, str) else tuple(row[name] for name in names): float(row[column])
        for row in rows
        if column in row and all(row.get(name) == wanted for name, wanted in settings.items())
    }


def compare(
    what: str,
    values: Sequence[float],
    paper: float | None = None,
    error: float | None = None,
    *,
    digits: int = 1,
    why: str = "",
) -> Line:
    """Our repetitions against a figure of the paper.

    Parameters
    ----------
    what : str
        What was measured.
    values : sequence of float
        One value per repetition.
    paper, error : float, optional
        Mean in the paper and its standard error (`error_of`); without a mean the figure is ours alone.
    digits : int, default=1
        Decimals.
    why : str
        What an experiment has shown of the reason, shown if it is not reproduced.

    Examples
    --------
    >>> compare("accuracy", [93.0, 94.0, 95.0], paper=93.5).verdict
    'reproduced'
    >>> line = compare("accuracy", [97.0, 98.0, 97.5], paper=93.5, error=0.4)
    >>> line.verdict, line.side
    ('not reproduced', 'higher')
    """
    spread = "" if error is None else f" ± {error:.{digits}f}"
    published = "—" if paper is None else f"{paper:.{digits}f}{spread}"
    if not len(values):
        return Line(what, published, "not run", "ours alone" if paper is None else "undecided", kind="figure")
    ours = with_error(values, digits)
    if paper is None:
        return Line(what, published, ours, "ours alone", n=len(values), kind="figure")
    verdict, side = _same(mean(values) - paper, float(np.hypot(standard_error(values), error or 0.0)))
    why = why if verdict == "not reproduced" else ""
    return Line(what, published, ours, verdict, why, len(values), side, "figure")


def _same(difference: float, error: float) -> tuple[str, str]:
    if not np.isfinite(error):
        return "undecided", ""
    if abs(difference) <= WIDTH * error:
        return "reproduced", ""
    return "not reproduced", "higher" if difference > 0 else "lower"


class _Pair(NamedTuple):
    """Two methods on the same repetitions; the difference is positive where the first is ahead."""

    names: tuple[str, str]
    first: list[float]
    second: list[float]
    sign: float

    @property
    def gain(self) -> list[float]:
        return [self.sign * (a - b) for a, b in zip(self.first, self.second, strict=True)]

    @property
    def score(self) -> float:
        """Standard errors the first is ahead by; not a number for fewer than two repetitions."""
        error = standard_error(self.gain)
        if error == 0.0:
            return float(np.sign(mean(self.gain)) * np.inf) if any(self.gain) else 0.0
        return mean(self.gain) / error

    @property
    def verdict(self) -> str:
        if self.score > WIDTH:
            return "reproduced"
        return "contradicted" if self.score < -WIDTH else "undecided"

    def text(self, digits: int, unit: str) -> str:
        error = standard_error(self.gain)
        if 0.0 < error < 1.0:  # at least one digit of it
            digits = max(digits, int(np.ceil(-np.log10(error))))
        means = f"{mean(self.first):.{digits}f} against {mean(self.second):.{digits}f}"
        return f"{means}: {with_error(self.gain, digits, '+')}{unit}"


def _paired(first: Values, second: Values, higher: bool = True, names: tuple[str, str] = ("", "")) -> _Pair:
    """The repetitions that both have."""
    units = [unit for unit in first if unit in second]
    return _Pair(names, [first[u] for u in units], [second[u] for u in units], 1.0 if higher else -1.0)


def ordering(
    what: str,
    better: Values,
    worse: Values,
    *,
    paper: str,
    higher: bool = True,
    digits: int = 2,
    unit: str = "",
    why: str = "",
) -> Line:
    """A statement that one method is above another.

    Parameters
    ----------
    what : str
        What is stated.
    better, worse : mapping
        Values by split (`by`); the splits that both have count.
    paper : str
        What the paper reports.
    higher : bool, default=True
        Whether higher is better; the difference shown is positive where `better` is ahead.
    digits : int, default=2
        Decimals.
    unit : str
        Written after the difference.
    why : str
        What an experiment has shown of the reason, shown unless it is reproduced.

    Examples
    --------
    >>> line = ordering("a above b", {0: 2.0, 1: 3.5}, {0: 1.0, 1: 2.0}, paper="yes")
    >>> line.ours, line.verdict
    ('2.75 against 1.50: +1.25 ± 0.25', 'reproduced')
    """
    return all_above(
        what,
        {"": better},
        {"": worse},
        paper=paper,
        higher=higher,
        digits=digits,
        unit=unit,
        why=why,
    )


def all_above(
    what: str,
    winners: Mapping[str, Values],
    rivals: Mapping[str, Values],
    *,
    paper: str,
    higher: bool = True,
    digits: int = 2,
    unit: str = "",
    why: str = "",
) -> Line:
    """A statement that each of some methods is above each of others.

    Parameters
    ----------
    what : str
        What is stated.
    winners, rivals : mapping of str to mapping
        Values by split of each method; methods without any are left out.
    paper, higher, digits, unit, why
        See `ordering`.

    Examples
    --------
    >>> splits = range(3)
    >>> found = {m: {s: x + 0.1 * s for s in splits} for m, x in (("a", 3.0), ("b", 1.0), ("c", 2.0))}
    >>> line = all_above("a is best", {"a": found["a"]}, {m: found[m] for m in "bc"}, paper="a")
    >>> line.verdict, line.ours.partition(",")[0]
    ('reproduced', 'a and c')
    """
    pairs = [
        _paired(a, b, higher, (first, second))
        for first, a in winners.items()
        for second, b in rivals.items()
        if a and b
    ]
    if not pairs:
        return Line(what, paper, "not run", "undecided")
    closest = min(pairs, key=lambda pair: (np.nan_to_num(pair.score), mean(pair.gain)))
    ours = closest.text(digits, unit)
    if closest.names != ("", ""):
        many = f", weakest of {len(pairs)}" if len(pairs) > 1 else ""
        ours = f"{' and '.join(closest.names)}{many}: {ours}"
    verdict = closest.verdict  # all are ahead by as much at least
    return Line(what, paper, ours, verdict, why if verdict != "reproduced" else "", len(closest.first))


def threshold(
    what: str,
    values: Sequence[float],
    bound: float,
    *,
    paper: str,
    above: bool = True,
    digits: int = 2,
    unit: str = "",
    why: str = "",
) -> Line:
    """A statement that a figure is above a bound, or below it.

    Parameters
    ----------
    what : str
        What is stated.
    values : sequence of float
        One per repetition.
    bound : float
        The bound.
    above : bool, default=True
        Whether the paper says above.
    paper, digits, unit, why
        See `ordering`.

    Examples
    --------
    >>> threshold("under 10 %", [8.0, 9.0], 10.0, paper="yes", above=False).verdict
    'reproduced'
    """
    if not len(values):
        return Line(what, paper, "not run", "undecided")
    pair = _Pair(("", ""), list(values), [bound] * len(values), 1.0 if above else -1.0)
    ours = f"{with_error(values, digits)}{unit}"
    return Line(what, paper, ours, pair.verdict, why if pair.verdict != "reproduced" else "", len(values))


def alike(
    what: str,
    first: Values,
    second: Values,
    *,
    paper: str,
    or_better: bool = False,
    higher: bool = True,
    digits: int = 2,
    unit: str = "",
    why: str = "",
) -> Line:
    """A statement that two methods perform the same, or with `or_better` that the first loses nothing.

    Parameters
    ----------
    what : str
        What is stated.
    first, second : mapping
        Values by split (`by`).
    or_better : bool, default=False
        Whether the first may be ahead.
    paper, higher, digits, unit, why
        See `ordering`.

    Examples
    --------
    >>> line = alike("a as b", {0: 2.0, 1: 3.5, 2: 1.0}, {0: 2.5, 1: 3.0, 2: 1.0}, paper="yes")
    >>> line.verdict
    'reproduced'
    """
    pair = _paired(first, second, higher)
    if not pair.first:
        return Line(what, paper, "not run", "undecided")
    verdict, side = _same(mean(pair.gain), standard_error(pair.gain))
    if or_better and mean(pair.gain) > 0 and verdict == "not reproduced":
        verdict, side = "reproduced", ""
    side = {"": "", "higher": "ahead", "lower": "behind"}[side]
    why = why if verdict == "not reproduced" else ""
    return Line(what, paper, pair.text(digits, unit), verdict, why, len(pair.first), side)


def within(
    what: str,
    first: Values,
    second: Values,
    margin: float,
    *,
    paper: str,
    higher: bool = True,
    digits: int = 2,
    unit: str = "",
    why: str = "",
) -> Line:
    """A statement that one method is not below another by more than a margin and two standard errors.

    Parameters
    ----------
    what : str
        What is stated.
    first, second : mapping
        Values by split (`by`).
    margin : float
        What the first may be behind.
    paper, higher, digits, unit, why
        See `ordering`.

    Examples
    --------
    >>> ours, theirs = {0: 90.0, 1: 91.0}, {0: 93.0, 1: 94.1}
    >>> [within("a", ours, theirs, margin, paper="yes").verdict for margin in (2.0, 4.0)]
    ['contradicted', 'reproduced']
    """
    pair = _paired(first, second, higher)
    if len(pair.first) < 2:
        ours = pair.text(digits, unit) if pair.first else "not run"
        return Line(what, paper, ours, "undecided", n=len(pair.first))
    behind = mean(pair.gain) < -margin and pair.score < -WIDTH
    verdict = "contradicted" if behind else "reproduced"
    return Line(what, paper, pair.text(digits, unit), verdict, why if behind else "", len(pair.first))


def untestable(what: str, paper: str, why: str, ours: str = "—") -> Line:
    """A statement of a paper that cannot be judged here.

    Parameters
    ----------
    what, paper : str
        What is stated, and what the paper reports.
    why : str
        Why it cannot be judged.
    ours : str
        What there is of ours, if anything.

    Examples
    --------
    >>> untestable("a above b", "yes", "the data are not available").verdict
    'not testable here'
    """
    return Line(what, paper, ours, "not testable here", why)
