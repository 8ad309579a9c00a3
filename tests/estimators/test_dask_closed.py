"""A Dask client that is closed, or whose scheduler is gone: one error that says so, soon."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernelweave as kw
from kernelweave import _cluster
from kernelweave.kernels import RBF, Linear

distributed = pytest.importorskip("distributed", reason="needs dask and distributed: kernelweave[dask]")

from kernelweave.dask import DaskGram  # noqa: E402

KERNELS = [RBF(0.05), RBF(0.5), RBF(2.0), Linear()]

#: what Dask itself would wait for a scheduler, in seconds
PATIENCE_OF_DASK = 30

pytestmark = pytest.mark.system

#: a scheduler and a worker in a process that can be killed; its first line is the address
SERVER = """
import sys
from distributed import LocalCluster

if __name__ == "__main__":
    options = {"processes": False, "dashboard_address": ":0", "memory_limit": None, "protocol": "tcp://"}
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, **options)
    print(cluster.scheduler_address, flush=True)
    sys.stdin.readline()
"""


class Server:
    """A process with a scheduler and a worker."""

    def __init__(self) -> None:
        source = str(Path(kw.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": source, "PYTHONWARNINGS": "ignore"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([sys.executable, "-c", SERVER], env=environment, text=True, **pipes)
        self.address = self.process.stdout.readline().strip()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def servers() -> Iterator[list[Server]]:
    """The last one may be alive; a test that kills it makes the next one start another."""
    started: list[Server] = []
    yield started
    for server in started:
        server.kill()


class Pair:
    """A client and its scheduler."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.client = distributed.Client(server.address, set_as_default=False)

    def close_client(self) -> None:
        self.client.close()

    def close_scheduler(self) -> None:
        self.server.kill()


@pytest.fixture
def pair(servers: list[Server], monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """Alive; what Dask logs about the end of its scheduler is not ours to test."""
    monkeypatch.setattr(_cluster, "RECONNECT", 1.0)
    if not servers or not servers[-1].alive:
        servers.append(Server())
    logger = logging.getLogger("distributed")
    before, logger.level = logger.level, logging.CRITICAL + 1
    pair = Pair(servers[-1])
    yield pair
    with suppress(TimeoutError):
        pair.client.close(timeout=2)
    logger.setLevel(before)


ENDS = ["close_client", "close_scheduler"]


def check_clear(act: Callable[[], Any]) -> None:
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="the Dask client is closed, or its scheduler is gone") as caught:
        act()
    assert "Client()" in str(caught.value)
    assert time.monotonic() - began < PATIENCE_OF_DASK / 2


@pytest.mark.parametrize("end", ENDS)
def test_before_the_fit(end: str, pair: Pair, binary: Any) -> None:
    getattr(pair, end)()
    check_clear(lambda: DaskGram([np.eye(3)], client=pair.client))
    with pair.client.as_current():
        check_clear(lambda: kw.MKLClassifier(KERNELS, gram="dask").fit(binary.X, binary.y))
        low_rank = kw.MKLClassifier(KERNELS, gram="dask", approximation="nystroem", rank=10)
        check_clear(lambda: low_rank.fit(binary.X, binary.y))


@pytest.mark.parametrize("end", ENDS)
def test_in_the_middle_of_a_fit(end: str, pair: Pair, binary: Any) -> None:
    model = kw.MKLClassifier(KERNELS, gram="dask", regularizer=kw.LpNorm(p=1.1), tol=1e-12)
    machines = 0

    def listener(title: str, iteration: int, state: Any) -> bool:
        nonlocal machines
        machines += 1
        if machines == 2:
            getattr(pair, end)()
        return False

    model._listener = listener
    with pair.client.as_current():
        check_clear(lambda: model.fit(binary.X, binary.y))
    assert machines == 2
    assert not hasattr(model, "weights_")


@pytest.mark.parametrize("end", ENDS)
def test_an_engine_that_outlives_its_cluster(end: str, pair: Pair) -> None:
    gram = DaskGram([np.eye(3), np.ones((3, 3))], client=pair.client)
    np.testing.assert_allclose(gram.quad(np.ones(3)), [3.0, 9.0])
    getattr(pair, end)()
    check_clear(lambda: gram.quad(np.ones(3)))
    check_clear(lambda: gram.combine(np.ones(2)))


def test_while_an_answer_is_waited_for(pair: Pair) -> None:
    """The task runs on, the client is closed by someone else: the wait ends."""
    import threading

    cluster = _cluster.Cluster(pair.client)
    threading.Timer(0.5, pair.close_client).start()
    check_clear(lambda: cluster.answers(lambda: [cluster.submit(time.sleep, 3)], []))
