"""Gram matrices on the workers of a real Dask cluster: the same numbers, within memory, whoever dies."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

from kernelweave import _cluster
from kernelweave.gram import DenseGram, FeatureSource
from kernelweave.gram.blocks import Blocks
from kernelweave.gram.dask import share as worker_side
from kernelweave.gram.dask.engine import deal
from kernelweave.gram.dask.share import Recipe, Share, lower_of, make_share, square_of
from kernelweave.gram.dictionary import Dictionary
from kernelweave.kernels import RBF, FunctionKernel, Linear, Polynomial

distributed = pytest.importorskip("distributed", reason="needs dask and distributed: kernelweave[dask]")

from kernelweave.dask import DaskGram, find_client  # noqa: E402

pytestmark = pytest.mark.system

N, M = 40, 9
EXACT = {"rtol": 1e-10, "atol": 1e-10}


@pytest.fixture(scope="module")
def client(dask_workers):
    """Two worker processes of two threads, watched by nannies."""
    with distributed.Client(dask_workers) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture
def pair(client, matrices, rng):
    """The same matrices on the workers and here, and weights, those of two kernels zero."""
    raw, scales = list(matrices(N, M)), rng.uniform(0.1, 3.0, size=M)
    weights = rng.gamma(1.0, size=M)
    weights[[1, 4]] = 0.0
    return DaskGram(raw, scales), DenseGram(raw, scales), weights


def kill_a_worker(client) -> None:
    """SIGKILL, which no process can see coming."""
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


def assert_same(remote, local, weights, rng) -> None:
    """Every method of the interface."""
    n = local.n_samples
    alpha, A = rng.normal(size=(n, 2)), rng.normal(size=(n, n))
    some, rows = np.array([local.n_kernels - 1, 0]), rng.permutation(n)[:3]
    each = np.vstack([weights, np.eye(local.n_kernels)[-1]])
    lists = [rows, None]
    pairs = [
        (gram.combine(weights), gram.dot(weights, alpha), gram.dot(weights, alpha[:, 0], rows),
         gram.products(alpha[:, 0], some, rows), *gram.products_each(alpha, None, lists),
         *gram.combine_each(each), *gram.dot_each(each, alpha, lists), gram.quad_each(alpha),
         gram.quad(alpha), gram.quad(alpha[:, 0], some),
         gram.inner(A + A.T), gram.rows(rows, weights), gram.diag(weights))
        for gram in (remote, local)
    ]  # fmt: skip
    for got, expected in zip(*pairs, strict=True):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, **EXACT)


def test_every_method_equals_the_dense_engine(pair, rng):
    remote, local, weights = pair
    assert (remote.n_samples, remote.n_kernels) == (N, M)
    assert_same(remote, local, weights, rng)
    K = remote.combine(weights)
    np.testing.assert_array_equal(K, K.T)
    assert remote.n_passes > 0


def test_no_weight_asks_nobody(pair):
    remote, _, weights = pair
    zero, nothing = 0.0 * weights, np.empty(0, dtype=int)
    np.testing.assert_array_equal(remote.combine(zero), np.zeros((N, N)))
    np.testing.assert_array_equal(remote.dot(zero, np.ones((N, 2)), nothing), np.zeros((0, 2)))
    np.testing.assert_array_equal(remote.rows(nothing, zero), np.zeros((0, N)))
    assert remote.n_passes == 0


def test_subsets_of_subsets(pair, rng):
    remote, local, weights = pair
    samples, kernels = rng.permutation(N)[:25], rng.permutation(M)[:5]
    for first, second in [((samples, None), (None, kernels)), ((None, kernels), (samples, None))]:
        parts = [gram.subset(*first).subset(*second) for gram in (remote, local)]
        assert_same(*parts, weights[kernels], rng)


def test_kernels_are_spread_over_all_threads(pair, client):
    remote, _, _ = pair
    assert sorted(remote.workers) == sorted(client.nthreads())
    assert [len(piece.kernels) for piece in remote.pieces] == [3, 2, 2, 2]
    assert remote.describe() == "9 kernels on 2 workers, 9 as matrices in memory"


@pytest.mark.parametrize("normalize", ["variance", "dimension", "spherical", "center", None])
def test_workers_normalise_as_the_host_does(client, normalize, rng):
    X, weight = rng.normal(size=(30, 4)), rng.uniform(0.5, 2.0, size=30)
    kernels = [RBF(0.3), RBF(2.0), Linear(columns=[0]), Polynomial(2), FunctionKernel(lambda A, B: A @ B.T)]
    constant = FunctionKernel(lambda A, B: np.ones((len(A), len(B))))
    named = [(f"k{m}", kernel) for m, kernel in enumerate([constant, *kernels])]
    found = []
    for gram in ("dense", "dask"):
        source = FeatureSource(named, X, weight)
        dead = pytest.warns(UserWarning, match="without variance on the training samples get weight 0: k0")
        with nullcontext() if normalize is None else dead:
            found.append(Dictionary(source, normalize, weight, gram=gram))
    local, remote = found
    np.testing.assert_array_equal(remote.live, local.live)
    assert_same(remote.gram, local.gram, rng.gamma(1.0, size=len(local.live)), rng)
    alpha, weights = rng.normal(size=(30, 1)), rng.uniform(size=(1, 6))
    new = rng.normal(size=(7, 4))
    values = [
        d.predictor(d.all_weights(weights[:, : len(d.live)]), alpha, np.zeros(alpha.shape[1]))(new)
        for d in found
    ]
    np.testing.assert_allclose(*values, **EXACT)


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(pair, client, rng):
    remote, local, weights = pair
    part = [gram.subset(np.arange(0, N, 2)) for gram in (remote, local)]
    assert_same(*part, weights, rng)
    before = set(remote.workers)
    kill_a_worker(client)
    assert_same(remote, local, weights, rng)
    assert_same(*part, weights, rng)
    assert set(remote.workers) != before  # the nanny's new process has its kernels
    assert len(remote.workers) == 2


@pytest.mark.slow
def test_survivors_take_over_when_nobody_comes_back(pair, client, monkeypatch, rng):
    remote, local, weights = pair
    monkeypatch.setattr(_cluster, "GRACE", 0.0)
    client.wait_for_workers(2, timeout=30)
    kill_a_worker(client)
    assert_same(remote, local, weights, rng)
    assert sum(remote.workers.values()) == M
    client.wait_for_workers(2, timeout=30)


def test_large_arguments_are_sent_once(pair, monkeypatch, rng):
    remote, local, weights = pair
    monkeypatch.setattr(_cluster, "LARGE", 8)
    assert_same(remote, local, weights, rng)


def test_a_share_travels_without_its_matrices(rng):
    X = rng.normal(size=(200, 3))
    blocks = Blocks.of_kernels([RBF(0.5).fit(X), RBF(1.0).fit(X)], X)
    share = make_share(blocks, np.arange(2), Recipe("variance", np.ones(200)))
    sent = pickle.dumps(share)
    assert len(sent) < share.gram.nbytes / 10 < share.__sizeof__()
    weights = np.array([0.3, 0.7])
    np.testing.assert_allclose(pickle.loads(sent).gram.combine(weights), share.gram.combine(weights))


@pytest.mark.parametrize(
    ("limit", "crowd", "engine"), [(10**9, 1, "packed"), (6_000_000, 2, "cached"), (2_200_000, 1, "blocked")]
)
def test_a_share_takes_no_more_than_its_worker_has(monkeypatch, rng, limit, crowd, engine):
    monkeypatch.setattr(worker_side, "worker_memory", lambda: (limit, 0))
    X = rng.normal(size=(150, 3))
    blocks = Blocks.of_kernels([RBF(gamma).fit(X) for gamma in np.geomspace(0.01, 10, 50)], X)
    assert Share(blocks, np.ones(50), Recipe(crowd=crowd), []).gram.name == engine


def test_a_worker_with_no_room_at_all_says_so(monkeypatch, rng):
    monkeypatch.setattr(worker_side, "worker_memory", lambda: (10**6, 0))
    X = rng.normal(size=(300, 3))
    with pytest.raises(
        MemoryError, match="50 kernels on 300 samples on one worker need more than the 750 KB"
    ):
        _ = Share(Blocks.of_kernels([RBF().fit(X)] * 50, X), np.ones(50), Recipe(), []).gram


def test_matrices_that_no_worker_can_hold_are_not_sent(client, monkeypatch):
    monkeypatch.setattr(_cluster.Cluster, "memory_limits", lambda self: dict.fromkeys(self.threads(), 10_000))
    with pytest.raises(
        MemoryError, match="of precomputed matrices, and its memory limit is 10 KB: start more workers"
    ):
        DaskGram([np.eye(30)] * 4)


def test_triangles(matrices):
    K = matrices(17, 1)[0]
    np.testing.assert_array_equal(square_of(lower_of(K), 17), K)


def test_kernels_that_share_a_base_stay_together(rng):
    X = rng.normal(size=(10, 8))
    kernels = [RBF(gamma, columns=[c]).fit(X) for c in range(4) for gamma in (0.1, 1.0, 10.0)]
    groups = deal(Blocks.of_kernels(kernels, X), 2)
    assert sorted(np.concatenate(groups)) == list(range(12))
    assert all(len({m // 3 for m in group}) == 2 for group in groups)
    alike = Blocks.of_kernels([RBF(gamma).fit(X) for gamma in np.geomspace(0.1, 1, 10)], X)
    assert sorted(len(group) for group in deal(alike, 4)) == [2, 2, 3, 3]


@contextmanager
def no_client():
    """As in a process that has started none."""
    from distributed.client import _current_client, _global_clients

    others, token = dict(_global_clients), _current_client.set(None)
    _global_clients.clear()
    try:
        yield
    finally:
        _current_client.reset(token)
        _global_clients.update(others)


def test_without_a_client():
    with (
        no_client(),
        pytest.raises(RuntimeError, match=r"start one with `from dask.distributed import Client"),
    ):
        find_client()


def test_without_distributed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r'pip install "kernelweave\[dask\]"'):
        find_client()


def test_inside_a_task(client):
    with pytest.raises(RuntimeError, match="inside a task of a Dask cluster"):
        client.submit(find_client, pure=False).result()


def peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.slow
def test_workers_stay_within_their_memory():
    limit = 700_000_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 10))
    named = [(str(m), RBF(0.1 + m / 50, columns=[m % 10, (3 * m + 1) % 10])) for m in range(200)]
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=limit
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        local, remote = (
            Dictionary(FeatureSource(named, X), "variance", gram=gram).gram for gram in ("blocked", "dask")
        )
        assert set(remote.engines) & {"cached", "blocked"}  # 900 MB of triangles a worker
        weights, alpha = rng.gamma(1.0, size=200), rng.normal(size=1500)
        np.testing.assert_allclose(remote.combine(weights), local.combine(weights), **EXACT)
        np.testing.assert_allclose(remote.quad(alpha), local.quad(alpha), rtol=1e-8)
        assert all(0 < peak < limit for peak in client.run(peak_memory).values())


@pytest.mark.slow
def test_killed_again_and_again_while_computing(client, rng):
    X = rng.normal(size=(900, 6))
    named = [(str(m), RBF(0.1 + m / 20, columns=[m % 6])) for m in range(60)]
    local, remote = (Dictionary(FeatureSource(named, X), "center", gram=g).gram for g in ("packed", "dask"))
    weights = rng.gamma(1.0, size=60)
    expected = local.combine(weights)
    for pause in (0.0, 0.05, 0.2):
        client.wait_for_workers(2, timeout=30)
        victim = next(iter(client.run(os.getpid).values()))
        killer = threading.Timer(pause, os.kill, (victim, signal.SIGKILL))
        killer.start()
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            np.testing.assert_allclose(remote.combine(weights), expected, **EXACT)
        killer.join()


@pytest.mark.slow
def test_workers_without_nannies(matrices, rng):
    """Nobody starts them again: the one that is left does all the work."""
    raw, weights = list(matrices(N, M)), rng.gamma(1.0, size=M)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        command = [sys.executable, "-m", "dask", "worker", cluster.scheduler_address]
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--death-timeout", "60"]
        workers = [subprocess.Popen(command + options, stderr=subprocess.DEVNULL) for _ in range(2)]
        try:
            client.wait_for_workers(2, timeout=60)
            remote, local = DaskGram(raw), DenseGram(raw)
            assert len(remote.workers) == 2
            workers[0].kill()
            assert_same(remote, local, weights, rng)
            assert list(remote.workers.values()) == [M]
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
