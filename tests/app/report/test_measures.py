"""Figures beside the score, ROC, views of each sample, the methods paragraph and advice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, mean_squared_error, roc_auc_score
from sklearn.model_selection import cross_val_predict

import kernelweave as kw
from kernelweave.app.report import Report
from kernelweave.app.report.measures import measures
from kernelweave.kernels import RBF, Linear


@pytest.fixture(scope="module")
def given() -> dict[str, Any]:
    """Two views of 60 samples, of which ten lack one, and names."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=60)
    ids = np.array([f"P{k:02d}" for k in range(60)], dtype=object)
    tables = {"rna": z[:, None] + rng.normal(size=(60, 3)), "meth": z[:, None] + rng.normal(size=(60, 2))}
    tables["meth"][::6] = np.nan
    views = kw.Views(tables, ids=ids)
    y = np.where(z > 0, "ill", "well")
    model = kw.MKLClassifier(RBF(), missing="mask").fit(views[:40], y[:40])
    options: dict[str, Any] = {"baselines": [], "stability": False, "groups": np.arange(40) // 2}
    report = Report.from_model(model, views[:40], y[:40], X_test=views[40:], y_test=y[40:], **options)
    return {"views": views, "y": y, "model": model, "report": report}


def test_figures_are_those_of_scikit_learn(given: Any, rng: np.random.Generator) -> None:
    model, X, truth = given["model"], given["views"][40:], given["y"][40:]
    more = given["report"].scores.more
    predicted = model.predict(X)
    assert more["balanced accuracy"] == pytest.approx(balanced_accuracy_score(truth, predicted))
    assert more["F1"] == pytest.approx(f1_score(truth, predicted, average="macro"))
    assert more["AUC"] == pytest.approx(roc_auc_score(truth == "well", model.decision_function(X)))
    curve = given["report"].scores.roc.curves[0]
    assert curve.name == "well"
    assert np.trapezoid(curve.y, curve.x) == pytest.approx(more["AUC"])
    y, f = rng.normal(size=(2, 30))
    assert measures("regression", y, f)["RMSE"] == pytest.approx(np.sqrt(mean_squared_error(y, f)))


def test_where_nothing_is_held_out_curves_are_those_of_folds(given: Any) -> None:
    views, y = given["views"][:40], given["y"][:40]
    report = Report.from_model(given["model"], views, y, baselines=[], stability=False)
    rows = np.random.RandomState(0).permutation(40)
    values = cross_val_predict(given["model"], views[rows], y[rows], cv=3, method="decision_function")
    assert report.scores.more["AUC"] == pytest.approx(roc_auc_score(y[rows] == "well", values))
    assert "on the cross-validated samples: the area under the curve" in report.html()


def test_the_page_names_samples_and_the_views_they_have(given: Any) -> None:
    found, views = given["report"].views, given["views"][40:]
    assert found.labels == tuple(views.ids)
    assert [used == "rna+meth" for used in found.used] == views.observed.all(axis=1).tolist()
    predicted, lacking = given["model"].predict(views), ~views.observed.all(axis=1)
    scores = {pattern: score for pattern, _, score in found.patterns}
    assert scores["rna"] == pytest.approx(np.mean((predicted == given["y"][40:])[lacking]))
    page = given["report"].html()
    assert "Sample P42: true" in page
    assert "views rna" in page


def test_the_methods_paragraph_has_the_numbers(given: Any) -> None:
    report = given["report"]
    for words in (
        "trained on 40 samples",
        "20 samples were held out",
        "regulariser LpNorm with p = 2",
        "cost C = 1",
        "kept together in all splits",
        f"AUC {report.scores.more['AUC']:.3f}",
        "Kloft",
        f"kernelweave {kw.__version__}",
    ):
        assert words in report.methods
    assert report.methods in report.html().replace("&#39;", "'")


def test_advice_where_a_fit_is_poor(given: Any, rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(40, 2)), np.repeat([0, 1], 20)
    options: dict[str, Any] = {"X_test": X[::2], "y_test": y[::2], "stability": False}
    search = kw.MKLClassifierCV(RBF(), regularizers="uniform", Cs=[0.01, 100.0], cv=2).fit(X, y)
    report = Report.from_model(search, X, y, baselines=[], **options)
    assert [words.startswith("C = ") and "value that was tried" in words for words in report.advice] == [True]
    noise = kw.MKLClassifier([RBF(), RBF(gamma=1.0)], C=1e-3).fit(X[::2], rng.permutation(y[::2]))
    poor = Report.from_model(noise, X[::2], y[::2], X_test=X[1::2], y_test=y[1::2], stability=False)
    assert any("--tune" in words for words in poor.advice)
    assert "Advice" in poor.html()


def test_baselines_of_a_model_with_margins_by_pattern(given: Any) -> None:
    X, y = given["views"][:40], given["y"][:40]
    model = kw.MKLClassifier(Linear(), regularizer=kw.LpNorm(p=1), missing="margin").fit(X, y)
    options: dict[str, Any] = {"X_test": given["views"][40:], "y_test": given["y"][40:], "stability": False}
    found = Report.from_model(model, X, y, **options).scores
    assert [entry.name.split(":")[0] for entry in found.baselines] == [
        "uniform sum of the kernels",
        "best single kernel",
        "majority class",
    ]
    assert not found.failed
