"""Every kind of estimator and of data gives a page; what does not apply is left out with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.app.report import Report, write_report
from kernelweave.inspection import contributions, stability_selection
from kernelweave.kernels import RBF, Linear, per_feature

pytestmark = pytest.mark.system  # whole pages


@pytest.fixture
def data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(48, 3))
    return X, X[:, 0] + 0.5 * X[:, 1] + 0.1 * rng.normal(size=48)


def labels(y: np.ndarray) -> np.ndarray:
    return np.digitize(y, [-0.4, 0.4])


def report_of(model: Any, X: Any, y: Any, **options: Any) -> Report:
    report = Report.from_model(model, X, y, stability=False, **options)
    assert report.html().rstrip().endswith("</html>")
    return report


def test_generalized_mkl_has_parameters_but_no_components(data: Any) -> None:
    X, y = data
    model = kw.GMKLClassifier().fit(X, y > 0)
    report = report_of(model, X, y > 0)
    assert report.samples is None
    assert report.redundancy is None
    assert np.array_equal(report.kernels.weights[0], model.weights_)
    assert "is not a sum of kernels" in report.html()


def test_a_novelty_detector_needs_no_targets(data: Any) -> None:
    X, _ = data
    model = kw.MKLOneClass(per_feature(RBF()), nu=0.2).fit(X)
    report = report_of(model, X, None)
    assert report.scores is None
    outside = int((model.predict(X) == -1).sum())
    assert f"{outside} of 48 training samples lie outside" in report.html()


@pytest.mark.parametrize("multiclass", ["ovo", "shared"])
def test_pairs_of_classes_and_shared_weights(data: Any, multiclass: str) -> None:
    X, y = data
    model = kw.MKLClassifier(per_feature(RBF()), multiclass=multiclass).fit(X, labels(y))
    report = report_of(model, X, labels(y))
    assert len(report.fitted.functions) == 3
    assert np.allclose(report.samples.parts, contributions(model, X))


def test_several_outputs(data: Any) -> None:
    X, y = data
    Y = pd.DataFrame({"up": y, "down": -y})
    report = report_of(kw.MKLRegressor(per_feature(Linear())).fit(X, Y), X, Y)
    assert report.fitted.functions == ("up", "down")
    assert report.errors.outputs == ("up", "down")
    assert "f of output up" in report.html()


def test_precomputed_matrices(data: Any) -> None:
    X, y = data
    K = np.stack([np.outer(x, x) for x in X.T], axis=2)
    train, test = np.arange(32), np.arange(32, 48)
    square, cross = K[np.ix_(train, train)], K[np.ix_(test, train)]
    model = kw.MKLClassifier("precomputed").fit(square, y[train] > 0)
    report = report_of(model, square, y[train] > 0, X_test=cross, y_test=y[test] > 0)
    assert len(report.scores.baselines) == 3
    assert np.allclose(report.samples.values[0], model.decision_function(cross))


def test_a_table_keeps_the_names_of_its_rows_and_columns(data: Any) -> None:
    X, y = data
    table = pd.DataFrame(X, columns=["a", "b", "c"], index=[f"patient {k}" for k in range(48)])
    model = make_pipeline(
        StandardScaler().set_output(transform="pandas"), kw.MKLRegressor(per_feature(Linear()))
    ).fit(table, y)
    report = report_of(model, table, y)
    assert report.kernels.names == ("a", "b", "c")
    assert report.samples.labels[:2] == ("patient 0", "patient 1")


def test_a_grid_search_reports_what_it_chose(data: Any) -> None:
    X, y = data
    search = GridSearchCV(kw.MKLRegressor(per_feature(Linear())), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    report = report_of(search, X, y)
    assert np.array_equal(report.kernels.weights[0], search.best_estimator_.weights_)
    assert report.convergence.final == search.best_estimator_.dual_gap_


def test_a_constant_greedy_model(data: Any) -> None:
    X, y = data
    model = kw.GroupOMPRegressor(per_feature(Linear()), tol=1e9).fit(X, y)
    report = report_of(model, X, y)
    assert report.path is None
    assert len(report.kernels.used) == 0


def test_an_interrupted_fit_is_not_called_certified(data: Any) -> None:
    X, y = data
    with pytest.warns(match="relative duality gap"):
        model = kw.MKLClassifier(per_feature(RBF()), max_iter=1, tol=1e-9).fit(X, y > 0)
    report = report_of(model, X, y > 0, baselines=[])
    assert "Not converged" in report.html()
    assert "Certified optimal" not in report.html()


def test_a_stability_result_is_taken_as_it_is(data: Any, tmp_path: Any) -> None:
    X, y = data
    model = kw.MKLRegressor(per_feature(Linear())).fit(X, y)
    result = stability_selection(model, X, y, n_subsamples=6, random_state=0)
    said: list[str] = []
    options: dict[str, Any] = {"stability": result, "baselines": []}
    path = write_report(tmp_path / "page.html", model, X, y, progress=said.append, **options)
    report = Report.from_model(model, X, y, **options)
    assert np.array_equal(report.kernels.stability.lower, result.low)
    assert np.array_equal(report.kernels.stability.frequency, result.frequency)
    assert "in 90 % of 6 fits on halves" in path.read_text(encoding="utf-8")
    assert said


def test_the_same_seed_and_time_give_the_same_page(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    X, y = data
    model = kw.MKLRegressor(per_feature(Linear())).fit(X, y)
    first, second = (Report.from_model(model, X, y, random_state=1).html() for _ in range(2))
    assert first == second
    assert "1970-01-01" in first


def test_the_checkpoint_of_the_fit_is_left_alone(data: Any, tmp_path: Any) -> None:
    X, y = data
    kernels = {"a": Linear(columns=0), "b": RBF()}
    model = kw.MKLRegressor(kernels, checkpoint=tmp_path / "state").fit(X, y)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    report = report_of(model, X, y)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert "checkpoint" not in report.settings.code


def test_a_model_read_from_a_file_lacks_only_what_it_dropped(data: Any, tmp_path: Any) -> None:
    X, y = data
    model = kw.GroupOMPRegressor(per_feature(Linear()), n_kernels=2).fit(X, y)
    kw.save_model(model, tmp_path / "model.kw")
    read = kw.load_model(tmp_path / "model.kw")
    first, second = report_of(model, X, y), report_of(read, X, y)
    assert np.allclose(first.samples.parts, second.samples.parts)
    assert first.scores == second.scores
    assert (len(first.redundancy.names), len(second.redundancy.names)) == (3, 2)


def test_the_method_says_how_classes_belong_together() -> None:
    X = np.random.default_rng(0).normal(size=(24, 2))
    y = np.arange(24) % 3
    words = {"joint": "learned together", "shared": "share the kernel weights", "ovo": "each pair"}
    for scheme, expected in words.items():
        model = kw.MKLClassifier({"wide": RBF(gamma=0.1), "narrow": RBF(gamma=1.0)}, multiclass=scheme)
        report = Report.from_model(model.fit(X, y), X, y, stability=False)
        assert expected in report.fitted.method
