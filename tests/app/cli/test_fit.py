"""`fit` and what follows it: files, predictions, reports, JSON."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

import kernelweave
from kernelweave.app.cli._options import Method

pytestmark = pytest.mark.system  # whole commands

Kw = Callable[..., Any]

SPECIES = ["setosa", "versicolor", "virginica"]


def write(path: Path, X: np.ndarray, names: list[str], target: str, y: Any) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, target])
        writer.writerows([*row, value] for row, value in zip(X.tolist(), y, strict=True))
    return path


@pytest.fixture
def iris(tmp_path: Path) -> Path:
    X, y = load_iris(return_X_y=True)
    names = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    return write(tmp_path / "iris.csv", X, names, "species", np.array(SPECIES)[y])


@pytest.fixture
def diabetes(tmp_path: Path) -> Path:
    data = load_diabetes()
    return write(tmp_path / "diabetes.csv", data.data[:200], data.feature_names, "target", data.target[:200])


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_one_command_from_csv_to_report(kw: Kw, iris: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = kw("fit", iris, "--target", "species", "--out", out, "--no-stability")
    assert result.code == 0, result.err
    assert {path.name for path in out.iterdir()} == {
        "model.kw",
        "weights.csv",
        "predictions.csv",
        "report.html",
        "settings.json",
        ".kernelweave",
    }
    for text in ("Classification of 'species'", "38 held out", "this model", "majority class", " gap "):
        assert text in result.out
    assert "<html" in (out / "report.html").read_text(encoding="utf-8")
    assert list(dict.fromkeys(row["class"] for row in rows(out / "weights.csv"))) == SPECIES
    settings = json.loads((out / "settings.json").read_text())
    assert settings["scores"]["accuracy"] > 0.9
    held_out = rows(out / "predictions.csv")
    hits = np.mean([row["truth"] == row["prediction"] for row in held_out])
    assert hits == settings["scores"]["accuracy"]
    assert len(held_out) == settings["n_test"] == 38
    probabilities = [[float(row[f"probability {name}"]) for name in settings["classes"]] for row in held_out]
    np.testing.assert_allclose(np.sum(probabilities, axis=1), 1.0)


@pytest.mark.parametrize("test_size", ["0.25", "0"])
def test_the_console_says_what_the_report_does(
    kw: Kw, tmp_path: Path, rng: np.random.Generator, test_size: str
) -> None:
    """The verdict, the standard error of the score, and a warning where the mean would do better."""
    data = write(tmp_path / "noise.csv", rng.normal(size=(60, 3)), ["a", "b", "c"], "y", rng.normal(size=60))
    fit = ("fit", data, "--target", "y", "--method", "lp", "--no-tune", "--C", "100", "--no-stability", "-q")
    result = kw(*fit, "--test-size", test_size, "--out", tmp_path / "out")
    assert result.code == 0, result.err
    facts = json.loads(kw(*fit, "--test-size", test_size, "--out", tmp_path / "json", "--json").out)
    said, own = facts["verdict"], facts["compared"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert said.startswith("The model has learned next to nothing. ")
    assert said in result.out
    assert said.split(". ")[0] in page
    assert re.search(rf"this model +│ +{own['score']:.3f} ± {own['error']:.3f}", result.out)
    assert f"Scores {'on the held-out rows' if facts['n_test'] else own['how']}:" in " ".join(
        result.out.split()
    )
    assert own["score"] < facts["trivial"]
    assert f"Warning: the R2 of this model, {own['score']:.3f}, is below" in " ".join(result.err.split())


def test_predictions_are_those_of_the_model_in_python(kw: Kw, diabetes: Path, tmp_path: Path) -> None:
    """A pipeline that takes the file's columns, and a model that takes them standardised by hand."""
    out = tmp_path / "out"
    assert (
        kw(
            "fit",
            diabetes,
            "--target",
            "target",
            "--out",
            out,
            "--no-report",
            "--no-tune",
            "-q",
            "--method",
            "lp",
        ).code
        == 0
    )
    held_out = rows(out / "predictions.csv")
    table = rows(diabetes)
    X = np.array([[float(row[name]) for name in list(table[0])[:-1]] for row in table])
    test = np.array([int(row["row"]) - 1 for row in held_out])
    train = np.setdiff1d(np.arange(len(X)), test)
    Z = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    pipeline = kernelweave.load_model(out / "model.kw")
    model = pipeline[-1]
    predicted = [float(row["prediction"]) for row in held_out]
    np.testing.assert_allclose(predicted, model.predict(Z[test]), rtol=1e-8)
    frame = pd.read_csv(diabetes).iloc[test]
    np.testing.assert_allclose(predicted, pipeline.predict(frame[frame.columns[::-1]]), rtol=1e-12)
    refit = kernelweave.MKLRegressor(model.kernels, C=1.0).fit(
        Z[train], np.array([float(r["target"]) for r in table])[train]
    )
    np.testing.assert_allclose(refit.weights_, model.weights_, atol=1e-6)


def test_predict_repeats_what_fit_predicted_and_scores(kw: Kw, iris: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kw("fit", iris, "--target", "species", "--out", out, "--no-report", "--no-tune", "-q")
    result = kw("predict", out, iris, "--out", tmp_path / "p.csv")
    assert result.code == 0
    assert "accuracy" in result.err
    again = {row["row"]: row for row in rows(tmp_path / "p.csv")}
    for row in rows(out / "predictions.csv"):
        twin = again[row["row"]]
        assert (twin["truth"], twin["prediction"]) == (row["truth"], row["prediction"])
        for name in (name for name in row if name.startswith("probability")):
            assert float(twin[name]) == pytest.approx(float(row[name]), rel=1e-9)
    printed = kw("predict", out / "model.kw", iris)
    assert printed.out == (tmp_path / "p.csv").read_text()


def test_predict_without_the_target_and_with_other_columns(kw: Kw, iris: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kw("fit", iris, "--target", "species", "--out", out, "--no-report", "--no-tune", "-q")
    lines = ["petal_width,extra,petal_length,sepal_width,sepal_length", "0.2,9,1.4,3.5,5.1"]
    (tmp_path / "new.csv").write_text("\n".join(lines))
    result = kw("predict", out, tmp_path / "new.csv", "--json")
    document = json.loads(result.out)
    assert document["prediction"] == ["setosa"]
    assert document["scores"] == {}
    assert "'extra'" in result.err


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", get_args(Method))
@pytest.mark.parametrize("data", ["iris", "diabetes"])
def test_every_method_fits_and_predicts(
    method: str, data: str, kw: Kw, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path, out = request.getfixturevalue(data), tmp_path / "out"
    target = {"iris": "species", "diabetes": "target"}[data]
    result = kw(
        "fit",
        path,
        "--target",
        target,
        "--method",
        method,
        "--out",
        out,
        "--no-report",
        "--no-tune",
        "-q",
        "--json",
    )
    assert result.code == 0, result.err
    document = json.loads(result.out)
    score = next(iter(document["scores"].values()))
    assert score > {"iris": 0.85, "diabetes": 0.1}[data]
    assert document["n_kernels"] == len({row["kernel"] for row in document["weights"]})
    proof = document["certificate"]
    if method in ("lp", "elasticnet", "uniform"):
        assert proof["certified"] is True
        assert proof["value"] <= proof["tol"]
    assert kw("predict", out, path).code == 0
    assert kw("inspect", out).code == 0


@pytest.mark.parametrize("method", ["auto", "elasticnet", "gomp", "gmkl"])
def test_tune_chooses_on_the_training_part(method: str, kw: Kw, diabetes: Path, tmp_path: Path) -> None:
    options = ["--target", "target", "--method", method, "--groups", "a=age+sex+bmi,s=s*", "--tune"]
    result = kw("fit", diabetes, *options, "--out", tmp_path / "out", "--no-report", "-q", "--json")
    assert result.code == 0, result.err
    assert "cross-validation on the training part chose" in json.loads(result.out)["reasons"][0]


def test_normalize(kw: Kw, diabetes: Path, tmp_path: Path) -> None:
    out = ["--out", tmp_path / "out", "--no-report", "-q", "--json", "--normalize", "dimension"]
    result = kw("fit", diabetes, "--target", "target", "--method", "lp", *out)
    assert result.code == 0, result.err
    assert next(iter(json.loads(result.out)["scores"].values())) > 0.1
    assert kernelweave.load_model(tmp_path / "out" / "model.kw")[-1].normalize == "dimension"
    refused = kw("fit", diabetes, "--target", "target", "--method", "gmkl", *out)
    assert refused.code == 2
    assert "--normalize is for weights of several kernels: --method gmkl learns one." in refused.err


def test_tuned_unless_told_otherwise(kw: Kw, table: Callable[..., Path], tmp_path: Path) -> None:
    out = tmp_path / "out"

    def fitted(path: Path, *options: str) -> dict[str, Any]:
        shown = kw("fit", path, "--method", "uniform", *options, "--out", out, "--no-report", "-q", "--json")
        assert shown.code == 0, shown.err
        return {**json.loads(shown.out), "err": shown.err}

    path = table()
    found = fitted(path)
    assert found["tuned"] is True
    chose, tried = found["reasons"]
    assert "chose regularizer = Uniform(), C = " in chose
    assert tried.startswith("C was tried from ")
    lowest, highest = (float(tried.split()[k].strip(",")) for k in (4, 6))
    cost = kernelweave.load_model(out / "model.kw")[-1].C
    assert lowest <= cost <= highest
    for fixed in (["--no-tune"], ["--C", "3"], ["--p", "1"]):
        once = fitted(path, *fixed)
        assert once["tuned"] is False
        assert kernelweave.load_model(out / "model.kw")[-1].C == (3.0 if "--C" in fixed else 1.0)
    few = table("few.csv", y=["yes"] * 5 + ["no"] * 55)
    lacking = fitted(few)
    assert lacking["tuned"] is False
    assert "Nothing is tuned: 5 folds need at least 5 training rows in every class" in lacking["err"]
    refused = kw("fit", few, "--method", "uniform", "--tune", "--out", out, "-q")
    assert refused.code == 2
    assert "--tune: 5 folds need at least 5" in refused.err


def names_of(result: Any) -> list[str]:
    assert result.code == 0, result.err
    return [row["kernel"] for row in json.loads(result.out)["weights"]]


def test_groups_bands_and_kernel_files(kw: Kw, diabetes: Path, tmp_path: Path) -> None:
    common = [
        "--target",
        "target",
        "--out",
        tmp_path / "out",
        "--no-report",
        "--no-tune",
        "-q",
        "--json",
        "--method",
        "lp",
    ]
    grouped = kw("fit", diabetes, "--groups", "person=age+sex+b*,serum=s[1-6]", *common)
    assert set(names_of(grouped)) == {"person", "serum"}
    several = kw(
        "fit", diabetes, "--groups", "serum=s[1-6]", "--kernel", "rbf", "--kernel", "linear", *common
    )
    assert len(names_of(several)) == 2
    quiet = [word for word in common if word not in ("--json", "-q")]
    told = kw("fit", diabetes, "--groups", "serum=s[1-6]", *quiet)
    assert "columns in no group are not used: 'age', 'sex'" in " ".join((told.out + told.err).split())
    banded = kw("fit", diabetes, "--bands", "5", *common)
    assert set(names_of(banded)) == {"age..sex", "bmi..bp", "s1..s2", "s3..s4", "s5..s6"}
    spec = tmp_path / "k.toml"
    spec.write_text(
        '[[kernel]]\ntype = "RBF"\nname = "wide"\nfactor = 0.1\n'
        '[[kernel]]\ntype = "linear"\ncolumns = ["s*", "bmi"]\nname = "line"\n'
        '[[kernel]]\ntype = "Polynomial"\ndegree = 2\ncolumns = "b*"\nper_column = true\nname = "poly"\n'
    )
    listed = kw("fit", diabetes, "--kernels", spec, *common)
    assert set(names_of(listed)) == {"wide", "line", "poly: bmi", "poly: bp"}


def test_names_with_prefixes_make_groups_of_their_own(
    kw: Kw, tmp_path: Path, rng: np.random.Generator
) -> None:
    X = rng.normal(size=(40, 6))
    names = [f"{view}_{k}" for view in ("rna", "dna") for k in range(3)]
    path = write(tmp_path / "v.csv", X, names, "y", (X[:, 0] > 0).astype(int))
    result = kw(
        "fit", path, "--out", tmp_path / "out", "--no-report", "--no-tune", "-q", "--json", "--method", "lp"
    )
    assert set(names_of(result)) == {
        f"{v}: {k}" for v in ("rna", "dna") for k in ("Linear", "RBF(gamma=scale)")
    }
    assert "prefixes" in json.loads(result.out)["kernels"]


def test_categories_gaps_and_identifiers(kw: Kw, table: Any, tmp_path: Path) -> None:
    gaps = [*np.linspace(0, 1, 50).round(3).tolist(), *[""] * 10]
    path = table(c=["red", "blue", "green"] * 20, b=gaps, who=[f"p{k}" for k in range(60)])
    out = tmp_path / "out"
    options = ["--categorical", "c", "--impute", "median", "--id", "who", "--method", "lp"]
    result = kw("fit", path, *options, "--out", out, "--no-report", "--no-tune", "-q")
    assert result.code == 0, result.err
    assert rows(out / "predictions.csv")[0]["who"].startswith("p")
    features = json.loads(kw("inspect", out, "--json").out)["features"]
    assert features == ["a", "b", "c=blue", "c=green", "c=red"]
    new = tmp_path / "new.csv"
    new.write_text("who,a,b,c\nx,1,,red\ny,1,2,purple\n")
    assert kw("predict", out, new).code == 2
    allowed = kw("predict", out, new, "--allow-unseen")
    assert allowed.code == 0
    assert [line.split(",")[0] for line in allowed.out.splitlines()] == ["who", "x", "y"]


def test_a_model_of_categories_and_gaps_predicts_from_python(kw: Kw, table: Any, tmp_path: Path) -> None:
    """What `predict` says of a file is what the pipeline in the model file says of the same frame."""
    path = table(c=["red", "blue", ""] * 20, b=["", *np.linspace(0, 1, 59).round(3)], n=[1, 2, 3] * 20)
    out = tmp_path / "out"
    options = ["--categorical", "c", "--categorical", "n", "--impute", "mean", "--method", "lp"]
    assert kw("fit", path, *options, "--out", out, "--no-report", "--no-tune", "-q").code == 0
    features = json.loads(kw("inspect", out, "--json").out)["features"]
    assert features == ["a", "b", "c=blue", "c=red", "c=(missing)", "n=1", "n=2", "n=3"]
    said = json.loads(kw("predict", out, path, "--json").out)
    pipeline = kernelweave.load_model(out / "model.kw")
    frame = pd.read_csv(path).astype({"n": str})
    assert pipeline.predict(frame).tolist() == said["prediction"]
    np.testing.assert_allclose(pipeline.predict_proba(frame)[:, 0], said["probability no"], rtol=1e-12)
    with pytest.raises(ValueError, match="unknown categories"):
        pipeline.predict(frame.assign(c="purple"))


def test_drop_rows_says_how_many(kw: Kw, table: Any, tmp_path: Path) -> None:
    path = table(y=["yes", "no", ""] * 20)
    result = kw(
        "fit", path, "--drop-rows", "--out", tmp_path / "out", "--no-report", "--no-tune", "-q", "--json"
    )
    assert result.code == 0, result.err
    assert "20 of 60 rows" in result.err
    document = json.loads(result.out)
    assert document["n_train"] + document["n_test"] == 40


def test_gram_matrices_in_and_out(kw: Kw, tmp_path: Path) -> None:
    """A model of Gram matrices equals the model of the columns they come from."""
    X, y = load_breast_cancer(return_X_y=True)
    X = ((X - X.mean(axis=0)) / X.std(axis=0))[:150]
    K = np.stack([X[:, :10] @ X[:, :10].T, X[:, 10:] @ X[:, 10:].T], axis=2)
    np.savez(tmp_path / "k.npz", K=K, y=y[:150], kernel_names=np.array(["mean", "rest"]))
    np.savez(tmp_path / "new.npz", K=K[:5])
    out = tmp_path / "out"
    result = kw("fit", tmp_path / "k.npz", "--method", "lp", "--out", out, "-q", "--json", "--no-stability")
    assert set(names_of(result)) == {"mean", "rest"}
    assert json.loads(result.out)["scores"]["accuracy"] > 0.9
    predicted = json.loads(kw("predict", out, tmp_path / "new.npz", "--json").out)
    assert predicted["prediction"] == y[:5].tolist()
    for options in (["--method", "auto"], ["--method", "gomp"], ["--tune"]):
        other = kw("fit", tmp_path / "k.npz", *options, "--out", tmp_path / "other", "-q", "--no-report")
        assert other.code == 0, other.err
    wrong = kw("predict", out, tmp_path / "wrong.npz")
    assert wrong.code == 2
    np.savez(tmp_path / "narrow.npz", K=K[:5, :7])
    assert "150" in kw("predict", out, tmp_path / "narrow.npz").err


def test_views_of_an_archive_become_groups(kw: Kw, tmp_path: Path, rng: np.random.Generator) -> None:
    A, B = rng.normal(size=(2, 60, 3))
    np.savez(tmp_path / "v.npz", rna=A, image=B, y=(A[:, 0] > 0).astype(int))
    result = kw(
        "fit",
        tmp_path / "v.npz",
        "--kernel",
        "rbf",
        "--method",
        "lp",
        "--out",
        tmp_path / "out",
        "-q",
        "--json",
        "--no-report",
        "--no-tune",
    )
    assert set(names_of(result)) == {"rna", "image"}


def test_the_same_seed_gives_the_same_files(kw: Kw, diabetes: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        kw(
            "fit",
            diabetes,
            "--target",
            "target",
            "--out",
            tmp_path / name,
            "--no-report",
            "--no-tune",
            "-q",
            "--seed",
            "3",
        )
    for file in ("weights.csv", "predictions.csv"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_report_again_needs_the_same_file(kw: Kw, diabetes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kw(
        "fit",
        diabetes,
        "--target",
        "target",
        "--out",
        out,
        "--no-report",
        "--no-tune",
        "-q",
        "--method",
        "lp",
    )
    assert kw("report", out, "--no-stability", "-q").code == 0
    assert "diabetes.csv" in (out / "report.html").read_text(encoding="utf-8")
    diabetes.write_text(diabetes.read_text() + "\n1,1,1,1,1,1,1,1,1,1,1\n")
    changed = kw("report", out, "-q")
    assert changed.code == 2
    assert "was changed since" in changed.err
    diabetes.unlink()
    assert "--data" in kw("report", out, "-q").err


def test_task_inference_says_why(kw: Kw, diabetes: Path, tmp_path: Path) -> None:
    result = kw(
        "fit", diabetes, "--target", "target", "--out", tmp_path / "out", "--no-report", "--no-tune", "-q"
    )
    assert "Regression of 'target'" in result.out
    assert "--task overrides" in result.out


def test_nothing_held_out(kw: Kw, diabetes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = kw(
        "fit",
        diabetes,
        "--target",
        "target",
        "--test-size",
        "0",
        "--out",
        out,
        "--no-report",
        "--no-tune",
        "-q",
    )
    assert "Scores on the training rows" in result.out
    assert len(rows(out / "predictions.csv")) == 200


def test_features_in_place_of_gram_matrices(kw: Kw, iris: Path, tmp_path: Path) -> None:
    out, common = tmp_path / "low", ("fit", iris, "--target", "species", "--approximation", "nystroem")
    result = kw(*common, "--rank", "20", "--method", "lp", "--out", out)
    assert result.code == 0, result.err
    model = kernelweave.load_model(out / "model.kw")[-1]
    assert (model.gram_, model.rank) == ("low_rank", 20)
    assert all(float(row["weight"]) >= 0 for row in rows(out / "weights.csv"))
    assert kw("predict", out / "model.kw", iris, "--out", tmp_path / "again.csv").code == 0
    for wrong, words in ((("--method", "gomp"), "no low-rank form"), (("--tune",), "leave one out")):
        refused = kw(*common, *wrong, "--out", tmp_path / "no")
        assert refused.code != 0
        assert words in refused.err


def note_of(result: Any) -> str:
    assert result.code == 0, result.err
    return "".join(line for line in result.err.splitlines() if "were trained on" in line)


def test_predict_says_when_most_rows_were_trained_on(kw: Kw, diabetes: Path, tmp_path: Path) -> None:
    """All rows, those held out, rows of the training part in another order, and rows that are new."""
    out = tmp_path / "out"
    options = ["--target", "target", "--method", "uniform", "--no-report", "--no-tune", "-q"]
    assert kw("fit", diabetes, *options, "--out", out).code == 0
    held_out = {int(row["row"]) - 1 for row in rows(out / "predictions.csv")}
    header, *lines = diabetes.read_text().splitlines()

    def predict(chosen: list[str]) -> str:
        (tmp_path / "new.csv").write_text("\n".join([header, *chosen]) + "\n")
        return note_of(kw("predict", out, tmp_path / "new.csv", "--out", tmp_path / "p.csv"))

    assert "(75%)" in note_of(kw("predict", out, diabetes, "--out", tmp_path / "p.csv"))
    assert predict([line for k, line in enumerate(lines) if k in held_out]) == ""
    assert "(100%)" in predict([line for k, line in enumerate(lines) if k not in held_out][::-3])
    assert predict([",".join([f"{float(cell) + 0.01}" for cell in line.split(",")]) for line in lines]) == ""
    settings = json.loads(kw("inspect", out, "--json").out)["settings"]
    assert "training_rows" not in settings


def test_rows_that_cannot_be_told_apart_are_not_said_to_be_known(kw: Kw, table: Any, tmp_path: Path) -> None:
    path = table(a=[0, 1] * 30, b=[0, 0, 1, 1, 2, 2] * 10)
    assert (
        kw(
            "fit", path, "--out", tmp_path / "out", "--method", "uniform", "--no-report", "--no-tune", "-q"
        ).code
        == 0
    )
    assert note_of(kw("predict", tmp_path / "out", path, "--out", tmp_path / "p.csv")) == ""


def test_predict_on_the_gram_matrices_of_the_fit(kw: Kw, tmp_path: Path, rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 3))
    K = np.stack([X @ X.T, np.eye(40)], axis=2)
    np.savez(tmp_path / "k.npz", K=K, y=(X[:, 0] > 0).astype(int))
    np.savez(tmp_path / "new.npz", K=K[:5])
    out = tmp_path / "out"
    options = ["--method", "uniform", "--no-report", "--no-tune", "-q", "--out", out]
    assert kw("fit", tmp_path / "k.npz", *options).code == 0
    assert "(75%)" in note_of(kw("predict", out, tmp_path / "k.npz"))
    assert note_of(kw("predict", out, tmp_path / "new.npz")) == ""


def test_a_sketch_of_many_rows_estimates_the_share(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernelweave.app.cli import _bundle

    monkeypatch.setattr(_bundle, "KEPT", 500)
    X = rng.normal(size=(5000, 2))
    text = _bundle.sketch(X[:4000])
    assert len(text) < 500 * 8 * 1.34 + 4
    assert _bundle.known_share(X[2000:], text) == pytest.approx(2 / 3, abs=0.1)
    assert _bundle.known_share(X[:4000], text) == 1.0
    assert _bundle.known_share(X[4000:], text) == 0.0


@pytest.mark.parametrize("extra", [["--no-tune"], []], ids=["fit", "tune"])
def test_widths_of_gmkl_are_called_by_the_columns(
    extra: list[str], kw: Kw, diabetes: Path, tmp_path: Path
) -> None:
    names = diabetes.read_text().splitlines()[0].split(",")[:-1]
    out = tmp_path / "out"
    options = ["--target", "target", "--method", "gmkl", "--out", out, "-q", "--no-stability", *extra]
    result = kw("fit", diabetes, *options)
    assert result.code == 0, result.err
    assert {row["kernel"] for row in rows(out / "weights.csv")} == set(names)
    model = kernelweave.load_model(out / "model.kw")[-1]
    assert model.kernel_names_ == model.kernel_.names_ == names
    page = (out / "report.html").read_text(encoding="utf-8")
    assert not any(f">x{k}<" in page or f'"x{k}"' in page for k in range(len(names)))
