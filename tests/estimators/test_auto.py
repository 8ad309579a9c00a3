"""MKLAuto: what competes, the stack, the choice, and that the model is one of expansions like any other."""

from __future__ import annotations

from itertools import permutations

import cvxpy
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import GroupKFold, KFold

import kernelweave as kw
from kernelweave.estimators import _rules
from kernelweave.estimators._candidates import candidates, families_of, reaches_of
from kernelweave.estimators._rules import (
    Best,
    Greedy,
    LargestEvidence,
    Look,
    Related,
    doubly_centred,
    over_all_orders,
)
from kernelweave.estimators._search import Grid, Metadata, Trial
from kernelweave.estimators._stack import PULL, multipliers, plausible, simplest
from kernelweave.kernels import RBF, Linear, per_feature

KERNELS = {"linear": Linear(), "wide": RBF(gamma=0.05), "narrow": RBF(gamma=3.0)}


@pytest.fixture(scope="module")
def classes():
    return make_classification(45, 5, n_informative=3, n_classes=3, n_clusters_per_class=1, random_state=0)


@pytest.fixture(scope="module")
def curve():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (50, 3))
    return X, X[:, 0] + np.sin(3 * X[:, 1]) + 0.1 * rng.standard_normal(50)


def stacked(monkeypatch, cls, X, y, kernels=KERNELS, **options):
    """A fit whose stack is taken whatever the scores."""
    monkeypatch.setattr("kernelweave.estimators.auto.simplest", lambda losses, *_: len(losses) - 1)
    monkeypatch.setattr(
        "kernelweave.estimators.auto.multipliers",
        lambda values, *_: np.arange(len(values)) / max(1, sum(range(len(values)))) + (len(values) == 1),
    )
    return cls(kernels, Cs=[0.1, 10.0], cv=3, **options).fit(X, y)


@pytest.mark.parametrize("squared", [True, False])
def test_multipliers_of_the_stack_are_those_of_a_convex_solver(squared):
    rng = np.random.default_rng(1)
    t = np.sign(rng.standard_normal(40))[:, None]
    F = np.hstack([t + 0.5 * rng.standard_normal((40, 1)) for _ in range(4)])
    F = F * ([1.0, 0.9, 0.8, 1.0] if squared else [1.0, 5.0, 0.2, 1.0])
    sizes = np.ones(4) if squared else np.sqrt((F**2).mean(axis=0))

    def least(columns, guess):
        """Multipliers of some candidates, held near a guess."""
        a = cvxpy.Variable(len(columns), nonneg=True)
        f, unit = F[:, columns] @ a, sizes[columns]
        left = t[:, 0] - f if squared else cvxpy.pos(1 - cvxpy.multiply(t[:, 0], f))
        loss = cvxpy.sum_squares(left) / 40 / (t.var() if squared else 1.0)
        loss = loss + PULL / 40 * cvxpy.sum_squares(cvxpy.multiply(unit, a) - guess)
        cvxpy.Problem(cvxpy.Minimize(loss), [cvxpy.sum(a) == 1] * squared).solve(solver="CLARABEL")
        return a.value

    alone = F * np.concatenate([least([j], np.ones(1)) for j in range(4)])
    lost = np.square(t - alone if squared else np.maximum(1.0 - t * alone, 0.0))
    behind = lost - lost[:, [lost.sum(axis=0).argmin()]]
    error = behind.std(axis=0, ddof=1) / np.sqrt(40)
    z = behind.mean(axis=0) / np.where(error > 0, error, 1.0)
    guess = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    found = multipliers(list(F.T[:, :, None]), t, squared)
    expected = least([0, 1, 2, 3], guess) * sizes
    expected[expected < 0.02 * expected.sum()] = 0.0
    np.testing.assert_allclose(found * sizes, expected, atol=2e-3)


@pytest.mark.parametrize("squared", [True, False])
def test_what_predicts_no_better_than_a_constant_takes_no_part(squared):
    rng = np.random.default_rng(0)
    t = np.sign(rng.standard_normal((60, 1)) + 0.5)
    good = [t + 0.4 * rng.standard_normal((60, 1)) for _ in range(2)]
    noise = [rng.standard_normal((60, 1)) for _ in range(3)] + [np.ones((60, 1))]
    found = multipliers([*good, *noise], t, squared)
    np.testing.assert_allclose(found, [*multipliers(good, t, squared), 0.0, 0.0, 0.0, 0.0])
    assert multipliers(noise, t, squared).any()  # where there is nothing better


def test_candidates_are_plausible_by_standard_errors_behind_the_best():
    losses = np.array(
        [[1.0, 2.0, 3.0, 2.0], [2.0, 2.0, 4.0, 2.0], [1.0, 2.0, 3.0, 2.0], [9.0, 9.0, 9.0, 9.0]]
    )
    behind = np.array([1.0, 0.0, 1.0, 0.0])
    z = behind.sum() / (behind.std(ddof=1) * 2.0)
    expected = np.array([1.0, np.exp(-(z**2) / 2), 1.0, 0.0])
    np.testing.assert_allclose(plausible(losses), expected / expected.sum(), atol=1e-6)
    twice = np.hstack([losses, losses])  # the same samples again say nothing new
    np.testing.assert_allclose(plausible(twice, None, np.tile(np.arange(4), 2)), plausible(losses))


def test_signs_of_a_stack_of_classes_do_not_depend_on_units():
    rng = np.random.default_rng(2)
    t = np.sign(rng.standard_normal((30, 1)))
    F = [t + rng.standard_normal((30, 1)) for _ in range(3)]
    units = np.array([1.0, 1e3, 1e-3])
    found = multipliers([unit * f for unit, f in zip(units, F, strict=True)], t, False)
    np.testing.assert_allclose(found * units, multipliers(F, t, False), rtol=1e-3, atol=1e-5)


def test_the_stack_or_the_simplest_that_is_hardly_behind():
    steady, folds = np.array([0.30, 0.28, 0.26]), np.arange(3)
    mixed = steady + np.array([0.2, -0.1, 0.05])
    bad = steady + 1.0
    assert simplest(np.array([mixed, steady, bad]), folds) == 0  # worse here and there
    assert simplest(np.array([steady + 0.01, steady, bad]), folds) == 1  # always worse, by little
    assert simplest(np.array([mixed, steady, bad]), folds, simplicity=0.0) == 1
    assert simplest(np.array([mixed, steady + 0.01, steady]), folds) == 2
    assert simplest(np.array([steady, steady]), folds) == 0  # a stack of one
    assert simplest(np.array([steady, steady]), folds, clear=2.0) == 0
    ahead = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    noisy = ahead + np.array([0.3, -0.25, 0.3, -0.25, 0.3, -0.25])  # worse by 0.025, error 0.12
    assert simplest(np.array([ahead, noisy]), np.arange(6)) == 0
    assert simplest(np.array([ahead, noisy]), np.arange(6), clear=2.0) == 1
    assert simplest(np.array([ahead, ahead + 0.01]), np.arange(6), clear=2.0) == 0  # always worse


@pytest.mark.parametrize("Auto", [kw.MKLAutoClassifier, kw.MKLAutoRegressor])
def test_a_stack_of_one_part_is_that_part(Auto):
    losses = np.array([[2.0, 3.0, 2.0], [1.0, 1.0, 1.5], [0.9, 0.8, 0.9]]), np.arange(3), None, None
    assert Auto()._choice(losses, np.array([0.3, 0.7])) == 2
    assert Auto()._choice(losses, np.array([0.0, 1.0])) == 1


def test_one_candidate_alone_is_clearly_better_for_regression_and_no_worse_for_classes():
    chance = np.array([0.3, -0.25, 0.3, -0.25, 0.3, -0.25])
    losses = np.array([np.ones(6), np.ones(6), 1.0 + chance]), np.arange(6), None, None
    assert kw.MKLAutoClassifier()._choice(losses, np.array([0.5, 0.5])) == 0
    assert kw.MKLAutoRegressor()._choice(losses, np.array([0.5, 0.5])) == 2
    clearly = np.array([np.ones(6), np.ones(6), 2.0 + chance]), np.arange(6), None, None
    assert kw.MKLAutoRegressor()._choice(clearly, np.array([0.5, 0.5])) == 0


def test_the_least_of_many_losses_is_judged_without_the_fold_it_is_judged_on():
    """Candidates of equal means, each lucky on one fold: choosing among them is no better than their mean."""
    losses = 1.0 - np.eye(4)
    stack = losses.mean(axis=0) + 0.1
    assert (stack.sum(), losses.sum(axis=1)[0]) == (3.4, 3.0)
    assert simplest(np.array([*losses, stack]), np.arange(4), simplicity=0.0) == 4  # the lucky lose elsewhere


def test_kernels_of_whole_views_and_of_single_columns():
    widths = np.array([3, 3, 1, 1, 1, 1, 4, 4])  # all of a, two columns of it, all of b (one column), both
    across, linear = np.arange(8) >= 6, np.isin(np.arange(8), [0, 4, 6, 7])
    found = reaches_of(widths, ["a"] * 4 + ["b"] * 2 + ["a"] * 2, across, linear, np.arange(8) == 7)
    assert {name: some.tolist() for name, some in found.items()} == {
        "all columns together": [6, 7],
        "linear, all columns together": [6],
        "linear, all columns together, as measured": [7],
        "whole views": [0, 1, 4, 5],
    }
    assert reaches_of(np.array([2, 2]), ["a", "a"], *np.zeros((3, 2), bool)) == {}


def test_the_best_candidates_are_tried_at_costs_between(curve):
    auto = kw.MKLAutoRegressor(KERNELS, cv=3).fit(*curve)
    assert len(auto.candidates_) > 4
    steps = np.log10(np.array([row["C"] for row in auto.candidates_[:-1]]))
    halves = (steps - steps.min()) * 2.0
    np.testing.assert_allclose(halves, halves.round(), atol=1e-9)
    grid = Grid("C", "Cs", np.geomspace(1.0, 100.0, 3), True, [])
    scores = enumerate([0.1, 0.9, 0.2, 0.3])
    points = [Trial(line, C, {}, np.array([score])) for line, score in scores for C in (1.0, 10.0)]
    found = auto._between(points, grid)
    assert list(found) == [1, 3]
    np.testing.assert_allclose(found[1], [10**-0.5, 10**0.5])
    assert auto._between(points, grid._replace(values=np.geomspace(1.0, 9.0, 3))) == {}


def test_families_are_told_by_how_many_directions_kernels_spread_over(curve):
    X, _ = curve
    kernels = [kernel.fit(X) for kernel in KERNELS.values()]
    found = families_of(kernels, [kernel(X) for kernel in kernels])
    assert {name: some.tolist() for name, some in found.items()} == {
        "linear kernels": [0],
        "wide kernels": [1],
        "narrow kernels": [2],
    }
    assert families_of(kernels[:1], [kernels[0](X)]) == {}
    assert [one.name for one in candidates({}, {}, 1)] == ["uniform sum"]


@pytest.mark.parametrize("multiclass", ["ovr", "shared"])
def test_a_stack_is_the_sum_of_its_candidates(monkeypatch, classes, multiclass):
    X, y = classes
    auto = stacked(monkeypatch, kw.MKLAutoClassifier, X, y, multiclass=multiclass)
    model, expected, names = auto.model_, 0.0, list(KERNELS)
    for j, row in enumerate(auto.candidates_[:-1]):
        if auto.stack_weights_[j] == 0.0:
            continue
        kernels, rule = (auto.cv_results_[key][j] for key in ("kernels", "regularizer"))
        own = {names[m]: KERNELS[names[m]] for m in kernels}
        options = {"C": row["C"], "multiclass": multiclass, "tol": 1e-5}
        alone = kw.MKLClassifier(own, regularizer=rule.select(kernels, len(KERNELS)), **options)
        expected = expected + auto.stack_weights_[j] * alone.fit(X, y).decision_function(X)
    np.testing.assert_allclose(auto.decision_function(X), expected, atol=5e-2)
    parts = model.components(X)
    np.testing.assert_allclose(parts.sum(axis=2).T + model.intercept, model(X), atol=1e-10)
    assert np.max(auto.dual_gap_) <= 1e-3
    assert auto.best_estimator_.norms_.shape == auto.weights_.shape
    np.testing.assert_allclose(auto.predict_proba(X).sum(axis=1), 1.0)


def test_the_file_of_a_stack(monkeypatch, curve, tmp_path):
    X, y = curve
    auto = stacked(monkeypatch, kw.MKLAutoRegressor, X, y)
    kw.save_model(auto, tmp_path / "auto.kw")
    again = kw.load_model(tmp_path / "auto.kw")
    np.testing.assert_allclose(again.predict(X), auto.predict(X), rtol=1e-12)
    assert again.reason_ == auto.reason_


def test_the_file_of_a_stack_of_samples_that_lack_views(monkeypatch, curve, tmp_path):
    X, y = curve
    views = {"a": X[:, :2].copy(), "b": X[:, 2:].copy()}
    views["b"][::4] = np.nan
    auto = stacked(monkeypatch, kw.MKLAutoRegressor, views, y, [Linear(), RBF()], missing="complete")
    kw.save_model(auto, tmp_path / "auto.kw")
    np.testing.assert_allclose(
        kw.load_model(tmp_path / "auto.kw").predict(views), auto.predict(views), rtol=1e-12
    )


def test_norms_of_the_components_of_a_stack(monkeypatch, curve):
    X, y = curve
    auto = stacked(monkeypatch, kw.MKLAutoRegressor, X, y)
    rules = [kw.kernels.resolve_normalization("variance") for _ in KERNELS]
    for m, (kernel, rule) in enumerate(zip(KERNELS.values(), rules, strict=True)):
        K = kernel.fit(X)(X)
        K = K * rule.fit(K).scale_
        f = auto.model_.components(X)[0, :, m]
        # f = K beta and beta' K beta: with a pseudo-inverse, whatever beta is
        np.testing.assert_allclose(
            auto.best_estimator_.norms_[m] ** 2, f @ np.linalg.pinv(K, 1e-10) @ f, rtol=1e-3
        )


def test_one_candidate_alone_is_its_own_fit(classes):
    X, y = classes
    auto = kw.MKLAutoClassifier(RBF(), Cs=[1.0], cv=3).fit(X, y)
    alone = kw.MKLClassifier(RBF(), regularizer="uniform", C=1.0).fit(X, y)
    np.testing.assert_allclose(auto.decision_function(X), alone.decision_function(X), atol=1e-3)
    assert auto.candidates_[auto.best_index_]["candidate"] in auto.reason_
    assert auto.reason_.count(". ") == 1
    assert " (accuracy, standard error " in auto.reason_
    assert auto.reason_.endswith(" held out. There was no other candidate.")


def test_views_compete_too(classes):
    X, y = classes
    views = {"a": X[:, :2], "b": X[:, 2:]}
    auto = kw.MKLAutoClassifier({"a": [RBF(), Linear()], "b": RBF()}, Cs=[1.0], cv=3).fit(views, y)
    names = [row["candidate"] for row in auto.candidates_]
    assert {"uniform sum, a", "b alone"} < {*names}


def test_linear_kernels_of_views_compete_for_regression(classes):
    X, y = classes
    views = {"a": X[:, :2], "b": X[:, 2:], "c": X[:, 1:]}
    kernels = {"a": [RBF(), Linear()], "b": RBF(), "c": [Linear(), Linear(standardize=True), RBF()]}
    options = {"kernels": kernels, "Cs": [1.0], "cv": 3}
    found = kw.MKLAutoRegressor(**options).fit(views, np.unique(y, return_inverse=True)[1].astype(float))
    of = dict(zip(found.cv_results_["candidate"], found.cv_results_["kernels"], strict=False))
    own = {name: kernels.tolist() for name, kernels in of.items() if "linear kernels, " in name}
    assert own == {"linear kernels, a alone": [1], "uniform sum, linear kernels, c": [3, 4]}
    others = kw.MKLAutoClassifier(**options).fit(views, y).cv_results_["candidate"]
    assert {*of} - {*others} == {*own, "empirical Bayes"}


def test_moments_of_alignments_are_those_of_all_orders(rng):
    K, L = (doubly_centred(A @ A.T) for A in (rng.normal(size=(6, 3)), rng.normal(size=(6, 1))))
    orders = [np.array(order) for order in permutations(range(6))]
    values = [float((K * L[np.ix_(order, order)]).sum()) for order in orders]
    np.testing.assert_allclose(over_all_orders(K, L), (np.mean(values), np.var(values)))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_views_of_noise_are_not_related_to_the_target(rng, fit_intercept):
    views = [rng.normal(size=(120, 3)) for _ in range(12)]
    y = np.sign(views[3][:, :1] + views[7][:, 1:2])
    matrices = [X @ X.T for X in views] + [(1.0 + X @ X.T) ** 2 for X in views]
    look = Look(matrices, np.arange(24), 24, y, rng.uniform(0.5, 2.0, size=120), fit_intercept)
    kernels, _ = Related(tuple(np.array([m, m + 12]) for m in range(12)))(look)
    assert kernels.tolist() == [3, 7, 15, 19]
    nothing = look.__class__(*(matrices, look.live, 24, rng.permutation(y), look.weight, fit_intercept))
    assert len(Related(tuple(np.arange(24)[:, None]))(nothing)[0]) == 1  # the least unrelated one


def test_candidates_of_related_views_where_others_are_noise(rng):
    views = {f"view {k + 1}": rng.normal(size=(90, 3)) for k in range(12)}
    y = np.sign(views["view 3"][:, 0] + views["view 7"][:, 1])
    auto = kw.MKLAutoClassifier([Linear(), RBF()], Cs=[1.0], cv=3).fit(views, y)
    names = auto.cv_results_["candidate"]
    assert {name for name in names if "view " in name} == {"uniform sum, view 3", "uniform sum, view 7"}
    both = {"uniform sum, linear kernels", "uniform sum, linear kernels, related views"}
    assert both < {*names}  # the whole competes, too
    template = auto._template()
    setup = template._setup(views, y, None)
    units = tuple(np.array([2 * k, 2 * k + 1]) for k in range(12))
    look = Look.at(template._dictionary(setup), setup)
    np.testing.assert_array_equal(Related(units, 1.0, np.arange(0, 24, 2))(look)[0], [4, 12])
    np.testing.assert_array_equal(Related(units, 1.0, np.array([0]))(look)[0], [4, 5, 12, 13])  # none is


def test_kernels_that_are_constant_on_the_samples_looked_at(monkeypatch, rng):
    monkeypatch.setattr(_rules, "MOST_SAMPLES", 20)
    X = np.column_stack([rng.normal(size=60), np.eye(60)[:, ::8]])  # indicators of single samples
    y = np.where(X[:, 0] > 0, 1, -1)
    folds = [(np.arange(60), np.arange(30)), (np.arange(60), np.arange(30, 60))]
    model = kw.MKLAutoClassifier(per_feature(Linear()), Cs=[1.0], cv=folds).fit(X, y)
    assert model.score(X, y) > 0.9


def test_a_budget_leaves_out_the_less_simple_candidates(curve):
    X, y = curve
    auto = kw.MKLAutoRegressor(KERNELS, Cs=[1.0], cv=3, time_budget=1e-9).fit(X, y)
    assert [row["candidate"] for row in auto.candidates_] == ["uniform sum", "stack"]
    without = kw.MKLAutoRegressor(KERNELS, Cs=[1.0], cv=3).fit(X, y)
    count = len(without.candidates_) - 2
    assert auto.reason_.endswith(f" {count} more could not be tried within time_budget=1e-09 seconds.")
    assert "time_budget" not in without.reason_


def test_groups_weights_and_one_fold(curve):
    X, y = curve
    groups = np.arange(50) // 10
    auto = kw.MKLAutoRegressor(KERNELS, Cs=[1.0], cv=GroupKFold(5)).fit(X, y, groups=groups)
    assert len(auto.cv_results_["split_test_scores"][0]) == 5
    twice = np.r_[np.arange(50), np.arange(10)]
    weight = np.where(np.arange(50) < 10, 2.0, 1.0)
    folds = [*KFold(3).split(X)]
    both = [np.r_[train, 50 + train[train < 10]] for train, _ in folds]
    repeated = [
        (train, np.flatnonzero(np.isin(twice, test))) for train, (_, test) in zip(both, folds, strict=True)
    ]
    weighted = kw.MKLAutoRegressor(Linear(), Cs=[1.0], cv=folds).fit(X, y, sample_weight=weight)
    plain = kw.MKLAutoRegressor(Linear(), Cs=[1.0], cv=repeated).fit(X[twice], y[twice])
    np.testing.assert_allclose(weighted.predict(X), plain.predict(X), atol=1e-3)
    with pytest.raises(ValueError, match="one fold"):
        kw.MKLAutoRegressor(KERNELS, cv=folds[:1]).fit(X, y)


SMALL = [kw.MKLAutoClassifier, kw.MKLClassifierCV, kw.GroupOMPClassifierCV]


@pytest.mark.parametrize("cls", [*SMALL, kw.MKLAutoRegressor, kw.MKLRegressorCV, kw.GroupOMPRegressorCV])
def test_few_samples_have_fewer_folds(cls):
    X = np.random.default_rng(0).standard_normal((6, 2))
    y = np.array([0, 1, 0, 1, 0, 1]) if cls in SMALL else X[:, 0]
    found = cls([Linear()]).fit(X, y).cv_results_["split_test_scores"]
    assert (9 if "Auto" in cls.__name__ else 3) in found.shape  # three times three
    assert np.isfinite(found).all()
    if cls in SMALL:
        with pytest.raises(ValueError, match="at least 2 samples, and class '1' has 1 of 6"):
            cls([Linear()]).fit(X, [0, 0, 0, 0, 0, 1])
    else:
        with pytest.raises(ValueError, match="at least 4 samples, and there are 3 samples"):
            cls([Linear()]).fit(X[:3], y[:3])


@pytest.mark.parametrize("cls", [kw.MKLAutoClassifier, kw.MKLClassifierCV, kw.MKLAutoRegressor])
def test_groups_are_not_split_by_default(cls):
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((24, 2)), np.arange(24) % 8
    y = (np.arange(24) // 4 + groups) % 2
    model, classifies = cls([Linear()], Cs=[1.0]), cls is not kw.MKLAutoRegressor
    folds = model._folds(y, np.ones(24), model._metadata(None, {"groups": groups})).splits
    times = 1 if cls is kw.MKLClassifierCV else 3
    assert len(folds) == times * (4 if classifies else 5)  # eight groups, two in a fold that is stratified
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])
    assert np.isfinite(model.fit(X, y, groups=groups).best_score_)
    if classifies:
        with pytest.raises(ValueError, match="at least 2 groups, and class '1' has 1 of 2"):
            model.fit(X[:6], [0, 1, 0, 0, 0, 0], groups=[0, 1, 1, 0, 0, 1])


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("cls", [kw.MKLAutoClassifier, kw.MKLClassifierCV])
def test_what_is_told_of_every_fold_is_told_once(cls, n_jobs):
    X = np.random.default_rng(0).standard_normal((20, 2))
    X[:, 1] = 3.0
    with pytest.warns(UserWarning, match="without variance") as told:
        model = cls(per_feature(RBF()), Cs=[1.0], cv=3, n_jobs=n_jobs).fit(X, X[:, 0] > 0)
    assert len(told) == 1
    with pytest.warns(UserWarning, match="without variance"):  # of another fit, again
        model.fit(X, X[:, 0] > 0)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("cls", [kw.MKLAutoClassifier, kw.MKLClassifierCV, kw.GroupOMPClassifierCV])
def test_what_a_fold_alone_lacks_is_not_told(cls, n_jobs):
    X = np.random.default_rng(0).standard_normal((24, 2))
    X[:, 1] = np.arange(24) >= 16  # constant on the training samples of the last fold, and of no others
    parts = np.repeat([0, 1, 2], 8)
    folds = [(np.flatnonzero(parts != k), np.flatnonzero(parts == k)) for k in range(3)]
    costs = {} if cls is kw.GroupOMPClassifierCV else {"Cs": [1.0]}
    model = cls(per_feature(RBF()), cv=folds, n_jobs=n_jobs, **costs)
    assert model.fit(X, X[:, 0] > 0).weights_.shape[-1] == 2  # a warning is an error


@pytest.mark.parametrize(
    ("cls", "other"),
    [
        (kw.MKLAutoRegressor, "MKLAutoClassifier"),
        (kw.MKLRegressorCV, "MKLClassifierCV"),
        (kw.GroupOMPRegressorCV, "GroupOMPClassifierCV"),
    ],
)
def test_messages_name_the_class_that_was_used(curve, cls, other):
    X, y = curve
    with pytest.raises(ValueError, match=f"{cls.__name__} needs numbers: use {other} "):
        cls(RBF()).fit(X, np.where(y > 0, "high", "low"))
    model = cls(Linear(), cv=3).fit(X, y)
    with pytest.raises(ValueError, match=f"{cls.__name__} is expecting 3 features"):
        model.predict(X[:, :2])


def look_at(X, y, weight, kernels):
    """What rules see of a regression."""
    template = kw.MKLRegressor(kernels, C=2.0)
    setup = template._setup(X, y, weight)
    return Look.at(template._dictionary(setup), setup)


def test_errors_without_a_sample_are_those_of_machines_without_it(curve):
    X, y = (part[:15] for part in curve)
    weight = np.linspace(0.5, 2.0, 15)
    look = look_at(X, y, weight, KERNELS)
    K, shift, left = look.matrices[1], 0.3, []
    for i in range(15):
        rest = np.delete(np.arange(15), i)
        A = np.block(
            [[K[np.ix_(rest, rest)] + np.diag(shift / weight[rest]), np.ones((14, 1))], [np.ones((1, 14)), 0]]
        )
        *alpha, b = np.linalg.solve(A, np.append(y[rest], 0.0))
        left.append(y[i] - K[i, rest] @ np.array(alpha) - b)
    expected = (weight * np.square(left)).sum() / weight.sum()
    np.testing.assert_allclose(look.errors(look.centred(K), [shift, 1.0])[0], expected, rtol=1e-8)
    np.testing.assert_allclose(look.errors(look.centred(K), [shift]), expected, rtol=1e-8)


def test_rules_find_the_kernel_of_the_target():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    y = X[:, 2] + 0.05 * rng.standard_normal(40)
    look = look_at(X, y, None, per_feature(Linear()))
    for rule in (Best(tuple(np.arange(4)[:, None])), Greedy(), LargestEvidence()):
        kernels, regularizer = rule(look)
        assert kernels.tolist() == [2]
        assert np.ptp(regularizer.select(kernels, 4).weights(np.ones(1))) == 0.0


def test_weights_in_the_multipliers_of_a_stack_are_repeated_rows():
    rng = np.random.default_rng(0)
    t, F = np.sign(rng.standard_normal((20, 2))), [rng.standard_normal((20, 2)) for _ in range(3)]
    count = np.where(np.arange(20) < 8, 3, 1)
    rows = np.repeat(np.arange(20), count)
    for squared in (True, False):
        weighted = multipliers(F, t, squared, count.astype(float))
        np.testing.assert_allclose(weighted, multipliers([f[rows] for f in F], t[rows], squared), atol=1e-4)


def test_samples_that_belong_together_count_once_in_the_standard_error():
    losses = np.tile([[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]], 4)
    folds = np.tile(np.arange(2), 8)
    assert simplest(losses[:, :4], folds[:4]) == 0  # 0.25 behind, and the error of that is 0.25
    assert simplest(losses, folds) == 1
    assert simplest(losses, folds, None, np.tile(np.arange(4), 4)) == 0  # the same four samples again


@pytest.mark.parametrize("cls", [kw.MKLAutoClassifier, kw.MKLAutoRegressor])
def test_few_samples_are_divided_several_times(cls, curve):
    y, groups, weight = curve[1], np.arange(50) // 2, np.ones(50)
    y = y > 0 if cls is kw.MKLAutoClassifier else y
    weight[:2] = 0.0
    for own in ({}, {"groups": groups}):
        folds = cls()._folds(y, weight, Metadata(own, {}))
        tests = [test for _, test in folds.splits]
        assert len(tests) == 15
        np.testing.assert_array_equal(np.bincount(np.concatenate(tests)), np.full(48, 3))
        assert len({tuple(sorted(test)) for test in tests}) > 5
        for train, test in folds.splits:
            np.testing.assert_array_equal(np.sort(np.r_[train, test]), np.arange(48))
            assert not own or not {*groups[folds.used[train]]} & {*groups[folds.used[test]]}
    assert len(cls(cv=4)._folds(y, weight, Metadata({}, {})).splits) == 4
    assert len(cls()._folds(np.tile(y, 4), np.ones(200), Metadata({}, {})).splits) == 5


def test_a_stack_learns_nothing_from_the_samples_it_is_judged_on(monkeypatch):
    seen = []
    auto = kw.MKLAutoRegressor()
    monkeypatch.setattr(auto, "_multipliers", lambda values, tests, **_: seen.append(tests) or np.ones(1))
    tests = [np.array([0, 1]), np.array([2, 3]), np.array([1, 2]), np.array([0, 3])]
    auto._crossed([[np.zeros((2, 1))] * 4], tests)
    assert [np.concatenate(own).tolist() for own in seen] == [
        [2, 3, 2, 3],
        [0, 1, 1, 0],
        [0, 3, 0, 3],
        [1, 2, 1, 2],
    ]
    once = np.arange(8.0).reshape(2, 4) % 3
    F, t, clusters = (
        np.hstack([once, once])[:, :, None],
        np.tile(once[:1].T, (2, 1)),
        np.tile(np.arange(4), 2),
    )
    found = multipliers(list(F), t, True, None, clusters, 2.0)
    np.testing.assert_allclose(found, multipliers(list(once[:, :, None]), once[:1].T, True))


def test_all_columns_together_where_views_are_tables(monkeypatch, classes):
    X, y = classes
    views = {"a": X[:, :2], "b": X[:, 2:]}
    auto = stacked(monkeypatch, kw.MKLAutoClassifier, views, y > 0, kernels="auto")
    assert "uniform sum, all columns together" in auto.cv_results_["candidate"]
    own = auto.cv_results_["kernels"][
        auto.cv_results_["candidate"].index("uniform sum, all columns together")
    ]
    assert all(auto.kernel_names_[m].startswith("all views: ") for m in own)
    parts = auto.model_.components(kw.Views(views))
    np.testing.assert_allclose(
        parts.sum(axis=2).T + auto.model_.intercept, auto.model_(kw.Views(views)), atol=1e-9
    )
    joined = kw.kernels.RBF("weighted", standardize=True).fit(X)(X)
    side_by_side = dict(kw.kernels.resolve_kernels(kw.kernels.auto(together=True), kw.Views(views)))
    np.testing.assert_allclose(
        side_by_side["all views: rbf scale*1"].fit(kw.Views(views))(kw.Views(views)), joined
    )
    assert "linear, all columns together, as measured alone" in auto.cv_results_["candidate"]
    measured = auto._template().kernels
    side_by_side = dict(kw.kernels.resolve_kernels(measured, kw.Views(views)))
    kernel = side_by_side["all views: linear, as measured"].fit(kw.Views(views))
    np.testing.assert_allclose(kernel(kw.Views(views)), X @ X.T)


def test_the_grid_of_each_candidate_extends_while_its_best_is_at_an_end():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3)) * [1.0, 1.0, 1e-3]
    y = X[:, 2]  # needs a large C
    auto = kw.MKLAutoRegressor(Linear(), cv=3).fit(X, y)
    assert auto.grid_extended_["C"][1] > 1e3
    assert auto.best_score_ > 0.9


def test_a_grid_of_ones_own_whose_best_is_at_its_end_is_told(curve):
    X, _ = curve
    with pytest.warns(UserWarning, match=r"Scores still rise towards C = 0\.001, the largest"):
        kw.MKLAutoRegressor(Linear(), cv=3, Cs=[1e-5, 1e-4, 1e-3]).fit(X, X.sum(axis=1))


def test_simplicity_is_a_number_of_standard_errors(classes):
    with pytest.raises(ValueError, match="simplicity=-1"):
        kw.MKLAutoClassifier(simplicity=-1).fit(*classes)
