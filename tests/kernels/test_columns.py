"""Column specifications and their errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_selector

from kernelweave.kernels import RBF, Linear, bands, per_feature, per_task
from kernelweave.kernels.columns import as_table, numeric_positions, resolve_columns, take_columns, take_rows

FRAME = pd.DataFrame(np.arange(8.0).reshape(2, 4), columns=list("abcd"))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (None, None),
        (2, [2]),
        (-1, [3]),
        (np.int64(1), [1]),
        ("b", [1]),
        (["d", "a"], [3, 0]),
        ([3, -4], [3, 0]),
        (slice(1, 3), [1, 2]),
        (slice("b", "c"), [1, 2]),
        (slice(None, None, 2), [0, 2]),
        ([True, False, True, False], [0, 2]),
        (np.array([False, True, False, True]), [1, 3]),
        (lambda X: ["c"], [2]),
        (make_column_selector(pattern="a|d"), [0, 3]),
        (pd.Index(["b", "c"]), [1, 2]),
    ],
)
def test_positions(columns, expected):
    positions = resolve_columns(columns, FRAME)
    assert positions is expected or positions.tolist() == expected


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "selects nothing"),
        (slice(3, 3), "selects nothing"),
        (4, "out of range: X has 4 columns"),
        (-5, "out of range"),
        (["a", "z"], r"unknown columns \['z'\]"),
        ([True, False], "mask has 2 entries, X has 4"),
        ([1.5], "expected positions, names, a slice or a mask"),
        ([1, "a"], "expected positions, names, a slice or a mask"),
    ],
)
def test_errors(columns, message):
    with pytest.raises(ValueError, match=message):
        resolve_columns(columns, FRAME)


def test_names_need_a_frame():
    with pytest.raises(ValueError, match="pass a DataFrame or positions"):
        Linear(columns=["a"])(np.zeros((2, 2)))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, pd.DataFrame])
def test_take(container):
    X = np.arange(12.0).reshape(3, 4)
    rows, columns = take_rows(container(X), np.array([2, 0])), take_columns(container(X), np.array([3, 1]))
    dense = [part.toarray() if sparse.issparse(part) else np.asarray(part) for part in (rows, columns)]
    np.testing.assert_array_equal(dense[0], X[[2, 0]])
    np.testing.assert_array_equal(dense[1], X[:, [3, 1]])


def test_tables():
    assert as_table([1, 2]).shape == (2, 1)
    assert as_table(pd.Series(["x", "y"])).shape == (2, 1)
    assert as_table(FRAME) is FRAME


def test_numeric_positions(frame):
    assert numeric_positions(frame).tolist() == [0, 2, 4]
    assert numeric_positions(np.zeros((2, 3))).tolist() == [0, 1, 2]


def test_kernels_differ_only_in_the_columns_they_see():
    X = np.random.RandomState(0).standard_normal((5, 4))
    np.testing.assert_allclose(Linear(columns=[3, 1])(X), X[:, [1, 3]] @ X[:, [1, 3]].T)
    np.testing.assert_allclose(Linear(columns=slice(0, 2))(X) + Linear(columns=slice(2, 4))(X), Linear()(X))


def test_with_columns_keeps_what_was_chosen_unless_told():
    kernel = Linear(columns=[1])
    assert kernel.with_columns([2]).columns == [2]
    assert kernel.with_columns([2], override=False).columns == [1]
    assert Linear().with_columns([2], override=False).columns == [2]
    assert kernel.columns == [1]


# -- dates ----------------------------------------------------------------------------------------

DATED = pd.DataFrame(
    {"a": [1.0, 2.0, 4.0], "when": pd.date_range("2020-01-31", periods=3), "task": [0, 1, 0]}
)


@pytest.mark.parametrize("columns", [None, ["when"], ["a", "when"]])
def test_a_numeric_kernel_names_the_dates_it_is_given(columns):
    with pytest.raises(ValueError, match="column 'when' holds dates or times"):
        RBF(columns=columns)(DATED)


@pytest.mark.parametrize(
    "family", [per_feature(), bands(1), per_task(RBF(columns=["a"]), task="task")], ids=str
)
def test_families_take_the_numeric_columns(family):
    for _, kernel in family.expand(DATED):
        assert np.isfinite(kernel(DATED)).all()
