"""``kernelweave reproduce``: the tables and figures of the papers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from . import _options as opt
from ._errors import CliError, guarded

FOLDER = "experiments"


@guarded
def reproduce(
    name: Annotated[
        str | None, typer.Argument(help="An experiment of the list; without it, the list.")
    ] = None,
    folder: Annotated[Path | None, typer.Option(help="The experiments folder of the source code.")] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGS]", help="Arguments of the experiment.")
    ] = None,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """List the experiments that reproduce tables and figures of the papers, or run one."""
    from ._console import note, out, print_json

    found = experiments(folder)
    if name is not None:
        raise typer.Exit(run(name, found, arguments or []))
    listing = {key: summary(path) for key, path in found.items()}
    if as_json:
        print_json(listing)
        return
    for key, text in listing.items():
        out().print(f"{key:<24} {text}", markup=False, highlight=False, soft_wrap=True)
    note("Run one with: kernelweave reproduce NAME (-- --help shows its options)")


def experiments(folder: Path | None) -> dict[str, Path]:
    """Scripts by name, of the folder named, of the source code this runs from, or of where one is."""
    source = Path(__file__).resolve().parents[3] / FOLDER
    places = [folder] if folder is not None else [source, Path(FOLDER)]
    for place in places:
        scripts = sorted(place.glob("*.py")) if place.is_dir() else []
        found = {path.stem: path for path in scripts if not path.stem.startswith("_")}
        if found:
            return found
    raise CliError(
        f"there are no experiments in {' or '.join(str(place) for place in places)}: they come with the "
        "source code, not with the installed package; clone it and run this there, or use --folder."
    )


def summary(path: Path) -> str:
    """The first line of a script's docstring; the script is read, not run."""
    try:
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    except (SyntaxError, OSError, UnicodeDecodeError):
        return "cannot be read"
    return text.partition("\n")[0]


def run(name: str, found: dict[str, Path], arguments: list[str]) -> int:
    """Run a script in a Python of its own; its exit code."""
    if name not in found:
        raise CliError(f"there is no experiment {name!r}; there are {', '.join(found)}.")
    return subprocess.run([sys.executable, str(found[name]), *arguments], check=False).returncode
