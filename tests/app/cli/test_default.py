"""`fit` without a method: candidates compete, and the model says why it was taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kernelweave
from kernelweave.app.cli import _methods
from kernelweave.app.cli._console import CliError
from kernelweave.app.cli._methods import Options, fit_model, no_search, usual_folds
from kernelweave.app.cli._monitor import Monitor
from kernelweave.app.cli._options import KernelChoice, Reading, Source
from kernelweave.app.cli._tables import design
from kernelweave.app.cli.compare import chosen_methods
from kernelweave.kernels import Linear

Kw = Callable[..., Any]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few costs."""
    whole = _methods.search_of
    few = lambda method, *given: whole(method, *given).set_params(Cs=2)  # noqa: E731
    monkeypatch.setattr(_methods, "search_of", few)


def test_the_model_is_that_of_a_competition_on_shuffled_folds(
    quick: None, tmp_path: Path, rng: np.random.Generator
) -> None:
    X = np.sort(rng.normal(size=(24, 1)), axis=0)  # in the order of the target
    y = X[:, 0] + 0.1 * rng.normal(size=24)
    parts = SimpleNamespace(X=X, kernels={"line": Linear()}, groups=None, names=["x"], encoder=None)
    told: list[str] = []
    monitor = Monitor(quiet=True)
    monitor.part = lambda detail, share=None: told.append(detail)  # type: ignore[method-assign]
    options = Options(task="regression", tune=True, seed=3)
    found = fit_model(options, parts, y, tmp_path / "none", monitor)  # type: ignore[arg-type]
    model = found.model
    assert isinstance(model, kernelweave.MKLAutoRegressor)
    assert (found.method, found.tuned, found.reason) == ("auto", True, model.reason_)
    assert (model.cv.shuffle, model.cv.random_state, model.cv.n_splits) == (True, 3, 5)
    assert str(found.candidates) == str(model.candidates_)  # some are NaN
    assert any("fold 5 of 5" in line for line in told)
    assert "_listener" not in vars(model)
    twin = kernelweave.MKLAutoRegressor({"line": Linear()}, Cs=2, cv=model.cv).fit(X, y)
    np.testing.assert_allclose(model.predict(X), twin.predict(X))


def test_folds_are_as_many_as_the_rows_allow() -> None:
    y = np.array(["a"] * 9 + ["b"] * 3)
    options, parts = Options(tune=True), SimpleNamespace(kernels={"line": Linear()}, encoder=None)
    assert usual_folds(options, y) == 3
    assert no_search(options, parts, y) == ""  # type: ignore[arg-type]
    named = Options(tune=True, method="lp")
    assert "5 folds need at least 5" in no_search(named, parts, y)  # type: ignore[arg-type]
    alone = no_search(options, parts, np.array(["a"] * 9 + ["b"]))  # type: ignore[arg-type]
    assert "class 'b' has 1" in alone
    assert "cv" not in alone
    tight = Options(tune=True, memory_limit="100B")
    assert "--memory-limit is 100B" in no_search(tight, parts, y)  # type: ignore[arg-type]


def test_groups_have_a_dictionary_each(table: Any) -> None:
    path, rows = table(c=np.linspace(0, 1, 60)), np.arange(60)
    choice = KernelChoice(groups="one=a,two=b+c", kinds=["auto"])
    kernels = design(Source(path), Reading(), choice).split(rows, rows).kernels
    assert kernels["one: linear"].columns == [0]
    assert kernels["two: linear"].columns == [1, 2]
    assert (kernels["two: rbf b"].columns, kernels["two: rbf c"].columns) == ([1], [2])
    banded = design(Source(path), Reading(), KernelChoice(bands=3, kinds=["auto"])).split(rows, rows)
    assert banded.kernels["c: linear"].columns == [2]
    assert banded.groups is None


def test_single_columns_have_no_kernels_where_they_are_many(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelweave.app.cli._kernels.MOST_ALONE", 2)
    path, rows = table(c=np.linspace(0, 1, 60)), np.arange(60)
    choice = KernelChoice(groups="one=a,two=b+c", kinds=["auto"])
    kernels = design(Source(path), Reading(), choice).split(rows, rows).kernels
    assert not any("rbf b" in name or "rbf c" in name for name in kernels)
    assert "two: linear" in kernels


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--time-budget", "5", "--no-tune"], "--time-budget is for candidates that compete"),
        (["--time-budget", "5", "--method", "lp"], "--time-budget is for candidates that compete"),
        (["--time-budget", "-1"], "expected a positive number of seconds"),
    ],
)
def test_a_budget_is_for_the_competition(options: list[str], words: str, kw: Kw, table: Any) -> None:
    refused = kw("fit", table(), *options, "-q")
    assert refused.code == 2
    assert words in refused.err


def test_a_comparison_may_have_the_competition(kw: Kw, table: Any) -> None:
    assert chosen_methods("auto,uniform sum", True) == ["auto", "uniform sum"]
    assert "auto" not in chosen_methods(None, True)
    options = ["--methods", "auto", "--folds", "2", "--kernel", "linear", "--json", "-q"]
    compared = kw("compare", table(rows=30), *options)
    assert compared.code == 0, compared.err
    assert json.loads(compared.out)["methods"][0]["failure"] is None


# -- columns that are not learned from as they are -----------------------------------------------


def test_constant_columns_are_named_once_and_left_out(table: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path, rows = table(k=[1.0] * 60, c=["red"] * 60), np.arange(60)
    ready = design(Source(path), Reading(categorical=["c"]), KernelChoice())
    assert "data.csv: 'k' and 'c' have one value in every row" in capsys.readouterr().err
    assert ready.split(rows, rows).X.shape == (60, 2)
    with pytest.raises(CliError, match="'k' and 'c' have one value in every row: nothing is left"):
        design(Source(path), Reading(drop=["a,b"], categorical=["c"]), KernelChoice())


def test_free_text_is_compared_by_its_letters(table: Any) -> None:
    rng = np.random.default_rng(0)
    words = ["sun", "rain", "wind", "snow", "hail", "fog"]
    path, rows = table(note=[" ".join([*rng.choice(words, 4), str(k)]) for k in range(60)]), np.arange(60)
    with pytest.raises(CliError, match=r"'note' holds free text, such as .*--sequence note"):
        design(Source(path), Reading(), KernelChoice())
    parts = design(Source(path), Reading(sequence=["note"]), KernelChoice(kinds=["auto"])).split(rows, rows)
    assert parts.kernels["note: Spectrum(k=3)"].columns == [2]
    assert {"linear", "rbf a", "rbf b"} < set(parts.kernels)


def test_columns_beside_a_curve_are_named(table: Any, capsys: pytest.CaptureFixture[str]) -> None:
    curve = {str(1100 + 2 * k): np.linspace(k, -1, 60) for k in range(20)}
    path = table(a=None, b=None, oil=np.linspace(0, 1, 60), starch=np.linspace(1, 3, 60), **curve)
    design(Source(path), Reading(), KernelChoice())
    assert "'oil' and 'starch' are learned from too" in capsys.readouterr().err
    design(Source(path), Reading(drop=["oil,starch"]), KernelChoice())
    assert not capsys.readouterr().err


# -- whole commands -----------------------------------------------------------------------------


@pytest.mark.system
@pytest.mark.slow
def test_three_classes_with_groups_from_fit_to_report(
    quick: None, kw: Kw, tmp_path: Path, rng: np.random.Generator
) -> None:
    X = rng.normal(size=(90, 4)).round(4)
    y = np.array(["low", "mid", "high"])[np.digitize(X[:, 0], [-0.4, 0.4])]
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(y=y, patient=np.arange(90) // 2)
    frame.to_csv(tmp_path / "d.csv", index=False)
    out = tmp_path / "out"
    options = ["--group", "patient", "--groups", "one=a+b,two=c+d", "--time-budget", "600"]
    result = kw("fit", tmp_path / "d.csv", *options, "--kernel", "linear", "--out", out, "--no-report")
    assert result.code == 0, result.err
    assert kw("report", out, "--no-stability", "-q").code == 0
    model = kernelweave.load_model(out / "model.kw")[-1]
    assert isinstance(model, kernelweave.MKLAutoClassifier)
    assert model.reason_ in " ".join(result.out.split())
    settings = json.loads((out / "settings.json").read_text())
    assert settings["reason"] == model.reason_
    assert [one["candidate"] for one in settings["candidates"]] == model.cv_results_["candidate"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "What was chosen" in page
    shown = kw("inspect", out).out
    assert "What competed" in shown
    assert model.reason_ in " ".join(shown.split())
    again = json.loads(kw("predict", out, tmp_path / "d.csv", "--json").out)
    assert again["prediction"] == kernelweave.load_model(out / "model.kw").predict(frame).tolist()


@pytest.mark.system
def test_several_tables_some_of_them_missing(
    quick: None, kw: Kw, tmp_path: Path, rng: np.random.Generator
) -> None:
    ids, z = [f"P{k:02d}" for k in range(40)], rng.normal(size=40)
    for name, first in (("rna", 0), ("meth", 4)):
        values = pd.DataFrame(z[:, None] + rng.normal(size=(40, 3)), index=ids, columns=list("abc"))
        values[first:].rename_axis("sample").to_csv(tmp_path / f"{name}.csv")
    labels = pd.DataFrame({"sample": ids, "kind": np.where(z > 0, "u", "v")})
    labels.to_csv(tmp_path / "labels.csv", index=False)
    views = [word for name in ("rna", "meth") for word in ("--view", f"{name}={tmp_path / name}.csv")]
    given = ["--labels", f"{tmp_path / 'labels.csv'}:kind", "--id", "sample", "--missing", "complete"]
    out = tmp_path / "out"
    result = kw("fit", *views, *given, "--out", out, "--no-report", "-q", "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert {"uniform sum, rna", "uniform sum, meth"} <= {one["candidate"] for one in found["candidates"]}
    alone = kw("predict", out, *views[:2], "--json")
    assert alone.code == 0, alone.err
    assert set(json.loads(alone.out)["views"]) == {"rna"}


@pytest.mark.system
@pytest.mark.parametrize("dropped", [[], ["--drop", "moisture,oil,starch"]])
def test_protein_of_corn_from_its_spectrum(
    dropped: list[str], kw: Kw, data_folder: Path, tmp_path: Path
) -> None:
    """Smooth curves, of which narrow kernels learn nothing; the other targets are in the table too."""
    corn = np.load(data_folder / "corn_nir.npz")
    frame = pd.DataFrame(corn["X_m5"], columns=corn["wavelength_nm"].astype(str))
    frame[[str(name).lower() for name in corn["property_names"]]] = corn["Y"]
    frame.to_csv(tmp_path / "corn.csv", index=False)
    options = ["--target", "protein", *dropped, "--out", tmp_path / "out", "--no-report", "-q", "--json"]
    result = kw("fit", tmp_path / "corn.csv", *options)
    assert result.code == 0, result.err
    assert json.loads(result.out)["scores"]["R2"] >= 0.9
