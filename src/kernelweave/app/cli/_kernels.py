"""Kernels from options: a default dictionary, groups of columns, bands, several tables, or a TOML file."""

from __future__ import annotations

import inspect
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from ..._words import counted, listed, quoted
from ...kernels import RBF, Linear, auto, bands, per_group
from ...kernels.base import Kernel
from ...kernels.convert import KERNELS
from ...kernels.families import AUTO_MAX_COLUMNS, Family, placed
from ._columns import match
from ._console import CliError, check_spec, refusing
from ._options import KernelChoice
from ._read import Sheet


def describable(accepts: str) -> dict[str, type[Kernel]]:
    """Kernels of numbers or of strings that a file can describe: no functions, no objects."""
    return {
        name: cls
        for name, cls in KERNELS.items()
        if cls.accepts == accepts  # type: ignore[attr-defined]
        and all(p.default is not p.empty for p in inspect.signature(cls).parameters.values())
    }


NUMERIC, STRINGS = describable("numeric"), describable("string")

#: a prefix makes a group from so many columns on, and so many groups make a default dictionary
PREFIX_COLUMNS, MOST_GROUPS = 3, 30

#: the kind that stands for a default dictionary of every group, band or view
DEFAULT = "auto"

#: columns that may have kernels of their own, in all groups together
MOST_ALONE = 60

#: settings of an entry of the file that are not parameters of the kernel
OWN = ("type", "name", "columns", "per_column", "view")


#: named kernels on the columns of the encoded matrix, how it came to that, and the groups behind them
Chosen = tuple[dict[str, Kernel], str, dict[str, list[int]] | None]

#: columns of a file, and their places in the matrix a model sees
Places = dict[str, list[int]]


def choose_kernels(
    table: Sheet, features: dict[str, list[str]], choice: KernelChoice, sequences: Sequence[str] = ()
) -> Chosen:
    """The kernels that the options ask for, or a default dictionary; `features` are those of each column.

    Columns of `sequences`, the last ones, get kernels of strings.
    """
    if sum(option is not None for option in (choice.spec, choice.groups, choice.bands)) > 1:
        raise CliError("--kernels, --groups and --bands exclude one another: give one of them.")
    places = places_of(features)
    if choice.spec is not None:
        return from_file(choice.spec, table, places, sequences)
    if sequences:
        return with_sequences(table, features, choice, sequences, places)
    names, kinds = [name for held in features.values() for name in held], number_kinds(choice.kinds)
    layout = pd.DataFrame(0.0, index=[0], columns=names)  # all that a family of kernels needs of the data
    if choice.bands is not None:
        return from_bands(choice.bands, layout, kinds)
    given = parse_groups(choice.groups, table) if choice.groups is not None else None
    views = table.groups if len(table.groups) > 1 else {}
    named = given or views or prefix_groups(table)
    if named:
        source = "--groups" if given else "the views of the file" if views else "prefixes of the names"
        return from_groups(named, places, layout, kinds, source)
    if kinds and kinds != [DEFAULT]:
        return from_groups({"all": table.names}, places, layout, kinds, "--kernel")
    named_kernels = dict(auto().expand(layout))
    alone = ", and one RBF per column" if len(named_kernels) > 4 else ""
    return named_kernels, f"the default dictionary: linear and three RBF widths on all columns{alone}", None


def places_of(features: dict[str, list[str]]) -> Places:
    """Where the features of each column stand in the matrix a model sees.

    Examples
    --------
    >>> places_of({"age": ["age"], "sex": ["sex=f", "sex=m"]})
    {'age': [0], 'sex': [1, 2]}
    """
    numbers = iter(range(sum(map(len, features.values()))))
    return {name: [next(numbers) for _ in held] for name, held in features.items()}


def with_sequences(
    table: Sheet,
    features: dict[str, list[str]],
    choice: KernelChoice,
    sequences: Sequence[str],
    where: Places,
) -> Chosen:
    """Kernels of the columns of numbers, if there are any, and of every column of sequences."""
    found, why, places = {}, "", None
    numbers = {name: held for name, held in features.items() if name not in sequences}
    if numbers:
        rest = replace(table, frame=table.frame[list(numbers)])
        kinds = [kind for kind in choice.kinds if kind.lower() not in STRINGS]
        some, why, places = choose_kernels(rest, numbers, replace(choice, kinds=kinds))
        every = [place for name in numbers for place in where[name]]
        found = {k: v if v.columns is not None else v.with_columns(every) for k, v in some.items()}
        why += "; "
    found |= sequence_kernels(sequences, where, choice.kinds)
    return found, f"{why}kernels of strings on {quoted(sequences)}", places


def sequence_kernels(sequences: Sequence[str], where: Places, kinds: Sequence[str]) -> dict[str, Kernel]:
    """The kernels of strings among those named, Spectrum by default, on every column of sequences."""
    chosen = [STRINGS[kind.lower()] for kind in kinds if kind.lower() in STRINGS] or [STRINGS["spectrum"]]
    return {f"{name}: {cls().label}": cls(columns=where[name]) for name in sequences for cls in chosen}


def number_kinds(kinds: Sequence[str]) -> list[str]:
    """Names of kernels, all of them of numbers."""
    odd = [kind for kind in kinds if kind.lower() in STRINGS]
    if odd:
        raise CliError(f"--kernel {odd[0]} is for sequences: name their columns with --sequence COLUMN.")
    return list(kinds)


def kernel_list(kinds: Sequence[str], sizes: Iterable[int]) -> list[Kernel | Family]:
    """Kernels by name, RBF when none is named; `sizes` are the numbers of columns of the groups they are for.

    The default dictionary has kernels of single columns where those of all groups are not too many.
    """
    unknown = [kind for kind in kinds if kind.lower() not in (*NUMERIC, DEFAULT)]
    if unknown:
        known = ", ".join(sorted({*NUMERIC, *STRINGS, DEFAULT}))
        raise CliError(f"--kernel {unknown[0]}: no such kernel; the names are {known}.")
    alone = sum(size for size in sizes if size <= AUTO_MAX_COLUMNS) <= MOST_ALONE
    dictionary = auto() if alone else auto(max_columns=0)
    return [dictionary if kind.lower() == DEFAULT else NUMERIC[kind.lower()]() for kind in kinds] or [RBF()]


def from_groups(
    named: dict[str, list[str]], where: Places, layout: pd.DataFrame, kinds: list[str], source: str
) -> Chosen:
    """The same kernels on every group of columns."""
    places = {group: [p for name in names for p in where[name]] for group, names in named.items()}
    sizes = map(len, places.values())
    kernels = kernel_list(kinds, sizes) if kinds or source == "--groups" else [Linear(), RBF()]
    expanded = dict(per_group(places, kernels).expand(layout))
    parts = listed((f"{group} ({len(columns)})" for group, columns in places.items()), 8)
    grouped = {name for names in named.values() for name in names}
    unused = [name for name in where if name not in grouped]
    left = f"; columns in no group are not used: {quoted(unused)}" if unused else ""
    return expanded, f"{len(places)} groups of columns from {source}: {parts}{left}", places


def from_bands(n_bands: int, layout: pd.DataFrame, kinds: list[str]) -> Chosen:
    """The same kernels on contiguous bands of the columns."""
    sizes = [len(layout.columns) // n_bands] * n_bands
    with refusing("--bands"):
        expanded = dict(bands(n_bands, kernel_list(kinds, sizes)).expand(layout))
    places = {name: [int(p) for p in kernel.columns] for name, kernel in expanded.items()}  # type: ignore[union-attr]
    single = len(kinds) < 2 and kinds != [DEFAULT]
    return expanded, f"{n_bands} bands of neighbouring columns", places if single else None


def parse_groups(text: str, table: Sheet) -> dict[str, list[str]]:
    """Groups such as ``rna=rna_*,protein=prot_*``; several patterns of a group are joined by +."""
    groups: dict[str, list[str]] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, found, patterns = part.partition("=")
        if not found or not name.strip() or not patterns.strip():
            raise CliError(
                f"--groups: {part!r} is not NAME=PATTERN; write for example --groups "
                "'rna=rna_*,protein=prot_*+ptm_*'."
            )
        if name.strip() in groups:
            raise CliError(
                f"--groups: {name.strip()!r} is there twice; join patterns with +, as in a=x_*+y_*."
            )
        wanted = [pattern.strip() for pattern in patterns.split("+")]
        groups[name.strip()] = match(wanted, table.names, "--groups", table.path)
    if not groups:
        raise CliError("--groups is empty; write for example --groups 'rna=rna_*,protein=prot_*'.")
    return groups


def prefix_groups(table: Sheet) -> dict[str, list[str]]:
    """Groups by what stands before the first of _ . : / in the names, if all columns fall into a few."""
    groups: dict[str, list[str]] = {}
    for name in table.names:
        cut = min((name.find(mark) for mark in "_.:/" if name.find(mark) > 0), default=0)
        groups.setdefault(name[:cut], []).append(name)
    enough = "" not in groups and min(map(len, groups.values()), default=0) >= PREFIX_COLUMNS
    return groups if enough and 2 <= len(groups) <= MOST_GROUPS else {}


def entries_of(path: Path) -> Iterator[tuple[str, Any]]:
    """Where the ``[[kernel]]`` tables of a TOML file are, and what is in them."""
    document = load_toml(path)
    unknown = sorted(set(document) - {"kernel"})
    entries = document.get("kernel")
    if unknown or not isinstance(entries, list) or not entries:
        found = f"it has {quoted(unknown)}" if unknown else "it has none"
        raise CliError(f"{path}: expected one or more [[kernel]] tables, {found}.")
    yield from ((f"{path}, [[kernel]] number {number}", entry) for number, entry in enumerate(entries, 1))


def from_file(path: Path, table: Sheet, places: Places, sequences: Sequence[str] = ()) -> Chosen:
    """Kernels from a TOML file of ``[[kernel]]`` tables."""
    kernels: dict[str, Kernel] = {}
    for where, entry in entries_of(path):
        if "view" in entry:
            raise CliError(f"{where}: view is for several tables (--view); leave it out.")
        for name, kernel in entry_kernels(entry, where, table, places, sequences).items():
            if name in kernels:
                raise CliError(f'{where}: the name {name!r} is used already; set name = "...".')
            kernels[name] = kernel
    return kernels, f"{counted(len(kernels), 'kernel')} from {path.name}", None


def load_toml(path: Path) -> dict[str, Any]:
    """A TOML file, or one message about what is wrong with it."""
    check_spec(path)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CliError(f"{path} is not valid TOML: {error}.") from None
    except OSError as error:
        raise CliError(f"{path} cannot be read ({error.strerror}): check its permissions.") from None


def entry_kernels(
    entry: Any, where: str, table: Sheet, positions: Places, sequences: Sequence[str] = ()
) -> dict[str, Kernel]:
    """The kernel that an entry describes, or one per column; kernels of strings see one column each."""
    kernel_class = entry_class(entry, where)
    texts = kernel_class.accepts == "string"
    seen = [name for name in table.names if (name in sequences) == texts]
    if not seen:
        kind = "sequences (--sequence COLUMN)" if texts else "numbers"
        raise CliError(
            f"{where}: {kernel_class.__name__} needs columns of {kind}, and the data have no such column."
        )
    columns = entry.get("columns", "*")
    patterns = [columns] if isinstance(columns, str) else columns
    if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
        raise CliError(f"{where}: columns = {columns!r} is neither a name, a pattern nor a list of them.")
    names = match(patterns, seen, f"{where}, columns", table.path)
    options = parameters(entry, kernel_class, where)
    label = str(entry.get("name", kernel_class(**options).label if columns == "*" else ""))
    label = label or f"{kernel_class(**options).label} on {', '.join(patterns)}"
    if entry.get("per_column", False) or (texts and len(names) > 1):
        return {f"{label}: {name}": kernel_class(**options, columns=positions[name]) for name in names}
    return {label: kernel_class(**options, columns=[p for name in names for p in positions[name]])}


def entry_class(entry: Any, where: str) -> type[Kernel]:
    """The class that ``type`` names."""
    kind = entry.get("type") if isinstance(entry, Mapping) else None
    every = NUMERIC | STRINGS
    known = {cls.__name__.lower(): cls for cls in every.values()} | every
    if not isinstance(kind, str) or kind.lower() not in known:
        names = ", ".join(sorted(cls.__name__ for cls in every.values()))
        raise CliError(f"{where}: type = {kind!r} is not one of {names}.")
    return known[kind.lower()]


def parameters(entry: Mapping[str, Any], kernel_class: type[Kernel], where: str) -> dict[str, Any]:
    """Settings of an entry that go to the kernel, all of them known to it."""
    options = {key: value for key, value in entry.items() if key not in OWN}
    known = [name for name in inspect.signature(kernel_class).parameters if name != "columns"]
    unknown = [key for key in options if key not in known]
    if unknown:
        has = f"has {', '.join(known)}" if known else "has no parameters"
        raise CliError(
            f"{where}: {kernel_class.__name__} has no parameter {unknown[0]!r}; it {has}. Other settings are "
            f"{', '.join(OWN)}."
        )
    return options


# -- kernels of several tables ------------------------------------------------------------------------


#: name, kernel and the view that it is for
ViewKernel = tuple[str, Kernel, str]


def view_kernels(
    sheets: dict[str, Sheet],
    features: dict[str, dict[str, list[str]]],
    choice: KernelChoice,
    sequences: dict[str, list[str]],
) -> tuple[list[ViewKernel], str]:
    """The kernels that the options ask for on every view, or linear and RBF; and how it came to them."""
    if choice.groups is not None or choice.bands is not None:
        raise CliError("--groups and --bands divide one table; to divide views, use --kernels FILE.")
    if not any(sequences.values()):
        number_kinds(choice.kinds)
    places = {name: places_of(held) for name, held in features.items()}
    widths = {name: sum(map(len, held.values())) for name, held in places.items()}
    parts = listed((f"{name} ({width})" for name, width in widths.items()), 8)
    why = f"{len(sheets)} views: {parts}"
    if choice.spec is not None:
        return view_entries(choice.spec, sheets, places, sequences), f"{why}; kernels from {choice.spec.name}"
    found: list[ViewKernel] = []
    for view, sheet in sheets.items():
        own = own_kernels(sheet, features[view], sequences[view], choice.kinds, widths.values())
        found += [
            (view if len(own) == 1 else f"{view}: {name}", kernel, view) for name, kernel in own.items()
        ]
    return found, why


def own_kernels(
    sheet: Sheet,
    features: dict[str, list[str]],
    sequences: list[str],
    kinds: Sequence[str],
    sizes: Iterable[int],
) -> dict[str, Kernel]:
    """Kernels of one view: those named, or linear and RBF, on numbers; kernels of strings on sequences."""
    where = places_of(features)
    numbers = [place for name in sheet.names if name not in sequences for place in where[name]]
    named = [kind for kind in kinds if kind.lower() not in STRINGS]
    own = (kernel_list(named, sizes) if named else [Linear(), RBF()]) if numbers else []
    columns = None if not sequences else numbers
    layout = pd.DataFrame(0.0, index=[0], columns=[name for held in features.values() for name in held])
    found = dict(placed(own, layout, columns)) if own else {}
    return found | (sequence_kernels(sequences, where, kinds) if sequences else {})


def view_entries(
    path: Path, sheets: dict[str, Sheet], places: dict[str, Places], sequences: dict[str, list[str]]
) -> list[ViewKernel]:
    """Kernels from a TOML file; an entry without a view is for every view."""
    found: list[ViewKernel] = []
    for where, entry in entries_of(path):
        view = entry.get("view")
        if view is not None and view not in sheets:
            raise CliError(f"{where}: view = {view!r} is not one of {quoted(sheets)}.")
        for name in sheets if view is None else [view]:
            own = entry_kernels(entry, where, sheets[name], places[name], sequences[name])
            prefix = f"{name}: " if view is None or "name" not in entry else ""
            found += [(f"{prefix}{label}", kernel, name) for label, kernel in own.items()]
    repeated = [name for name, times in Counter(name for name, _, _ in found).items() if times > 1]
    if repeated:
        raise CliError(f'{path}: the name {repeated[0]!r} is used twice; set name = "...".')
    return found
