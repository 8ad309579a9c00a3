"""Several files of the same samples, joined by sample IDs and ready to be learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..._words import counted, listed, quoted
from ...estimators import ViewTransformer
from ...kernels import Views
from ...kernels.columns import matching
from ._columns import (
    FEWEST_ROWS,
    Parts,
    Target,
    apart,
    check_columns,
    check_decimals,
    group_column,
    target_columns,
    target_of,
    unknown_in,
    warn_of_repeats,
    warn_of_survival,
    without_constants,
)
from ._console import CliError, note, refusing
from ._design import (
    TableDesign,
    check_finite,
    features_of,
    in_order,
    make_encoder,
    sequence,
    table_design,
)
from ._files import SHOWN, Files, present, read_views, such_as
from ._kernels import view_kernels
from ._npz import GramDesign
from ._options import KernelChoice, Reading, Source
from ._read import Sheet


def design(source: Source, reading: Reading, choice: KernelChoice) -> TableDesign | GramDesign | ViewsDesign:
    """Files as data to learn from, or one error about what stands in the way."""
    if source.views:
        return views_design(source, reading, choice)
    assert source.data is not None
    return table_design(source.data, reading, choice)


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
        features = {name: features_of(one) for name, one in encoders.items()}
        kernels, why = view_kernels(self.sheets, features, self.choice, self.sequences)
        starts = X.starts.tolist()
        places = {n: list(range(*starts[v : v + 2])) for v, n in enumerate(X.names)}
        names = [f"{n}: {name}" for n, own in features.items() for held in own.values() for name in held]
        return Parts(X, X_rest, encoder, kernels, why, places, names, self.reading.ident or "sample")


def encoded_views(encoder: ViewTransformer, views: Views) -> Views:
    """The views as a model takes them."""
    with np.errstate(over="ignore", invalid="ignore"):
        X = encoder.transform(views)
    for name, there in zip(X.names, X.observed.T, strict=True):
        with refusing(f"view {name!r}"):
            check_finite(encoder.transformers_[name], np.asarray(X[name])[there])
    return X


def views_design(source: Source, reading: Reading, choice: KernelChoice) -> ViewsDesign:
    """Tables joined by sample IDs, in the order of the labels; a message counts who is left out."""
    files = read_views(source, reading)
    labels = label_sheet(source, files)
    note("Sample IDs: " + listed(files.taken, 12) + ".")
    option = "--target" if source.labels is None else "--labels"
    values = target_columns(labels.frame, reading, labels.path, option)
    say_unused(files, labels)
    group, sheets = group_values(files, labels)
    sheets, sequences = usable(sheets, reading)
    known = labels.frame.index.to_numpy()[~unknown_in(values)]
    check_joined(sheets, labels, known)
    kept = kept_samples(sheets, labels.path, reading, known, sequences)
    with refusing("--view"):
        views = Views({name: sheet.frame for name, sheet in sheets.items()}, ids=kept)
    say_gaps(views, reading)
    at = labels.frame.index.get_indexer(kept)
    target = target_of({name: column[at] for name, column in values.items()}, reading, labels.path)
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
    target, option = next(iter(files.reading.targets.items()))
    having = [sheet for sheet in files.whole.values() if target in sheet.frame]
    if len(having) != 1:
        found = f"{len(having)} tables have a column" if having else "no table has a column"
        how = "--labels FILE:COLUMN" if option == "--target" else "--labels FILE"
        raise CliError(f"{found} {target!r} ({option}): name the file of the targets, {how}.")
    return having[0]


def say_unused(files: Files, labels: Sheet) -> None:
    """Name the columns of a file of labels that is no view."""
    taken = (*files.reading.targets, files.reading.group)
    extra = [name for name in labels.names if name not in taken]
    if extra and all(sheet.path != labels.path for sheet in files.views.values()):
        name = labels.path.name
        note(f"Columns of {name} that are not used: {quoted(extra, 5)} (--view NAME={name} uses them).")


def group_values(files: Files, labels: Sheet) -> tuple[pd.Series | None, dict[str, Sheet]]:
    """The group of every sample that has one, and the views without columns of targets and groups."""
    reading = files.reading
    taken = [name for name in (*reading.targets, reading.group) if name is not None]
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
    result: np.ndarray = group.loc[ids].to_numpy().astype(str)
    return result


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
        if frame.isna().all(axis=None):
            raise CliError(f"view {name!r} ({path}) has no values at all: leave it out, or write it again.")
        categorical, texts = chosen["categorical"][name], chosen["sequence"][name]
        for column in texts:
            sequence(present(replace(sheet, frame=frame[[column]])), column)
        numbers = frame.drop(columns=[*categorical, *texts])
        check_decimals(path, {column: numbers[column].to_numpy() for column in numbers}, reading.decimal)
        check_columns(path, frame, [*categorical, *texts], chosen["keep"][name], imputed=True)
        varying = without_constants(in_order(frame, categorical, texts), texts, f"view {name!r}")
        ready[name] = present(replace(sheet, frame=varying, groups={}))
    return ready, chosen["sequence"]


def by_view(patterns: Sequence[str], sheets: dict[str, Sheet], option: str) -> dict[str, list[str]]:
    """The columns of each view that names or patterns stand for; one that no view has is an error."""
    patterns = apart(patterns, [name for sheet in sheets.values() for name in sheet.names])
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
        where = f"{reading.outcome!r} in {labels.name}"
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
    n, lacking = len(views), views.lacking
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
