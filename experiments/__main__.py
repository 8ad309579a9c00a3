"""``python experiments``: list the tables and figures of the papers, or run them again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from reproduce import Mode, listing, run
from rich.console import Console


def main(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Experiments; without one, the list.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The papers' repetitions, or about a minute each.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="All experiments.")] = False,
    out: Annotated[Path | None, typer.Option(help="Where results go; build/experiments by default.")] = None,
    repetitions: Annotated[
        int | None, typer.Option(help="In place of the number --quick or --full stand for.", min=1)
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes side by side.", min=1)] = 1,
    docs: Annotated[
        Path | None, typer.Option(help="Also commit the rows and write the results pages of this folder.")
    ] = None,
    only_done: Annotated[bool, typer.Option("--done", help="Run nothing; summarise what is done.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Run cells that are among the committed rows, too.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="SETTING", help="Run such cells alone: method=SVM, or method!=SVM."),
    ] = None,
    folder: Annotated[Path | None, typer.Option(help="Experiments of another folder.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The result as one JSON document.")] = False,
) -> None:
    """Run the papers' experiments again, or list them; what is done already is not done again."""
    try:
        if not (names or everything):
            _print_list(folder, as_json)
            return
        found = run(
            None if everything else names,
            Mode("full" if full else "quick", repetitions),
            out,
            jobs=jobs,
            folder=folder,
            docs=docs,
            go_on=not only_done,
            again=again,
            only=only or (),
            console=Console(stderr=as_json),
        )
    except FileNotFoundError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from error
    if as_json:
        lines = {name: [asdict(line) for line in summary.lines] for name, summary in found.items()}
        typer.echo(json.dumps(lines, default=float))


def _print_list(folder: Path | None, as_json: bool) -> None:
    found = listing(folder)
    if as_json:
        typer.echo(json.dumps(found))
        return
    for name, text in found.items():
        typer.echo(f"{name:<20} {text}")


if __name__ == "__main__":
    typer.run(main)
