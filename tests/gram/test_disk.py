"""DiskGram: triangles in a file that is there as long as the engine, and no longer."""

from __future__ import annotations

import copy
import errno
import gc
import os
import pickle
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave import MKLClassifier
from kernelweave.gram import DenseGram, DiskGram, PackedGram, _files, disk
from kernelweave.gram.blocks import Blocks
from kernelweave.gram.packed import pack, triangle_size
from kernelweave.gram.store import Triangle
from kernelweave.kernels import RBF, FunctionKernel


@pytest.fixture(name="folder")
def temporary_files(tmp_path, monkeypatch):
    """Where temporary files go."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture(name="named")
def with_names(folder, monkeypatch):
    """The folder, of a system on which files that are mapped cannot be removed."""
    monkeypatch.setattr(_files, "NAMELESS", False)
    return folder


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


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


def test_the_same_numbers_as_in_memory(matrices, rng, folder):
    Ks, weights, alpha = list(matrices(90, 6)), rng.gamma(1.0, size=6), rng.normal(size=90)
    in_file, in_memory = DiskGram(Ks, dtype=np.float32), PackedGram(Ks, dtype=np.float32)
    rows = np.array([80, 3, 41])
    for one, other in ((in_file, in_memory), (in_file.subset(rows), in_memory.subset(rows))):
        np.testing.assert_array_equal(one.triangles, other.triangles)
        np.testing.assert_array_equal(one.combine(weights), other.combine(weights))
    np.testing.assert_array_equal(in_file.quad(alpha), in_memory.quad(alpha))
    exact = DenseGram(Ks)
    np.testing.assert_allclose(in_file.combine(weights), exact.combine(weights), rtol=1e-6, atol=1e-6)


def test_few_rows_of_a_file_too_large_to_stay_in_memory_take_one_pass(matrices, monkeypatch, folder):
    Ks, weights = matrices(64, 3), np.array([1.0, 0.5, 0.0])
    monkeypatch.setattr(disk, "KEPT", 0)
    gram = DiskGram(list(Ks))
    rows = np.array([60, 2])
    np.testing.assert_allclose(gram.rows(rows, weights), np.tensordot(weights, Ks, 1)[rows], rtol=1e-12)
    assert gram.n_passes == pytest.approx(0.5 * 2 / 3)


# -- the file ---------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="files that are mapped have to stay")
def test_the_file_has_no_name_so_that_nothing_is_left_of_a_process_that_is_killed(matrices, folder):
    gram = DiskGram(list(matrices(20, 4)), dtype=np.float32)
    assert Path(gram.triangles.filename).parent == folder
    assert files(folder) == []
    assert not gram.portable
    with pytest.raises(TypeError, match="share a GramStore"):
        pickle.dumps(gram)


def test_a_file_with_a_name_goes_with_the_last_that_reads_it(matrices, named):
    folder = named
    gram = DiskGram(list(matrices(20, 4)), dtype=np.float32)
    (name,) = files(folder)
    assert (folder / name).stat().st_size == 4 * 4 * 210
    part = gram.subset(kernels=np.array([1, 3]))
    few = gram.subset(np.arange(5))
    assert len(files(folder)) == 2
    del gram, few
    assert files(folder) == [name]
    assert part.diag(np.ones(2)).shape == (20,)
    del part
    assert files(folder) == []


def test_another_process_reads_the_same_file_and_leaves_it(matrices, named):
    folder = named
    gram, weights = DiskGram(list(matrices(20, 4))), np.arange(4.0)
    for other in (pickle.loads(pickle.dumps(gram)), copy.copy(gram)):
        np.testing.assert_array_equal(other.combine(weights), gram.combine(weights))
        assert os.fspath(other.triangles.filename) == os.fspath(gram.triangles.filename)
    assert len(pickle.dumps(gram)) < 2000
    del other
    assert len(files(folder)) == 1
    _files._remove(gram.triangles.filename, os.getpid() + 1)  # as in a process that was forked
    assert len(files(folder)) == 1


@pytest.fixture(name="task")
def task_of_two_classes(rng):
    X = rng.normal(size=(60, 3))
    return X, (X[:, 0] > 0).astype(int)


def test_no_file_is_left_by_a_fit(task, folder, monkeypatch):
    seen = []
    empty = DiskGram._empty
    monkeypatch.setattr(DiskGram, "_empty", lambda *args: seen.append(1) or empty(*args))
    model = MKLClassifier([RBF(0.1), RBF(1.0)], gram="disk").fit(*task)
    assert seen
    assert model.gram_ == "disk"
    assert files(folder) == []
    monkeypatch.setattr(_files, "NAMELESS", False)
    MKLClassifier([RBF(0.1), RBF(1.0)], gram="disk").fit(*task)
    gc.collect()  # what was compiled may be in cycles
    assert files(folder) == []


def test_no_file_is_left_by_a_fit_that_fails(task, named):
    folder = named

    def broken(X, Z):
        if files(folder):  # while the kernels are written
            raise RuntimeError("no more")
        return X @ Z.T

    def fit() -> str:
        try:
            MKLClassifier([RBF(0.1), FunctionKernel(broken)], gram="disk").fit(*task)
        except RuntimeError as error:
            return str(error)
        return ""

    assert fit() == "no more"
    gc.collect()
    assert files(folder) == []


def test_too_little_disk_is_one_clear_error(task, folder, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(OSError, match=r"need 14640 bytes \(14.6 KB\) of disk, .* has 1 KB left: set TMPDIR"):
        MKLClassifier([RBF(0.1), RBF(1.0)], gram="disk").fit(*task)
    assert files(folder) == []


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system reserves no room")
def test_a_disk_that_is_full_after_all(matrices, folder, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        DiskGram(list(matrices(5, 2)))
    assert files(folder) == []

    def unknown(*args):
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "posix_fallocate", unknown)
    assert DiskGram(list(matrices(5, 2))).n_samples == 5
