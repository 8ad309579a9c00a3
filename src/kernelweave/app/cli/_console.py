"""What a command says: results on stdout, all else on stderr, and one message for every way to fail."""

from __future__ import annotations

import functools
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import typer
from rich.console import Console

from ..._words import plain, quoted


def show(content: Any, **style: Any) -> None:
    """A table, or a line without markup, on stdout."""
    Console().print(content, markup=False, highlight=False, **style)


def say(message: str, style: str = "") -> None:
    """One message on stderr, not wrapped, no markup in it."""
    Console(stderr=True).print(message, style=style, markup=False, highlight=False, soft_wrap=True)


def note(message: str) -> None:
    """Something the user should know, though nothing is wrong."""
    say(message, style="yellow")


def print_json(document: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


# -- errors -------------------------------------------------------------------------------------------


#: exit codes: all went well; an error of ours; bad input or usage; stopped by Ctrl-C
OK, UNEXPECTED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

Command = TypeVar("Command", bound=Callable[..., Any])


class CliError(Exception):
    """Something the user can put right: the message names it and says how."""

    code = BAD_INPUT


class StoppedError(CliError):
    """Ctrl-C, with what is left on disk."""

    code = INTERRUPTED


class Quit(BaseException):
    """A second Ctrl-C; no solver takes it for a request to finish."""


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Let the library's own refusals (ValueError, MemoryError) end as one message about `what`."""
    try:
        yield
    except (ValueError, MemoryError) as error:
        raise CliError(f"{what}: {error}") from error


def guarded(command: Command) -> Command:
    """Turn every way a command can fail into one message on stderr and an exit code."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except typer.Exit:
            raise
        except Quit:
            say("Stopped at once.", style="bold")
            sys.stderr.flush()
            os._exit(INTERRUPTED)  # threads that still compute would keep the process
        except (KeyboardInterrupt, Exception) as error:
            message, code = _described(error)
            if kwargs.get("debug"):
                sys.stderr.write("".join(traceback.format_exception(error)))
            if kwargs.get("as_json"):
                sys.stdout.write(json.dumps({"error": message, "exit_code": code}) + "\n")
            stopped = code == INTERRUPTED
            say(message if stopped else f"Error: {message}", style="bold" if stopped else "red")
            raise typer.Exit(code) from None

    return run  # type: ignore[return-value]


def _described(error: BaseException) -> tuple[str, int]:
    """What to tell the user about `error`, and the exit code."""
    if isinstance(error, CliError):
        return str(error), error.code
    if isinstance(error, KeyboardInterrupt):
        return "Stopped; nothing was written.", INTERRUPTED
    kind = type(error).__name__
    return f"unexpected {kind}: {error}. Run again with --debug for the traceback.", UNEXPECTED


# -- files, looked at before anything heavy is imported -----------------------------------------------


TEXT = (".csv", ".tsv", ".txt", ".tab", ".data")
ARROW = (".parquet", ".pq", ".feather", ".arrow")
EXCEL = (".xlsx", ".xlsm", ".xls")
ANNOTATED = (".h5ad", ".h5mu")

#: all endings of data files
ENDINGS = (*TEXT, *ARROW, *EXCEL, *ANNOTATED, ".npz")

#: the file of a model in the folder that fit wrote
MODEL = "model.kw"


def suffix(path: Path) -> str:
    """The ending that says what a file is, without .gz."""
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def check_file(path: Path) -> None:
    """Refuse what is not a file with something in it."""
    try:
        if path.is_dir():
            raise CliError(f"{path} is a folder: name the data file in it. {inside(path)}")
        if not path.exists():
            raise CliError(f"{path} does not exist: check the name. {inside(path.parent)}")
        if path.stat().st_size == 0:
            raise CliError(f"{path} is empty (0 bytes): write or download it again.")
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise CliError(f"{path} cannot be read ({error.strerror}): check its permissions.") from error


def check_spec(path: Path | None) -> None:
    """Refuse a file of kernels that is not there."""
    if path is not None and (path.is_dir() or not path.exists()):
        raise CliError(f"--kernels: {path} is no file; see the guide, Command line, for what it may say.")


def inside(folder: Path) -> str:
    """The data files of a folder, for a message."""
    try:
        names = sorted(entry.name for entry in folder.iterdir() if suffix(entry) in ENDINGS)
    except OSError:
        return f"There is no folder {folder}."
    return f"Data files there: {quoted(names, 5)}." if names else "There are no data files there."


def model_file(path: Path) -> Path:
    """The file of a model that is named by its file or its folder."""
    if not path.exists():
        raise CliError(f"{path} does not exist: name a model file, or the folder that fit --out wrote.")
    if path.is_dir() and not (path / MODEL).exists():
        raise CliError(f"{path} holds no {MODEL}: name a model file, or the folder that fit --out wrote.")
    return path / MODEL if path.is_dir() else path


def check_out(out: Path | None, *read: Path | None) -> None:
    """Refuse to write over a file that the same command reads."""
    for path in read:
        if out is not None and path is not None and out.exists() and out.samefile(path):
            raise CliError(f"--out {out} would write over {path}, which is read: name another file.")
