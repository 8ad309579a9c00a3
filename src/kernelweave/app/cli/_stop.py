"""Ctrl-C: during a fit the first keeps the model so far and the second quits; elsewhere the first does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

from ._errors import Quit, StoppedError
from ._monitor import Monitor


class Brake:
    """Hears Ctrl-C while an estimator is fitted.

    Before any machine is trained there is nothing to keep, and KeyboardInterrupt is raised. After
    that the solver is asked to stop, which it does at the end of its machine, with its best
    iterate; models that were not begun get one machine each. A second Ctrl-C raises `Quit`.

    Parameters
    ----------
    monitor : Monitor
        Is told of every machine.
    tol : float
        What the solver was asked for.
    """

    def __init__(self, monitor: Monitor, tol: float) -> None:
        self.monitor, self.tol = monitor, tol
        self.asked, self.n_machines = False, 0
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._heard)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def __call__(self, title: str, iteration: int, state: Any) -> bool:
        """The listener of an estimator: whether to stop."""
        self.n_machines += 1
        self.monitor.machine(title, iteration, state, self.tol)
        return self.asked

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise Quit
        self.asked = True
        if self.n_machines == 0:
            raise KeyboardInterrupt
        self.monitor.warn("stopping after this machine; Ctrl-C again quits at once")


@contextmanager
def stopping_with(message: str) -> Iterator[None]:
    """Let Ctrl-C end what happens inside with `message`.

    A solver takes KeyboardInterrupt for a request to finish early, and a search would go on with
    its next fit; `Quit` ends all of it.
    """

    def heard(number: int, frame: FrameType | None) -> None:
        raise Quit

    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, heard) if in_main else None
    try:
        yield
    except Quit:
        raise StoppedError(message) from None
    finally:
        if in_main:
            signal.signal(signal.SIGINT, before)
