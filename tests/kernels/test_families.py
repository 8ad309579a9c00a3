"""Families expand to the kernels they describe."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from kernelweave.kernels import (
    RBF,
    Chi2,
    Laplacian,
    Linear,
    Matern,
    Spectrum,
    auto,
    bands,
    bandwidths,
    per_feature,
    per_group,
    per_task,
    resolve_kernels,
)
from kernelweave.kernels.base import column_scale

X = np.random.RandomState(0).standard_normal((8, 5))
EVERY = [
    bandwidths(),
    bandwidths([0.1, 1.0]),
    per_feature(),
    per_group({"left": [0, 1], "right": slice(2, 5)}),
    bands(2, [Linear(), RBF()]),
    per_task(task=0),
    auto(),
]


@pytest.mark.parametrize("family", EVERY)
def test_contract(family):
    named = family.expand(X)
    assert len({name for name, _ in named}) == len(named)
    assert repr(clone(family)) == repr(family)
    for _, kernel in named:
        assert not hasattr(kernel, "columns_")
        assert kernel(X).shape == (8, 8)
    assert [(n, repr(k)) for n, k in named] == [(n, repr(k)) for n, k in family.expand(X)]


@pytest.mark.parametrize("family", EVERY)
def test_values_are_not_read(family):
    other = X.copy()
    other[:, 1:] = 0.0
    assert [repr(k) for _, k in family.expand(X)] == [repr(k) for _, k in family.expand(other)]


def test_bandwidths_relative_to_the_rule():
    factors = [
        kernel.fit(X).gamma_ / RBF().fit(X).gamma_ for _, kernel in bandwidths(5, low=0.1, high=10).expand(X)
    ]
    np.testing.assert_allclose(factors, np.geomspace(0.1, 10, 5))
    [(_, middle)] = bandwidths(1, low=0.1, high=10).expand(X)
    assert middle.factor == pytest.approx(1.0)


def test_bandwidths_absolute():
    kernels = [kernel for _, kernel in bandwidths([0.1, 2.0], [RBF(columns=[1]), Matern(nu=2.5)]).expand(X)]
    assert [getattr(k, k.bandwidth) for k in kernels] == [0.1, 2.0, 0.1, 2.0]
    assert [k.columns for k in kernels] == [[1], [1], None, None]
    assert kernels[2].nu == 2.5


@pytest.mark.parametrize("kernel", [RBF("median"), Laplacian(), Matern(), Chi2()])
def test_every_kernel_with_a_width_can_vary_it(kernel):
    P = np.abs(X)
    grams = [k(P) for _, k in bandwidths(3, kernel).expand(P)]
    assert not np.allclose(grams[0], grams[1])
    assert not np.allclose(grams[1], grams[2])


def test_per_feature(frame):
    named = per_feature(Linear()).expand(X)
    assert [name for name, _ in named] == ["x0", "x1", "x2", "x3", "x4"]
    np.testing.assert_allclose(sum(k(X) for _, k in named), X @ X.T)
    assert [name for name, _ in per_feature().expand(frame)] == ["a", "b", "c"]
    assert [name for name, _ in per_feature([RBF(), Linear()], columns=["c"]).expand(frame)] == [
        "c: RBF(gamma=scale)",
        "c: Linear",
    ]
    assert [name for name, _ in per_feature(Spectrum(), columns=["seq"]).expand(frame)] == ["seq"]


def test_per_group(frame):
    named = dict(per_group({"one": ["a", "c"], "two": "b"}, bandwidths([1.0, 2.0])).expand(frame))
    assert list(named) == ["one: RBF(gamma=1)", "one: RBF(gamma=2)", "two: RBF(gamma=1)", "two: RBF(gamma=2)"]
    np.testing.assert_allclose(named["one: RBF(gamma=2)"](frame), RBF(2.0)(frame[["a", "c"]]))


@pytest.mark.parametrize("n_bands", [1, 2, 3, 5])
def test_bands_partition_the_columns(n_bands):
    named = bands(n_bands, Linear()).expand(X)
    assert len(named) == n_bands
    assert [c for _, kernel in named for c in kernel.columns] == [0, 1, 2, 3, 4]
    assert max(len(k.columns) for _, k in named) - min(len(k.columns) for _, k in named) <= 1


def test_bands_of_chosen_columns(frame):
    named = bands(2, [Linear(), RBF()], columns=["c", "a", "b"]).expand(frame)
    assert [name for name, _ in named] == [
        "c..a: Linear",
        "c..a: RBF(gamma=scale)",
        "b: Linear",
        "b: RBF(gamma=scale)",
    ]
    assert named[0][1].columns == [4, 0]
    assert [name for name, _ in bands(2).expand(frame)] == ["a..b", "c"]


def test_per_task_blocks(frame):
    named = dict(per_task(Linear(columns=["a", "b"]), task="task").expand(frame))
    assert list(named) == ["shared", "task=u", "task=v", "task=w"]
    shared = named["shared"](frame)
    tasks = frame["task"].to_numpy()
    for task in "uvw":
        within = np.multiply.outer(tasks == task, tasks == task)
        np.testing.assert_allclose(named[f"task={task}"](frame), shared * within)
        np.testing.assert_allclose(named[f"task={task}"].diag(frame), np.diagonal(shared) * (tasks == task))


def test_per_task_uses_the_same_bandwidth_and_leaves_out_the_labels(frame):
    named = dict(per_task(task="task").expand(frame))
    expected = RBF().fit(frame[["a", "b", "c"]]).gamma_
    assert named["shared"].fit(frame).gamma_ == pytest.approx(expected)
    assert named["task=u"].fit(frame).kernel_.gamma_ == pytest.approx(expected)


def test_unseen_task_has_the_shared_kernel_only(frame):
    new = frame.head(3).assign(task="never")
    named = dict(per_task(task="task").expand(frame))
    fitted = {name: kernel.fit(frame) for name, kernel in named.items()}
    assert fitted["shared"](new, frame).min() > 0
    assert not any(fitted[name](new, frame).any() for name in named if name != "shared")
    assert not any(fitted[name].diag(new).any() for name in named if name != "shared")


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, sparse.coo_array])
def test_per_task_numeric_labels(container):
    labelled = np.column_stack([X, np.arange(8) % 2])
    named = dict(per_task(Linear(), task=-1).expand(container(labelled)))
    assert list(named) == ["shared", "-1=0", "-1=1"]
    fitted = named["-1=1"].fit(container(labelled))
    np.testing.assert_allclose(fitted(container(labelled))[1::2, 1::2], X[1::2] @ X[1::2].T)
    np.testing.assert_allclose(fitted(container(labelled), container(labelled[:4])).sum(axis=1)[::2], 0.0)


def test_auto_is_modest_and_deterministic(frame):
    assert [n for n, _ in auto().expand(frame)] == [
        "linear",
        "rbf scale*0.1",
        "rbf scale*1",
        "rbf scale*10",
        "rbf a",
        "rbf b",
        "rbf c",
    ]
    for n_columns, n_kernels in [(1, 4), (2, 6), (20, 24), (21, 4), (3000, 4)]:
        assert len(auto().expand(np.zeros((3, n_columns)))) == n_kernels
    for _, kernel in auto().expand(frame):
        assert np.isfinite(kernel(frame)).all()


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_auto_knows_no_units(container):
    """Columns in other units, and a constant one that varies later, change nothing."""
    units = np.array([1.0, 1e3, 1e-4, 1.0, 7.0])
    table = np.column_stack([X, np.full(8, 3.0)])
    other, new = np.column_stack([X * units, np.full(8, 3.0)]), np.column_stack([X * units, np.arange(8.0)])
    for (_, one), (_, two) in zip(auto().expand(table), auto().expand(other), strict=True):
        if one.columns == [5]:
            continue
        expected, two = clone(one).fit(container(table))(container(table)), clone(two).fit(container(other))
        np.testing.assert_allclose(two(container(other)), expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(two(container(new), container(other)), expected, rtol=1e-9, atol=1e-12)
    assert "standardize" not in Linear().label


def test_rare_columns_keep_a_common_unit():
    """Of words, the deviation says how rare they are, so that all have one unit; others have theirs."""
    words = (np.random.default_rng(0).random((40, 60)) < 0.05) * 3.0
    table = np.column_stack([words, 1e4 * np.arange(40.0)])
    scale = column_scale(table)
    np.testing.assert_allclose(scale[:60][words.any(axis=0)], 1.0 / 3.0)
    assert scale[60] == pytest.approx(1.0 / table[:, 60].std())
    np.testing.assert_allclose(scale, column_scale(sparse.csr_array(table)), rtol=1e-9)
    np.testing.assert_allclose(column_scale(X), 1.0 / X.std(axis=0))


@pytest.mark.parametrize("family", [auto(), bandwidths(kernel=RBF("weighted")), bands(2, RBF("weighted"))])
def test_weights_equal_repeats(family):
    weight = np.arange(8) % 3
    for _, kernel in family.expand(X):
        weighted = clone(kernel).fit(X, sample_weight=weight)(X)
        repeated = clone(kernel).fit(np.repeat(X, weight, axis=0))(X)
        np.testing.assert_allclose(weighted, repeated, rtol=1e-10)


def test_families_in_lists_and_in_families():
    named = resolve_kernels([Linear(), bandwidths(2), per_feature(bandwidths([1.0, 2.0]))], X)
    assert len(named) == 1 + 2 + 5 * 2
    assert len({name for name, _ in named}) == len(named)


STRINGS = pd.DataFrame({"s": ["a", "b"]})


@pytest.mark.parametrize(
    ("family", "data", "message"),
    [
        (bandwidths(3, Linear()), X, "kernel=Linear has no bandwidth"),
        (bandwidths(0), X, "values=0"),
        (bandwidths([]), X, "values is empty"),
        (bandwidths([-1.0]), X, r"values=-1\.0"),
        (bandwidths(3, low=0.0), X, "low=0"),
        (per_feature([]), X, "kernel is an empty list"),
        (per_feature("nothing"), X, "kernel: 'nothing' is not a kernel"),
        (per_feature(), STRINGS, "no numeric columns"),
        (auto(), STRINGS, "no numeric columns"),
        (per_group({}), X, "groups={}: expected a non-empty dict"),
        (per_group([1]), X, r"groups=\[1\]"),
        (bands(6), X, "n_bands=6 is more than the 5 columns"),
        (bands(0), X, "n_bands=0"),
        (per_task(task=9), X, "out of range"),
        (per_task(task=[0, 1]), X, "expected the name or position of one column"),
        (per_task(task=0), X[:, :1], "the only column"),
    ],
)
def test_errors(family, data, message):
    with pytest.raises(ValueError, match=message):
        family.expand(data)
