"""Intervals and sets from the folds of a search: against models trained again, and how often they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold, ShuffleSplit

import kernelweave as kw
from kernelweave.estimators._conformal import Calibration, intervals, label_sets, strangeness
from kernelweave.kernels import RBF, Linear

KERNELS = [Linear(), RBF(gamma=0.3)]
FIXED: dict[str, Any] = {"Cs": [3.0], "regularizers": "uniform", "tol": 1e-9}


def noisy(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_normal(n)


def classes(n: int, seed: int, count: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, count, n)
    return rng.normal(size=(n, 2)) + 1.2 * np.column_stack([y == 1, y == 2]), np.array(["a", "b", "c"])[y]


def by_definition(centres: Any, residuals: Any, coverage: float) -> tuple[float, float]:
    """The two outermost numbers that are not stranger than the held-out samples, one side at a time."""
    n = len(residuals)
    up, down = np.sort(centres + residuals), np.sort(centres - residuals)
    upper = [v for v in up if (1 + (up >= v).sum()) / (n + 1) > 1 - coverage + 1e-12]
    lower = [v for v in down if (1 + (down <= v).sum()) / (n + 1) > 1 - coverage + 1e-12]
    return min(lower), max(upper)


# -- the functions of the folds are those of models trained on them -----------------------------------


@pytest.mark.parametrize("normalize", ["variance", "center", "spherical", None])
def test_the_functions_of_the_folds(normalize: str | None) -> None:
    X, y = noisy(24, 0)
    cv = KFold(3)
    search = kw.MKLRegressorCV(KERNELS, cv=cv, normalize=normalize, **FIXED).fit(X, y)
    new = noisy(5, 1)[0]
    found = search.fold_model_(new)
    for k, (train, test) in enumerate(cv.split(X)):
        one = kw.MKLRegressor(KERNELS, regularizer="uniform", C=3.0, normalize=normalize, tol=1e-9)
        one.fit(X[train], y[train])
        np.testing.assert_allclose(found[:, k], one.predict(new), atol=1e-6)
        own = search.calibration_["fold"] == k
        apart = np.abs(y[test] - one.predict(X[test]))
        np.testing.assert_allclose(search.calibration_["score"][own, 0], apart, atol=1e-6)
    lower, upper = search.predict_interval(new, coverage=0.8).T
    fold, score = search.calibration_["fold"], search.calibration_["score"][:, 0]
    expected = [by_definition(row[fold], score, 0.8) for row in found]
    np.testing.assert_allclose(np.column_stack([lower, upper]), expected, atol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_jackknife_has_the_functions_of_models_without_a_sample(fit_intercept: bool) -> None:
    """Closed form, at fixed weights and normalisation; weights of samples are costs."""
    X, y = noisy(12, 0)
    weight = np.linspace(0.5, 2.0, 12)
    options: dict[str, Any] = {"normalize": None, "fit_intercept": fit_intercept}
    search = kw.MKLRegressorCV(KERNELS, cv="leave-one-out", **FIXED, **options).fit(X, y, weight)
    new = noisy(4, 1)[0]
    found = search.fold_model_(new)
    for i in range(12):
        rest = np.arange(12) != i
        one = kw.MKLRegressor(KERNELS, regularizer="uniform", C=3.0, tol=1e-9, **options)
        one.fit(X[rest], y[rest], weight[rest])
        np.testing.assert_allclose(found[:, i], one.predict(new), atol=1e-6)
        assert search.calibration_["score"][i, 0] == pytest.approx(
            abs(y[i] - one.predict(X[[i]])[0]), abs=1e-6
        )


@pytest.mark.parametrize("multiclass", ["ovr", "ovo", "shared"])
def test_the_jackknife_of_classes(multiclass: str) -> None:
    X, y = classes(15, 0)
    options: dict[str, Any] = {"loss": "squared", "multiclass": multiclass, "normalize": None}
    search = kw.MKLClassifierCV(KERNELS, cv="leave-one-out", **FIXED, **options).fit(X, y)
    new = classes(4, 1)[0]
    count = len(search.model_.intercept)
    found = search.fold_model_(new).reshape(4, 15, count)
    for i in range(0, 15, 4):
        rest = np.arange(15) != i
        one = kw.MKLClassifier(KERNELS, regularizer="uniform", C=3.0, tol=1e-9, **options)
        values = one.fit(X[rest], y[rest]).model_(new)
        np.testing.assert_allclose(found[:, i], values, atol=1e-6)


@pytest.mark.parametrize("by_class", [False, True])
def test_sets_are_their_definition(by_class: bool) -> None:
    X, y = classes(30, 0)
    search = kw.MKLClassifierCV(KERNELS, cv=3, **FIXED).fit(X, y)
    new = classes(6, 1)[0]
    sets = search.predict_set(new, coverage=0.7, by_class=by_class)
    fold, score, label = (search.calibration_[name] for name in ("fold", "score", "label"))
    values = search.fold_model_(new).reshape(6, 3, 3)
    for i in range(6):
        for c in range(3):
            own = label == c if by_class else np.ones(30, dtype=bool)
            mine = np.array([np.delete(f, c).max() - f[c] for f in values[i]])[fold]
            p = (1 + (score >= mine)[own].sum()) / (own.sum() + 1)
            assert sets[i, c] == (p > 0.3 + 1e-12)


# -- how often they are right -------------------------------------------------------------------------


def test_coverage_of_scores_that_can_be_exchanged() -> None:
    """Of one split, with the function given: the mean over many draws is ceil(coverage (n + 1)) / (n + 1)."""
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(2000):
        scores = np.abs(rng.standard_normal(20))
        known = Calibration(np.zeros(19, int), scores[:19, None], np.ones(19), None)
        inside.append(scores[19] <= intervals(np.zeros((1, 1, 1)), known, 0.8)[0, 0, 1])
    assert np.mean(inside) == pytest.approx(16 / 20, abs=3 * np.sqrt(0.16 / 2000))


@pytest.mark.parametrize("cv", [4, ShuffleSplit(1, test_size=0.5, random_state=0), "leave-one-out"])
def test_coverage_of_intervals(cv: Any) -> None:
    X, y = noisy(80, 3)
    search = kw.MKLRegressorCV(KERNELS, Cs=[0.1, 1.0], cv=cv).fit(X, y)
    new, target = noisy(1000, 4)
    lower, upper = search.predict_interval(new, coverage=0.8).T
    # given 80 (or 40) scores, coverage has a standard deviation of 0.045 (or 0.06)
    assert ((lower <= target) & (target <= upper)).mean() == pytest.approx(0.8, abs=0.1)
    assert (search.predict_interval(new, 0.9)[:, 1] >= upper).all()


def test_coverage_of_sets_of_every_class() -> None:
    X, y = classes(120, 0)
    search = kw.MKLClassifierCV(KERNELS, Cs=[0.1, 1.0], cv=4).fit(X, y)
    new, label = classes(1500, 1)
    place = np.searchsorted(search.classes_, label)
    for by_class in (False, True):
        hit = search.predict_set(new, 0.85, by_class)[np.arange(1500), place]
        assert hit.mean() == pytest.approx(0.85, abs=0.08)
    assert all(hit[place == c].mean() == pytest.approx(0.85, abs=0.13) for c in range(3))


# -- shapes, weights, refusals ------------------------------------------------------------------------


def test_several_outputs_and_two_classes() -> None:
    X, y = noisy(30, 0)
    both = kw.MKLRegressorCV(Linear(), Cs=[1.0], cv=3).fit(X, np.column_stack([y, -2.0 * y]))
    first, second = np.moveaxis(both.predict_interval(X, 0.7), 1, 0)
    np.testing.assert_allclose(second, -2.0 * first[:, ::-1], rtol=1e-6)
    two = kw.MKLClassifierCV(Linear(), Cs=[1.0], cv=3).fit(X, y > 0)
    assert two.predict_set(X).shape == (30, 2)
    assert two.predict_set(X, 0.99).all(axis=1).sum() > two.predict_set(X, 0.6).all(axis=1).sum()


def test_a_sample_of_weight_two_counts_as_two() -> None:
    """Up to the scale of all weights, which says nothing."""
    rng = np.random.default_rng(0)
    scores, weight = rng.random((12, 1)), rng.integers(1, 4, 12).astype(float)
    values = rng.normal(size=(3, 1, 1))
    twice = np.repeat(np.arange(12), weight.astype(int))
    given = Calibration(np.zeros(12, int), scores, weight, None)
    copies = Calibration(np.zeros(len(twice), int), scores[twice], np.ones(len(twice)), None)
    for coverage in (0.5, 0.8, 0.9):
        np.testing.assert_array_equal(intervals(values, given, coverage), intervals(values, copies, coverage))
    scaled = [Calibration.of([np.arange(12)], scores, weight * s).weight for s in (1.0, 7.0)]
    np.testing.assert_allclose(*scaled)
    assert scaled[0].sum() == pytest.approx(12)


def test_a_sample_held_out_twice_counts_once() -> None:
    known = Calibration.of([np.array([0, 1]), np.array([1, 2])], np.arange(4.0)[:, None], np.ones(3))
    np.testing.assert_allclose(known.weight, [1.0, 0.5, 0.5, 1.0])
    np.testing.assert_array_equal(known.fold, [0, 0, 1, 1])


def test_too_few_samples_for_the_coverage() -> None:
    known = Calibration(np.zeros(8, int), np.ones((8, 1)), np.ones(8), np.zeros(8, int))
    with pytest.warns(UserWarning, match="takes more than the 8 samples"):
        assert np.isinf(intervals(np.zeros((1, 1, 1)), known, 0.9)).all()
    known = known._replace(score=np.ones(8))
    assert label_sets(lambda fold: np.array([[9.0, 9.0]]), 1, known, 0.9, False).all()


def test_strangeness_of_two_classes_and_ties() -> None:
    np.testing.assert_array_equal(strangeness(np.array([2.0])), [[2.0, -2.0]])
    np.testing.assert_array_equal(strangeness(np.array([[1.0, 1.0, 0.0]])), [[0.0, 0.0, 1.0]])


@pytest.mark.parametrize("coverage", [0, 1.0, -0.1, "0.9", True, np.nan])
def test_coverage_is_a_share(coverage: Any) -> None:
    X, y = noisy(12, 0)
    search = kw.MKLRegressorCV(Linear(), Cs=[1.0], cv=2).fit(X, y)
    with pytest.raises(ValueError, match="must be a number between 0 and 1"):
        search.predict_interval(X, coverage)


def test_why_there_are_no_intervals_or_sets() -> None:
    X, y = noisy(20, 0)
    labels = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    with pytest.raises(ValueError, match=r"MKLClassifierCV knows no intervals or sets: .* several labels"):
        kw.MKLClassifierCV(Linear(), Cs=[1.0], cv=2).fit(X, labels).predict_set(X)
    with pytest.raises(ValueError, match=r"Ranking has no targets .* choose another loss"):
        kw.MKLRegressorCV(Linear(), loss="ranking", Cs=[1.0], cv=2).fit(X, y).predict_interval(X)
    search = kw.MKLRegressorCV(Linear(), loss="eps_insensitive", Cs=[1.0], cv="leave-one-out").fit(X, y)
    with pytest.raises(ValueError, match=r"for loss='squared' alone: pass cv=5"):
        search.predict_interval(X)
    views = {"a": X, "b": X[:, :1]}
    search = kw.MKLRegressorCV(Cs=[1.0], cv=2)
    assert search.fit(views, y).predict_interval(views).shape == (20, 2)
    with pytest.raises(ValueError, match="missing='mask' completes views"):
        search.set_params(missing="mask").fit(views, y).predict_interval(views)


def test_a_model_file_has_them(tmp_path: Any) -> None:
    X, y = noisy(20, 0)
    for normalize in ("variance", "center"):
        search = kw.MKLRegressorCV(KERNELS, Cs=[1.0], cv=3, normalize=normalize).fit(X, y)
        kw.save_model(search, tmp_path / f"{normalize}.kw")
        again = kw.load_model(tmp_path / f"{normalize}.kw")
        np.testing.assert_array_equal(again.predict_interval(X), search.predict_interval(X))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("calibration_", {"fold": np.zeros(3, int)}),
        ("calibration_", {"fold": np.full(20, 9), "score": np.ones((20, 1)), "weight": np.ones(20)}),
        ("calibration_", {"fold": np.zeros(20, int), "score": np.ones((19, 1)), "weight": np.ones(20)}),
        ("calibration_", {"fold": np.zeros(20), "score": np.ones((20, 1)), "weight": np.ones(20)}),
        ("fold_model_", 3),
        ("calibration_", 3),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Any, name: str, value: Any) -> None:
    X, y = noisy(20, 0)
    search = kw.MKLRegressorCV(Linear(), Cs=[1.0], cv=3).fit(X, y)
    setattr(search, name, value)
    kw.save_model(search, tmp_path / "model.kw")
    with pytest.raises(ValueError, match="do not fit together"):
        kw.load_model(tmp_path / "model.kw")


@pytest.mark.torch
@pytest.mark.parametrize("normalize", ["variance", "center"])
def test_on_a_device(normalize: str) -> None:
    pytest.importorskip("torch", reason="needs torch")
    X, y = noisy(40, 0)
    options: dict[str, Any] = {"cv": 3, "normalize": normalize, **FIXED}
    here = kw.MKLRegressorCV(KERNELS, **options).fit(X, y).predict_interval(X)
    there = kw.MKLRegressorCV(KERNELS, device="torch:cpu", **options).fit(X, y).predict_interval(X)
    np.testing.assert_allclose(there, here, atol=1e-4)


def test_precomputed_kernels() -> None:
    X, y = noisy(20, 0)
    K = (X @ X.T)[:, :, None]
    given = kw.MKLRegressorCV("precomputed", Cs=[1.0], cv=3).fit(K, y)
    made = kw.MKLRegressorCV(Linear(), Cs=[1.0], cv=3).fit(X, y)
    np.testing.assert_allclose(given.predict_interval(K), made.predict_interval(X), atol=1e-8)


# -- data sets ------------------------------------------------------------------------------------------

#: data sets, and which column of their targets
SETS = {
    **dict.fromkeys(("ionosphere", "sonar", "pima", "wpbc", "liver", "spambase", "gasoline"), ""),
    **{"tecator": "fat", "nirsoil": "Ciso", "swri_diesel": "CN"},
}


def covered(X: Any, y: Any, regression: bool, seed: int) -> float:
    """Share of new samples covered at 0.9 by a search on a random half, of 200 samples at most."""
    order = np.random.default_rng(seed).permutation(len(y))
    half = min(len(y) // 2, 200)
    train, test = order[:half], order[half : half + 1000]
    if regression:
        search = kw.MKLRegressorCV(Linear(standardize=True), Cs=[10.0], cv=10).fit(X[train], y[train])
        lower, upper = search.predict_interval(X[test], 0.9).T
        return float(((lower <= y[test]) & (y[test] <= upper)).mean())
    search = kw.MKLClassifierCV(RBF(standardize=True), Cs=[1.0], cv=10).fit(X[train], y[train])
    place = np.searchsorted(search.classes_, y[test])
    return float(search.predict_set(X[test], 0.9)[np.arange(len(test)), place].mean())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:kernels without variance")
@pytest.mark.parametrize("name", SETS)
def test_coverage_on_data_sets(data_folder: Any, name: str) -> None:
    """Within 1.5 points of nominal, over 40 random halves: their standard error is below half a point."""
    path = data_folder / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"no {path}")
    with np.load(path) as data:
        X, column = data["X"].astype(float), SETS[name]
        y = data["Y"][:, list(data["property_names"]).index(column)] if column else data["y"]
    there = ~np.isnan(y.astype(float))
    mean = np.mean([covered(X[there], y[there], y.dtype.kind == "f", seed) for seed in range(40)])
    assert abs(mean - 0.9) <= 0.015, f"{name}: {mean:.4f}"
