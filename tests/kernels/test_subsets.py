"""Random subsets: kernels from bits and numbers equal those written out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from kernelweave.kernels import RBF, Linear, per_feature, random_subsets, resolve_kernels


@pytest.fixture(name="X")
def unlike_columns(rng):
    """Columns that differ in mean and scale; one is constant, one is far off and hardly varies."""
    X = rng.normal(size=(30, 12)) * rng.uniform(0.1, 5.0, size=12) + 3.0 * rng.normal(size=12)
    X[:, 4] = 2.5
    X[:, 5] = 1e6 + 1e-3 * X[:, 6]
    return X


def as_text(kernels):
    return [(name, repr(kernel)) for name, kernel in kernels]


def test_the_same_kernels_for_the_same_seed(X):
    first, again = (random_subsets(200, random_state=3).expand(X) for _ in range(2))
    assert as_text(first) == as_text(again)
    assert as_text(first) != as_text(random_subsets(200, random_state=4).expand(X))
    free = random_subsets(50, random_state=None)
    assert as_text(free.expand(X)) != as_text(free.expand(X))


def test_a_sequence_of_names_and_unfitted_kernels(X):
    kernels = random_subsets(150, max_columns=6).expand(X)
    assert len(kernels) == 150
    assert as_text(kernels) == as_text(kernels[m] for m in range(150)) == as_text(kernels[:])
    assert as_text([kernels[-1]]) == as_text(kernels[149:])
    with pytest.raises(IndexError):
        kernels[150]
    assert len({name for name, _ in kernels}) == 150
    for _, kernel in kernels:
        assert type(kernel) is RBF
        assert not hasattr(kernel, "columns_")
        assert kernel.columns == sorted(set(kernel.columns))


def test_columns_and_widths_are_spread(X):
    kernels = [kernel for _, kernel in random_subsets(5000, 2, 5, low=0.1, high=10.0).expand(X)]
    sizes = np.bincount([len(kernel.columns) for kernel in kernels], minlength=13)
    np.testing.assert_allclose(sizes[2:6] / 5000, 0.25, atol=0.03)
    assert sizes.sum() == sizes[2:6].sum()
    seen = np.bincount(np.concatenate([kernel.columns for kernel in kernels]), minlength=12)
    np.testing.assert_allclose(seen / seen.sum(), 1 / 12, atol=0.01)
    levels = np.histogram(np.log10([kernel.factor for kernel in kernels]), bins=4, range=(-1, 1))[0]
    np.testing.assert_allclose(levels / 5000, 0.25, atol=0.03)


def test_drawing_in_pieces_changes_nothing(X, monkeypatch):
    whole = random_subsets(100)
    expected, gammas = as_text(whole.expand(X)), [kernel.gamma_ for kernel in whole.expand(X).fit(X)]
    monkeypatch.setattr("kernelweave.kernels.subsets.DRAWN", 12 * 7)
    assert as_text(whole.expand(X)) == expected
    np.testing.assert_allclose([kernel.gamma_ for kernel in whole.expand(X).fit(X)], gammas, rtol=1e-14)


@pytest.mark.wide
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("container", ["array", "float32", "frame", "sparse"])
def test_fitted_at_once_as_one_by_one(X, rng, weighted, container):
    weight = rng.uniform(0.0, 2.0, size=30) if weighted else None
    table = {
        "array": lambda: X,
        "float32": lambda: X.astype(np.float32),
        "frame": lambda: pd.DataFrame(X, columns=[f"c{f}" for f in range(12)]),
        "sparse": lambda: sparse.csr_matrix(np.delete(X, 5, axis=1)),
    }[container]()
    kernels = random_subsets(300, max_columns=4).expand(table)
    fitted = kernels.fit(table, weight)
    assert len(fitted) == 300
    accuracy = 1e-4 if container == "float32" else 1e-9
    for m, (_, alone) in enumerate(kernels):
        alone.fit(table, sample_weight=weight)
        np.testing.assert_array_equal(fitted[m].columns_, alone.columns_)
        assert fitted[m].gamma_ == pytest.approx(alone.gamma_, rel=accuracy)
    assert [kernel.gamma_ for kernel in fitted[:3]] == [kernel.gamma_ for kernel in list(fitted)[:3]]


def test_names_tell_columns(X):
    frame = pd.DataFrame(X[:, :3], columns=["height", "weight", "age"]).assign(name="a")
    kernels = random_subsets(40, max_columns=2).expand(frame)
    texts = [name for name, _ in kernels]
    assert any("on height, age" in text for text in texts)
    assert not any("name" in text for text in texts)
    assert texts[7].startswith("rbf 7: scale*")
    assert "5 columns" in random_subsets(1, 5, 5).expand(X)[0][0]


def test_some_columns_only(X):
    kernels = random_subsets(60, columns=[2, 9, 5]).expand(X)
    assert {column for _, kernel in kernels for column in kernel.columns} == {2, 5, 9}
    assert max(len(kernel.columns) for _, kernel in kernels) == 3


def test_parameters_and_clones():
    family = random_subsets(7, max_columns=3, random_state=5)
    assert family.get_params() == {
        "n_kernels": 7,
        "min_columns": 1,
        "max_columns": 3,
        "low": 0.01,
        "high": 100.0,
        "columns": None,
        "random_state": 5,
    }
    X = np.zeros((4, 6))
    assert as_text(clone(family).expand(X)) == as_text(family.expand(X))
    assert len(clone(family).set_params(n_kernels=9).expand(X)) == 9


def test_alone_and_among_others(X):
    alone = resolve_kernels(random_subsets(20), X)
    assert not isinstance(alone, list)
    among = resolve_kernels([Linear(), random_subsets(20)], X)
    assert as_text(among[1:]) == as_text(alone)
    named = resolve_kernels({"subsets": random_subsets(3), "rest": per_feature()}, X)
    assert next(name for name, _ in named).startswith("subsets: rbf 0")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_kernels": 0}, "n_kernels=0: expected an integer >= 1"),
        ({"n_kernels": 2.5}, "n_kernels=2.5"),
        ({"min_columns": 0}, "min_columns=0"),
        ({"min_columns": 13}, "min_columns=13: there are 12 columns"),
        ({"min_columns": 4, "max_columns": 3}, "max_columns=3; ask for fewer"),
        ({"low": -1.0}, "low=-1.0: expected a positive number"),
        ({"low": 2.0, "high": 1.0}, "low=2.0 is larger than high=1.0"),
    ],
)
def test_bad_parameters(X, parameters, message):
    with pytest.raises(ValueError, match=message):
        random_subsets(**parameters).expand(X)


def test_text_columns_are_refused():
    with pytest.raises(ValueError, match="X has no numeric columns"):
        random_subsets(3).expand(pd.DataFrame({"a": ["x", "y"]}))
