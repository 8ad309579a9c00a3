"""Kernels of low rank with rows on a real Dask cluster: the same models, from arrays and partitions."""

from __future__ import annotations

import os
import pickle
import signal

import numpy as np
import pytest
from sklearn.base import clone

import kernelweave as kw
from kernelweave.kernels import RBF, Linear, Polynomial

distributed = pytest.importorskip("distributed", reason="needs dask and distributed: kernelweave[dask]")
da = pytest.importorskip("dask.array")

from kernelweave.gram.dask.low_rank import DaskFactors  # noqa: E402
from kernelweave.gram.dask.table import DaskTable  # noqa: E402

pytestmark = pytest.mark.system

KERNELS = [RBF(), RBF(0.5), Linear(), Polynomial(2), RBF(0.3, columns=[0, 1])]
N, NAMES = 400, list("abcd")


@pytest.fixture(scope="module")
def client(dask_workers):
    """Rows in two worker processes."""
    with distributed.Client(dask_workers) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    return X, np.sign(X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=N))


@pytest.fixture(scope="module")
def model():
    """Its optimum is unique and found to many digits, wherever the rows are."""
    options = {"approximation": "nystroem", "rank": 20, "random_state": 0, "tol": 1e-6}
    return kw.MKLClassifier(KERNELS, loss="logistic", **options)


@pytest.fixture(scope="module")
def local(model, data):
    return clone(model).fit(*data)


def assert_same_model(remote, local, X) -> None:
    np.testing.assert_allclose(remote.weights_, local.weights_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(remote.dual_gap_, local.dual_gap_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(remote.full_rank_gap_, local.full_rank_gap_, rtol=1e-4)
    np.testing.assert_allclose(remote.decision_function(X), local.decision_function(X), atol=1e-5)


def test_weights_and_gap_are_those_of_a_local_fit(client, model, local, data):
    remote = clone(model).set_params(gram="dask").fit(*data)
    assert_same_model(remote, local, data[0])
    assert remote.gram_ == "low_rank"
    assert "rows on 2 workers of Dask" in remote.gram_reason_
    again = pickle.loads(pickle.dumps(remote))
    np.testing.assert_array_equal(again.decision_function(data[0]), remote.decision_function(data[0]))


def test_dask_arrays_never_come_to_the_client_as_a_whole(client, model, data, monkeypatch):
    fetched, read = [], DaskTable.read
    monkeypatch.setattr("kernelweave.gram.tables.FIT_ROWS", 100)
    monkeypatch.setattr("kernelweave.gram.lowrank.dictionary.MOST_PAIRS", 0)

    def counting(self, rows):
        found = read(self, rows)
        fetched.append(len(found))
        return found

    monkeypatch.setattr(DaskTable, "read", counting)
    fixed = clone(model).set_params(kernels=KERNELS[1:])  # nothing depends on the rows that kernels see
    local = clone(fixed).fit(*data)
    X, y = da.from_array(data[0], chunks=(70, 3)), da.from_array(data[1], chunks=90)
    remote = clone(fixed).fit(X, y)  # gram="auto" leaves rows where they are
    assert max(fetched) == 100
    assert len(fetched) < 10
    values = remote.decision_function(X)
    assert isinstance(values, np.ndarray)
    np.testing.assert_allclose(values, local.decision_function(data[0]), atol=1e-5)
    assert_same_model(remote, local, data[0])


def test_dask_frames_and_weights(client, model, data):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, y = pd.DataFrame(data[0], columns=NAMES), pd.Series(data[1])
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=N)
    weight[:30] = 0.0
    named = clone(model).set_params(kernels=[RBF(), Linear(columns=["b", "c"]), Polynomial(2)])
    here = clone(named).fit(X, y, weight)
    frame = dd.from_pandas(X, npartitions=6)
    there = clone(named).fit(frame, dd.from_pandas(y, npartitions=3), sample_weight=da.from_array(weight))
    assert_same_model(there, here, X)
    assert there.feature_names_in_.tolist() == NAMES
    assert there.dual_coef_.shape == (N,)
    np.testing.assert_array_equal(there.predict(frame), there.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        there.predict(frame[NAMES[::-1]])


@pytest.mark.slow
def test_regression_and_one_class(client, data):
    X = data[0]
    options = {"approximation": "nystroem", "rank": 10, "random_state": 0, "tol": 1e-6}
    regressor, detector = kw.MKLRegressor(KERNELS[:3], **options), kw.MKLOneClass(KERNELS[:1], **options)
    for model, y in ((regressor, X[:, 0] ** 2), (detector, None)):
        here = clone(model).fit(X, y)
        there = clone(model).set_params(gram="dask").fit(da.from_array(X, chunks=(100, 4)), y)
        assert there.objective_ == pytest.approx(here.objective_, rel=1e-5)
        np.testing.assert_allclose(there.weights_, here.weights_, rtol=0, atol=1e-6)
        np.testing.assert_allclose(there.predict(X), here.predict(X), atol=1e-3)


def test_workers_read_parquet_files_themselves(client, model, local, data, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = pa.table({name: data[0][:, k] for k, name in enumerate(NAMES)})
    pq.write_table(columns, tmp_path / "X.parquet", row_group_size=30)
    table = kw.ParquetTable(tmp_path)
    remote = clone(model).set_params(gram="dask").fit(table, data[1])
    np.testing.assert_allclose(remote.weights_, local.weights_, rtol=0, atol=1e-6)
    remote.set_params(memory_limit=1000, tol=1e-3).fit(table, data[1])  # reads it anew in every pass
    assert remote.objective_ == pytest.approx(local.objective_, rel=1e-3)
    assert "computed again in every pass" in remote.gram_reason_


def test_numbers_that_are_not_finite_are_found_on_the_workers(client, model, data):
    X = data[0].copy()
    X[399, 2] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        clone(model).fit(da.from_array(X, chunks=(100, 4)), data[1])


def test_exact_kernels_are_refused(data):
    with pytest.raises(ValueError, match=r"X is read in pieces \(DaskTable\).*approximation='nystroem'"):
        kw.MKLClassifier(KERNELS).fit(da.from_array(data[0]), data[1])


def kill_in_the_middle(client, monkeypatch) -> list[int]:
    """SIGKILL to a worker when the solver asks for the third product; who was killed."""
    killed, asked, adjoint = [], [], DaskFactors.adjoint

    def killing(self, *args):
        asked.append(1)
        if len(asked) == 3:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)
        return adjoint(self, *args)

    monkeypatch.setattr(DaskFactors, "adjoint", killing)
    return killed


def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(client, model, local, data, monkeypatch):
    killed = kill_in_the_middle(client, monkeypatch)
    remote = clone(model).set_params(gram="dask").fit(*data)
    assert killed
    assert killed[0] not in client.run(os.getpid).values()
    assert_same_model(remote, local, data[0])


@pytest.mark.slow
def test_a_worker_killed_with_partitions_changes_nothing(client, model, local, data, monkeypatch):
    client.wait_for_workers(2, timeout=30)
    X = da.from_array(data[0], chunks=(50, 4)).persist()
    distributed.wait(X)
    killed = kill_in_the_middle(client, monkeypatch)
    remote = clone(model).fit(X, data[1])
    assert killed
    assert_same_model(remote, local, data[0])


@pytest.mark.slow
def test_kinks_and_several_classes(client, data):
    X = data[0]
    y = np.digitize(X[:, 0] + 0.1 * X[:, 1], [-0.5, 0.5])
    options = {"approximation": "nystroem", "rank": 20, "random_state": 0, "tol": 1e-7}
    for multiclass in ("ovr", "ovo"):
        model = kw.MKLClassifier(KERNELS[:3], loss="squared_hinge", multiclass=multiclass, **options)
        here, there = clone(model).fit(X, y), model.set_params(gram="dask").fit(X, y)
        np.testing.assert_allclose(there.weights_, here.weights_, rtol=0, atol=1e-5)
        assert (there.predict(X) == here.predict(X)).all()
    hinge = kw.MKLClassifier(KERNELS, **options)
    here, there = clone(hinge).fit(*data), clone(hinge).set_params(gram="dask").fit(*data)
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=0, atol=1e-6)
    assert there.dual_gap_ <= 1e-7
