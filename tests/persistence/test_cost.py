"""What a hostile file may cost: a fixed multiple of its size, in memory and in work.

Every file here has right checksums and is small; each asks for a thousand times its size in one of the ways
the readers know. `tracemalloc` sees what they allocate, NumPy's arrays included.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.kernels import RBF, Linear, per_feature
from kernelweave.persistence import ModelFileError
from kernelweave.persistence.codec import MOST_ALIKE, SHARE, SLACK, Reader
from kernelweave.persistence.files import FORMS

from .cases import N_TRAIN, labels, numbers, targets
from .conftest import fitted
from .test_container import parts, rewrite

#: bytes of the array that is referred to, and how often it is
SIZE, TIMES = 40_000, 2_000

#: the description takes up to 48 times its length, parsed and read: see test_fuzz
MULTIPLE = SHARE + 48


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "model.kw"
    kw.save_model(fitted(kw.MKLClassifier([RBF(), Linear()]), numbers(N_TRAIN, 0), labels()), place)
    return place


def spoil(path: Path, junk: Callable[[int], Any], *arrays: np.ndarray) -> None:
    """More arrays in a file, and an attribute `junk_` made of them; `junk` is told the first one's number."""
    _, head, data = parts(path)
    first = len(head["arrays"])

    def change(head: Any) -> None:
        head["arrays"] += [[array.dtype.str, "C", list(array.shape), ""] for array in arrays]
        head["content"]["object"]["state"]["junk_"] = junk(first)

    rewrite(path, change, data + b"".join(array.tobytes() for array in arrays))


def loaded(path: Path) -> Any:
    """The model, or the error."""
    try:
        return kw.load_model(path)
    except ModelFileError as error:
        return error


def cost(path: Path) -> tuple[int, Any]:
    """Peak of memory, and the model or the error."""
    tracemalloc.start()
    found = loaded(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, found


def check_refused(path: Path) -> None:
    peak, found = cost(path)
    assert isinstance(found, ModelFileError)
    assert "than a file of its size needs" in str(found)
    assert peak < MULTIPLE * path.stat().st_size + SLACK


def ones(dtype: str, size: int = SIZE) -> np.ndarray:
    return np.ones(size // np.dtype(dtype).itemsize, dtype=dtype)


#: arrays to add, what refers to them, and whether the same object can stand for all references
HOSTILE: dict[str, tuple[list[np.ndarray], Callable[[int], Any], bool]] = {
    "one list of numbers": ([ones("<i8")], lambda k: [{"list": k}] * TIMES, True),
    "one list of texts": (
        [np.full(SIZE // 9, 97, dtype="|u1"), np.ones(SIZE // 9, dtype="<i8")],
        lambda k: [{"list": {"bytes": k, "lengths": k + 1}}] * TIMES,
        True,
    ),
    "one long text": (
        [np.array("a" * (SIZE // 4), dtype=f"<U{SIZE // 4}")],
        lambda k: [{"scalar": k}] * TIMES,
        True,
    ),
    "a text cut in many ways": (
        [np.full(SIZE, 97, dtype="|u1"), *(np.array([j, SIZE - j]) for j in range(TIMES))],
        lambda k: [{"list": {"bytes": k, "lengths": k + 1 + j}} for j in range(TIMES)],
        False,
    ),
    "objects that are arrays": (
        [ones("|u1")],
        lambda k: {"objects": {"shape": [TIMES], "items": [{"array": k}] * TIMES}},
        True,
    ),
    "objects made of one list": (
        [np.full(SIZE // 9, 97, dtype="|u1"), np.ones(SIZE // 9, dtype="<i8")],
        lambda k: [{"objects": {"shape": [SIZE // 9], "texts": {"bytes": k, "lengths": k + 1}}}] * TIMES,
        False,
    ),
    "a sparse matrix": (
        [ones("<f8"), np.zeros(SIZE // 8, dtype="<i4"), np.array([0, SIZE // 8], dtype="<i4")],
        lambda k: (
            [
                {
                    "csr": {
                        "shape": [1, 1],
                        "matrix": False,
                        "sorted": True,
                        "data": k,
                        "indices": k + 1,
                        "indptr": k + 2,
                    }
                }
            ]
            * TIMES
        ),
        False,
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_references_to_one_array_do_not_multiply_it(case: str, path: Path) -> None:
    arrays, junk, shared = HOSTILE[case]
    spoil(path, junk, *arrays)
    size = path.stat().st_size
    assert size < 6 * SIZE + 60 * TIMES + 20_000
    if not shared:
        check_refused(path)
        return
    peak, found = cost(path)
    assert peak < MULTIPLE * size + SLACK
    assert all(item is found.junk_[0] for item in found.junk_)


def test_columns_of_text_in_a_frame(path: Path) -> None:
    pytest.importorskip("pandas")
    spoil(
        path,
        lambda k: {"frame": {"names": [""] * TIMES, "columns": [{"array": k}] * TIMES}},
        np.full(SIZE // 4, "a", dtype="<U1"),
    )
    check_refused(path)


def test_kernels_computed_together_copy_their_rows_once(tmp_path: Path) -> None:
    """The rows of a predictor are copied for compiled loops: many on the same rows are refused."""
    path = tmp_path / "model.kw"
    X = np.random.default_rng(0).normal(size=(60, 100))
    kw.save_model(fitted(kw.MKLRegressor(per_feature(RBF()), max_iter=2), X, X[:, 0]), path)
    assert cost(path)[0] < MULTIPLE * path.stat().st_size
    predictor = parts(path)[1]["content"]["object"]["state"]["model_"]
    spoil(path, lambda k: [predictor] * 300)
    check_refused(path)


def test_columns_named_again_and_again_do_not_make_a_wide_table(tmp_path: Path) -> None:
    path = tmp_path / "model.kw"
    X = np.random.default_rng(0).normal(size=(100, 20))
    kw.save_model(fitted(kw.MKLRegressor(per_feature(RBF()), max_iter=2), X, X[:, 0]), path)
    wide = 20_000

    def junk(first: int) -> Any:
        predictor = parts(path)[1]["content"]["object"]["state"]["model_"]
        batch = predictor["predictor"]["batch"]["tuple"]
        batch[1], batch[2] = {"array": first}, {"array": first + 1}
        return predictor

    head = parts(path)[1]
    members = head["content"]["object"]["state"]["model_"]["predictor"]["batch"]["tuple"][0]["array"]
    bits = np.zeros((head["arrays"][members][2][0], wide // 8), dtype=np.uint8)
    spoil(path, junk, np.zeros(wide, dtype=np.int64), bits)
    peak, found = cost(path)
    assert "sees columns that are not there" in str(found)
    assert peak < MULTIPLE * path.stat().st_size + SLACK


def test_factors_of_a_process_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "model.kw"
    model = kw.EmpiricalBayesRegressor([RBF(), Linear()], max_iter=2)
    kw.save_model(fitted(model, numbers(200, 0), targets(200)), path)
    predictor = parts(path)[1]["content"]["object"]["state"]["model_"]
    spoil(path, lambda k: [predictor] * 300)
    check_refused(path)


def dict_of(keys: list[Any]) -> dict[str, Any]:
    return {"dict": [[key, 0] for key in keys]}


@pytest.mark.parametrize("wrapped", [False, True], ids=["numbers", "tuples"])
def test_keys_that_collide_take_no_longer_than_others(wrapped: bool, path: Path, tmp_path: Path) -> None:
    """Python's hash of an integer is its remainder by 2^61 - 1: such keys are searched one by one."""
    prime, count = 2**61 - 1, 12_000
    times: list[float] = []
    for step in (1, prime):
        keys = [step * k for k in range(1, count + 1)]
        place = tmp_path / f"{step}.kw"
        place.write_bytes(path.read_bytes())
        spoil(place, lambda k, keys=keys: dict_of([{"tuple": [key]} if wrapped else key for key in keys]))
        start = time.process_time()
        found = loaded(place)
        times.append(time.process_time() - start)
        assert isinstance(found, ModelFileError) == (step == prime)
    assert "collide" in str(found)
    assert times[1] < 5 * times[0] + 0.5


def test_dicts_of_every_honest_kind_of_key_are_read() -> None:
    keys = [0, 1, -1, -2, True, None, "a", 0.5, *(2.0**k for k in range(-1000, 1000)), 2**61 - 1, 2**62 - 2]
    found = Reader(FORMS, []).value(dict_of(keys))
    assert found == dict.fromkeys(keys, 0)
    assert MOST_ALIKE >= 34  # floats whose ratio is a power of 2^61 have one hash, and there are 34 of them


@pytest.mark.parametrize("n", [10, 300])
def test_honest_files_are_far_from_the_limit(n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Truth values, strings and triangles are what reading makes the most of."""
    readers: list[tuple[int, Reader]] = []
    read = Reader.__init__

    def watched(self: Reader, *arguments: Any) -> None:
        read(self, *arguments)
        readers.append((self.left, self))

    monkeypatch.setattr(Reader, "__init__", watched)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 30)) > 0
    y = X[:, 0] + 0.1 * rng.normal(size=n)
    models = [
        kw.MKLRegressor(per_feature(RBF()), max_iter=2),
        kw.EmpiricalBayesRegressor([RBF()], max_iter=2),
    ]
    for model in models:
        kw.save_model(fitted(model, X, y), tmp_path / "model.kw")
        kw.load_model(tmp_path / "model.kw")
    assert len(readers) == len(models)
    assert all(start - reader.left < 0.35 * start for start, reader in readers)
