"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

Method = Literal["auto", "lp", "elasticnet", "smkl", "gomp", "gmkl", "empirical-bayes", "uniform"]

COLUMNS, KERNELS, READING = "Columns", "Kernels", "Reading the file"

Data = Annotated[
    Path, typer.Argument(help="CSV, TSV (also .gz), Parquet, Feather, or NPZ with X and y, views, or K.")
]
Model = Annotated[Path, typer.Argument(help="The folder that fit --out wrote, or a model.kw in it.")]


def option(words: str, panel: str, *names: str, **limits: Any) -> Any:
    """An option of a command in one of the panels of its help."""
    return typer.Option(*names, help=words, rich_help_panel=panel, **limits)


Sep = Annotated[str | None, option("Separator of a text file; detected by default.", READING)]
Encoding = Annotated[str, option("Encoding of a text file.", READING)]
Decimal = Annotated[str, option("Decimal point of a text file.", READING)]


@dataclass(frozen=True)
class Reading:
    """How to read a file, and what its columns are."""

    target: Annotated[str, typer.Option(help="The column to predict.")] = "y"
    task: Annotated[
        Literal["auto", "classification", "regression"],
        typer.Option(help="By default what the target looks like."),
    ] = "auto"
    drop: Annotated[
        list[str], option("Column to leave out, by name or pattern; may be repeated.", COLUMNS)
    ] = field(default_factory=list)
    keep: Annotated[
        list[str], option("Column of numbers to use though it looks like an identifier.", COLUMNS)
    ] = field(default_factory=list)
    ident: Annotated[
        str | None, option("Column that names the rows; goes to predictions.csv.", COLUMNS, "--id")
    ] = None
    categorical: Annotated[list[str], option("Column of categories, encoded as zeros and ones.", COLUMNS)] = (
        field(default_factory=list)
    )
    impute: Annotated[
        Literal["median", "mean"] | None,
        option("Fill missing numbers; nothing is filled otherwise.", COLUMNS),
    ] = None
    drop_rows: Annotated[bool, option("Leave out rows with missing values.", COLUMNS, "--drop-rows")] = False
    scale: Annotated[
        Literal["standard", "none"], option("Columns to mean 0 and deviation 1, or as they are.", COLUMNS)
    ] = "standard"
    sep: Sep = None
    encoding: Encoding = "utf-8"
    decimal: Decimal = "."


@dataclass(frozen=True)
class KernelChoice:
    """How kernels are made of the columns."""

    spec: Annotated[
        Path | None, option(r"TOML file with a table \[\[kernel]] per kernel.", KERNELS, "--kernels")
    ] = None
    groups: Annotated[
        str | None, option("Kernels per group of columns: 'rna=rna_*,protein=prot_*'.", KERNELS)
    ] = None
    bands: Annotated[
        int | None, option("Kernels on so many bands of neighbouring columns.", KERNELS, min=1)
    ] = None
    kinds: Annotated[
        list[str], option("Kernel of every group or band, such as rbf or linear.", KERNELS, "--kernel")
    ] = field(default_factory=list)

    @property
    def given(self) -> bool:
        return any((self.spec, self.groups, self.bands, self.kinds))


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
    typer.Option(help="Features in place of Gram matrices, for many rows: landmarks, or random frequencies."),
]
Rank = Annotated[int, typer.Option(min=1, help="Most features per kernel, with --approximation.")]
Jobs = Annotated[int | None, typer.Option(help="Threads over models and folds.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
AllowUnseen = Annotated[
    bool, typer.Option("--allow-unseen", help="Take categories the model does not know for none of its own.")
]
