"""Warnings that name the user's line, from wherever in the package and whatever thread they come."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

#: packages, and modules of the standard library, whose lines are not the user's
PASSED = ("kernelweave", "joblib", "sklearn", "multiprocessing", "concurrent")
MODULES = ("threading", "contextlib", "functools")

#: where warnings wait that were raised where the stack does not show who called
_waiting: ContextVar[list[tuple[str, type[Warning]]] | None] = ContextVar("waiting", default=None)

#: what was told already where everything is told once
_told: ContextVar[set[tuple[str, type[Warning]]] | None] = ContextVar("told", default=None)

#: whether what is done is done on a part of the samples, as on a fold
_on_part: ContextVar[bool] = ContextVar("on_part", default=False)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line that is neither this package's nor of a library that called it.

    In a thread of `parallel` the warning waits until its task is done: threads have stacks of their own.

    Parameters
    ----------
    message : str
    category : type of Warning, default=UserWarning
    """
    waiting = _waiting.get()
    if waiting is not None:
        waiting.append((message, category))
        return
    told = _told.get()
    if told is not None:
        if (message, category) in told:
            return
        told.add((message, category))
    warnings.warn(message, category, stacklevel=_level())


@contextmanager
def each_once() -> Iterator[None]:
    """Within it `warn` gives every message once, as in a fit that takes the same kernels fold after fold.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as told, each_once():
    ...     warnings.simplefilter("always")
    ...     warn("again")
    ...     warn("again")
    >>> len(told)
    1
    """
    before = _told.get()
    token = _told.set(set() if before is None else before)
    try:
        yield
    finally:
        _told.reset(token)


@contextmanager
def on_part() -> Iterator[None]:
    """Within it `warn_of_samples` is silent: it speaks of a fold, and the fit on all samples for itself.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as told, on_part():
    ...     warnings.simplefilter("always")
    ...     warn_of_samples("a column is constant")
    >>> len(told)
    0
    """
    token = _on_part.set(True)
    try:
        yield
    finally:
        _on_part.reset(token)


def warn_of_samples(message: str) -> None:
    """Warn of what is the case on these training samples, and may not be on all of the user's."""
    if not _on_part.get():
        warn(message)


def parallel(n_jobs: int | None, tasks: Iterable[Any], require: str | None = None) -> list[Any]:
    """Results of tasks made with `joblib.delayed`, in threads; their warnings are given here.

    Parameters
    ----------
    n_jobs : int or None
    tasks : iterable of delayed calls
    require : str, optional
        As in `joblib.Parallel`.

    Examples
    --------
    >>> parallel(None, [delayed(pow)(2, k) for k in range(3)])
    [1, 2, 4]
    """
    return list(in_turn(n_jobs, tasks, require, "list"))


def in_turn(
    n_jobs: int | None, tasks: Iterable[Any], require: str | None = None, return_as: str = "generator"
) -> Iterator[Any]:
    """The results of `parallel` one after the other, each as soon as it is there."""
    here, run = place(), Parallel(n_jobs=n_jobs, prefer="threads", require=require, return_as=return_as)
    for result, told in run(delayed(collecting)(here, *task) for task in tasks):
        tell(told)
        yield result


def tell(told: Iterable[tuple[str, type[Warning]]]) -> None:
    """Give the warnings that were collected."""
    for message, category in told:
        warn(message, category)


def place() -> tuple[int, int]:
    """Which process and thread this is."""
    return os.getpid(), threading.get_ident()


def collecting(
    caller: tuple[int, int], function: Any, args: Any, kwargs: Any
) -> tuple[Any, list[tuple[str, type[Warning]]]]:
    """The result of a call and its warnings, which it gives itself where it runs in the caller's thread."""
    told: list[tuple[str, type[Warning]]] = []
    before = _waiting.set(_waiting.get() if place() == caller else told)
    try:
        return function(*args, **kwargs), told
    finally:
        _waiting.reset(before)


def _level() -> int:
    """`stacklevel` at which `warn` reaches the user; the outermost one where no line is the user's."""
    passed, level, frame = _passed(), 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(passed):
        level, frame = level + 1, frame.f_back
    return level


def _passed() -> tuple[str, ...]:
    """Beginnings of the names of the files that are passed over."""
    files = [getattr(sys.modules.get(name), "__file__", None) for name in (*PASSED, *MODULES)]
    known = [Path(file) for file in files if file]
    return tuple(str(file.parent) + os.sep if file.name == "__init__.py" else str(file) for file in known)
