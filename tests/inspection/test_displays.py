"""What the displays draw is what the models say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_regression
from sklearn.model_selection import GridSearchCV

import kernelweave as kw
from kernelweave.inspection import (
    AlignmentDisplay,
    BandsDisplay,
    ContributionDisplay,
    ConvergenceDisplay,
    PathDisplay,
    contributions,
    kernel_alignments,
)
from kernelweave.kernels import RBF, Linear, bands, per_feature

from .conftest import KERNELS, LABELS, MODELS, X, Y

Fitted = Callable[[str], tuple[Any, Any, Any]]


def ticks(axis: Any) -> list[str]:
    return [text.get_text() for text in axis.get_ticklabels()]


def legend(display: Any) -> list[str]:
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


# -- paths --------------------------------------------------------------------------------------


@pytest.mark.parametrize("quantity", ["weights", "norms"])
def test_a_path_has_a_line_a_kernel(quantity: str) -> None:
    path = kw.mkl_path(
        kw.MKLClassifier(KERNELS, regularizer=kw.LpNorm(1)), X, LABELS, values=[0.1, 1.0, 10.0]
    )
    display = PathDisplay.from_path(path, quantity=quantity)
    assert_allclose(np.array([line.get_ydata() for line in display.lines_]).T, getattr(path, quantity))
    assert_allclose(display.lines_[0].get_xdata(), [0.1, 1.0, 10.0])
    assert display.ax_.get_xscale() == "log"
    assert sorted(legend(display)) == sorted(KERNELS)
    assert display.ax_.get_xlabel() == "C"


def test_a_path_over_regularisers_and_several_models_has_names_on_its_axis() -> None:
    classes = np.digitize(Y, [-0.7, 0.7])
    path = kw.mkl_path(kw.MKLClassifier(KERNELS), X, classes, "regularizer", ["uniform", kw.LpNorm(1)])
    display = PathDisplay.from_path(path)
    assert_allclose(np.array([line.get_ydata() for line in display.lines_]).T, path.weights.mean(axis=1))
    assert ticks(display.ax_.xaxis) == ["uniform", "LpNorm(p=1)"]


def test_a_greedy_path_shows_its_errors(models: Fitted) -> None:
    model, _, _ = models("greedy validated")
    display = PathDisplay.from_estimator(model)
    assert_allclose(display.lines_[0].get_ydata(), model.path_.train_error)
    assert_allclose(display.lines_[1].get_ydata(), model.path_.validation_error)
    first = model.kernel_names_[model.path_.order[0]]
    assert ticks(display.ax_.xaxis)[0] == f"1: {first}"
    assert legend(display) == ["training", "validation"]


@pytest.mark.filterwarnings("ignore:Scores still rise")
def test_a_search_shows_its_scores_with_their_spread() -> None:
    search = kw.MKLRegressorCV(KERNELS, regularizers=[kw.LpNorm(1), "uniform"], Cs=[0.1, 1.0, 10.0], cv=3)
    search.fit(X, Y)
    display = PathDisplay.from_estimator(search)
    mean, spread = (search.cv_results_[key].reshape(2, 3) for key in ("mean_test_score", "std_test_score"))
    assert legend(display) == ["LpNorm(p=1)", "uniform"]
    for line, band, score, deviation in zip(display.lines_, display.bands_, mean, spread, strict=True):
        assert_allclose(line.get_ydata(), score)
        heights = band.get_paths()[0].vertices[:, 1]
        assert heights.max() == pytest.approx((score + deviation).max())
        assert heights.min() == pytest.approx((score - deviation).min())
    assert display.values[display.chosen] == search.best_params_["C"]


def test_a_greedy_search_shows_a_line_a_ridge(models: Fitted) -> None:
    search, _, _ = models("greedy regressor cv")
    display = PathDisplay.from_estimator(search)
    scores = search.cv_results_["mean_test_score"].reshape(2, 2)
    assert_allclose(np.array([line.get_ydata() for line in display.lines_]).T, scores)
    assert display.values == [1, 2]


def test_very_many_lines_stay_readable() -> None:
    curves = np.random.default_rng(0).random((5, 500))
    display = PathDisplay(range(5), curves, [f"k{m}" for m in range(500)], y_label="weight").plot()
    assert len(display.lines_) == 60
    highest = np.argsort(-curves.max(axis=0))
    assert legend(display) == [f"k{m}" for m in highest[:10]]
    assert_allclose(display.lines_[0].get_ydata(), curves[:, highest[0]])
    assert display.ax_.get_ylabel() == "weight (60 of 500 kernels)"


def test_what_has_no_path_is_refused(models: Fitted) -> None:
    with pytest.raises(ValueError, match="neither `path_` nor `cv_results_`"):
        PathDisplay.from_estimator(models("binary")[0])
    search = GridSearchCV(kw.MKLRegressor(KERNELS), {"tol": [1e-2, 1e-3]}, cv=2).fit(X, Y)
    with pytest.raises(ValueError, match="search over tol"):
        PathDisplay.from_estimator(search)
    with pytest.raises(ValueError, match="quantity='alpha'"):
        PathDisplay.from_path(kw.mkl_path(kw.MKLRegressor(KERNELS), X, Y, values=[1.0]), quantity="alpha")


# -- convergence --------------------------------------------------------------------------------

#: what the stopping rule of each looks at
RESIDUAL = {"binary": "gap", "greedy regressor": "share", "bayes regressor": "stationarity"}


@pytest.mark.parametrize("name", RESIDUAL)
def test_the_residual_of_every_kind_of_fit(name: str, models: Fitted) -> None:
    model, _, _ = models(name)
    display = ConvergenceDisplay.from_estimator(model)
    [line] = display.lines_[type(model).__name__]
    assert_allclose(line.get_ydata(), model.history_[RESIDUAL[name]])
    assert_allclose(line.get_xdata(), np.arange(1, len(line.get_ydata()) + 1))
    assert display.ax_.get_yscale() == "log"


def test_machines_are_counted_where_the_fit_counts_them(models: Fitted) -> None:
    model, _, _ = models("generalized regressor")
    display = ConvergenceDisplay.from_estimator(model)
    assert_allclose(display.lines_["GMKLRegressor"][0].get_xdata(), model.history_["n_machines"])


def test_primal_and_dual_over_passes_of_several_models(models: Fitted) -> None:
    named = {"dense": models("binary")[0], "sparse": models("sparse")[0]}
    display = ConvergenceDisplay.from_estimator(named, quantity="objective", x="passes")
    assert legend(display) == ["dense", "sparse"]
    for name, model in named.items():
        primal, dual = display.lines_[name]
        assert_allclose(primal.get_ydata(), model.history_["primal"])
        assert_allclose(dual.get_ydata(), model.history_["dual"])
        assert_allclose(primal.get_xdata(), model.history_["n_passes"])
        assert dual.get_color() == primal.get_color()


def test_a_model_a_class_has_a_line_a_class(models: Fitted) -> None:
    model, _, _ = models("ovr")
    display = ConvergenceDisplay.from_estimator(model)
    assert list(display.lines_) == [f"MKLClassifier: {name}" for name in model.classes_]
    assert_allclose(display.lines_["MKLClassifier: 1"][0].get_ydata(), model.history_[1]["gap"])


def test_a_fit_without_a_gap_shows_its_objective() -> None:
    model = kw.MKLRegressor(KERNELS, regularizer=kw.SMKL()).fit(X, Y)
    [line] = ConvergenceDisplay.from_estimator(model).lines_["MKLRegressor"]
    assert_allclose(line.get_ydata(), model.history_["primal"])


def test_the_tolerance_is_a_line(models: Fitted) -> None:
    display = ConvergenceDisplay.from_estimator(models("binary")[0])
    assert_allclose(display.ax_.get_lines()[-1].get_ydata(), [1e-3, 1e-3])


def test_bad_requests_of_a_convergence_plot(models: Fitted) -> None:
    display = ConvergenceDisplay({"one": {"gap": [0.1]}})
    with pytest.raises(ValueError, match="quantity='loss'"):
        display.plot(quantity="loss")
    with pytest.raises(ValueError, match="x='seconds'"):
        display.plot(x="seconds")
    with pytest.raises(ValueError, match="does not count passes"):
        display.plot(x="passes")
    with pytest.raises(ValueError, match="a history needs one of"):
        ConvergenceDisplay({"one": {"accuracy": [1.0]}}).plot()


# -- alignments ---------------------------------------------------------------------------------


def test_the_map_is_the_matrix_in_the_order_drawn(models: Fitted) -> None:
    model, data, _ = models("binary")
    A = kernel_alignments(model, data)
    display = AlignmentDisplay.from_estimator(model, data)
    assert sorted(display.order_) == [0, 1, 2, 3]
    assert_allclose(display.image_.get_array(), A[np.ix_(display.order_, display.order_)])
    assert ticks(display.ax_.xaxis) == [list(KERNELS)[m] for m in display.order_]
    written = np.array([float(text.get_text()) for text in display.texts_]).reshape(4, 4)
    assert_allclose(written, display.image_.get_array(), atol=0.005 + 1e-9)
    plain = AlignmentDisplay.from_estimator(model, data, order="given")
    assert_allclose(plain.image_.get_array(), A)


def test_like_kernels_stand_side_by_side() -> None:
    A = np.eye(4)
    A[0, 2] = A[2, 0] = A[1, 3] = A[3, 1] = 0.9
    order = AlignmentDisplay(A, list("abcd")).plot().order_.tolist()
    assert abs(order.index(0) - order.index(2)) == 1
    assert abs(order.index(1) - order.index(3)) == 1


def test_kernels_before_a_fit() -> None:
    display = AlignmentDisplay.from_kernels(KERNELS, X, order="given")
    assert_allclose(display.image_.get_array(), kernel_alignments(KERNELS, X))
    assert ticks(display.ax_.yaxis) == list(KERNELS)
    stack = kw.KernelStack([kernel.fit(X)(X) for kernel in (RBF(gamma=0.1), Linear())], ["bell", "line"])
    assert ticks(AlignmentDisplay.from_kernels("precomputed", stack).ax_.yaxis) == ["bell", "line"]


def test_of_many_kernels_the_heaviest_are_compared() -> None:
    data, y = make_regression(40, 70, n_informative=5, random_state=0)
    model = kw.MKLRegressor(per_feature(Linear())).fit(data, y)
    display = AlignmentDisplay.from_estimator(model, data, order="given")
    heaviest = np.argsort(-model.weights_, kind="stable")[:60]
    assert ticks(display.ax_.yaxis) == [f"x{m}" for m in heaviest]
    assert_allclose(display.image_.get_array(), kernel_alignments(model, data, kernels=heaviest))
    assert "60 of 70 kernels" in display.ax_.get_title()
    assert display.texts_ == []


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(ValueError, match="order='size'"):
        AlignmentDisplay(np.eye(2), ["a", "b"]).plot(order="size")


# -- contributions ------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MODELS)
def test_shares_are_of_the_standard_deviations(name: str, models: Fitted) -> None:
    model, data, _ = models(name)
    parts = contributions(model, data)
    deviations = np.atleast_2d(parts.std(axis=-2))
    expected = (deviations / deviations.sum(axis=1, keepdims=True)).mean(axis=0)
    display = ContributionDisplay.from_estimator(model, data)
    assert_allclose([bar.get_width() for bar in display.bars_], expected)
    assert ticks(display.ax_.yaxis) == list(model.kernel_names_)[: len(expected)]


def test_the_bars_of_one_sample_end_in_its_value(models: Fitted) -> None:
    model, data, _ = models("regressor")
    display = ContributionDisplay.from_estimator(model, data, sample=5)
    widths = [bar.get_width() for bar in display.bars_]
    assert_allclose(widths[1:-1], contributions(model, data)[5])
    assert widths[0] == pytest.approx(model.intercept_)
    assert widths[-1] == pytest.approx(model.predict(data[5:6])[0])
    assert sum(widths[:-1]) == pytest.approx(widths[-1])
    assert ticks(display.ax_.yaxis) == ["intercept", *KERNELS, "sum"]


def test_one_sample_of_several_classes_shows_the_predicted_one(models: Fitted) -> None:
    model, data, _ = models("ovr")
    values = model.decision_function(data[7:8])[0]
    display = ContributionDisplay.from_estimator(model, data, sample=7)
    assert display.bars_[-1].get_width() == pytest.approx(values.max())
    other = ContributionDisplay.from_estimator(model, data, sample=7, function=0)
    assert other.bars_[-1].get_width() == pytest.approx(values[0])


def test_kernels_left_out_of_a_sample_are_summed() -> None:
    parts = np.random.default_rng(0).normal(size=(3, 200))
    display = ContributionDisplay(parts, 0.5, [f"k{m}" for m in range(200)]).plot(sample=1, max_kernels=4)
    widths = [bar.get_width() for bar in display.bars_]
    assert len(widths) == 7
    assert_allclose(widths[1:5], parts[1][np.argsort(-np.abs(parts[1]))[:4]])
    assert ticks(display.ax_.yaxis)[-2:] == ["196 other kernels", "sum"]
    assert sum(widths[:-1]) == pytest.approx(widths[-1])


def test_a_sample_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="there are 2 samples"):
        ContributionDisplay(np.ones((2, 1)), 0.0, ["a"]).plot(sample=2)


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("name", ["binary", "ovr"])
def test_samples_that_do_not_vary_are_taken_apart(name: str, copies: int, models: Fitted) -> None:
    """A share of the variation of one sample is 0 / 0: b, the f_m and their sum are drawn instead."""
    model, data, _ = models(name)
    display = ContributionDisplay.from_estimator(model, np.repeat(data[5:6], copies, axis=0))
    widths = [bar.get_width() for bar in display.bars_]
    largest = np.ravel(model.decision_function(data[5:6])).max()
    assert_allclose(widths[-1], largest, rtol=1e-6, atol=1e-9)
    assert_allclose(sum(widths[:-1]), widths[-1], atol=1e-9)


def test_the_function_of_a_sample_is_named_by_its_class(models: Fitted) -> None:
    model, data, _ = models("ovo")
    display = ContributionDisplay.from_estimator(model, data, sample=7, function=1)
    assert display.ax_.get_xlabel().endswith("function 2 vs 0")


def test_curves_of_pairs_are_named_by_their_pairs(models: Fitted) -> None:
    """Three classes have three pairs."""
    display = ConvergenceDisplay.from_estimator(models("ovo")[0])
    assert [name.split(": ")[1] for name in display.histories] == ["1 vs 0", "2 vs 0", "2 vs 1"]


# -- bands --------------------------------------------------------------------------------------

SPECTRA = np.random.default_rng(0).normal(size=(50, 10))
SIGNAL = SPECTRA[:, 4] + SPECTRA[:, 5]


def test_bands_have_the_width_of_their_channels() -> None:
    model = kw.MKLRegressor(bands(3)).fit(SPECTRA, SIGNAL)
    display = BandsDisplay.from_estimator(model)
    assert_allclose([bar.get_x() for bar in display.bars_], [-0.5, 3.5, 6.5])
    assert_allclose([bar.get_width() for bar in display.bars_], [4, 3, 3])
    assert_allclose([bar.get_height() for bar in display.bars_], model.weights_)
    assert display.line_ is None


@pytest.mark.parametrize("falling", [False, True])
def test_bands_over_wavelengths_with_a_spectrum(falling: bool) -> None:
    model = kw.GroupOMPRegressor(bands(5, Linear()), n_kernels=2).fit(SPECTRA, SIGNAL)
    places = np.linspace(900, 0, 10) if falling else np.linspace(0, 900, 10)
    display = BandsDisplay.from_estimator(model, positions=places, spectrum=SPECTRA.mean(axis=0))
    lefts = [bar.get_x() for bar in display.bars_]
    assert_allclose(lefts, [750, 550, 350, 150, -50] if falling else [-50, 150, 350, 550, 750])
    assert_allclose([bar.get_height() for bar in display.bars_], model.weights_)
    assert_allclose(display.line_.get_ydata(), SPECTRA.mean(axis=0))
    assert_allclose(display.line_.get_xdata(), places)


def test_kernels_on_the_same_band_are_summed() -> None:
    model = kw.EmpiricalBayesRegressor(bands(2, [Linear(), RBF()])).fit(SPECTRA, SIGNAL)
    display = BandsDisplay.from_estimator(model)
    assert_allclose([bar.get_height() for bar in display.bars_], model.weights_.reshape(2, 2).sum(axis=1))


def test_what_is_not_a_spectrum_is_refused(models: Fitted) -> None:
    with pytest.raises(ValueError, match="kernel 'all' does not see one band"):
        BandsDisplay.from_estimator(models("binary")[0])
    with pytest.raises(ValueError, match="has no kernels on columns"):
        BandsDisplay.from_estimator(models("generalized classifier")[0])
    with pytest.raises(ValueError, match="the bands need 4 channels"):
        BandsDisplay([[0, 3]], [1.0], positions=[1.0, 2.0]).plot()
    with pytest.raises(ValueError, match="must rise or fall"):
        BandsDisplay([[0, 2]], [1.0], positions=[1.0, 3.0, 2.0]).plot()
    with pytest.raises(ValueError, match="spectrum has 2 channels"):
        BandsDisplay([[0, 2]], [1.0], positions=[1.0, 2.0, 3.0], spectrum=[1.0, 2.0]).plot()


# -- all ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "display",
    [
        PathDisplay([1, 2], [[1.0], [2.0]], ["a"]),
        ConvergenceDisplay({"a": {"gap": [0.1, 0.01]}}),
        AlignmentDisplay(np.eye(2), ["a", "b"]),
        ContributionDisplay(np.eye(2), 0.0, ["a", "b"]),
        BandsDisplay([[0, 1], [2, 3]], [0.5, 0.2]),
    ],
    ids=lambda display: type(display).__name__,
)
def test_every_display_draws_on_the_axes_given(display: Any) -> None:
    figure, ax = plt.subplots()
    assert display.plot(ax=ax) is display
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert display.plot().ax_ is not ax
