"""Tables whose rows are read when they are asked for: arrays mapped from files, parts, memory."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

import kernelweave as kw
from kernelweave.gram.tables import ArrayTable, SomeRows
from kernelweave.kernels import RBF, Linear
from kernelweave.kernels.columns import row_positions


@pytest.fixture
def mapped(tmp_path, rng):
    """An array in a file, larger than all that is asked for at once."""

    def make(dtype):
        np.save(tmp_path / "X.npy", (10 * rng.normal(size=(20_000, 200))).astype(dtype))
        return np.load(tmp_path / "X.npy", mmap_mode="r")

    return make


@pytest.mark.system
@pytest.mark.parametrize(
    ("dtype", "memory_limit"),
    [(np.float32, None), (np.int16, None), pytest.param(np.int16, 1000, marks=pytest.mark.slow)],
)
def test_memory_maps_are_not_copied(mapped, monkeypatch, dtype, memory_limit):
    X = mapped(dtype)
    y = np.asarray(X[:, 0] + X[:, 1] > 0)
    monkeypatch.setattr("kernelweave.gram.tables.FIT_ROWS", 500)
    for module in ("dictionary.BLOCK_BYTES", "factors.BLOCK_BYTES", "factors.GATHER_BYTES"):
        monkeypatch.setattr(f"kernelweave.gram.lowrank.{module}", 1 << 20)
    monkeypatch.setattr("kernelweave.gram.tables.READ_BYTES", 1 << 20)
    monkeypatch.setattr("kernelweave.gram.lowrank.dictionary.BLOCK_PAIRS", 1 << 17)
    options = {"approximation": "nystroem", "rank": 5, "random_state": 0, "loss": "squared", "tol": 0.1}
    model = kw.MKLClassifier([RBF(), RBF(0.1, columns=[0, 1])], memory_limit=memory_limit, **options)
    tracemalloc.start()
    try:
        values = model.fit(X, y).decision_function(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert values.shape == (20_000,)
    in_floats = X.size * (4 if dtype is np.float32 else 8)
    assert peak < 0.5 * in_floats


def test_the_model_is_that_of_the_array(mapped):
    X = mapped(np.float32)[:800, :4]
    y = np.asarray(X[:, 0] * X[:, 1] > 0)
    model = kw.MKLClassifier([RBF(), Linear()], approximation="nystroem", rank=20, random_state=0)
    read, plain = clone(model).fit(X, y), clone(model).fit(np.array(X), y)
    np.testing.assert_allclose(read.weights_, plain.weights_, rtol=1e-6)
    np.testing.assert_allclose(read.decision_function(X), plain.decision_function(np.array(X)), atol=1e-6)


def test_exact_kernels_see_a_memory_map_as_an_array(mapped):
    X = mapped(np.float32)[:60, :3]
    y = np.arange(60) % 2
    read, plain = (kw.MKLClassifier([RBF()]).fit(data, y) for data in (X, np.array(X)))
    np.testing.assert_array_equal(read.dual_coef_, plain.dual_coef_)


def test_parts_of_parts(rng):
    X = rng.normal(size=(30, 2))
    table = ArrayTable(X, ["a", "b"])
    first = SomeRows(table, slice(5, 25))
    some = first.take(np.array([0, 3, 19]))
    np.testing.assert_array_equal(some[:], X[[5, 8, 24]])
    np.testing.assert_array_equal(some.take(np.array([1, 2]))[1:], X[[24]])
    assert (some.shape, some.columns) == ((3, 2), ["a", "b"])
    np.testing.assert_array_equal(table.map(lambda rows: rows[:, 0]), X[:, 0])
    part = pickle.loads(pickle.dumps(table.part(slice(2, 4))))
    np.testing.assert_array_equal(part[:], X[2:4])


def test_a_sample_is_evenly_spread(rng, monkeypatch):
    table = ArrayTable(rng.normal(size=(50, 2)), ["a", "b"])
    some, rows = table.sample()
    assert (len(some), rows.tolist()) == (50, list(range(50)))
    monkeypatch.setattr("kernelweave.gram.tables.FIT_ROWS", 8)
    some, rows = table.sample()
    assert rows.tolist() == [0, 7, 14, 21, 28, 35, 42, 49]
    np.testing.assert_array_equal(some.values, table[rows])


def test_row_positions():
    assert row_positions(slice(-2, None), 5) == slice(3, 5)
    assert row_positions(slice(4, 2), 5) == slice(4, 4)
    np.testing.assert_array_equal(row_positions(slice(None, None, -2), 5), [4, 2, 0])
    np.testing.assert_array_equal(row_positions([True, False, True], 3), [0, 2])
    with pytest.raises(IndexError, match="row 5 of a table of 5"):
        row_positions([0, 5], 5)
