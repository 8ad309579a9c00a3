"""Which columns a model may use as they are, and one message about those it may not."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pandas as pd

from ._errors import CliError
from ._paths import listed
from ._read import as_number, kind_of, row_list

#: what an identifier is usually called
ID_NAME = re.compile(
    r"(^|[_\s.-])(id|ids|uuid|guid|key|index|rownames?)$|^(unnamed.*|row|rownames?|sample|)$", re.I
)

#: share of cells that are numbers from which a text column is meant to hold numbers
MOSTLY = 0.5

#: values that differ from which a text column names its rows
DISTINCT = 0.95


@dataclass(frozen=True)
class Problem:
    """A column that cannot be used as it is: why, what to do, and the option that does it."""

    column: str
    reason: str
    remedy: str
    option: str

    def __str__(self) -> str:
        return f"column {self.column!r} {self.reason}: {self.remedy}"


def check_columns(
    path: Path, frame: pd.DataFrame, categorical: Sequence[str], keep: Sequence[str], imputed: bool
) -> None:
    """One error about all columns that hold neither numbers nor declared categories."""
    found = [problem_of(name, frame[name].to_numpy(), categorical, keep, imputed) for name in frame]
    problems = [problem for problem in found if problem is not None]
    if not problems:
        return
    options = " ".join(dict.fromkeys(problem.option for problem in problems if problem.option))
    if len(problems) == 1:
        raise CliError(f"{path}: {problems[0]}.")
    lines = "\n".join(f"  {problem}" for problem in problems[:20])
    more = f"\n  ... and {len(problems) - 20} more" if len(problems) > 20 else ""
    raise CliError(
        f"{path}: {len(problems)} columns cannot be used as they are.\n{lines}{more}\n"
        f"All at once, if that suits the data: {options}"
    )


def check_decimals(path: Path, columns: dict[str, np.ndarray]) -> None:
    """One error about numbers with a decimal comma; what else is wrong shows once they are read so."""
    found = {name: cell for name, values in columns.items() if (cell := comma_cell(values)) is not None}
    if found:
        hold = "columns {} hold" if len(found) > 1 else "column {} holds"
        raise CliError(
            f"{path}: {hold.format(listed(list(found)))} numbers with a decimal comma, such as "
            f"{next(iter(found.values()))!r}: read them with --decimal ,"
        )


def comma_cell(values: np.ndarray) -> str | None:
    """A cell with a decimal comma in a column of text that holds nothing but numbers, commas or not."""
    if kind_of(values) != "text":
        return None
    texts = [str(value) for value in values if value is not None]
    if any(as_number(text, ",") is None and as_number(text) is None for text in texts):
        return None
    return next((text for text in texts if as_number(text) is None), None)


def problem_of(
    name: str, values: np.ndarray, categorical: Sequence[str], keep: Sequence[str], imputed: bool
) -> Problem | None:
    """What is wrong with a column, if anything."""
    drop, missing = f"--drop {shlex.quote(name)}", pd.isna(values)
    if missing.all():
        return Problem(name, "is empty", f"leave it out with {drop}", drop)
    if kind_of(values) == "date":
        return date_problem(name, values[~missing][0])
    if name in categorical:
        return None if imputed else missing_problem(name, missing)
    if kind_of(values) == "text":
        return text_problem(name, values)
    if np.isinf(values).any():
        where = row_list(np.isinf(values))
        return Problem(
            name, f"has infinite values ({where})", f"mend them, or leave it out with {drop}", drop
        )
    if name not in keep and is_identifier(name, values[~missing]):
        return identifier_problem(name)
    return None if imputed else missing_problem(name, missing)


def missing_problem(name: str, missing: np.ndarray) -> Problem | None:
    if not missing.any():
        return None
    reason = f"has no value in {int(missing.sum())} of {len(missing)} rows ({row_list(missing)})"
    remedy = "fill gaps with --impute median, leave those rows out with --drop-rows, or the column with "
    return Problem(name, reason, f"{remedy}--drop {shlex.quote(name)}", "--impute median")


def text_problem(name: str, values: np.ndarray) -> Problem:
    """Text: numbers with a slip, dates, names of the rows, or categories."""
    drop, category = f"--drop {shlex.quote(name)}", f"--categorical {shlex.quote(name)}"
    texts = [value for value in values if value is not None]
    bad = np.array([value is not None and as_number(value) is None for value in values])
    slip = str(values[int(np.argmax(bad))])
    if bad.mean() <= 1 - MOSTLY and bad.any():
        reason = f"holds numbers, but text in {int(bad.sum())} cells, such as {slip!r} ({row_list(bad)})"
        return Problem(name, reason, f"mend the cells, or leave it out with {drop}", drop)
    if all(is_date(value) for value in texts[:50]):
        return date_problem(name, texts[0])
    if len(set(texts)) >= DISTINCT * len(texts) and len(texts) > 4:
        return identifier_problem(name, numbers=False)
    reason = f"holds text, such as {slip!r} ({len(set(texts))} different values)"
    return Problem(name, reason, f"encode it with {category}, or leave it out with {drop}", category)


def date_problem(name: str, example: object) -> Problem:
    drop = f"--drop {shlex.quote(name)}"
    remedy = f"turn dates into numbers first (days since a start, month), or leave it out with {drop}"
    return Problem(name, f"holds dates, such as {str(example)[:19]!r}", remedy, drop)


def identifier_problem(name: str, numbers: bool = True) -> Problem:
    quoted = shlex.quote(name)
    remedy = (
        f"say so with --id {quoted} (it then names the predictions), or leave it out with --drop {quoted}"
    )
    remedy += f", or use its numbers with --keep {quoted}" if numbers else ""
    return Problem(name, "looks like an identifier", remedy, f"--id {quoted}")


def is_identifier(name: str, values: np.ndarray) -> bool:
    """Whether numbers name their rows: all different and whole, and so called or counted up one by one."""
    whole = len(values) > 4 and bool((values == np.round(values)).all())
    if not whole or len(np.unique(values)) < len(values):
        return False
    return bool(ID_NAME.search(name)) or bool((np.diff(values) == 1).all())


def is_date(text: str) -> bool:
    """Whether a cell is a calendar date, such as 2024-03-01 or 01/03/2024."""
    for form in ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y"):
        try:
            return bool(datetime.strptime(text, form))
        except ValueError:
            continue
    try:
        return len(text) >= 8 and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def match(patterns: list[str], names: list[str], option: str, path: Path) -> list[str]:
    """Columns that names or globs stand for, in the order of the table; a pattern without any is an error."""
    chosen: set[str] = set()
    for pattern in patterns:
        hits = {name for name in names if name == pattern} or {
            name for name in names if fnmatchcase(name, pattern)
        }
        if not hits:
            raise CliError(
                f"{option}: no column of {path.name} is called or matches {pattern!r}; "
                f"it has {listed(names)}."
            )
        chosen |= hits
    return [name for name in names if name in chosen]
