"""GramStore: kernel matrices in a file, as they were computed or not at all."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave import GramStore, KernelStack, _container
from kernelweave.gram import Dictionary, FeatureSource, StackSource
from kernelweave.gram.blocks import Blocks
from kernelweave.gram.packed import StoreGram, pack, triangle_size
from kernelweave.gram.stack import as_stack
from kernelweave.gram.store import Triangle
from kernelweave.kernels import NORMALIZATIONS, RBF, FunctionKernel, Linear

KEYS = {
    "row slice": np.s_[1:5],
    "stepped slice": np.s_[::-2],
    "list": [4, 0, 0],
    "mask": np.arange(12) % 3 == 1,
    "both slices": np.s_[1:6, 2:4],
    "columns": np.s_[:, [3, 1]],
    "both axes": np.ix_([5, 0, 11], [2, 7]),
}
KERNELS = {"narrow": RBF(2.0), "wide": RBF(0.1), "line": Linear()}


@pytest.fixture(name="store")
def store_of_three_kernels(X, tmp_path) -> GramStore:
    return GramStore.build(tmp_path / "three.gram", KERNELS, X)


@pytest.fixture(name="Ks")
def its_matrices(X) -> np.ndarray:
    return np.stack([kernel.fit(X)(X) for kernel in KERNELS.values()], axis=2).astype(np.float32)


def test_it_is_a_stack_of_single_precision(store, Ks):
    assert as_stack(store) is store
    assert isinstance(store, KernelStack)
    assert store.shape == (12, 12, 3)
    assert store.names == ["narrow", "wide", "line"]
    assert store.dtype == np.float32
    assert repr(store) == "GramStore('three.gram', shape=(12, 12, 3))"
    np.testing.assert_array_equal(np.asarray(store), Ks)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_slices_show_the_same_entries(store, Ks, key):
    part = store[key]
    assert isinstance(part, GramStore)
    assert part.shape == Ks[key].shape
    np.testing.assert_array_equal(np.asarray(part), Ks[key])
    np.testing.assert_array_equal(part.part(1, [0], slice(0, 2)), Ks[key][[0], 0:2, 1])
    np.testing.assert_array_equal(np.asarray(part[::-1][:, [0]]), Ks[key][::-1][:, [0]])


def test_diagonals(store, Ks):
    np.testing.assert_array_equal(store.diagonal(2), Ks[:, :, 2].diagonal())
    rows = np.array([7, 0, 3])
    np.testing.assert_array_equal(store[rows, rows].diagonal(2), Ks[rows, rows, 2])


def test_opened_again(store, Ks):
    again = GramStore.open(store.path)
    assert again.fingerprint == store.fingerprint
    np.testing.assert_array_equal(np.asarray(again), Ks)
    again.verify()


def test_kernels_of_a_table_and_matrices_of_ones_own(X, store, Ks, tmp_path):
    table = GramStore.build(tmp_path / "table.gram", KERNELS, pd.DataFrame(X))
    given = GramStore.build(tmp_path / "given.gram", "precomputed", KernelStack(list(np.moveaxis(Ks, 2, 0))))
    np.testing.assert_allclose(np.asarray(table), Ks, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(given), Ks)
    assert given.names == ["kernel 0", "kernel 1", "kernel 2"]
    assert given.fingerprint != store.fingerprint


@pytest.mark.parametrize("normalize", sorted(NORMALIZATIONS))
def test_normalised(X, rng, tmp_path, normalize):
    weight = rng.uniform(0.5, 2.0, size=len(X))
    store = GramStore.build(
        tmp_path / "normalised.gram", KERNELS, X, sample_weight=weight, normalize=normalize
    )
    gram = Dictionary(FeatureSource(list(KERNELS.items()), X, weight), normalize, weight).gram
    for m, unit in enumerate(np.eye(3)):
        np.testing.assert_allclose(store.matrix(m), gram.combine(unit), rtol=1e-5, atol=1e-6)


def test_bad_kernels_are_refused_and_leave_nothing(X, tmp_path):
    path = tmp_path / "bad.gram"
    with pytest.raises(ValueError, match="'kernel 0' is not positive semidefinite"):
        GramStore.build(path, "precomputed", [-np.eye(4)])
    huge = FunctionKernel(lambda A, B: 1e30 * (1e10 * (A @ B.T)))
    with (
        pytest.raises(ValueError, match="NaN or infinite entries in single precision"),
        np.errstate(all="ignore"),
    ):
        GramStore.build(path, {"huge": huge}, X)
    assert list(tmp_path.iterdir()) == []


# -- engines ----------------------------------------------------------------------------------


def test_the_engine_reads_the_store_where_it_lies(store, Ks):
    gram = Dictionary(StackSource(store), "variance", gram="store").gram
    assert isinstance(gram, StoreGram)
    assert gram.triangles is store.triangles
    assert gram.nbytes == 0
    assert pickle.loads(pickle.dumps(gram)).diag(np.ones(3)) == pytest.approx(gram.diag(np.ones(3)))
    assert len(pickle.dumps(gram)) < 2000
    some = StoreGram(Blocks.of_matrices(store).take(kernels=np.array([2, 0])))
    assert some.triangles is store.triangles
    np.testing.assert_array_equal(some.combine(np.array([1.0, 0.0])), Ks[:, :, 2])
    rows = np.array([9, 1, 4, 6])
    part = StoreGram(store).subset(rows)
    assert part.nbytes == 4 * 3 * 10
    np.testing.assert_array_equal(part.combine(np.eye(3)[1]), Ks[np.ix_(rows, rows)][:, :, 1])


def test_what_the_store_does_not_hold_is_refused(store):
    rows = np.array([9, 1, 4, 6])
    mixed = Blocks(
        [*Blocks.of_matrices(store).parts, *Blocks.of_matrices([np.eye(12)]).parts],
        [np.array([m]) for m in range(4)],
    )
    for kernels in (store[rows, rows], mixed, KernelStack([np.eye(12)])):
        with pytest.raises(ValueError, match="whole GramStore"):
            StoreGram(kernels)
    with pytest.raises(ValueError, match="a normalisation only scales"):
        Dictionary(StackSource(store), "center", gram="store")


def test_few_rows_of_a_file_too_large_to_stay_in_memory_take_one_pass(store, Ks, monkeypatch):
    monkeypatch.setattr("kernelweave.gram.packed.KEPT", 0)
    gram, weights, rows = StoreGram(store), np.array([1.0, 0.5, 0.0]), np.array([10, 2])
    np.testing.assert_allclose(gram.rows(rows, weights), (Ks @ weights)[rows], rtol=1e-6)
    assert gram.n_passes == pytest.approx(0.5 * 2 / 3)


@given(seed=st.integers(0, 10_000), n=st.integers(1, 30), dtype=st.sampled_from([np.float32, np.float64]))
def test_packing_and_unpacking_is_the_identity(seed, n, dtype):
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(n, n)).astype(dtype)
    K = np.tril(K) + np.tril(K, -1).T
    triangles = np.empty((1, triangle_size(n)), dtype)
    pack(Blocks.of_matrices([K]), triangles)
    unpacked, every = Triangle(triangles[0], n), np.arange(n)
    np.testing.assert_array_equal(triangles[0], K[np.tril_indices(n)])
    np.testing.assert_array_equal(unpacked.entries(every, every), K)
    rows, columns = (rng.integers(n, size=size) for size in rng.integers(1, 7, size=2))
    np.testing.assert_array_equal(unpacked.entries(rows, columns), K[np.ix_(rows, columns)])
    np.testing.assert_array_equal(unpacked.pairs(rows, rows[::-1]), K[rows, rows[::-1]])


def test_auto_reads_what_does_not_fit(tmp_path, rng):
    X = rng.normal(size=(100, 3))
    store = GramStore.build(tmp_path / "some.gram", [RBF(0.1 * (m + 1)) for m in range(20)], X)
    square, few = 8 * 100**2, np.arange(80)
    for stack, normalize, squares, name in (
        (store, "variance", 30, "dense"),
        (store, "variance", 9, "store"),
        (store, "center", 9, "blocked"),
        (store, "variance", 7, "blocked"),
        (store[few, few], "variance", 9, "blocked"),
    ):
        dictionary = Dictionary(StackSource(stack), normalize, memory_limit=squares * square, gram="auto")
        assert dictionary.gram.name == name


# -- the file ---------------------------------------------------------------------------------


def test_a_pickle_is_the_path(store, Ks, X):
    part = store[np.ix_([5, 2], [0, 1, 4])]
    for found in (pickle.loads(pickle.dumps(part)), copy.deepcopy(part)):
        assert found.names == store.names
        np.testing.assert_array_equal(np.asarray(found), Ks[np.ix_([5, 2], [0, 1, 4])])
    words = pickle.dumps(store)
    assert len(words) < 400
    before = np.asarray(store)
    GramStore.build(store.path, KERNELS, 2.0 * X)
    np.testing.assert_array_equal(np.asarray(store), before)  # what was open stays what it was
    with pytest.raises(ValueError, match="holds other kernel matrices than the store that was pickled"):
        pickle.loads(words)


def test_a_build_that_fails_leaves_what_was_there(store, Ks, X):
    def broken(A, B):
        if any(path.suffix == ".part" for path in store.path.parent.iterdir()):
            raise KeyboardInterrupt
        return A @ B.T

    with pytest.raises(KeyboardInterrupt):
        GramStore.build(store.path, [RBF(1.0), FunctionKernel(broken)], X)
    assert os.listdir(store.path.parent) == ["three.gram"]
    np.testing.assert_array_equal(np.asarray(GramStore.open(store.path)), Ks)


def test_too_little_disk_is_one_clear_error(X, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(
        OSError, match=r"need \d+ bytes \(1.\d+ KB\) of disk, .* has 1 KB left: choose a path"
    ):
        GramStore.build(tmp_path / "x.gram", KERNELS, X)
    assert os.listdir(tmp_path) == []


def start_of(store):
    """Where the triangles begin; each has 4 * 78 bytes."""
    return store.path.stat().st_size - 3 * 4 * 78


def changed(store, place, byte=None):
    """The store with one byte changed, or cut off there; places before 0 count from the first triangle."""
    content = bytearray(store.path.read_bytes())
    place = start_of(store) - place if place < 0 else place
    if byte is None:
        content = content[:place]
    else:
        content[place] ^= byte
    store.path.unlink()  # not the file that is open
    store.path.write_bytes(content)
    return store.path


@pytest.mark.parametrize(
    ("place", "byte", "words"),
    [
        (0, 1, "it is not a Gram store of kernelweave"),
        (8, 2, "it has format 3, and kernelweave .* reads formats up to 1"),
        (12, 1, "its first bytes make no sense"),
        (40, 1, "the checksum of its description is wrong"),
        (70, 1, "the checksum of its description is wrong"),
        (24, 1, "it is truncated or damaged"),
        (5, None, "it is truncated: it ends after 5 bytes"),
        (-1, None, r"it is truncated or damaged: it has \d+ bytes, and says \d+"),
        (-935, None, r"it is truncated or damaged: it has \d+ bytes, and says \d+"),
        (-(4 * 78 + 9), 64, "is damaged: the checksum of kernel 'wide' is wrong"),
    ],
)
def test_a_damaged_file_says_so(store, place, byte, words):
    with pytest.raises(ValueError, match=f"three.gram'.*{words}.*; build it again with GramStore.build"):
        GramStore.open(changed(store, place, byte))


def test_an_unfinished_file_is_no_store(store):
    content = store.path.read_bytes()
    head = start_of(store)
    store.path.write_bytes(b"\0" * head + content[head:])  # the head is written last
    with pytest.raises(ValueError, match="was not finished"):
        GramStore.open(store.path)


@pytest.mark.parametrize(
    "content",
    [{"n_samples": 13, "names": ["a", "b", "c"]}, {"n_samples": 12, "names": ["a"]}, {"names": []}, 3],
)
def test_a_head_of_another_file(store, content):
    with _container.opened(store.path) as file:
        head = _container.read_head(file, _container.STORE)
    data = store.path.read_bytes()[head.start :]
    store.path.unlink()
    store.path.write_bytes(_container.head_bytes(_container.STORE, content, head.layouts) + data)
    with pytest.raises(ValueError, match="cannot be read as a GramStore"):
        GramStore.open(store.path)


@pytest.mark.parametrize("kind", [_container.MODEL, _container.CHECKPOINT])
def test_other_files_of_ours_are_named(tmp_path, kind):
    _container.write(tmp_path / "other", kind, {}, [])
    with pytest.raises(ValueError, match=f"it is a {kind} of kernelweave, and no Gram store"):
        GramStore.open(tmp_path / "other")


def test_a_store_of_an_earlier_format_is_named(tmp_path):
    (tmp_path / "old").write_bytes(b"KWGRAM\r\n" + bytes(5000))
    with pytest.raises(ValueError, match="a Gram store of an earlier format, which is no longer read"):
        GramStore.open(tmp_path / "old")


def test_checksums_can_be_left_for_later(store, Ks):
    opened = GramStore.open(changed(store, -(4 * 78 + 9), 64), verify=False)
    np.testing.assert_array_equal(opened.matrix(0), Ks[:, :, 0])
    with pytest.raises(ValueError, match="checksum of kernel 'wide'"):
        opened.verify()


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        GramStore.open(tmp_path / "none.gram")
