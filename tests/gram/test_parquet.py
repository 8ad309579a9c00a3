"""Parquet files as tables: the same rows as in memory, few of them at a time."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import _safe_indexing

import kernelweave as kw
from kernelweave.gram import parquet
from kernelweave.kernels import RBF, Linear, Polynomial

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: kernelweave[tables]")
pq = pytest.importorskip("pyarrow.parquet")

N, GROUP, NAMES = 1000, 50, list("abcd")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    return X, np.sign(X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=N))


@pytest.fixture
def folder(data, tmp_path):
    """Two files of ten row groups each, with a column of text beside the numbers."""
    columns = {name: data[0][:, k] for k, name in enumerate(NAMES)}
    whole = pa.table({**columns, "label": np.where(data[1] > 0, "yes", "no")})
    for k in range(2):
        part = whole.slice(k * N // 2, N // 2)
        pq.write_table(part, tmp_path / f"part-{k}.parquet", row_group_size=GROUP)
    return tmp_path


@pytest.fixture
def table(folder):
    return kw.ParquetTable(folder, columns=NAMES)


@pytest.fixture
def alive(monkeypatch):
    """Most rows of the table in its cache, and of one answer."""
    most, group, read = [0, 0], parquet.ParquetTable._group, parquet.ParquetTable.read

    def counting_group(self, k):
        found = group(self, k)
        most[0] = max(most[0], sum(map(len, self._cache.values())))
        return found

    def counting_read(self, rows):
        found = read(self, rows)
        most[1] = max(most[1], len(found))
        return found

    monkeypatch.setattr(parquet.ParquetTable, "_group", counting_group)
    monkeypatch.setattr(parquet.ParquetTable, "read", counting_read)
    return most


def test_rows_are_those_of_the_array(table, data, rng):
    X = data[0]
    assert (table.shape, len(table), table.dtype, table.columns) == (X.shape, N, np.float64, NAMES)
    mixed = np.concatenate([rng.permutation(N)[:70], [3, 3]])
    for key in (
        slice(0, 7),
        slice(45, 560),
        slice(None),
        slice(-3, None),
        slice(5, 5),
        slice(0, 90, 7),
        mixed,
    ):
        np.testing.assert_array_equal(table[key], X[key])
        np.testing.assert_array_equal(_safe_indexing(table, key), X[key])
    np.testing.assert_array_equal(table[X[:, 0] > 1], X[X[:, 0] > 1])
    np.testing.assert_array_equal(table.take(np.arange(0, N, 9))[5:20], X[::9][5:20])
    with pytest.raises(IndexError):
        table[[N]]


def test_targets_are_a_column(table, data):
    np.testing.assert_array_equal(table.column("label") == "yes", data[1] > 0)


def test_files_folders_and_patterns(folder, data):
    assert kw.ParquetTable(folder / "part-1.parquet", NAMES).shape == (500, 4)
    np.testing.assert_array_equal(kw.ParquetTable(str(folder / "part-*.parquet"), ["b"])[:], data[0][:, [1]])
    both = [folder / "part-1.parquet", folder / "part-0.parquet"]
    np.testing.assert_array_equal(kw.ParquetTable(both, NAMES)[:3], data[0][500:503])
    assert "shape=(1000, 4), 20 row groups" in repr(kw.ParquetTable(folder, NAMES))


def test_precision_follows_the_columns(tmp_path):
    pq.write_table(pa.table({"a": np.ones(3, np.float32), "b": [True, False, True]}), tmp_path / "x.parquet")
    assert kw.ParquetTable(tmp_path, ["a"]).dtype == np.float32
    np.testing.assert_array_equal(kw.ParquetTable(tmp_path)[:], [[1, 1], [1, 0], [1, 1]])


def test_it_is_pickled_as_a_path(table, data):
    sent = pickle.dumps(table)
    assert len(sent) < 2000
    np.testing.assert_array_equal(pickle.loads(sent)[10:20], data[0][10:20])


@pytest.mark.wide
@pytest.mark.parametrize("memory_limit", [None, 1000])
def test_a_fit_reads_it_in_pieces(table, data, alive, monkeypatch, memory_limit):
    X, y = data
    monkeypatch.setattr("kernelweave.gram.tables.FIT_ROWS", 100)
    monkeypatch.setattr("kernelweave.gram.tables.READ_BYTES", 4096)
    monkeypatch.setattr("kernelweave.gram.lowrank.dictionary.BLOCK_BYTES", 1 << 16)
    monkeypatch.setattr("kernelweave.gram.lowrank.factors.BLOCK_BYTES", 1 << 16)
    monkeypatch.setattr("kernelweave.gram.lowrank.factors.GATHER_BYTES", 1)
    monkeypatch.setattr("kernelweave.gram.lowrank.dictionary.MOST_PAIRS", 0)
    monkeypatch.setattr("kernelweave.gram.lowrank.dictionary.BLOCK_PAIRS", 2000)
    kernels = [RBF(0.5), Linear(), Polynomial(2, columns=["a", "b"])]
    options = {"approximation": "nystroem", "rank": 20, "random_state": 0, "tol": 1e-5, "loss": "logistic"}
    model = kw.MKLClassifier(kernels, memory_limit=memory_limit, **options)
    read = clone(model).fit(table, y)
    assert alive[0] <= parquet.CACHED * GROUP
    assert alive[1] <= 300  # of 1000: the least that a Newton step gathers are 256
    local = clone(model).set_params(kernels=[*kernels[:2], Polynomial(2, columns=[0, 1])]).fit(X, y)
    np.testing.assert_allclose(read.weights_, local.weights_, rtol=0, atol=1e-6)
    assert read.dual_gap_ == pytest.approx(local.dual_gap_, abs=1e-6)
    assert read.full_rank_gap_ == pytest.approx(local.full_rank_gap_, rel=1e-4)
    assert read.feature_names_in_.tolist() == NAMES
    np.testing.assert_allclose(read.decision_function(table), local.decision_function(X), atol=1e-4)
    assert alive[1] <= 300


def test_weights_of_zero_leave_rows_unread(table, data):
    X, y = data
    weight = np.ones(N)
    weight[100:300] = 0.0
    options = {"approximation": "nystroem", "rank": 15, "random_state": 0, "tol": 1e-6}
    model = kw.MKLRegressor([RBF(), Linear()], **options)
    read, local = clone(model).fit(table, y, weight), clone(model).fit(X, y, weight)
    np.testing.assert_allclose(read.weights_, local.weights_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(read.predict(table), local.predict(X), atol=1e-5)


def test_a_stored_model_needs_no_file(table, data, tmp_path):
    model = kw.MKLOneClass([RBF(0.5), RBF(0.1)], approximation="nystroem", rank=10, random_state=0).fit(table)
    kw.save_model(model, tmp_path / "model.kw")
    frame = pytest.importorskip("pandas").DataFrame(data[0], columns=NAMES)
    loaded = kw.load_model(tmp_path / "model.kw")
    np.testing.assert_allclose(loaded.decision_function(frame), model.decision_function(table), atol=1e-9)


def test_missing_numbers_are_an_error_when_read(tmp_path):
    pq.write_table(pa.table({"a": [1.0, None, 3.0], "b": [1, 2, None]}), tmp_path / "x.parquet")
    table = kw.ParquetTable(tmp_path)
    np.testing.assert_array_equal(table[:1], [[1.0, 1.0]])
    with pytest.raises(ValueError, match="Input X contains NaN"):
        table[:]


def test_errors_name_the_remedy(folder, table, data, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"column 'label' holds .*string.* without it"):
        kw.ParquetTable(folder)
    with pytest.raises(ValueError, match="no 'z'; it has 'a', 'b'"):
        kw.ParquetTable(folder, ["z"])
    with pytest.raises(FileNotFoundError, match="no Parquet file at"):
        kw.ParquetTable(tmp_path / "nothing-*.parquet")
    with pytest.raises(ValueError, match=r"X is read in pieces \(ParquetTable\)"):
        kw.MKLClassifier([RBF()]).fit(table, data[1])
    with pytest.raises(ValueError, match=r"X is read in pieces \(ParquetTable\)"):
        kw.GroupOMPRegressor([RBF()]).fit(table, data[1])
    other = folder / "part-2.parquet"
    pq.write_table(pa.table({"a": [1.0]}), other)
    with pytest.raises(ValueError, match="has other columns than"):
        kw.ParquetTable(folder)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r'pip install "kernelweave\[tables\]"'):
        kw.ParquetTable(other)


def test_exact_models_predict_on_it(table, data):
    X, y = data
    model = kw.MKLClassifier([RBF(), Linear()]).fit(X[:200], y[:200])
    with pytest.warns(UserWarning, match="X has feature names"):
        values = model.decision_function(table)
    np.testing.assert_allclose(values, model.decision_function(X), atol=1e-12)
