from __future__ import annotations

from pathlib import Path

import pytest
from reproduce.store import Store


def test_rows_come_back_with_their_types(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.csv")
    row = {"n": 50, "method": "l4/3", "error": 0.1 + 0.2, "ok": True, "nan": float("inf")}
    store.add("k1", [row, {**row, "n": 51}])
    assert Store(tmp_path / "a.csv").rows(["k1"]) == [row, {**row, "n": 51}]


def test_keys_of_digits_stay_text(tmp_path: Path) -> None:
    Store(tmp_path / "a.csv").add("1234567890123456", [{"x": 1}])
    again = Store(tmp_path / "a.csv")
    assert "1234567890123456" in again
    again.add("12e4567890123456", [{"x": 2}])
    assert Store(tmp_path / "a.csv").rows(["12e4567890123456"]) == [{"x": 2}]


def test_new_columns_widen_the_file(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.csv")
    store.add("k1", [{"x": 1}])
    store.add("k2", [{"y": 2}])
    assert Store(tmp_path / "a.csv").rows(["k2", "k1"]) == [{"y": 2}, {"x": 1}]


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_cell_cut_short_is_not_done_and_hurts_no_other(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.csv"
    store = Store(path)
    store.add("first", [{"x": 1, "text": "one"}])
    whole = len(path.read_bytes())
    store.add("second", [{"x": 2, "text": "two"}, {"x": 3, "text": "three"}])
    path.write_bytes(path.read_bytes()[: max(-cut, whole - len(path.read_bytes()))])
    again = Store(path)
    assert again.rows(["first"]) == [{"x": 1, "text": "one"}]
    if "second" not in again:
        again.add("second", [{"x": 2, "text": "two"}, {"x": 3, "text": "three"}])
    assert [row["x"] for row in Store(path).rows(["first", "second"])] == [1, 2, 3]


def test_committed_rows_are_the_same_bytes_and_come_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.csv")
    store.add("k1", [{"x": 0.1 + 0.2, "method": "l1"}])
    store.add("k2", [{"x": 2, "y": "3"}, {"x": 4}])
    store.save(tmp_path / "1.csv.gz", ["k2", "k1"])
    again = Store(tmp_path / "1.csv.gz")
    assert again.keys() == ["k2", "k1"]
    assert again.rows(["k1", "k2"]) == store.rows(["k1", "k2"]) == Store(store.path).rows(["k1", "k2"])
    again.save(tmp_path / "2.csv.gz", again.keys())
    assert (tmp_path / "1.csv.gz").read_bytes() == (tmp_path / "2.csv.gz").read_bytes()


def test_what_is_done_elsewhere_is_done_and_stays_there(tmp_path: Path) -> None:
    Store(tmp_path / "a.csv").add("k1", [{"x": 1}])
    Store(tmp_path / "a.csv").save(tmp_path / "a.csv.gz", ["k1"])
    store = Store(tmp_path / "b.csv", tmp_path / "a.csv.gz", tmp_path / "nowhere.csv.gz")
    assert "k1" in store
    store.add("k2", [{"x": 2}])
    assert store.rows(["k1", "k2"]) == [{"x": 1}, {"x": 2}]
    assert Store(tmp_path / "b.csv").keys() == ["k2"]
