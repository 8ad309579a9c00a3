"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Task(StrEnum):
    """What is learned."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


class Method(StrEnum):
    """How kernel weights are learned."""

    auto = "auto"
    lp = "lp"
    elasticnet = "elasticnet"
    smkl = "smkl"
    gomp = "gomp"
    gmkl = "gmkl"
    empirical_bayes = "empirical-bayes"
    uniform = "uniform"


class Impute(StrEnum):
    """What fills missing numbers."""

    median = "median"
    mean = "mean"


class Scale(StrEnum):
    """How columns are made comparable."""

    standard = "standard"
    none = "none"


class Approximations(StrEnum):
    """How kernels become features."""

    nystroem = "nystroem"
    rff = "rff"


COLUMNS, KERNELS, READING = "Columns", "Kernels", "Reading the file"

Data = Annotated[
    Path, typer.Argument(help="CSV, TSV (also .gz), Parquet, Feather, or NPZ with X and y, views, or K.")
]
Model = Annotated[Path, typer.Argument(help="The folder that fit --out wrote, or a model.kw in it.")]
Target = Annotated[str, typer.Option(help="The column to predict.")]
TaskOption = Annotated[Task, typer.Option("--task", help="By default what the target looks like.")]

Drop = Annotated[
    list[str] | None,
    typer.Option(help="Column to leave out, by name or pattern; may be repeated.", rich_help_panel=COLUMNS),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        help="Column of numbers to use though it looks like an identifier.", rich_help_panel=COLUMNS
    ),
]
Ident = Annotated[
    str | None,
    typer.Option(
        "--id", help="Column that names the rows; goes to predictions.csv.", rich_help_panel=COLUMNS
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(help="Column of categories, encoded as zeros and ones.", rich_help_panel=COLUMNS),
]
ImputeOption = Annotated[
    Impute | None,
    typer.Option(
        "--impute", help="Fill missing numbers; nothing is filled otherwise.", rich_help_panel=COLUMNS
    ),
]
DropRows = Annotated[
    bool, typer.Option("--drop-rows", help="Leave out rows with missing values.", rich_help_panel=COLUMNS)
]
ScaleOption = Annotated[
    Scale,
    typer.Option(
        "--scale", help="Columns to mean 0 and deviation 1, or as they are.", rich_help_panel=COLUMNS
    ),
]

Spec = Annotated[
    Path | None,
    typer.Option("--kernels", help="TOML file, one [[kernel]] table per kernel.", rich_help_panel=KERNELS),
]
Groups = Annotated[
    str | None,
    typer.Option(help="Kernels a group of columns: 'rna=rna_*,protein=prot_*'.", rich_help_panel=KERNELS),
]
Bands = Annotated[
    int | None,
    typer.Option(min=1, help="Kernels on so many bands of neighbouring columns.", rich_help_panel=KERNELS),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kernel", help="Kernel of every group or band, such as rbf or linear.", rich_help_panel=KERNELS
    ),
]

Sep = Annotated[
    str | None, typer.Option(help="Separator of a text file; found out by default.", rich_help_panel=READING)
]
Encoding = Annotated[str, typer.Option(help="Encoding of a text file.", rich_help_panel=READING)]
Decimal = Annotated[str, typer.Option(help="Decimal point of a text file.", rich_help_panel=READING)]

Seed = Annotated[int, typer.Option(min=0, help="Seed of splits, folds and sub-samples.")]
Memory = Annotated[str | None, typer.Option(help="Memory for Gram matrices, such as 2GB.")]
Approximation = Annotated[
    Approximations | None,
    typer.Option(help="Features in place of Gram matrices, for many rows: landmarks, or random frequencies."),
]
Rank = Annotated[int, typer.Option(min=1, help="Most features per kernel with --approximation.")]
Jobs = Annotated[int | None, typer.Option(help="Threads over models and folds.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
AllowUnseen = Annotated[
    bool, typer.Option("--allow-unseen", help="Accept categories that training did not see, as all zeros.")
]
