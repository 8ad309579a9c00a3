"""Explanations of fitted models: they add up, follow the definition, and say what is not taken apart."""

from __future__ import annotations

from itertools import product
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import kernelweave as kw
from kernelweave.inspection import Explanation
from kernelweave.inspection.explanation import readable_names
from kernelweave.kernels import RBF, Laplacian, Linear, Matern, Polynomial, ProductRBF, Spectrum, per_feature

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 5))
Y = X[:, 0] * X[:, 1] + X[:, 2]


def by_definition(function: Any, x: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Shapley values over all subsets of the features, of a function of tables."""
    F = len(x)
    masks = np.array(list(product([False, True], repeat=F)))[:, ::-1]
    v = np.mean([function(np.where(masks, x, other)) for other in background], axis=0)
    phi, sizes = np.zeros(F), masks.sum(axis=1)
    for f in range(F):
        without = np.flatnonzero(~masks[:, f])
        orders = np.array([factorial(s) * factorial(F - s - 1) / factorial(F) for s in sizes[without]])
        phi[f] = orders @ (v[without + (1 << f)] - v[without])
    return phi


def values_of(model: Any, A: Any) -> np.ndarray:
    """f of every sample, with an axis for functions in front."""
    found = model.decision_function(A) if hasattr(model, "classes_") else model.predict(A)
    return np.atleast_2d(found.T)


def adds_up(found: Explanation, model: Any, A: Any) -> None:
    """By feature, by kernel, and by feature within each kernel."""
    expected, base = values_of(model, A), np.reshape(found.base_value, (-1, 1))
    for parts in (found.values, found.kernel_values):
        np.testing.assert_allclose(np.atleast_2d(parts.sum(axis=-1)) + base, expected, atol=1e-8)
    assert found.values.shape[-1] == len(found.feature_names)
    within = [found.within(name) for name in found.kernel_names]
    np.testing.assert_allclose(sum(within), found.values, atol=1e-10)
    for m, part in enumerate(within):
        np.testing.assert_allclose(part.sum(axis=-1), found.kernel_values[..., m], atol=1e-8)


KERNELS = {"rbf": RBF(), "l1": Laplacian(columns=[1, 2]), "poly": Polynomial(2, 0.2), "mix": RBF() * Linear()}


@pytest.mark.parametrize("normalize", ["variance", "center", None])
def test_a_regression_is_explained_as_defined(normalize: str | None) -> None:
    model = kw.MKLRegressor(KERNELS, normalize=normalize).fit(X, Y)
    found = kw.explain(model, X[:3], background=X[3:7])
    assert not found.whole
    adds_up(found, model, X[:3])
    assert found.base_value == pytest.approx(model.predict(X[3:7]).mean())
    for x, phi in zip(X[:3], found.values, strict=True):
        np.testing.assert_allclose(phi, by_definition(model.predict, x, X[3:7]), atol=1e-10)


def test_weights_of_the_background_count_rows() -> None:
    model = kw.MKLRegressor(KERNELS).fit(X, Y)
    weighted = kw.explain(model, X[:2], X[2:4], background_weight=[2, 1])
    np.testing.assert_allclose(weighted.values, kw.explain(model, X[:2], X[[2, 2, 3]]).values, atol=1e-12)
    with pytest.raises(ValueError, match="background_weight: expected 2 numbers"):
        kw.explain(model, X[:2], X[2:4], background_weight=[1, -1])


def test_one_row_may_be_the_background() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = kw.MKLRegressor(KERNELS).fit(frame, Y)
    expected = kw.explain(model, frame[:2], frame[4:5]).values
    np.testing.assert_allclose(kw.explain(model, frame[:2], frame.iloc[4]).values, expected)
    plain = kw.MKLRegressor(KERNELS).fit(X, Y)
    np.testing.assert_allclose(kw.explain(plain, X[:2], X[4]).values, expected, atol=1e-10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"background": np.zeros((3, 4))}, "background: X has 4 features"),
        ({"background": np.full((3, 5), np.nan)}, "background: Input X contains NaN"),
        ({"background": np.zeros((0, 5))}, "background: Found array with 0 sample"),
        ({"background": 10}, "background: Expected 2D array"),
        ({"background_weight": ["a"] * 30}, "background_weight: expected 30 numbers"),
        ({"feature_names": "abcde"}, "feature_names='abcde': expected a sequence"),
        ({"feature_names": ["a"]}, "feature_names has 1 names for 5 columns"),
        ({"device": "gpu"}, "device='gpu' is not known"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value[:20],
)
def test_what_cannot_be_explained_is_named(options: dict[str, Any], message: str) -> None:
    model = kw.MKLRegressor(RBF()).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        kw.explain(model, X, **options)


def test_columns_in_another_order_are_refused() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = kw.MKLRegressor(RBF()).fit(frame, Y)
    with pytest.raises(ValueError, match="same order"):
        kw.explain(model, frame[list("edcba")])
    with pytest.raises(ValueError, match=r"background: (.|\n)*same order"):
        kw.explain(model, frame, frame[list("edcba")])


def test_models_of_other_packages_are_refused_by_name() -> None:
    from sklearn.svm import SVR

    with pytest.raises(ValueError, match="SVR has no `weights_`: pass a fitted estimator of kernelweave"):
        kw.explain(SVR().fit(X, Y), X)


def test_a_model_without_support_vectors_adds_nothing() -> None:
    model = kw.MKLRegressor([RBF(), Linear()]).fit(X, np.ones(30))
    found = kw.explain(model, X[:3], X[3:])
    assert not found.values.any()
    adds_up(found, model, X[:3])


def test_a_model_by_empirical_bayes_is_explained() -> None:
    model = kw.EmpiricalBayesRegressor({"rbf": RBF(), "line": Linear()}).fit(X, Y)
    adds_up(kw.explain(model, X[:3], X[3:6]), model, X[:3])


def test_people_read_of_columns_where_nothing_names_them() -> None:
    model = kw.MKLRegressor(RBF()).fit(X, Y)
    assert readable_names(model, X)[:2] == ["column 0", "column 1"]
    pd = pytest.importorskip("pandas")
    views = kw.Views({"rna": X[:, :3], "protein": pd.DataFrame(X[:, 3:], columns=["p53", "myc"])})
    model = kw.MKLRegressor({"rna": RBF(), "protein": Linear()}).fit(views, Y)
    assert readable_names(model, views) == [
        "rna: column 0",
        "rna: column 1",
        "rna: column 2",
        "protein: p53",
        "protein: myc",
    ]


def test_several_classes_have_an_axis_of_their_own() -> None:
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = kw.MKLClassifier([RBF(), Linear(standardize=True)]).fit(X, y)
    found = kw.explain(model, X[:4])
    assert found.values.shape == (3, 4, 5)
    adds_up(found, model, X[:4])


def test_on_the_sphere_what_is_exact_is_taken_apart_and_the_rest_says_why() -> None:
    model = kw.MKLRegressor({"rbf": RBF(), "line": Linear()}, normalize="spherical").fit(X, Y)
    found = kw.explain(model, X[:3], X[3:6])
    assert list(found.whole) == ["line"]
    assert "spherical" in found.whole["line"]
    assert found.feature_names[-1] == "kernel line"
    adds_up(found, model, X[:3])


def test_kernels_that_are_no_products_are_wholes() -> None:
    model = kw.MKLRegressor({"rbf": RBF(), "matern": Matern()}).fit(X, Y)
    found = kw.explain(model, X[:3], X[3:6])
    assert "no product over columns" in found.whole["matern"]
    np.testing.assert_allclose(found.values[:, -1], found.kernel_values[:, 1])
    adds_up(found, model, X[:3])


def test_given_matrices_stay_wholes() -> None:
    K = np.stack([A @ A.T for A in (X, X[:, :2])], axis=2)
    model = kw.MKLRegressor("precomputed").fit(K, Y)
    found = kw.explain(model, K[:3], K[3:6])
    assert len(found.whole) == 2
    assert found.values.shape == (3, 2)
    adds_up(found, model, K[:3])


def test_many_kernels_of_single_columns() -> None:
    wide = RNG.normal(size=(30, 20))
    model = kw.MKLRegressor(per_feature(RBF())).fit(wide, wide[:, 3])
    found = kw.explain(model, wide[:3], wide[3:6])
    adds_up(found, model, wide[:3])
    np.testing.assert_allclose(found.values, found.kernel_values, atol=1e-12)


def test_strings_are_explained_place_by_place() -> None:
    texts = np.array(["".join(RNG.choice(list("ACGT"), size=8)) for _ in range(30)], dtype=object)
    y = np.array([text.count("A") for text in texts], dtype=float)
    model = kw.MKLRegressor([Spectrum(1), Spectrum(2)]).fit(texts, y)
    found = kw.explain(model, texts[:4], texts[4:9])
    assert found.feature_names[:2] == ["x0[0]", "x0[1]"]
    assert not found.whole
    adds_up(found, model, texts[:4])


def test_without_attributions_within_kernels_only_sums_are_kept() -> None:
    model = kw.MKLRegressor(KERNELS).fit(X, Y)
    found = kw.explain(model, X[:2], X[2:4], within=False)
    np.testing.assert_allclose(found.values, kw.explain(model, X[:2], X[2:4]).values)
    with pytest.raises(ValueError, match="within=True"):
        found.within("rbf")
    with pytest.raises(ValueError, match="is none of"):
        found.within("unknown")
    with pytest.raises(ValueError, match="more than memory_limit: pass within=False"):
        kw.explain(model, X, memory_limit=1000)


def test_a_pipeline_names_what_its_transformers_make() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcde"), index=[f"s{i}" for i in range(len(X))])
    model = make_pipeline(PolynomialFeatures(2, include_bias=False), kw.MKLRegressor([RBF(), Linear()]))
    model.fit(frame, Y)
    found = kw.explain(model, frame[:3], background=frame[3:8])
    assert found.feature_names == model[:-1].get_feature_names_out().tolist()
    assert found.sample_names == ["s0", "s1", "s2"]
    adds_up(found, model, frame[:3])
    search = GridSearchCV(model, {"mklregressor__C": [1.0]}, cv=2).fit(frame, Y)
    assert kw.explain(search, frame[:2]).feature_names == found.feature_names
    assert kw.explain(model[-1].fit(frame, Y), frame[:2]).feature_names == list("abcde")


def test_one_row_is_not_compared_with_itself() -> None:
    model = kw.MKLRegressor([RBF(), Linear()]).fit(X, Y)
    with pytest.raises(ValueError, match=r"would be compared with itself: .* background=X_train"):
        kw.explain(model, X[:1])
    adds_up(kw.explain(model, X[:1], background=X), model, X[:1])


def test_views_are_explained_by_their_columns() -> None:
    views = kw.Views({"rna": X[:, :3], "protein": X[:, 3:]})
    model = kw.MKLRegressor({"rna": RBF(), "protein": Linear()}).fit(views, Y)
    found = kw.explain(model, views[:3], views[3:8])
    assert found.feature_names == views.columns
    adds_up(found, model, views[:3])
    assert not found.within("rna")[:, 3:].any()


@pytest.mark.parametrize("missing", ["mask", "complete"])
def test_samples_that_lack_a_view_have_it_as_a_whole(missing: str) -> None:
    protein = X[:, 3:].copy()
    protein[[1, 5, 9]] = np.nan
    views = kw.Views({"rna": X[:, :3], "protein": protein})
    model = kw.MKLRegressor({"rna": RBF(), "protein": Linear()}, missing=missing).fit(views, Y)
    found = kw.explain(model, views[:3], views[4:8])
    assert "lack its view" in found.whole["protein"]
    assert not found.values[1, 3:5].any()
    assert found.values[0, 3:5].any()
    adds_up(found, model, views[:3])
    complete = kw.explain(model, views[2:4], views[6:8])
    assert "protein" not in complete.whole
    adds_up(complete, model, views[2:4])


@pytest.mark.parametrize("approximation", ["nystroem", "rff"])
def test_low_rank_models_are_explained_by_their_landmarks_or_as_wholes(approximation: str) -> None:
    kernels = {"rbf": RBF(), "line": Linear()}
    model = kw.MKLRegressor(kernels, approximation=approximation, rank=10, random_state=0).fit(X, Y)
    found = kw.explain(model, X[:3], X[3:6])
    adds_up(found, model, X[:3])
    assert list(found.whole) == ([] if approximation == "nystroem" else ["rbf"])
    if approximation == "nystroem":
        expected = [by_definition(model.predict, x, X[3:6]) for x in X[:3]]
        np.testing.assert_allclose(found.values, expected, atol=1e-9)


@pytest.mark.wide
def test_a_stack_of_candidates_is_explained_as_one_model() -> None:
    model = kw.MKLAutoRegressor().fit(X, Y)
    found = kw.explain(model, X[:3], X[3:6])
    adds_up(found, model, X[:3])


def test_a_learned_kernel_is_taken_apart_by_its_columns() -> None:
    y = np.digitize(Y, [-0.5, 0.5])
    model = kw.GMKLClassifier(ProductRBF(), tol=0.1).fit(X, y)
    found = kw.explain(model, X[:3], X[3:6])
    assert not found.whole
    adds_up(found, model, X[:3])


def test_a_path_is_explained_at_its_chosen_stage() -> None:
    model = kw.GroupOMPRegressor(per_feature(RBF()), n_kernels=2).fit(X, Y)
    adds_up(kw.explain(model, X[:3], X[3:6]), model, X[:3])


def test_one_class_models_are_explained(tmp_path: Path) -> None:
    model = kw.MKLOneClass([RBF(), Laplacian()]).fit(X)
    found = kw.explain(model, X[:3], X[3:6])
    expected = model.decision_function(X[:3])
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_value, expected, atol=1e-8)
    kw.save_model(model, tmp_path / "model.kw")
    loaded = kw.explain(kw.load_model(tmp_path / "model.kw"), X[:3], X[3:6])
    np.testing.assert_allclose(loaded.values, found.values, atol=1e-12)


def test_linear_kernels_are_explained_by_their_coefficients() -> None:
    model = kw.MKLRegressor([Linear(columns=[0, 1, 2]), Linear()]).fit(X, Y)
    found = kw.explain(model, X[:3], X[3:9])
    np.testing.assert_allclose(found.values, (X[:3] - X[3:9].mean(axis=0)) * model.coef_, atol=1e-10)


@pytest.mark.parametrize("loss", ["cox", "censored_eps_insensitive"])
def test_the_risk_of_a_survival_model_is_explained(loss: str) -> None:
    y = np.rec.fromarrays([RNG.random(30) < 0.7, np.exp(X[:, 0])], names="event,time")
    model = kw.MKLSurvival({"rbf": RBF(), "line": Linear()}, loss=loss).fit(X, y)
    found = kw.explain(model, X[:3], X[3:6])
    risk = model.predict if loss == "cox" else lambda A: -model.predict(A)  # the value of the other is a time
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_value, risk(X[:3]), atol=1e-8)
    for x, phi in zip(X[:3], found.values, strict=True):
        np.testing.assert_allclose(phi, by_definition(risk, x, X[3:6]), atol=1e-8)
