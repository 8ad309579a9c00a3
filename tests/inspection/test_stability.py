"""Kernel weights over sub-samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

import kernelweave as kw
from kernelweave.estimators._candidates import Candidate
from kernelweave.gram import KernelStack
from kernelweave.inspection import StabilityResult, stability_selection
from kernelweave.inspection._refits import PlainParts, refits_for
from kernelweave.inspection.stability import draw_subsamples
from kernelweave.kernels import RBF, FunctionKernel, Linear, per_feature

from .conftest import CLASSES, KERNELS, LABELS, MODELS, X, Y

# -- what it is for -----------------------------------------------------------------------------

N_GROUPS, INFORMATIVE, CORRELATED, WIDTH = 20, 5, 5, 3


def correlated_groups(seed: int, n: int) -> tuple[Any, Any, dict[str, Any]]:
    """Groups of columns, their kernels, and a target that five of them make.

    The five share a common factor; five of the others are half copies of one of the five each.
    """
    rng = np.random.default_rng(seed)
    groups = rng.normal(size=(N_GROUPS, n, WIDTH))
    common = rng.normal(size=(n, 1))
    groups[:INFORMATIVE] = np.sqrt(0.5) * (groups[:INFORMATIVE] + common)
    copies = slice(INFORMATIVE, INFORMATIVE + CORRELATED)
    groups[copies] = np.sqrt(0.5) * (groups[copies] + groups[:INFORMATIVE])
    slopes = rng.normal(size=(INFORMATIVE, WIDTH))
    slopes /= np.linalg.norm(slopes, axis=1, keepdims=True)
    f = sum(g @ w + 0.5 * np.sin(2 * g[:, 0]) for g, w in zip(groups, slopes, strict=False))
    y = f + 0.5 * f.std() * rng.normal(size=n)
    columns = np.arange(N_GROUPS * WIDTH).reshape(N_GROUPS, WIDTH)
    kernels = {f"group {m}": RBF(columns=own.tolist()) for m, own in enumerate(columns)}
    return np.hstack(list(groups)), y - y.mean(), kernels


def regressor(**parameters: Any) -> Any:
    return kw.MKLRegressor(**parameters)


def classifier(**parameters: Any) -> Any:
    return kw.MKLClassifier(**parameters)


SEPARATING = {
    "p = 1": (regressor(regularizer=kw.LpNorm(1)), 200),
    "p = 4/3": (regressor(regularizer=kw.LpNorm(4 / 3)), 200),
    "p = 2": (regressor(regularizer=kw.LpNorm(2)), 200),
    "elastic net": (regressor(regularizer=kw.ElasticNet(0.5)), 200),
    "SMKL": (regressor(regularizer=kw.SMKL()), 200),
    "greedy": (kw.GroupOMPRegressor(n_kernels=6, alpha=0.1), 200),
    "empirical Bayes": (kw.EmpiricalBayesRegressor(), 200),
    "p = 1, classes": (classifier(regularizer=kw.LpNorm(1), C=0.3), 600),
    "p = 4/3, classes": (classifier(regularizer=kw.LpNorm(4 / 3), C=0.1), 600),
    "p = 2, classes": (classifier(regularizer=kw.LpNorm(2), C=0.1), 600),
    "greedy, classes": (kw.GroupOMPClassifier(n_kernels=6, alpha=0.1), 600),
}


SLOW = {
    "SMKL",
    "empirical Bayes",
    "p = 4/3",
    "p = 2, classes",
    "p = 1, classes",
    "p = 4/3, classes",
    "greedy, classes",
}


@pytest.mark.wide
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in SEPARATING]
)
def test_informative_kernels_are_told_from_noise(name: str) -> None:
    """Area under the ROC curve over 0.95, kernels correlated with one another and with noise."""
    estimator, n = SEPARATING[name]
    areas = []
    for seed in range(2):
        data, y, kernels = correlated_groups(seed, n)
        y = np.where(y > np.median(y), 1, -1) if name.endswith("classes") else y
        model = clone(estimator).set_params(kernels=kernels)
        result = stability_selection(model, data, y, n_subsamples=20, random_state=0)
        areas.append(roc_auc_score(np.arange(N_GROUPS) < INFORMATIVE, result.frequency))
    assert np.mean(areas) > 0.95


# -- what it computes ---------------------------------------------------------------------------


def counting(columns: int, calls: list[int]) -> FunctionKernel:
    """A polynomial kernel that notes how many values it computes."""

    def kernel(A: Any, B: Any) -> Any:
        calls.append(len(A) * len(B))
        return A @ B.T + 1.0

    return FunctionKernel(kernel, columns=[columns])


@pytest.mark.parametrize(
    "estimator",
    [kw.MKLRegressor(), kw.MKLOneClass(), kw.GroupOMPRegressor(n_kernels=2), kw.EmpiricalBayesRegressor()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_every_kernel_is_evaluated_once(estimator: Any) -> None:
    counts = []
    for n_subsamples in (2, 6):
        calls: list[int] = []
        model = clone(estimator).set_params(kernels=[counting(column, calls) for column in range(3)])
        stability_selection(model, X, Y, n_subsamples=n_subsamples, random_state=0)
        counts.append(sum(calls))
    assert counts == [3 * len(X) ** 2] * 2


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", MODELS)
def test_it_works_for_every_estimator(name: str) -> None:
    estimator, y = MODELS[name]()
    data = np.hstack([X] * 4) if name == "together" else X
    result = stability_selection(estimator, data, y, n_subsamples=2, random_state=0)
    assert len(result.kernel_names) == result.weights.shape[1]
    assert_allclose(result.weights.sum(axis=1), 1.0)
    assert_allclose(result.full_weights.sum(), 1.0)
    assert not hasattr(estimator, "weights_")


def shares(model: Any) -> Any:
    weights = np.atleast_2d(model.weights_)
    return (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (kw.MKLClassifier("precomputed", tol=1e-7, normalize=None), LABELS),
        (kw.MKLClassifier("precomputed", tol=1e-7, normalize=None, multiclass="ovo"), CLASSES),
        (kw.MKLRegressor("precomputed", regularizer=kw.ElasticNet(0.5), tol=1e-7, normalize=None), Y),
        (kw.MKLRegressor("precomputed", regularizer=kw.SMKL(), normalize=None), Y),
        (kw.MKLOneClass("precomputed", tol=1e-7, normalize=None), None),
        (kw.GroupOMPClassifier("precomputed", n_kernels=2, normalize=None), CLASSES),
        (kw.EmpiricalBayesRegressor("precomputed", normalize=None), Y),
    ],
    ids=["binary", "pairs of classes", "elastic net", "SMKL", "one class", "greedy", "empirical Bayes"],
)
def test_weights_are_those_of_a_fit_on_the_sub_sample(estimator: Any, y: Any) -> None:
    stack = KernelStack([kernel.fit(X)(X) for kernel in KERNELS.values()], list(KERNELS))
    result = stability_selection(estimator, stack, y, n_subsamples=3, random_state=7)
    strata = y if estimator.__sklearn_tags__().estimator_type == "classifier" else None
    parts = draw_subsamples(len(X), 3, 0.5, True, strata, None, check_random_state(7))
    for rows, found in zip(parts, result.weights, strict=True):
        alone = clone(estimator).fit(stack[np.ix_(rows, rows)], None if y is None else y[rows])
        assert_allclose(found, shares(alone), atol=2e-3)
    assert_allclose(result.full_weights, shares(clone(estimator).fit(stack, y)), atol=2e-3)
    assert result.kernel_names == list(KERNELS)


def test_normalisation_is_that_of_all_samples() -> None:
    model = kw.MKLRegressor(list(KERNELS.values()), normalize="center", tol=1e-6)
    matrices = []
    for kernel in KERNELS.values():
        K = kernel.fit(X)(X)
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        matrices.append(K / K.diagonal().mean())
    given = kw.MKLRegressor("precomputed", normalize=None, tol=1e-6)
    found = [
        stability_selection(estimator, data, Y, n_subsamples=4, random_state=0).weights
        for estimator, data in ((model, X), (given, KernelStack(matrices)))
    ]
    assert_allclose(found[0], found[1], atol=1e-4)


def test_the_same_seed_gives_the_same_result_whatever_the_threads() -> None:
    model = kw.MKLClassifier(KERNELS)
    results = [
        stability_selection(model, X, LABELS, n_subsamples=6, random_state=seed, n_jobs=jobs).weights
        for seed, jobs in ((0, None), (0, 2), (1, None))
    ]
    assert_array_equal(results[0], results[1])
    assert not np.allclose(results[0], results[2])


def test_pipelines_and_searches_are_unwrapped() -> None:
    grid = {"mklregressor__C": [0.1, 1.0]}
    pipeline = make_pipeline(StandardScaler(), kw.MKLRegressor(KERNELS))
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, Y)
    best = clone(search.best_estimator_)
    Z = StandardScaler().fit_transform(X)
    expected = stability_selection(best[-1], Z, Y, n_subsamples=2, random_state=0)
    for model in (search, best):
        found = stability_selection(model, X, Y, n_subsamples=2, random_state=0)
        assert_allclose(found.weights, expected.weights)


def test_samples_without_weight_are_not_drawn() -> None:
    weight = np.where(np.arange(len(X)) < 40, 1.0, 0.0)
    model = kw.MKLRegressor([RBF(gamma=0.3), Linear()])
    found = stability_selection(model, X, Y, sample_weight=weight, n_subsamples=2, random_state=0)
    alone = stability_selection(model, X[:40], Y[:40], n_subsamples=2, random_state=0)
    assert_allclose(found.weights, alone.weights)


def test_kernels_too_many_to_be_kept_are_evaluated_again() -> None:
    fixed = [RBF(gamma=0.1), Linear(), RBF(gamma=0.5, columns=[0]), RBF(gamma=0.5, columns=[1, 2])]
    model = kw.GroupOMPRegressor(fixed, n_kernels=2, memory_limit="120KB", normalize=None)
    assert isinstance(refits_for(model, X, Y, np.ones(len(X))), PlainParts)
    small = stability_selection(model, X, Y, n_subsamples=4, random_state=0)
    large = stability_selection(model.set_params(memory_limit=None), X, Y, n_subsamples=4, random_state=0)
    assert_allclose(small.weights, large.weights)


def test_given_matrices_too_many_to_be_copied_are_taken_apart() -> None:
    stack = KernelStack([kernel.fit(X)(X) for kernel in KERNELS.values()])
    model = kw.GroupOMPRegressor("precomputed", n_kernels=2, memory_limit="120KB", normalize=None)
    assert isinstance(refits_for(model, stack, Y, np.ones(len(X))), PlainParts)
    small = stability_selection(model, stack, Y, n_subsamples=4, random_state=0)
    large = stability_selection(model.set_params(memory_limit=None), stack, Y, n_subsamples=4, random_state=0)
    assert_allclose(small.weights, large.weights)


@pytest.mark.filterwarnings("ignore:kernels without variance")
def test_a_kernel_without_variance_is_never_used() -> None:
    data = np.column_stack([X, np.ones(len(X))])
    for model in (kw.MKLRegressor(per_feature(Linear())), kw.GroupOMPRegressor(per_feature(Linear()))):
        result = stability_selection(model, data, Y, n_subsamples=2, random_state=0)
        assert result.frequency[-1] == 0.0
        assert result.weights.shape == (2, 5)


def test_fits_on_sub_samples_are_silent(capsys: pytest.CaptureFixture[str]) -> None:
    for model in (kw.MKLRegressor(KERNELS, verbose=2), kw.GroupOMPRegressor(KERNELS, verbose=2)):
        stability_selection(model, X, Y, n_subsamples=2)
    assert capsys.readouterr().out == ""


def test_progress_counts_up() -> None:
    seen: list[tuple[int, int]] = []
    stability_selection(
        kw.MKLRegressor(KERNELS), X, Y, n_subsamples=3, progress=lambda *done: seen.append(done)
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]


# -- the result ---------------------------------------------------------------------------------


def result_of(weights: Any, **parameters: Any) -> StabilityResult:
    names = [f"k{m}" for m in range(np.shape(weights)[1])]
    values = {"level": 0.5, "threshold": 1 / 3, **parameters}
    return StabilityResult(names, np.array(weights), np.full(len(names), 1 / 3), **values)


def test_frequency_counts_shares_not_below_the_threshold() -> None:
    result = result_of([[0.5, 0.5, 0.0], [0.6, 0.2, 0.2], [1 / 3, 1 / 3, 1 / 3], [1.0, 0.0, 0.0]])
    assert_allclose(result.frequency, [1.0, 0.5, 0.25])
    assert_allclose(result_of(result.weights, threshold=0.0).frequency, [1.0, 0.75, 0.5])
    assert result.selected() == ["k0"]
    assert result.selected(0.5) == ["k0", "k1"]
    assert "1 of 3 kernels" in repr(result)


def test_intervals_are_quantiles_and_the_frame_holds_them() -> None:
    weights = np.linspace(0, 1, 15).reshape(5, 3)
    result = result_of(weights)
    assert_allclose(result.low, np.quantile(weights, 0.25, axis=0))
    assert_allclose(result.high, np.quantile(weights, 0.75, axis=0))
    frame = result.frame().set_index("kernel").loc[result.kernel_names]
    for column in ("frequency", "median", "low", "high"):
        assert_allclose(frame[column], getattr(result, column))
    assert_allclose(frame["weight"], result.full_weights)


def test_the_bound_on_false_selections() -> None:
    result = result_of([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])  # 1.5 kernels used on average
    assert result.expected_false(0.75) == pytest.approx(1.5**2 / (0.5 * 3))
    with pytest.raises(ValueError, match=r"over 0\.5"):
        result.expected_false(0.5)


# -- sub-samples --------------------------------------------------------------------------------


def test_pairs_are_disjoint_and_keep_the_classes_in_proportion() -> None:
    labels = np.repeat(["a", "b", "c"], [20, 11, 3])
    parts = draw_subsamples(34, 7, 0.5, True, labels, None, check_random_state(0))
    assert len(parts) == 7
    for one, other in zip(parts[:-1:2], parts[1::2], strict=False):
        assert not set(one) & set(other)
    for rows in parts:
        assert [int((labels[rows] == name).sum()) for name in "abc"] == [10, 5, 1]


def test_single_sub_samples_may_be_larger_than_half() -> None:
    parts = draw_subsamples(10, 4, 0.8, False, None, None, check_random_state(0))
    assert [len(rows) for rows in parts] == [8] * 4
    assert len({tuple(rows) for rows in parts}) > 1


def test_groups_stay_together() -> None:
    groups = np.repeat(np.arange(10), 3)
    labels = groups % 2
    for rows in draw_subsamples(30, 6, 0.5, True, labels, groups, check_random_state(0)):
        assert len(np.unique(labels[rows])) == 2
        assert (np.bincount(groups[rows], minlength=10) % 3 == 0).all()


def test_groups_that_are_classes_cannot_be_divided() -> None:
    with pytest.raises(ValueError, match="finer groups"):
        stability_selection(kw.MKLClassifier(KERNELS), X, LABELS, groups=LABELS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_subsamples": 1}, "n_subsamples=1"),
        ({"fraction": 0.7}, "method='subsamples'"),
        ({"fraction": 0.0}, "fraction=0.0"),
        ({"method": "bootstrap"}, "'pairs' or 'subsamples'"),
        ({"level": 1.0}, "level=1.0"),
        ({"threshold": -0.1}, "threshold=-0.1"),
        ({"groups": [1, 2]}, "groups has 2 entries"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stability_selection(kw.MKLClassifier(KERNELS), X, LABELS, **arguments)


def test_a_class_of_one_sample_is_refused() -> None:
    labels = np.where(np.arange(len(X)) == 0, "rare", LABELS)
    with pytest.raises(ValueError, match="smallest class has 1 of 60"):
        stability_selection(kw.MKLClassifier(KERNELS), X, labels)


def test_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="learns kernel weights"):
        stability_selection("rbf", X, LABELS)


@pytest.mark.parametrize("stack", [False, True])
def test_candidates_taken_are_fitted_again_on_their_own_kernels(
    stack: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrices = KernelStack([kernel.fit(X)(X) for kernel in KERNELS.values()], list(KERNELS))
    rules = [kw.regularizers.Uniform(), kw.LpNorm(p=1)]
    taken = [
        Candidate("few", np.array([0, 1]), rules[0]),
        Candidate("all", np.arange(len(KERNELS)), rules[1]),
    ]
    monkeypatch.setattr("kernelweave.estimators.auto.candidates", lambda *_: taken)
    monkeypatch.setattr("kernelweave.estimators.auto.simplest", lambda *_: 2 if stack else 0)
    monkeypatch.setattr(
        "kernelweave.estimators.auto.multipliers", lambda values, *_: np.array([0.25, 0.75])[: len(values)]
    )
    auto = kw.MKLAutoRegressor("precomputed", Cs=[0.5, 5.0], cv=2, normalize=None, tol=1e-7).fit(matrices, Y)
    result = stability_selection(auto, matrices, Y, n_subsamples=2, random_state=7)
    assert_allclose(result.full_weights, shares(auto), atol=2e-3)
    parts = draw_subsamples(len(X), 2, 0.5, True, None, None, check_random_state(7))
    for rows, found in zip(parts, result.weights, strict=True):
        expected = np.zeros(len(KERNELS))
        for share, one, C in auto._taken:
            own = KernelStack([matrices.matrix(m)[np.ix_(rows, rows)] for m in one.kernels])
            plain = kw.MKLRegressor(
                "precomputed", regularizer=one.regularizer, C=C, normalize=None, tol=1e-7
            ).fit(own, Y[rows])
            expected[one.kernels] += share * plain.weights_
        assert_allclose(found, expected / expected.sum(), atol=2e-3)


def test_weights_vary_where_small_costs_close_every_gap() -> None:
    """Of an objective that is nearly all loss, any weights are within a thousandth of the best."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(40, 4))
    target = data[:, 1] + 0.5 * rng.normal(size=40)
    loose, tight = (
        stability_selection(
            kw.MKLRegressor(per_feature(RBF()), C=1e-3, tol=tol),
            data,
            target,
            n_subsamples=4,
            random_state=0,
        )
        for tol in (1e-3, 1e-7)
    )
    assert (loose.high - loose.low > 0.01).all()
    assert_allclose(loose.weights, tight.weights, atol=np.sqrt(2e-3))  # an error of tol in E is its square
