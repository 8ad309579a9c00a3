"""Several files of the same samples, joined by sample IDs: what to learn from, and what to predict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..._words import listed, quoted
from ...estimators import ViewTransformer
from ...kernels import RBF, Linear, Views
from ...kernels.columns import matching
from ._columns import (
    FEWEST_ROWS,
    Parts,
    Target,
    check_columns,
    check_decimals,
    group_column,
    infer_target,
    target_column,
    warn_of_repeats,
    warn_of_survival,
)
from ._console import CliError, note, refusing
from ._design import (
    TableDesign,
    check_finite,
    conformed,
    features_of,
    in_order,
    load_sheet,
    make_encoder,
    sequence,
    table_design,
)
from ._kernels import STRINGS, entries_of, entry_kernels, kernel_list, sequence_kernels
from ._npz import GramDesign
from ._options import KernelChoice, Reading, Source
from ._read import Sheet, as_written, check_header, kind_of

#: IDs that a message shows
SHOWN = 3


def design(source: Source, reading: Reading, choice: KernelChoice) -> TableDesign | GramDesign | ViewsDesign:
    """Files as data to learn from, or one error about what stands in the way."""
    if source.views:
        return views_design(source, reading, choice)
    assert source.data is not None
    return table_design(source.data, reading, choice)


# -- files whose rows have IDs ------------------------------------------------------------------


def with_ids(sheet: Sheet, ident: str | None) -> Sheet:
    """The table indexed by its sample IDs, which are all there and all different."""
    frame, path = sheet.frame, sheet.path
    name = id_column(sheet, ident)
    ids = as_written(frame[name])
    gaps = int(pd.isna(ids).sum())
    if gaps:
        raise CliError(f"{path}: {gaps} of {len(ids)} rows have no ID in column {name!r}: fill them in.")
    refuse_repeated(ids, f"{path}: column {name!r}")
    return replace(sheet, frame=frame.drop(columns=name).set_axis(ids, axis=0))


def id_column(sheet: Sheet, ident: str | None) -> str:
    """The column of sample IDs: that of --id, else the first one if it is text, in every row another."""
    frame, path = sheet.frame, sheet.path
    first = sheet.names[0]
    if ident is not None and (ident in frame or first != ""):
        target_column(frame, ident, path, "--id")
        return ident
    if kind_of(frame[first].to_numpy()) != "text":
        raise CliError(
            f"{path}: the first column, {first!r}, holds no text, so it is not taken for sample IDs: name "
            "their column with --id."
        )
    return first


def refuse_repeated(ids: Iterable[str], what: str) -> None:
    """Raise unless IDs differ."""
    counts = Counter(ids)
    repeated = [f"{label!r} ({times} times)" for label, times in counts.items() if times > 1]
    if repeated:
        raise CliError(
            f"{what}: {len(repeated)} of {len(counts)} sample IDs are there more than once, "
            f"{listed(repeated, SHOWN)}: keep one row for each sample, for example their mean. Repeated "
            "measurements of a patient need IDs of their own, and --group for the column of patients."
        )


def turned(sheet: Sheet, decimal: str) -> Sheet:
    """A table with features in rows, the first column naming them: samples in rows, indexed by their IDs."""
    path, first = sheet.path, sheet.names[0]
    values = sheet.frame.drop(columns=first)
    check_decimals(path, {name: values[name].to_numpy() for name in values}, decimal)
    odd = next((name for name in values if kind_of(values[name].to_numpy()) != "number"), None)
    if odd is not None:
        cells = [cell for cell in values[odd] if isinstance(cell, str)]
        raise CliError(
            f"{path} (--transpose): the column of sample {odd!r} holds {quoted(cells[:1])}, and values of "
            f"features are numbers; the names of features are in the first column, {first!r}."
        )
    names = [str(name) for name in as_written(sheet.frame[first])]
    check_header(names, path)
    ids = np.array([str(name) for name in values], dtype=object)
    return Sheet(path, pd.DataFrame(values.to_numpy().T, index=ids, columns=names))


@dataclass
class Files:
    """The files of a command, each of them read once.

    Attributes
    ----------
    views : dict of str to Sheet
        Of each view its own columns, indexed by sample IDs.
    whole : dict of Path to Sheet
        All columns of each file, indexed by sample IDs.
    taken : list of str
        Which columns hold the IDs, in words.
    """

    reading: Reading
    views: dict[str, Sheet] = field(default_factory=dict)
    whole: dict[Path, Sheet] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)

    def read(self, path: Path, transposed: bool = False) -> Sheet:
        """A file, indexed by sample IDs."""
        key = path.resolve()
        if key not in self.whole:
            sheet = load_sheet(path, self.reading)
            name = sheet.names[0] if transposed else id_column(sheet, self.reading.ident)
            where = "names of columns" if transposed else f"column {name!r}"
            self.taken.append(f"{where} of {path.name}")
            ident, decimal = self.reading.ident, self.reading.decimal
            self.whole[key] = turned(sheet, decimal) if transposed else with_ids(sheet, ident)
        return self.whole[key]

    def add(self, name: str, path: Path, transposed: bool) -> None:
        """The views of a file: the one of that name, or without a name all of them."""
        sheet = self.read(path, transposed)
        groups = {view: [c for c in held if c in sheet.frame] for view, held in sheet.groups.items()}
        if len(groups) > 1 and name and name not in groups:
            raise CliError(f"--view {name}={path}: the file holds {quoted(groups)}; name one of these.")
        if len(groups) > 1 and not name:
            found = groups
        else:
            alone = name or path.name.partition(".")[0]
            found = {alone: groups.get(alone, next(iter(groups.values()), sheet.names))}
        self.views |= {view: replace(sheet, frame=sheet.frame[held]) for view, held in found.items()}


def read_views(source: Source, reading: Reading) -> Files:
    """All views, and a word on where their sample IDs were found."""
    files = Files(reading)
    names = [name or path.name.partition(".")[0] for name, path in source.tables]
    odd = [name for name in source.transpose if name not in names]
    if odd:
        raise CliError(f"--transpose {odd[0]}: no such view; the views are {quoted(names)}.")
    for (given, path), name in zip(source.tables, names, strict=True):
        files.add(given, path, name in source.transpose)
    return files


def present(sheet: Sheet) -> Sheet:
    """The rows in which something is there; others are samples that lack the view."""
    return replace(sheet, frame=sheet.frame[sheet.frame.notna().any(axis=1)])


# -- ready to be learned from -------------------------------------------------------------------


@dataclass(frozen=True)
class ViewsDesign:
    """Views of the same samples whose columns are all usable, in the order of their labels."""

    views: Views
    sheets: dict[str, Sheet]
    target: Target
    ids: np.ndarray
    reading: Reading
    choice: KernelChoice
    sequences: dict[str, list[str]]
    group_of: np.ndarray | None = None

    def split(self, train: np.ndarray, rest: np.ndarray) -> Parts:
        """Encoded parts; means, scales and fillings are those of the training samples that have a view."""
        encoders = {
            name: make_encoder(sheet.frame, self.reading, self.sequences[name])
            for name, sheet in self.sheets.items()
        }
        encoder = ViewTransformer(encoders)
        with refusing("--view"), np.errstate(over="ignore", invalid="ignore"):
            encoder.fit(self.views[train])
        X, X_rest = (encoded_views(encoder, self.views[rows]) for rows in (train, rest))
        kernels, why = view_kernels(self.sheets, encoders, self.sequences, self.choice)
        starts = X.starts.tolist()
        places = {n: list(range(*starts[v : v + 2])) for v, n in enumerate(X.names)}
        return Parts(X, X_rest, encoder, kernels, why, places, [], self.reading.ident or "sample")


def encoded_views(encoder: ViewTransformer, views: Views) -> Views:
    """The views as a model takes them."""
    with np.errstate(over="ignore", invalid="ignore"):
        X = encoder.transform(views)
    for name, there in zip(X.names, X.observed.T, strict=True):
        with refusing(f"view {name!r}"):
            check_finite(encoder.transformers_[name], np.asarray(X[name])[there])
    return X


def views_design(source: Source, reading: Reading, choice: KernelChoice) -> ViewsDesign:
    """Tables joined by sample IDs, in the order of the labels; whoever is left out is counted aloud."""
    files = read_views(source, reading)
    labels = label_sheet(source, files)
    note("Sample IDs: " + listed(files.taken, 12) + ".")
    values = target_column(labels.frame, reading.target, labels.path)
    say_unused(files, labels)
    group, sheets = group_values(files, labels)
    sheets, sequences = usable(sheets, reading)
    known = labels.frame.index.to_numpy()[~pd.isna(values)]
    check_joined(sheets, labels, known)
    kept = kept_samples(sheets, labels.path, reading, known, sequences)
    with refusing("--view"):
        views = Views({name: sheet.frame for name, sheet in sheets.items()}, ids=kept)
    say_gaps(views, reading)
    at = labels.frame.index.get_indexer(kept)
    target = infer_target(values[at], reading.target, labels.path, reading.task)
    group_of = None if group is None else groups_at(group, kept, reading)
    warn_of_repeats(replace(reading, ident=None), kept, labels.frame.loc[kept], labels.path)
    warn_of_survival(target, reading.target, labels.frame, labels.path)
    shown = {
        name: replace(sheet, frame=sheet.frame[sheet.frame.index.isin(kept)])
        for name, sheet in sheets.items()
    }
    return ViewsDesign(views, shown, target, kept, reading, choice, sequences, group_of)


def label_sheet(source: Source, files: Files) -> Sheet:
    """The file with the labels: that of --labels, or the one table that has the target."""
    path, _ = source.label_file
    if path is not None:
        return files.read(path)
    target = files.reading.target
    having = [sheet for sheet in files.whole.values() if target in sheet.frame]
    if len(having) != 1:
        found = f"{len(having)} tables have a column" if having else "no table has a column"
        raise CliError(f"{found} {target!r} (--target): name the file of the targets, --labels FILE:COLUMN.")
    return having[0]


def say_unused(files: Files, labels: Sheet) -> None:
    """Name the columns of a file of labels that is no view."""
    taken = (files.reading.target, files.reading.group)
    extra = [name for name in labels.names if name not in taken]
    if extra and all(sheet.path != labels.path for sheet in files.views.values()):
        name = labels.path.name
        note(f"Columns of {name} that are not used: {quoted(extra, 5)} (--view NAME={name} uses them).")


def group_values(files: Files, labels: Sheet) -> tuple[pd.Series | None, dict[str, Sheet]]:
    """The group of every sample that has one, and the views without columns of targets and groups."""
    reading = files.reading
    taken = [name for name in (reading.target, reading.group) if name is not None]
    sheets = {}
    for name, sheet in files.views.items():
        there = [column for column in taken if column in sheet.frame]
        if there:
            note(f"View {name!r} is used without its columns {quoted(there)}, which are no features.")
        sheets[name] = replace(sheet, frame=sheet.frame.drop(columns=there))
    if reading.group is None:
        return None, sheets
    having = [s for s in (labels, *files.whole.values()) if reading.group in s.frame] or [labels]
    group_column(having[0].frame, reading, having[0].path)
    return having[0].frame[reading.group], sheets


def groups_at(group: pd.Series, ids: np.ndarray, reading: Reading) -> np.ndarray:
    """The group of every sample to learn from."""
    without = [label for label in ids if label not in group.index]
    if without:
        raise CliError(
            f"--group {reading.group}: {len(without)} samples have none, such as {quoted(without, SHOWN)}."
        )
    return group.loc[ids].to_numpy().astype(str)


def usable(sheets: dict[str, Sheet], reading: Reading) -> tuple[dict[str, Sheet], dict[str, list[str]]]:
    """Views with usable columns alone, categories as text, and their columns of sequences."""
    chosen = {
        option: by_view(getattr(reading, option), sheets, f"--{option}")
        for option in ("drop", "categorical", "sequence", "keep")
    }
    ready = {}
    for name, sheet in sheets.items():
        frame, path = sheet.frame.drop(columns=chosen["drop"][name]), sheet.path
        if frame.columns.empty:
            raise CliError(f"view {name!r} ({path}) has no column left to learn from.")
        categorical, texts = chosen["categorical"][name], chosen["sequence"][name]
        for column in texts:
            sequence(present(replace(sheet, frame=frame[[column]])), column)
        numbers = frame.drop(columns=[*categorical, *texts])
        check_decimals(path, {column: numbers[column].to_numpy() for column in numbers}, reading.decimal)
        check_columns(path, frame, [*categorical, *texts], chosen["keep"][name], imputed=True)
        ready[name] = present(replace(sheet, frame=in_order(frame, categorical, texts), groups={}))
    return ready, chosen["sequence"]


def by_view(patterns: Sequence[str], sheets: dict[str, Sheet], option: str) -> dict[str, list[str]]:
    """The columns of each view that names or patterns stand for; one that no view has is an error."""
    found = {
        name: [hit for p in patterns for hit in matching(p, sheet.names)] for name, sheet in sheets.items()
    }
    for pattern in patterns:
        if not any(matching(pattern, sheet.names) for sheet in sheets.values()):
            raise CliError(
                f"{option}: no column of the views {quoted(sheets)} is called or matches {pattern!r}."
            )
    return {name: [c for c in sheets[name].names if c in set(hits)] for name, hits in found.items()}


def check_joined(sheets: dict[str, Sheet], labels: Sheet, known: np.ndarray) -> None:
    """Refuse a view that has no labelled sample, with the reason where it shows."""
    wanted = set(known)
    for name, sheet in sheets.items():
        if wanted.isdisjoint(sheet.frame.index):
            theirs = f"those of {labels.path.name} such as {quoted(known[:SHOWN])}"
            hint = "IDs have to be spelled alike, in the column --id."
            if not wanted.isdisjoint(sheet.names):
                hint = f"Its columns are the samples: --transpose {name}."
            raise CliError(
                f"view {name!r} ({sheet.path}) has none of the {len(known)} labelled samples: its IDs are "
                f"such as {quoted(sheet.frame.index[:SHOWN])}, {theirs}. {hint}"
            )


def kept_samples(
    sheets: dict[str, Sheet],
    labels: Path,
    reading: Reading,
    known: np.ndarray,
    sequences: dict[str, list[str]],
) -> np.ndarray:
    """Labelled samples that some view has; with --drop-rows those that every view has without gaps."""
    everyone = dict.fromkeys(label for sheet in sheets.values() for label in sheet.frame.index)
    wanted = set(known)
    absent = [label for label in known if label not in everyone]
    if absent:
        note(f"{counted(len(absent), 'sample')} with a label, in no view: left out, {such_as(absent)}.")
    unknown = [label for label in everyone if label not in wanted]
    if unknown:
        where = f"{reading.target!r} in {labels.name}"
        note(f"{counted(len(unknown), 'sample')} of the views without {where}: left out, {such_as(unknown)}.")
    kept = np.array([label for label in known if label in everyone], dtype=object)
    if reading.drop_rows:
        frames = [sheet.frame if reading.impute else sheet.frame.dropna() for sheet in sheets.values()]
        whole = set.intersection(*(set(frame.index) for frame in frames))
        gone = sum(label not in whole for label in kept)
        if gone:
            note(f"{gone} of {len(kept)} samples lack views or values and are left out (--drop-rows).")
        kept = np.array([label for label in kept if label in whole], dtype=object)
    else:
        refuse_gaps(sheets, wanted, sequences if reading.impute else None)
    if len(kept) < FEWEST_ROWS:
        raise CliError(f"{len(kept)} samples have a label and a view; a fit needs at least {FEWEST_ROWS}.")
    return kept


def refuse_gaps(sheets: dict[str, Sheet], wanted: set[str], only: dict[str, list[str]] | None) -> None:
    """One error about single values that are missing; with `only`, in these columns."""
    for name, sheet in sheets.items():
        frame = sheet.frame[sheet.frame.index.isin(wanted)]
        frame = frame if only is None else frame[only[name]]
        gaps = frame.isna()
        columns, rows = frame.columns[gaps.any()], frame.index[gaps.any(axis=1)]
        if len(columns):
            raise CliError(
                f"view {name!r} ({sheet.path}): {counted(len(columns), 'column')}, {such_as(columns)}, "
                f"without a value in some of {counted(len(rows), 'sample')}, {such_as(rows)}: fill gaps with "
                "--impute median, leave those samples out with --drop-rows, or the columns with --drop."
            )


def say_gaps(views: Views, reading: Reading) -> None:
    """How many samples lack each view; an error unless something can be done about it."""
    n = len(views)
    counts = {name: int(n - there.sum()) for name, there in zip(views.names, views.observed.T, strict=True)}
    lacking = [f"{name} is missing in {k} of {n} samples" for name, k in counts.items() if k]
    if not lacking:
        note(f"{n} samples with a label have all {len(views.names)} views.")
        return
    if reading.missing == "error":
        example = quoted(views.ids[~views.observed.all(axis=1)], SHOWN)
        raise CliError(
            f"{listed(lacking)}, such as {example}: learn from them all the same with --missing complete (or "
            "mask, margin), or leave those samples out with --drop-rows."
        )
    note(f"{n} samples with a label; {listed(lacking)} (--missing {reading.missing}).")


def such_as(labels: Sequence[str]) -> str:
    """A few names, for a message."""
    return f"such as {quoted(labels[:SHOWN])}"


def counted(amount: int, noun: str) -> str:
    """A count and its noun."""
    return f"{amount} {noun}{'s' * (amount != 1)}"


# -- kernels of views ---------------------------------------------------------------------------


def view_kernels(
    sheets: dict[str, Sheet], encoders: dict[str, Any], sequences: dict[str, list[str]], choice: KernelChoice
) -> tuple[list[tuple[str, Any, str]], str]:
    """Names, kernels and their views; and how it came to them."""
    if choice.groups is not None or choice.bands is not None:
        raise CliError("--groups and --bands divide one table; of views, --kernels FILE does.")
    places = {name: places_of(encoder) for name, encoder in encoders.items()}
    widths = {name: sum(map(len, held.values())) for name, held in places.items()}
    parts = listed((f"{name} ({width})" for name, width in widths.items()), 8)
    why = f"{len(sheets)} views: {parts}"
    if choice.spec is not None:
        return view_entries(choice.spec, sheets, places, sequences), f"{why}; kernels from {choice.spec.name}"
    found: list[tuple[str, Any, str]] = []
    for view, sheet in sheets.items():
        own = own_kernels(sheet, places[view], sequences[view], choice.kinds)
        found += [
            (view if len(own) == 1 else f"{view}: {name}", kernel, view) for name, kernel in own.items()
        ]
    return found, why


def places_of(encoder: Any) -> dict[str, list[int]]:
    """Columns of a view, and their places in the matrix that a model sees."""
    features = features_of(encoder)
    numbers = iter(range(sum(map(len, features.values()))))
    return {name: [next(numbers) for _ in held] for name, held in features.items()}


def own_kernels(
    sheet: Sheet, where: dict[str, list[int]], sequences: list[str], kinds: Sequence[str]
) -> dict[str, Any]:
    """Kernels of one view: those named, or linear and RBF, on numbers; kernels of strings on sequences."""
    numbers = [place for name in sheet.names if name not in sequences for place in where[name]]
    named = [kind for kind in kinds if kind.lower() not in STRINGS]
    own = (kernel_list(named) if named else [Linear(), RBF()]) if numbers else []
    columns = None if not sequences else numbers
    found = {kernel.label: kernel.with_columns(columns) if columns else kernel for kernel in own}
    return found | (sequence_kernels(sequences, where, kinds) if sequences else {})


def view_entries(
    path: Path, sheets: dict[str, Sheet], places: dict[str, Any], sequences: dict[str, list[str]]
) -> list[tuple[str, Any, str]]:
    """Kernels from a TOML file; an entry without a view is for every view."""
    found: list[tuple[str, Any, str]] = []
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


# -- new samples --------------------------------------------------------------------------------


def new_views(encoder: ViewTransformer, source: Source, reading: Reading, allow_unseen: bool) -> Views:
    """Views of new samples with the columns that a model was fitted on; some of its views may be absent."""
    files, encoders = read_views(source, reading), encoder.transformers_
    odd = [name for name in files.views if name not in encoders]
    if odd:
        raise CliError(f"--view {odd[0]}: the model was fitted on the views {quoted(encoders)}.")
    lacking = [name for name in encoders if name not in files.views]
    if lacking and reading.missing == "error":
        raise CliError(
            f"the model was fitted on the views {quoted(encoders)}, and {quoted(lacking)} is not there: give "
            "it with --view, or fit the model with --missing complete, which predicts without some views."
        )
    note("Sample IDs: " + listed(files.taken, 12) + ".")
    frames = {}
    for name, sheet in files.views.items():
        frames[name] = conformed(encoders[name], present(sheet), allow_unseen)
    empty = {i for s in files.views.values() for i in s.frame.index} - {
        i for f in frames.values() for i in f.index
    }
    if empty:
        gone = f"{counted(len(empty), 'sample')} without a value in any view"
        note(f"{gone}: left out, {such_as(sorted(empty))}.")
    with refusing("--view"):
        views = Views({name: frames[name] for name in encoders if name in frames})
    gaps = {n: int((~there).sum()) for n, there in zip(views.names, views.observed.T, strict=True)}
    lacked = [
        f"{name} is missing in {count} of {len(views)} samples" for name, count in gaps.items() if count
    ]
    if lacked and reading.missing == "error":
        raise CliError(
            f"{listed(lacked)}: leave those samples out, or fit the model with --missing complete, which "
            "predicts without some views."
        )
    return views


def views_column(X: Any, n_views: int = 0) -> dict[str, np.ndarray]:
    """A column for a table of predictions, the views that each sample has; none where all have all.

    A model may have been fitted on more views, `n_views`, than are there.
    """
    if not isinstance(X, Views) or (X.observed.all() and len(X.names) >= n_views):
        return {}
    names = np.array(X.names, dtype=object)
    return {"views": np.array(["+".join(names[there]) for there in X.observed], dtype=object)}
