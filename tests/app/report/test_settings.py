"""The code on the page makes the model again, and the page says what was done to the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.app.cli._design import make_encoder
from kernelweave.app.cli._options import Reading
from kernelweave.app.report import Report
from kernelweave.app.report.figures import Bar
from kernelweave.app.report.given import Subject
from kernelweave.app.report.methods import _preprocessing
from kernelweave.app.report.settings import code
from kernelweave.app.report.views import everything, score_scale
from kernelweave.kernels import RBF, per_feature


def views() -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(0)
    tables = {"rna": 5.0 + 3.0 * rng.normal(size=(24, 3)), "prot": rng.normal(size=(24, 2))}
    return tables, tables["rna"][:, 0] > 5.0


def run(text: str, X: Any, y: Any) -> Any:
    names: dict[str, Any] = {"X": X, "y": y}
    exec(text, names)
    return names["model"]


def test_a_transformer_that_needs_an_argument() -> None:
    X, y = views()
    model = make_pipeline(kw.ViewTransformer(StandardScaler()), kw.MKLClassifier("rbf")).fit(X, y)
    again = run(code(Subject(model, X, y)), X, y)
    assert np.allclose(again[-1].weights_, model[-1].weights_)


def test_what_was_done_to_the_data_before_is_in_the_code_and_in_the_methods() -> None:
    X, y = views()
    frame = pd.DataFrame(X["rna"], columns=["a", "b", "c"])
    frame.insert(1, "site", np.where(y, "north", "south"))
    frame.loc[3, "c"] = np.nan
    frame.loc[4, "site"] = None
    for table in (frame, frame[["a", "b", "c"]]):
        encoder = make_encoder(table, Reading(impute="median"))
        seen = encoder.fit_transform(table)
        model = kw.MKLClassifier(per_feature(RBF())).fit(seen, y)
        given = Subject(model, seen, y, preprocessing=encoder)
        again = run(code(given), table, y)
        assert np.array_equal(again[-1].weights_, model.weights_)
        words = _preprocessing(given)
        assert "filled with the median" in words
        assert "standardised" in words
        assert ("zeros and ones" in words) is ("site" in table)


def test_the_methods_and_the_page_count_samples_that_lack_views(tmp_path: Any) -> None:
    X, y = views()
    ids = [f"p{k}" for k in range(24)]
    tables = {name: pd.DataFrame(table, index=ids) for name, table in X.items()}
    tables["prot"] = tables["prot"].iloc[5:]
    seen = kw.Views(tables, ids=ids)
    scaler = kw.ViewTransformer({name: make_encoder(table, Reading()) for name, table in tables.items()})
    scaled = scaler.fit_transform(seen)
    model = kw.MKLClassifier("rbf", missing="mask", checkpoint=tmp_path / "state").fit(scaled, y)
    options: dict[str, Any] = {"stability": False, "baselines": []}
    report = Report.from_model(model, scaled, y, preprocessing=scaler, **options)
    assert "5 of the training samples lacked a view (prot in 5)" in report.methods
    assert f"{(~y).sum()} of class False, {y.sum()} of class True" in report.methods
    assert "Of 24 training samples, 19 have rna+prot and 5 have rna." in report.html()
    assert "checkpoint" not in everything(report)
    again = run(report.settings.code, seen, y)
    assert np.allclose(again[-1].weights_, model.weights_)


def test_no_axis_of_scores_goes_beyond_one() -> None:
    same = [Bar(name, 1.0, "1.000", interval=(1.0, 1.0)) for name in ("this model", "majority class")]
    assert score_scale(same, None).high == 1.0
    wide = [Bar("this model", 0.97, "0.970", interval=(0.93, 1.01)), same[0]]
    assert score_scale(wide, None).high == 1.0
