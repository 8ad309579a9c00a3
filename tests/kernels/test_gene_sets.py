"""One kernel for each set of a GMT file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import kernelweave as kw
from kernelweave.kernels import RBF, Linear, from_gmt, resolve_kernels

TEXT = "one\tabout\tA\tB\tC\n\ntwo\t\tB\tC,1.0\tD\t\nthree\tabout\tE\tF\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "sets.gmt").write_text(TEXT)
    return tmp_path / "sets.gmt"


def test_sets_overlap_and_take_every_column_of_a_gene(path: Path) -> None:
    genes = ["D", "C", "B", "A", "C", "F", "E"]
    sets = from_gmt(path, genes, Linear(), min_size=2)
    assert sets.groups == {"one": [1, 2, 3, 4], "two": [0, 1, 2, 4], "three": [5, 6]}
    X = np.random.default_rng(0).normal(size=(9, 7))
    for name, kernel in resolve_kernels(sets, X):
        part = X[:, sets.groups[name]]
        np.testing.assert_allclose(kernel.fit(X)(X), part @ part.T, atol=1e-12)


def test_what_is_left_out_is_said(path: Path) -> None:
    with pytest.warns(UserWarning, match=r"2 of 3 gene sets .* 75% of their 4 genes .* 3 of the 5 columns"):
        sets = from_gmt(path, ["A", "B", "C", "other", "F"], min_size=2)
    table = sets.coverage()
    assert table["columns"].tolist() == [3, 2, 0]
    assert table.loc["two", "share"] == pytest.approx(2 / 3)
    assert clone(sets).coverage().equals(table)


def test_several_kernels_per_set_and_model_files(path: Path) -> None:
    sets = from_gmt(path, list("ABCDEF"), [Linear(), RBF()], min_size=2)
    X = np.random.default_rng(0).normal(size=(20, 6))
    model = kw.MKLRegressor(sets).fit(X, X[:, 0])
    assert model.kernel_names_[:2] == ["one: Linear", "one: RBF(gamma=scale)"]
    kw.save_model(model, path.with_suffix(".kw"))
    np.testing.assert_array_equal(kw.load_model(path.with_suffix(".kw")).predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("text", "columns", "options", "message"),
    [
        (TEXT, ["a", "b"], {}, r"no set of sets.gmt has 5 of them, .* 'a' and 'b', genes 'A', 'B' and 'C'"),
        (TEXT, "ABC", {}, "columns must be the names"),
        (TEXT, [0, 1], {}, "columns must be the names"),
        (TEXT, list("ABC"), {"min_size": 0}, "min_size"),
        ("", list("ABC"), {}, "has no gene sets"),
        ("one about A B", list("ABC"), {}, "line 1: a gene set is a name"),
        ("one\t\tA\none\t\tB", list("ABC"), {}, "line 2: there are two sets 'one'"),
    ],
)
def test_what_is_wrong(path: Path, text: str, columns: Any, options: Any, message: str) -> None:
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        from_gmt(path, columns, **options)


def test_hallmark_sets_of_a_cohort(data_folder: Path) -> None:
    file, cohort = data_folder / "hallmark.gmt", data_folder / "survival_blca.npz"
    if not (file.exists() and cohort.exists()):
        pytest.skip(f"no {file} or no {cohort}")
    with np.load(cohort) as data:
        genes, X = data["rnaseq_names"].tolist(), data["X_rnaseq"].astype(float)
    with pytest.warns(UserWarning, match="gene sets have at least min_size=5"):
        sets = from_gmt(file, genes, Linear())
    assert all(name.startswith("HALLMARK_") for name in sets.groups)
    lines = [line.split("\t") for line in file.read_text().splitlines()]
    expected = {line[0]: len(set(line[2:]) & set(genes)) for line in lines}
    assert {name: len(own) for name, own in sets.groups.items()} == {
        k: v for k, v in expected.items() if v >= 5
    }
    model = kw.MKLRegressor(sets).fit(X[:60], X[:60].mean(axis=1))
    assert model.kernel_names_ == list(sets.groups)
