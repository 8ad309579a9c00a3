"""Several tables of the same samples: joined by IDs, whatever their order, form and gaps."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

import kernelweave
from kernelweave.app.cli._comparing import make_candidate
from kernelweave.app.cli._console import CliError
from kernelweave.app.cli._methods import Options, make, search_of, search_words
from kernelweave.app.cli._options import KernelChoice, Reading, Source, settled
from kernelweave.app.cli._read import read_table
from kernelweave.app.cli._splits import make_folds, split_rows
from kernelweave.app.cli._tables import design
from kernelweave.kernels import RBF, Linear

N = 40


@pytest.fixture
def study(tmp_path: Path) -> Callable[..., Path]:
    """Writes four files, in different orders: rna with samples in columns, meth, prot, labels."""
    rng = np.random.default_rng(3)
    ids, z = [f"P{i:02d}" for i in range(N)], rng.normal(size=N)

    def view(width: int, letter: str, seed: int) -> pd.DataFrame:
        values = z[:, None] + rng.normal(size=(N, width))
        named = pd.DataFrame(values, index=ids, columns=[f"{letter}{j}" for j in range(width)])
        return named.sample(frac=1, random_state=seed)

    tables: dict[str, Any] = {"rna": view(5, "g", 1), "meth": view(4, "c", 2), "prot": view(3, "p", 3)}
    labels = pd.DataFrame(
        {"subtype": np.where(z > 0, "a", "b"), "patient": [f"d{i // 2}" for i in range(N)]}, ids
    )
    tables["clinical"] = labels

    def write(**changed: Any) -> Path:
        held = {name: changed.get(name, lambda table: table)(table) for name, table in tables.items()}
        held["rna"].T.rename_axis("gene").to_csv(tmp_path / "rna.csv")
        held["meth"].rename_axis("sample").reset_index().to_parquet(tmp_path / "meth.parquet")
        held["prot"].rename_axis("sample").to_csv(tmp_path / "prot.tsv", sep="\t")
        held["clinical"].rename_axis("sample").to_csv(tmp_path / "clinical.csv")
        return tmp_path

    write.tables = tables  # type: ignore[attr-defined]
    return write


def changed(table: pd.DataFrame, row: str, value: Any, columns: Any = slice(None)) -> pd.DataFrame:
    table = table.astype(object) if isinstance(value, str) else table.copy()
    table.loc[row, columns] = value
    return table


def source_in(folder: Path, **changed: Any) -> Source:
    options: dict[str, Any] = {
        "views": [
            f"rna={folder / 'rna.csv'}",
            f"meth={folder / 'meth.parquet'}",
            f"prot={folder / 'prot.tsv'}",
        ],
        "labels": f"{folder / 'clinical.csv'}:subtype",
        "transpose": ["rna"],
    }
    return Source(**{**options, **changed})


def ready_in(folder: Path, source: dict[str, Any] | None = None, **reading: Any) -> Any:
    files = source_in(folder, **(source or {}))
    return design(files, settled(files, Reading(**{"ident": "sample", **reading})), KernelChoice())


def test_shuffled_and_transposed_tables_are_joined(study: Any) -> None:
    ready = ready_in(study())
    assert ready.ids.tolist() == study.tables["clinical"].index.tolist()
    assert ready.target.y.tolist() == study.tables["clinical"]["subtype"].tolist()
    for name in ("rna", "meth", "prot"):
        np.testing.assert_allclose(ready.views[name], study.tables[name].loc[ready.ids])
    train, rest = np.arange(30), np.arange(30, N)
    parts = ready.split(train, rest)
    for name in ("rna", "meth", "prot"):
        table = study.tables[name].loc[ready.ids].to_numpy()
        scaler = StandardScaler().fit(table[train])
        np.testing.assert_allclose(parts.X[name], scaler.transform(table[train]))
        np.testing.assert_allclose(parts.X_rest[name], scaler.transform(table[rest]))
    assert [view for _, _, view in parts.kernels] == ["rna", "rna", "meth", "meth", "prot", "prot"]


def test_who_is_left_out_is_said(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def labels(table: pd.DataFrame) -> pd.DataFrame:
        more = pd.DataFrame({"subtype": ["a", "b"], "patient": ["e", "e"]}, index=["Q1", "Q2"])
        return pd.concat([table.assign(subtype=table["subtype"].where(table.index != "P03")), more])

    ready = ready_in(study(clinical=labels))
    said = capsys.readouterr().err
    assert "2 samples with a label, in no view: left out, such as 'Q1' and 'Q2'" in said
    assert "1 sample of the views without 'subtype' in clinical.csv: left out, such as 'P03'" in said
    assert "names of columns of rna.csv" in said
    assert "Columns of clinical.csv that are not used: 'patient'" in said
    assert "column 'sample' of meth.parquet" in said
    assert len(ready.ids) == N - 1
    assert "P03" not in ready.ids


def test_samples_that_lack_a_view(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    gone = ["P01", "P05", "P07"]
    folder = study(prot=lambda table: table.drop(gone), meth=lambda table: changed(table, "P09", np.nan))
    words = "meth is missing in 1 of 40 samples and prot is missing in 3 of 40 samples.*--missing complete"
    with pytest.raises(CliError, match=words):
        ready_in(folder)
    ready = ready_in(folder, missing="complete")
    lacking = {
        name: ready.ids[~there].tolist()
        for name, there in zip(ready.views.names, ready.views.observed.T, strict=True)
    }
    assert lacking == {"rna": [], "meth": ["P09"], "prot": gone}
    assert "prot is missing in 3 of 40" in capsys.readouterr().err
    whole = ready_in(folder, drop_rows=True)
    assert set(ready.ids) - set(whole.ids) == {*gone, "P09"}
    assert "4 of 40 samples lack views or values" in capsys.readouterr().err


def test_single_gaps_are_filled_only_on_request(study: Any) -> None:
    folder = study(meth=lambda table: changed(table, "P09", np.nan, ["c1"]))
    with pytest.raises(CliError, match=r"'meth'.*1 column, such as 'c1'.*1 sample, such as 'P09'.*--impute"):
        ready_in(folder)
    every = np.arange(N)
    parts = ready_in(folder, impute="median").split(every, every)
    assert np.isfinite(parts.X["meth"]).all()


ERRORS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = {
    "repeated": (
        {"prot": lambda t: pd.concat([t, t.iloc[:2]])}, {}, {},
        r"prot\.tsv: column 'sample': 2 of 40 sample IDs .* more than once.*\(2 times\)",
    ),
    "repeated label": ({"clinical": lambda t: pd.concat([t, t.iloc[:1]])}, {}, {}, "1 of 40 sample IDs"),
    "samples in columns": ({}, {"transpose": []}, {"ident": None}, "are the samples: --transpose rna"),
    "no such view": ({}, {"transpose": ["dna"]}, {}, "--transpose dna: no such view"),
    "no such ID": ({}, {}, {"ident": "case"}, r"no column 'case' \(--id\)"),
    "other spelling": (
        {"prot": lambda t: t.rename(lambda i: i.lower())}, {}, {},
        r"'prot' .* has none of the 40 labelled samples: its IDs are such as 'p.*, those of clinical",
    ),
    "no labels": ({}, {"labels": None}, {}, "no table has a column 'y'.*--labels FILE:COLUMN"),
    "empty view": ({"prot": lambda t: t * np.nan}, {}, {}, r"'prot' \(.*prot.tsv\) has no values at all"),
    "no such column": ({}, {}, {"drop": ["x*"]}, "--drop: no column of the views"),
    "number IDs": (
        {"prot": lambda t: t.set_axis(range(len(t)))}, {}, {"ident": None},
        "prot.tsv: the first column, 'sample', holds no text.*--id",
    ),
    "text among numbers": (
        {"rna": lambda t: changed(t, "P02", "high")}, {}, {},
        r"--transpose\): the column of sample 'P02' holds 'high'",
    ),
    "two decimal marks": (
        {}, {}, {"decimal": ","}, r"rna\.csv: columns 'P.* hold numbers with a decimal point",
    ),
    "names of two kinds": (
        {"prot": lambda t: t.assign(one=t.index, two=t.index[::-1])}, {}, {}, "--id one --drop two$",
    ),
    "same name": (
        {}, {"views": ["a=clinical.csv", "a=meth.parquet"], "labels": None}, {}, "does not exist",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_what_stands_in_the_way_is_named(study: Any, case: str) -> None:
    changed, source, reading, words = ERRORS[case]
    with pytest.raises(CliError, match=words):
        ready_in(study(**changed), source, **reading)


def test_a_column_that_nobody_named(study: Any) -> None:
    path = study() / "clinical.csv"
    with pytest.raises(CliError, match=r"no column 'y', .* --labels clinical\.csv:COLUMN\. It has 'subtype'"):
        ready_in(path.parent, {"labels": str(path)})
    with pytest.raises(CliError, match=r"no column 'y', .* name it with --target COLUMN"):
        design(Source(data=path), Reading(), KernelChoice())


def test_labels_may_be_a_view_without_its_target(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    folder = study(clinical=lambda table: table.assign(age=range(N)))
    views = [f"rna={folder / 'rna.csv'}", f"clinical={folder / 'clinical.csv'}"]
    ready = ready_in(folder, {"views": views}, drop=["patient"], keep=["age"])
    assert list(ready.views["clinical"].columns) == ["age"]
    assert "without its columns 'subtype'" in capsys.readouterr().err
    alone = ready_in(
        folder, {"views": views, "labels": None}, target="subtype", drop=["patient"], keep=["age"]
    )
    assert alone.ids.tolist() == ready.ids.tolist()


def test_ids_are_taken_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,x\n007,1\n010,2\n", encoding="utf-8")
    pd.DataFrame({"id": [7, 10], "x": [1.0, 2.0]}).to_parquet(tmp_path / "b.parquet")
    assert read_table(tmp_path / "a.csv", text="id").frame["id"].tolist() == ["007", "010"]
    assert read_table(tmp_path / "b.parquet", text="id").frame["id"].tolist() == ["7", "10"]


# -- groups -------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_groups_stay_together(task: str) -> None:
    rng = np.random.default_rng(0)
    group_of = np.repeat([f"d{k}" for k in range(15)], 4)
    y = np.repeat(rng.permutation(np.arange(15) % 3), 4) if task == "classification" else rng.normal(size=60)
    target = SimpleNamespace(y=y, task=task)
    train, test, _ = split_rows(target, 0.25, 0, group_of)  # type: ignore[arg-type]
    splits = [(train, test), *make_folds(task, y, 4, 0, group_of, "--tune")]
    for train, test in splits:
        assert set(group_of[train]).isdisjoint(group_of[test])
        assert sorted([*train, *test]) == list(range(60))
        assert len(np.unique(y[train])) == len(np.unique(y)) or task == "regression"
    counted = [np.count_nonzero(y[test] == k) for k in range(3)] if task == "classification" else [len(test)]
    assert max(counted) - min(counted) <= 4


def test_a_class_in_one_group_is_refused() -> None:
    group_of, y = np.repeat(["a", "b", "c"], 4), np.repeat([0, 0, 1], 4)
    with pytest.raises(CliError, match="class 1 would be missing"):
        make_folds("classification", y, 3, 0, group_of, "--tune")
    with pytest.raises(CliError, match="there are 3 groups"):
        make_folds("classification", y, 4, 0, group_of, "--tune")


def test_groups_of_views_and_the_warning_without(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    folder = study()
    ready_in(folder)
    assert "--group patient keeps them together" in capsys.readouterr().err
    ready = ready_in(folder, group="patient")
    assert "Warning" not in capsys.readouterr().err
    assert ready.group_of.tolist() == study.tables["clinical"]["patient"].tolist()
    with pytest.raises(CliError, match="no column 'person'"):
        ready_in(folder, group="person")


def test_repeated_ids_of_one_table_are_warned_of(table: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(who=[f"s{k // 3}" for k in range(60)])
    reading = Reading(ident="who")
    design(Source(path), reading, KernelChoice())
    assert "column 'who' of data.csv has 20 values in 60 rows" in capsys.readouterr().err
    ready = design(Source(path), Reading(group="who"), KernelChoice())
    assert len(set(ready.group_of)) == 20  # type: ignore[arg-type]
    assert "who" not in ready.table.names  # type: ignore[union-attr]
    assert not capsys.readouterr().err


# -- files of other kinds -----------------------------------------------------------------------


def test_arrays_of_an_archive_are_views(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ids, y = [f"s{k}" for k in range(12)], np.arange(12) % 2
    np.savez(
        tmp_path / "all.npz", rna=rng.normal(size=(12, 3)), meth=rng.normal(size=(12, 2)), sample=ids, y=y
    )
    path = tmp_path / "all.npz"
    every = design(Source(views=[str(path)]), Reading(ident="sample"), KernelChoice())
    assert every.views.names == ["rna", "meth"]  # type: ignore[union-attr]
    one = design(Source(views=[f"meth={path}"]), Reading(ident="sample"), KernelChoice())
    assert one.views.shape == (12, 2)  # type: ignore[union-attr]
    with pytest.raises(CliError, match=r"have no sample IDs.*name it with --id; or, .* fit all\.npz"):
        design(Source(views=[str(path)]), Reading(), KernelChoice())
    with pytest.raises(CliError, match="the file holds 'rna' and 'meth'"):
        design(Source(views=[f"dna={path}"]), Reading(ident="sample"), KernelChoice())


def test_annotated_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cells.h5ad"
    path.write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(CliError, match=r'needs anndata: pip install "kernelweave\[omics\]"'):
        read_table(path)
    obs = pd.DataFrame({"kind": list("abababab")}, index=[f"c{k}" for k in range(8)])
    X = np.arange(16.0).reshape(8, 2)
    held = SimpleNamespace(X=X, obs=obs, obs_names=obs.index, var_names=pd.Index(["g1", "g2"]))
    monkeypatch.setitem(sys.modules, "anndata", SimpleNamespace(read_h5ad=lambda path: held))
    source = Source(views=[f"rna={path}"], labels=f"{path}:kind")
    ready = design(source, settled(source, Reading()), KernelChoice())
    np.testing.assert_array_equal(ready.views["rna"], X)  # type: ignore[union-attr]
    assert ready.target.y.tolist() == obs["kind"].tolist()


def test_excel_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.xlsx"
    path.write_bytes(b"x")
    frame = pd.DataFrame({"Unnamed: 0": ["a", "b"], "x": [1, 2], "z": ["1.5", "high"]})
    monkeypatch.setattr(pd, "read_excel", lambda path, **options: frame.copy())
    sheet = read_table(path)
    assert sheet.names == ["", "x", "z"]
    assert sheet.frame["x"].tolist() == [1.0, 2.0]

    def lacking(path: Path, **options: Any) -> None:
        raise ImportError("no openpyxl")

    monkeypatch.setattr(pd, "read_excel", lacking)
    with pytest.raises(CliError, match=r'needs openpyxl: pip install "kernelweave\[excel\]"'):
        read_table(path)


def test_real_files_of_every_kind(study: Any) -> None:
    pytest.importorskip("openpyxl", reason="needs openpyxl: kernelweave[excel]")
    anndata = pytest.importorskip("anndata", reason="needs anndata: kernelweave[omics]")
    folder, tables = study(), study.tables
    expected = ready_in(folder).views
    obs = tables["clinical"].loc[tables["rna"].index]
    tables["meth"].rename_axis("sample").reset_index().to_feather(folder / "meth.feather")
    tables["prot"].rename_axis("sample").to_excel(folder / "prot.xlsx")
    tables["clinical"].rename_axis("sample").to_excel(folder / "clinical.xlsx")
    anndata.AnnData(sparse.csr_matrix(tables["rna"].to_numpy()), obs, tables["rna"].T.iloc[:, :0]).write_h5ad(
        folder / "rna.h5ad"
    )
    names = {"rna": "rna.h5ad", "meth": "meth.feather", "prot": "prot.xlsx"}
    views = [f"{name}={folder / file}" for name, file in names.items()]
    for labels in ("clinical.xlsx", "rna.h5ad"):
        source = {"views": views, "labels": f"{folder / labels}:subtype", "transpose": []}
        ready = ready_in(folder, source, group="patient")
        assert sorted(ready.ids) == sorted(expected.ids)
        at = [expected.ids.tolist().index(name) for name in ready.ids]
        for name in names:
            np.testing.assert_allclose(ready.views[name], expected[at][name], rtol=1e-12)
        assert ready.group_of.tolist() == tables["clinical"].loc[ready.ids, "patient"].tolist()


@pytest.mark.filterwarnings("ignore::FutureWarning:mudata")
def test_real_files_of_several_modalities(study: Any) -> None:
    mudata = pytest.importorskip("mudata", reason="needs mudata: kernelweave[omics]")
    anndata = pytest.importorskip("anndata", reason="needs anndata: kernelweave[omics]")
    folder, tables = study(), study.tables
    held = mudata.MuData({name: anndata.AnnData(tables[name][3:]) for name in ("meth", "prot")})
    held.write(folder / "both.h5mu")
    source = {"views": [str(folder / "both.h5mu")], "transpose": []}
    ready = ready_in(folder, source, missing="complete")
    assert ready.views.names == ["meth", "prot"]
    for name, there in zip(ready.views.names, ready.views.observed.T, strict=True):
        assert set(ready.ids[there]) == set(tables[name].index[3:])
        assert list(ready.views[name].columns) == list(tables[name].columns)  # as in files of their own
        np.testing.assert_allclose(ready.views[name][there], tables[name].loc[ready.ids[there]])


# -- targets that are not learned ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "target", "words"),
    [
        (
            {"time": [1.5] * 60, "event": [0, 1] * 30},
            "time,event",
            "column of times.*--time and --event",
        ),
        ({"os": ["12", "30+"] * 30}, "os", "censored times, such as '30\\+'.*--time and --event"),
        ({"tags": ["a;b", "b"] * 30}, "tags", "several labels per row, such as 'a;b'"),
    ],
)
def test_targets_that_are_not_supported_are_named(table: Any, columns: Any, target: str, words: str) -> None:
    path = table(**columns)
    with pytest.raises(CliError, match=words):
        design(Source(path), Reading(target=target, drop=["y"]), KernelChoice())


def test_times_beside_events_are_warned_of(table: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(months=np.linspace(1.0, 9.0, 60), dead=[0, 1] * 30)
    design(Source(path), Reading(target="months", drop=["y"]), KernelChoice())
    assert "'months' of data.csv, beside 'dead', looks like a time of survival" in capsys.readouterr().err
    design(Source(path), Reading(target="months", drop=["y", "dead"]), KernelChoice())
    assert "survival" in capsys.readouterr().err  # leaving the events out does not make it right
    path = table(months=np.linspace(1.0, 9.0, 60))
    design(Source(path), Reading(target="months", drop=["y"]), KernelChoice())
    assert not capsys.readouterr().err


# -- sequences ----------------------------------------------------------------------------------


def test_sequences_reach_the_kernels_of_strings(table: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    dna = ["".join(rng.choice(list("ACGT"), 8)) for _ in range(60)]
    path = table(dna=dna)
    rows = np.arange(60)
    ready = design(Source(path), Reading(sequence=["dna"]), KernelChoice(kinds=["rbf", "spectrum"]))
    parts = ready.split(rows, rows)
    assert {name: type(kernel).__name__ for name, kernel in parts.kernels.items()} == {
        "all": "RBF",
        "dna: Spectrum(k=3)": "Spectrum",
    }
    assert parts.X[:, 2].tolist() == dna
    spec = tmp_path / "k.toml"
    spec.write_text('[[kernel]]\ntype = "WeightedDegree"\ndegree = 2\nname = "motifs"\n', encoding="utf-8")
    chosen = design(Source(path), Reading(sequence=["dna"]), KernelChoice(spec=spec)).split(rows, rows)
    assert list(chosen.kernels) == ["motifs"]
    assert chosen.kernels["motifs"].columns == [2]
    with pytest.raises(CliError, match=r"'dna' holds sequences.*--sequence dna"):
        design(Source(path), Reading(), KernelChoice())
    with pytest.raises(CliError, match="--sequence COLUMN"):
        design(Source(path), Reading(drop=["dna"]), KernelChoice(kinds=["spectrum"])).split(rows, rows)


def test_kernels_of_strings_need_a_view_of_sequences(study: Any) -> None:
    files = source_in(study())
    choice, rows = KernelChoice(kinds=["spectrum"]), np.arange(N)
    with pytest.raises(CliError, match="--kernel spectrum is for sequences"):
        design(files, settled(files, Reading(ident="sample")), choice).split(rows, rows)


# -- whole commands -----------------------------------------------------------------------------


def files_of(folder: Path) -> list[str]:
    return [text for view in source_in(folder).views for text in ("--view", view)]


@pytest.mark.system
def test_one_command_is_three_lines_of_python(study: Any, kw: Any) -> None:
    folder, out = study(), study().parent / "out"
    options = ["--labels", f"{folder / 'clinical.csv'}:subtype", "--id", "sample", "--transpose", "rna"]
    fitted = kw(
        "fit",
        *files_of(folder),
        *options,
        "--method",
        "lp",
        "--out",
        out,
        "--no-report",
        "--no-tune",
        "--json",
    )
    assert fitted.code == 0, fitted.err
    facts = json.loads(fitted.out)
    assert {one["role"] for one in facts["data"]["files"]} == {"rna", "meth", "prot", "labels"}
    with (out / "predictions.csv").open(encoding="utf-8") as file:
        rows = {row["sample"]: row for row in csv.DictReader(file)}
    labels = study.tables["clinical"]["subtype"]
    train = [name for name in labels.index if name not in rows]

    tables = {name: study.tables[name] for name in ("rna", "meth", "prot")}
    views = kernelweave.Views(tables, ids=labels.index)
    kernels = {name: [Linear(), RBF()] for name in tables}
    at = np.isin(labels.index, train)
    scaled = kernelweave.ViewTransformer(StandardScaler()).fit(views[at])
    model = kernelweave.MKLClassifier(kernels, regularizer="lp", random_state=0).fit(
        scaled.transform(views[at]), labels[at].to_numpy()
    )
    values = model.predict_proba(scaled.transform(views[~at]))[:, 0]
    told = [float(rows[name]["probability a"]) for name in labels.index[~at]]
    np.testing.assert_allclose(told, values, atol=1e-6)

    again = kw("predict", out, *files_of(folder), "--labels", f"{folder / 'clinical.csv'}:subtype", "--json")
    assert again.code == 0, again.err
    found = json.loads(again.out)
    where = dict(zip(found["sample"], found["probability a"], strict=True))
    np.testing.assert_allclose([where[name] for name in rows], told[: len(rows)], atol=1e-9)
    assert found["scores"]["accuracy"] > 0.6
    assert "were trained on" in again.err
    refused = kw("predict", out, *files_of(folder)[:4])
    assert refused.code == 2
    assert "'prot' is not there" in refused.err
    assert kw("inspect", out, "--json").code == 0


@pytest.mark.system
def test_groups_everywhere(study: Any, kw: Any) -> None:
    folder, out = study(), study().parent / "out"
    options = ["--labels", f"{folder / 'clinical.csv'}:subtype", "--id", "sample", "--transpose", "rna"]
    options += ["--group", "patient", "--kernel", "linear"]
    fitted = kw("fit", *files_of(folder), *options, "--method", "uniform", "--tune", "--out", out, "--json")
    assert fitted.code == 0, fitted.err
    with (out / "predictions.csv").open(encoding="utf-8") as file:
        held = {row["sample"] for row in csv.DictReader(file)}
    patients = study.tables["clinical"]["patient"]
    assert set(patients[list(held)]).isdisjoint(
        patients[[name for name in patients.index if name not in held]]
    )
    page = (out / "report.html").read_text(encoding="utf-8")
    assert all(f"P{k:02d}" in page for k in range(3) if f"P{k:02d}" in held)
    assert all(f"View {name}" in page for name in ("rna", "meth", "prot"))
    (folder / "moved").mkdir()
    (folder / "rna.csv").rename(folder / "moved" / "rna.csv")
    lost = kw("report", out, "--no-stability")
    assert lost.code == 2
    assert "--view rna=" in lost.err
    moved = f"rna={folder / 'moved' / 'rna.csv'}"
    assert kw("report", out, "--no-stability", "--view", moved).code == 0
    methods = "uniform sum,linear model,random forest,best single kernel"
    (folder / "moved" / "rna.csv").rename(folder / "rna.csv")
    compared = kw("compare", *files_of(folder), *options, "--methods", methods, "--folds", "2", "--json")
    assert compared.code == 0, compared.err
    assert not any(entry["failure"] for entry in json.loads(compared.out)["methods"])


@pytest.mark.system
def test_predictions_without_some_views(study: Any, kw: Any) -> None:
    folder = study(prot=lambda table: table.drop(["P01", "P05", "P07"]))
    out = folder / "out"
    options = ["--labels", f"{folder / 'clinical.csv'}:subtype", "--id", "sample", "--transpose", "rna"]
    fit = [
        "fit",
        *files_of(folder),
        *options,
        "--method",
        "lp",
        "--missing",
        "complete",
        "--out",
        out,
        "--quiet",
    ]
    result = kw(*fit, "--no-stability")
    assert result.code == 0, result.err
    predicted = kw("predict", out, "--view", f"meth={folder / 'meth.parquet'}", "--json")
    assert predicted.code == 0, predicted.err
    found = json.loads(predicted.out)
    assert set(found["views"]) == {"meth"}
    truth = study.tables["clinical"]["subtype"][found["sample"]].to_numpy()
    assert np.mean(truth == np.array(found["prediction"])) > 0.6
    odd = kw("predict", out, "--view", f"dna={folder / 'meth.parquet'}")
    assert odd.code == 2
    assert "fitted on the views 'rna', 'meth' and 'prot'" in odd.err
    refused = kw(*fit, "--method", "gmkl")
    assert refused.code == 2
    assert "--missing complete: --method gmkl" in refused.err


def test_margins_of_sparse_weights_alone_are_tuned() -> None:
    options = Options(missing="margin")
    search = search_of("lp", RBF(), options)
    assert [rule.p for rule in search.regularizers] == [1.0]
    assert search.missing == "margin"
    competition = search_of("auto", RBF(), options)
    assert competition.missing == "margin"
    rng = np.random.default_rng(0)
    tables = {name: rng.normal(size=(16, 2)) for name in ("a", "b")}
    tables["b"][:3] = np.nan
    rule = competition.set_params(Cs=2, cv=2).fit(tables, [0, 1] * 8).best_estimator_.regularizer
    assert rule.p == 1.0
    with pytest.raises(CliError, match="--missing margin is for sparse weights: use --method lp with --p 1"):
        make("elasticnet", RBF(), options)
    plain = make_candidate("uniform sum", SimpleNamespace(kernels=RBF()), options, 5)  # of `compare`
    assert plain.missing == "mask"


def test_words_of_a_search_have_the_norms() -> None:
    rules = [kernelweave.LpNorm(p) for p in (1.0, 4 / 3, 2.0, np.inf)]
    points = [{"regularizer": rule, "C": 1.0} for rule in rules]
    found = SimpleNamespace(best_params_=points[1], best_score_=0.5, best_index_=1)
    found.cv_results_ = {"params": points, "mean_test_score": np.array([0.1, 0.5, 0.1, 0.1])}
    said = search_words(found)
    assert "chose p = 4/3, C = 1 (score 0.500)" in said[0]
    assert said[1] == "p was tried: 1, 4/3, 2, inf"
