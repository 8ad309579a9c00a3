"""The command ``kernelweave``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ._version import __version__

PLOT = Path("kernelweave-demo.png")

app = typer.Typer(
    help="Multiple kernel learning: many kernels in, one trustworthy model out.",
    no_args_is_help=True,
    add_completion=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kernelweave {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Options that come before a command; with this, `demo` stays a command of its own."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to write the plot of the weights.", dir_okay=False)] = PLOT,
    seed: Annotated[int, typer.Option(help="Seed of the train/test split and of the folds.", min=0)] = 0,
) -> None:
    """Learn kernel weights on three views of a real data set, and compare."""
    from .demo import run

    run(out=out, seed=seed)


def main() -> None:
    """Run the command line."""
    app()
