"""Censored times on the command line: what is refused, and a model from a file to new predictions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kernelweave import load_model
from kernelweave.app.cli import _methods
from kernelweave.app.cli._console import CliError
from kernelweave.app.cli._options import KernelChoice, Reading, Source, settled
from kernelweave.app.cli._splits import make_folds, split_rows
from kernelweave.app.cli._tables import design
from kernelweave.metrics import concordance_harrell

N = 48


def cohort(**changed: Any) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age, dose = rng.normal(size=(2, N))
    died, end = 10.0 * rng.exponential(np.exp(-2.0 * age)), 12.0 * rng.exponential(size=N)
    columns = {"patient": [f"P{k:02d}" for k in range(N)], "age": age, "dose": dose}
    columns |= {"months": np.minimum(died, end).round(3), "died": died <= end}
    return pd.DataFrame({**columns, **changed})


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    def write(name: str = "cohort.csv", **changed: Any) -> Path:
        cohort(**changed).to_csv(tmp_path / name, index=False)
        return tmp_path / name

    return write


def ready(path: Path, **options: Any) -> Any:
    asked = {"time": "months", "event": "died", "ident": "patient", **options}
    source = Source(path)
    return design(source, settled(source, Reading(**asked)), KernelChoice())


def of(value: Any, row: int, column: str) -> list[Any]:
    values = cohort()[column].tolist()
    values[row] = value
    return values


@pytest.mark.parametrize(
    ("changed", "options", "words"),
    [
        ({}, {"event": None}, "--time months: name the column that says whether the event was seen, --event"),
        ({}, {"time": None}, "--event died: name the column of the times with --time"),
        ({}, {"target": "age"}, "--target age: --time and --event name what to predict"),
        ({}, {"task": "regression"}, "--task regression: .* leave it out"),
        ({}, {"time": "month"}, r"no column 'month' \(--time\). Did you mean 'months'\?"),
        ({}, {"event": "dead"}, r"no column 'dead' \(--event\)"),
        ({"died": of(2, 3, "died")}, {}, "'died' .--event. holds 0, 1 and 2: it takes 1 or True where"),
        ({"died": ["dead", "alive"] * (N // 2)}, {}, "'died' .--event. holds 'alive' and 'dead': it takes"),
        ({"died": 0}, {}, "'died' .--event. has no event in 48 rows"),
        ({"months": of(-1.0, 4, "months")}, {}, "time 'months' is negative in row 5 .--time."),
        ({"months": of("soon", 4, "months")}, {}, "'months' .--time. holds text, such as 'soon' .row 5."),
        ({"months": of(None, 4, "months")}, {}, "the target 'months' is missing in 1 of 48 rows .row 5."),
        ({"died": of(None, 4, "died")}, {}, "the target 'died' is missing in 1 of 48 rows"),
    ],
)
def test_targets_that_cannot_be_are_refused(file: Any, changed: Any, options: Any, words: str) -> None:
    with pytest.raises(CliError, match=words):
        ready(file(**changed), **options)


def test_rows_without_a_time_are_left_out_on_demand(file: Any) -> None:
    found = ready(file(months=of(None, 4, "months")), drop_rows=True)
    assert len(found.target.y) == N - 1
    assert "P04" not in found.ids


def test_events_are_in_every_part_in_proportion(file: Any) -> None:
    target = ready(file()).target
    assert target.y["event"].tolist() == cohort()["died"].tolist()
    share = target.y["event"].mean()
    train, test, _ = split_rows(target, 0.25, 0)
    folds = make_folds(target.task, target.y, 4, 0, None, "--tune")
    for rows in (train, test, *(held for _, held in folds)):
        assert abs(target.y["event"][rows].mean() - share) < 0.1
    with pytest.raises(CliError, match=r"--tune: there are .* events; use at most"):
        make_folds(target.task, target.y, 40, 0, None, "--tune")


def test_methods_without_a_form_for_times_are_refused(kw: Any, file: Any, tmp_path: Path) -> None:
    for method in ("gmkl", "empirical-bayes"):
        result = kw("fit", file(), "--time", "months", "--event", "died", "--method", method)
        assert result.code == 2
        assert f"--method {method} has no form for --time and --event" in result.err


ASKED = ("--time", "months", "--event", "died", "--id", "patient")


@pytest.mark.system
def test_from_a_file_to_new_predictions(
    kw: Any, file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scores are those of the files written, and survival at a time is that of the model."""
    monkeypatch.setattr(_methods, "COSTS", (0.1, 1.0))
    data, out = file(), tmp_path / "out"
    fitted = kw("fit", data, *ASKED, "--out", out, "--no-stability", "--json", "--quiet")
    assert fitted.code == 0, fitted.err
    facts = json.loads(fitted.out)
    assert (facts["task"], facts["target"], facts["method"]) == ("survival", "months to died", "auto")
    assert facts["certificate"]["certified"]
    assert facts["baselines"][-1] == {"name": "same risk for all", "score": 0.5, "error": 0.0}
    told = pd.read_csv(out / "predictions.csv")
    assert list(told) == ["patient", "true time", "true event", "risk"]
    scored = concordance_harrell(told["true event"], told["true time"], told["risk"])
    assert facts["scores"]["concordance"] == pytest.approx(scored)

    new = tmp_path / "new.csv"
    cohort().drop(columns=["months", "died"]).to_csv(new, index=False)
    result = kw("predict", out, new, "--times", "3,9", "--out", tmp_path / "p.csv")
    assert result.code == 0, result.err
    told = pd.read_csv(tmp_path / "p.csv", index_col="patient")
    pipeline = load_model(out / "model.kw")
    X = pipeline[0].transform(cohort())
    expected = [[curve(3.0), curve(9.0)] for curve in pipeline[1].predict_survival_function(X)]
    np.testing.assert_allclose(told[["survival 3", "survival 9"]], expected)
    np.testing.assert_allclose(told["risk"], pipeline[1].predict(X))

    result = kw("predict", out, data)
    assert "Scores on these rows: concordance 0." in result.err
    file(died=2)
    result = kw("predict", out, data)
    assert result.code == 0
    assert "Nothing is scored: column 'died' (--event) holds 2" in result.err
    for times in ("soon", "-1", ","):
        assert f"--times {times}: expected times" in kw("predict", out, new, f"--times={times}").err
    file()
    assert "concordance on the held-out rows" in kw("inspect", out).out
    again = kw("report", out, "--no-stability", "--out", tmp_path / "again.html")
    assert again.code == 0, again.err
    assert "Survival by predicted risk" in (tmp_path / "again.html").read_text()
    assert "Survival by predicted risk" in (out / "report.html").read_text()


@pytest.mark.system
def test_views_and_comparisons(kw: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_methods, "COSTS", (0.1, 1.0))
    table = cohort()
    table[["patient", "age"]].to_csv(tmp_path / "a.csv", index=False)
    table[["patient", "dose"]].iloc[::-1].to_csv(tmp_path / "b.csv", index=False)
    table[["patient", "months", "died"]].to_csv(tmp_path / "clinical.csv", index=False)
    views = ["--view", f"a={tmp_path / 'a.csv'}", "--view", f"b={tmp_path / 'b.csv'}"]
    labels = ["--labels", tmp_path / "clinical.csv"]
    options = ["--out", tmp_path / "out", "--no-report", "--no-tune", "--json"]
    fitted = kw("fit", *views, *labels, *ASKED, *options)
    assert fitted.code == 0, fitted.err
    result = kw("predict", tmp_path / "out", *views, *labels, "--json")
    assert json.loads(result.out)["scores"]["concordance"] > 0.7
    compared = kw("compare", *views, *labels, *ASKED, "--methods", "gomp,uniform sum", "--folds", 2, "--json")
    assert compared.code == 0, compared.err
    methods = json.loads(compared.out)["methods"]
    assert all(one["failure"] is None and one["score"] > 0.5 for one in methods)
