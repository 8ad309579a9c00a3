"""The file: its checks before anything is allocated, its messages, and how it is written."""

from __future__ import annotations

import io
import json
import os
import pickle
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernelweave as kw
from kernelweave._container import (
    CHECKPOINT,
    FIELDS,
    FORMAT,
    MAGIC,
    MAX_DEPTH,
    PREAMBLE,
    ContainerError,
    Layout,
    checksum,
    parse_json,
    seal,
    write,
)
from kernelweave.kernels import RBF, Linear
from kernelweave.persistence import ModelFileError

from .cases import N_TRAIN, labels, numbers
from .conftest import fitted


@pytest.fixture(scope="module")
def model() -> Any:
    return fitted(kw.MKLClassifier([RBF(), Linear()]), numbers(N_TRAIN, 0), labels())


@pytest.fixture
def path(model: Any, tmp_path: Path) -> Path:
    kw.save_model(model, tmp_path / "model.kw")
    return tmp_path / "model.kw"


def parts(path: Path) -> tuple[bytes, Any, bytes]:
    """Preamble, JSON and data of a file."""
    raw = path.read_bytes()
    length = FIELDS.unpack(raw[: FIELDS.size])[3]
    return raw[:PREAMBLE], json.loads(raw[PREAMBLE : PREAMBLE + length]), raw[PREAMBLE + length :]


def mend(head: Any, data: bytes) -> None:
    """Right checksums of arrays, as far as their layouts make sense."""
    start = 0
    for entry in head["arrays"]:
        try:
            size = Layout.parse(entry, len(data)).n_bytes
        except (ValueError, TypeError):
            continue
        entry[3] = checksum(data[start : start + size])
        start += size


def rewrite(path: Path, change: Callable[[Any], Any], data: bytes | None = None) -> None:
    """Change the JSON of a file and make the checksums right again."""
    _, head, rest = parts(path)
    change(head)
    rest = rest if data is None else data
    mend(head, rest)
    text = json.dumps(head).encode()
    path.write_bytes(seal(text, PREAMBLE + len(text) + len(rest)) + text + rest)


def message(path: Path) -> str:
    with pytest.raises(ModelFileError, match="cannot load") as caught:
        kw.load_model(path)
    return str(caught.value)


def test_a_file_is_the_same_each_time(model: Any, path: Path, tmp_path: Path) -> None:
    kw.save_model(model, tmp_path / "again.kw")
    assert path.read_bytes() == (tmp_path / "again.kw").read_bytes()


def test_the_message_names_the_file_and_what_it_is(path: Path) -> None:
    others = {
        b"": "it is empty",
        pickle.dumps([1, 2]): "looks like a pickle",
        b"PK\x03\x04": "looks like a zip archive",
        b"\x93NUMPY\x01\x00": "looks like a NumPy array",
        b"a,b,c\n1,2,3\n": "not a model file of kernelweave",
        path.read_bytes()[:20]: "it is truncated",
        path.read_bytes()[:-1]: "truncated or damaged",
        path.read_bytes() + b"x": "truncated or damaged",
    }
    for content, said in others.items():
        path.write_bytes(content)
        assert said in message(path)
        assert "model.kw" in message(path)


def test_a_zip_of_arrays_is_no_model(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../evil.npy", b"x")
    assert "zip archive" in message(path)


def test_a_newer_format_names_both_versions(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[:8] + (FORMAT + 6).to_bytes(4, "little") + raw[12:])
    assert f"format {FORMAT + 6}" in message(path)
    assert f"up to {FORMAT}" in message(path)
    assert kw.__version__ in message(path)


def test_other_files_of_ours_and_those_of_earlier_formats_are_named(path: Path) -> None:
    write(path, CHECKPOINT, {}, [])
    assert "it is a checkpoint of kernelweave, and no model file" in message(path)
    path.write_bytes(b"\x93KWMODEL" + bytes(100))
    assert "a model file of an earlier format, which is no longer read" in message(path)


def test_every_damaged_byte_of_the_preamble_and_the_ends_is_seen(path: Path) -> None:
    raw = path.read_bytes()
    for position in [*range(PREAMBLE + 8), len(raw) - 1]:
        path.write_bytes(raw[:position] + bytes([raw[position] ^ 0x10]) + raw[position + 1 :])
        message(path)


def test_missing_files_and_folders_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"^cannot load .*none.kw': there is no such file; name the one"
    ):
        kw.load_model(tmp_path / "none.kw")
    assert "regular file" in message(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "regular file" in message(tmp_path / "pipe")


@pytest.mark.parametrize(
    "dtype", ["|O", "O", "<f16", ">f8", "V8", "i4,i4", "<U0", "<M8[zz]", "float64", 8, None]
)
def test_types_that_no_file_holds(dtype: Any, path: Path) -> None:
    rewrite(path, lambda head: head["arrays"][0].__setitem__(0, dtype))
    message(path)


@pytest.mark.parametrize(
    "shape", [[10**15], [2**40, 2**40, 2**40], [-1, -8], [1.0], "12", [0, 10**30], [1] * 60, [True, 4], None]
)
def test_shapes_that_cannot_be(shape: Any, path: Path) -> None:
    rewrite(path, lambda head: head["arrays"][0].__setitem__(2, shape))
    tracemalloc.start()
    message(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_a_description_that_is_longer_than_the_file(path: Path) -> None:
    raw = path.read_bytes()
    for length in (len(raw), 2**40, 2**63):
        fields = FIELDS.pack(MAGIC, FORMAT, 0, length, len(raw))
        path.write_bytes(fields + raw[FIELDS.size :])
        assert "damaged" in message(path)


def test_arrays_that_belong_to_nothing(path: Path) -> None:
    _, _, data = parts(path)
    rewrite(path, lambda head: head["arrays"].append(["|u1", "C", [3], ""]), data + b"abc")
    assert "belong to nothing" in message(path)


def test_data_of_another_model_are_damage(path: Path) -> None:
    before, _, data = parts(path)
    raw = path.read_bytes()
    path.write_bytes(raw[: -len(data)] + data[::-1])
    assert "checksum of its arrays" in message(path)
    path.write_bytes(before[::-1] + raw[PREAMBLE:])
    assert "not a model file of kernelweave" in message(path)


@pytest.mark.parametrize(
    "text",
    [
        b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
        b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1),
        b"[" * 10**6,
        b'{"a": 1, "a": 2}',
        b"NaN",
        b"[Infinity]",
    ],
)
def test_json_that_is_refused(text: bytes) -> None:
    with pytest.raises(ContainerError):
        parse_json(text)


def test_brackets_inside_strings_do_not_count() -> None:
    text = json.dumps(['[[["\\' * 100, {"{": '"]'}]).encode()
    assert parse_json(text) == json.loads(text)


@pytest.mark.parametrize(
    "value",
    [
        {"object": {"class": "os.system", "parameters": {}, "state": {}}},
        {"object": {"class": "kernel:../../../tmp/x", "parameters": {}, "state": {}}},
        {"object": {"class": "kernel:FunctionKernel", "parameters": {"function": "os.system"}, "state": {}}},
        {"object": {"class": "gp:__builtins__", "parameters": {}, "state": {}}},
        {"object": {"class": "model:MKLClassifier", "parameters": {"system": 1}, "state": {}}},
        {"object": {"class": "model:MKLClassifier", "parameters": {}, "state": {}}},
        {"object": {"class": "model:MKLClassifier", "parameters": {"checkpoint": "/tmp/x"}, "state": {}}},
        {"object": {"class": "kernel:RBF", "parameters": {}, "state": {"__class__": 1}}},
        {"object": {"class": "kernel:RBF", "parameters": {}, "state": {"_compute": 1}}},
        {"object": {"class": "kernel:RBF", "parameters": {}, "state": {"gamma": 1}}},
        {"object": ["kernel:RBF"]},
        {"function": "os.system"},
        {"array": 10**6},
        {"array": -1},
        {"array": True},
        {"__reduce__": ["os.system", "true"]},
        {},
        {"float": 1, "list": 2},
        {"float": "1e999"},
        [],
        None,
        "model",
        3,
    ],
)
def test_descriptions_of_something_else(value: Any, path: Path) -> None:
    rewrite(path, lambda head: head.__setitem__("content", value))
    message(path)


def test_a_sparse_matrix_that_points_outside(tmp_path: Path) -> None:
    from scipy import sparse

    X = sparse.csr_array(np.where(numbers(N_TRAIN, 0) > 2, 1.0, 0.0))
    path = tmp_path / "model.kw"
    kw.save_model(fitted(kw.MKLClassifier([Linear()]), X, labels()), path)
    _, head, data = parts(path)
    table = head["content"]["object"]["state"]["model_"]["predictor"]["rows"]["csr"]
    sizes = [np.prod(shape, dtype=int) * np.dtype(dtype).itemsize for dtype, _, shape, _ in head["arrays"]]
    start = sum(sizes[: table["indices"]])
    bad = np.full(sizes[table["indices"]] // 4, 10**9, dtype="<i4").tobytes()
    assert head["arrays"][table["indices"]][0] == "<i4"
    rewrite(path, lambda head: None, data[:start] + bad + data[start + len(bad) :])
    message(path)


def test_bits_of_columns_that_are_not_there(tmp_path: Path) -> None:
    from kernelweave.kernels import per_feature

    X = np.random.default_rng(0).normal(size=(N_TRAIN, 20))
    path = tmp_path / "model.kw"
    kw.save_model(fitted(kw.MKLRegressor(per_feature(RBF())), X, X[:, 0]), path)
    _, head, data = parts(path)
    subsets = head["content"]["object"]["state"]["model_"]["predictor"]["batch"]["tuple"][2]["array"]
    sizes = [np.prod(shape, dtype=int) * np.dtype(dtype).itemsize for dtype, _, shape, _ in head["arrays"]]
    start, size = sum(sizes[:subsets]), sizes[subsets]
    rewrite(path, lambda head: None, data[:start] + b"\xff" * size + data[start + size :])
    assert "columns that are not there" in message(path)


def test_a_failed_save_leaves_the_file_before(
    model: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()

    def broken(*args: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="disk full"):
        kw.save_model(model, path)
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir()] == ["model.kw"]


def test_a_save_through_a_link_keeps_the_link(model: Any, path: Path) -> None:
    link = path.with_name("link.kw")
    link.symlink_to(path)
    before = path.stat().st_ino
    kw.save_model(model, link)
    assert link.is_symlink()
    assert path.stat().st_ino != before


def test_memory_of_a_large_file_stays_at_its_size(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(300, 2000))
    path = tmp_path / "large.kw"
    kw.save_model(fitted(kw.MKLRegressor([Linear()]), X, X[:, 0]), path)
    size = path.stat().st_size
    assert size > X.nbytes
    tracemalloc.start()
    kw.load_model(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.2 * size


def test_a_stream_of_zeros_is_no_model(path: Path) -> None:
    path.write_bytes(io.BytesIO(bytes(10**5)).getvalue())
    assert "not a model file of kernelweave" in message(path)
