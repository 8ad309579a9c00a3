"""Small helpers on rows of results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .experiment import Row
from .summary import METHODS, Standing, Table


def select(rows: Sequence[Row], column: str, **settings: Any) -> list[float]:
    """Values of a column in the rows with these settings.

    Parameters
    ----------
    rows : list of dict
        Results.
    column : str
        What to take; rows without it are left out.
    **settings
        What the rows have to equal.

    Examples
    --------
    >>> rows = [{"n": 50, "error": 0.1}, {"n": 800, "error": 0.05}]
    >>> select(rows, "error", n=50)
    [0.1]
    """
    return [
        float(row[column])
        for row in rows
        if column in row and all(row.get(name) == wanted for name, wanted in settings.items())
    ]


def mean(values: Sequence[float]) -> float:
    """Mean; not a number for no values.

    Examples
    --------
    >>> mean([1.0, 2.0])
    1.5
    """
    return float(np.mean(values)) if len(values) else float("nan")


def standard_error(values: Sequence[float]) -> float:
    """Standard error of the mean; not a number for fewer than two values.

    Examples
    --------
    >>> standard_error([1.0, 3.0])
    1.0
    """
    if len(values) < 2:
        return float("nan")
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def with_error(values: Sequence[float], digits: int = 2, sign: str = "") -> str:
    """Mean and standard error as text; the mean alone for one value.

    Parameters
    ----------
    values : sequence of float
        One value per repetition.
    digits : int, default=2
        Decimals.
    sign : {"", "+"}
        Whether positive means carry their sign.

    Examples
    --------
    >>> with_error([1.0, 3.0]), with_error([1.0], sign="+")
    ('2.00 ± 1.00', '+1.00')
    """
    spread = f" ± {standard_error(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):{sign}.{digits}f}{spread}"


def table(
    title: str, rows: Sequence[Row], column: str, down: str, across: str, digits: int = 2, **settings: Any
) -> Table:
    """Means with standard errors: one line for each value of `down`, one column for each of `across`.

    Parameters
    ----------
    title : str
        Heading of the table.
    rows : list of dict
        Results.
    column : str
        What is averaged.
    down, across : str
        Settings that name lines and columns, in the order they come.
    digits : int
        Decimals.
    **settings
        What the rows have to equal.

    Examples
    --------
    >>> rows = [{"p": "l1", "noise": 0, "error": e} for e in (1.0, 3.0)]
    >>> table("errors", rows, "error", "p", "noise").lines
    [['l1', '2.00 ± 1.00']]
    """
    values: dict[tuple[Any, Any], list[float]] = defaultdict(list)
    for row in rows:
        if column in row and all(row.get(name) == wanted for name, wanted in settings.items()):
            values[row[down], row[across]].append(float(row[column]))
    lines, columns = (list(dict.fromkeys(pair[at] for pair in values)) for at in (0, 1))
    cells = [[str(one), *(_cell(values.get((one, other), []), digits) for other in columns)] for one in lines]
    return Table(title, [down, *map(str, columns)], cells)


def _cell(values: list[float], digits: int) -> str:
    return with_error(values, digits) if values else ""


def standings(
    rows: Sequence[Row],
    column: str,
    *,
    names: Mapping[str, str] | None = None,
    problem: str = "data",
    data: str = "data",
    higher: bool = True,
) -> list[Standing]:
    """Means of a column by problem and method, for `Summary.standings`.

    Rounded to four decimals, so that equal means are equal.

    Parameters
    ----------
    rows : list of dict
        Results, with a setting ``method``.
    column : str
        The score.
    names : mapping, optional
        From the experiment's names of methods to those all experiments share (`METHODS`); methods that
        are not in it are left out. By default those that have such a name already.
    problem, data : str, default="data"
        The settings that name the problem and the data set it is made of.
    higher : bool, default=True
        Whether higher is better.

    Examples
    --------
    >>> rows = [{"data": "sonar", "method": "MKL", "accuracy": a} for a in (84.0, 86.0)]
    >>> standings(rows, "accuracy", names={"MKL": "l1-MKL"})
    [Standing(data='sonar', problem='sonar', method='l1-MKL', score=85.0, higher=True)]
    """
    named = names or {method: method for method in METHODS}
    values: dict[tuple[Any, Any, Any], list[float]] = defaultdict(list)
    for row in rows:
        if row.get("method") in named and column in row:
            values[row[data], row[problem], row["method"]].append(float(row[column]))
    return [
        Standing(str(which), str(where), named[method], round(mean(found), 4), higher)
        for (which, where, method), found in values.items()
    ]
