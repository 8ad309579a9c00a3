"""What a long command is doing, shown on stderr, and what Ctrl-C does to it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table

from ._console import Quit, StoppedError

#: seconds between plain lines, where stderr is no terminal
EVERY = 10.0

#: frames per second on a terminal
FRAMES = 5

BAR = 24


class Monitor:
    """Stage, step, gap and time of a command, drawn by a thread of its own.

    On a terminal one line is redrawn all the time; elsewhere a plain line is printed when a stage
    begins, and every ten seconds after that.

    Parameters
    ----------
    quiet : bool, default=False
        Show nothing.
    console : rich Console, optional
        Where to draw; stderr by default.
    """

    def __init__(self, quiet: bool = False, console: Console | None = None) -> None:
        self.quiet, self.console = quiet, console or Console(stderr=True)
        self.title, self.detail, self.warning = "", "", ""
        self.share: float | None = None
        self.started = self.stage_started = time.monotonic()
        self._first_gap: float | None = None
        self._live: Live | None = None
        self._ended = threading.Event()
        self._spinner = Spinner("dots")

    def __enter__(self) -> Self:
        if self.quiet:
            return self
        if self.console.is_terminal:
            options: dict[str, Any] = {"refresh_per_second": FRAMES, "transient": True}
            self._live = Live(console=self.console, get_renderable=self._row, **options)
            self._live.start()
        else:
            threading.Thread(target=self._print_lines, daemon=True).start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._end_stage()
        self._ended.set()
        if self._live is not None:
            self._live.stop()

    # -- what is going on ---------------------------------------------------------------------

    def stage(self, title: str) -> None:
        """A new stage begins."""
        self._end_stage()
        self.title, self.detail, self.share = title, "", None
        self.stage_started, self._first_gap = time.monotonic(), None
        if not self.quiet and self._live is None:
            self._print()

    def part(self, detail: str, share: float | None = None) -> None:
        """Where the stage stands: in words, and as a share of the whole if known."""
        self.detail, self.share = detail, share

    def step(self, title: str, iteration: int, state: Any, tol: float) -> None:
        """A step was taken: how far its certificate is from what is asked for."""
        name, value = progress_of(state)
        label = "" if title in ("fit", "path") else f"{title}, "
        self.detail = f"{label}step {iteration + 1}"
        if value is not None:
            self.detail += f", {name} {value:.1e} (tol {tol:.0e})"
            self._first_gap = max(self._first_gap or value, value)
            self.share = closed(self._first_gap, value, tol)

    def warn(self, message: str) -> None:
        """Something to show until the end, such as that Ctrl-C was heard."""
        self.warning = message
        if not self.quiet and self._live is None:
            self._print()

    # -- drawing ------------------------------------------------------------------------------

    def _end_stage(self) -> None:
        if self.title and self._live is not None:
            took = time.monotonic() - self.stage_started
            self._live.console.print(
                f"  {self.title} [{took:.1f} s]", style="dim", markup=False, highlight=False
            )
        self.title = ""

    def _row(self) -> Table:
        row = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=1.0, completed=self.share or 0.0, width=BAR, pulse=self.share is None)
        row.add_row(self._spinner, bar, self._line())
        return row

    def _line(self) -> str:
        took = time.monotonic() - self.stage_started
        parts = [self.title, self.detail, f"{took:.0f} s", self.warning]
        return " · ".join(part for part in parts if part).replace("[", "\\[")

    def _print(self) -> None:
        self.console.print(self._line().replace("\\[", "["), markup=False, highlight=False, soft_wrap=True)

    def _print_lines(self) -> None:
        while not self._ended.wait(EVERY):
            if self.title:
                self._print()


def progress_of(state: Any) -> tuple[str, float | None]:
    """What has to fall below the tolerance, and its value; None where a state has no such thing."""
    proof = getattr(state, "certificate", None)
    if proof is not None and np.isfinite(proof.gap):
        return "gap", float(proof.gap)
    for name in ("residual", "stationarity"):
        if isinstance(getattr(state, name, None), float):
            return "residual", float(getattr(state, name))
    values = getattr(state, "history", {}).get("stationarity", [])
    return "residual", float(values[-1]) if len(values) else None


def closed(first: float, now: float, tol: float) -> float | None:
    """How much of the way from the first gap to `tol` is behind, in orders of magnitude.

    Examples
    --------
    >>> closed(1.0, 0.1, 0.01)
    0.5
    """
    if not (0 < tol < first < np.inf and now > 0):
        return None
    return float(np.clip(np.log(first / now) / np.log(first / tol), 0.0, 1.0))


# -- Ctrl-C -------------------------------------------------------------------------------------------


class Brake:
    """The listener of an estimator while it is fitted: shows its steps, and hears Ctrl-C.

    Before the first step there is nothing to keep, and KeyboardInterrupt is raised. After that the solver is
    asked to stop, which it does at the end of its step, with its best iterate; models that were not begun get
    one step each. A second Ctrl-C raises `Quit`.

    Parameters
    ----------
    monitor : Monitor
        Is told of every step.
    tol : float
        What the solver was asked for.
    """

    def __init__(self, monitor: Monitor, tol: float) -> None:
        self.monitor, self.tol = monitor, tol
        self.asked, self.n_machines = False, 0

    def __call__(self, title: str, iteration: int, state: Any) -> bool:
        """Whether to stop."""
        self.n_machines += 1
        self.monitor.step(title, iteration, state, self.tol)
        return self.asked

    def heard(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-C."""
        if self.asked:
            raise Quit
        self.asked = True
        if self.n_machines == 0:
            raise KeyboardInterrupt
        self.monitor.warn("stopping after this step; Ctrl-C again quits at once")


@contextmanager
def on_ctrl_c(heard: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let Ctrl-C call `heard`; threads other than the main one hear nothing."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, heard) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, before)


@contextmanager
def stopping_with(message: str) -> Iterator[None]:
    """Let Ctrl-C end what happens inside with `message`.

    A solver takes KeyboardInterrupt for a request to finish early, and a search would continue with
    its next fit; `Quit` ends all of it.
    """

    def heard(number: int, frame: FrameType | None) -> None:
        raise Quit

    try:
        with on_ctrl_c(heard):
            yield
    except Quit:
        raise StoppedError(message) from None
