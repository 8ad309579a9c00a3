"""Attributions are those of shap's exact explainer, and shap's plots take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.kernels import RBF, Chi2, HistogramIntersection, Laplacian, Linear, Polynomial

shap = pytest.importorskip("shap", reason="needs shap")
pytestmark = pytest.mark.wide  # shap compiles its own loops first

RNG = np.random.default_rng(0)
X = RNG.gamma(2.0, size=(40, 6))
Y = X[:, 0] * X[:, 1] - X[:, 2]

MIXTURES = {
    "gaussian": [RBF()],
    "three kernels": [RBF(), Laplacian(), Polynomial(2, 0.2)],
    "histograms": [Chi2(), HistogramIntersection(), Linear(columns=[0, 3])],
    "products": [RBF() * Linear(), 2.0 * Laplacian(columns=[1, 2]) + RBF(columns=[2, 4])],
}


def exactly(function: Any, background: np.ndarray, rows: np.ndarray) -> Any:
    """shap's values over all subsets."""
    masker = shap.maskers.Independent(background, max_samples=len(background))
    return shap.explainers.Exact(function, masker)(rows, silent=True)


@pytest.mark.parametrize("kernels", MIXTURES.values(), ids=list(MIXTURES))
def test_a_regression_has_the_values_of_the_exact_explainer(kernels: list[Any]) -> None:
    model = kw.MKLRegressor(kernels).fit(X, Y)
    found, theirs = kw.explain(model, X[:3], X[10:18]), exactly(model.predict, X[10:18], X[:3])
    scale = np.abs(theirs.values).max()
    np.testing.assert_allclose(found.values, theirs.values, rtol=0, atol=1e-10 * max(1.0, scale))
    np.testing.assert_allclose(found.base_value, theirs.base_values, rtol=1e-10)


def test_classes_have_the_values_of_the_exact_explainer() -> None:
    model = kw.MKLClassifier([RBF(), Linear()]).fit(X, np.digitize(Y, [-1.0, 1.0]))
    ours = kw.explain(model, X[:3], X[10:18]).to_shap()
    theirs = exactly(model.decision_function, X[10:18], X[:3])
    np.testing.assert_allclose(ours.values, theirs.values, atol=1e-10)
    np.testing.assert_allclose(ours.base_values, theirs.base_values, atol=1e-10)
    assert ours.output_names == ["0", "1", "2"]


def test_a_summary_by_shap_is_a_background() -> None:
    model, summary = kw.MKLRegressor([RBF(), Linear()]).fit(X, Y), shap.kmeans(X, 4)
    found = kw.explain(model, X[:3], summary)
    expected = kw.explain(model, X[:3], summary.data, background_weight=summary.weights)
    np.testing.assert_allclose(found.values, expected.values)


def test_the_plots_of_shap_take_it() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pd = pytest.importorskip("pandas")
    genes = pd.DataFrame(X, columns=["TP53", "BRCA1", "MYC", "EGFR", "KRAS", "PTEN"])
    model = kw.MKLRegressor([RBF(), Linear()]).fit(genes, Y)
    told = kw.explain(model, genes[:20], genes[20:]).to_shap()
    assert isinstance(told, shap.Explanation)
    shap.plots.waterfall(told[2], show=False)
    labels = [label.get_text() for label in pyplot.gca().get_yticklabels()]
    assert any("TP53" in label for label in labels)
    pyplot.close("all")
    shap.plots.bar(told, show=False)
    assert "BRCA1" in " ".join(label.get_text() for label in pyplot.gca().get_yticklabels())
    pyplot.close("all")
