"""Errors of the command line: one message, one exit code, no traceback."""

from __future__ import annotations

import functools
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import typer

from ._console import say

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
        except Quit:
            say("Stopped at once.", style="bold")
            sys.stderr.flush()
            os._exit(INTERRUPTED)  # threads that still compute would keep the process
        except (CliError, KeyboardInterrupt, Exception) as error:
            if isinstance(error, typer.Exit):
                raise
            raise typer.Exit(_report(error, kwargs)) from None

    return run  # type: ignore[return-value]


def _report(error: BaseException, options: dict[str, Any]) -> int:
    """Print the message, with the traceback if asked for; the exit code."""
    message, code = describe(error)
    if options.get("debug"):
        sys.stderr.write("".join(traceback.format_exception(error)))
    if options.get("as_json"):
        sys.stdout.write(json.dumps({"error": message, "exit_code": code}) + "\n")
    say(message if code == INTERRUPTED else f"Error: {message}", style="bold" if code == 130 else "red")
    return code


def describe(error: BaseException) -> tuple[str, int]:
    """What to tell the user about `error`, and the exit code."""
    if isinstance(error, CliError):
        return str(error), error.code
    if isinstance(error, KeyboardInterrupt):
        return "Stopped; nothing was written.", INTERRUPTED
    kind = type(error).__name__
    return f"unexpected {kind}: {error}. Run again with --debug for the whole story.", UNEXPECTED
