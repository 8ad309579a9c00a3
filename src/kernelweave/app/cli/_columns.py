"""Columns of a table: those a model may use as they are, the target, and one message about the others."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..._censored import EVENT_NAME, EVENTS, TIME_NAME, survival_array
from ..._words import counted, quoted, row_list
from ...kernels.columns import matching
from ...kernels.faults import MOSTLY, slip_in
from ._console import CliError, note
from ._options import Reading
from ._read import Sheet, as_number, kind_of
from ._text import no_column

#: what an identifier is usually called
ID_NAME = re.compile(
    r"(^|[_\s.-])(id|ids|uuid|guid|key|index|rownames?)$|^(unnamed.*|row|rownames?|sample|)$", re.I
)

#: DNA, RNA or a protein: letters of their alphabets, more of them than names of categories have
SEQUENCE = re.compile(r"[ACGTUN]{6,}|[ACDEFGHIKLMNPQRSTVWXY]{20,}", re.I)

#: values that differ from which a text column names its rows
DISTINCT = 0.95


#: words per cell from which a text column whose cells all differ is no name of its rows
WORDS = 3

#: columns called by numbers, as by wavelengths, that make a curve, and others beside them that are few
CURVE, FEW_OTHERS = 20, 20


#: what is wrong with a column, what to do about it, and the option that does it
Fault = tuple[str, str, str]


def check_columns(
    path: Path, frame: pd.DataFrame, categorical: Sequence[str], keep: Sequence[str], imputed: bool
) -> None:
    """One error about all columns that hold neither numbers nor declared categories."""
    found = {name: fault_of(name, frame[name].to_numpy(), categorical, keep, imputed) for name in frame}
    faults = {name: fault for name, fault in found.items() if fault is not None}
    lines = [f"column {name!r} {reason}: {remedy}" for name, (reason, remedy, _) in faults.items()]
    if len(lines) == 1:
        raise CliError(f"{path}: {lines[0]}.")
    if lines:
        more = [f"... and {len(lines) - 20} more"] if len(lines) > 20 else []
        options = list(dict.fromkeys(option for _, _, option in faults.values()))
        names = [option for option in options if option.startswith("--id ")]  # one column is named by --id
        options = [option.replace("--id", "--drop") if option in names[1:] else option for option in options]
        raise CliError(
            f"{path}: {len(lines)} columns cannot be used as they are.\n  "
            + "\n  ".join([*lines[:20], *more])
            + "\nAll at once, if that suits the data: "
            + " ".join(options)
        )


def without_constants(frame: pd.DataFrame, sequences: Sequence[str], where: str) -> pd.DataFrame:
    """The columns that vary; one message names the others, of which nothing can be learned."""
    constant = [name for name in frame if name not in sequences and frame[name].nunique(dropna=False) == 1]
    if len(constant) == len(frame.columns):
        raise CliError(f"{where}: {quoted(constant, 5)} {has_one(constant)}: nothing is left to learn from.")
    if constant:
        note(f"{where}: {quoted(constant, 5)} {has_one(constant)}, and nothing is learned from that.")
    return frame.drop(columns=constant)


def has_one(columns: Sequence[str]) -> str:
    """That columns are constant, in words."""
    return f"{'have' if len(columns) > 1 else 'has'} one value in every row"


def note_beside_curve(names: Sequence[str], path: Path) -> None:
    """Say so where a few columns with names stand beside a curve: they may be other targets."""
    others = [name for name in names if as_number(str(name)) is None]
    if len(names) - len(others) >= CURVE and 0 < len(others) <= FEW_OTHERS:
        note(
            f"{path.name}: {quoted(others, 5)} are learned from too, beside {len(names) - len(others)} "
            f"columns called by numbers; --drop {shlex.quote(','.join(map(str, others)))} leaves them out."
        )


def check_decimals(path: Path, columns: dict[str, np.ndarray], decimal: str) -> None:
    """One error about numbers with another decimal mark; what else is wrong shows once they are read so."""
    found = {name: cell for name, values in columns.items() if (cell := other_mark(values, decimal))}
    if found:
        hold = "columns {} hold" if len(found) > 1 else "column {} holds"
        mark, remedy = "comma", "read them with --decimal ,"
        if decimal != ".":
            mark, remedy = "point", f"--decimal {decimal} is for all files, so write them with one mark."
        raise CliError(
            f"{path}: {hold.format(quoted(found))} numbers with a decimal {mark}, such as "
            f"{next(iter(found.values()))!r}: {remedy}"
        )


def other_mark(values: np.ndarray, decimal: str) -> str | None:
    """A cell with the other decimal mark in a column of text that holds nothing but numbers."""
    if kind_of(values) != "text":
        return None
    texts = [str(value) for value in values if value is not None]
    if any(as_number(text, ",") is None and as_number(text) is None for text in texts):
        return None
    return next((text for text in texts if as_number(text, decimal) is None), None)


def fault_of(
    name: str, values: np.ndarray, categorical: Sequence[str], keep: Sequence[str], imputed: bool
) -> Fault | None:
    """What is wrong with a column, if anything."""
    drop, missing, kind = f"--drop {shlex.quote(name)}", pd.isna(values), kind_of(values)
    if missing.all():
        return "is empty", f"leave it out with {drop}", drop
    if kind == "date":
        return date_fault(values[~missing][0], drop)
    if kind == "text" and name not in categorical:
        return text_fault(name, values, drop)
    if kind == "number" and name not in categorical:
        if np.isinf(values).any():
            where = row_list(np.isinf(values))
            return f"has infinite values ({where})", f"correct them, or leave it out with {drop}", drop
        if name not in keep and is_identifier(name, values[~missing]):
            return identifier_fault(name, drop, f", or use its numbers with --keep {shlex.quote(name)}")
    if imputed or not missing.any():
        return None
    reason = f"has no value in {int(missing.sum())} of {len(missing)} rows ({row_list(missing)})"
    remedy = "fill gaps with --impute median, leave those rows out with --drop-rows, or the column with "
    return reason, remedy + drop, "--impute median"


def text_fault(name: str, values: np.ndarray, drop: str) -> Fault:
    """Text: numbers with a slip, dates, names of the rows, or categories."""
    texts = [value for value in values if value is not None]
    bad = np.array([value is not None and as_number(value) is None for value in values])
    slip = str(values[int(np.argmax(bad))])
    reason = slip_in(values, bad)
    if reason is not None:
        return reason, f"correct the cells, or leave it out with {drop}", drop
    if all(is_date(value) for value in texts[:50]):
        return date_fault(texts[0], drop)
    if all(SEQUENCE.fullmatch(value) for value in texts):
        given = f"--sequence {shlex.quote(name)}"
        reason = f"holds sequences, such as {slip[:12]!r}"
        return reason, f"compare them by kernels of strings with {given}, or leave it out with {drop}", given
    if len(set(texts)) >= DISTINCT * len(texts) and len(texts) > 4:
        if np.median([len(text.split()) for text in texts]) < WORDS:
            return identifier_fault(name, drop)
        given = f"--sequence {shlex.quote(name)}"
        reason, remedy = f"holds free text, such as {slip[:20]!r}", f"compare it by its letters with {given}"
        return reason, f"{remedy}, which counts common runs of three, or leave it out with {drop}", given
    category = f"--categorical {shlex.quote(name)}"
    gaps, own = len(values) - len(texts), ""
    reason = f"holds text, such as {slip!r} ({counted(len(set(texts)), 'different value')}"
    if gaps:
        reason, own = f"{reason}, {gaps} missing", ", where missing ones are a category of their own"
    return f"{reason})", f"encode it with {category}{own}, or leave it out with {drop}", category


def date_fault(example: object, drop: str) -> Fault:
    remedy = f"turn dates into numbers first (days since a start, month), or leave it out with {drop}"
    return f"holds dates, such as {str(example)[:19]!r}", remedy, drop


def identifier_fault(name: str, drop: str, otherwise: str = "") -> Fault:
    ident = f"--id {shlex.quote(name)}"
    remedy = f"say so with {ident} (it then names the predictions), or leave it out with {drop}{otherwise}"
    return "looks like an identifier", remedy, ident


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


def apart(patterns: Sequence[str], names: Sequence[str]) -> list[str]:
    """Names and patterns one by one, where several are given with commas between them.

    Examples
    --------
    >>> apart(["oil,starch", "a,b"], ["oil", "starch", "a,b"])
    ['oil', 'starch', 'a,b']
    """
    whole = [[p] if p in names else [part.strip() for part in p.split(",")] for p in patterns]
    return [part for parts in whole for part in parts]


def match(patterns: list[str], names: list[str], option: str, path: Path) -> list[str]:
    """Columns that names or globs stand for, in the order of the table; a pattern without any is an error."""
    chosen: set[str] = set()
    for pattern in apart(patterns, names):
        hits = matching(pattern, names)
        if not hits:
            has = f"it has {quoted(names)}"
            raise CliError(f"{option}: no column of {path.name} is called or matches {pattern!r}; {has}.")
        chosen.update(hits)
    return [name for name in names if name in chosen]


# -- rows that belong together ------------------------------------------------------------------------


#: what columns are called whose rows of one value belong together
GROUP_NAME = re.compile(
    r"(^|[^a-z])(patient|subject|donor|speaker|individual|participant|person|animal|mouse)s?([^a-z]|id|$)",
    re.I,
)


def group_column(frame: Any, reading: Reading, path: Path) -> np.ndarray | None:
    """The group of every row, as --group says; None without it."""
    if reading.group is None:
        return None
    values = target_column(frame, reading.group, path, "--group")
    check_groups(values, reading.group, path)
    return values.astype(str)


def check_groups(values: np.ndarray, name: str, path: Path) -> None:
    """Refuse rows without a group."""
    gaps = pd.isna(values)
    if gaps.any():
        raise CliError(f"{path}: the group {name!r} is missing in {row_list(gaps)} (--group): fill it in.")


def warn_of_repeats(reading: Reading, ids: np.ndarray, frame: pd.DataFrame, path: Path) -> None:
    """Say so where rows of one sample or patient may come to lie on both sides of a split."""
    if reading.group is not None:
        return
    named = {} if reading.ident is None else {reading.ident: ids}
    named |= {name: frame[name].to_numpy() for name in frame if GROUP_NAME.search(str(name))}
    for name, values in named.items():
        known = values[~pd.isna(values)]
        distinct = len(set(known.tolist()))
        if name != reading.target and 1 < distinct < len(known):
            note(
                f"Warning: column {name!r} of {path.name} has {distinct} values in {len(known)} rows. "
                "Rows that belong together are on both sides of the split, and scores are too good: --group "
                f"{shlex.quote(str(name))} keeps them together."
            )


# -- the target: classes or numbers -------------------------------------------------------------------


#: whole numbers of so few different values are classes
FEW_VALUES = 10

#: fewest rows of a fit
FEWEST_ROWS = 6


@dataclass(frozen=True)
class Target:
    """The targets, what they are, and how that was decided."""

    y: np.ndarray
    task: str
    why: str

    @property
    def classes(self) -> list[str]:
        return [str(name) for name in np.unique(self.y)] if self.task == "classification" else []


#: what censored times are written like
CENSORED = re.compile(r"\d+(\.\d+)?\+?")

SURVIVAL = "name the column of times and the one that says whether the event was seen, --time and --event"

#: what stands between several labels in one cell
SEVERAL = re.compile(r"[^;|]+([;|][^;|]+)+")


def target_column(columns: Any, name: str, path: Path, option: str = "--target") -> np.ndarray:
    """The column of the targets."""
    if name in columns:
        return np.asarray(columns[name])
    several = [part.strip() for part in name.split(",")]
    if len(several) > 1 and all(part in columns for part in several):
        if len(several) == 2 and any(EVENT_NAME.search(part) for part in several):
            raise CliError(f"{path}: {option} {name}: for a time and its event {SURVIVAL}.")
        raise CliError(
            f"{path}: {option} takes one column, and {name!r} are {len(several)}; run the command once per "
            "column, or fit all of them in Python, where y may have several columns."
        )
    raise no_column(columns, name, path, option)


def target_columns(
    columns: Any, reading: Reading, path: Path, option: str = "--target"
) -> dict[str, np.ndarray]:
    """The columns to predict, by name: one, or a time and its event."""
    if len(reading.targets) == 1:
        return {reading.target: target_column(columns, reading.target, path, option)}
    return {name: target_column(columns, name, path, own) for name, own in reading.targets.items()}


def unknown_in(values: dict[str, np.ndarray]) -> np.ndarray:
    """Rows in which one of the columns to predict has no value."""
    result: np.ndarray = np.any([pd.isna(column) for column in values.values()], axis=0)
    return result


def target_of(values: dict[str, np.ndarray], reading: Reading, path: Path) -> Target:
    """What is to be predicted: classes, numbers, or censored times."""
    if len(values) == 1:
        return infer_target(values[reading.target], reading.target, path, reading.task)
    for name, column in values.items():
        check_target(column, name, path)
    return survival_target(values, path)


def survival_target(values: dict[str, np.ndarray], path: Path, least: int = 2) -> Target:
    """Times and events, in this order, as targets of survival; fewer events say nothing."""
    (name, time), (flag, event) = values.items()
    if kind_of(event) == "text" or not np.isin(event, (0, 1)).all():
        found = quoted(sorted(set(labels(event).tolist())), 4)
        raise CliError(f"{path}: column {flag!r} (--event) holds {found}: it takes {EVENTS}.")
    if kind_of(time) == "text":
        bad = np.array([as_number(value) is None for value in time])
        slip = f"such as {time[int(np.argmax(bad))]!r} ({row_list(bad)})"
        raise CliError(f"{path}: column {name!r} (--time) holds text, {slip}: it takes numbers.")
    if (time < 0).any():
        raise CliError(
            f"{path}: the time {name!r} is negative in {row_list(time < 0)} (--time): it counts from when "
            "the observation of a sample began."
        )
    count = int(event.sum())
    if count < least:
        few = "one event" if count else "no event"
        raise CliError(
            f"{path}: column {flag!r} (--event) has {few} in {len(event)} rows: there is nothing to learn. "
            f"It takes {EVENTS}."
        )
    return Target(survival_array((event, time)), "survival", f"{count} events in {len(event)} rows")


def check_target(values: np.ndarray, name: str, path: Path) -> None:
    """Refuse targets that are missing, infinite or dates."""
    missing = pd.isna(values)
    if missing.all():
        raise CliError(f"{path}: the target column {name!r} is empty.")
    if missing.any():
        raise CliError(
            f"{path}: the target {name!r} is missing in {int(missing.sum())} of {len(missing)} rows "
            f"({row_list(missing)}); fill it in, or leave those rows out with --drop-rows."
        )
    if kind_of(values) == "date":
        raise CliError(f"{path}: the target {name!r} holds dates; turn them into numbers first.")
    if kind_of(values) == "number" and np.isinf(values).any():
        raise CliError(
            f"{path}: the target {name!r} is infinite in {row_list(np.isinf(values))}; correct it."
        )


def infer_target(values: np.ndarray, name: str, path: Path, task: str = "auto") -> Target:
    """The targets as classes or numbers."""
    check_target(values, name, path)
    refuse_unsupported(values, name, path)
    kind, why = decided(values, name)
    if task != "auto":
        kind, why = task, f"--task {task}"
    if kind == "classification":
        y = labels(values)
        check_classes(y, name, path, why)
        return Target(y, kind, why)
    if kind_of(values) == "text":
        raise CliError(
            f"{path}: the target {name!r} holds text, such as {values[0]!r}, so it cannot be regressed; use "
            "--task classification."
        )
    if len(np.unique(values)) == 1:
        raise CliError(
            f"{path}: the target {name!r} is {values[0]:g} in every row: there is nothing to learn."
        )
    return Target(values, kind, why)


def refuse_unsupported(values: np.ndarray, name: str, path: Path) -> None:
    """Name the kinds of targets that a fit of the command line does not learn."""
    if kind_of(values) != "text":
        return
    texts = [str(value).strip() for value in values]
    if all(CENSORED.fullmatch(text) for text in texts) and any(text.endswith("+") for text in texts):
        odd = next(text for text in texts if text.endswith("+"))
        raise CliError(
            f"{path}: the target {name!r} holds censored times, such as {odd!r}: make a column of numbers "
            f"and one of events of it, and {SURVIVAL}."
        )
    lists = [text for text in texts if SEVERAL.fullmatch(text)]
    parts = Counter(part for text in set(texts) for part in set(re.split("[;|]", text)))
    if len(lists) >= MOSTLY * len(texts) and max(parts.values()) > 1:  # labels come in several combinations
        raise CliError(
            f"{path}: the target {name!r} holds several labels per row, such as {lists[0]!r}, which the "
            "command line does not fit: make a column of each label and fit one at a time, or use Python, "
            "where y may have a column for each."
        )


def warn_of_survival(target: Target, name: str, frame: pd.DataFrame, path: Path) -> None:
    """Say so where times to an event are regressed that was not seen in every sample."""
    if target.task != "regression" or not TIME_NAME.search(name):
        return
    events = [column for column in frame if EVENT_NAME.search(str(column)) and frame[column].nunique() == 2]
    if events:
        note(
            f"Warning: {name!r} of {path.name}, beside {quoted(events)}, looks like a time of survival: a "
            f"lower bound where the event was not seen, which a regression does not know; {SURVIVAL}."
        )


def decided(values: np.ndarray, name: str) -> tuple[str, str]:
    """The task that the values suggest, and why."""
    distinct = len(set(values.tolist()))
    if kind_of(values) == "text":
        return "classification", f"{name!r} holds text, {distinct} classes"
    whole = bool((values == np.round(values)).all())
    if distinct == 2 or (whole and distinct <= FEW_VALUES):
        return "classification", f"{name!r} has {distinct} different values"
    return "regression", f"{name!r} holds numbers, {distinct} different ones"


def labels(values: np.ndarray) -> np.ndarray:
    """Class labels: whole numbers as integers, anything else as text."""
    if kind_of(values) != "number":
        return values.astype(str)
    return values.astype(np.int64) if (values == np.round(values)).all() else values


def check_classes(y: np.ndarray, name: str, path: Path, why: str) -> None:
    """Refuse one class, classes of one sample, and classes as many as samples."""
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) == 1:
        raise CliError(
            f"{path}: the target {name!r} has one class, {classes.tolist()[0]!r}, in every row; a classifier "
            "needs at least two."
        )
    if counts.max() == 1 or len(classes) > max(len(y) // 2, 2):
        raise CliError(
            f"{path}: the target {name!r} has {len(classes)} classes in {len(y)} rows ({why}); if it is a "
            "number, use --task regression; if it names the rows, choose another --target."
        )
    if counts.min() < 2:
        lonely = [str(cls) for cls, count in zip(classes, counts, strict=True) if count < 2]
        raise CliError(
            f"{path}: class {quoted(lonely, 5)} of the target {name!r} has one row; training and test part "
            "both need some: leave it out, or join it with another class."
        )


def check_rows(table: Sheet, needed: int = FEWEST_ROWS) -> None:
    """Refuse tables with too few rows to learn from."""
    n = table.n_rows
    if n < needed:
        raise CliError(f"{table.path} has {counted(n, 'row')} of data; a fit needs at least {needed}.")


@dataclass(frozen=True)
class Parts:
    """A training part and the rest as a model sees them, and how to do the same with new data."""

    X: Any
    X_rest: Any
    encoder: Any
    kernels: Any
    why: str
    groups: dict[str, list[int]] | None = None
    names: list[str] = field(default_factory=list)
    ident: str = "row"
