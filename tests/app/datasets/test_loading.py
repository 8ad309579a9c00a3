from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest

from kernelweave import datasets
from kernelweave.app.datasets import catalogue, loading


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder, the only one that is looked in."""
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("KERNELWEAVE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


def test_samples_are_real_numbers(folder: Path) -> None:
    np.savez(folder / "sonar.npz", X=np.eye(3, dtype=np.float32), y=np.array([1, -1, 1], dtype=np.int8))
    data = datasets.load("sonar")
    assert data.X.dtype == np.float64
    assert data.y.tolist() == [1, -1, 1]
    assert "Gorman" in data.citation
    assert "208 samples" in data.DESCR
    X, y = datasets.load("sonar", return_X_y=True)
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, data.y)


def test_views_stand_side_by_side(folder: Path, rng: np.random.Generator) -> None:
    seg1, seg2 = rng.random((4, 3)), rng.random((4, 2))
    arrays = {"view_names": np.array(["seg1", "seg2"]), "X_seg1": seg1, "X_seg2": seg2}
    np.savez(folder / "bbcsport.npz", y=np.arange(4), **arrays)
    data = datasets.load("bbcsport")
    assert list(data.views) == ["seg1", "seg2"]
    for name, view in {"seg1": seg1, "seg2": seg2}.items():
        np.testing.assert_array_equal(data.views[name], view)
        np.testing.assert_array_equal(data.X[:, data.columns[name]], view)


def test_samples_without_the_target_are_left_out(folder: Path) -> None:
    Y = np.array([[1.0, np.nan], [2.0, 5.0], [np.nan, 6.0]])
    X, ids = np.arange(6.0).reshape(3, 2), np.array(["a", "b", "c"])
    np.savez(folder / "swri_diesel.npz", X=X, Y=Y, property_names=np.array(["BP50", "CN"]), sample_id=ids)
    data = datasets.load("swri_diesel")
    assert (data.target, data.y.tolist(), data.sample_id.tolist()) == ("CN", [5.0, 6.0], ["b", "c"])
    np.testing.assert_array_equal(data.X, X[1:])
    assert datasets.load("swri_diesel", target="BP50").y.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="target='fat': swri_diesel has BP50, CN"):
        datasets.load("swri_diesel", target="fat")


def test_one_target_has_no_name_to_choose(folder: Path) -> None:
    np.savez(folder / "sonar.npz", X=np.eye(2), y=np.arange(2))
    with pytest.raises(ValueError, match="one target only"):
        datasets.load("sonar", target="depth")


def test_sequences_are_cut_where_they_end(folder: Path) -> None:
    letters = np.frombuffer(b"MKVLLA", dtype=np.uint8)
    np.savez(folder / "multiloc_sequences.npz", seq_bytes=letters, offsets=[0, 2, 6], y=[0, 1])
    data = datasets.load("multiloc_sequences")
    assert data.sequences == ["MK", "VLLA"] == data.X.tolist()


def test_sequences_in_lines(folder: Path) -> None:
    lines = {"seq_train": b"AC\nGT", "seq_test": b"A"}
    text = {name: np.frombuffer(letters, np.uint8) for name, letters in lines.items()}
    np.savez(folder / "sequences_CTCF.npz", **text, y_train=[0, 1], y_test=[1])
    data = datasets.load("sequences_CTCF")
    assert (data.X.tolist(), data.y.tolist()) == (["AC", "GT"], [0, 1])
    assert (data.X_test.tolist(), data.y_test.tolist()) == (["A"], [1])


def test_labelled_pixels_are_samples(folder: Path) -> None:
    cube, gt = np.arange(12, dtype=np.uint16).reshape(2, 2, 3), np.array([[0, 2], [1, 0]], dtype=np.uint8)
    np.savez(folder / "indian_pines.npz", cube=cube, gt=gt, classes=np.array(["background", "a", "b"]))
    data = datasets.load("indian_pines")
    assert data.y.tolist() == [1, 0]
    assert data.classes.tolist() == ["a", "b"]
    for row, (i, j) in zip(data.X, data.positions, strict=True):
        np.testing.assert_array_equal(row, cube[i, j])


def test_large_sets_keep_their_type(folder: Path) -> None:
    X = np.zeros((2, 4), dtype=np.uint8)
    np.savez(folder / "mnist.npz", X=X, y=np.arange(2), X_test=X, y_test=np.arange(2))
    assert datasets.load("mnist").X.dtype == np.uint8


def test_the_users_folder_comes_before_the_cache(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    for place, value in ((tmp_path / "cache", 0.0), (folder, 1.0)):
        np.savez(place / "wpbc.npz", X=np.full((2, 1), value), y=np.arange(2))
    assert datasets.find("wpbc") == folder / "wpbc.npz"
    assert datasets.load("wpbc").X.max() == 1.0


def test_examples_run_where_there_are_no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(loading, "folders", lambda: [tmp_path])
    found = doctest.testmod(loading)
    assert found.failed == 0
    assert found.attempted > 3


def test_a_checkout_looks_in_the_folder_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    root = Path(__file__).resolve().parents[3]
    if not Path(loading.__file__).is_relative_to(root):
        pytest.skip("kernelweave is installed, not run from this checkout")
    assert loading.folders()[0] == root.parent / "shared" / "data"


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"name='iris' is not a data set; there are bbcsport, .*wpbc"):
        datasets.load("iris")


@pytest.mark.parametrize("name", datasets.names())
def test_every_set_says_what_it_is(name: str) -> None:
    record = catalogue.info(name)
    assert record.description
    assert record.citation
    # what can be downloaded can be read and checked
    sources = (record.openml is not None) + bool(record.urls)
    assert (sources, bool(record.reader), len(record.sha256)) in {(1, True, 64), (0, False, 0)}
