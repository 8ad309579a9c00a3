"""Factors with their rows on Dask workers: every product equals that of factors in memory."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from kernelweave import _cluster
from kernelweave.gram import FeatureSource
from kernelweave.gram.lowrank.dictionary import LowRankDictionary, diagonal_sums
from kernelweave.gram.lowrank.factors import Scatter
from kernelweave.kernels import RBF, Linear, Polynomial

distributed = pytest.importorskip("distributed", reason="needs dask and distributed: kernelweave[dask]")
da = pytest.importorskip("dask.array")

from kernelweave.gram.dask.low_rank import DaskLowRankDictionary  # noqa: E402
from kernelweave.gram.dask.row_share import RowConstants, Rows, make_rows, merge, moments_of  # noqa: E402
from kernelweave.gram.dask.table import DaskTable  # noqa: E402

pytestmark = pytest.mark.system

EXACT = {"rtol": 1e-9, "atol": 1e-10}
KERNELS = [RBF(0.3), Linear(), RBF(1.0, columns=[0, 1]), Polynomial(2, columns=[1, 2])]


@pytest.fixture(scope="module")
def client():
    """A real scheduler and three workers, in threads of this process.

    Without a limit of memory: they would count all that this process has taken, and pause.
    """
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=False, dashboard_address=":0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def both(X, normalize="variance", weight=None, **options):
    """The same factors here and on the workers."""
    found = []
    for cls in (LowRankDictionary, DaskLowRankDictionary):
        source = FeatureSource([(f"k{m}", kernel) for m, kernel in enumerate(KERNELS)], X, weight)
        found.append(cls(source, "nystroem", 12, normalize, weight, random_state=0, **options))
    return found


def assert_same(local, remote, rng) -> None:
    """Every method of the interface."""
    n, kernels = local.n_samples, [3, 0]
    assert (remote.n_samples, remote.ranks) == (n, local.ranks)
    columns = {m: rng.normal(size=(local.ranks[m], 2)) for m in kernels}
    A, rows, w = rng.normal(size=(n, 2)), rng.permutation(n)[: n // 2], rng.uniform(size=n // 2)
    scales = rng.uniform(0.5, 2.0, size=sum(local.ranks[m] for m in kernels))
    np.testing.assert_allclose(remote.apply(columns), local.apply(columns), **EXACT)
    for got, expected in zip(remote.adjoint(A, kernels), local.adjoint(A, kernels), strict=True):
        np.testing.assert_allclose(got, expected, **EXACT)
    np.testing.assert_allclose(remote.squares(kernels), local.squares(kernels), **EXACT)
    np.testing.assert_allclose(remote.rows(rows, kernels), local.rows(rows, kernels), **EXACT)
    for centred in (False, True):
        got, expected = (f.scatter(rows, w, kernels, scales, centred) for f in (remote, local))
        np.testing.assert_allclose(got.matrix, expected.matrix, **EXACT)
        assert got.weight == pytest.approx(expected.weight)
        if centred:
            np.testing.assert_allclose(got.mean, expected.mean, **EXACT)


@pytest.mark.parametrize("normalize", ["variance", "dimension", "center", "spherical"])
def test_every_product_and_constant(client, normalize, rng):
    X, weight = rng.normal(size=(91, 3)), rng.uniform(0.5, 2.0, size=91)
    local, remote = both(X, normalize, weight)
    assert_same(local.gram.factors, remote.gram.factors, rng)
    np.testing.assert_allclose(remote.gram.scales, local.gram.scales, rtol=1e-10)
    for one, other in zip(remote.features, local.features, strict=True):
        assert (one.error, one.size) == pytest.approx((other.error, other.size), abs=1e-12)
    assert not remote.gram.portable
    assert "rows on 3 workers of Dask: factors of" in remote.gram_reason


def test_subsets_of_subsets_in_any_order(client, rng):
    local, remote = both(rng.normal(size=(60, 3)))
    for samples in (np.arange(0, 60, 2), rng.permutation(60)[:40]):
        parts = [d.gram.factors.take(samples, [3, 2, 1, 0]) for d in (local, remote)]
        assert_same(*parts, rng)
        again = rng.permutation(len(samples))[:20]
        assert_same(*(part.take(again, [0, 1, 2, 3]) for part in parts), rng)


@pytest.mark.parametrize("kind", ["sparse", "frame", "memmap", "dask", "unknown chunks"])
def test_every_container(client, kind, rng, tmp_path):
    X = rng.normal(size=(70, 3))
    plain, _ = both(X)
    np.save(tmp_path / "X.npy", X)
    chunked = da.from_array(X, chunks=(13, 2))
    given = {
        "sparse": sparse.csr_array(X),
        "memmap": np.load(tmp_path / "X.npy", mmap_mode="r"),
        "dask": DaskTable(chunked),
        "unknown chunks": DaskTable(da.concatenate([chunked, chunked])[da.arange(140, chunks=13) < 70]),
    }.get(kind)
    if kind == "frame":
        given = pytest.importorskip("pandas").DataFrame(X, columns=list("abc"))
    source = FeatureSource([(f"k{m}", kernel) for m, kernel in enumerate(KERNELS)], X)
    source.X = given
    remote = DaskLowRankDictionary(source, "nystroem", 12, "variance", random_state=0)
    assert_same(plain.gram.factors, remote.gram.factors, rng)


def test_large_arguments_are_sent_apart(client, monkeypatch, rng):
    monkeypatch.setattr(_cluster, "LARGE", 8)
    local, remote = both(rng.normal(size=(50, 3)))
    assert_same(local.gram.factors, remote.gram.factors, rng)


def test_factors_beyond_the_memory_of_the_workers_are_computed_anew(client, rng):
    X = rng.normal(size=(50, 3))
    (local, _), (_, remote) = both(X), both(X, memory_limit=1000)
    assert "are computed again in every pass as float32" in remote.gram_reason
    alpha = rng.normal(size=(50, 1))
    got, expected = (d.gram.quad(alpha) for d in (remote, local))
    np.testing.assert_allclose(got, expected, rtol=1e-4)


def test_what_the_features_miss_is_summed_by_the_workers(client, rng):
    X, alpha = rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
    alpha[::3] = 0.0
    _, remote = both(X)
    expected = diagonal_sums(remote.features, alpha, X)
    np.testing.assert_allclose(remote.diagonal_sums(remote.features, alpha), expected, **EXACT)


def test_a_share_travels_without_its_factors(client, rng):
    X = rng.normal(size=(400, 3))
    _, remote = both(X)
    share = make_rows(Rows(X, 1.0 / 400), RowConstants(remote.features), np.dtype(float), True)
    sent, again = pickle.dumps(share), pickle.loads(pickle.dumps(share))
    assert len(sent) < share.__sizeof__()
    np.testing.assert_array_equal(again.factors.squares([0, 1]), share.factors.squares([0, 1]))
    for one, other in zip(moments_of(again), moments_of(share), strict=True):
        np.testing.assert_array_equal(one.first, other.first)


def test_scatters_of_parts_are_that_of_the_whole(rng):
    Z, w = rng.normal(size=(30, 4)) + 100.0, rng.uniform(size=30)

    def scatter(rows):
        mean = w[rows] @ Z[rows] / w[rows].sum()
        return Scatter(((Z[rows] - mean).T * w[rows]) @ (Z[rows] - mean), float(w[rows].sum()), mean)

    parts = [scatter(slice(0, 7)), scatter(slice(7, 11)), scatter(slice(11, 30))]
    got, expected = merge(merge(*parts[:2]), parts[2]), scatter(slice(None))
    np.testing.assert_allclose(got.matrix, expected.matrix, rtol=1e-9)
    np.testing.assert_allclose(got.mean, expected.mean)


def test_tables_of_partitions(client, rng):
    X = rng.normal(size=(50, 3))
    table = DaskTable(da.from_array(X, chunks=(8, 3)))
    rows = rng.permutation(50)[:20]
    np.testing.assert_array_equal(table[rows], X[rows])
    np.testing.assert_array_equal(table[-5:], X[-5:])
    some = np.sort(rows)
    np.testing.assert_array_equal(table.take(some)[::2], X[some][::2])
    np.testing.assert_array_equal(table.map(lambda part: part.sum(axis=1)), X.sum(axis=1))
    groups = table.groups(3)
    assert [int(table.starts[g.stop] - table.starts[g.start]) for g in groups] == [16, 16, 18]
    assert len(DaskTable(da.from_array(X, chunks=(50, 3))).groups(3)) == 1


def test_partitions_of_text_are_refused(client):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), npartitions=1)
    with pytest.raises(ValueError, match="X holds text where kernels need numbers"):
        DaskTable(frame)
