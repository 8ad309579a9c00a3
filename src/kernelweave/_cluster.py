"""A Dask cluster: which one, what is sent to its workers, and answers that outlive them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any

INSTALL = (
    'a Dask cluster needs dask and distributed: pip install "kernelweave[dask]", or choose another gram, '
    "such as gram='auto'."
)
NO_CLIENT = (
    "gram='dask' found no Dask client: start one with `from dask.distributed import Client; Client()`, which "
    "uses the cores of this machine, or connect to a cluster with `Client('scheduler-address:8786')`."
)
INSIDE = (
    "gram='dask' inside a task of a Dask cluster would wait for the workers it keeps busy: the fits are "
    "spread over the workers already, so use gram='auto' for each of them."
)
CLOSED = (
    "the Dask client is closed, or its scheduler is gone, and with it what the workers held: start one with "
    "`from dask.distributed import Client; Client()`, or connect to a cluster with "
    "`Client('scheduler-address:8786')`, and fit again; a fit with `checkpoint=` resumes where it was."
)

#: how often one answer may be asked for before the workers are given up
ATTEMPTS = 5

#: seconds between looks at whether what an answer needs is still there, and of waiting for the first worker
POLL, PATIENCE = 5.0, 60.0

#: seconds between looks at whether the scheduler is still there, and for a client to find it again
GLANCE, RECONNECT = 0.5, 5.0

#: seconds that a worker which died gets to be replaced by its nanny
GRACE = 6.0

#: what Dask calls a future that is not to come any more
GONE = ("cancelled", "lost")

#: bytes from which an argument is sent once to every worker instead of with every task
LARGE = 1 << 20


def find_client() -> Any:
    """The current Dask client: the one of ``client.as_current()``, or the last one started.

    Raises
    ------
    ImportError
        Without distributed.
    RuntimeError
        Without a client, or inside a task that runs on a worker.

    Examples
    --------
    >>> find_client()  # doctest: +SKIP
    Traceback (most recent call last):
        ...
    RuntimeError: gram='dask' found no Dask client: start one with `from dask.distributed import Client; ...
    """
    try:
        from distributed import get_client, get_worker
    except ImportError as error:
        raise ImportError(INSTALL) from error
    with suppress(ValueError):
        get_worker()
        raise RuntimeError(INSIDE)
    try:
        return get_client()
    except ValueError as error:
        raise RuntimeError(NO_CLIENT) from error


class Cluster:
    """A client, and answers from workers that may die while they work.

    Dask computes lost results of tasks again, but not data that the client has sent: with its last
    copy gone, whatever depends on it is cancelled. So the client, which has the data anyway, keeps
    hold of them (`Sent`); when an answer is cancelled, those that are on no worker any more are
    sent again, the tasks that made something of them are submitted again (`Made`), and the question is
    asked again. Every task is a function of its arguments alone, so nothing is lost but time.

    Parameters
    ----------
    client : distributed.Client, optional
        The current one by default.
    """

    def __init__(self, client: Any = None) -> None:
        self.client = find_client() if client is None else client
        self.lock = threading.RLock()
        self.check_open()
        self.load: dict[str, float] = {}
        self.n_workers = len(self.threads())
        # data need not pass through the scheduler where all processes are on one machine
        from distributed import LocalCluster

        local = isinstance(getattr(self.client, "cluster", None), LocalCluster)
        self.direct = True if local else None

    def check_open(self) -> None:
        """Raise unless the client has a scheduler; one that it lost sight of may come back in a moment."""
        end = time.monotonic() + RECONNECT
        while self.client.status == "connecting" and time.monotonic() < end:
            time.sleep(0.05)
        if self.client.status != "running":
            raise RuntimeError(CLOSED)

    def ask(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """The answer of a function of the client, which may wait for minutes when the scheduler is gone."""
        self.check_open()
        answer: Future[Any] = Future()

        def work() -> None:
            try:
                with self.client.as_current():  # a thread has no client of its own
                    answer.set_result(function(*args, **options))
            except BaseException as error:
                answer.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        while not _done(answer, GLANCE):
            self.check_open()
        if answer.exception() is not None:
            self.check_open()  # whatever a closed client says, that is the reason
        return answer.result()

    def threads(self) -> dict[str, int]:
        """Threads of every worker; waits for the first one."""
        found = dict(self.ask(self.client.nthreads))
        if not found:
            with suppress(TimeoutError):
                self.ask(self.client.wait_for_workers, 1, timeout=PATIENCE)
            found = dict(self.ask(self.client.nthreads))
        if not found:
            raise RuntimeError(
                f"the Dask cluster has had no workers for {PATIENCE:.0f} s: start some, as `Client()` does."
            )
        return found

    def memory_limits(self) -> dict[str, int | None]:
        """Bytes every worker may take; None where there is no limit."""
        workers = self.ask(self.client.scheduler_info, n_workers=-1)["workers"]
        return {address: worker["memory_limit"] or None for address, worker in workers.items()}

    def submit(self, function: Callable[..., Any], *args: Any, near: str | None = None) -> Any:
        """A task on a worker, or on any other one if that is gone."""
        where = {} if near is None else {"workers": [near], "allow_other_workers": True}
        self.check_open()
        return self.client.submit(function, *args, pure=False, **where)

    def send(self, value: Any, worker: str | None = None) -> Any:
        """A value on one worker, or on every one of them."""
        where: dict[str, Any] = {"broadcast": True} if worker is None else {"workers": [worker]}
        try:
            return self.ask(self.client.scatter, value, hash=False, direct=self.direct, **where)
        except (OSError, ValueError, KeyError) as error:  # the worker left in between
            from distributed import CancelledError

            raise CancelledError(str(error)) from error

    def argument(self, value: Any) -> Any:
        """An argument for many tasks: itself if it is small, else sent to every worker."""
        return self.send(value) if _large(value) else value

    def argument_for(self, value: Any, made: Made) -> Any:
        """An argument for a task on something made: itself if it is small, else sent to its worker."""
        return self.send(value, made.root.place()) if _large(value) else value

    def tree(self, function: Callable[[Any, Any], Any], futures: list[Any]) -> Any:
        """Results joined two by two on the workers, in an order that depends on their number alone."""
        while len(futures) > 1:
            pairs = [self.submit(function, *futures[k : k + 2]) for k in range(0, len(futures) - 1, 2)]
            futures = pairs + futures[2 * len(pairs) :]
        return futures[0]

    def answers(self, ask: Callable[[], list[Any]], needs: Sequence[Sent]) -> list[Any]:
        """Results of the futures that `ask` submits, asked again for as long as workers die meanwhile.

        Parameters
        ----------
        ask : callable
            Submits tasks again whenever it is called; they may depend on `needs` and what was made of them.
        needs : list of Sent
        """
        from distributed import CancelledError, KilledWorker
        from distributed.comm.core import CommClosedError

        for _ in range(ATTEMPTS):
            try:
                return self._results(ask(), needs)
            except KilledWorker as error:
                raise RuntimeError(_too_many(str(error))) from error
            except (CancelledError, CommClosedError) as error:
                self.check_open()
                last = error
                self._renew(needs)
        raise RuntimeError(_too_many(str(last))) from last

    def _results(self, futures: list[Any], needs: Sequence[Sent]) -> list[Any]:
        from distributed import CancelledError, wait

        pending = set(futures)
        while pending:
            try:
                pending = self.ask(wait, pending, timeout=POLL).not_done
            except TimeoutError:
                if self._lost(needs):  # and the scheduler has not said so
                    raise CancelledError("data were lost with a worker") from None
        return list(self.ask(self.client.gather, futures, direct=self.direct))

    def _lost(self, needs: Sequence[Sent]) -> list[Sent]:
        """Data that are on no worker."""
        sent_out = [sent for sent in needs if sent.known is not None]
        known = [sent.known for sent in sent_out if sent.known.status not in GONE and not sent.comes_back]
        there = self.ask(self.client.who_has, known) if known else {}
        return [
            sent
            for sent in sent_out
            if sent.known.status in GONE or not (sent.comes_back or there.get(sent.known.key))
        ]

    def _renew(self, needs: Sequence[Sent]) -> None:
        """Forget data that are on no worker any more; they are sent again when they are next asked for."""
        with self.lock:
            lost = self._lost(needs)
            if not lost:
                return
            if any(sent.nanny for sent in lost):
                with suppress(TimeoutError):
                    self.ask(self.client.wait_for_workers, self.n_workers, timeout=GRACE)
            for sent in lost:
                sent.forget()


class Sent:
    """Data of the client on one worker, sent when first asked for and again when lost.

    Parameters
    ----------
    cluster : Cluster
    value : object
    worker : str
        Where to send it; if that worker is gone, the one with the least to do.
    load : float
        What this worker has to do for it, in any unit.
    """

    #: whether Dask makes it again by itself
    comes_back = False

    def __init__(self, cluster: Cluster, value: Any, worker: str, load: float = 1.0) -> None:
        self.cluster, self.value, self.worker, self.load = cluster, value, worker, load
        self.known: Any = None
        self.nanny = False
        self.generation = 0
        cluster.load[worker] = cluster.load.get(worker, 0.0) + load

    @property
    def future(self) -> Any:
        """Where the data are."""
        with self.cluster.lock:
            if self.known is None:
                self.known = self._put(self._living_worker())
            return self.known

    def place(self) -> str:
        """The worker that has the data, as far as is known."""
        return self.worker

    def _put(self, worker: str) -> Any:
        return self.cluster.send(self.value, worker)

    def forget(self) -> None:
        """The data are on no worker any more."""
        self.known, self.generation = None, self.generation + 1

    def _living_worker(self) -> str:
        load, living = self.cluster.load, self.cluster.threads()
        if self.worker not in living:
            load.pop(self.worker, None)
            self.worker = min(living, key=lambda address: load.get(address, 0.0) / living[address])
            load[self.worker] = load.get(self.worker, 0.0) + self.load
        known = self.cluster.ask(self.cluster.client.scheduler_info, n_workers=-1)["workers"]
        info = known.get(self.worker, {})
        self.nanny = bool(info.get("nanny"))
        return self.worker


class Loaded(Sent):
    """What a graph of Dask makes on one worker, such as partitions of an array; made again by Dask when lost.

    Parameters
    ----------
    cluster : Cluster
    value : dask.delayed.Delayed
    worker : str
    load : float
    """

    comes_back = True

    def place(self) -> str:
        """A worker that lives: Dask does not say where it makes lost data again."""
        with self.cluster.lock:
            return self._living_worker()

    def _put(self, worker: str) -> Any:
        self.cluster.check_open()
        return self.cluster.client.compute(self.value, workers=[worker], allow_other_workers=True)


class Made:
    """What a task has made of something sent, on the same worker; made again when that was sent again.

    Parameters
    ----------
    source : Sent or Made
    function : callable
        Called on the worker as function(source, *args).
    *args
    """

    def __init__(self, source: Sent | Made, function: Callable[..., Any], *args: Any) -> None:
        self.source, self.function, self.args = source, function, args
        self.cluster: Cluster = source.cluster
        self._known: Any = None
        self._held: list[Any] = []
        self._generation = -1

    @property
    def root(self) -> Sent:
        """The data at the beginning."""
        return self.source if isinstance(self.source, Sent) else self.source.root

    @property
    def worker(self) -> str:
        """Where it is, or was last."""
        return self.root.worker

    @property
    def future(self) -> Any:
        """The task."""
        with self.cluster.lock:
            origin = self.source.future  # sends what has been lost
            gone = self._known is None or self._known.status in GONE
            if gone or self._generation != self.root.generation:
                # held, so that Dask can make it again as long as a copy is left
                self._held = [self.cluster.argument(value) for value in self.args]
                self._known = self.cluster.submit(self.function, origin, *self._held, near=self.worker)
                self._generation = self.root.generation
            return self._known


def _done(answer: Future[Any], seconds: float) -> bool:
    """Whether an answer is there, or comes within that many seconds."""
    wait([answer], timeout=seconds)
    return answer.done()


def _large(value: Any) -> bool:
    return not isinstance(value, type) and getattr(value, "nbytes", 0) > LARGE


def _too_many(what: str) -> str:
    return (
        f"workers of the Dask cluster died again and again while they computed the same thing ({what}): they "
        "may be short of memory; start fewer of them with more memory each, or pass a smaller memory_limit."
    )
