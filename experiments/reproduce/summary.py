"""The paper's figures beside ours, with a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

OPEN = "not explained"


@dataclass(frozen=True)
class Line:
    """One figure of the paper beside ours.

    Parameters
    ----------
    what : str
        What was measured.
    paper, ours : str
        The figures, as text.
    verdict : {"reproduced", "better", "different", "ours alone"}
        What the comparison says; "ours alone" where the paper has no figure.
    why : str
        Why it is different: what an experiment has shown, not a guess.
    n : int
        Number of repetitions.

    Examples
    --------
    >>> Line("accuracy", "93.5", "94.0", "reproduced").why
    ''
    """

    what: str
    paper: str
    ours: str
    verdict: str
    why: str = ""
    n: int = 0


@dataclass(frozen=True)
class Table:
    """A table of its own: title, header and lines of text.

    Examples
    --------
    >>> Table("errors", ["method", "error"], [["l1", "0.1"]]).title
    'errors'
    """

    title: str
    header: list[str]
    lines: list[list[str]]


#: methods under the names they have in all experiments
METHODS = (
    "uniform sum",
    "best single kernel",
    "single SVM",
    "l1-MKL",
    "lp-MKL (p = 4/3)",
    "lp-MKL (p = 2)",
    "lp-MKL (p tuned)",
    "elastic net",
    "block norm (q = 4)",
    "SMKL",
    "MKL-GOMP",
    "GMKL",
    "empirical Bayes",
)


@dataclass(frozen=True)
class Standing:
    """How well a method does on a problem, under names that all experiments share.

    Parameters
    ----------
    data : str
        The data set.
    problem : str
        What was made of it; the set's name where it is taken as it is.
    method : str
        One of `METHODS`.
    score : float
        Its mean over the repetitions.
    higher : bool, default=True
        Whether higher is better.

    Examples
    --------
    >>> Standing("sonar", "sonar", "l1-MKL", 85.0).higher
    True
    """

    data: str
    problem: str
    method: str
    score: float
    higher: bool = True

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"method={self.method!r}: use one of {', '.join(map(repr, METHODS))}.")


@dataclass(frozen=True)
class Summary:
    """What an experiment found.

    Parameters
    ----------
    lines : list of Line
        The paper's figures beside ours.
    tables : list of Table
        More tables.
    notes : list of str
        Paragraphs that follow from the rows (write them with figures taken from the rows).
    standings : list of Standing
        Scores of methods on problems, for the page on what all experiments say together.

    Examples
    --------
    >>> Summary().lines
    []
    """

    lines: list[Line] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    standings: list[Standing] = field(default_factory=list)


def compare(
    what: str,
    values: Sequence[float],
    paper: float | None = None,
    deviation: float | None = None,
    *,
    higher: bool = True,
    digits: int = 1,
    why: str = "",
) -> Line:
    """Our repetitions against the paper's figure.

    Reproduced: our mean is within one standard deviation of the paper's (its own deviation, or that of
    our repetitions where it gives none). Better: outside, on the good side. Different: outside, on the other.

    Parameters
    ----------
    what : str
        What was measured.
    values : sequence of float
        One value a repetition.
    paper, deviation : float, optional
        Mean and standard deviation in the paper; without a mean there is nothing to be compared with.
    higher : bool, default=True
        Whether higher is better.
    digits : int, default=1
        Decimals.
    why : str
        Why it is different, shown if it is.

    Examples
    --------
    >>> compare("error", [5.0, 6.0], paper=8.0, deviation=1.0, higher=False).verdict
    'better'
    >>> compare("error", [5.0, 6.0]).ours
    '5.5 ± 0.5'
    """
    found = np.asarray(values, dtype=np.float64)
    if found.size == 0:
        return Line(what, _figure(paper, deviation, digits), "not run", "ours alone")
    spread = float(found.std(ddof=1)) if found.size > 1 else float("nan")
    ours = f"{found.mean():.{digits}f}"
    if found.size > 1:
        ours += f" ± {spread / np.sqrt(found.size):.{digits}f}"
    verdict = _verdict(float(found.mean()), spread, paper, deviation, higher)
    shown = (why or OPEN) if verdict == "different" else ""
    return Line(what, _figure(paper, deviation, digits), ours, verdict, shown, int(found.size))


def _figure(paper: float | None, deviation: float | None, digits: int) -> str:
    if paper is None:
        return "—"
    return f"{paper:.{digits}f}" + (f" (sd {deviation:.{digits}f})" if deviation is not None else "")


def _verdict(mean: float, spread: float, paper: float | None, deviation: float | None, higher: bool) -> str:
    if paper is None:
        return "ours alone"
    allowed = deviation if deviation is not None else spread if np.isfinite(spread) else 0.0
    if abs(mean - paper) <= allowed:
        return "reproduced"
    return "better" if (mean > paper) == higher else "different"


def claim(what: str, holds: bool, *, paper: str, ours: str, why: str = "", n: int = 0) -> Line:
    """A statement of the paper that holds in our results, or does not.

    Parameters
    ----------
    what : str
        What is stated.
    holds : bool
        Whether it holds in our results.
    paper, ours : str
        What the paper reports, and what we see.
    why : str
        Why it does not hold, shown if it does not.
    n : int
        Number of repetitions.

    Examples
    --------
    >>> claim("l1 is best at 98 % noise", True, paper="l1", ours="l1").verdict
    'reproduced'
    """
    if holds:
        return Line(what, paper, ours, "reproduced", "", n)
    return Line(what, paper, ours, "different", why or OPEN, n)
