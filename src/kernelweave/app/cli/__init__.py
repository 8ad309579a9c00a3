"""The command ``kernelweave``: from a data file to a model, its weights and a report.

Exit codes: 0 all went well, 1 an unexpected error, 2 bad input or usage, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ..._version import __version__
from .compare import compare
from .demo import demo
from .fit import fit
from .inspect import info, inspect
from .predict import predict
from .report import report

__all__ = ["app", "main"]

app = typer.Typer(
    help="Multiple kernel learning: many kernels in, one trustworthy model out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
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
    """Options that come before a command."""


for _command in (fit, predict, inspect, report, compare, demo, info):
    app.command()(_command)


def main() -> None:
    """Run the command line."""
    app()
