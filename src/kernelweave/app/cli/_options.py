"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from ._console import CliError, check_file
from ._text import check_names

Method = Literal["auto", "lp", "elasticnet", "smkl", "gomp", "gmkl", "empirical-bayes", "uniform"]

COLUMNS, KERNELS, READING, TABLES = "Columns", "Kernels", "Reading the file", "Several tables"

Model = Annotated[Path, typer.Argument(help="The folder that fit --out wrote, or a model.kw in it.")]


def option(words: str, panel: str, *names: str, **limits: Any) -> Any:
    """An option of a command in one of the panels of its help."""
    return typer.Option(*names, help=words, rich_help_panel=panel, **limits)


Sep = Annotated[str | None, option("Separator of a text file; detected by default.", READING)]
Encoding = Annotated[str, option("Encoding of a text file.", READING)]
Decimal = Annotated[str, option("Decimal point of a text file.", READING)]


def view_name(given: str, path: Path) -> str:
    """The name of a view: the one given, or that of its file without endings such as .csv.gz."""
    return given or path.name.partition(".")[0]


@dataclass(frozen=True)
class Source:
    """The files that are read: one table, or several of the same samples with their labels."""

    data: Annotated[
        Path | None,
        typer.Argument(
            help="CSV, TSV (also .gz), Excel, Parquet, Feather, h5ad, or NPZ with X and y, views, or K."
        ),
    ] = None
    views: Annotated[
        list[str],
        option("One table of the same samples, NAME=FILE; give it once per table.", TABLES, "--view"),
    ] = field(default_factory=list)
    labels: Annotated[
        str | None, option("The file of the targets, FILE:COLUMN, or FILE and --target.", TABLES)
    ] = None
    transpose: Annotated[
        list[str], option("View whose file has features in rows and samples in columns.", TABLES)
    ] = field(default_factory=list)

    @property
    def tables(self) -> list[tuple[str, Path]]:
        """Names and files of the views; the name is empty where only a file is given."""
        found = []
        for text in self.views:
            name, given, file = text.partition("=")
            alone = not given or Path(text).exists()
            found.append(("", Path(text)) if alone else (name.strip(), Path(file)))
        return found

    @property
    def names(self) -> list[str]:
        """Names of the views, those of their files where none are given."""
        return [view_name(name, path) for name, path in self.tables]

    @property
    def label_file(self) -> tuple[Path | None, str | None]:
        """The file of the labels, and the column that stands behind it."""
        if self.labels is None or Path(self.labels).exists():
            return (None if self.labels is None else Path(self.labels)), None
        file, given, column = self.labels.rpartition(":")
        return (Path(file), column) if given else (Path(self.labels), None)

    @property
    def files(self) -> dict[str, Path]:
        """What each file is, and the file."""
        labels, _ = self.label_file
        roles = {name or path.name: path for name, path in self.tables}
        return (
            roles
            | ({} if self.data is None else {"data": self.data})
            | ({"labels": labels} if labels else {})
        )

    @property
    def title(self) -> str:
        """Names of the files, each of them once."""
        return ", ".join(dict.fromkeys(path.name for path in self.files.values()))

    def check(self, needed: bool = True) -> None:
        """Refuse files that are not there, and a table beside views."""
        for path in self.files.values():
            check_file(path)
        if self.data is not None and self.views:
            raise CliError(
                f"{self.data} and --view: give every table with --view NAME=FILE, also the first one."
            )
        if not self.views and (self.labels is not None or self.transpose):
            raise CliError(
                "--labels and --transpose are for several tables: give them with --view NAME=FILE."
            )
        if needed and not self.files:
            raise CliError("name a data file, or several tables of the same samples with --view NAME=FILE.")
        names = [*self.names, "data", "labels"]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise CliError(f"--view: two tables are called {twice[0]!r}; name them, as in a={twice[0]}.csv.")


@dataclass(frozen=True)
class Reading:
    """How to read a file, and what its columns are."""

    target: Annotated[str, typer.Option(help="The column to predict.")] = "y"
    time: Annotated[
        str | None, typer.Option(help="Column of times to an event, in place of --target; with --event.")
    ] = None
    event: Annotated[
        str | None, typer.Option(help="Column of 1 where the event was seen, 0 where the time is censored.")
    ] = None
    task: Annotated[
        Literal["auto", "classification", "regression"],
        typer.Option(help="Decided by the values of the target unless given."),
    ] = "auto"
    drop: Annotated[
        list[str], option("Columns to leave out: names or patterns. May be repeated.", COLUMNS)
    ] = field(default_factory=list)
    keep: Annotated[
        list[str], option("Column of numbers to use although it looks like an identifier.", COLUMNS)
    ] = field(default_factory=list)
    ident: Annotated[
        str | None,
        option("Column of sample IDs: joins the tables, and is copied to predictions.csv.", COLUMNS, "--id"),
    ] = None
    group: Annotated[
        str | None,
        option("Column of groups, such as patients: rows of a group are never split up.", COLUMNS),
    ] = None
    sequence: Annotated[
        list[str], option("Column of sequences (DNA, proteins) or text, for string kernels.", COLUMNS)
    ] = field(default_factory=list)
    categorical: Annotated[list[str], option("Column of categories, encoded as zeros and ones.", COLUMNS)] = (
        field(default_factory=list)
    )
    impute: Annotated[
        Literal["median", "mean"] | None,
        option("Fill in missing numbers; by default they are an error.", COLUMNS),
    ] = None
    drop_rows: Annotated[bool, option("Leave out rows with missing values.", COLUMNS, "--drop-rows")] = False
    missing: Annotated[
        Literal["error", "mask", "margin", "complete"],
        option(
            "What to do with samples that lack a whole view: refuse them, or learn from them too.", TABLES
        ),
    ] = "error"
    scale: Annotated[
        Literal["standard", "none"],
        option("Scale columns to mean 0 and standard deviation 1, or leave them as they are.", COLUMNS),
    ] = "standard"
    sep: Sep = None
    encoding: Encoding = "utf-8"
    decimal: Decimal = "."

    @property
    def targets(self) -> dict[str, str]:
        """The columns to predict, and the options that name them."""
        if self.time is None or self.event is None:
            return {self.target: "--target"}
        return {self.time: "--time", self.event: "--event"}

    @property
    def outcome(self) -> str:
        """What is predicted, in words."""
        return " to ".join(self.targets)


Normalize = Annotated[
    Literal["variance", "dimension", "spherical", "trace", "center", "none"],
    option("How kernels are put on one scale; use dimension to mix linear and narrow kernels.", KERNELS),
]


def settled(source: Source, reading: Reading) -> Reading:
    """Options in which the target is the column that --labels names, if it names one."""
    source.check()
    _, column = source.label_file
    if reading.time is not None or reading.event is not None:
        check_survival(reading, column)
    return reading if column is None else replace(reading, target=column)


def check_survival(reading: Reading, column: str | None) -> None:
    """Refuse times without events, events without times, and other targets beside both."""
    if reading.event is None:
        raise CliError(
            f"--time {reading.time}: name the column that says whether the event was seen, --event COLUMN."
        )
    if reading.time is None or reading.time == reading.event:
        raise CliError(f"--event {reading.event}: name the column of the times with --time COLUMN.")
    other = f"--labels FILE:{column}" if column is not None else f"--target {reading.target}"
    if column is not None or reading.target != Reading.target:
        raise CliError(f"{other}: --time and --event name what to predict; leave the other column out.")
    if reading.task != "auto":
        raise CliError(
            f"--task {reading.task}: --time and --event ask for a model of survival; leave it out."
        )


@dataclass(frozen=True)
class KernelChoice:
    """How kernels are made of the columns."""

    spec: Annotated[
        Path | None, option(r"TOML file with one \[\[kernel]] table per kernel.", KERNELS, "--kernels")
    ] = None
    groups: Annotated[
        str | None,
        option("Groups of columns with kernels of their own: 'rna=rna_*,protein=prot_*'.", KERNELS),
    ] = None
    bands: Annotated[
        int | None,
        option("Number of bands of neighbouring columns, each with kernels of its own.", KERNELS, min=1),
    ] = None
    kinds: Annotated[
        list[str],
        option(
            "Kernel for every group, band or view, such as rbf or linear; auto: linear and several widths.",
            KERNELS,
            "--kernel",
        ),
    ] = field(default_factory=list)

    @property
    def given(self) -> bool:
        return any((self.spec, self.groups, self.bands, [kind for kind in self.kinds if kind != "auto"]))


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """A command with an option for every field of its parameters that are data classes."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    for name, given in inspect.signature(command).parameters.items():
        if is_dataclass(hints[name]):
            types = get_type_hints(hints[name], include_extras=True)
            example = hints[name]()
            fresh = ((own.name, types[own.name], getattr(example, own.name)) for own in fields(example))
            parameters += [given.replace(name=n, annotation=kind, default=value) for n, kind, value in fresh]
        else:
            parameters.append(given.replace(annotation=hints[name]))

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, kind in hints.items():
            if is_dataclass(kind):
                values[name] = kind(**{own.name: values.pop(own.name) for own in fields(kind)})  # type: ignore[operator]
        command(**values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


Seed = Annotated[int, typer.Option(min=0, help="Seed of splits, folds and sub-samples.")]
Memory = Annotated[str | None, typer.Option(help="Memory for Gram matrices, such as 2GB.")]
Approximation = Annotated[
    Literal["nystroem", "rff"] | None,
    typer.Option(
        help="For many rows, features in place of Gram matrices: from landmarks, or from random frequencies."
    ),
]
Rank = Annotated[
    int, typer.Option(min=1, help="Largest number of features per kernel, with --approximation.")
]
Jobs = Annotated[int | None, typer.Option(help="Number of threads; models and folds run in parallel.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
AllowUnseen = Annotated[
    bool,
    typer.Option(
        "--allow-unseen",
        help="Accept categories that the model has not seen; they count as none of the known ones.",
    ),
]


def check_target(source: Source, reading: Reading) -> None:
    """Refuse a target that the first line of a text file does not name, before anything heavy is imported."""
    if source.data is not None and reading.target != Reading.target:
        check_names(source.data, {reading.target: "--target"}, reading.sep, reading.encoding)
