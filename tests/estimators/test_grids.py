"""Grids of searches: extended while their best lies at an end, the same in every unit of the targets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold, cross_val_score

import kernelweave as kw
from kernelweave.estimators._search import Trial, best_of
from kernelweave.estimators.cross_validation import ChainSearch
from kernelweave.kernels import RBF, Linear, bands
from kernelweave.losses import EpsInsensitive, Huber

FOLDS = KFold(3, shuffle=True, random_state=0)


def spectra(n: int = 30, p: int = 18, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Smooth curves, and targets that depend on directions in which they hardly vary."""
    rng = np.random.default_rng(seed)
    at = np.linspace(0.0, 1.0, p)
    basis = np.array([np.cos(k * np.pi * at) * 0.3**k for k in range(6)])
    scores = rng.normal(size=(n, 6))
    return scores @ basis + 1e-4 * rng.normal(size=(n, p)), scores[:, 3] + 0.02 * rng.normal(size=n)


def search_of(**options):
    return kw.MKLRegressorCV(**{"kernels": bands(3, Linear()), "cv": FOLDS, **options})


# -- extended -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [FOLDS, "leave-one-out"], ids=["folds", "leave one out"])
def test_an_extended_search_is_a_search_of_all_its_values(cv, monkeypatch):
    X, y = spectra()
    gaps, solved = [], ChainSearch._solved

    def kept(self, *args):
        found = solved(self, *args)
        gaps.extend(one.state.certificate.gap for chain in found[0] for line in chain for one in line)
        return found

    monkeypatch.setattr(ChainSearch, "_solved", kept)
    search = search_of(regularizers=["lp", "uniform"], Cs=4, cv=cv, tol=1e-4).fit(X, y)
    assert max(gaps) <= 1e-4
    lowest, highest = search.grid_extended_["C"]
    assert lowest == 0.01
    assert 100.0 < highest <= 1e8
    points = search.cv_results_["params"]
    for name in ("lp", "uniform"):
        costs = np.array([point["C"] for point in points if point["regularizer"] == name])
        np.testing.assert_allclose(costs[1:] / costs[:-1], 100.0 ** (2 / 3))
    again = search_of(regularizers=["lp", "uniform"], Cs=np.unique(costs), cv=cv, tol=1e-4).fit(X, y)
    own = [k for k, point in enumerate(again.cv_results_["params"]) if point in points]
    assert len(own) == len(points)
    shared = [again.cv_results_["mean_test_score"][k] for k in own]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], shared, atol=1e-3)
    assert again.grid_extended_ == {}
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()


def test_defaults_reach_what_smooth_spectra_hold():
    X, y = spectra()
    search = kw.MKLRegressorCV(bands(3, Linear()), cv=3)
    assert cross_val_score(search, X, y, cv=FOLDS).min() > 0.9
    top = kw.MKLRegressorCV(bands(3, Linear()), Cs=[0.1, 1.0, 10.0])
    with pytest.warns(UserWarning, match=r"rise towards C = 10, the largest value tried.*Cs=3"):
        assert top.fit(X, y).best_score_ < 0.9


def test_defaults_on_corn(data_folder):
    data = np.load(data_folder / "corn_nir.npz")
    y = data["Y"][:, list(data["property_names"]).index("Protein")].astype(float)
    X = data["X_m5"].astype(float)
    search = kw.MKLRegressorCV(bands(10, Linear()))
    assert cross_val_score(search, X, y, cv=KFold(5, shuffle=True, random_state=0)).mean() >= 0.9


def test_a_search_goes_down_as_well(binary):
    """Of labels at random the fewest errors are made by the smallest functions."""
    y = np.random.default_rng(1).integers(0, 2, len(binary.y))
    losses = {"scoring": "neg_mean_squared_error", "cv": FOLDS, "regularizers": "uniform"}
    search = kw.MKLRegressorCV([RBF(gamma=1.0)], Cs=[1.0, 10.0, 100.0], **losses)
    with pytest.warns(UserWarning, match="rise towards C = 1, the smallest value"):
        search.fit(binary.X, y)
    search.set_params(Cs=3).fit(binary.X, y)
    assert search.best_params_["C"] <= 1.0
    assert search.best_score_ >= -0.3


def test_flat_ends_are_none(binary):
    """A hinge that is met everywhere changes no more: the smallest of equal costs, and not a word."""
    X = np.vstack([binary.X + 20.0, binary.X - 20.0])
    y = np.repeat([0, 1], len(binary.X))
    search = kw.MKLClassifierCV([Linear()], Cs=[1.0, 10.0, 100.0], cv=2).fit(X, y)
    assert search.best_params_["C"] == 1.0
    assert kw.MKLClassifierCV([Linear()], Cs=3, cv=2).fit(X, y).grid_extended_ == {}


@pytest.mark.parametrize(
    ("scores", "inside"),
    [
        ([0.9, 0.9, 0.9, 0.5, 0.6, 0.7, 0.8], 2),  # small costs order the samples in the same way
        ([0.5, 0.6, 0.7, 0.8, 0.9, 0.9, 0.9], 4),  # a hinge that is met changes no more
        ([0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9], 3),
        ([0.9, 0.5, 0.5, 0.5, 0.5, 0.9, 0.5], 5),
        ([0.5, 0.9, 0.5, 0.5, 0.5, 0.9, 0.5], 1),
        ([0.5, 0.5, 0.9, 0.5, 0.9 + 1e-9, 0.9, 0.5], 2),  # rounding
        ([0.5, 0.9, 0.5, 0.5, 0.5, 0.5, np.nan], 1),
    ],
)
@pytest.mark.parametrize("way", [1, -1], ids=["rising values", "falling values"])
def test_of_equal_scores_the_one_inside_is_taken(scores, inside, way):
    costs = np.geomspace(1e-3, 1e3, 7)
    row = [Trial(0, float(C), {}, np.array([score])) for C, score in zip(costs, scores, strict=True)][::way]
    first = int(np.argmax([point.mean >= 0.9 - 1e-8 for point in row]))
    assert best_of(row, inside=False) == first
    found = row[best_of(row, inside=True)]
    equal = [point.value for point in row if point.mean >= 0.9 - 1e-8]
    assert found.value in equal
    assert abs(np.log(found.value)) <= min(abs(np.log(equal))) + 1e-9
    if way == 1:
        assert best_of(row, inside=True) == inside
    others = [point._replace(line=1) for point in row]  # of lines, the first
    assert best_of([*row, *others], inside=True) == best_of(row, inside=True)


@pytest.mark.parametrize("Search", [kw.MKLClassifierCV, kw.GroupOMPClassifierCV])
def test_of_values_that_nobody_gave_and_that_are_equal_the_middle_is_taken(binary, Search):
    X = np.vstack([binary.X + 20.0, binary.X - 20.0])
    y = np.repeat([0, 1], len(binary.X))
    grid, name, middle = ("Cs", "C", 1.0) if Search is kw.MKLClassifierCV else ("alphas", "alpha", 0.01)
    search = Search([Linear(), RBF(gamma=0.1)], cv=2, **{grid: 5}).fit(X, y)
    assert search.best_score_ == 1.0
    assert search.best_params_[name] == pytest.approx(middle)
    assert search.grid_extended_ == {}


def test_a_plateau_of_small_costs_is_not_followed_down(binary):
    """Where an end is the best and all beyond it are alike, the end is the model, not the smallest cost."""

    def size(model, X, y):
        return float(np.std(model.decision_function(X)))

    options = {"kernels": [Linear()], "regularizers": "uniform", "cv": 2}
    sizes = kw.MKLClassifierCV(**options, Cs=[0.01, 0.1], scoring=size).fit(binary.X, binary.y)
    level = np.sqrt(np.prod(sizes.cv_results_["mean_test_score"]))
    small = kw.MKLClassifierCV(**options, Cs=5, scoring=lambda *given: float(size(*given) < level))
    small.fit(binary.X, binary.y)
    assert small.best_params_["C"] == 0.01
    assert small.best_score_ == 1.0
    assert small.grid_extended_ == {"C": (pytest.approx(1e-4), 100.0)}


def test_scores_that_rise_to_the_limit_are_told(binary):
    order = iter(range(1000))
    search = kw.MKLRegressorCV([Linear()], Cs=3, cv=[(np.arange(30), np.arange(30, 60))])
    search.set_params(scoring=lambda *_: float(next(order)))
    with pytest.warns(UserWarning, match=r"rise towards C = 1e\+08, the largest value"):
        search.fit(binary.X, binary.X[:, 0] + binary.X[:, 1] ** 2)
    assert search.grid_extended_ == {"C": (0.01, pytest.approx(1e8))}


def test_words_of_progress(capsys):
    X, y = spectra()
    heard = []
    search = search_of(Cs=4, verbose=1)
    search._listener = heard.append
    search.fit(X, y)
    printed = capsys.readouterr().out
    assert "[MKLRegressorCV] the grid of C is extended to " in printed
    assert "fold 3 of 3" in heard


@pytest.mark.parametrize("Search", [kw.GroupOMPRegressorCV, kw.GroupOMPClassifierCV])
def test_ridges_are_extended_too(Search, tmp_path):
    X, y = spectra()
    y = y if "Regressor" in Search.__name__ else y > 0.0
    search = Search(bands(3, Linear()), alphas=3, cv=FOLDS, checkpoint=tmp_path / "kept").fit(X, y)
    lowest, highest = search.grid_extended_["alpha"]
    assert lowest < 1e-4
    assert highest == 1.0
    points = search.cv_results_["params"]
    assert [point["n_kernels"] for point in points] == sorted(point["n_kernels"] for point in points)
    alphas = np.unique([point["alpha"] for point in points])
    given = Search(bands(3, Linear()), alphas=alphas, cv=FOLDS)
    scores = given.fit(X, y).cv_results_["split_test_scores"]
    np.testing.assert_allclose(search.cv_results_["split_test_scores"], scores, atol=1e-6)


def test_ridges_of_ones_own_are_not_extended():
    search = kw.GroupOMPRegressorCV(bands(3, Linear()), alphas=[1.0, 0.1, 0.01], cv=FOLDS)
    with pytest.warns(UserWarning, match=r"rise towards alpha = 0\.01, the smallest.*alphas=3"):
        search.fit(*spectra())
    assert search.grid_extended_ == {}


# -- units ----------------------------------------------------------------------------------------


def followed(name: str, a: float):
    """A loss whose width follows the unit of the targets."""
    return {"squared": "squared", "eps": EpsInsensitive(0.2 * a), "huber": Huber(0.5 * a)}[name]


@pytest.mark.parametrize(
    ("name", "rule", "power"),
    [
        ("squared", "lp", 0),
        ("squared", kw.LpNorm(1), 0),
        ("squared", kw.ElasticNet(l1_ratio=1.0), -1),
        ("huber", "lp", 0),
        ("eps", "lp", 1),
        ("eps", kw.ElasticNet(l1_ratio=1.0), 0),
    ],
    ids=str,
)
@pytest.mark.parametrize("a", [1e-6, 1e6])
def test_targets_in_another_unit_choose_the_same_model(regression, name, rule, power, a):
    """The same scores at every point, and predictions a y + b."""
    X, y = regression.X[:40], regression.y[:40]
    options = {"kernels": [Linear(), RBF(gamma=0.3)], "regularizers": rule, "Cs": 3, "cv": 2, "tol": 1e-6}
    one = kw.MKLRegressorCV(loss=followed(name, 1.0), **options).fit(X, y)
    two = kw.MKLRegressorCV(loss=followed(name, a), **options).fit(X, a * y + 3.0 * a)
    costs = [np.array([point["C"] for point in search.cv_results_["params"]]) for search in (one, two)]
    np.testing.assert_allclose(costs[1], a**power * costs[0])
    scores = [search.cv_results_["mean_test_score"] for search in (one, two)]
    np.testing.assert_allclose(*scores, atol=1e-3)
    assert one.best_index_ == two.best_index_
    np.testing.assert_allclose(two.predict(X) / a - 3.0, one.predict(X), atol=1e-2 * y.std())


def test_a_sample_given_twice_counts_twice(regression):
    """C is the price of each sample: of all samples twice, the same model has half of it."""
    X, y = regression.X[:40], regression.y[:40]
    costs = 2.0 ** np.arange(-3, 6)
    folds = list(FOLDS.split(X))
    twice = [
        (np.concatenate([train, train + 40]), np.concatenate([test, test + 40])) for train, test in folds
    ]
    options = {"kernels": [Linear(), RBF(gamma=0.3)], "tol": 1e-6}
    one = kw.MKLRegressorCV(Cs=costs, cv=folds, **options).fit(X, y)
    two = kw.MKLRegressorCV(Cs=costs / 2.0, cv=twice, **options).fit(np.vstack([X, X]), np.append(y, y))
    np.testing.assert_allclose(
        two.cv_results_["mean_test_score"], one.cv_results_["mean_test_score"], atol=1e-4
    )
    assert two.best_params_["C"] == one.best_params_["C"] / 2.0
