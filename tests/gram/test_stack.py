"""KernelStack looks like an array of shape (n, n, M) and copies nothing on a split."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import train_test_split

from kernelweave.gram import KernelStack
from kernelweave.gram.stack import as_stack

MASK = np.array([True, False, True, True, False, True, False])
KEYS = {
    "row slice": np.s_[1:5],
    "stepped slice": np.s_[::-2],
    "list": [4, 0, 0],
    "mask": MASK,
    "all": np.s_[:],
    "both slices": np.s_[1:6, 2:4],
    "columns": np.s_[:, [3, 1]],
    "negative": [-1, -2],
}


@pytest.fixture
def array(matrices):
    return np.moveaxis(matrices(7, 3), 0, 2)


@pytest.fixture
def stack(array):
    return KernelStack([array[:, :, m] for m in range(3)], names=["a", "b", "c"])


def test_looks_like_the_array(stack, array):
    assert stack.shape == array.shape == (7, 7, 3)
    assert len(stack) == 7
    assert stack.ndim == 3
    assert stack.dtype == np.float64
    assert repr(stack) == "KernelStack(shape=(7, 7, 3))"
    np.testing.assert_array_equal(np.asarray(stack), array)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_slices_show_the_same_entries(stack, array, key):
    part = stack[key]
    np.testing.assert_array_equal(np.asarray(part), array[key])
    assert part.shape == array[key].shape
    assert len(part) == len(array[key])
    assert part.names == ["a", "b", "c"]


@pytest.mark.parametrize("kernels", [[2, 0], slice(1, None), np.array([True, False, True]), [-1]], ids=str)
def test_the_last_axis_chooses_kernels(stack, array, kernels):
    part = stack[1:5, :, kernels]
    np.testing.assert_array_equal(np.asarray(part), array[1:5, :, kernels])
    assert part.names == np.array(stack.names)[kernels].tolist()
    for same in (stack[..., kernels], stack[:, :, kernels]):
        np.testing.assert_array_equal(np.asarray(same), array[..., kernels])
    part = stack[np.ix_([3, 1], [0, 5, 2], np.arange(3)[kernels])]
    np.testing.assert_array_equal(np.asarray(part), array[np.ix_([3, 1], [0, 5, 2], np.arange(3)[kernels])])


def test_one_index_keeps_its_axis_and_wrong_ones_are_errors(stack, array):
    np.testing.assert_array_equal(np.asarray(stack[..., 1]), array[..., [1]])
    np.testing.assert_array_equal(np.asarray(stack[2, ..., 0]), array[2:3, :, :1])
    assert KernelStack.from_array(array)[:, :, [0, 2]].names is None
    for key in (np.s_[:, :, 3], np.s_[:, :, []], np.s_[:, :, :, :], np.s_[..., 0, ...]):
        with pytest.raises(IndexError):
            stack[key]


@pytest.mark.parametrize("rows", [[0, 2, 5], [6, 1], MASK, np.arange(7)], ids=str)
@pytest.mark.parametrize("columns", [[3], MASK, np.arange(6, -1, -1)], ids=str)
def test_ix_slices_both_axes(stack, array, rows, columns):
    key = np.ix_(rows, columns)
    np.testing.assert_array_equal(np.asarray(stack[key]), array[key])


def test_slices_of_slices_compose(stack, array):
    train, inner = np.array([6, 0, 3, 5, 2]), np.array([4, 1, 2])
    part = stack[np.ix_(train, train)][np.ix_(inner, inner)]
    np.testing.assert_array_equal(np.asarray(part), array[np.ix_(train, train)][np.ix_(inner, inner)])
    half = stack[1:6][:, 2:][[True, False, True, True, False]]
    np.testing.assert_array_equal(np.asarray(half), array[1:6][:, 2:][[True, False, True, True, False]])


@given(st.data())
def test_any_chain_of_splits(data):
    array = np.arange(6 * 6 * 2, dtype=float).reshape(6, 6, 2)
    stack = KernelStack.from_array(array)
    for _ in range(data.draw(st.integers(1, 3))):
        rows, columns = (
            data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=6)) for size in array.shape[:2]
        )
        stack, array = stack[np.ix_(rows, columns)], array[np.ix_(rows, columns)]
    np.testing.assert_array_equal(np.asarray(stack), array)
    np.testing.assert_array_equal(stack.matrix(1), array[:, :, 1])


def test_nothing_is_copied(stack, array):
    assert all(np.shares_memory(K, array) for K in stack.matrices)
    assert np.shares_memory(stack.matrix(1), array)
    assert np.shares_memory(stack[:].matrix(1), array)
    for part in (stack[1:4], stack[np.ix_([0, 1], [2, 3])], stack[MASK][:, 1:]):
        assert all(K is whole for K, whole in zip(part.matrices, stack.matrices, strict=True))


def test_from_array_shares_memory_when_kernels_are_contiguous(matrices):
    Ks = matrices(5, 3)
    stack = KernelStack.from_array(np.moveaxis(Ks, 0, 2))
    assert all(np.shares_memory(K, Ks) for K in stack.matrices)


def test_from_array_makes_each_matrix_contiguous(array):
    stack = KernelStack.from_array(np.ascontiguousarray(array))
    assert all(K.flags.c_contiguous for K in stack.matrices)
    np.testing.assert_array_equal(np.asarray(stack), array)


def test_one_matrix_is_one_kernel(array):
    stack = KernelStack.from_array(array[:, :, 0])
    assert stack.shape == (7, 7, 1)
    np.testing.assert_array_equal(stack.matrix(0), array[:, :, 0])


def test_types(array):
    single = KernelStack([array[:, :, 0].astype(np.float32)])
    assert single.dtype == np.float32
    assert KernelStack([np.eye(2, dtype=int)]).dtype == np.float64
    assert np.asarray(single, dtype=np.float64).dtype == np.float64
    mixed = KernelStack([np.eye(2), np.eye(2, dtype=np.float32)])
    assert np.asarray(mixed).dtype == mixed.dtype == np.float64


def test_array_is_a_copy_of_its_own(stack, array):
    before = array.copy()
    np.asarray(stack)[:] = 0.0
    np.testing.assert_array_equal(array, before)


def test_iteration_and_pickle(stack, array):
    assert sum(1 for _ in stack) == len(stack)
    back = pickle.loads(pickle.dumps(stack[np.ix_([0, 2], [1, 3])]))
    np.testing.assert_array_equal(np.asarray(back), array[np.ix_([0, 2], [1, 3])])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: KernelStack([]), "no matrices given; pass at least one"),
        (lambda: KernelStack([np.eye(2), np.eye(3)]), r"different shapes \[\(2, 2\), \(3, 3\)\]"),
        (lambda: KernelStack([np.eye(2)] * 3, names=["a", "b", "a"]), "names of several matrices: a; give"),
        (lambda: KernelStack([np.eye(2), 1j * np.eye(2)]), "matrix 1 has complex entries"),
        (lambda: KernelStack([np.eye(2), sparse.eye_array(2)]), "matrix 1 is sparse: pass a dense one"),
        (lambda: KernelStack([np.eye(2), np.ones(2)]), r"matrix 1 has shape \(2,\)"),
        (lambda: KernelStack([np.eye(2)], names=["a", "b"]), "2 names for 1 matrices"),
        (lambda: KernelStack.from_array(np.ones(3)), r"shape \(n_rows, n_columns, n_kernels\), got \(3,\)"),
        (lambda: KernelStack.from_array(np.ones((2, 2, 2, 2))), "n_kernels"),
    ],
)
def test_errors_name_the_remedy(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_rows_out_of_range_are_refused(stack):
    with pytest.raises(IndexError):
        stack[[7]]
    with pytest.raises(IndexError):
        stack[:3][np.array([True] * 7)]


def test_a_dict_names_its_matrices(stack):
    first, second, _ = stack.matrices
    named = KernelStack({"a": first, "b": second})
    assert named.names == ["a", "b"]
    np.testing.assert_array_equal(named.matrix(1), second)
    assert as_stack({"a": first}).names == ["a"]


def test_axes_behind_an_ellipsis_are_whole(stack, array):
    np.testing.assert_array_equal(np.asarray(stack[[2, 0], ...]), array[[2, 0], ...])
    np.testing.assert_array_equal(np.asarray(stack[:, [1], :]), array[:, [1], :])
    train, test = train_test_split(stack, random_state=0)
    np.testing.assert_array_equal(np.asarray(test), train_test_split(array, random_state=0)[1])
    assert len(train) + len(test) == len(stack)


def test_frames_have_one_order_of_samples():
    pd = pytest.importorskip("pandas")
    ids, K = list("abc"), np.eye(3) + 1.0
    frame, turned = pd.DataFrame(K, ids, ids), pd.DataFrame(K, ids[::-1], ids[::-1])
    assert KernelStack([frame, frame]).shape == (3, 3, 2)
    for wrong in ([pd.DataFrame(K, ids, ids[::-1])], [frame, turned]):
        with pytest.raises(ValueError, match=r"IDs of the first rows in another order.*K\.loc\[ids, ids\]"):
            KernelStack(wrong)
