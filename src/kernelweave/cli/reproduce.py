"""``kernelweave reproduce``: the tables and figures of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import _options as opt
from ._errors import CliError, guarded


@guarded
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Experiments; without one, the list.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The papers' repetitions, or about a minute each.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="All experiments.")] = False,
    only_list: Annotated[bool, typer.Option("--list", help="List the experiments, and stop.")] = False,
    out: Annotated[Path | None, typer.Option(help="Where results go; build/experiments by default.")] = None,
    repetitions: Annotated[
        int | None, typer.Option(help="In place of the number --quick or --full stand for.", min=1)
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes side by side.", min=1)] = 1,
    docs: Annotated[
        Path | None, typer.Option(help="Also write the results pages of this documentation folder.")
    ] = None,
    only_done: Annotated[bool, typer.Option("--done", help="Run nothing; summarise what is done.")] = False,
    folder: Annotated[Path | None, typer.Option(help="The experiments folder of the source code.")] = None,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Run the papers' experiments again, or list them; what is done already is not done again."""
    from ._console import err
    from ._console import out as results

    if only_list or not (names or everything):
        _print_list(folder, as_json)
        return
    from ..reproduce import Mode, run

    try:
        mode = Mode("full" if full else "quick", repetitions)
        chosen = None if everything else names
        found = run(
            chosen,
            mode,
            out,
            jobs=jobs,
            folder=folder,
            docs=docs,
            go_on=not only_done,
            console=err() if as_json else results(),
        )
    except FileNotFoundError as error:
        raise CliError(str(error)) from error
    if as_json:
        _print_summaries(found)


def _print_list(folder: Path | None, as_json: bool) -> None:
    from ..reproduce import listing
    from ._console import note, out, print_json

    try:
        found = listing(folder)
    except FileNotFoundError as error:
        raise CliError(str(error)) from error
    if as_json:
        print_json(found)
        return
    for name, text in found.items():
        out().print(f"{name:<20} {text}", markup=False, highlight=False, soft_wrap=True)
    note("Run one with: kernelweave reproduce NAME [--quick | --full], all with: kernelweave reproduce --all")


def _print_summaries(found: dict[str, Any]) -> None:
    from dataclasses import asdict

    from ._console import print_json

    print_json({name: [asdict(line) for line in summary.lines] for name, summary in found.items()})
